#!/bin/sh
# Every benchmark that is asked for runs and says so in a line of JSON: smoke.sh KOINE_BENCH [--only PREFIX]..., without
# a prefix all that are not of a GPU's size.
set -eu
bench=$1
shift
lines=$("$bench" --repetitions 1 "$@") || { echo "koine-bench failed" >&2; exit 1; }
wanted=$("$bench" --list "$@")
[ $# -gt 0 ] || wanted=$(printf '%s\n' "$wanted" | grep -v '^gpu/')
measured=$(printf '%s\n' "$lines" | sed -n 's/^{"name": "\([^"]*\)".*"seconds_median": [0-9.e+-]*,.*}$/\1/p')
[ -n "$wanted" ] || { echo "no benchmark is called that: $*" >&2; exit 1; }
[ "$wanted" = "$measured" ] || { printf 'asked for:\n%s\nmeasured:\n%s\n' "$wanted" "$measured" >&2; exit 1; }
! "$bench" --only no/such 2>/dev/null || { echo "koine-bench accepts --only no/such" >&2; exit 1; }
