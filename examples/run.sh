#!/bin/sh
# Trains a convolutional network on Fashion-MNIST on the best device, and shows the result:
#
#   sh examples/run.sh [ARGUMENT OF train_fashion_mnist...]        for example: sh examples/run.sh --device cpu --epochs 2
#
# Missing Debian or Ubuntu packages are installed first (tools/setup.sh). Writes to build/fashion-mnist unless --out says otherwise.
set -eu

here=$(pwd)
cd "$(dirname "$0")/.."
. tools/setup.sh
koine_packages
koine_build train_fashion_mnist koine_program
koine_check_drivers

program=$(pwd)/$koine_build_dir/bin/train_fashion_mnist
case $koine_build_dir in /*) program=$koine_build_dir/bin/train_fashion_mnist ;; esac

# The folder for the results: --out, relative to the user's working directory.
out=
previous=
for argument; do
    case $argument in --out=*) out=${argument#--out=} ;; -h | --help) cd "$here"; exec "$program" --help ;; esac
    [ "$previous" = --out ] && out=$argument
    previous=$argument
done
if [ -z "$out" ]; then
    out=${program%/bin/*}/fashion-mnist
    set -- "$@" --out "$out"
fi

"${program%/*}/koine" devices
cd "$here"
"$program" "$@"

printf '\n'
ls -l "$out"
