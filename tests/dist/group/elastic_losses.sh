#!/bin/sh
# Ranks of an elastic run are killed or stopped at random moments, up to two of three: it must end, and where an
# unbroken run ends. Only ranks that have joined are stopped: MPI_Init waits for a stopped one without a limit.
# elastic_losses.sh SCRIPT MPIEXEC PROGRAM NUMBER [SEED], with examples/elastic.sh and group/elastic.c.
set -u
script=$1 mpiexec=$2 program=$3 number=$4 seed=${5:-1}
limit=120 # seconds that a run may take
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0 losses=0

draw() { # $drawn: a number below $1
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 65536 % $1))
}

mkdir "$work/whole"
"$mpiexec" -n 3 "$program" "$work/whole" >"$work/output" 2>&1 || {
    grep -q 'has no float64' "$work/output" && { echo "skipped: the device has no float64"; exit 77; }
    cat "$work/output"
    exit 1
}
whole=$(sed -n 's/^trained on 3 ranks from step 0: //p' "$work/output")

lose() { # after less than four seconds, one of the ranks that there are then
    draw 4000
    sleep "$((drawn / 1000)).$(printf %03d $((drawn % 1000)))"
    # shellcheck disable=SC2046 # words
    set -- $(pgrep -f "^$program $folder ")
    [ $# -gt 0 ] || return
    draw $#
    shift "$drawn"
    draw 4
    how=KILL
    [ "$drawn" -ne 0 ] || ! kill -0 "$(cat "$folder/joined" 2>/dev/null || echo none)" 2>/dev/null || how=STOP
    kill -$how "$1" 2>/dev/null && happened="$happened $how" losses=$((losses + 1))
}

run=1
while [ $run -le "$number" ]; do
    folder=$work/run-$run happened=
    mkdir "$folder"
    timeout $limit sh "$script" --ranks 3 --min-ranks 1 --grace 5 --launch "$mpiexec -n %n" -- \
        "$program" "$folder" --pause 0.08 >"$folder/output" 2>&1 &
    lose
    lose
    wait $!
    status=$?
    ended=$(sed -n 's/^trained on \([1-3]\) ranks from step [0-9]*: \(.*\)/\2/p' "$folder/output")
    if [ $status -ne 0 ] || [ "$ended" != "$whole" ]; then
        echo "run $run, lost:$happened: status $status, ends at '$ended', not at '$whole'"
        cat "$folder/output"
        failed=$((failed + 1))
    fi
    rm -rf "$folder"
    run=$((run + 1))
done
echo "$number runs, $losses ranks lost, $failed failed"
[ $failed -eq 0 ] && [ $losses -ge "$number" ]
