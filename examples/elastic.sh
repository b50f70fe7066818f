#!/bin/sh
# Trains on, on fewer or other ranks, when a rank or a host is lost.
#
#     sh examples/elastic.sh [OPTION...] -- PROGRAM ARGUMENT...
#
#   --ranks N        processes to start with (2)
#   --min-ranks N    fewer are not tried (1)
#   --retries N      restarts after failures (10)
#   --launch COMMAND how processes are started; %n is their number ("mpirun -n %n"; under Slurm "srun -n %n")
#   --resume OPTION  what makes the program go on from its last checkpoint ("--resume"), given at each restart
#   --count COMMAND  prints how many ranks there is room for now: it is asked before each restart. Without it each
#                    restart has one rank less
#   --grace SECONDS  how long after a rank's failure the launcher may take to end (30): then it is ended, as some wait
#                    for a host that is cut off
#
# Inside a Slurm job a failure requeues the job, which starts this script again, on the nodes that Slurm then has:
# submit it with `sbatch --requeue --nodes=MIN-MAX`. The program must not depend on the number of ranks for what it
# computes: give it the size of the joint batch. Ends with the program's status.
set -u
ranks=${SLURM_NTASKS:-2} least=1 retries=10 resume=--resume count= grace=30
launch='mpirun -n %n'
[ -n "${SLURM_JOB_ID:-}" ] && launch='srun -n %n'

# One rank, as the launcher starts it: elastic.sh --rank-of FOLDER PROGRAM ARGUMENT... Its failure leaves a file there.
if [ "${1:-}" = --rank-of ]; then
    marks=$2
    shift 2
    "$@" &
    child=$!
    trap 'kill -TERM $child 2>/dev/null' TERM INT
    wait $child
    status=$?
    while kill -0 $child 2>/dev/null; do # it was the wait that a signal ended
        wait $child
        status=$?
    done
    [ $status -eq 0 ] || touch "$marks/failed" 2>/dev/null
    exit $status
fi

usage() {
    echo "elastic.sh: $1" >&2
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2
    exit 2
}

while [ $# -gt 0 ] && [ "$1" != -- ]; do
    [ $# -ge 2 ] || usage "no value after $1"
    case $1 in
    --ranks) ranks=$2 ;;
    --min-ranks) least=$2 ;;
    --retries) retries=$2 ;;
    --launch) launch=$2 ;;
    --resume) resume=$2 ;;
    --count) count=$2 ;;
    --grace) grace=$2 ;;
    *) usage "unknown option $1" ;;
    esac
    shift 2
done
[ $# -ge 2 ] || usage "no program is given after --"
shift
case $ranks$least$retries$grace in *[!0-9]*) usage "--ranks, --min-ranks, --retries and --grace are numbers" ;; esac

script=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
marks=$(mktemp -d) || exit 1
trap 'rm -rf "$marks"' EXIT
launcher='' stopped=''
trap 'stopped=yes; kill -TERM $launcher 2>/dev/null' TERM INT

run_ranks() { # run_ranks PROGRAM ARGUMENT...: sets status
    rm -f "$marks/failed"
    # shellcheck disable=SC2046,SC2086 # words of a command; no option is no word
    $(printf '%s' "$launch" | sed "s/%n/$ranks/") sh "$script" --rank-of "$marks" "$@" $again &
    launcher=$!
    waited=0
    while kill -0 $launcher 2>/dev/null; do
        if [ -e "$marks/failed" ]; then waited=$((waited + 1)); fi
        if [ $waited -eq "$grace" ]; then
            echo "elastic.sh: the launcher has not ended $grace s after a rank failed: it is ended" >&2
            kill -TERM $launcher
        elif [ $waited -gt $((grace + 5)) ]; then
            kill -KILL $launcher 2>/dev/null
        fi
        sleep 1
    done
    wait $launcher
    status=$?
}

again= # the option, from the second start on
[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && again=$resume
tries=0
while :; do
    run_ranks "$@"
    # 2: wrong usage, which no restart mends
    if [ $status -eq 0 ] || [ $status -eq 2 ] || [ -n "$stopped" ] || [ $tries -ge "$retries" ]; then
        exit $status
    fi
    tries=$((tries + 1))
    again=$resume
    if [ -n "${SLURM_JOB_ID:-}" ]; then
        echo "elastic.sh: status $status; job $SLURM_JOB_ID is requeued" >&2
        scontrol requeue "$SLURM_JOB_ID"
        exit
    fi
    if [ -n "$count" ]; then ranks=$($count); else ranks=$((ranks - 1)); fi
    if [ "$ranks" -lt "$least" ]; then
        echo "elastic.sh: status $status; room for $ranks ranks, but $least are needed" >&2
        exit $status
    fi
    echo "elastic.sh: status $status; restart $tries, on $ranks ranks" >&2
done
