#!/bin/sh
# Runs the tests with a driver that does what real ones have done:
# sh tests/odd_drivers.sh [ROW...] [-- CTEST ARGUMENT...]
#
# The driver is PoCL under the layer tests/support/odd_driver; tests/README.md lists what it does, and who has done so.
# A row below is a name, what goes to ODD_DRIVER, and, as a regular expression, the tests that cannot pass: emulated
# tensor cores take more local memory than those they stand for, and profiles without times are empty. (There is no row
# of `bare`: many tests compute in f64.)
# shellcheck disable=SC1091,SC2154 # of tools/setup.sh
set -eu

rows='
limits   strict,dims,fill,group,arguments,align=32768,local=48  tensor_cores
small    local=32,width                                         tensor_cores
units    units=61                                               ^$
late     late,blocking                                          ^$
posted   posted                                                 ^$
markers  marker-zero                                            ^$
mixed    marker-mixed                                           ^$
untimed  no-times                                               ^test_(profiler|profiler_limited|trace_two_devices)$
inexact  inexact                                                ^$
'

cd "$(dirname "$0")/.."
. tools/setup.sh
wanted=' '
while [ $# -gt 0 ]; do
    case $1 in
    --) shift; break ;;
    -h | --help) sed -n 's/^# \{0,1\}//p' "$0" | sed 1d; exit 0 ;;
    *) wanted="$wanted$1 "; shift ;;
    esac
done

bin=$PWD/$koine_build_dir/tests/bin
case $koine_build_dir in /*) bin=$koine_build_dir/tests/bin ;; esac
failed=''
while read -r name oddities without; do
    [ "$name" ] || continue
    case "$wanted" in ' ' | *" $name "*) ;; *) continue ;; esac
    preload=''
    [ "$name" = inexact ] && preload=$bin/libinexact_kernels.so
    echo "== $name: ODD_DRIVER=$oddities"
    OPENCL_LAYERS=$bin/libodd_driver.so ODD_DRIVER=$oddities LD_PRELOAD=$preload \
        ctest --test-dir "$koine_build_dir" --output-on-failure --parallel "$koine_jobs" \
        -LE '^(long|lint)$' -E "$without" "$@" </dev/null || failed="$failed $name"
done <<END
$rows
END
[ -z "$failed" ] || { echo "failed with:$failed"; exit 1; }
