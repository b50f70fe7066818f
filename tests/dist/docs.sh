#!/bin/sh
# The C in the pages on collectives, data parallelism and groups compiles: docs.sh SOURCE_DIR BUILD_DIR
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for page in collectives data-parallel distributed; do
    {
        echo '#include <koine/koine.h>'
        echo 'kn_module *make_network(void);'
        echo 'extern kn_dataset *data;'
        echo 'void snippet(kn_tensor *images, kn_tensor *labels);'
        echo 'void snippet(kn_tensor *images, kn_tensor *labels)'
        echo '{'
        echo '(void)images, (void)labels;'
        awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$1/docs/$page.md"
        echo '}'
    } >"$folder/$page.c"
    grep -q kn_backward "$folder/$page.c" || { echo "docs/$page.md has lost its example" >&2; exit 1; }
    ${CC:-cc} -std=c11 -Wall -Wextra -Wshadow -Werror -fsyntax-only -I"$1/include" -I"$2/include" "$folder/$page.c"
done
