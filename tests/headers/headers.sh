#!/bin/sh
# Compiles each public header by itself, as C99 and as C++17, with the compilers given; and all of them as C99, C11,
# C17 and C++17, with gcc and clang too, where they are; without a warning:
# headers.sh INCLUDE_DIR GENERATED_INCLUDE_DIR CC CXX
set -u
include=$1 generated=$2 cc=$3 cxx=$4
flags="-Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only -I$include -I$generated"
count=0 failed=0

check() { # check STANDARD LANGUAGE COMPILER HEADER...
    standard=$1 language=$2 compiler=$3
    shift 3
    # Twice, since a header must also guard itself; the declaration keeps the translation unit from being empty.
    # shellcheck disable=SC2086 # the flags are words
    { printf '#include <koine/%s>\n' "$@" "$@"; echo 'int nothing;'; } |
        "$compiler" "-std=$standard" $flags -x "$language" - || {
        echo "FAILED: as $standard with $compiler: $*"
        failed=$((failed + 1))
    }
    count=$((count + 1))
}

# Those of the compilers that there are, each once; a link to ccache is kept, since ccache goes by the name it is
# called by.
compilers() {
    for compiler; do
        path=$(command -v "$compiler") || continue
        real=$(readlink -f "$path")
        case $real in */ccache) echo "$path" ;; *) echo "$real" ;; esac
    done | sort -u
}

c_compilers=$(compilers "$cc" gcc clang)
cxx_compilers=$(compilers "$cxx" g++ clang++)
headers=$(for path in "$include"/koine/*.h "$include"/koine/nn/*.h "$generated"/koine/*.h; do
    echo "${path##*/koine/}"
done)
for header in $headers; do
    check c99 c "$cc" "$header"
    check c++17 c++ "$cxx" "$header"
done
# shellcheck disable=SC2086 # the headers are words
for compiler in $c_compilers; do
    for standard in c99 c11 c17; do
        check $standard c "$compiler" $headers
    done
done
# shellcheck disable=SC2086
for compiler in $cxx_compilers; do
    check c++17 c++ "$compiler" $headers
done

# The macros, in a program, without a warning: guards in C and C++, named parameters in C.
usage=$(dirname "$0")/usage.c
flags="-Wall -Wextra -Wshadow -Werror -fsyntax-only -I$include -I$generated"
try() { # try COMPILER STANDARD LANGUAGE
    # shellcheck disable=SC2086 # the flags are words
    "$1" "-std=$2" $flags -x "$3" "$usage" || {
        echo "FAILED: $usage does not compile as $2 with $1"
        failed=$((failed + 1))
    }
    count=$((count + 1))
}
for compiler in $c_compilers; do
    for standard in c99 c11 c17; do
        try "$compiler" $standard c
    done
done
for compiler in $cxx_compilers; do
    try "$compiler" c++17 c++
done
echo "$count compilations, $failed failed"
[ $count -gt 0 ] && [ $failed -eq 0 ]
