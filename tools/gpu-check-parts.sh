# shellcheck shell=sh
# tools/gpu-check-parts.sh - sourced by tools/gpu-check.sh, which describes the parts: a function for each, and what
# they share. They read build, reports and the check_... variables; check_seconds is the time that a part has.

# --- packages, the device, PyTorch ------------------------------------------------------------------------------------

# shellcheck disable=SC2154 # gpu-check.sh sets them
root=$build/packages
libraries=$root/usr/lib/$(uname -m)-linux-gnu

# The path of the driver's OpenCL library; containers often have it unregistered, or outside the linker's search path.
nvidia_library() {
    found=$(ldconfig -p 2>/dev/null | sed -n 's/.*libnvidia-opencl\.so\.1 .*=> //p' | head -n 1)
    [ -n "$found" ] ||
        found=$(find /usr/lib /usr/lib64 /usr/local /opt -name 'libnvidia-opencl.so.1' 2>/dev/null | head -n 1)
    printf '%s' "$found"
}

# Only with the packages of tools/gpu-bundle.sh.
use_packages() {
    [ -n "$check_packages" ] || [ -d "$root/vendors" ] || return 0
    export PATH="$root/usr/bin:$PATH" PKG_CONFIG_SYSROOT_DIR="$root"
    export PKG_CONFIG_LIBDIR="$libraries/pkgconfig:$root/usr/share/pkgconfig:$root/usr/lib/pkgconfig"
    export LD_LIBRARY_PATH="$libraries:$root/usr/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    export OCL_ICD_VENDORS="$root/vendors" CMAKE_PREFIX_PATH="$root/usr"
    library=$(nvidia_library)
    [ -z "$library" ] || LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(dirname "$library")
}

