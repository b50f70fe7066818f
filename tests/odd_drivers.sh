#!/bin/sh
# Runs the tests with a driver that does what real ones have done:
# sh tests/odd_drivers.sh [--continue] [ROW...] [-- CTEST ARGUMENT...]
#
# The results of each row's tests are kept in build/odd; --continue runs those that have not passed before.
#
# The driver is PoCL under the layer tests/support/odd_driver; tests/README.md lists what it does, and who has done so.
# A row below is a name, what goes to ODD_DRIVER (-: nothing), as a regular expression the tests that cannot pass, and
# further environment variables. Emulated tensor cores take more local memory than those they stand for, and without
# times profiles are empty and test_events fails. Guards make buffers larger than the tests of the pool's figures say,
# and are writes and waits: test_waits counts them, PoCL keeps memory for as many (test_growth), and test_native, which
# frees what a held queue uses, would wait for ever. With SIMULATE_GPU the devices say that they are GPUs: test_usage
# finds no CPU, and test_warm PoCL compiling kernels once more for many work-items.
# shellcheck disable=SC1091,SC2154 # of tools/setup.sh
set -eu

rows='
limits   strict,dims,fill,group,arguments,align=32768,local=48  tensor_cores
small    local=32,width                                         tensor_cores
units    units=61                                               ^$
cache    cache                                                  ^$
late     late,blocking                                          ^$
posted   posted                                                 ^$
markers  marker-zero                                            ^$
mixed    marker-mixed                                           ^$
untimed  no-times                                               ^test_(events|profiler(_limited)?|trace_two_devices)$
inexact  inexact                                                ^$
bare     bare                                                   ^$
guard    -                                                      FIGURES  KOINE_GUARD=1
guardgpu -                                                      FIGURES|SIMULATED  KOINE_GUARD=1 SIMULATE_GPU=khr
smallgpu local=32,width                                         SIMULATED  SIMULATE_GPU=khr
'
figures='^test_((growth|host_memory|native|waits)(_odd|_spinning)?'
figures="$figures|mem_pool|memory_snapshot|memory_stats|out_of_memory)\$"
figures="$figures|^test_pool(_limit.*|_workload)?\$"
simulated='tensor_cores|^test_(usage|warm)$'
rows=$(printf '%s' "$rows" | sed "s/FIGURES/$figures/; s/SIMULATED/$simulated/")

cd "$(dirname "$0")/.."
. tools/setup.sh
wanted=' ' continue=no
while [ $# -gt 0 ]; do
    case $1 in
    --) shift; break ;;
    --continue) continue=yes; shift ;;
    -h | --help) sed -n 's/^# \{0,1\}//p' "$0" | sed 1d; exit 0 ;;
    *) wanted="$wanted$1 "; shift ;;
    esac
done

bin=$PWD/$koine_build_dir/tests/bin
case $koine_build_dir in /*) bin=$koine_build_dir/tests/bin ;; esac
mkdir -p "$koine_build_dir/odd"
failed=''
while read -r name oddities without environment; do
    [ "$name" ] || continue
    case "$wanted" in ' ' | *" $name "*) ;; *) continue ;; esac
    preload='' layers=$bin/libodd_driver.so
    [ "$oddities" != - ] || oddities=''
    case $environment in *SIMULATE_GPU*) layers=$bin/libsimulate_gpu.so:$layers ;; esac
    [ "$name" = inexact ] && preload=$bin/libinexact_kernels.so
    echo "== $name: ODD_DRIVER=$oddities $environment"
    results=$koine_build_dir/odd/$name
    [ $continue = yes ] || rm -f "$results" "$results.log"
    # shellcheck disable=SC2086 # the variables are words
    env OPENCL_LAYERS=$layers ODD_DRIVER=$oddities LD_PRELOAD=$preload $environment \
        sh tests/continue.sh "$koine_build_dir" "$results" --parallel "$koine_jobs" \
        -LE '^(long|lint|host)$' -E "$without" "$@" || failed="$failed $name"
done <<END
$rows
END
[ -z "$failed" ] || { echo "failed with:$failed; see $koine_build_dir/odd"; exit 1; }
