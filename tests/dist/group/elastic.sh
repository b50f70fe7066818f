#!/bin/sh
# examples/elastic.sh: a rank is lost, training goes on without it and ends where it would have ended; wrong usage; a
# job of Slurm (a false one) is requeued and resumes; a launcher that does not return; signals.
# elastic.sh SCRIPT MPIEXEC PROGRAM
set -u
script=$1 mpiexec=$2 program=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
    echo "FAILED: $1"
    cat "$work/output"
    failed=1
}

mkdir "$work/whole" "$work/lost" "$work/slurm" "$work/bin"
"$mpiexec" -n 3 "$program" "$work/whole" >"$work/output" 2>&1 || {
    ! grep -q 'has no float64' "$work/output" || { echo "skipped: the device has no float64"; exit 77; }
    fail "three ranks"
}
whole=$(sed -n 's/^trained on 3 ranks from step 0: //p' "$work/output")

sh "$script" --ranks 3 --min-ranks 2 --launch "$mpiexec -n %n" -- \
    "$program" "$work/lost" --die 23 >"$work/output" 2>&1 || fail "a rank is lost"
grep -q "restart 1, on 2 ranks" "$work/output" || fail "no restart"
rest=$(sed -n 's/^trained on 2 ranks from step 20: //p' "$work/output")
[ -n "$whole" ] && [ "$rest" = "$whole" ] || fail "it ends at '$rest', not at '$whole'"

# Too few are left.
rm -rf "$work/lost" && mkdir "$work/lost"
sh "$script" --ranks 2 --min-ranks 2 --launch "$mpiexec -n %n" -- \
    "$program" "$work/lost" --die 3 >"$work/output" 2>&1 && fail "too few ranks are no failure"
grep -q "room for 1 ranks, but 2 are needed" "$work/output" || fail "too few ranks"

# Slurm's commands; after the requeue it starts the script again with two tasks.
printf '#!/bin/sh\nshift; n=$1; shift; exec "%s" -n $n "$@"\n' "$mpiexec" >"$work/bin/srun"
printf '#!/bin/sh\necho "$@" >"%s/requeued"\n' "$work" >"$work/bin/scontrol"
chmod +x "$work/bin/srun" "$work/bin/scontrol"
(
    PATH=$work/bin:$PATH SLURM_JOB_ID=17
    export PATH SLURM_JOB_ID
    SLURM_NTASKS=3 sh "$script" -- "$program" "$work/slurm" --die 12
    [ "$(cat "$work/requeued")" = "requeue 17" ] &&
        SLURM_NTASKS=2 SLURM_RESTART_COUNT=1 sh "$script" -- "$program" "$work/slurm"
) >"$work/output" 2>&1 || fail "requeued"
[ "$(sed -n 's/^trained on 2 ranks from step 10: //p' "$work/output")" = "$whole" ] || fail "after the requeue"

# A launcher that waits for something else after its rank has failed.
printf '#!/bin/sh\n"$@"\nexec sleep 100\n' >"$work/bin/stuck"
chmod +x "$work/bin/stuck"
sh "$script" --ranks 2 --min-ranks 2 --grace 1 --launch "$work/bin/stuck" -- false >"$work/output" 2>&1 &&
    fail "what failed is no failure"
grep -q "the launcher has not ended 1 s after a rank failed" "$work/output" || fail "a launcher that does not return"

# A signal ends the ranks, and there is no restart.
sh "$script" --launch env -- sh -c 'touch "$0"; exec sleep 100' "$work/started" >"$work/output" 2>&1 &
while [ ! -e "$work/started" ] && kill -0 $! 2>/dev/null; do sleep 0.1; done
kill -TERM $!
wait $!
status=$?
[ $status -eq 143 ] && ! grep -q restart "$work/output" || fail "SIGTERM: status $status"

sh "$script" --ranks x -- true >"$work/output" 2>&1
[ $? -eq 2 ] && grep -q "are numbers" "$work/output" || fail "wrong usage"
exit $failed
