#!/bin/sh
# C and C++ are formatted according to .clang-format: format.sh SOURCE_DIR
set -eu
. "$(dirname "$0")/tool.sh"
koine_tool clang-format
cd "$1"
find src include tests examples bench \( -name '*.[ch]' -o -name '*.cpp' \) -print0 |
    xargs -0 "$tool" --dry-run -Werror || { echo "clang-format -i FILE puts it right"; exit 1; }
