/* dist/mpi/reduce.c - reductions. MPI only recommends that its own give the same result each time; it may add in
 * another order when ranks lie elsewhere. Where order matters the values are therefore only moved by MPI and added here
 * in the order of the ranks: every rank gets the values of one share of the elements from all, adds them, and gives the
 * result to all. That moves as much as the best algorithms of MPI_Allreduce do; what is small is gathered whole. */
#include <stdlib.h>
#include <string.h>

#include "dist/mpi/shared.h"

#define FEW_BYTES ((size_t)64 << 10) /* of all ranks: gathered whole */
#define MOST ((size_t)1 << 24)       /* elements at a time */

/* Sums of integers do not depend on the order. */
static bool is_floating(kn_dtype dtype) { return dtype <= KN_BF16; }

/* Memory that is kept for the next call; NULL with an error. */
static void *scratch(kn_transport *self, size_t bytes)
{
    kn_mpi_transport *transport = (kn_mpi_transport *)self;
    if (transport->scratch_bytes < bytes) {
        free(transport->scratch);
        transport->scratch = malloc(bytes);
        transport->scratch_bytes = transport->scratch ? bytes : 0;
    }
    if (!transport->scratch)
        kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: cannot allocate %zu bytes for a reduction", bytes);
    return transport->scratch;
}

/* A reduction of some elements. */
typedef struct reduction {
    kn_transport *self;
    kn_dtype dtype;
    kn_reduce_op op;
    size_t element; /* bytes */
    int root;       /* ALL: every rank gets the result */
} reduction;
#define ALL (-1)

/* result = the ranks' blocks of `count` elements, in their order. */
static void fold(const reduction *r, const char *blocks, size_t count, void *result)
{
    const size_t bytes = count * r->element;
    const void *sum = blocks; /* so far */
    if (r->self->size == 1)
        memcpy(result, blocks, bytes);
    for (int rank = 1; rank < r->self->size; rank++, sum = result)
        kn_mpi_host->reduce(r->dtype, r->op, result, sum, blocks + (size_t)rank * bytes, count);
}

static kn_status gather_and_fold(const reduction *r, char *data, size_t count)
{
    const int bytes = (int)(count * r->element);
    MPI_Comm comm = kn_mpi_comm(r->self);
    void *blocks = scratch(r->self, (size_t)bytes * (size_t)r->self->size);
    if (!blocks)
        return KN_ERR_MEMORY;
    const int error = r->root == ALL ? MPI_Allgather(data, bytes, MPI_BYTE, blocks, bytes, MPI_BYTE, comm)
                                     : MPI_Gather(data, bytes, MPI_BYTE, blocks, bytes, MPI_BYTE, r->root, comm);
    if (error == MPI_SUCCESS && (r->root == ALL || r->root == r->self->rank))
        fold(r, blocks, count, data);
    return kn_mpi_check(error, "reduction");
}

/* Which elements each rank adds, and where their blocks are; four arrays in one. */
typedef struct shares {
    int *counts, *places; /* of all ranks, in the data */
    int *blocks, *starts; /* of this rank's share from each rank */
} shares;

static kn_status divide(const kn_transport *self, size_t count, shares *s)
{
    const size_t size = (size_t)self->size;
    s->counts = calloc(4 * size, sizeof(int));
    if (!s->counts)
        return kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: a reduction");
    s->places = s->counts + size;
    s->blocks = s->places + size;
    s->starts = s->blocks + size;
    for (size_t r = 0; r < size; r++) {
        s->places[r] = (int)(count * r / size);
        s->counts[r] = (int)(count * (r + 1) / size) - s->places[r];
    }
    for (size_t r = 0; r < size; r++) {
        s->blocks[r] = s->counts[self->rank];
        s->starts[r] = (int)r * s->blocks[r];
    }
    return KN_OK;
}

static int exchange(const reduction *r, const shares *s, char *data, char *blocks)
{
    const int rank = r->self->rank, mine = s->counts[rank];
    MPI_Comm comm = kn_mpi_comm(r->self);
    MPI_Datatype type = kn_mpi_type(r->dtype);
    char *own = data + (size_t)s->places[rank] * r->element;
    const int error = MPI_Alltoallv(data, s->counts, s->places, type, blocks, s->blocks, s->starts, type, comm);
    if (error != MPI_SUCCESS)
        return error;
    fold(r, blocks, (size_t)mine, own);
    if (r->root == ALL)
        return MPI_Allgatherv(MPI_IN_PLACE, 0, type, data, s->counts, s->places, type, comm);
    const bool is_root = rank == r->root;
    return MPI_Gatherv(is_root ? MPI_IN_PLACE : own, mine, type, data, s->counts, s->places, type, r->root, comm);
}

