#!/bin/sh
# Builds Koine and runs its tests: sh tests/run.sh [--full] [CTEST ARGUMENT...]
#
# Missing Debian or Ubuntu packages are installed first (tools/setup.sh). ctest's lines come last, and after them the tests that were skipped, with the reason; the exit status is ctest's.
set -eu

usage() {
    cat <<'END'
usage: sh tests/run.sh [--full] [CTEST ARGUMENT...]
  --full            also the tests labelled "long"
  -R NAME, -V, ...  go to ctest
END
}

full=no
case ${1-} in
--full) full=yes; shift ;;
-h | --help) usage; exit 0 ;;
esac

cd "$(dirname "$0")/.."
. tools/setup.sh
koine_packages
koine_test_packages
koine_build
koine_check_drivers

[ $full = yes ] || set -- -LE '^long$' "$@"
status=0
ctest --test-dir "$koine_build_dir" --output-on-failure --parallel "$koine_jobs" "$@" || status=$?
sh tests/skipped.sh "$koine_build_dir/Testing/Temporary/LastTest.log"
exit $status
