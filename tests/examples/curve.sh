#!/bin/sh
# A few short epochs from a known seed give the losses that they gave when curve-early.csv was made, and other losses
# are told from those: curve.sh TRAIN_FASHION_MNIST SOURCE_DIR
set -u
data=/usr/share/datasets/fashion-mnist
[ -e $data/train-images-idx3-ubyte.gz ] || [ -e $data/train-images-idx3-ubyte ] || {
    echo "skipped: no $data; install Debian's package dataset-fashion-mnist"
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
early=$2/tests/examples/curve-early.csv
"$1" --quiet --eps 1e-3 --epochs 4 --limit 640 --out "$folder" >/dev/null || exit 1
sh "$2/tools/same-curve.sh" "$folder/history.csv" "$early" || exit 1

# different FILE WORDS: the comparison with such a history fails, and says why.
different() {
    said=$(sh "$2/tools/same-curve.sh" "$folder/$1" "$early") && { echo "$1 passes for the same curve" >&2; exit 1; }
    case $said in *"not the same curve: $3"*) ;; *) echo "$1: $said" >&2; exit 1 ;; esac
}
sed '2s/,2\.2/,2.1/' "$early" >"$folder/other-loss.csv"
sed '4s/,0\.4[0-9]*,0\.01$/,0.3,0.01/' "$early" >"$folder/other-accuracy.csv"
sed '3s/^2,[0-9.]*/2,nan/' "$early" >"$folder/no-number.csv"
head -n 4 "$early" >"$folder/short.csv"
different other-loss.csv "$2" "the loss of epoch 1 differs by 0.044"
different other-accuracy.csv "$2" "the accuracy of epoch 3 differs by 0.19"
different no-number.csv "$2" "the loss of epoch 2 is nan"
different short.csv "$2" "epoch 4 is missing"
