#!/bin/sh
# Tests of the Python package: sh tests/run.sh --python [PYTEST ARGUMENT...], which builds the library first.
#
# numpy, cffi and pytest are installed into a virtual environment in the build folder, and the package is put
# together in BUILD/python-package as a wheel has it: its modules, the declarations made from the headers, the stubs,
# the library.
set -eu

cd "$(dirname "$0")/../.."
build=$(cd "${KOINE_BUILD_DIR:-build}" && pwd)
environment=$build/python-venv package=$build/python-package

if [ ! -f "$environment/ready" ]; then
    python3 -m venv "$environment" || {
        echo "error: python3 -m venv failed; Debian and Ubuntu: apt-get install python3-venv" >&2
        exit 1
    }
    "$environment/bin/pip" install --quiet --disable-pip-version-check numpy cffi pytest
    touch "$environment/ready"
fi

rm -rf "$package"
mkdir -p "$package"
cp -r python/koine/src/koine "$package/"
mkdir "$package/koine/lib"
ln -s "$build/lib/libkoine.so" "$package/koine/lib/libkoine.so"
[ ! -f "$build/lib/libkoine_mpi.so" ] || ln -s "$build/lib/libkoine_mpi.so" "$package/koine/lib/libkoine_mpi.so"
"$environment/bin/python" python/koine/tools/make_cdef.py "$package/koine/_cdef.py" include "$build/include"
export PYTHONPATH="$package" PYTHONDONTWRITEBYTECODE=1
[ ! -f python/koine/tools/make_stubs.py ] || "$environment/bin/python" python/koine/tools/make_stubs.py "$package/koine"

# As the tests in C: kernels without the optimiser, kept in the build folder.
export KOINE_CACHE_DIR="$build/test-cache/koine" POCL_CACHE_DIR="$build/test-cache/pocl"
export POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable COMPILER_PATH="$PWD/tests/support/kernel_linker"
case " $*" in *" tests/python"*) ;; *) set -- tests/python "$@" ;; esac
exec "$environment/bin/python" -m pytest -q -p no:cacheprovider "$@"
