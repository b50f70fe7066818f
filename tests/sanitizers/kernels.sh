#!/bin/sh
# Runs the kernels of every operator, forward and backward, of CPU devices and of GPUs, under Oclgrind, which reports
# data races and invalid accesses: sh tests/sanitizers/kernels.sh [OPERATOR...]
#
# An hour of CPU time, in pieces: KOINE_PIECES=N of them for each kind of device (24), KOINE_JOBS of them at a time
# (one per core). Prints what Oclgrind found, which runs failed, and the kernel files that no operator used.
#
# Kernels are compiled without optimisation and without `restrict`: Oclgrind 21.10 does not know instructions that the
# optimiser and the inliner make (freeze, noalias.scope.decl). Without --uninitialized: it takes buffers filled by the
# host for unset.
set -eu
cd "$(dirname "$0")/../.."
folder=${KOINE_OCLGRIND_LOGS:-build/oclgrind}
pieces=${KOINE_PIECES:-24}

if [ "${1-}" = --piece ]; then # KIND I/N [OPERATOR...], one process; called below
    kind=$2 part=$3
    shift 3
    name=$folder/$kind.$(echo "$part" | tr / _)
    rm -f "$name.found"
    oclgrind --data-races --check-api --max-errors 100 --build-options "-O0 -Drestrict=" --log "$name.found" \
        build/tests/bin/smallest "--as-$kind" --part "$part" "$@" >"$name.out" 2>"$name.log" ||
        echo "ENDED with status $?" >>"$name.out"
    [ ! -s "$name.found" ] && grep -q ' operators ran, 0 runs failed' "$name.out" || echo "findings: $name.*"
    exit 0
fi

command -v oclgrind >/dev/null || { echo "oclgrind is missing: apt-get install oclgrind" >&2; exit 1; }
cmake --build build --target smallest
mkdir -p "$folder"
rm -f "$folder"/*.found "$folder"/*.out "$folder"/*.log
unset KOINE_DEVICE
export KOINE_LOG=debug KOINE_CACHE_DIR="$PWD/$folder/cache" KOINE_OCLGRIND_LOGS="$folder"
[ $# -eq 0 ] || pieces=1

for kind in neon gpu; do
    for i in $(seq "$pieces"); do
        echo "$kind $i/$pieces $*"
    done
done | xargs -P "${KOINE_JOBS:-$(nproc)}" -L 1 sh tests/sanitizers/kernels.sh --piece

cat "$folder"/*.found 2>/dev/null || true
grep -H -e '^FAIL' -e '^ENDED' "$folder"/*.out || true
sed -n 's/.*debug[^:]*: [^:]*:[0-9]*: \([a-z0-9_/]*\.cl\) built in.*/\1/p' "$folder"/*.log | sort -u >"$folder/used"
(cd cl && find . -name '*.cl' | sed 's/^..//' | sort) | comm -23 - "$folder/used" | sed 's/^/not run: /'
ran=$(sed -n 's/\([0-9]*\) operators ran.*/\1/p' "$folder"/*.out | awk '{ n += $1 } END { print n + 0 }')
findings=$(cat "$folder"/*.found 2>/dev/null | grep -c '^[A-Z].*detected' || true)
failed=$(grep -h -c -e '^FAIL' -e '^ENDED' "$folder"/*.out | awk '{ n += $1 } END { print n + 0 }')
echo "$ran operators on two kinds of devices, $(wc -l <"$folder/used") kernel files: $findings findings, $failed failures"
[ "$findings" -eq 0 ] && [ "$failed" -eq 0 ]
