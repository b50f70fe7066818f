#!/bin/sh
# The shared library exports exactly what the public headers declare with KN_API: exports.sh LIBRARY INCLUDE_DIR...
set -eu
library=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//' | sort -u >"$folder/exported"
for include; do
    # The first kn_name( after KN_API is the function's own name: a parameter that is a function pointer comes later.
    sed -n 's/^KN_API [^(]*[ *]\(kn_[a-z0-9_]*\)(.*/\1/p' $(find "$include/koine" -name "*.h")
done | sort -u >"$folder/declared"

comm -13 "$folder/declared" "$folder/exported" >"$folder/undeclared"
comm -23 "$folder/declared" "$folder/exported" >"$folder/missing"
status=0
if [ -s "$folder/undeclared" ]; then
    echo "exported but in no public header:"
    sed 's/^/    /' "$folder/undeclared"
    status=1
fi
if [ -s "$folder/missing" ]; then
    echo "declared in a public header but not exported:"
    sed 's/^/    /' "$folder/missing"
    status=1
fi
echo "$(wc -l <"$folder/exported") symbols exported, $(wc -l <"$folder/declared") declared"
[ -s "$folder/declared" ] || { echo "no declarations found"; status=1; }
exit $status
