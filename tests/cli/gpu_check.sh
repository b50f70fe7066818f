#!/bin/sh
# tools/gpu-check.sh, on a pretended GPU: its plan; parts that work, one that fails, and the archive with all of them;
# what it finds of the vendors. gpu_check.sh SOURCE_DIR BINARY_DIR SIMULATE_GPU_LAYER
set -eu
source=$1 build=$2 layer=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $1"; [ ! -f out ] || cat out; exit 1; }
holds() { grep -qE -- "$2" "$1" || fail "no \"$2\" in $1: $(cat "$1")"; }
check() { sh "$source/tools/gpu-check.sh" --build "$build" --reports "$work/reports" --peer none "$@" >out 2>&1; }

check --dry-run || fail "the plan"
for part in look build devices doctor operators curve bench; do holds out "^$part, at most"; done
! grep -q '^gemm' out || fail "parts of --full without --full"
[ "$(awk -F '[ ,]+' '/at most/ { n += $4 } END { print n <= 900 }' out)" = 1 ] || fail "the limits of the quick parts"
check --dry-run --full || fail "the plan of all"
for part in bench tests gemm big page; do holds out "^$part, at most"; done
[ ! -e reports ] || fail "--dry-run wrote something"
! check --part nonsense || fail "an unknown part was taken"
holds out "no part nonsense"
! check --reports 2>/dev/null || fail "an option without its value was taken"

# A vendor's tools, and rusticl's variable.
mkdir tools
for tool in rocm-smi intel_gpu_top; do
    printf '#!/bin/sh\necho "this is %s: $*"\n' $tool >tools/$tool
    chmod +x tools/$tool
done
export OPENCL_LAYERS="$layer" SIMULATE_GPU=amd RUSTICL_ENABLE=${RUSTICL_ENABLE:-radeonsi}
PATH=$work/tools:$PATH check --part look --part devices --part operators --only relu --jobs 1 ||
    fail "the parts"
for part in look devices operators; do holds out "^$part: done"; done
holds out 'send .*/koine-gpu-check.tar.gz'
holds reports/look.txt 'this is rocm-smi: --showproductname'
holds reports/look.txt 'this is intel_gpu_top: -L'
holds reports/look.txt "^RUSTICL_ENABLE=$RUSTICL_ENABLE"
holds reports/devices.txt 'gpu:0'
holds reports/operators.txt '^device gpu:0'
holds reports/operators.txt ' [1-9][0-9]* cases, .* 0 with failures'
tar -xzf koine-gpu-check.tar.gz
for file in summary look devices operators; do
    [ -s koine-gpu-check/$file.txt ] || fail "no $file.txt in the archive"
done
! grep -rqF "$source/" koine-gpu-check || fail "paths of this machine are in the archive"

# It goes on after a failure. What was done is left out; without a GPU its parts say so.
! check --device gpu:7 --part operators --part look --jobs 1 || fail "the failed part was not reported"
holds out '^operators: failed: '
holds out '^look: done'
holds out '^not done: operators;'
unset OPENCL_LAYERS
check --continue --part look || fail "nothing was left to do"
! grep -q '^look: ' out || fail "a part that is done ran again"
! check --part limits || fail "there is no GPU here"
holds out '^limits: failed: Koine sees no GPU here'
echo "gpu-check.sh: all as expected"
