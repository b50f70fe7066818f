#!/bin/sh
# A rank dies, stops, leaves or sleeps: the others must name it within seconds. lost_ranks.sh MPIEXEC PROGRAM HOW...
set -u
mpiexec=$1 program=$2
shift 2

# The launcher must let the others go on when one dies; each has its own option for that. MPICH's ends all ranks of the
# host that the lost one was on even so: each needs a host of its own, or another name of this one.
if "$mpiexec" --version 2>&1 | grep -q "Open MPI\|OpenRTE"; then
    go_on=--enable-recovery
else
    go_on="-disable-auto-cleanup -launcher fork -hosts 127.0.0.1,127.0.0.2,127.0.0.3"
fi

failed=0
for how; do
    output=$(timeout 60 "$mpiexec" $go_on -n 3 "$program" $how 2>&1)
    for rank in 0 2; do
        if ! echo "$output" | grep -q "^rank $rank after [0-9.]* s: all_reduce: .*rank 1 (.*) is \(lost\|behind\)"; then
            printf '%s: rank %s did not name rank 1:\n%s\n' "$how" "$rank" "$output"
            failed=1
        fi
    done
    # One that is late is told apart by the program's calls.
    if [ "$how" = sleep ] && ! echo "$output" | grep -q "it has made 5 calls, this rank 6"; then
        printf 'sleep: the calls are not those of the program:\n%s\n' "$output"
        failed=1
    fi
    # Rank 1, stopped, would stay.
    pkill -KILL -f "^$program $how" || true
done
exit $failed
