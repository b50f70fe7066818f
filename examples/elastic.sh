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
#
# Inside a Slurm job a failure requeues the job, which starts this script again, on the nodes that Slurm then has: submit
# it with `sbatch --requeue --nodes=MIN-MAX`. The program must not depend on the number of ranks for what it computes:
# give it the size of the joint batch. Ends with the program's status.
set -u
ranks=${SLURM_NTASKS:-2} least=1 retries=10 resume=--resume count=
launch='mpirun -n %n'
[ -n "${SLURM_JOB_ID:-}" ] && launch='srun -n %n'

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
    *) usage "unknown option $1" ;;
    esac
    shift 2
done
[ $# -ge 2 ] || usage "no program is given after --"
shift
case $ranks$least$retries in *[!0-9]*) usage "--ranks, --min-ranks and --retries are numbers" ;; esac

again= # the option, from the second start on
[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && again=$resume
tries=0
while :; do
    command=$(printf '%s' "$launch" | sed "s/%n/$ranks/")
    # shellcheck disable=SC2086 # words of a command; no option is no word
    $command "$@" $again
    status=$?
    # 2: wrong usage, which no restart mends
    if [ $status -eq 0 ] || [ $status -eq 2 ] || [ $tries -ge "$retries" ]; then
        exit $status
    fi
    tries=$((tries + 1))
    again=$resume
    if [ -n "${SLURM_JOB_ID:-}" ]; then
        echo "elastic.sh: status $status; job $SLURM_JOB_ID is requeued" >&2
        exec scontrol requeue "$SLURM_JOB_ID"
    fi
    if [ -n "$count" ]; then ranks=$($count); else ranks=$((ranks - 1)); fi
    if [ "$ranks" -lt "$least" ]; then
        echo "elastic.sh: status $status; room for $ranks ranks, but $least are needed" >&2
        exit $status
    fi
    echo "elastic.sh: status $status; restart $tries, on $ranks ranks" >&2
done
