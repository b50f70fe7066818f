#!/bin/sh
# Compares two histories of the same training from the same seed: sh tools/same-curve.sh HISTORY.csv REFERENCE.csv
# [FIRST LOSS ACCURACY]
#
# Exit status 0 if they agree up to rounding: the training loss of the first epoch within FIRST (1e-5) of the
# reference's, that of each epoch within LOSS (1e-4) of it, the validation accuracy within ACCURACY (0.004). A history
# may be longer than the reference, which is made with
#
#     build/bin/train_fashion_mnist --quiet --eps 1e-3 --epochs 4 --limit 640 --out early
#     build/bin/train_fashion_mnist --quiet --epochs 4 --out whole
#
# early/history.csv is tests/examples/curve-early.csv, whole/history.csv is tests/examples/curve-whole.csv (compared
# with 0.05 0.05 0.015).
#
# Adam divides a gradient by its size: with its usual epsilon, 1e-8, gradients that are nothing but rounding errors
# become whole steps. With other kernels (KOINE_IMPL=conv2d:winograd) the loss then differs by 1.3e-4 after 5 steps,
# 1e-3 after 10, 0.03 after 1500, the accuracy by up to 0.03 on 640 images, 0.004 on 10000. With --eps 1e-3 it differs
# by 5e-8 after 20 steps, and no image is classified otherwise; the same with SGD.
set -u
[ $# -eq 2 ] || [ $# -eq 5 ] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }
for file in "$1" "$2"; do [ -r "$file" ] || { echo "same-curve.sh: $file cannot be read" >&2; exit 2; }; done
awk -F, -v first="${3:-1e-5}" -v loss="${4:-1e-4}" -v accuracy="${5:-0.004}" '
function apart(a, b) { return a > b ? a - b : b - a }
function note(text) { if (!why) why = text }
FNR == 1 { file++; for (i = 1; i <= NF; i++) column[file, $i] = i; next }
file == 1 { epochs++; l[$1] = $column[1, "train_loss"]; a[$1] = $column[1, "val_acc"]; next }
{
    if (!rows++) print "epoch  train_loss   reference  difference   val_acc  reference"
    reference_loss = $column[2, "train_loss"]; reference_accuracy = $column[2, "val_acc"]
    if (!($1 in l)) { note("epoch " $1 " is missing"); next }
    share = apart(l[$1], reference_loss) / reference_loss
    printf "%5d %11.6f %11.6f %11.1e %9.4f %10.4f\n", $1, l[$1], reference_loss, share, a[$1], reference_accuracy
    if (l[$1] !~ /^[0-9]/) note("the loss of epoch " $1 " is " l[$1]) # awks do not agree about comparing NaN
    if (!(share <= ($1 == 1 ? first : loss)))
        note("the loss of epoch " $1 " differs by " sprintf("%.2g", share) " of it")
    if (!(apart(a[$1], reference_accuracy) <= accuracy))
        note("the accuracy of epoch " $1 " differs by " sprintf("%.2g", apart(a[$1], reference_accuracy)))
}
END {
    if (!rows) note("the reference has no epochs")
    print (why ? "not the same curve: " why : "the same curve up to rounding")
    exit why != ""
}' "$1" "$2"
