/* dist/mpi/reduce.c - reductions. MPI only recommends that its own give the same result each time; it may add in
 * another order when ranks lie elsewhere. The values are therefore only moved by MPI and added here in the order of the
 * ranks: every rank gets the values of one share of the elements from all, adds them, and gives the result to all. That
 * moves as much as the best algorithms of MPI_Allreduce do; what is small is gathered whole. */
#include <stdlib.h>
#include <string.h>

#include "dist/mpi/moves.h"
#include "dist/mpi/shared.h"

#define FEW_BYTES ((size_t)64 << 10) /* of all ranks: gathered whole */
#define MOST ((size_t)1 << 24)       /* elements at a time */

static void *scratch(kn_transport *self, size_t bytes)
{
    return kn_mpi_memory_of(&((kn_mpi_transport *)self)->scratch, bytes);
}

/* A reduction of some elements. */
typedef struct reduction {
    kn_transport *self;
    kn_dtype dtype;
    kn_reduce_op op;
    size_t element; /* bytes */
    int root;
} reduction;

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
    const size_t bytes = count * r->element;
    void *blocks = scratch(r->self, bytes * (size_t)r->self->size);
    if (!blocks)
        return KN_ERR_MEMORY;
    const kn_status status = kn_mpi_gather(r->self, data, bytes, blocks, r->root);
    if (status == KN_OK && (r->root == KN_EVERY_RANK || r->root == r->self->rank))
        fold(r, blocks, count, data);
    return status;
}

/* Which elements each rank adds, and where their blocks are, in bytes; four arrays in one, and the parts to compare. */
typedef struct shares {
    int *counts, *places; /* of all ranks, in the data */
    int *blocks, *starts; /* of this rank's share from each rank */
    kn_mpi_part *given, *got;
} shares;

static void free_shares(shares *s)
{
    free(s->counts);
    free(s->given);
}

static kn_status divide(const reduction *r, size_t count, shares *s)
{
    const size_t size = (size_t)r->self->size, e = r->element;
    s->counts = calloc(4 * size, sizeof(int));
    s->given = calloc(2 * size, sizeof *s->given);
    if (!s->counts || !s->given)
        return kn_mpi_host->fail(KN_ERR_MEMORY, "out of host memory: a reduction");
    s->places = s->counts + size;
    s->blocks = s->places + size;
    s->starts = s->blocks + size;
    s->got = s->given + size;
    for (size_t i = 0; i < size; i++) {
        s->places[i] = (int)(count * i / size * e);
        s->counts[i] = (int)(count * (i + 1) / size * e) - s->places[i];
    }
    for (size_t i = 0; i < size; i++) {
        s->blocks[i] = s->counts[r->self->rank];
        s->starts[i] = (int)i * s->blocks[i];
    }
    return KN_OK;
}

static void list_parts(const kn_transport *self, kn_mpi_part *parts, const char *data, const int *places,
                       const int *counts)
{
    for (int i = 0; i < self->size; i++)
        parts[i] = (kn_mpi_part){data + places[i], (size_t)counts[i]};
}

/* Every rank's share to that rank. */
static kn_status exchange(const reduction *r, const shares *s, const char *data, char *blocks)
{
    const kn_status status = kn_mpi_end_call(r->self,
                                             MPI_Alltoallv(data, s->counts, s->places, MPI_BYTE, blocks, s->blocks,
                                                           s->starts, MPI_BYTE, kn_mpi_comm(r->self)),
                                             "reduction");
    list_parts(r->self, s->given, data, s->places, s->counts);
    list_parts(r->self, s->got, blocks, s->starts, s->blocks);
    return status == KN_OK ? kn_mpi_check_exchange(r->self, s->given, s->got) : status;
}

/* The sums to the root. */
static kn_status collect(const reduction *r, const shares *s, char *data)
{
    const int rank = r->self->rank, mine = s->counts[rank];
    MPI_Comm comm = kn_mpi_comm(r->self);
    const char *own = data + s->places[rank];
    const bool gets_all = r->root == KN_EVERY_RANK || rank == r->root;
    const int error = r->root == KN_EVERY_RANK
                          ? MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, data, s->counts, s->places, MPI_BYTE, comm)
                          : MPI_Gatherv(gets_all ? MPI_IN_PLACE : own, mine, MPI_BYTE, data, s->counts, s->places,
                                        MPI_BYTE, r->root, comm);
    const kn_status status = kn_mpi_end_call(r->self, error, "reduction");
    list_parts(r->self, s->got, data, s->places, s->counts);
    return status == KN_OK
               ? kn_mpi_check_gathered(r->self, (kn_mpi_part){own, (size_t)mine}, gets_all ? s->got : NULL, r->root)
               : status;
}

/* Other ranks than the root keep their values. */
static kn_status exchange_and_fold(const reduction *r, char *data, size_t count)
{
    shares s = {0};
    kn_status status = divide(r, count, &s);
    const size_t mine = status == KN_OK ? (size_t)s.counts[r->self->rank] : 0;
    char *blocks = status == KN_OK ? scratch(r->self, mine * (size_t)(r->self->size + 1)) : NULL;
    if (!blocks) {
        free_shares(&s);
        return KN_ERR_MEMORY;
    }
    const bool keeps = r->root != KN_EVERY_RANK && r->root != r->self->rank;
    char *own = data + s.places[r->self->rank], *kept = blocks + mine * (size_t)r->self->size;
    if (keeps)
        memcpy(kept, own, mine);
    status = exchange(r, &s, data, blocks);
    if (status == KN_OK) {
        fold(r, blocks, mine / r->element, own);
        status = collect(r, &s, data);
    }
    if (keeps)
        memcpy(own, kept, mine);
    free_shares(&s);
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

/* --- the table's functions ---------------------------------------------------------------------------------------- */

kn_status kn_mpi_reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op, int root)
{
    const reduction r = {self, dtype, op, kn_mpi_host->dtype_size(dtype), root};
    if (((kn_mpi_transport *)self)->shared)
        return kn_mpi_shared_reduce(self, data, count, dtype, op, root);
    return reduce_in_order(&r, data, count);
}

kn_status kn_mpi_all_reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op)
{
    return kn_mpi_reduce(self, data, count, dtype, op, KN_EVERY_RANK);
}

/* Block by block through the exchange, whose sizes may be of any size. */
kn_status kn_mpi_reduce_scatter(kn_transport *self, const void *blocks, size_t count, kn_dtype dtype, kn_reduce_op op,
                                void *block)
{
    const reduction r = {self, dtype, op, kn_mpi_host->dtype_size(dtype), KN_EVERY_RANK};
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
