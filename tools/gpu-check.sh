#!/bin/sh
# Builds, tests and measures Koine on a machine with a GPU, a driver, a C compiler and CMake, but no network: sh tools/gpu-check.sh PACKAGES REPORTS [PART...]
#
# PACKAGES is the folder that tools/gpu-bundle.sh made; REPORTS receives one small report per part. Without PART all parts run that are not done yet, so that an
# interrupted check goes on where it stopped; each part ends within 8 minutes. A part that fails is reported at the end and is tried again the next time.
#
#   look       what is there: GPU, driver, OpenCL libraries, PyTorch           programs   the three programs of the examples, as a user runs them
#   build      unpacks the packages, registers NVIDIA's driver, builds         limits     koine-bench on the device itself: peak, copies, launches
#   doctor     koine devices, doctor and smi                                   gemm conv memory networks   side by side with PyTorch on CUDA, or alone where
#   tests ops  the test suite on the GPU                                                 no python3 here has torch with CUDA
#   tune       koine tune, whose results all that follows uses
#
# Environment: KOINE_GPU_CHECK_DEVICE names the device (default: the first GPU); KOINE_GPU_CHECK_BUILD the build folder (default: build-gpu).
set -u
usage() { sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2; }
[ $# -ge 2 ] && [ -d "$1" ] || usage
packages=$(cd "$1" && pwd)
mkdir -p "$2"
reports=$(cd "$2" && pwd)
shift 2
cd "$(dirname "$0")/.." || exit
build=${KOINE_GPU_CHECK_BUILD:-build-gpu}
root=$PWD/$build/packages
libraries=$root/usr/lib/$(uname -m)-linux-gnu
limit=480 # seconds of a part

# --- what the parts share ---------------------------------------------------------------------------------------------

# Where the driver's OpenCL library is; containers often have it without a registration, or outside the linker's path.
nvidia_library() {
    found=$(ldconfig -p 2>/dev/null | sed -n 's/.*libnvidia-opencl\.so\.1 .*=> //p' | head -n 1)
    [ -n "$found" ] || found=$(find /usr/lib /usr/lib64 /usr/local /opt -name 'libnvidia-opencl.so.1' 2>/dev/null | head -n 1)
    printf '%s' "$found"
}

use_packages() {
    export PATH="$root/usr/bin:$PATH" PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$libraries/pkgconfig:$root/usr/share/pkgconfig:$root/usr/lib/pkgconfig"
    export LD_LIBRARY_PATH="$libraries:$root/usr/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" OCL_ICD_VENDORS="$root/vendors" CMAKE_PREFIX_PATH="$root/usr"
    library=$(nvidia_library)
    [ -z "$library" ] || LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(dirname "$library")
    [ -z "${KOINE_GPU_CHECK_DEVICE:-}" ] || export KOINE_DEVICE="$KOINE_GPU_CHECK_DEVICE"
}

# A python3 whose torch sees a GPU.
torch_python() {
    for python in ${KOINE_GPU_CHECK_PYTHON:-python3 /usr/bin/python3}; do
        "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' >/dev/null 2>&1 && { printf '%s' "$python"; return; }
    done
}

run_tests() { ctest --test-dir "$build" --output-on-failure --parallel 4 --timeout 300 -LE '^long$' "$@"; }

# compare PREFIX...: the benchmarks whose names start so, against PyTorch on the GPU where there is one.
compare() {
    arguments=
    for prefix; do arguments="$arguments --only $prefix"; done
    python=$(torch_python)
    # shellcheck disable=SC2086 # words
    if [ -n "$python" ]; then
        python3 bench/compare.py --json --python "$python" --peer-device cuda --repetitions 7 --koine-bench "$build/bin/koine-bench" $arguments
    else
        "$build/bin/koine-bench" $arguments
    fi
}

# --- the parts --------------------------------------------------------------------------------------------------------

part_look() {
    uname -srm
    nvidia-smi 2>&1 || echo "nvidia-smi does not run here"
    echo "OpenCL libraries:"; ldconfig -p 2>/dev/null | grep -i -E 'opencl|pocl' ; find /usr /opt -name 'libnvidia-opencl*' 2>/dev/null
    echo "registered drivers:"; grep -H . /etc/OpenCL/vendors/*.icd 2>/dev/null
    echo "Vulkan, for OpenCL on top of it:"; ldconfig -p 2>/dev/null | grep -i vulkan
    cc --version 2>&1 | head -n 1; cmake --version 2>&1 | head -n 1; ninja --version 2>&1
    python=$(torch_python)
    [ -n "$python" ] && "$python" -c 'import torch; print("torch", torch.__version__, torch.version.cuda, torch.cuda.get_device_name())'
    [ -n "$(nvidia_library)" ] || echo "note: the driver brought no libnvidia-opencl.so.1"
    return 0
}

part_build() {
    mkdir -p "$root/vendors"
    for package in "$packages"/*.deb; do dpkg -x "$package" "$root" || return 1; done
    cp /etc/OpenCL/vendors/*.icd "$root/vendors/" 2>/dev/null
    library=$(nvidia_library)
    [ -z "$library" ] || echo "$library" >"$root/vendors/nvidia.icd"
    [ -e /usr/share/datasets ] || ln -s "$root/usr/share/datasets" /usr/share/datasets 2>/dev/null
    use_packages
    generator=; command -v ninja >/dev/null 2>&1 && generator="-G Ninja"
    # shellcheck disable=SC2086
    cmake -S . -B "$build" $generator -DCMAKE_BUILD_TYPE=Release && cmake --build "$build" --parallel "$(getconf _NPROCESSORS_ONLN)"
}

part_doctor() { "$build/bin/koine" devices && "$build/bin/koine" doctor && "$build/bin/koine" smi; }
part_tests() { run_tests -E '^(test_ops|test_random_ops|test_gemm|test_bench|examples|install|pages)'; }
part_ops() { run_tests -R '^(test_ops|test_random_ops|test_gemm)'; }

part_programs() {
    "$build/bin/matmul" && "$build/bin/linear_regression" &&
        "$build/bin/train_fashion_mnist" --epochs 2 --out "$reports/train" ${KOINE_GPU_CHECK_DEVICE:+--device "$KOINE_GPU_CHECK_DEVICE"}
}

part_tune() { "$build/bin/koine" tune --budget 420 --out "$reports/tuning.json" ${KOINE_GPU_CHECK_DEVICE:+--device "$KOINE_GPU_CHECK_DEVICE"}; }
part_limits() { "$build/bin/koine-bench" --only launch/ --only transfer --only startup; }
part_gemm() { compare matmul gemm/; }
part_conv() { compare conv/; }
part_memory() { compare elementwise/ dropout reduce/ softmax/ log_softmax/ batch_norm/ layer_norm/ transpose/; }
part_networks() { compare linear_regression cnn_step mlp lenet resnet18 mobilenetv2; }

# --- in order ---------------------------------------------------------------------------------------------------------

if [ "${KOINE_GPU_CHECK_INSIDE:-}" ]; then # a part by itself, under the limit
    [ "$1" = look ] || [ "$1" = build ] || use_packages
    "part_$1"
    exit
fi
all="look build doctor tests ops programs limits tune gemm conv memory networks"
[ $# -gt 0 ] || set -- $all
failed=
for part; do
    case " $all " in *" $part "*) ;; *) echo "gpu-check.sh: no part $part (there are $all)" >&2; exit 2 ;; esac
    [ -e "$reports/$part.done" ] && continue
    start=$(date +%s)
    KOINE_GPU_CHECK_INSIDE=1 timeout -k 10 $limit sh "$PWD/tools/gpu-check.sh" "$packages" "$reports" "$part" >"$reports/$part.txt" 2>&1
    status=$?
    # Reports stay small: the ends of what is long.
    [ "$(wc -c <"$reports/$part.txt")" -lt 1000000 ] || { tail -c 1000000 "$reports/$part.txt" >"$reports/$part.cut" && mv "$reports/$part.cut" "$reports/$part.txt"; }
    case $status in
    0) outcome="done"; : >"$reports/$part.done" ;;
    124) outcome="stopped at its limit"; failed="$failed $part" ;;
    *) outcome="failed ($status)"; failed="$failed $part" ;;
    esac
    echo "$part: $outcome, $(($(date +%s) - start)) s"
    [ $status = 0 ] || [ "$part" != build ] || break
done
[ -z "$failed" ] || { echo "not done:$failed; see $reports/PART.txt" >&2; exit 1; }
