#!/bin/sh
# The tests over MPI with each MPI that is installed, as KOINE_MPI chooses it: programs stay the same, libkoine_mpi.so
# is built for it, its own launcher starts them. each_mpi.sh SOURCE_DIR BIN_DIR
set -u
source=$1 bin=$2
here=$source/tests/dist
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0 tested=

check() { # NAME WHAT COMMAND...
    mpi=$1 what=$2
    shift 2
    "$@" >"$work/output" 2>&1
    status=$?
    case $status in
    0) echo "$mpi: $what: passed" ;;
    77) echo "$mpi: $what: skipped: $(tail -n 1 "$work/output")" ;;
    *) echo "$mpi: $what: FAILED with status $status"; cat "$work/output"; failed=1 ;;
    esac
}

for mpi in openmpi mpich; do
    launcher=$(command -v mpiexec.$mpi) && command -v mpicc.$mpi >/dev/null || continue
    cmake -S "$source" -B "$work/$mpi" -DKOINE_MPI=$mpi >"$work/output" 2>&1 &&
        cmake --build "$work/$mpi" --target koine_mpi >>"$work/output" 2>&1 ||
        { echo "$mpi: libkoine_mpi.so cannot be built:"; cat "$work/output"; failed=1; continue; }
    KOINE_MODULE_PATH=$work/$mpi/lib
    export KOINE_MODULE_PATH
    tested="$tested $mpi"
    check $mpi "groups" "$launcher" -n 3 "$bin/mpi_ranks" "$work/trainer-$mpi"
    check $mpi "lost ranks" sh "$here/group/lost_ranks.sh" "$launcher" "$bin/mpi_loss" die stop leave sleep
    check $mpi "restart" sh "$here/group/elastic.sh" "$source/examples/elastic.sh" "$launcher" "$bin/elastic"
    check $mpi "hosts" "$bin/hosts" 2 1000 0.2 \
        sh "$here/hosts/mpirun.sh" "$bin/hosts" "$launcher" "$bin/mpi_ranks" "$work/hosts-$mpi"
    [ $mpi = mpich ] && judged=values || judged=all
    check $mpi "kills" sh "$here/hosts/kills.sh" "$bin/hosts" "$launcher" "$bin/victim" 10 1 $judged
done
[ -n "$tested" ] || { echo "SKIP: neither mpicc.openmpi nor mpicc.mpich with its launcher"; exit 77; }
exit $failed
