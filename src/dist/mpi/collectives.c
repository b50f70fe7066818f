/* dist/mpi/collectives.c - the table of a back end, by MPI's functions. */
#include "dist/mpi/monitor.h"
#include "dist/mpi/moves.h"
#include "dist/mpi/shared.h"

static bool shares_memory(const kn_transport *self) { return ((const kn_mpi_transport *)self)->shared != NULL; }

static kn_status broadcast(kn_transport *self, void *data, size_t bytes, int root)
{
    return (shares_memory(self) ? kn_mpi_shared_broadcast : kn_mpi_broadcast)(self, data, bytes, root);
}

static kn_status all_gather(kn_transport *self, const void *block, size_t bytes, void *blocks)
{
    return shares_memory(self) ? kn_mpi_shared_all_gather(self, block, bytes, blocks)
                               : kn_mpi_gather(self, block, bytes, blocks, KN_EVERY_RANK);
}

static kn_status barrier(kn_transport *self)
{
    return shares_memory(self) ? kn_mpi_shared_barrier(self)
                               : kn_mpi_end_call(self, MPI_Barrier(kn_mpi_comm(self)), "barrier");
}

static kn_status split(kn_transport *self, int color, int key, kn_transport **part)
{
    MPI_Comm comm;
    *part = NULL;
    kn_status status = kn_mpi_check(MPI_Comm_split(kn_mpi_comm(self), color < 0 ? MPI_UNDEFINED : color, key, &comm),
                                    "splitting the group");
    return status != KN_OK || comm == MPI_COMM_NULL
               ? status
               : kn_mpi_transport_on(comm, ((kn_mpi_transport *)self)->timeout, part);
}

const kn_transport_class kn_mpi_class = {
    .all_reduce = kn_mpi_all_reduce,
    .reduce = kn_mpi_reduce,
    .broadcast = broadcast,
    .all_gather = all_gather,
    .gather = kn_mpi_gather,
    .scatter = kn_mpi_scatter,
    .reduce_scatter = kn_mpi_reduce_scatter,
    .all_to_all = kn_mpi_all_to_all,
    .barrier = barrier,
    .send = kn_mpi_send,
    .receive = kn_mpi_receive,
    .begin = kn_mpi_monitor_count_call,
    .check = kn_mpi_monitor_check,
    .split = split,
    .free = kn_mpi_transport_free,
};