# Unpacks them, and registers the drivers that this machine has.
unpack_packages() {
    mkdir -p "$root/vendors"
    for package in "$check_packages"/*.deb; do dpkg -x "$package" "$root" || return 1; done
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
}

# The value of a field ("type", "unified_memory") of the device, from koine devices --json: field NAME [DEVICE].
field() {
    "$build/bin/koine" devices --json 2>/dev/null | awk -v wanted="${2:-$KOINE_DEVICE}" -v name="$1" -F '"' '
        $2 == "device" { here = $4 == wanted }
        here && $2 == name { value = NF > 3 ? $4 : $3; gsub(/[:,\t ]/, "", value); print value; exit }'
}

# KOINE_DEVICE for the parts that run on the device; without a GPU they fail, with the reason.
use_device() {
    case $1 in look | build | devices | doctor | page)
        [ -z "$check_device" ] || export KOINE_DEVICE="$check_device"
        return 0
        ;;
    esac
    [ -x "$build/bin/koine" ] || { echo "nothing is built: see build.txt"; return 1; }
    [ -n "$check_device" ] || check_device=$("$build/bin/koine" devices --json |
        awk -F '"' '$2 == "device" && $4 ~ /^gpu:/ { print $4; exit }')
    [ -n "$check_device" ] || {
        echo "Koine sees no GPU here: doctor.txt says why (--device cpu:0 checks the CPU)"
        return 1
    }
    export KOINE_DEVICE="$check_device"
    echo "device $KOINE_DEVICE: $(field name | cut -c 1-60)"
}

# Of a Python: what its torch computes on (the kind wanted, or a GPU), and the versions. ROCm's torch says cuda, too.
# shellcheck disable=SC2016 # Python's
torch_query='
import sys, torch
wanted = sys.argv[1]
for kind in [wanted] if wanted else ["cuda", "xpu"]:
    if kind == "cpu" or hasattr(torch, kind) and getattr(torch, kind).is_available():
        name = "" if kind == "cpu" else getattr(torch, kind).get_device_name()
        print(kind, "torch", torch.__version__, "CUDA", torch.version.cuda, "ROCm", torch.version.hip, name)
        break'

# Sets python, peer and peer_text.
find_peer() {
    python='' peer=none peer_text="none with a GPU found"
    [ "$check_peer" != none ] || return 0
    for candidate in $check_pythons; do
        found=$("$candidate" -c "$torch_query" "$check_peer" 2>/dev/null)
        [ -z "$found" ] || { python=$candidate peer=${found%% *} peer_text=$found; return 0; }
    done
}

# prefixes PREFIX...: as options --only, or those of the command line instead.
prefixes() { for prefix in ${check_only:-"$@"}; do printf -- '--only %s ' "$prefix"; done; }

# alone PREFIX...: benchmarks with these prefixes, Koine only.
alone() {
    # shellcheck disable=SC2046 # words
    "$build/bin/koine-bench" --device "$KOINE_DEVICE" --repetitions 7 $(prefixes "$@")
}

# compare NAME MODE PREFIX...: the same against PyTorch in one of its modes, if there is a PyTorch; results are appended
# to NAME.jsonl.
compare() {
    rows=$reports/$1.jsonl mode=$2
    shift 2
    find_peer
    [ "$peer" != none ] || { alone "$@"; return; }
    [ "$mode" != benchmark ] || [ "$peer" = cuda ] || mode=eager
    # shellcheck disable=SC2046
    "$python" bench/compare.py --python "$python" --peer-device "$peer" --peer-mode "$mode" --repetitions 7 \
        --out "$rows" --device "$KOINE_DEVICE" --koine-bench "$build/bin/koine-bench" $(prefixes "$@")
}

# --- the quick parts --------------------------------------------------------------------------------------------------

try() { command -v "$1" >/dev/null 2>&1 && { echo "\$ $*"; timeout 10 "$@" 2>&1 | head -n 60; }; }

part_look() {
    uname -srm
    sed -n 's/^PRETTY_NAME=//p' /etc/os-release 2>/dev/null
    grep -m 1 '^model name' /proc/cpuinfo
    echo "$(getconf _NPROCESSORS_ONLN) processors, $(sed -n 's/^MemTotal: *//p' /proc/meminfo)"
    if [ -e /.dockerenv ] || [ -e /run/.containerenv ] || grep -qsE 'docker|kubepods|lxc' /proc/1/cgroup; then
        echo "this is a container"
    fi
    ! grep -qsi microsoft /proc/version || echo "this is WSL; /dev/dxg: $(ls /dev/dxg 2>&1)"
    echo; echo "--- GPUs"
    if command -v lspci >/dev/null 2>&1; then lspci -nn | grep -E ' \[03[0-9a-f]{2}\]'; else
        for card in /sys/bus/pci/devices/*; do
            case $(cat "$card/class" 2>/dev/null) in
            0x03*) echo "$(basename "$card") $(cat "$card/vendor" "$card/device" | tr '\n' ' ')" ;;
            esac
        done
    fi
    echo "kernel modules: $(grep -oE '^(nvidia|amdgpu|radeon|i915|xe|nouveau|panfrost|msm) ' /proc/modules | xargs)"
    echo; echo "--- device nodes, and who may use them"
    id
    for node in /dev/nvidia* /dev/kfd /dev/dri/* /dev/dxg /dev/mali*; do
        [ -e "$node" ] || continue
        ls -ld "$node"
        [ -d "$node" ] || { [ -r "$node" ] && [ -w "$node" ]; } ||
            echo "    no permission: see the groups render and video"
    done
    echo; echo "--- OpenCL"
    ldconfig -p 2>/dev/null | grep -i -E 'opencl|pocl|rusticl|igdrcl'
    grep -H . /etc/OpenCL/vendors/*.icd 2>/dev/null || echo "no driver is registered in /etc/OpenCL/vendors"
    env | grep -E '^(OCL_|OPENCL_|RUSTICL_|POCL_|ROCR?_|HIP_|HSA_|CUDA_VISIBLE|ONEAPI_|ZE_|NEO|KOINE_|GPU_DEVICE)'
    [ -n "${RUSTICL_ENABLE:-}" ] || echo "RUSTICL_ENABLE is not set: Mesa's rusticl shows no device without it"
    dpkg-query -W -f '${Package} ${Version}\n' '*opencl*' 'mesa-*' 'rocm*' '*pocl*' 'intel-*gpu*' 'nvidia-driver*' \
        2>/dev/null | grep ' .'
    try clinfo -l
    echo; echo "--- vendors' tools"
    try nvidia-smi
    [ -z "$(nvidia_library)" ] || echo "NVIDIA's OpenCL library: $(nvidia_library)"
    try rocm-smi --showproductname --showdriverversion --showmeminfo vram
    try amd-smi list; try rocminfo
    cat /opt/rocm*/.info/version 2>/dev/null
    try intel_gpu_top -L; try xpu-smi discovery
    echo; echo "--- PyTorch"
    find_peer; echo "$peer_text"
    echo; cc --version 2>&1 | head -n 1; cmake --version 2>&1 | head -n 1
}

