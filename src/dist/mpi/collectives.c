/* dist/mpi/collectives.c - the table of a back end, by MPI's functions. */
#include <stdlib.h>

#include "dist/mpi/monitor.h"
#include "dist/mpi/shared.h"

/* --- one block, one call ------------------------------------------------------------------------------------------ */

typedef struct move {
    const void *from;
    void *to;
    int other, tag; /* the root, or who receives */
    MPI_Datatype type;
    int count; /* of the type: a block */
    MPI_Comm comm;
} move;

/* Makes the call with a type for blocks of `bytes`. */
static kn_status move_block(const kn_transport *self, const char *name, int (*call)(const move *m), size_t bytes,
                            move m)
{
    m.comm = kn_mpi_comm(self);
    kn_status status = kn_mpi_block(bytes, &m.type, &m.count);
    if (status == KN_OK)
        status = kn_mpi_check(call(&m), name);
    kn_mpi_block_free(&m.type);
    return status;
}

static int call_broadcast(const move *m) { return MPI_Bcast(m->to, m->count, m->type, m->other, m->comm); }
static int call_send(const move *m) { return MPI_Send(m->from, m->count, m->type, m->other, m->tag, m->comm); }

static int call_all_gather(const move *m)
{
    return MPI_Allgather(m->from, m->count, m->type, m->to, m->count, m->type, m->comm);
}

static int call_gather(const move *m)
{
    return MPI_Gather(m->from, m->count, m->type, m->to, m->count, m->type, m->other, m->comm);
}

static int call_scatter(const move *m)
{
    return MPI_Scatter(m->from, m->count, m->type, m->to, m->count, m->type, m->other, m->comm);
}

static bool shares_memory(const kn_transport *self) { return ((const kn_mpi_transport *)self)->shared != NULL; }

static kn_status broadcast(kn_transport *self, void *data, size_t bytes, int root)
{
    if (shares_memory(self))
        return kn_mpi_shared_broadcast(self, data, bytes, root);
    return move_block(self, "broadcast", call_broadcast, bytes, (move){.to = data, .other = root});
}

static kn_status all_gather(kn_transport *self, const void *block, size_t bytes, void *blocks)
{
    if (shares_memory(self))
        return kn_mpi_shared_all_gather(self, block, bytes, blocks);
    return move_block(self, "all_gather", call_all_gather, bytes, (move){.from = block, .to = blocks});
}

static kn_status gather(kn_transport *self, const void *block, size_t bytes, void *blocks, int root)
{
    return move_block(self, "gather", call_gather, bytes, (move){.from = block, .to = blocks, .other = root});
}

static kn_status scatter(kn_transport *self, const void *blocks, size_t bytes, void *block, int root)
{
    return move_block(self, "scatter", call_scatter, bytes, (move){.from = blocks, .to = block, .other = root});
}

static kn_status send(kn_transport *self, const void *data, size_t bytes, int to, int tag)
{
    return move_block(self, "send", call_send, bytes, (move){.from = data, .other = to, .tag = tag});
}

static kn_status barrier(kn_transport *self)
{
    return shares_memory(self) ? kn_mpi_shared_barrier(self) : kn_mpi_check(MPI_Barrier(kn_mpi_comm(self)), "barrier");
}

/* --- blocks of any size ------------------------------------------------------------------------------------------- */

/* The size is known before the message is received: one that does not fit is taken and refused. */
static kn_status receive(kn_transport *self, void *data, size_t bytes, int from, int tag, int *sender)
{
    MPI_Message message;
    MPI_Status probed;
    MPI_Count sent = 0;
    const int source = from == KN_ANY_RANK ? MPI_ANY_SOURCE : from;
    kn_status status = kn_mpi_check(MPI_Mprobe(source, tag, kn_mpi_comm(self), &message, &probed), "receive");
    if (status != KN_OK)
        return status;
    MPI_Get_elements_x(&probed, MPI_BYTE, &sent);
    MPI_Datatype type;
    int count;
    void *place = (size_t)sent == bytes ? data : malloc((size_t)sent + 1);
    if (!place)
        return kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: cannot allocate %zu bytes for a message",
                                 (size_t)sent);
    status = kn_mpi_block((size_t)sent, &type, &count);
    if (status == KN_OK)
        status = kn_mpi_check(MPI_Mrecv(place, count, type, &message, MPI_STATUS_IGNORE), "receive");
    kn_mpi_block_free(&type);
    if (sender)
        *sender = probed.MPI_SOURCE;
    if (place == data)
        return status;
    free(place);
    return status != KN_OK
               ? status
               : kn_mpi_host->fail(KN_ERR_SHAPE, "rank %d sent %zu bytes, but the tensor to receive has %zu",
                                   probed.MPI_SOURCE, (size_t)sent, bytes);
}

/* A message for each pair: sizes and places may be larger than MPI_Alltoallv can tell. */
#define EXCHANGE_TAG 32767

typedef struct parcels {
    MPI_Request *requests; /* two per rank, what is received first */
    MPI_Datatype *types;
    int made; /* types */
} parcels;

static kn_status start_parcels(kn_transport *self, const char *input, const size_t *input_sizes, char *output,
                               const size_t *output_sizes, parcels *p)
{
    const int size = self->size;
    for (int i = 0; i < 2 * size; i++) {
        const int other = i % size;
        const bool receives = i < size;
        const size_t bytes = receives ? output_sizes[other] : input_sizes[other];
        int count;
        kn_status status = kn_mpi_block(bytes, &p->types[i], &count);
        p->made++;
        if (status == KN_OK)
            status = kn_mpi_check(
                receives
                    ? MPI_Irecv(output, count, p->types[i], other, EXCHANGE_TAG, kn_mpi_comm(self), &p->requests[i])
                    : MPI_Isend(input, count, p->types[i], other, EXCHANGE_TAG, kn_mpi_comm(self), &p->requests[i]),
                "all_to_all");
        if (status != KN_OK)
            return status;
        if (receives)
            output += bytes;
        else
            input += bytes;
    }
    int error = MPI_SUCCESS;
    for (int i = 0; i < 2 * size && error == MPI_SUCCESS; i++)
        error = MPI_Wait(&p->requests[i], MPI_STATUS_IGNORE);
    return kn_mpi_check(error, "all_to_all");
}

kn_status kn_mpi_all_to_all(kn_transport *self, const void *input, const size_t *input_sizes, void *output,
                            const size_t *output_sizes)
{
    const size_t count = 2 * (size_t)self->size;
    parcels p = {.requests = calloc(count, sizeof *p.requests), .types = calloc(count, sizeof *p.types)};
    kn_status status = p.requests && p.types ? start_parcels(self, input, input_sizes, output, output_sizes, &p)
                                             : kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: all_to_all");
    for (int i = 0; i < p.made; i++)
        kn_mpi_block_free(&p.types[i]);
    free(p.requests);
    free(p.types);
    return status;
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
    .gather = gather,
    .scatter = scatter,
    .reduce_scatter = kn_mpi_reduce_scatter,
    .all_to_all = kn_mpi_all_to_all,
    .barrier = barrier,
    .send = send,
    .receive = receive,
    .begin = kn_mpi_monitor_count_call,
    .check = kn_mpi_monitor_check,
    .split = split,
    .free = kn_mpi_transport_free,
};
