#!/bin/sh
# pocl.sh FOLDER: makes a PoCL in FOLDER that compiles programs in a third of the time. Prints the value of
# OCL_ICD_VENDORS with which it is used; fails, without a word, where PoCL lies elsewhere or has other files.
#
# For each program, even one that it has in its cache, PoCL reads a header of 18,000 lines: each of OpenCL's functions
# for each type. The PoCL made here is the installed one, by links, with a header that leaves out functions and types of
# which Koine's kernels have no use. The code that it makes of the others is the same. A kernel that comes to use one of
# those does not compile in the tests: take it off the list. Other drivers stay registered as they are.
set -eu

unused='_sat|_rt[epnz]\(|image|pipe|sub_group|work_group_|shuffle|async|prefetch|amd_|arm_|bit_|bitfield_|native_|half_[a-z]'
unused="$unused"'|atom_|atomic_(compare|exchange|f|init|load|store)|mad_hi|mad24|mul24|hadd|add_|sub_|abs_diff|rotate|upsample'
unused="$unused"'|bitselect|sincos|remquo|modf|frexp|fract|_r\(|step|pi\(|mag\(|nextafter|isless|isgreater'
unused="$unused"'|[a-z]3[ ,)*]|half[0-9]* [a-z_]*\('
kept='v(load|store)a?_half4?(_rte)?\('

[ -z "${OCL_ICD_VENDORS-}" ] || exit 1
vendors=/etc/OpenCL/vendors
library=$(cat $vendors/pocl.icd 2>/dev/null) || exit 1
case $library in
/*) folder=${library%/*} ;;
*) folder=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's|.* => \(/.*\)/libpocl\.so.*|\1|p' | head -n 1) ;;
esac
library=${library##*/}
data=$folder/../../share/pocl # where the library looks, as seen from itself
[ -f "$folder/$library" ] && [ -f "$data/include/opencl-c.h" ] || exit 1

rm -rf "$1"
mkdir -p "$1/lib/pocl" "$1/share/pocl/include" "$1/vendors"
ln -s "$folder/$library" "$folder/pocl" "$1/lib/pocl/"
ln -s "$data"/*.bc "$1/share/pocl/"
ln -s "$data"/include/* "$1/share/pocl/include/"
rm "$1/share/pocl/include/opencl-c.h"
awk -v unused="$unused" -v kept="$kept" '!/__ovld.*;/ || $0 ~ kept || $0 !~ unused' "$data/include/opencl-c.h" \
    >"$1/share/pocl/include/opencl-c.h"
cp $vendors/*.icd "$1/vendors/"
echo "$1/lib/pocl/$library" >"$1/vendors/pocl.icd"
echo "$1/vendors"
