#!/bin/sh
# Does structure.sh detect violations? structure_fails.sh: makes a small tree, breaks one rule at a time, and expects
# exactly that one to be reported.
set -u
script=$(dirname "$0")/structure.sh
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
failed=0

# A tree of three layers that satisfies all rules.
fresh() {
    rm -rf "$tree/src" "$tree/cl"
    mkdir -p "$tree/cl/shape" "$tree/src/base" "$tree/src/rt/device" "$tree/src/rt/stream" "$tree/src/watch" \
        "$tree/src/ops/shape" "$tree/src/ops/conv/cpu"
    echo '#include <CL/cl.h>' >"$tree/src/rt/device/opencl.h"
    touch "$tree/src/base/text.h" "$tree/src/base/text.c" "$tree/src/rt/device/lost.c"
    printf '#include "base/text.h"\n' >"$tree/src/rt/device/device.h"
    printf '#include "rt/device/device.h"\n#include "rt/device/opencl.h"\n' >"$tree/src/rt/device/device.c"
    printf '#include "rt/device/device.h"\n' >"$tree/src/rt/stream/stream.c"
    printf '#include "rt/device/device.h"\n' >"$tree/src/ops/add.c"
    touch "$tree/src/ops/shape/view.c" "$tree/src/ops/shape/sum.c" "$tree/cl/shape/lanes.clh"
    echo 'run("shape/sum.cl");' >"$tree/src/ops/conv/cpu/rows.c"
    echo '#include "shape/lanes.clh"' >"$tree/cl/shape/sum.cl"
    printf '#include "rt/device/device.h"\n' >"$tree/src/watch/look.c"
    y=0
    for layer in ops watch rt base; do
        y=$((y + 1))
        echo "<text x=\"32\" y=\"$y\" font-weight=\"bold\">$layer</text>"
    done >"$tree/drawing.svg"
    echo "$tree/symbols" >"$tree/objects" # `cat` is its nm
    cat >"$tree/symbols" <<'END'
o/lib.dir/base/text.c.o: text T 0 1
o/lib.dir/rt/device/device.c.o: open_device T 0 1
o/lib.dir/rt/device/device.c.o: clCreateContext U
o/lib.dir/rt/device/device.c.o: text U
o/lib.dir/rt/device/lost.c.o: lose T 0 1
o/lib.dir/rt/stream/stream.c.o: open_stream T 0 1
o/lib.dir/rt/stream/stream.c.o: open_device U
o/lib.dir/ops/add.c.o: add T 0 1
o/lib.dir/ops/add.c.o: open_stream U
o/lib.dir/ops/add.c.o: rows U
o/lib.dir/ops/shape/view.c.o: view T 0 1
o/lib.dir/ops/shape/view.c.o: sum U
o/lib.dir/ops/shape/sum.c.o: sum T 0 1
o/lib.dir/ops/shape/sum.c.o: view U
o/lib.dir/ops/conv/cpu/rows.c.o: rows T 0 1
o/lib.dir/ops/conv/cpu/rows.c.o: sum U
END
}

expect() { # expect TEXT...: the rules that are told to be broken, each by a part of its line; none: all are kept
    sh "$script" "$tree/src" "$tree/drawing.svg" "$tree/objects" cat >"$tree/out" 2>&1
    code=$?
    told=$(grep -c '^FAILED' "$tree/out")
    wrong=
    [ "$told" -eq $# ] || wrong="$told rules told, not $#"
    { [ $# -eq 0 ] && [ $code -eq 0 ]; } || { [ $# -gt 0 ] && [ $code -ne 0 ]; } || wrong="status $code"
    for text; do
        grep -q "^FAILED: .*$text" "$tree/out" || wrong="nothing of $text"
    done
    if [ "$wrong" ]; then
        echo "FAILED: $case: $wrong"
        sed 's/^/    /' "$tree/out"
        failed=$((failed + 1))
    fi
}

symbol() { echo "o/lib.dir/$1.c.o: $2 U" >>"$tree/symbols"; }
include() { printf '#include "%s"\n' "$2" >>"$tree/src/$1"; }

case="all rules kept"
fresh
expect
case="a header of a layer above"
fresh
include base/text.h ops/add.h
touch "$tree/src/ops/add.h"
expect "layer above"
case="a symbol of a layer above"
fresh
symbol rt/device/lost add
expect "layer above"
case="a layer that is not drawn"
fresh
mkdir "$tree/src/extra"
touch "$tree/src/extra/more.c"
expect "does not show"
case="a circle of folders by symbols"
fresh
symbol rt/device/lost open_stream
expect "circle of folders of rt"
case="a circle of folders by an include"
fresh
touch "$tree/src/rt/stream/wait.h"
include rt/device/device.h rt/stream/wait.h
expect "circle of folders of rt"
case="a circle of folders of ops by symbols"
fresh
symbol ops/conv/cpu/rows add
expect "circle of folders of ops"
case="a circle of folders of ops by an include"
fresh
touch "$tree/src/ops/conv/cpu/rows.h"
include ops/shape/view.c ops/conv/cpu/rows.h
expect "circle of folders of ops"
case="a circle of files"
fresh
symbol rt/device/lost open_device
symbol rt/device/device lose
expect "circle of files of rt"
case="OpenCL's header outside rt"
fresh
echo '#include <CL/cl.h>' >>"$tree/src/watch/look.c"
expect "outside rt that include"
case="OpenCL's header twice in rt"
fresh
echo '  #include <CL/cl_ext.h>' >>"$tree/src/rt/stream/stream.c"
expect "more than one"
case="OpenCL's header through another"
fresh
include rt/device/device.h rt/device/opencl.h
expect "through others"
case="an object of no source"
fresh
symbol rt/device/found text
expect "no source"
case="a call of OpenCL outside rt"
fresh
symbol ops/add clFinish
expect "calls of OpenCL"
case="a kernel that nothing names"
fresh
touch "$tree/cl/shape/rows.cl"
expect "nothing names"
case="a header that nothing names"
fresh
touch "$tree/src/ops/shape/view.h"
expect "nothing names"
[ $failed -eq 0 ]
