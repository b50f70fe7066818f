#!/bin/sh
# Remakes docs/performance.md and its picture: every benchmark against every peer there is, about 40 minutes on 2 cores of an otherwise idle machine.
# REPETITIONS (5) is the number of turns of each benchmark.
#
#     python3 -m venv ~/torch && ~/torch/bin/pip install torch numpy      # the newest PyTorch, outside the tree
#     apt-get install python3-torch libopenblas0-pthread gnuplot-nox      # Debian's, on OpenBLAS
#     sh bench/performance.sh ~/torch/bin/python3 /usr/bin/python3
#
# Each argument is a Python that has torch; the first is also held against as torch.compile, whole networks only. Results are kept under build/performance, one
# file per peer and group of benchmarks: run again after an interruption, it goes on where it stopped. Remove that folder to measure anew.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
[ -x build/bin/koine-bench ] || { echo "performance.sh: build/bin/koine-bench is not there: build first (sh tests/run.sh)" >&2; exit 1; }
results=build/performance
mkdir -p "$results"

# measure NAME PYTHON MODE GROUP...
measure() {
    name=$1 python=$2 mode=$3
    shift 3
    for group; do
        file=$results/$name-$(echo "$group" | tr -d /).jsonl
        [ -e "$file" ] && continue
        echo "$name: $group" >&2
        # Rows that fail (results that differ) are named on standard error and are not in the page; the others are.
        python3 bench/compare.py --json --repetitions "${REPETITIONS:-5}" --python "$python" --peer-mode "$mode" --only "$group" >"$file.part" || [ -s "$file.part" ]
        mv "$file.part" "$file"
    done
}

networks="linear_regression cnn_step mlp lenet resnet18 mobilenetv2"
count=0
for python; do
    count=$((count + 1))
    measure "peer$count" "$python" eager matmul mnist_epoch $networks gemm/ conv/ elementwise/ dropout reduce/ softmax/ log_softmax/ batch_norm/ layer_norm/ transpose/ startup/
    [ $count -gt 1 ] || measure "peer$count-compiled" "$python" compile $networks
done
python3 bench/report.py --plot docs/performance.svg "$results"/*.jsonl >docs/performance.md.part
mv docs/performance.md.part docs/performance.md
