#!/bin/sh
# docs/torch-cuda.md keeps its word: torch_cuda.sh SOURCE_DIR. No cell is empty; every Koine name is declared in a public header (or an environment
# variable or program that the sources know); every test is in the file that the row names.
set -eu
cd "$1"
page=docs/torch-cuda.md
wrong=0
complain() {
    echo "$page: $1" >&2
    wrong=1
}
rows=$(grep -c '^| [^-]' "$page")
[ "$rows" -gt 100 ] || complain "only $rows rows"
# The first cells may not hold a "|"; code is between backquotes.
grep '^| ' "$page" | grep -v -e '^| ---' -e '^| PyTorch |' >"${TMPDIR:-/tmp}/torch_cuda.$$"
trap 'rm -f "${TMPDIR:-/tmp}/torch_cuda.$$"' EXIT
while IFS='|' read -r before theirs ours test after; do
    row="the row of$theirs"
    [ -z "$before" ] && [ -n "${theirs# }" ] && [ -n "${ours# }" ] && [ -n "${test# }" ] || { complain "$row has an empty cell"; continue; }
    for name in $(printf '%s\n' "$ours" | grep -o -E '\b(kn_[a-z0-9_]+|KN_[A-Z0-9_]+|KOINE_[A-Z_]+)' || true); do
        case $name in
        KOINE_*) grep -rq "\"$name\"" src || complain "$row: no $name in src/" ;;
        *) grep -q -E "\b$name\b" include/koine/*.h || complain "$row: no $name in include/" ;;
        esac
    done
    file=$(printf '%s\n' "$test" | grep -o 'tests/[a-z0-9_/]*\.c' || true)
    [ -n "$file" ] && [ -f "$file" ] || { complain "$row: no such file: $test"; continue; }
    for name in $(printf '%s\n' "$test" | sed 's/.*: //; s/`.*//; s/,//g'); do
        grep -q -w "$name" "$file" || complain "$row: no $name in $file"
    done
done <"${TMPDIR:-/tmp}/torch_cuda.$$"
exit $wrong
