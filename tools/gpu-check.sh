#!/bin/sh
# Builds, tests and measures Koine on a machine with a GPU, a driver, a C compiler and CMake, but no network:
#
#     sh tools/gpu-check.sh PACKAGES REPORTS [PART...]
#
# PACKAGES is the folder made by tools/gpu-bundle.sh; REPORTS gets one small report per part. Without PART all parts
# that are not done yet run, in the order below, so an interrupted check continues where it stopped; each part ends
# within 8 minutes, all of them within half an hour on 16 cores. A part that fails is reported at the end and retried
# the next time. Parts joined by + run in parallel; those that measure run alone.
#
#   look        what is installed: GPU, driver, OpenCL libraries, PyTorch
#   build       unpacks the packages, registers NVIDIA's driver, builds
#   doctor      koine devices, doctor and smi
#   ops tests   the test suite on the GPU
#   curve       trains the Fashion-MNIST example: the same curve as on PoCL?
#   programs    the other example programs
#   networks gemm conv memory
#               compared with PyTorch on CUDA, or Koine alone if no python3 here has torch with CUDA; rows are saved in
#               PART.jsonl, and not measured again
#   clblast     CLBlast's products alone
#   limits      koine-bench on the device itself: launches, copies, startup
#   big         buffers above a quarter of the memory, a batch that fills it
#   tune tuned  koine tune, and the largest rows after it
#   modes       networks and layers against PyTorch's other modes
#   page        the measurements in the form of docs/performance.md
#
# Environment: KOINE_GPU_CHECK_DEVICE names the device (default: the first GPU); KOINE_GPU_CHECK_BUILD the build folder
# (default: build-gpu); KOINE_GPU_CHECK_PYTHON the Pythons to search for torch; KOINE_GPU_CHECK_TUNE the tuning time in
# seconds (240); KOINE_GPU_CHECK_JOBS the number of parallel tests (8). To try the script without a GPU:
# KOINE_GPU_CHECK_PEER=cpu uses PyTorch on the CPU as the peer, and KOINE_GPU_CHECK_ONLY="PREFIX..." replaces the
# benchmarks' names.
set -u
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }
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

# The path of the driver's OpenCL library; containers often have it unregistered, or outside the linker's search path.
nvidia_library() {
    found=$(ldconfig -p 2>/dev/null | sed -n 's/.*libnvidia-opencl\.so\.1 .*=> //p' | head -n 1)
    [ -n "$found" ] || found=$(find /usr/lib /usr/lib64 /usr/local /opt -name 'libnvidia-opencl.so.1' 2>/dev/null | head -n 1)
    printf '%s' "$found"
}

use_packages() {
    export PATH="$root/usr/bin:$PATH" PKG_CONFIG_SYSROOT_DIR="$root"
    export PKG_CONFIG_LIBDIR="$libraries/pkgconfig:$root/usr/share/pkgconfig:$root/usr/lib/pkgconfig"
    export LD_LIBRARY_PATH="$libraries:$root/usr/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    export OCL_ICD_VENDORS="$root/vendors" CMAKE_PREFIX_PATH="$root/usr"
    library=$(nvidia_library)
    [ -z "$library" ] || LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(dirname "$library")
    [ -z "${KOINE_GPU_CHECK_DEVICE:-}" ] || export KOINE_DEVICE="$KOINE_GPU_CHECK_DEVICE"
}

peer=${KOINE_GPU_CHECK_PEER:-cuda}

# A python3 with torch, which must see a GPU if that is the peer.
torch_python() {
    for python in ${KOINE_GPU_CHECK_PYTHON:-python3 /usr/bin/python3}; do
        "$python" -c 'import torch, sys; sys.exit(sys.argv[1] == "cuda" and not torch.cuda.is_available())' "$peer" \
            >/dev/null 2>&1 && { printf '%s' "$python"; return; }
    done
}

# remaining ARGUMENTS: the tests selected by these ctest arguments that have not passed before.
remaining() { ctest --test-dir "$build" -N -LE '^(long|lint)$' "$@" | sed -n 's/^ *Test *#[0-9]*: //p' | grep -vxFf "$reports/passed"; }

