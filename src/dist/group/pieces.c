/* dist/group/pieces.c - collectives that change one tensor in place: all_reduce, reduce, broadcast, and all_gather of
 * blocks that lie one after another.
 *
 * The memory of a CPU device is exchanged itself. A tensor on another device goes through pinned memory in pieces:
 * while the ranks exchange one, the next is copied from the device and the one before to it. */
#include "dist/group/call.h"

#define PIECE_BYTES ((int64_t)4 << 20)
#define PIECES 3

typedef kn_status (*exchange)(kn_group *group, const kn_work *work, void *data, size_t count);

typedef struct direction {
    bool from, to;   /* the device's values are needed; they change */
    int blocks, own; /* not 0: the tensor has that many, and only this rank's own is needed; it is one piece */
} direction;

/* A view of `count` elements of a one-dimensional tensor. */
static kn_status part_of(kn_tensor **part, kn_tensor *flat, int64_t first, int64_t count)
{
    return kn_tensor_view(part, flat, 1, &count, &(int64_t){1}, flat->offset + first);
}

/* A piece of pinned memory, at least `bytes` large, as a tensor of `count` elements. Owned. */
static kn_status pinned_piece(kn_group *group, int slot, const kn_tensor *like, int64_t count, kn_tensor **piece)
{
    kn_tensor **kept = &group->pieces[slot];
    const int64_t bytes = count * (int64_t)kn_dtype_size(like->dtype);
    if (*kept && (kn_storage_bytes((*kept)->storage) < (size_t)bytes || !kn_is_pinned(*kept))) {
        kn_release(*kept);
        *kept = NULL;
    }
    if (!*kept)
        KN_TRY(kn_tensor_new_pinned(kept, KN_U8, 1, &(int64_t){bytes > PIECE_BYTES ? bytes : PIECE_BYTES},
                                    kn_device_of(like)));
    return kn_tensor_on(piece, (*kept)->storage, like->dtype, 1, &count, NULL, 0);
}

/* One piece on its way: a view of the tensor and the pinned memory. */
typedef struct piece {
    kn_tensor *there, *here;
} piece;

static void release_piece(const kn_group *group, piece *p)
{
    kn_group_release(group, p->there);
    kn_group_release(group, p->here);
    *p = (piece){NULL, NULL};
}

/* Of the tensor, or of this rank's block of it. */
static kn_status copy_down(const kn_group *group, piece *p, direction way)
{
    KN_PART(KN_PART_COPY_DOWN);
    if (way.blocks == 0)
        return kn_tensor_copy_with(p->here, p->there, true);
    const int64_t block = kn_numel(p->here) / way.blocks;
    piece own = {NULL, NULL};
    kn_status status = part_of(&own.there, p->there, way.own * block, block);
    if (status == KN_OK)
        status = part_of(&own.here, p->here, way.own * block, block);
    if (status == KN_OK)
        status = kn_tensor_copy_with(own.here, own.there, true);
    release_piece(group, &own);
    return status;
}

static kn_status begin_piece(kn_group *group, kn_tensor *flat, int64_t number, int64_t per_piece, direction way,
                             piece *p)
{
    const int64_t first = number * per_piece, left = kn_numel(flat) - first;
    const int64_t count = left < per_piece ? left : per_piece;
    KN_TRY(part_of(&p->there, flat, first, count));
    KN_TRY(pinned_piece(group, (int)(number % PIECES), flat, count, &p->here));
    return way.from ? copy_down(group, p, way) : KN_OK;
}

static kn_status exchange_values(kn_group *group, const kn_work *work, exchange run, void *data, int64_t count)
{
    KN_WAITING_PART(KN_PART_EXCHANGE);
    return run(group, work, data, (size_t)count);
}

static kn_status exchange_piece(kn_group *group, kn_work *work, exchange run, direction way, piece *p)
{
    void *data = kn_data(p->here); /* waits for its copies */
    if (!data)
        return kn_error_status();
    KN_TRY(exchange_values(group, work, run, data, kn_numel(p->here)));
    KN_PART(KN_PART_COPY_UP);
    return way.to ? kn_tensor_copy_with(p->there, p->here, true) : KN_OK;
}

static kn_status exchange_in_pieces(kn_group *group, kn_work *work, kn_tensor *flat, exchange run, direction way)
{
    const int64_t per_piece = way.blocks ? kn_numel(flat) : PIECE_BYTES / (int64_t)kn_dtype_size(flat->dtype);
    const int64_t pieces = (kn_numel(flat) + per_piece - 1) / per_piece;
    piece now = {NULL, NULL}, next = {NULL, NULL};
    kn_status status = begin_piece(group, flat, 0, per_piece, way, &now);
    for (int64_t i = 0; i < pieces && status == KN_OK; i++) {
        if (i + 1 < pieces)
            status = begin_piece(group, flat, i + 1, per_piece, way, &next);
        if (status == KN_OK)
            status = exchange_piece(group, work, run, way, &now);
        release_piece(group, &now);
        now = next;
        next = (piece){NULL, NULL};
    }
    release_piece(group, &now);
    return status;
}

