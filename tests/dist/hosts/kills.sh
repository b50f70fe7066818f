#!/bin/sh
# Ranks on hosts of their own are lost at random moments: killed, stopped, or cut off the network. The others must name
# one or end within LIMIT seconds, with no wrong value before, and the last checkpoint must be whole.
#
# Ranks exchange 20 kB, which is gathered whole, and 2 MB, where each rank adds a share, by turns.
#
# Time is counted by rounds of waiting, so that nobody hangs while all processes are suspended, this script's `sleep`
# included. After that connections may have been given up: a loss that went wrong then, but corrupted nothing, is
# repeated, and so is one before which the launcher could not start the ranks.
#
# With `values`, only wrong values and broken checkpoints are failures: MPICH itself may crash or hang after a loss.
#
#     kills.sh HOSTS MPIEXEC VICTIM NUMBER [SEED [values]]
set -u
hosts=$1 mpiexec=$2 victim=$3 number=$4 seed=${5:-1} judged=${6:-all}
here=$(dirname "$0")
ranks=3 limit=20 start_limit=30
work=$(mktemp -d) || exit 1
if "$mpiexec" --version 2>&1 | grep -q "Open MPI\|OpenRTE"; then
    MPIEXEC_OPTIONS=--enable-recovery
else
    MPIEXEC_OPTIONS=-disable-auto-cleanup
fi
export MPIEXEC_OPTIONS

rest() { # a fifth of a second, or much longer if all are suspended
    before=$(date +%s)
    sleep 0.2
    [ $(($(date +%s) - before)) -gt 3 ] && suspended=yes
    rounds=$((rounds + 1))
}

still_there() { # prints the processes of $@ that live; $stopped, which this script has stopped, does not count
    for process; do
        state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$process/status" 2>/dev/null)
        [ -z "$state" ] || [ "$state" = Z ] || [ "$process$state" = "${stopped}T" ] || echo "$process"
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

start() { # false: the ranks did not start, $bad says so
    "$hosts" $ranks 1000 0.2 sh "$here/mpirun.sh" "$hosts" "$mpiexec" "$victim" "$folder" 3 "$count" \
        >"$folder/output" 2>&1 &
    launcher=$! processes= rounds=0
    while [ "$(ls "$folder" | grep -c '^rank')" -lt $ranks ]; do
        if ! kill -0 $launcher 2>/dev/null; then
            wait $launcher
            [ $? -eq 77 ] && { echo "SKIP: $(cat "$folder/output")"; exit 77; }
            bad="the ranks did not start" suspended=yes
            return 1
        fi
        [ $rounds -lt $((5 * start_limit)) ] || { bad="the ranks did not start in time"; return 1; }
        rest
    done
    for r in 0 1 2; do processes="$processes $(cat "$folder/rank.$r")"; done
}

lose() { # HOW RANK MOMENT
    lost=$(cat "$folder/rank.$2")
    sleep "$3"
    case $1 in
    0) what="kill -9" && kill -KILL "$lost" ;;
    1) what=SIGSTOP stopped=$lost && kill -STOP "$lost" ;;
    2) what="interface down" && KOINE_HOSTS_PROCESS=$launcher "$hosts" 10.77.0.$(($2 + 1)) ip link set eth0 down ;;
    3) what="all suspended for 3 s"
       # shellcheck disable=SC2086 # a list
       { kill -STOP $processes && sleep 3 && kill -CONT $processes; } ;;
    esac
    rounds=0
    # shellcheck disable=SC2086
    while left=$(still_there $processes) && [ -n "$left" ] && [ $rounds -lt $((5 * limit)) ]; do rest; done
    took=$((rounds / 5))
    rest
    [ -n "$left" ] && bad="processes hang: $left"
    [ "$1" -eq 3 ] && [ "$(grep -c ': done' "$folder/output")" -ne $ranks ] && bad="a rank was lost though none was"
    [ "$1" -le 1 ] && ! grep -q ": done\|rank $2 .*is lost" "$folder/output" && bad="nobody named rank $2"
}

failed=0 corrupt=0 repeated=0 longest=0 done_=0
numbers=$(awk -v seed="$seed" -v n="$number" 'BEGIN { srand(seed); for (i = 0; i < n; i++)
    printf "%d %d %.2f\n", 4 * rand(), 3 * rand(), 1.2 * rand() }')
while [ $done_ -lt "$number" ]; do
    # shellcheck disable=SC2046 # three words
    set -- $(echo "$numbers" | sed -n "$((done_ + 1))p")
    folder=$work/$done_
    [ $((done_ % 2)) -eq 0 ] && count=5000 || count=500000
    rm -rf "$folder"
    mkdir "$folder"
    bad= what= took=0 stopped= suspended=
    start && lose "$@"
    end_all
    spoilt=
    grep -q "WRONG" "$folder/output" && spoilt="wrong values"
    if [ -f "$folder/checkpoint.npy" ] && [ "$(stat -c %s "$folder/checkpoint.npy")" -ne $((128 + 4 * count)) ]; then
        spoilt="the checkpoint is not whole"
    fi
    if [ -n "$bad" ] && [ -z "$spoilt" ] && [ -n "$suspended" ] && [ $repeated -lt "$number" ]; then
        repeated=$((repeated + 1))
        continue
    fi
    if [ -n "$bad$spoilt" ]; then
        echo "loss $done_ (seed $seed): $what of rank $2 after $3 s: $bad $spoilt (after $took s)"
        cat "$folder/output"
        failed=$((failed + 1))
    else
        rm -rf "$folder"
    fi
    [ -n "$spoilt" ] && corrupt=$((corrupt + 1))
    [ $took -gt $longest ] && longest=$took
    done_=$((done_ + 1))
done
echo "$done_ losses, $failed failed, $corrupt of them corrupt; the longest took $longest s; repeated: $repeated"
[ "$judged" = values ] && failed=$corrupt
[ $failed -eq 0 ] && rm -rf "$work"
exit $((failed > 0))
