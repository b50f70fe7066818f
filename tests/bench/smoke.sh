#!/bin/sh
# Every benchmark that is asked for runs and says so in a line of JSON: smoke.sh KOINE_BENCH [PREFIX...], without a prefix all of them.
set -eu
bench=$1
shift
[ $# -gt 0 ] || set -- ""
for prefix; do
    lines=$("$bench" --repetitions 1 --only "$prefix") || { echo "koine-bench --only $prefix failed" >&2; exit 1; }
    wanted=$("$bench" --list --only "$prefix")
    measured=$(printf '%s\n' "$lines" | sed -n 's/^{"name": "\([^"]*\)".*"seconds_median": [0-9.e+-]*,.*}$/\1/p')
    [ "$wanted" = "$measured" ] || { printf 'asked for:\n%s\nmeasured:\n%s\n' "$wanted" "$measured" >&2; exit 1; }
    [ -n "$wanted" ] || { echo "no benchmark is called $prefix" >&2; exit 1; }
done
