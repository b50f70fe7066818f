/* dist/group/blocks.c - collectives that move a block of values per rank: gather, scatter and their relatives. The
 * blocks of all ranks go through one piece of host memory. */
#include "dist/group/call.h"

/* Host memory for `blocks` blocks of the shape of `like`, pinned if that is on a device. */
static kn_status new_blocks(kn_tensor **blocks, const kn_tensor *like, int count)
{
    const int64_t shape[] = {count, kn_numel(like)};
    kn_device *device = kn_device_of(like);
    return kn_device_is_host(device) ? kn_tensor_new(blocks, like->dtype, 2, shape, device)
                                     : kn_tensor_new_pinned(blocks, like->dtype, 2, shape, device);
}

/* Copies between `tensor` and the block that starts at element `first`, without waiting. */
static kn_status copy_block(kn_tensor *blocks, int64_t first, kn_tensor *tensor, bool to_tensor)
{
    kn_tensor *block;
    KN_PART(to_tensor ? KN_PART_COPY_UP : KN_PART_COPY_DOWN);
    KN_TRY(kn_tensor_view(&block, blocks, tensor->ndim, tensor->shape, NULL, first));
    kn_status status = to_tensor ? kn_tensor_copy_with(tensor, block, true) : kn_tensor_copy_with(block, tensor, true);
    kn_release(block);
    return status;
}

/* All of a list, one after another, NULL-terminated. */
static kn_status copy_list(kn_tensor *blocks, kn_tensor *const *tensors, bool to_tensors)
{
    int64_t first = 0;
    for (; *tensors; first += kn_numel(*tensors++))
        KN_TRY(copy_block(blocks, first, *tensors, to_tensors));
    return KN_OK;
}

/* --- gather and scatter ------------------------------------------------------------------------------------------- */

typedef struct buffers {
    kn_tensor *one, *all; /* one block; a block per rank. NULL: not needed here */
} buffers;

static void release_buffers(const kn_group *group, buffers *b)
{
    kn_group_release(group, b->one);
    kn_group_release(group, b->all);
}

static kn_status run_gather(kn_transport *transport, const kn_work *work, const void *mine, size_t bytes, void *all,
                            bool everywhere)
{
    KN_WAITING_PART(KN_PART_EXCHANGE);
    return everywhere ? transport->class->all_gather(transport, mine, bytes, all)
                      : transport->class->gather(transport, mine, bytes, all, work->root);
}

static kn_status gather_with(kn_group *group, kn_work *work, buffers *b, bool everywhere)
{
    kn_transport *transport = group->transport;
    const size_t bytes = (size_t)kn_numel(work->tensor) * kn_dtype_size(work->tensor->dtype);
    KN_TRY(new_blocks(&b->one, work->tensor, 1));
    KN_TRY(copy_block(b->one, 0, work->tensor, false));
    if (work->outputs)
        KN_TRY(new_blocks(&b->all, work->tensor, transport->size));
    const void *mine = kn_data(b->one);
    void *all = b->all ? kn_data(b->all) : NULL;
    if (!mine || (b->all && !all))
        return kn_error_status();
    KN_TRY(run_gather(transport, work, mine, bytes, all, everywhere));
    return work->outputs ? copy_list(b->all, work->outputs, true) : KN_OK;
}

static kn_status run_scatter(kn_transport *transport, const kn_work *work, const void *all, size_t count, void *mine,
                             bool reduces)
{
    KN_WAITING_PART(KN_PART_EXCHANGE);
    const kn_dtype dtype = work->tensor->dtype;
    const bool mean = work->op == KN_REDUCE_MEAN;
    if (!reduces)
        return transport->class->scatter(transport, all, count * kn_dtype_size(dtype), mine, work->root);
    KN_TRY(transport->class->reduce_scatter(transport, all, count, dtype, mean ? KN_REDUCE_SUM : work->op, mine));
    if (mean)
        kn_host_divide(dtype, mine, count, transport->size);
    return KN_OK;
}

static kn_status scatter_with(kn_group *group, kn_work *work, buffers *b, bool reduces)
{
    kn_transport *transport = group->transport;
    const size_t count = (size_t)kn_numel(work->tensor);
    KN_TRY(new_blocks(&b->one, work->tensor, 1));
    if (work->inputs) {
        KN_TRY(new_blocks(&b->all, work->tensor, transport->size));
        KN_TRY(copy_list(b->all, work->inputs, false));
    }
    void *mine = kn_data(b->one), *all = b->all ? kn_data(b->all) : NULL;
    if (!mine || (b->all && !all))
        return kn_error_status();
    KN_TRY(run_scatter(transport, work, all, count, mine, reduces));
    return copy_block(b->one, 0, work->tensor, true);
}

