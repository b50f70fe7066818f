#!/bin/sh
# Downloads the packages for building and testing Koine on a machine with a GPU and without a network: sh
# tools/gpu-bundle.sh FOLDER
#
# Run it on a Debian or Ubuntu machine with a network and apt, as any user; then copy FOLDER (about 40 MiB) and the
# source tree to the GPU machine and run `sh tools/gpu-check.sh --packages FOLDER` there. Nothing is installed here. The
# GPU machine needs its own compiler, CMake and GPU driver.
set -eu
[ $# = 1 ] || { echo "usage: sh tools/gpu-bundle.sh FOLDER" >&2; exit 2; }
command -v apt-get >/dev/null 2>&1 || {
    echo "gpu-bundle.sh: apt-get is not available: run it on Debian or Ubuntu" >&2
    exit 1
}

# libjpeg-dev only names the package of the distribution: Debian's or Ubuntu's.
jpeg="libjpeg62-turbo libjpeg62-turbo-dev"
apt-cache show libjpeg-turbo8-dev >/dev/null 2>&1 && jpeg="libjpeg-turbo8 libjpeg-turbo8-dev libjpeg8 libjpeg8-dev"

# Those of tools/packages.txt except compilers, the CPU driver and plotting tools, and the shared libraries of the
# development packages.
packages="ocl-icd-libopencl1 ocl-icd-opencl-dev opencl-c-headers opencl-headers clinfo libclblast1 libclblast-dev
    libcjson1 libcjson-dev libxxhash0 libxxhash-dev libcmocka0 libcmocka-dev zlib1g zlib1g-dev
    libpng16-16 libpng-dev libjpeg-dev $jpeg pkgconf pkgconf-bin libpkgconf3 dataset-fashion-mnist"

mkdir -p "$1"
cd "$1"
# apt-get download writes as the user _apt if it can, and warns if it cannot; only failures matter. shellcheck
# disable=SC2086 # the names are words
apt-get download $packages 2>download.log || {
    cat download.log >&2
    echo "gpu-bundle.sh: apt-get download failed: run apt-get update and try again" >&2
    exit 1
}
rm -f download.log
du -sh . | sed 's/\t.*/ of packages/'
