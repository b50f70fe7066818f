#!/bin/sh
# Descriptors are made in src/base/system.c alone, which keeps them at 3 and above and closed on exec; what names files
# and libraries comes from the environment by kn_trusted_environment alone: calls.sh SOURCE_DIR
set -eu
calls='open|openat|creat|fopen|freopen|tmpfile|mkstemp|mkostemp|mkdtemp|pipe2?|socket|opendir|scandir|popen|system'
calls="$calls|memfd_create|dup[23]?|gzopen"
found=$(grep -rnE "(^|[^_[:alnum:]])($calls)\(" "$1/src" --include='*.c' --include='*.h' |
    grep -v "^$1/src/base/system.c:" || true)
if [ -n "$found" ]; then
    echo "these go around src/base/system.h:"
    echo "$found"
    exit 1
fi
names='[A-Z_0-9]*(DIR|FILE|LIBRARY|PATH|HOME|ROOT)|KOINE_FAIL_[A-Z]*|INTEL_[A-Z0-9]*'
found=$(grep -rnE "(^|[^_[:alnum:]])getenv\(\"($names)\"\)" "$1/src" --include='*.c' || true)
if [ -n "$found" ]; then
    echo "these believe the environment of a program that has more rights than its user:"
    echo "$found"
    exit 1
fi