part_build() {
    if [ -n "$check_packages" ]; then
        unpack_packages || return 1
    else # if it cannot install them, CMake says what is missing
        (. tools/setup.sh && koine_packages)
    fi
    generator='' tests=ON
    command -v ninja >/dev/null 2>&1 && generator="-G Ninja"
    pkg-config --exists cmocka || { tests=OFF; echo "without cmocka: no tests are built"; }
    # shellcheck disable=SC2086
    cmake -S . -B "$build" $generator -DCMAKE_BUILD_TYPE=Release -DKOINE_TESTS=$tests \
        -DKOINE_TEST_TIMEOUT=300 || return 1
    set -- koine_program koine-bench train_fashion_mnist
    [ $tests = OFF ] || set -- "$@" test_ops
    cmake --build "$build" --parallel "$(getconf _NPROCESSORS_ONLN)" --target "$@"
}

# What only the other parts need.
build_all() {
    cmake --build "$build" --parallel "$(getconf _NPROCESSORS_ONLN)" >"$reports/build-all.txt" 2>&1 || {
        tail -n 20 "$reports/build-all.txt"
        return 1
    }
}

part_devices() {
    "$build/bin/koine" devices && "$build/bin/koine" devices --json >"$reports/devices.json" && "$build/bin/koine" smi
}
part_doctor() { "$build/bin/koine" doctor ${check_device:+--device "$check_device"}; }

# rows SECONDS OPTION...: test_ops in parallel shards; what failed, and how far those came that did not finish.
rows() {
    seconds=$1
    shift
    for shard in $(seq "$check_jobs"); do
        # shellcheck disable=SC2046
        timeout "$seconds" "$build/tests/bin/test_ops" --device "$KOINE_DEVICE" --shard "$shard/$check_jobs" "$@" \
            $(prefixes) >"$reports/shard-$shard.log" 2>&1 || echo "exit status $?" >>"$reports/shard-$shard.log" &
    done
    wait
    grep -h -i -E 'FAIL |error|exit status' "$reports"/shard-*.log | head -n 200
    ended=$(cat "$reports"/shard-*.log | grep -c ' cases on .* device' || true)
    cases=$(sed -n 's/^\([0-9]*\) cases on .*/\1/p' "$reports"/shard-*.log | awk '{ n += $1 } END { print n + 0 }')
    bad=$(grep -l 'exit status' "$reports"/shard-*.log | wc -l)
    echo "$*: $cases cases, $ended of $check_jobs shards ended, $bad with failures or stopped"
    rm -f "$reports"/shard-*.log
    [ "$bad" -eq 0 ]
}
part_operators() {
    [ -x "$build/tests/bin/test_ops" ] || {
        "$build/bin/koine" doctor --operators --device "$KOINE_DEVICE"
        return
    }
    begun=$(date +%s) good=0
    rows $((check_seconds * 7 / 10)) --no-gradient --dtype f32 || good=1
    first=--first
    [ -z "$check_only" ] || first=''  # the rows that are named
    # shellcheck disable=SC2086
    rows $((check_seconds - 5 - $(date +%s) + begun)) $first --dtype f32 || good=1
    return $good
}

