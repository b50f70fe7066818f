#!/bin/sh
# C and C++ are formatted as .clang-format says, and lines have at most 120 columns, those of kernels, scripts and
# documents too: format.sh SOURCE_DIR
set -eu
. "$(dirname "$0")/tool.sh"
cd "$1"

# Tables are exempt: those of the tests' rows and golden values, and in documents rows and what programs print; so is
# the report of the measurements. Characters are counted: of UTF-8's bytes those that begin one.
find ./*.md CMakeLists.txt .ci cl src include tests examples bench docs python tools cmake -type f \( -name "*.[ch]" \
    -o -name "*.cl" -o -name "*.clh" -o -name "*.clh.in" -o -name "*.cpp" -o -name "*.sh" -o -name run -o -name "*.py" \
    -o -name "*.cmake" -o -name CMakeLists.txt -o -name "*.md" \) ! -path "tests/ops/rows_*" \
    ! -path tests/support/op_row.h ! -path "tests/golden/golden_*.py" ! -path docs/performance.md -print0 |
    LC_ALL=C xargs -0 awk '
    FNR == 1 { fenced = 0 }
    /^ *```/ { fenced = !fenced }
    FILENAME ~ /\.md$/ && (fenced || /^ *\|/ || /https?:/) { next }
    { line = $0; gsub(/[\200-\277]/, "", line) }
    length(line) > 120 { print FILENAME ":" FNR ": " length(line) " columns"; found = 1 }
    END { exit found }'

koine_tool clang-format
find cl src include tests examples bench python \( -name '*.[ch]' -o -name '*.cpp' \) -print0 |
    xargs -0 "$tool" --dry-run -Werror || { echo "clang-format -i FILE puts it right"; exit 1; }
