#!/bin/sh
# The SONAME says what a version promises: libkoine.so.0.MINOR before 1.0, where each minor version may break the binary
# interface, then libkoine.so.MAJOR. soname.sh LIBRARY VERSION_H
set -eu
library=$1 header=$2
number() { sed -n "s/^#define KN_VERSION_$1 //p" "$header"; }
expected=libkoine.so.$(number MAJOR)
[ "$(number MAJOR)" -gt 0 ] || expected=$expected.$(number MINOR)

soname=$("${READELF:-readelf}" -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[ "$soname" = "$expected" ] || { echo "the SONAME of $library is '$soname', not $expected"; exit 1; }
full=$(readlink -f "$library")
[ "${full##*/}" = "libkoine.so.$(number MAJOR).$(number MINOR).$(number PATCH)" ] ||
    { echo "$full is not of this version"; exit 1; }
[ "$(readlink -f "${library%/*}/$soname")" = "$full" ] || { echo "$soname beside $library is another file"; exit 1; }
echo "$soname -> ${full##*/}"
