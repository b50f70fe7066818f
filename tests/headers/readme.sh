#!/bin/sh
# The C in README.md compiles: readme.sh SOURCE_DIR BUILD_DIR
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$1/README.md" >"$folder/snippet.c"
grep -q kn_nn_sequential "$folder/snippet.c" || { echo "README.md has lost its example" >&2; exit 1; }
{
    echo '#include <stdio.h>'
    grep '^#include' "$folder/snippet.c"
    echo 'void snippet(kn_loader *loader);'
    echo 'void snippet(kn_loader *loader)'
    echo '{'
    grep -v '^#include' "$folder/snippet.c"
    echo '}'
} >"$folder/program.c"
${CC:-cc} -std=c11 -Wall -Wextra -Wshadow -Werror -fsyntax-only -I"$1/include" -I"$2/include" "$folder/program.c"