# run_tests ARGUMENTS: runs them; the names of those that pass are appended to $reports/passed one by one.
run_tests() {
    touch "$reports/passed"
    names=$(remaining "$@")
    [ -n "$names" ] || { echo "all of them have passed before"; return 0; }
    ctest --test-dir "$build" --output-on-failure --parallel "${KOINE_GPU_CHECK_JOBS:-8}" --timeout 300 -R "^($(echo $names | tr ' ' '|'))\$" |
        awk -v passed="$reports/passed" '{ print; fflush() } $2 == "Test" && / Passed |\*\*\*Skipped/ { print $4 >>passed; fflush(passed) }'
    [ -z "$(remaining "$@")" ]
}
train() { "$build/bin/train_fashion_mnist" --quiet "$@"; }

# alone PREFIX...: benchmarks with these prefixes, Koine only.
alone() {
    arguments=
    for prefix in ${KOINE_GPU_CHECK_ONLY:-"$@"}; do arguments="$arguments --only $prefix"; done
    # shellcheck disable=SC2086 # words
    "$build/bin/koine-bench" --repetitions 7 $arguments
}

# compare NAME MODE PREFIX...: the same against PyTorch in one of its modes, if there is a PyTorch; results are appended
# to NAME.jsonl.
compare() {
    rows=$reports/$1.jsonl mode=$2
    shift 2
    python=$(torch_python)
    [ -n "$python" ] || { alone "$@"; return; }
    [ "$mode" != benchmark ] || [ "$peer" = cuda ] || mode=eager
    arguments=
    for prefix in ${KOINE_GPU_CHECK_ONLY:-"$@"}; do arguments="$arguments --only $prefix"; done
    # shellcheck disable=SC2086
    "$python" bench/compare.py --python "$python" --peer-device "$peer" --peer-mode "$mode" --repetitions 7 --out "$rows" \
        --koine-bench "$build/bin/koine-bench" $arguments
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
    [ -n "$python" ] && "$python" -c \
        'import torch; print("torch", torch.__version__, torch.version.cuda, torch.cuda.get_device_name())'
    [ -n "$(nvidia_library)" ] || echo "note: the driver brought no libnvidia-opencl.so.1"
    return 0
}