static kn_status with_buffers(kn_group *group, kn_work *work, bool flag,
                              kn_status (*run)(kn_group *group, kn_work *work, buffers *b, bool flag))
{
    buffers b = {NULL, NULL};
    kn_status status = run(group, work, &b, flag);
    release_buffers(group, &b);
    return status;
}

kn_status kn_run_all_gather(kn_group *group, kn_work *work) { return with_buffers(group, work, true, gather_with); }
kn_status kn_run_gather(kn_group *group, kn_work *work) { return with_buffers(group, work, false, gather_with); }
kn_status kn_run_scatter(kn_group *group, kn_work *work) { return with_buffers(group, work, false, scatter_with); }
kn_status kn_run_reduce_scatter(kn_group *group, kn_work *work)
{
    return with_buffers(group, work, true, scatter_with);
}

/* --- all to all --------------------------------------------------------------------------------------------------- */

/* The blocks of a list, and the bytes of each. */
static kn_status new_list(kn_tensor **all, kn_tensor *const *tensors, size_t *sizes)
{
    int64_t total = 0;
    for (int r = 0; tensors[r]; r++) {
        sizes[r] = (size_t)kn_numel(tensors[r]) * kn_dtype_size(tensors[r]->dtype);
        total += kn_numel(tensors[r]);
    }
    kn_device *device = kn_device_of(tensors[0]);
    return kn_device_is_host(device) ? kn_tensor_new(all, tensors[0]->dtype, 1, &total, device)
                                     : kn_tensor_new_pinned(all, tensors[0]->dtype, 1, &total, device);
}

/* Do the sizes that the others send fit? If not, all ranks must refuse, or the others would wait. */
static kn_status check_sizes(kn_transport *transport, const size_t *sent, const size_t *expected)
{
    const size_t size = (size_t)transport->size;
    uint64_t *table = kn_calloc(2 * size * size, sizeof *table), *mine = kn_calloc(2 * size, sizeof *mine);
    if (!table || !mine) {
        kn_free(table);
        kn_free(mine);
        return KN_ERR_MEMORY;
    }
    for (size_t r = 0; r < size; r++) {
        mine[r] = sent[r];
        mine[size + r] = expected[r];
    }
    kn_status status = transport->class->all_gather(transport, mine, 2 * size * sizeof *mine, table);
    for (size_t to = 0; to < size && status == KN_OK; to++)
        for (size_t from = 0; from < size && status == KN_OK; from++)
            if (table[2 * size * from + to] != table[2 * size * to + size + from])
                status = kn_fail(KN_ERR_SHAPE, "rank %zu sends %llu bytes to rank %zu, which expects %llu", from,
                                 (unsigned long long)table[2 * size * from + to], to,
                                 (unsigned long long)table[2 * size * to + size + from]);
    kn_transport_release(transport, table);
    kn_transport_release(transport, mine);
    return status;
}

static kn_status run_all_to_all(kn_transport *transport, const void *input, const size_t *sent, void *output,
                                const size_t *expected)
{
    KN_WAITING_PART(KN_PART_EXCHANGE);
    return transport->class->all_to_all(transport, input, sent, output, expected);
}

static kn_status exchange_lists(kn_transport *transport, kn_work *work, buffers *b, size_t *sizes)
{
    size_t *sent = sizes, *expected = sizes + transport->size;
    KN_TRY(new_list(&b->one, work->inputs, sent));
    KN_TRY(new_list(&b->all, work->outputs, expected));
    KN_TRY(check_sizes(transport, sent, expected));
    KN_TRY(copy_list(b->one, work->inputs, false));
    const void *input = kn_data(b->one);
    void *output = kn_data(b->all);
    if (!input || !output)
        return kn_error_status();
    KN_TRY(run_all_to_all(transport, input, sent, output, expected));
    return copy_list(b->all, work->outputs, true);
}

kn_status kn_run_all_to_all(kn_group *group, kn_work *work)
{
    buffers b = {NULL, NULL};
    size_t *sizes = kn_calloc(2 * (size_t)group->transport->size, sizeof *sizes);
    kn_status status = sizes ? exchange_lists(group->transport, work, &b, sizes) : KN_ERR_MEMORY;
    release_buffers(group, &b);
    kn_free(sizes);
    return status;
}
