#!/bin/sh
# Runs a command in another root folder, in the source tree, which has the same path there: enter.sh ROOT COMMAND...
# (for tests/drivers/get.sh, in a mount namespace of its own).
set -eu
root=$1
shift
for kind in dev proc sys; do # PoCL's hwloc reads /sys
    mount --rbind "/$kind" "$root/$kind"
done
mkdir -p "$root$PWD"
mount --bind . "$root$PWD"
exec chroot "$root" env -u LD_LIBRARY_PATH PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$@"
