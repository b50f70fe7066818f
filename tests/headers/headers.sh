#!/bin/sh
# Compiles each public header by itself, as C11 and as C++17, and guards without a warning: headers.sh INCLUDE_DIR GENERATED_INCLUDE_DIR CC CXX
set -u
include=$1 generated=$2 cc=$3 cxx=$4
flags="-Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only -I$include -I$generated"
count=0 failed=0

check() { # check HEADER WHAT COMPILER...
    header=$1 what=$2
    shift 2
    # Twice, since a header must also guard itself; the declaration keeps the translation unit from being empty.
    printf '#include <koine/%s>\n#include <koine/%s>\nint nothing;\n' "$header" "$header" | "$@" - || {
        echo "FAILED: koine/$header does not compile alone as $what"
        failed=$((failed + 1))
    }
    count=$((count + 1))
}

for path in "$include"/koine/*.h "$generated"/koine/*.h; do
    header=${path##*/}
    # shellcheck disable=SC2086 # the flags are words
    check "$header" C11 "$cc" -std=c11 $flags -x c
    # shellcheck disable=SC2086
    check "$header" C++17 "$cxx" -std=c++17 $flags -x c++
done
# A guard is a variable that nothing reads: no compiler may say so.
guards='#include <koine/koine.h>
void guarded(kn_device *device, kn_stream *stream);
void guarded(kn_device *device, kn_stream *stream) { KN_SCOPE; KN_NO_GRAD; KN_DEVICE(device); KN_STREAM(stream); }'
for compiler in "$cc -std=c11 -x c" "$cxx -std=c++17 -x c++" "clang -std=c11 -x c" "clang++ -std=c++17 -x c++"; do
    command -v "${compiler%% *}" >/dev/null || continue
    # shellcheck disable=SC2086
    echo "$guards" | $compiler $flags - || {
        echo "FAILED: guards do not compile without warnings: $compiler"
        failed=$((failed + 1))
    }
    count=$((count + 1))
done
echo "$count compilations, $failed failed"
[ $count -gt 0 ] && [ $failed -eq 0 ]
