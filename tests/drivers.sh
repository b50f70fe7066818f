#!/bin/sh
# Runs the tests on every OpenCL driver that can be had without a GPU, and prints a table of the results:
# sh tests/drivers.sh [--quick | --table] [--continue] [--only DRIVER]... [--json FILE] [CTEST ARGUMENT...]
#
# Drivers (tests/drivers/get.sh fetches them) and logs are kept in build/drivers, so a second run starts at once; remove
# build/drivers/NAME for newer versions. So is each test's result as soon as it ends: --continue runs the others. A
# driver that cannot be had is a row with the reason. Exit status 1 if a test failed or has not run.
set -eu

usage() {
    cat <<'END'
usage: sh tests/drivers.sh [--quick | --table] [--continue] [--only DRIVER]... [--json FILE] [CTEST ARGUMENT...]
  --quick         no test suite: every operator on its smallest case, linear regression, four short epochs of the CNN
  --continue      only the tests that have not passed or been skipped before, since the last call without it
  --table         only print the results kept
  --timeout N     a test may take N seconds (900)
  --only DRIVER   pocl, intel, pocl-trixie, rusticl or oclgrind
  --json FILE     the results also as JSON, one object per line
  -R NAME, ...    go to ctest
END
}

mode=suite only='' json='' continue=no timeout=''
while [ $# -gt 0 ]; do
    case $1 in
    --quick) mode=quick ;;
    --table) mode=table ;;
    --continue) continue=yes ;;
    --timeout) timeout=${2:?}; shift ;;
    --only) only="$only ${2:?}"; shift ;;
    --json) json=${2:?}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) break ;;
    esac
    shift
done

here=$PWD
cd "$(dirname "$0")/.."
. tools/setup.sh
. tests/drivers/get.sh
for name in $only; do
    case " $drivers " in *" $name "*) ;; *) usage >&2; exit 2 ;; esac
done
mkdir -p "$folder"
export targets=''
[ $mode != quick ] || targets="koine_program koine-bench test_ops linear_regression train_fashion_mnist smallest"
if [ $mode != table ]; then
    koine_packages
    python=/usr/bin/python3 # the root folder of Debian 13 has this one, too
    [ -x $python ] || python=$(command -v python3)
    koine_configure -DKOINE_TEST_OPTIMIZED=OFF -DKOINE_TEST_TIMEOUT="$timeout" -DKOINE_PYTHON3="$python"
    # shellcheck disable=SC2086 # words
    koine_build $targets
fi
results=$folder/results
printf 'driver\tdevice\tversion\tmode\tpassed\tfailed\tskipped\tstep\tcold\tnote\n' >"$results"

row() { # row DRIVER NOTE: of one that did not run
    printf '%s\t\t\t%s\t\t\t\t\t\t%s\n' "$1" "$mode" "$2" >>"$results"
}

# try DRIVER CTEST-ARGUMENT...
try() {
    name=$1 reason=
    shift
    koine_say "--- $name"
    function=$(printf '%s' "$name" | tr - _)
    [ $mode != table ] || [ -f "$folder/$name/tests" ] || { row "$name" "not run"; return; }
    if ! "get_$function"; then
        row "$name" "not run: $reason"
        return
    fi
    rm -f "$folder/$name/result"
    [ $mode$continue != suiteno ] || rm -f "$folder/$name/tests" "$folder/$name/tests.log"
    "with_$function" sh tests/drivers/check.sh "$name" "$mode" "$@" >&2 || true
    cat "$folder/$name/result" >>"$results" 2>/dev/null || row "$name" "failed: the run ended early"
}
for name in ${only:-$drivers}; do
    try "$name" "$@"
done

table() {
    awk -F '\t' '
    function line(a, b, c, d, e, f, g, h) { printf "%-12s %-28s %7s %7s %8s %9s %8s  %s\n", a, b, c, d, e, f, g, h }
    NR == 1 { line("driver", "version", "passed", "failed", "skipped", "CNN step", "cold", ""); next }
    { line($1, $3, $5, $6, $7, $8 == "" ? "" : $8 " ms", $9 == "" ? "" : $9 " s", $10) }' "$results" | sed 's/ *$//'
}

to_json() {
    awk -F '\t' '
    NR == 1 { for (i = 1; i <= NF; i++) name[i] = $i; next }
    {
        for (i = 1; i <= NF; i++) {
            value = $i ~ /^[0-9.]+$/ && i > 4 ? $i : $i == "" ? "null" : "\"" $i "\""
            printf "%s\"%s\": %s", i == 1 ? "{" : ", ", name[i], value
        }
        print "}"
    }' "$results"
}

table
case $json in
'') ;;
/*) to_json >"$json" ;;
*) to_json >"$here/$json" ;;
esac
awk -F '\t' 'NR > 1 && ($6 > 0 || $10 ~ /^failed/) { bad = 1 } END { exit bad }' "$results"
