#!/bin/sh
# The tests that were skipped, whole programs and tests of one, and why: skipped.sh LAST_TEST_LOG (ctest's).
# Prints nothing where none was.
set -eu
[ -r "${1-}" ] || exit 0
awk '
/^[0-9]+\/[0-9]+ Testing: / { name = $3 }
# A program of ours says "skipped: REASON"; cmocka names the tests of a program that were, twice.
/^skipped: / { report(substr($0, 10)) }
/^\[  SKIPPED \] [A-Za-z_]/ { report("its test " $4) }
function report(reason) {
    if (seen[name, reason]++)
        return
    if (!count++)
        print "\nSkipped:"
    printf "  %s: %s\n", name, reason
}' "$1"