static kn_status exchange_mapped(kn_group *group, kn_work *work, kn_tensor *flat, exchange run)
{
    const size_t element = kn_dtype_size(flat->dtype);
    kn_stream *stream = kn_tensor_stream(flat);
    kn_buffer *buffer = flat->storage->buffer;
    void *data;
    if (!stream)
        return kn_error_status();
    KN_TRY(kn_buffer_map(stream, buffer, (size_t)flat->offset * element, (size_t)kn_numel(flat) * element, &data));
    const kn_status status = exchange_values(group, work, run, data, kn_numel(flat));
    const kn_status unmapped = kn_buffer_unmap(stream, buffer, data);
    return status == KN_OK ? unmapped : status;
}

/* The tensor itself or a contiguous copy, as one dimension. */
static kn_status flatten(kn_tensor **flat, kn_tensor *tensor, kn_tensor **contiguous)
{
    KN_TRY(kn_tensor_contiguous(contiguous, tensor));
    const int64_t count = kn_numel(tensor);
    return kn_tensor_view(flat, *contiguous, 1, &count, NULL, (*contiguous)->offset);
}

static kn_status exchange_flat(kn_group *group, kn_work *work, kn_tensor *flat, exchange run, direction way)
{
    const kn_device *device = kn_device_of(flat);
    if (!kn_device_is_host(device))
        return kn_can_map(device) ? exchange_mapped(group, work, flat, run)
                                  : exchange_in_pieces(group, work, flat, run, way);
    void *data = kn_data(flat);
    return data ? exchange_values(group, work, run, data, kn_numel(flat)) : kn_error_status();
}

static kn_status exchange_tensor(kn_group *group, kn_work *work, exchange run, direction way)
{
    if (kn_numel(work->tensor) == 0)
        return KN_OK;
    kn_tensor *contiguous = NULL, *flat = NULL;
    kn_status status = flatten(&flat, work->tensor, &contiguous);
    if (status == KN_OK)
        status = exchange_flat(group, work, flat, run, way);
    if (status == KN_OK && way.to && contiguous->storage != work->tensor->storage)
        status = kn_tensor_copy(work->tensor, contiguous);
    kn_group_release(group, flat);
    kn_group_release(group, contiguous);
    return status;
}

/* --- the collectives ---------------------------------------------------------------------------------------------- */

static kn_reduce_op sum_of_mean(kn_reduce_op op) { return op == KN_REDUCE_MEAN ? KN_REDUCE_SUM : op; }

static kn_status all_reduce(kn_group *group, const kn_work *work, void *data, size_t count)
{
    kn_transport *transport = group->transport;
    const kn_dtype dtype = work->tensor->dtype;
    KN_TRY(transport->class->all_reduce(transport, data, count, dtype, sum_of_mean(work->op)));
    if (work->op == KN_REDUCE_MEAN)
        kn_host_divide(dtype, data, count, transport->size);
    return KN_OK;
}

static kn_status reduce(kn_group *group, const kn_work *work, void *data, size_t count)
{
    kn_transport *transport = group->transport;
    const kn_dtype dtype = work->tensor->dtype;
    KN_TRY(transport->class->reduce(transport, data, count, dtype, sum_of_mean(work->op), work->root));
    if (work->op == KN_REDUCE_MEAN && transport->rank == work->root)
        kn_host_divide(dtype, data, count, transport->size);
    return KN_OK;
}

static kn_status broadcast(kn_group *group, const kn_work *work, void *data, size_t count)
{
    kn_transport *transport = group->transport;
    return transport->class->broadcast(transport, data, count * kn_dtype_size(work->tensor->dtype), work->root);
}

static kn_status all_gather(kn_group *group, const kn_work *work, void *data, size_t count)
{
    kn_transport *transport = group->transport;
    const size_t bytes = count * kn_dtype_size(work->tensor->dtype) / (size_t)transport->size;
    return transport->class->all_gather(transport, (char *)data + (size_t)transport->rank * bytes, bytes, data);
}

kn_status kn_run_all_gather_whole(kn_group *group, kn_work *work)
{
    const direction way = {.from = true, .to = true, .blocks = group->transport->size, .own = group->transport->rank};
    return exchange_tensor(group, work, all_gather, way);
}

kn_status kn_run_all_reduce(kn_group *group, kn_work *work)
{
    return exchange_tensor(group, work, all_reduce, (direction){.from = true, .to = true});
}

kn_status kn_run_reduce(kn_group *group, kn_work *work)
{
    return exchange_tensor(group, work, reduce, (direction){.from = true, .to = group->transport->rank == work->root});
}

kn_status kn_run_broadcast(kn_group *group, kn_work *work)
{
    const bool is_root = group->transport->rank == work->root;
    return exchange_tensor(group, work, broadcast, (direction){.from = is_root, .to = !is_root});
}
