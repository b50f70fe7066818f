#!/bin/sh
# Ranks on hosts of their own are lost at random moments: killed, stopped, or cut off the network. The others must name
# one or end within LIMIT seconds, with no wrong value before, and the last checkpoint must be whole.
#
#     kills.sh HOSTS MPIEXEC VICTIM NUMBER [SEED]
set -u
hosts=$1 mpiexec=$2 victim=$3 number=$4 seed=${5:-1}
here=$(dirname "$0")
ranks=3 limit=20
work=$(mktemp -d) || exit 1
if "$mpiexec" --version 2>&1 | grep -q "Open MPI\|OpenRTE"; then
    MPIEXEC_OPTIONS=--enable-recovery
else
    MPIEXEC_OPTIONS=-disable-auto-cleanup
fi
export MPIEXEC_OPTIONS

numbers=$(awk -v seed="$seed" -v n="$number" 'BEGIN { srand(seed); for (i = 0; i < n; i++)
    printf "%d:%d:%.2f ", 4 * rand(), 3 * rand(), 1.2 * rand() }')

still_there() { # prints the processes of $@ that live and are not stopped
    for process; do
        state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$process/status" 2>/dev/null)
        case $state in '' | Z | T | t) ;; *) echo "$process" ;; esac
    done
}

end_all() { # of this round only
    for process in $launcher $processes; do kill -KILL "$process" 2>/dev/null; done
    wait "$launcher" 2>/dev/null
    # The launchers on the hosts, which nothing reaches any more.
    for process in $(grep -lsz "^KOINE_HOSTS_PROCESS=$launcher\$" /proc/[0-9]*/environ | cut -d/ -f3); do
        kill -KILL "$process" 2>/dev/null
    done
}

failed=0 done_=0
for choice in $numbers; do
    how=${choice%%:*} rest=${choice#*:}
    rank=${rest%%:*} moment=${rest#*:}
    folder=$work/$done_
    mkdir "$folder"
    "$hosts" $ranks 1000 0.2 sh "$here/mpirun.sh" "$hosts" "$mpiexec" "$victim" "$folder" 3 >"$folder/output" 2>&1 &
    launcher=$!
    processes=
    waited=0
    while [ "$(ls "$folder" | grep -c '^rank')" -lt $ranks ]; do
        if ! kill -0 $launcher 2>/dev/null || [ $waited -gt 300 ]; then
            wait $launcher
            [ $? -eq 77 ] && { echo "SKIP: $(cat "$folder/output")"; exit 77; }
            echo "round $done_: the ranks did not start:"; cat "$folder/output"; exit 1
        fi
        sleep 0.1
        waited=$((waited + 1))
    done
    for r in 0 1 2; do processes="$processes $(cat "$folder/rank.$r")"; done
    lost=$(cat "$folder/rank.$rank")
    sleep "$moment"
    case $how in
    0) what="kill -9" && kill -KILL "$lost" ;;
    1) what=SIGSTOP && kill -STOP "$lost" ;;
    2) what="interface down" && KOINE_HOSTS_PROCESS=$launcher "$hosts" 10.77.0.$((rank + 1)) ip link set eth0 down ;;
    3) what="all suspended for 3 s"
       # shellcheck disable=SC2086 # a list
       { kill -STOP $processes && sleep 3 && kill -CONT $processes; } ;;
    esac
    began=$(date +%s)
    # shellcheck disable=SC2086
    while [ -n "$(still_there $processes)" ] && [ $(($(date +%s) - began)) -le $limit ]; do sleep 0.2; done
    # shellcheck disable=SC2086
    left=$(still_there $processes)
    took=$(($(date +%s) - began))
    sleep 0.2
    bad=
    [ -n "$left" ] && bad="processes hang: $left"
    grep -q "WRONG" "$folder/output" && bad="wrong values"
    [ "$how" -eq 3 ] && [ "$(grep -c ': done' "$folder/output")" -ne $ranks ] && bad="a rank was lost though none was"
    [ "$how" -le 1 ] && ! grep -q ": done\|rank $rank .*is lost" "$folder/output" && bad="nobody named rank $rank"
    if [ -f "$folder/checkpoint.npy" ] && [ "$(stat -c %s "$folder/checkpoint.npy")" -ne 20128 ]; then
        bad="the checkpoint is not whole"
    fi
    end_all
    if [ -n "$bad" ]; then
        echo "round $done_ (seed $seed): $what of rank $rank after $moment s: $bad (after $took s)"
        cat "$folder/output"
        failed=$((failed + 1))
    else
        rm -rf "$folder"
    fi
    done_=$((done_ + 1))
done
echo "$done_ losses, $failed failed"
[ $failed -eq 0 ] && rm -rf "$work"
exit $((failed > 0))
