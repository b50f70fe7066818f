#!/bin/sh
# Trains a convolutional network on Fashion-MNIST on the best device, and shows the result:
#
#   sh examples/run.sh [ARGUMENT OF train_fashion_mnist...]    for example: sh examples/run.sh --device cpu --epochs 2
#
# Missing Debian or Ubuntu packages are installed first (tools/setup.sh). Writes to build/fashion-mnist unless
# --out says otherwise.
set -eu

here=$(pwd)
cd "$(dirname "$0")/.."
. tools/setup.sh
koine_packages
koine_build train_fashion_mnist koine_program
koine_check_drivers

program=$(pwd)/$koine_build_dir/bin/train_fashion_mnist
case $koine_build_dir in /*) program=$koine_build_dir/bin/train_fashion_mnist ;; esac

# --out, the folder for the results, relative to the user's working directory; and --device.
out=
device=auto
previous=
for argument; do
    case $argument in
    --out=*) out=${argument#--out=} ;;
    --device=*) device=${argument#--device=} ;;
    -h | --help) cd "$here"; exec "$program" --help ;;
    esac
    case $previous in --out) out=$argument ;; --device) device=$argument ;; esac
    previous=$argument
done
if [ -z "$out" ]; then
    out=${program%/bin/*}/fashion-mnist
    set -- "$@" --out "$out"
fi

"${program%/*}/koine" devices
# The kernels, with all processors instead of with one in the first step. Errors are the program's to report.
"${program%/*}/koine" warm --device "$device" 2>/dev/null || true
cd "$here"
"$program" "$@"

printf '\n'
ls -l "$out"
