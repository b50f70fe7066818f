#!/bin/sh
# Checks a page that maps PyTorch's names: torch_page.sh SOURCE_DIR PAGE MIN_ROWS. No cell may be empty; every Koine
# name must be declared in a public header (or be an environment variable or program of the sources); every test must be
# in the file that the row names. A row names Koine's counterpart and its test, or says "not supported" and has a dash
# for a test.
set -eu
cd "$1"
page=$2 least=$3
wrong=0
complain() {
    echo "$page: $1" >&2
    wrong=1
}
rows=$(grep -c '^| [^-]' "$page")
[ "$rows" -gt "$least" ] || complain "only $rows rows"
table=$(mktemp)
trap 'rm -f "$table"' EXIT
# The first cells may not hold a "|"; code is between backquotes.
grep '^| ' "$page" | grep -v -e '^| ---' -e '^| PyTorch |' >"$table"
while IFS='|' read -r before theirs ours test after; do
    row="the row of$theirs"
    [ -z "$before" ] && [ -n "${theirs# }" ] && [ -n "${ours# }" ] && [ -n "${test# }" ] || {
        complain "$row has an empty cell"
        continue
    }
    for name in $(printf '%s\n' "$ours" | grep -o -E '\b(kn_[a-z0-9_]+|KN_[A-Z0-9_]+|KOINE_[A-Z_]+)' || true); do
        case $name in
        KOINE_*) grep -rq "\"$name\"" src || complain "$row: no $name in src/" ;;
        *) grep -q -E "\b$name\b" include/koine/*.h include/koine/nn/*.h || complain "$row: no $name in include/" ;;
        esac
    done
    case $ours in
    " not supported"*)
        [ "$test" = " – " ] || complain "$row: what is not supported has no test:$test"
        continue
        ;;
    *kn_* | *KN_* | *KOINE_* | *koine*) ;;
    *) complain "$row names nothing of Koine's" ;;
    esac
    file=$(printf '%s\n' "$test" | grep -o 'tests/[a-z0-9_/]*\.c' || true)
    [ -n "$file" ] && [ -f "$file" ] || { complain "$row: no such file: $test"; continue; }
    for name in $(printf '%s\n' "$test" | sed 's/.*: //; s/`.*//; s/,//g'); do
        grep -q -w "$name" "$file" || complain "$row: no $name in $file"
    done
done <"$table"
exit $wrong
