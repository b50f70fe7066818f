#!/bin/sh
# The programs in a page of docs/ compile: pages.sh SOURCE_DIR BUILD_DIR PAGE...
set -eu
source=$1 build=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for page; do
    awk -v name="$folder/program" '/^```c$/ { on = 1; n++; file = name n ".c"; next }
        /^```$/ { on = 0 }
        on { print > file }' "$source/docs/$page"
    for program in "$folder"/program*.c; do
        [ -e "$program" ] || { echo "docs/$page has lost its programs" >&2; exit 1; }
        ${CC:-cc} -std=c11 -Wall -Wextra -Wshadow -Werror -fsyntax-only \
            -I"$source/include" -I"$build/include" "$program"
    done
    rm "$folder"/program*.c
done
