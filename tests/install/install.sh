#!/bin/sh
# Installs the build, moves the installed tree (nothing in it may depend on where it was put), and builds, outside the source tree, the programs in
# CONSUMER against it: with CMake's find_package and with pkg-config, in C11 and in C++17. CC, CXX and CMAKE come from the caller.
# install.sh BUILD_DIR CONSUMER_DIR
set -eu
build=$1 consumer=$2
root=$build/install-test
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf "$root"
"$CMAKE" --install "$build" --prefix "$root/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$root/first" "$root/moved"
prefix=$root/moved

test -x "$prefix/bin/koine"
"$prefix/bin/koine" --version

# The shared library carries its version: libkoine.so -> libkoine.so.MAJOR -> libkoine.so.MAJOR.MINOR.PATCH
library=$(find "$prefix" -name libkoine.so)
test -L "$library"
libraries=$(dirname "$library")
"${READELF:-readelf}" -d "$library" | grep -q 'SONAME.*libkoine\.so\.[0-9]' || { echo "libkoine.so has no versioned soname"; exit 1; }

echo "--- find_package"
cp -R "$consumer" "$work/consumer"
"$CMAKE" -S "$work/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >"$work/configure.log" ||
    { cat "$work/configure.log"; exit 1; }
"$CMAKE" --build "$work/build" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
"$work/build/consumer_c"
"$work/build/consumer_cxx"

echo "--- pkg-config"
PKG_CONFIG_PATH=$libraries/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # the flags are words
"$CC" -std=c11 -Wall -Wextra -Werror "$consumer/consumer.c" -o "$work/pc_c" $(pkg-config --cflags --libs koine) -Wl,-rpath,"$libraries"
# shellcheck disable=SC2046
"$CXX" -std=c++17 -Wall -Wextra -Werror "$consumer/consumer.cpp" -o "$work/pc_cxx" $(pkg-config --cflags --libs koine) -Wl,-rpath,"$libraries"
"$work/pc_c"
"$work/pc_cxx"
