/* dist/zero_share.c - in a step of a divided optimizer all ranks get all parameters, those stepped first while others
 * are still being stepped.
 *
 * The parameters of a rank, in the order in which they are stepped, are a stream of bytes. In each transfer every rank
 * gives the next bytes of its stream to all others; once at most half of the ranks have any left, one rank after the
 * other gives its own. All ranks know all lengths, and so make the same calls. */
#include "dist/zero_share.h"

#include "dist/zero.h"

#define ALIGN_BYTES 64 /* each parameter starts on a cache line */
#define LEAST_BLOCK ((int64_t)64 << 10)

_Atomic int64_t kn_zero_transfer_bytes = (int64_t)4 << 20;

static int64_t bytes_of(const kn_tensor *t) { return kn_numel(t) * (int64_t)kn_dtype_size(t->dtype); }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* --- the streams -------------------------------------------------------------------------------------------------- */

/* In the order of optim/fused.c. */
static void lay_out_streams(kn_optim *optim, kn_zero *zero)
{
    memset(zero->lengths, 0, (size_t)zero->shard.size * sizeof *zero->lengths);
    for (int b = 0; b < optim->num_buckets; b++)
        for (int i = 0; i < optim->count; i++) {
            if (optim->places[i].bucket != b)
                continue;
            int64_t *length = &zero->lengths[zero->shard.owners[i]];
            zero->starts[i] = *length;
            *length += (bytes_of(optim->parameters[i]) + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
        }
    zero->longest = 0;
    for (int r = 0; r < zero->shard.size; r++)
        zero->longest = zero->lengths[r] > zero->longest ? zero->lengths[r] : zero->longest;
}

/* `count` bytes of a contiguous tensor, from byte `first` on. */
static kn_status part_of(kn_tensor **part, const kn_tensor *t, int64_t first, int64_t count)
{
    return kn_tensor_on(part, t->storage, KN_U8, 1, &count, NULL, t->offset * (int64_t)kn_dtype_size(t->dtype) + first);
}

static kn_status copy_part(kn_tensor *parameter, int64_t at, kn_tensor *blocks, int64_t place, int64_t count,
                           bool to_blocks)
{
    kn_tensor *one = NULL, *other = NULL;
    kn_status status = part_of(&one, parameter, at, count);
    if (status == KN_OK)
        status = part_of(&other, blocks, place, count);
    if (status == KN_OK)
        status = to_blocks ? kn_tensor_copy(other, one) : kn_tensor_copy(one, other);
    kn_release(one);
    kn_release(other);
    return status;
}

/* Between a transfer's block, which starts at byte `block`, and the parameter, as far as it is in the transfer. */
static kn_status copy_parameter(const kn_zero *zero, kn_tensor *parameter, int index, const kn_zero_transfer *t,
                                int64_t block, bool to_blocks)
{
    const int64_t start = zero->starts[index], end = least(start + bytes_of(parameter), t->first + t->bytes);
    const int64_t first = start > t->first ? start : t->first;
    if (first >= end)
        return KN_OK;
    kn_tensor *contiguous = NULL;
    KN_TRY(kn_tensor_contiguous(&contiguous, parameter));
    kn_status status =
        copy_part(contiguous, first - start, t->blocks, block + first - t->first, end - first, to_blocks);
    if (status == KN_OK && !to_blocks && contiguous->storage != parameter->storage)
        status = kn_tensor_copy(parameter, contiguous);
    kn_release(contiguous);
    return status;
}

/* The parameters of rank `owner`. */
static kn_status copy_block(kn_optim *optim, const kn_zero_transfer *t, int owner, bool to_blocks)
{
    const kn_zero *zero = kn_zero_of(optim);
    const int64_t block = t->root < 0 ? owner * t->bytes : 0;
    for (int i = 0; i < optim->count; i++)
        if (zero->shard.owners[i] == owner)
            KN_TRY(copy_parameter(zero, optim->parameters[i], i, t, block, to_blocks));
    return KN_OK;
}

/* --- transfers ---------------------------------------------------------------------------------------------------- */

/* The first rank from `rank` on whose stream has bytes from `first` on; the number of ranks if there is none. */
static int next_giver(const kn_zero *zero, int rank, int64_t first)
{
    while (rank < zero->shard.size && zero->lengths[rank] <= first)
        rank++;
    return rank;
}

/* At byte `first` of the streams: a transfer between all or that of the first who has something to give. */
static kn_zero_transfer transfer_at(const kn_zero *zero, int64_t first)
{
    const int size = zero->shard.size;
    int givers = 0;
    for (int r = 0; r < size; r++)
        givers += zero->lengths[r] > first;
    const bool all_give = 2 * givers > size;
    const int64_t share = kn_zero_transfer_bytes / (all_give ? size : 1) / ALIGN_BYTES * ALIGN_BYTES;
    const int64_t most = share > LEAST_BLOCK || kn_zero_transfer_bytes < LEAST_BLOCK ? share : LEAST_BLOCK;
    return (kn_zero_transfer){.first = first,
                              .bytes = least(most > 0 ? most : ALIGN_BYTES, zero->longest - first),
                              .root = all_give ? -1 : next_giver(zero, 0, first)};
}

static void advance(kn_zero *zero)
{
    const kn_zero_transfer *t = &zero->next;
    const int root = t->root < 0 ? zero->shard.size : next_giver(zero, t->root + 1, t->first);
    if (root < zero->shard.size)
        zero->next.root = root;
    else
        zero->next = transfer_at(zero, t->first + t->bytes);
}

/* Waits for the oldest; its values are copied unless there is an error. */
static kn_status end_transfer(kn_optim *optim, kn_status status)
{
    kn_zero *zero = kn_zero_of(optim);
    kn_zero_transfer *t = &zero->in_flight[zero->ended++ % KN_ZERO_IN_FLIGHT];
    const kn_status waited = t->work ? kn_work_wait(t->work) : KN_OK;
    status = status == KN_OK ? waited : status;
    for (int r = 0; r < zero->shard.size && status == KN_OK; r++)
        if (r != zero->shard.rank && (t->root < 0 || t->root == r))
            status = copy_block(optim, t, r, false);
    kn_work_free(t->work);
    kn_release(t->blocks);
    *t = (kn_zero_transfer){0};
    return status;
}

static kn_status start_transfer(kn_optim *optim)
{
    kn_zero *zero = kn_zero_of(optim);
    if (zero->begun - zero->ended == KN_ZERO_IN_FLIGHT)
        KN_TRY(end_transfer(optim, KN_OK));
    kn_zero_transfer *t = &zero->in_flight[zero->begun++ % KN_ZERO_IN_FLIGHT];
    *t = zero->next;
    const int64_t bytes = t->bytes * (t->root < 0 ? zero->shard.size : 1);
    KN_TRY(kn_tensor_new(&t->blocks, KN_U8, 1, &bytes, kn_device_of(optim->parameters[0])));
    if (t->root < 0 || t->root == zero->shard.rank)
        KN_TRY(copy_block(optim, t, zero->shard.rank, true));
    advance(zero);
    return t->root < 0 ? kn_group_all_gather_whole(zero->group, t->blocks, &t->work)
                       : kn_group_broadcast(zero->group, t->blocks, t->root, .work = &t->work);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

kn_status kn_zero_begin(kn_optim *optim)
{
    kn_zero *zero = kn_zero_of(optim);
    kn_optim_forget_whole(optim);
    lay_out_streams(optim, zero);
    zero->begun = zero->ended = 0;
    zero->next = transfer_at(zero, 0);
    return KN_OK;
}

/* Starts the transfers for which this rank's stream, up to byte `ready`, is long enough. */
static kn_status start_ready(kn_optim *optim, int64_t ready)
{
    const kn_zero *zero = kn_zero_of(optim);
    const int64_t length = zero->lengths[zero->shard.rank];
    KN_NO_GRAD;
    while (zero->shard.size > 1 && zero->next.first < zero->longest) {
        const bool gives = zero->next.root < 0 || zero->next.root == zero->shard.rank;
        if (gives && least(zero->next.first + zero->next.bytes, length) > ready)
            return KN_OK;
        KN_TRY(start_transfer(optim));
    }
    return KN_OK;
}

kn_status kn_zero_stepped(kn_optim *optim, int index) { return start_ready(optim, kn_zero_of(optim)->starts[index]); }

kn_status kn_zero_finish(kn_optim *optim, kn_status status)
{
    const kn_zero *zero = kn_zero_of(optim);
    KN_NO_GRAD;
    if (status == KN_OK)
        status = start_ready(optim, zero->lengths[zero->shard.rank]);
    while (zero->ended < zero->begun)
        status = end_transfer(optim, status);
    for (int i = 0; i < optim->count; i++)
        kn_tensor_bump_version(optim->parameters[i]);
    return status;
}
