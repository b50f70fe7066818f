#!/bin/sh
# Runs a program under Oclgrind and fails when Oclgrind has anything to say, which by itself does not change the exit
# status: oclgrind.sh PROGRAM [ARGUMENT...]
#
# Kernels are compiled without optimisation, without `restrict` and without `always_inline`: Oclgrind 21.10 does not
# know instructions that the optimiser and the inliner make of them (freeze, noalias.scope.decl), nor prefetches, which
# KN_FOR_SPIRV leaves out. Not from the program cache, which knows nothing of these options. Without --uninitialized: it
# takes buffers filled by the host for unset.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
unset KOINE_DEVICE
export KOINE_PROGRAM_CACHE=0
oclgrind --data-races --check-api --max-errors 100 \
    --build-options "-O0 -Drestrict= -Dalways_inline= -DKN_FOR_SPIRV" --log "$log" "$@"
status=$?
if [ -s "$log" ]; then
    echo "Oclgrind found:"
    cat "$log"
    exit 1
fi
exit $status
