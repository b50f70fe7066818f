#!/bin/sh
# Runs the tests of the build with the one driver that is visible, and writes a row of results (tests/drivers.sh) to
# build/drivers/DRIVER/result: check.sh DRIVER quick|suite|table [CTEST ARGUMENT...]
set -eu
driver=$1 mode=$2
shift 2
unset KOINE_DEVICE KOINE_VISIBLE_DEVICES

build=${KOINE_BUILD_DIR:-build}
out=$PWD/$build/drivers/$driver
# In a root folder the build serves if it runs there; another takes minutes.
own=no
"$build/bin/koine" --version >/dev/null 2>&1 || own=yes build=$build/drivers/trixie/build
KOINE_BUILD_DIR=$build
KOINE_SKIP_PACKAGES=1
. tools/setup.sh
# shellcheck disable=SC2086,SC2154 # drivers.sh sets it: words
[ $own = no ] || [ "$mode" = table ] || koine_build $targets
mkdir -p "$out"
export KOINE_CACHE_DIR="$out/cache" POCL_CACHE_DIR="$out/cache/pocl" MESA_SHADER_CACHE_DIR="$out/cache/mesa"
mkdir -p "$POCL_CACHE_DIR" "$MESA_SHADER_CACHE_DIR"

passed=0 failed=0 skipped=0 device='' version='' step='' cold='' note=''
count() { passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3)); } # count PASSED FAILED SKIPPED
fails() { note="$note${note:+, }$*"; }
number() { grep -x '[0-9][0-9]*' || echo 0; } # the number on stdin, or 0

finish() {
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$driver" "$device" "$version" "$mode" "$passed" "$failed" \
        "$skipped" "$step" "$cold" "${note:+failed: $note; logs in ${out#"$PWD/"}}" >"$out/result"
}

# --- what is measured -------------------------------------------------------------------------------------------------

describe() {
    "$build/bin/koine" devices --json >"$out/devices.log" 2>&1 || true
    device=$(sed -n 's/.*"name":[[:space:]]*"\(.*\)",.*/\1/p' "$out/devices.log" | head -n 1)
    version=$(sed -n 's/.*"driver_version":[[:space:]]*"\(.*\)",.*/\1/p' "$out/devices.log" | head -n 1)
    [ -n "$device" ] || { count 0 1 0; fails "no device: $(head -n 1 "$out/devices.log")"; }
}

# The step of the examples' CNN in milliseconds, and the seconds to the end of a first step with nothing compiled.
measure() {
    "$build/bin/koine-bench" --only cnn_step --only startup/cold --repetitions 5 >"$out/bench.log" 2>&1 || return 0
    median() { sed -n "s|.*\"name\": \"$1\".*\"seconds_median\": \([0-9.e-]*\).*|\1|p" "$out/bench.log"; }
    step=$(median cnn_step | awk '{ printf "%.1f", $1 * 1000 }')
    cold=$(median startup/cold | awk '{ printf "%.1f", $1 }')
}

# --- the quick checks -------------------------------------------------------------------------------------------------

# PoCL without its optimiser, as in the suite, which is several times as fast; the programs run with it.
unoptimized() { POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable COMPILER_PATH=$PWD/tests/support/kernel_linker "$@"; }

# Every operator against its reference.
operators() {
    status=0
    unoptimized "$build/bin/koine" doctor --operators >"$out/doctor.log" 2>&1 || status=$?
    right=$(sed -n 's/.*: \([0-9]*\) operations agree.*/\1/p' "$out/doctor.log" | number)
    wrong=$(grep -c '^problem' "$out/doctor.log" || true)
    [ $status -eq 0 ] || [ "$wrong" -gt 0 ] || wrong=1
    count "$right" "$wrong" 0
    [ "$wrong" -eq 0 ] || fails "doctor"
}

# The first row of each family of the operators' tables, with every implementation forced.
rows() {
    KOINE_GUARD=1 unoptimized "$build/tests/bin/test_ops" --first >"$out/test_ops.log" 2>&1 || true
    all=$(sed -n 's/^\([0-9]*\) cases on .*/\1/p' "$out/test_ops.log" | number)
    wrong=$(sed -n 's/.* device(s), \([0-9]*\) failed$/\1/p' "$out/test_ops.log" | number)
    [ "$all" -gt 0 ] || wrong=1 all=1 # it did not reach its end
    count $((all - wrong)) "$wrong" 0
    [ "$wrong" -eq 0 ] || fails "test_ops"
}

# program NAME COMMAND...: exit status 77 means skipped.
program() {
    what=$1 status=0
    shift
    "$@" >"$out/$what.log" 2>&1 || status=$?
    case $status in
    0) count 1 0 0 ;;
    77) count 0 0 1 ;;
    *) count 0 1 0; fails "$what" ;;
    esac
}

# Linear regression's fit is near (2, -3) and 10.
fitted() {
    "$build/bin/linear_regression" --samples 10000 --epochs 300 --every 100 | awk '
    function far(a, b) { return a - b > 0.1 || b - a > 0.1 }
    { print }
    /^w = / { gsub("[^-.0-9 ]", ""); fitted = !far($1, 2) && !far($2, -3) && !far($3, 10) }
    END { exit !fitted }'
}

quick() {
    describe
    [ $failed -eq 0 ] || return 0
    operators
    rows
    program linear_regression fitted
    program curve sh tests/examples/curve.sh "$build/bin/train_fashion_mnist" .
    measure
}

# --- the suite --------------------------------------------------------------------------------------------------------

# Of the chosen tests: how many passed, failed, were skipped, and have no result; then the names of those that failed.
results_of() {
    sh tests/continue.sh --list "$build" "$out/tests" "$@" | awk '
        $2 == "None" { left++; next }
        $2 == "Passed" { passed++; next }
        $2 == "Skipped" { skipped++; next }
        { failed++; names = names " " $1 }
        END { print passed + 0, failed + 0, skipped + 0, left + 0, names }'
}

suite() {
    describe
    [ $failed -eq 0 ] || return 0
    set -- -LE '^(long|lint|host)$' "$@"
    [ "$mode" = table ] || sh tests/continue.sh "$build" "$out/tests" --parallel "$koine_jobs" "$@" || true
    results_of "$@" >"$out/counts"
    read -r good bad left_out left names <"$out/counts"
    count "$good" "$bad" "$left_out"
    [ "$bad" -eq 0 ] || fails "$names"
    if [ "$left" -gt 0 ]; then
        fails "$left not run, go on with --continue"
    elif [ "$mode" = suite ] && [ $# -eq 2 ]; then
        measure
    fi
}

# --- Oclgrind, which interprets ---------------------------------------------------------------------------------------

interpreted() {
    device="Oclgrind" version=$(oclgrind --version | sed -n 's/^Oclgrind //p')
    for operator in add relu sum softmax cross_entropy matmul max_pool2d layer_norm index_select; do
        program "$operator" sh tests/sanitizers/oclgrind.sh "$build/tests/bin/smallest" --as-gpu "$operator"
    done
}

case $driver in
oclgrind) interpreted ;;
*) case $mode in table) suite "$@" ;; *) "$mode" "$@" ;; esac ;;
esac
finish
