#!/bin/sh
# Compilers for GPUs take the GPU kernels, without warnings or spilled registers: gpu_code.sh SOURCE_DIR GPU_PROGRAMS
# [SMALLEST SMALLEST_TRAINING RECORDING_LAYER]
#
# The first two: products, convolutions and attention, for one processor of NVIDIA's, and their warnings. With the
# others also all kernels that operators and training use on a GPU, for all processors that the tools here know.
set -eu
source=$1 programs=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ $# -le 2 ]; then
    "$programs" "$folder"
    set -- --target sm_80 --target spir64
else
    KOINE_TEST_FULL=1 "$programs" "$folder"
    for program in "$3" "$4"; do
        OPENCL_LAYERS=$5 RECORD_PROGRAMS=$folder KOINE_PROGRAM_CACHE=0 "$program" --as-gpu >"$folder/out" ||
            { cat "$folder/out"; exit 1; }
    done
    set --
fi
python3 "$source/tools/gpu-code.py" --folder "$folder" "$@"

# What it should find, it finds.
rm "$folder"/*.cl
printf '// -DT=float\n#line 1 "bad.cl"\nkernel void f(global T *x) { T y; if (x[0] > 0) y = 1; x[1] = y; }\n' \
    >"$folder/bad.cl"
if python3 "$source/tools/gpu-code.py" --folder "$folder" --target spir64 >"$folder/out"; then
    echo "FAILED: a variable that may be uninitialised was not reported"
    exit 1
fi
grep -q "uninitialized" "$folder/out"
