#!/bin/sh
# Runs the kernels of every operator, forward and backward, those for CPU devices and those for GPUs, and those that no
# operator uses, of optimizers and metrics for example, under Oclgrind, which reports data races and invalid accesses:
# sh tests/sanitizers/kernels.sh [OPERATOR... | training]
#
# Hours of CPU time, most of it convolutions with every implementation; in pieces: KOINE_PIECES=N of them for each kind
# of device (60), KOINE_JOBS at a time (one per core). Their output stays in build/oclgrind. Prints what was found, the
# runs that failed, and the kernel files that nothing used.
set -eu
cd "$(dirname "$0")/../.."
folder=build/oclgrind

if [ "${1-}" = --piece ]; then # KIND training | KIND I/N [OPERATOR...]: called below
    kind=$2 part=$3 program=smallest
    shift 3
    name=$folder/$kind.${part%/*}
    if [ "$part" = training ]; then
        program=smallest_training
    else
        set -- --part "$part" "$@"
    fi
    sh tests/sanitizers/oclgrind.sh "build/tests/bin/$program" "--as-$kind" "$@" \
        >"$name.out" 2>"$name.log" || echo "ENDED with status $?" >>"$name.out"
    exit 0
fi

command -v oclgrind >/dev/null || { echo "oclgrind is missing: apt-get install oclgrind" >&2; exit 1; }
cmake --build build --target smallest smallest_training
mkdir -p "$folder"
rm -f "$folder"/*.out "$folder"/*.log
export KOINE_LOG=debug KOINE_CACHE_DIR="$PWD/$folder/cache"
pieces=${KOINE_PIECES:-60}
[ $# -eq 0 ] || pieces=1
for kind in gpu neon; do
    case "$*" in '' | training) echo "$kind training" ;; esac
    [ "$*" = training ] || for i in $(seq "$pieces"); do
        echo "$kind $i/$pieces${*:+ $*}" # xargs would join a line that ends in a space and the next one
    done
done | xargs -P "${KOINE_JOBS:-$(nproc)}" -L 1 sh tests/sanitizers/kernels.sh --piece

sed -n '/^Oclgrind found:/,$p' "$folder"/*.out
grep -H '^FAIL' "$folder"/*.out || true
sed -n 's/.*debug[^:]*: [^:]*:[0-9]*: \([a-z0-9_/]*\.cl\) built in.*/\1/p' "$folder"/*.log | sort -u >"$folder/used"
(cd cl && find . -name '*.cl' | sed 's/^..//' | sort) | comm -23 - "$folder/used" | sed 's/^/not run: /'
ran=$(sed -n 's/\([0-9]*\) operators ran.*/\1/p' "$folder"/*.out | awk '{ n += $1 } END { print n + 0 }')
ended=$(cat "$folder"/*.out | grep -c '^ENDED' || true)
echo "$ran operators on two kinds of devices, $(wc -l <"$folder/used") kernel files; pieces with findings: $ended"
[ "$*" = training ] || [ "$ran" -gt 0 ] || { echo "no operator ran" >&2; exit 1; }
[ "$ended" -eq 0 ]
