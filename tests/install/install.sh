#!/bin/sh
# Installs the build, moves the installed tree (nothing in it may depend on where it was put), and builds, outside the
# source tree, the programs in CONSUMER and the installed examples against it: with CMake's find_package and with
# pkg-config, in C11 and in C++17. Then the lines of README.md, as they stand, into a folder where no linker looks. CC,
# CXX and CMAKE come from the caller.
# install.sh SOURCE_DIR BUILD_DIR CONSUMER_DIR
set -eu
source=$1 build=$2 consumer=$3
root=$build/install-test
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# quietly COMMAND...: what it says is shown only when it fails.
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }

rm -rf "$root"
quietly "$CMAKE" --install "$build" --prefix "$root/first"
mv "$root/first" "$root/moved"
prefix=$root/moved

test -x "$prefix/bin/koine"
"$prefix/bin/koine" --version

# The shared library carries its version: libkoine.so -> its SONAME (tests/headers/soname.sh) ->
# libkoine.so.MAJOR.MINOR.PATCH
library=$(find "$prefix" -name libkoine.so)
test -L "$library"
libraries=$(dirname "$library")
test -e "$(readlink -f "$library")"

# The back end over MPI, where it was built, lies where the library looks for it.
if [ -e "$build/lib/libkoine_mpi.so" ]; then
    test -e "$libraries/libkoine_mpi.so" || { echo "libkoine_mpi.so is not installed"; exit 1; }
fi

echo "--- find_package"
cp -R "$consumer" "$work/consumer"
quietly "$CMAKE" -S "$work/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
quietly "$CMAKE" --build "$work/build"
"$work/build/consumer_c"
"$work/build/consumer_cxx"

echo "--- pkg-config"
PKG_CONFIG_PATH=$libraries/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # the flags are words
"$CC" -std=c11 -Wall -Wextra -Werror "$consumer/consumer.c" -o "$work/pc_c" $(pkg-config --cflags --libs koine) \
    -Wl,-rpath,"$libraries"
# shellcheck disable=SC2046
"$CXX" -std=c++17 -Wall -Wextra -Werror "$consumer/consumer.cpp" -o "$work/pc_cxx" $(pkg-config --cflags --libs koine) \
    -Wl,-rpath,"$libraries"
"$work/pc_c"
"$work/pc_cxx"
unset PKG_CONFIG_PATH

echo "--- documents and examples"
documents=$prefix/share/doc/koine
for file in LICENSE README.md CHANGELOG.md SECURITY.md docs/guide.md docs/torch-nn.md docs/architecture.svg \
    examples/linear_regression.py examples/elastic.sh; do
    test -s "$documents/$file" || { echo "$documents/$file is not installed"; exit 1; }
done
# Links between them lead somewhere.
for page in README.md docs/guide.md docs/torch-nn.md; do
    folder=$(dirname "$documents/$page")
    for link in $(grep -o '](\(\.\./\)\?\(docs\|examples\)/[^)#]*\|]([a-z-]*\.md' "$documents/$page" | sed 's/](//'); do
        test -e "$folder/$link" || { echo "$page leads to $link, which is not installed"; exit 1; }
    done
done
quietly "$CMAKE" -S "$documents/examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
quietly "$CMAKE" --build "$work/examples"
"$work/examples/matmul" --rows 8 --inner 8 --columns 8 --repeat 1
"$work/examples/linear_regression_cpp"
if command -v python3 >/dev/null; then
    LD_LIBRARY_PATH=$libraries python3 "$documents/examples/linear_regression.py"
fi

echo "--- the lines of README.md, for a folder of one's own"
mkdir "$work/readme" "$work/home"
ln -s "$build" "$work/readme/build"
cp "$consumer/consumer.c" "$work/readme/program.c"
cp "$consumer/consumer.cpp" "$work/readme/program.cpp"
# Where this system calls the folder for libraries otherwise, README.md says to put that name.
lines=$(awk '/^```sh$/ { on = 1; block = ""; next }
    /^```$/ { if (on && block ~ /prefix=/) printf "%s", block; on = 0 }
    on { block = block $0 "\n" }' "$source/README.md" |
    sed "s|\$prefix/lib\b|$(echo "$libraries" | sed "s|^$prefix|\$prefix|")|g")
case $lines in *rpath*) ;; *) echo "README.md has lost its lines for a folder of one's own"; exit 1 ;; esac
(cd "$work/readme" && HOME=$work/home && export HOME && printf '%s\n' "$lines" | sh -eux) >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
grep -q 'slope of x^2 at 3 is 6' "$work/log" || { cat "$work/log"; echo "README.md's program did not run"; exit 1; }