train() { "$build/bin/train_fashion_mnist" --quiet --device "$KOINE_DEVICE" "$@"; }
# A few short epochs in which rounding errors do not grow, then two whole ones.
part_curve() {
    train --eps 1e-3 --epochs 4 --limit 640 --out "$reports/early" || return 1
    rm -f "$reports"/early/*.safetensors
    sh tools/same-curve.sh "$reports/early/history.csv" tests/examples/curve-early.csv || return 1
    train --epochs 2 --out "$reports/two-epochs" || return 1
    head -n 3 tests/examples/curve-whole.csv >"$reports/reference.csv"
    sh tools/same-curve.sh "$reports/two-epochs/history.csv" "$reports/reference.csv" 0.05 0.05 0.015
    status=$?
    rm -f "$reports"/two-epochs/*.safetensors "$reports/reference.csv"
    return $status
}

# Most important first: a slow device does not come to the end. Rows are those of koine-bench, each with its share of
# the measured peak, of the arithmetic or the memory.
main_rows="cnn_step gpu/gemm/4096x4096x4096 gpu/conv/128,64,56,56-64,3x3/ launch/ gpu/elementwise/ gpu/softmax/
    gpu/layer_norm/ gpu/reduce/ gpu/transpose/ gemm/1024x1024x1024 elementwise/add/ gpu/resnet18 gpu/resnet50"
part_bench() {
    # shellcheck disable=SC2086
    timeout $((check_seconds - 5)) "$build/bin/koine-bench" --device "$KOINE_DEVICE" --repetitions 5 \
        $(prefixes $main_rows) >"$reports/bench.jsonl"
    status=$?
    # shellcheck disable=SC2016 # awk's
    awk -F '"name": "' '
        function value(key, start) {
            start = length(key) + 4
            return match($0, "\"" key "\": [0-9.e+-]+") ? substr($0, RSTART + start, RLENGTH - start) : 0
        }
        { name = substr($2, 1, index($2, "\"") - 1) }
        name == "peak" {
            printf "peak: %s GFLOP/s f32, %s f64, ", value("gflops_f32"), value("gflops_f64")
            print value("gbytes_per_s") " GB/s"
            next
        }
        { printf "%-44s %10.4f ms %10.1f GFLOP/s ", name, 1e3 * value("seconds_median"), value("gflops")
          printf "%9.1f GB/s %7.3f of the peak\n", value("gbytes_per_s"), value("fraction_of_peak") }
    ' "$reports/bench.jsonl"
    [ $status -ne 124 ] || { echo "the rest of the benchmarks had no time"; status=0; }
    [ $status -eq 0 ] && [ -s "$reports/bench.jsonl" ] || return 1
    find_peer
    [ "$peer" = none ] || echo "compared with PyTorch: --part networks, --part gemm, --part conv, --part memory"
}

# --- the others -------------------------------------------------------------------------------------------------------

# The results are kept test by test, in reports/tests.
part_tests() {
    build_all || return 1
    sh tests/continue.sh "$build" "$reports/tests" --parallel "$check_jobs" -LE '^(long|lint)$'
    status=$?
    tail -c 150000 "$reports/tests.log" # of those that failed
    return $status
}

# Four whole epochs, and the other examples.
part_training() {
    build_all || return 1
    train --epochs 4 --out "$reports/whole" || return 1
    rm -f "$reports"/whole/*.safetensors
    sh tools/same-curve.sh "$reports/whole/history.csv" tests/examples/curve-whole.csv 0.05 0.05 0.015 || return 1
    "$build/bin/matmul" && "$build/bin/linear_regression"
}

resnet="gpu/conv/32,3,224,224-64,7x7s2/ gpu/conv/128,64,56,56-64,3x3/ gpu/conv/128,128,28,28-128,3x3/
    gpu/conv/128,256,14,14-256,3x3/ gpu/conv/128,512,7,7-512,3x3/ gpu/conv/128,64,56,56-256,1x1/
    gpu/conv/128,1024,14,14-256,1x1/"
networks="cnn_step gpu/resnet18 gpu/resnet50 gpu/mobilenetv2 gpu/gpt gpu/vit gpu/lstm linear_regression mlp lenet"
# shellcheck disable=SC2086
part_networks() { compare networks benchmark $networks; }
part_gemm() { compare gemm eager gpu/gemm/ matmul gemm/; }
# shellcheck disable=SC2086
part_conv() { compare conv benchmark $resnet conv/128,32 gpu/conv/ conv/128,1; }
part_memory() {
    compare memory eager gpu/elementwise/ gpu/dropout gpu/reduce/ gpu/softmax/ gpu/log_softmax/ gpu/batch_norm/ \
        gpu/layer_norm/ gpu/transpose/ gpu/pool/ elementwise/ dropout reduce/ softmax/ log_softmax/ batch_norm/ \
        layer_norm/ transpose/ pool/
}
part_clblast() {
    KOINE_IMPL=gemm:clblast alone gemm/1024x gemm/2048x2048x2048 gemm/4096x4096x4096 gemm/1760x gemm/512x512x512/f64
}
part_limits() { alone launch/ graph/ transfer startup; }
# With all the device's memory, unless that is the host's, too.
part_big() {
    build_all || return 1
    all=''
    [ "$(field unified_memory)" != false ] || all=--full
    "$build/tests/bin/test_large_memory" $all
}
part_tune() {
    "$build/bin/koine" tune --budget $((check_seconds / 2)) --out "$reports/tuning.json" --device "$KOINE_DEVICE"
}
# shellcheck disable=SC2086
part_tuned() { compare tuned benchmark gpu/gemm/4096x4096x4096 gpu/resnet50 $resnet; }
# shellcheck disable=SC2086
part_modes() {
    find_peer
    [ "$peer" != none ] || { echo "there is no PyTorch to compare with"; return 0; }
    compare modes eager gpu/resnet18 gpu/resnet50 cnn_step $resnet &&
        compare modes compile cnn_step gpu/resnet18 gpu/resnet50
}
part_page() {
    set --
    for rows in networks gemm conv memory modes; do
        [ ! -s "$reports/$rows.jsonl" ] || set -- "$@" "$reports/$rows.jsonl"
    done
    [ $# -gt 0 ] || { echo "nothing was measured against PyTorch"; return 0; }
    python3 bench/report.py "$@"
}
