#!/bin/sh
# The C and the C++ in README.md compile: readme.sh SOURCE_DIR BUILD_DIR
set -eu
source=$1 build=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# program LANGUAGE PIECE FILE: README.md's code in that language, which holds PIECE, as a function in FILE.
program() {
    awk -v fence="\`\`\`$1" '$0 == fence { on = 1; next } /^```$/ { on = 0 } on' "$source/README.md" >"$folder/snippet"
    grep -q "$2" "$folder/snippet" || { echo "README.md has lost its example in $1" >&2; exit 1; }
    {
        echo '#include <stdio.h>'
        echo '#include <koine/koine.h>'
        echo 'void snippet(kn_loader *loader);'
        echo 'void snippet(kn_loader *loader)'
        echo '{'
        echo '(void)loader;'
        grep -v '^#include' "$folder/snippet"
        [ "$1" = c ] || echo '(void)optim;'
        echo '}'
    } >"$3"
}

flags="-Wall -Wextra -Wshadow -Werror -fsyntax-only -I$source/include -I$build/include"
program c kn_nn_sequential "$folder/program.c"
# shellcheck disable=SC2086 # the flags are words
${CC:-cc} -std=c11 $flags "$folder/program.c"
program cpp kn_nn_linear_params_init "$folder/program.cpp"
command -v "${CXX:-c++}" >/dev/null || exit 0
# shellcheck disable=SC2086
${CXX:-c++} -std=c++17 $flags "$folder/program.cpp"
