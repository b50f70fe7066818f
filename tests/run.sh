#!/bin/sh
# Builds Koine and runs its tests: sh tests/run.sh [--lint | --full] [CTEST ARGUMENT...]
# Or those of the Python packages: sh tests/run.sh --python [PYTEST ARGUMENT...], sh tests/run.sh --torch [...]
#
# Missing Debian or Ubuntu packages are installed first (tools/setup.sh). ctest's closing lines come last, before them
# the tests that were skipped and why; the exit status is ctest's. With --full the runs of tests/odd_drivers.sh follow.
# tests/README.md tells what --full adds.
set -eu

usage() {
    cat <<'END'
usage: sh tests/run.sh [--lint | --full] [CTEST ARGUMENT...]
       sh tests/run.sh --python [PYTEST ARGUMENT...]
       sh tests/run.sh --torch [--full] [PYTEST ARGUMENT...]
  --lint            also clang-tidy, as in continuous integration
  --full            also the tests labelled "long", and all on everything they know: hours
  --python          the Python package instead, in a virtual environment in the build folder (numpy, cffi, pytest);
                    then what --torch does if PyTorch is there already
  --torch           the device of PyTorch instead, likewise (torch, numpy, pytest: 3 GB), or with the Python that
                    KOINE_PYTHON names, which has torch and pytest
  -R NAME, -V, ...  go to ctest
END
}

full=no left_out='^(long|lint)$'
case ${1-} in
--lint) left_out='^long$'; shift ;;
--full) full=yes; shift ;;
--python | --torch)
    which=$1
    shift
    cd "$(dirname "$0")/.."
    . tools/setup.sh
    koine_packages
    koine_build koine
    [ "$which" = --python ] || exec sh tests/torch_koine/run.sh "$@"
    status=0
    sh tests/python/run.sh "$@" || status=$?
    if [ $# -eq 0 ] && sh tests/torch_koine/run.sh --is-installed; then
        sh tests/torch_koine/run.sh || status=$?
    fi
    exit "$status"
    ;;
-h | --help) usage; exit 0 ;;
esac

cd "$(dirname "$0")/.."
. tools/setup.sh
koine_packages
koine_test_packages
koine_build
koine_check_drivers

optimized=OFF
if [ $full = yes ]; then
    export KOINE_TEST_FULL=1
    optimized=ON
else
    set -- -LE "$left_out" "$@"
fi
cmake -DKOINE_TEST_OPTIMIZED=$optimized "$koine_build_dir" >/dev/null
# The skipped tests and their reasons go in front of ctest's closing lines.
result=$(mktemp)
trap 'rm -f "$result"' EXIT
{
    status=0
    # One more than there are processors, since some tests wait for others' processes.
    ctest --test-dir "$koine_build_dir" --output-on-failure --parallel $((koine_jobs + 1)) "$@" || status=$?
    echo $status >"$result"
} | while IFS= read -r line; do
    case $line in *'% tests passed, '*)
        sh tests/skipped.sh "$koine_build_dir/Testing/Temporary/LastTest.log"
        echo
        ;;
    esac
    printf '%s\n' "$line"
done
status=$(cat "$result")
[ $full = no ] || sh tests/odd_drivers.sh -- "$@" || status=1
exit "$status"
