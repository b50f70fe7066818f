#!/bin/sh
# C and C++ are formatted as .clang-format says, and lines have at most 120 columns, those of kernels and documents too:
# format.sh SOURCE_DIR
set -eu
. "$(dirname "$0")/tool.sh"
cd "$1"

# Tables are exempt: those of the tests' rows, and in documents rows and what programs print; so is the report that
# koine-bench writes. Characters are counted: of UTF-8's bytes those that begin one.
find ./*.md cl src include tests examples bench docs \( -name "*.[ch]" -o -name "*.cl" -o -name "*.clh" -o -name "*.clh.in" \
    -o -name "*.cpp" -o -name "*.md" \) ! -path "tests/ops/rows_*" ! -path tests/support/op_row.h \
    ! -path docs/performance.md -print0 |
    LC_ALL=C xargs -0 awk '
    FNR == 1 { fenced = 0 }
    /^ *```/ { fenced = !fenced }
    FILENAME ~ /\.md$/ && (fenced || /^ *\|/ || /https?:/) { next }
    { line = $0; gsub(/[\200-\277]/, "", line) }
    length(line) > 120 { print FILENAME ":" FNR ": " length(line) " columns"; found = 1 }
    END { exit found }'

koine_tool clang-format
find cl src include tests examples bench \( -name '*.[ch]' -o -name '*.cpp' \) -print0 |
    xargs -0 "$tool" --dry-run -Werror || { echo "clang-format -i FILE puts it right"; exit 1; }
