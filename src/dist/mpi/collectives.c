/* dist/mpi/collectives.c - the table of a back end, by MPI's functions. */
#include <limits.h>
#include <stdlib.h>

#include "dist/mpi/monitor.h"

/* In pieces that MPI's counts can tell. */
#define MOST ((size_t)1 << 30)

static kn_status all_reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op)
{
    kn_mpi_monitor_count_call();
    const size_t element = kn_mpi_host->dtype_size(dtype);
    for (size_t first = 0; first < count; first += MOST) {
        const size_t piece = count - first < MOST ? count - first : MOST;
        const int error = MPI_Allreduce(MPI_IN_PLACE, (char *)data + first * element, (int)piece, kn_mpi_type(dtype),
                                        kn_mpi_operation(dtype, op), kn_mpi_comm(self));
        if (error != MPI_SUCCESS)
            return kn_mpi_check(error, "all_reduce");
    }
    return KN_OK;
}

static kn_status reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op, int root)
{
    kn_mpi_monitor_count_call();
    const size_t element = kn_mpi_host->dtype_size(dtype);
    for (size_t first = 0; first < count; first += MOST) {
        const size_t piece = count - first < MOST ? count - first : MOST;
        char *here = (char *)data + first * element;
        const bool is_root = self->rank == root;
        const int error = MPI_Reduce(is_root ? MPI_IN_PLACE : here, is_root ? here : NULL, (int)piece,
                                     kn_mpi_type(dtype), kn_mpi_operation(dtype, op), root, kn_mpi_comm(self));
        if (error != MPI_SUCCESS)
            return kn_mpi_check(error, "reduce");
    }
    return KN_OK;
}

static kn_status broadcast(kn_transport *self, void *data, size_t bytes, int root)
{
    kn_mpi_monitor_count_call();
    MPI_Datatype type;
    int count;
    kn_status status = kn_mpi_block(bytes, &type, &count);
    if (status == KN_OK)
        status = kn_mpi_check(MPI_Bcast(data, count, type, root, kn_mpi_comm(self)), "broadcast");
    kn_mpi_block_free(&type);
    return status;
}

static kn_status all_gather(kn_transport *self, const void *block, size_t bytes, void *blocks)
{
    kn_mpi_monitor_count_call();
    MPI_Datatype type;
    int count;
    kn_status status = kn_mpi_block(bytes, &type, &count);
    if (status == KN_OK)
        status = kn_mpi_check(MPI_Allgather(block, count, type, blocks, count, type, kn_mpi_comm(self)), "all_gather");
    kn_mpi_block_free(&type);
    return status;
}

static kn_status gather(kn_transport *self, const void *block, size_t bytes, void *blocks, int root)
{
    kn_mpi_monitor_count_call();
    MPI_Datatype type;
    int count;
    kn_status status = kn_mpi_block(bytes, &type, &count);
    if (status == KN_OK)
        status = kn_mpi_check(MPI_Gather(block, count, type, blocks, count, type, root, kn_mpi_comm(self)), "gather");
    kn_mpi_block_free(&type);
    return status;
}

static kn_status scatter(kn_transport *self, const void *blocks, size_t bytes, void *block, int root)
{
    kn_mpi_monitor_count_call();
    MPI_Datatype type;
    int count;
    kn_status status = kn_mpi_block(bytes, &type, &count);
    if (status == KN_OK)
        status = kn_mpi_check(MPI_Scatter(blocks, count, type, block, count, type, root, kn_mpi_comm(self)), "scatter");
    kn_mpi_block_free(&type);
    return status;
}

static kn_status reduce_scatter(kn_transport *self, const void *blocks, size_t count, kn_dtype dtype, kn_reduce_op op,
                                void *block)
{
    kn_mpi_monitor_count_call();
    if (count > INT_MAX)
        return kn_mpi_host->fail(KN_ERR_SHAPE, "MPI takes at most %d elements per rank, not %zu: use smaller tensors",
                                 INT_MAX, count);
    return kn_mpi_check(MPI_Reduce_scatter_block(blocks, block, (int)count, kn_mpi_type(dtype),
                                                 kn_mpi_operation(dtype, op), kn_mpi_comm(self)),
                        "reduce_scatter");
}

static kn_status barrier(kn_transport *self) { return kn_mpi_check(MPI_Barrier(kn_mpi_comm(self)), "barrier"); }

/* --- messages ----------------------------------------------------------------------------------------------------- */

static kn_status send(kn_transport *self, const void *data, size_t bytes, int to, int tag)
{
    MPI_Datatype type;
    int count;
    kn_status status = kn_mpi_block(bytes, &type, &count);
    if (status == KN_OK)
        status = kn_mpi_check(MPI_Send(data, count, type, to, tag, kn_mpi_comm(self)), "send");
    kn_mpi_block_free(&type);
    return status;
}

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

static kn_status all_to_all(kn_transport *self, const void *input, const size_t *input_sizes, void *output,
                            const size_t *output_sizes)
{
    kn_mpi_monitor_count_call();
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
    .all_reduce = all_reduce,
    .reduce = reduce,
    .broadcast = broadcast,
    .all_gather = all_gather,
    .gather = gather,
    .scatter = scatter,
    .reduce_scatter = reduce_scatter,
    .all_to_all = all_to_all,
    .barrier = barrier,
    .send = send,
    .receive = receive,
    .check = kn_mpi_monitor_check,
    .split = split,
    .free = kn_mpi_transport_free,
};
