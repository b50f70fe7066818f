#!/bin/sh
# Run by `hosts` on the first host: starts PROGRAM on each of $KOINE_HOSTS, over TCP. mpirun.sh HOSTS MPIEXEC PROGRAM...
hosts=$1 mpiexec=$2
shift 2
if "$mpiexec" --version 2>&1 | grep -q "Open MPI\|OpenRTE"; then
    exec "$mpiexec" --mca plm_rsh_agent "$hosts" --host "$KOINE_HOSTS" --mca plm_rsh_num_concurrent 16 \
        --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
        --mca mpi_yield_when_idle 1 ${MPIEXEC_OPTIONS:-} "$@"
fi
UCX_TLS=tcp,self UCX_NET_DEVICES=eth0
export UCX_TLS UCX_NET_DEVICES
exec "$mpiexec" -launcher ssh -launcher-exec "$hosts" -hosts "$KOINE_HOSTS" -iface eth0 ${MPIEXEC_OPTIONS:-} "$@"
