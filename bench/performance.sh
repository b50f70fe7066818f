#!/bin/sh
# Regenerates docs/performance.md and its plots: every benchmark against every peer, about 40 minutes on 2 cores of an
# otherwise idle machine. REPETITIONS (5) is the number of turns of each benchmark.
#
#     python3 -m venv ~/torch && ~/torch/bin/pip install torch numpy      # the newest PyTorch, outside the tree
#     apt-get install python3-torch libopenblas0-pthread gnuplot-nox      # Debian's, on OpenBLAS
#     sh bench/performance.sh ~/torch/bin/python3 /usr/bin/python3
#     sh bench/performance.sh [--device D] --peer-device cuda ~/torch/bin/python3      # a machine with a GPU
#
# Each argument is a Python that has torch; the first is also measured with torch.compile, for whole networks and
# chains of operations only.
# Results are saved under build/performance, one file per peer and group of benchmarks: after an interruption a new run
# continues there. Remove that folder to start over.
#
# --device names Koine's device. With --peer-device PyTorch runs on that device, with cuDNN's benchmark mode, and
# GPU-sized benchmarks run too; results and page are saved under build/performance-cuda. Results of other machines
# belong in bench/measured/*.jsonl, one file per machine (cat build/performance-cuda/*.jsonl): their sections of the
# page are made from these.
set -eu
cd "$(dirname "$0")/.."
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }
device="" peer=cpu
while [ $# -gt 1 ]; do
    case $1 in
    --device) device=$2; shift 2 ;;
    --peer-device) peer=$2; shift 2 ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || usage
[ -x build/bin/koine-bench ] || {
    echo "performance.sh: build/bin/koine-bench does not exist: build first (sh tests/run.sh)" >&2
    exit 1
}
results=build/performance mode=eager sizes="" page=docs/performance.md plot=docs/performance.svg
[ "$peer" = cpu ] || {
    results=build/performance-$peer mode=benchmark sizes=gpu/
    page=$results/performance.md plot=$results/performance.svg
}
mkdir -p "$results"

# measure NAME PYTHON MODE GROUP...
measure() {
    name=$1 python=$2 mode_=$3
    shift 3
    for group; do
        file=$results/$name-$(echo "$group" | tr -d /).jsonl
        [ -e "$file" ] && continue
        echo "$name: $group" >&2
        # Rows that fail (results that differ) are named on standard error and left out of the page.
        python3 bench/compare.py --json --repetitions "${REPETITIONS:-5}" --python "$python" --peer-mode "$mode_" \
            --peer-device "$peer" ${device:+--device "$device"} --only "$group" --out "$file.part" >/dev/null ||
            [ -s "$file.part" ]
        mv "$file.part" "$file"
    done
}

networks="linear_regression cnn_step mlp lenet resnet18 mobilenetv2 gpt vit lstm gru"
count=0
for python; do
    count=$((count + 1))
    # shellcheck disable=SC2086 # words; gpu/ names all GPU-sized benchmarks
    measure "peer$count" "$python" $mode matmul mnist_epoch $networks resnet50 $sizes gemm/ bf16/ conv/ conv1d/ \
        conv3d/ conv_transpose pool/ elementwise/ dropout reduce/ half/ gather/ embedding/ sort/ random/ attention/ \
        softmax/ log_softmax/ batch_norm/ layer_norm/ group_norm/ rms_norm/ vision/ transpose/ startup/
    # shellcheck disable=SC2086
    [ $count -gt 1 ] ||
        measure "peer$count-compiled" "$python" compile $networks fusion/ ${sizes:+gpu/resnet gpu/gpt gpu/vit}
done
set -- "$results"/*.jsonl
[ "$peer" != cpu ] || for file in bench/measured/*.jsonl; do [ ! -e "$file" ] || set -- "$@" "$file"; done
python3 bench/report.py --plot "$plot" "$@" >"$page.part"
mv "$page.part" "$page"
