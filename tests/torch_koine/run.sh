#!/bin/sh
# Tests of the PyTorch device: sh tests/run.sh --torch [--full] [PYTEST ARGUMENT...], which builds the library first.
#
# --full: also networks of real sizes and the wheels, with PoCL's optimiser, which takes a quarter of an hour.
# KOINE_PYTHON names a Python with PyTorch and pytest; without it both are installed into a virtual environment in the
# build folder, 3 GB. The package is put together in BUILD/torch-package as a wheel has it, with its entry point, so
# that `import torch` finds it.
set -eu

cd "$(dirname "$0")/../.."
build=$(cd "${KOINE_BUILD_DIR:-build}" && pwd)
package=$build/torch-package

environment=$build/torch-venv
if [ "${1-}" = --is-installed ]; then
    [ -n "${KOINE_PYTHON-}" ] || [ -f "$environment/ready" ]
    exit
fi

if [ "${1-}" = --full ]; then
    shift
    export KOINE_TEST_FULL=1
fi

python=${KOINE_PYTHON-}
if [ -z "$python" ]; then
    if [ ! -f "$environment/ready" ]; then
        python3 -m venv "$environment" || {
            echo "error: python3 -m venv failed; Debian and Ubuntu: apt-get install python3-venv" >&2
            exit 1
        }
        "$environment/bin/pip" install --quiet --disable-pip-version-check 'torch>=2.14' numpy pytest
        touch "$environment/ready"
    fi
    python=$environment/bin/python
fi

cmake -S python -B "$build/torch_koine" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKOINE_BUILD="$build" \
    -DPython_EXECUTABLE="$python" >/dev/null
cmake --build "$build/torch_koine"

rm -rf "$package"
mkdir -p "$package/torch_koine.dist-info"
ln -s "$PWD/python/torch_koine" "$package/torch_koine"
printf 'Metadata-Version: 2.1\nName: torch-koine\nVersion: 0\n' >"$package/torch_koine.dist-info/METADATA"
sed -n 's/"//g; s/^\[project\.entry-points\./[/; /^\[torch/,/^$/p' python/pyproject.toml \
    >"$package/torch_koine.dist-info/entry_points.txt"
export PYTHONPATH="$package" PYTHONDONTWRITEBYTECODE=1 TORCH_KOINE_LIBRARY_DIR="$build/torch_koine"

# As the tests in C: kernels without the optimiser, except with --full, kept in the build folder.
export KOINE_CACHE_DIR="$build/test-cache/koine" POCL_CACHE_DIR="$build/test-cache/pocl"
export COMPILER_PATH="$PWD/tests/support/kernel_linker"
[ -n "${KOINE_TEST_FULL-}" ] || export POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable
case " $*" in *" tests/torch_koine"*) ;; *) set -- tests/torch_koine "$@" ;; esac
exec "$python" -m pytest -q -p no:cacheprovider "$@"
