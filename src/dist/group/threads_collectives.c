/* dist/group/threads_collectives.c - collectives of threads, through each other's memory.
 *
 * A collective has three parts: every rank shows its memory, reads what it needs of the others', and leaves. Reductions
 * add in the order of the ranks. */
#include <string.h>

#include "dist/group/threads.h"

/* Rank 0's elements of the share become the reduction of all. */
static void reduce_share(kn_transport *self, size_t first, size_t count, kn_dtype dtype, kn_reduce_op op)
{
    const size_t offset = first * kn_dtype_size(dtype);
    char *sum = kn_threads_shown(self, 0) + offset;
    for (int r = 1; r < self->size; r++)
        kn_host_reduce(dtype, op, sum, sum, kn_threads_shown(self, r) + offset, count);
}

static kn_status all_reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op)
{
    const size_t size = (size_t)self->size, element = kn_dtype_size(dtype);
    const size_t first = count * (size_t)self->rank / size, end = count * ((size_t)self->rank + 1) / size;
    KN_TRY(kn_threads_show(self, data, NULL));
    reduce_share(self, first, end - first, dtype, op);
    for (int r = 1; r < self->size; r++)
        memcpy(kn_threads_shown(self, r) + first * element, kn_threads_shown(self, 0) + first * element,
               (end - first) * element);
    return kn_threads_leave(self);
}

static kn_status reduce(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op, int root)
{
    const size_t bytes = count * kn_dtype_size(dtype);
    char *sum = NULL;
    if (self->rank == root && !(sum = kn_malloc(bytes)))
        return KN_ERR_MEMORY;
    kn_status status = kn_threads_show(self, data, NULL);
    if (status == KN_OK && sum) {
        memcpy(sum, kn_threads_shown(self, 0), bytes);
        for (int r = 1; r < self->size; r++)
            kn_host_reduce(dtype, op, sum, sum, kn_threads_shown(self, r), count);
    }
    if (status == KN_OK)
        status = kn_threads_leave(self);
    if (status == KN_OK && sum)
        memcpy(data, sum, bytes);
    kn_free(sum);
    return status;
}

static kn_status broadcast(kn_transport *self, void *data, size_t bytes, int root)
{
    KN_TRY(kn_threads_show(self, data, NULL));
    if (self->rank != root)
        memcpy(data, kn_threads_shown(self, root), bytes);
    return kn_threads_leave(self);
}

static kn_status gather(kn_transport *self, const void *block, size_t bytes, void *blocks, int root)
{
    KN_TRY(kn_threads_show(self, block, NULL));
    for (int r = 0; r < self->size && self->rank == root; r++)
        if (kn_threads_shown(self, r) != (char *)blocks + (size_t)r * bytes)
            memcpy((char *)blocks + (size_t)r * bytes, kn_threads_shown(self, r), bytes);
    return kn_threads_leave(self);
}

static kn_status all_gather(kn_transport *self, const void *block, size_t bytes, void *blocks)
{
    return gather(self, block, bytes, blocks, self->rank);
}

static kn_status scatter(kn_transport *self, const void *blocks, size_t bytes, void *block, int root)
{
    KN_TRY(kn_threads_show(self, blocks, NULL));
    memcpy(block, kn_threads_shown(self, root) + (size_t)self->rank * bytes, bytes);
    return kn_threads_leave(self);
}

static kn_status reduce_scatter(kn_transport *self, const void *blocks, size_t count, kn_dtype dtype, kn_reduce_op op,
                                void *block)
{
    const size_t bytes = count * kn_dtype_size(dtype), offset = (size_t)self->rank * bytes;
    KN_TRY(kn_threads_show(self, blocks, NULL));
    memcpy(block, kn_threads_shown(self, 0) + offset, bytes);
    for (int r = 1; r < self->size; r++)
        kn_host_reduce(dtype, op, block, block, kn_threads_shown(self, r) + offset, count);
    return kn_threads_leave(self);
}

static kn_status all_to_all(kn_transport *self, const void *input, const size_t *input_sizes, void *output,
                            const size_t *output_sizes)
{
    KN_TRY(kn_threads_show(self, input, input_sizes));
    char *to = output;
    for (int r = 0; r < self->size; to += output_sizes[r++]) {
        const char *from = kn_threads_shown(self, r);
        for (int before = 0; before < self->rank; before++)
            from += kn_board_of(self)->places[r].sizes[before];
        memcpy(to, from, output_sizes[r]);
    }
    return kn_threads_leave(self);
}

static kn_status barrier(kn_transport *self)
{
    KN_TRY(kn_threads_show(self, NULL, NULL));
    return kn_threads_leave(self);
}

const kn_transport_class kn_threads_class = {
    .all_reduce = all_reduce,
    .reduce = reduce,
    .broadcast = broadcast,
    .all_gather = all_gather,
    .gather = gather,
    .scatter = scatter,
    .reduce_scatter = reduce_scatter,
    .all_to_all = all_to_all,
    .barrier = barrier,
    .send = kn_threads_send,
    .receive = kn_threads_receive,
    .split = kn_threads_split,
    .free = kn_threads_free,
};