/* Other ranks than the root keep their values. */
static kn_status exchange_and_fold(const reduction *r, char *data, size_t count)
{
    shares s = {0};
    kn_status status = divide(r->self, count, &s);
    if (status != KN_OK)
        return status;
    const size_t mine = (size_t)s.counts[r->self->rank] * r->element;
    char *blocks = scratch(r->self, mine * (size_t)(r->self->size + 1));
    const bool keeps = r->root != ALL && r->root != r->self->rank;
    char *own = data + (size_t)s.places[r->self->rank] * r->element, *kept = blocks + mine * (size_t)r->self->size;
    if (blocks && keeps)
        memcpy(kept, own, mine);
    status = blocks ? kn_mpi_check(exchange(r, &s, data, blocks), "reduction") : KN_ERR_MEMORY;
    if (blocks && keeps)
        memcpy(own, kept, mine);
    free(s.counts);
    return status;
}

static kn_status reduce_in_order(const reduction *r, char *data, size_t count)
{
    kn_status status = KN_OK;
    for (size_t first = 0; first < count && status == KN_OK && r->self->size > 1; first += MOST) {
        const size_t piece = count - first < MOST ? count - first : MOST;
        const bool is_small = piece * r->element * (size_t)r->self->size <= FEW_BYTES;
        status = (is_small ? gather_and_fold : exchange_and_fold)(r, data + first * r->element, piece);
    }
    return status;
}

/* --- what order does not matter to -------------------------------------------------------------------------------- */

static int reduce_whole(const reduction *r, void *data, int count)
{
    MPI_Datatype type = kn_mpi_type(r->dtype);
    MPI_Op op = kn_mpi_operation(r->dtype, r->op);
    if (r->root == ALL)
        return MPI_Allreduce(MPI_IN_PLACE, data, count, type, op, kn_mpi_comm(r->self));
    const bool is_root = r->self->rank == r->root;
    return MPI_Reduce(is_root ? MPI_IN_PLACE : data, is_root ? data : NULL, count, type, op, r->root,
                      kn_mpi_comm(r->self));
}

static kn_status reduce_anyhow(const reduction *r, char *data, size_t count)
{
    int error = MPI_SUCCESS;
    for (size_t first = 0; first < count && error == MPI_SUCCESS; first += MOST) {
        const size_t piece = count - first < MOST ? count - first : MOST;
        error = reduce_whole(r, data + first * r->element, (int)piece);
    }
    return kn_mpi_check(error, "reduction");
}

/* --- the table's functions ---------------------------------------------------------------------------------------- */

kn_status kn_mpi_reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op, int root)
{
    const reduction r = {self, dtype, op, kn_mpi_host->dtype_size(dtype), root};
    if (((kn_mpi_transport *)self)->shared)
        return kn_mpi_shared_reduce(self, data, count, dtype, op, root);
    return (is_floating(dtype) ? reduce_in_order : reduce_anyhow)(&r, data, count);
}

kn_status kn_mpi_all_reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op)
{
    return kn_mpi_reduce(self, data, count, dtype, op, ALL);
}

/* Block by block through the exchange, whose sizes may be of any size. */
kn_status kn_mpi_reduce_scatter(kn_transport *self, const void *blocks, size_t count, kn_dtype dtype, kn_reduce_op op,
                                void *block)
{
    const reduction r = {self, dtype, op, kn_mpi_host->dtype_size(dtype), ALL};
    const size_t bytes = count * r.element, size = (size_t)self->size;
    char *received = scratch(self, bytes * size);
    size_t *sizes = malloc(size * sizeof *sizes);
    for (size_t rank = 0; sizes && rank < size; rank++)
        sizes[rank] = bytes;
    kn_status status = !received ? KN_ERR_MEMORY
                       : !sizes  ? kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: a reduction")
                                 : kn_mpi_all_to_all(self, blocks, sizes, received, sizes);
    if (status == KN_OK)
        fold(&r, received, count, block);
    free(sizes);
    return status;
}