part_build() {
    mkdir -p "$root/vendors"
    for package in "$packages"/*.deb; do dpkg -x "$package" "$root" || return 1; done
    # Absolute links (libz.so) must lead to the packages' file, not to another version on this machine.
    find "$root" -type l | while read -r link; do
        target=$(readlink "$link")
        case $target in /*) [ ! -e "$root$target" ] || ln -sfn "$root$target" "$link" ;; esac
    done
    # CLBlast's CMake files name the path where Debian installs the OpenCL library.
    find "$root" -name '*.cmake' -exec sed -i "s|\"/usr/lib/[^\"]*/libOpenCL.so\"|\"$libraries/libOpenCL.so\"|" {} +
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

# A few short epochs, in which rounding errors cannot grow much, and the full training. Compared with stored results of
# PoCL, and with PoCL on this machine if it is there.
part_curve() {
    for length in early whole; do
        arguments="--epochs 4 --limit 640" allowed=
        [ $length = early ] || arguments="--epochs 4" allowed="0.05 0.05 0.015"
        # shellcheck disable=SC2086
        train $arguments --out "$reports/$length" ${KOINE_GPU_CHECK_DEVICE:+--device "$KOINE_GPU_CHECK_DEVICE"} >/dev/null || return 1
        # shellcheck disable=SC2086
        sh tools/same-curve.sh "$reports/$length/history.csv" "tests/examples/curve-$length.csv" $allowed || return 1
        [ "$peer" = cuda ] && "$build/bin/koine" devices | grep -q ' cpu:0 ' || continue
        # shellcheck disable=SC2086
        train $arguments --out "$reports/$length-cpu" --device cpu >/dev/null || return 1
        # shellcheck disable=SC2086
        sh tools/same-curve.sh "$reports/$length/history.csv" "$reports/$length-cpu/history.csv" $allowed || return 1
    done
    rm -f "$reports"/*/*.safetensors
}

part_programs() { "$build/bin/matmul" && "$build/bin/linear_regression"; }

resnet="gpu/conv/32,3,224,224-64,7x7s2/ gpu/conv/128,64,56,56-64,3x3/ gpu/conv/128,128,28,28-128,3x3/ gpu/conv/128,256,14,14-256,3x3/
    gpu/conv/128,512,7,7-512,3x3/ gpu/conv/128,64,56,56-256,1x1/ gpu/conv/128,1024,14,14-256,1x1/"
networks="cnn_step gpu/resnet18 gpu/resnet50 gpu/mobilenetv2 linear_regression mlp lenet"

part_networks() {
    # shellcheck disable=SC2086
    compare networks benchmark $networks
}
part_gemm() { compare gemm eager gpu/gemm/ matmul gemm/; }
part_conv() { compare conv benchmark conv/128,32 gpu/conv/ conv/128,1; }
part_memory() {
    compare memory eager gpu/elementwise/ gpu/dropout gpu/reduce/ gpu/softmax/ gpu/log_softmax/ gpu/batch_norm/ \
        gpu/layer_norm/ gpu/transpose/ gpu/pool/ elementwise/ dropout reduce/ softmax/ log_softmax/ batch_norm/ \
        layer_norm/ transpose/ pool/
}
part_clblast() {
    KOINE_IMPL=gemm:clblast alone gemm/1024x gemm/2048x2048x2048 gemm/4096x4096x4096 gemm/1760x gemm/512x512x512/f64
}
part_limits() { "$build/bin/koine-bench" --only launch/ --only graph/ --only transfer --only startup; }
part_big() {
    full=; [ "$peer" != cuda ] || full=--full # otherwise device memory is host memory
    "$build/tests/bin/test_large_memory" $full
}
part_tune() {
    "$build/bin/koine" tune --budget ${KOINE_GPU_CHECK_TUNE:-240} --out "$reports/tuning.json" \
        ${KOINE_GPU_CHECK_DEVICE:+--device "$KOINE_GPU_CHECK_DEVICE"}
}
part_tuned() {
    # shellcheck disable=SC2086
    compare tuned benchmark gpu/gemm/4096x4096x4096 gpu/resnet50 $resnet
}
part_modes() {
    [ "$peer" = cuda ] || return 0
    # shellcheck disable=SC2086
    compare modes eager gpu/resnet18 gpu/resnet50 cnn_step $resnet && compare modes compile cnn_step gpu/resnet18 gpu/resnet50
}
part_page() {
    python=$(torch_python)
    set --
    for rows in networks gemm conv memory modes; do [ ! -s "$reports/$rows.jsonl" ] || set -- "$@" "$reports/$rows.jsonl"; done
    [ $# -gt 0 ] || { echo "nothing was measured against PyTorch"; return 0; }
    "${python:-python3}" bench/report.py "$@"
}

# --- in order ---------------------------------------------------------------------------------------------------------

if [ "${KOINE_GPU_CHECK_INSIDE:-}" ]; then # a single part, under the time limit
    [ "$1" = look ] || [ "$1" = build ] || use_packages
    "part_$1"
    exit
fi

run_part() {
    start=$(date +%s)
    KOINE_GPU_CHECK_INSIDE=1 timeout -k 10 $limit sh "$PWD/tools/gpu-check.sh" "$packages" "$reports" "$1" >"$reports/$1.txt" 2>&1
    status=$?
    # Reports stay small: only the end of a long one is kept.
    [ "$(wc -c <"$reports/$1.txt")" -lt 1000000 ] || {
        tail -c 1000000 "$reports/$1.txt" >"$reports/$1.cut" && mv "$reports/$1.cut" "$reports/$1.txt"
    }
    case $status in
    0) outcome="done"; : >"$reports/$1.done" ;;
    124) outcome="stopped at its time limit" ;;
    *) outcome="failed ($status)" ;;
    esac
    echo "$1: $outcome, $(($(date +%s) - start)) s"
}

all="look build doctor ops+tests+curve+programs networks gemm conv memory clblast limits big tune tuned modes page"
[ $# -gt 0 ] || set -- $all
for group; do
    for part in $(echo "$group" | tr + ' '); do
        case "+$(echo "$all" | tr ' ' +)+" in
        *"+$part+"*) ;;
        *) echo "gpu-check.sh: there is no part $part (parts: $all)" >&2; exit 2 ;;
        esac
    done
done
failed=
for group; do
    parts=$(echo "$group" | tr + ' ')
    rm -f "$reports/page.done"
    for part in $parts; do [ -e "$reports/$part.done" ] || run_part "$part" & done
    wait
    for part in $parts; do [ -e "$reports/$part.done" ] || failed="$failed $part"; done
    [ "$group" != build ] || [ -e "$reports/build.done" ] || break
done
[ -z "$failed" ] || { echo "not done:$failed; see $reports/PART.txt" >&2; exit 1; }
