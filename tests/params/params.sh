#!/bin/sh
# No struct of parameters is without its initialiser and its defaults, and no function that takes one without a row in
# test_defaults.c: params.sh SOURCE_DIR
set -eu
cd "$1"
tests="tests/params/defaults_*.c"
wrong=0
complain() {
    echo "$1" >&2
    wrong=1
}

structs=$(sed -n 's/^} \(kn_[a-z0-9_]*_\(params\|options\|launch\)\);.*/\1/p' include/koine/*.h include/koine/nn/*.h)
for struct in $structs; do
    defaults=KN_$(echo "$struct" | sed 's/^kn_//; s/_params$//; s/_options$//' | tr a-z A-Z)_DEFAULTS
    grep -q "^KN_API $struct ${struct}_init(void);" include/koine/*.h include/koine/nn/*.h ||
        complain "$struct: no ${struct}_init(void) in include/koine/"
    grep -q "^#define $defaults\b" include/koine/*.h include/koine/nn/*.h ||
        complain "$struct: no $defaults in include/koine/"
    # In one place: whoever fills such a struct with its defaults uses them by name.
    name=$(echo "$struct" | sed 's/^kn_//; s/_params$//')
    row="KN_[A-Z_]*($name, $(echo "$name" | tr a-z A-Z)\b" # of src/ops/pointwise/elementwise.h
    grep -rq -e "($struct){$defaults}" -e "$row" src || complain "$struct: src/ does not use $defaults"
    # The macros of the headers are made from the same.
    if grep -h "($struct){" include/koine/*.h include/koine/nn/*.h | grep -v "($struct){$defaults" >&2; then
        complain "$struct: a macro does not start from $defaults"
    fi
done
[ "$(echo "$structs" | wc -w)" -ge 25 ] || complain "only $(echo "$structs" | wc -w) structs found"

# Every function, over several lines too, that takes a pointer to one of them.
functions=$(cat include/koine/*.h include/koine/nn/*.h | tr '\n' ' ' | sed 's/KN_API/\n&/g; s/;/;\n/g' |
    sed -n 's/^KN_API [^(]*[ *]\(kn_[a-z0-9_]*\)([^;]*const kn_[a-z0-9_]*_\(params\|options\|launch\) \*.*/\1/p' |
    sort -u)
for function in $functions; do
    grep -q "\b$function(" $tests || complain "$function: no row in tests/params"
done
[ "$(echo "$functions" | wc -w)" -ge 40 ] || complain "only $(echo "$functions" | wc -w) functions found"
echo "$(echo "$structs" | wc -w) structs, $(echo "$functions" | wc -w) functions"
exit $wrong
