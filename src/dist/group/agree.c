/* dist/group/agree.c - before a collective the ranks compare what they are about to do, so that a difference is an
 * error that names both calls, and not a hang or wrong numbers. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "dist/group/call.h"

#define TEXT 128

static const char *operation_name(kn_reduce_op op)
{
    static const char *const names[] = {"sum", "mean", "max", "min", "product", "and", "or", "xor"};
    return names[op];
}

/* "all_reduce of 100 float32 (sum)". Sizes of all_to_all differ from rank to rank. */
static void describe(char *text, const kn_work *work)
{
    const kn_call_kind *kind = work->kind;
    const kn_tensor *tensor = work->tensor;
    int length = snprintf(text, TEXT, "%s", kind->name);
    if (tensor)
        length += snprintf(text + length, TEXT - (size_t)length, " of %lld %s", (long long)kn_numel(tensor),
                           kn_dtype_name(tensor->dtype));
    else if (work->inputs)
        length += snprintf(text + length, TEXT - (size_t)length, " of %s", kn_dtype_name(work->inputs[0]->dtype));
    if (kind->reduces)
        length += snprintf(text + length, TEXT - (size_t)length, " (%s)", operation_name(work->op));
    if (kind->root)
        snprintf(text + length, TEXT - (size_t)length, "%s%d", kind->root, work->root);
}

static kn_status fail_different(kn_group *group, const kn_work *work)
{
    kn_transport *transport = group->transport;
    char mine[TEXT] = "";
    describe(mine, work);
    char *texts = kn_calloc((size_t)transport->size, TEXT);
    if (!texts)
        return KN_ERR_MEMORY;
    kn_status status = transport->class->all_gather(transport, mine, TEXT, texts);
    int other = 1;
    while (other < transport->size - 1 && strncmp(texts, texts + other * TEXT, TEXT) == 0)
        other++;
    if (status == KN_OK)
        status = kn_fail(KN_ERR_STATE, KN_DIFFERENT_CALLS ": call %llu of rank 0 is %.*s, that of rank %d is %.*s",
                         (unsigned long long)group->calls, TEXT - 1, texts, other, TEXT - 1, texts + other * TEXT);
    kn_transport_release(transport, texts);
    return status;
}

/* What describe() writes, quicker. */
static kn_hash hash_of(const kn_work *work)
{
    const kn_call_kind *kind = work->kind;
    const kn_tensor *tensor = work->tensor ? work->tensor : work->inputs ? work->inputs[0] : NULL;
    const int64_t numbers[] = {work->tensor ? kn_numel(tensor) : -1, tensor ? (int64_t)tensor->dtype : -1,
                               kind->reduces ? (int64_t)work->op : -1, kind->root ? work->root : -1};
    return kn_hash_combine(kn_hash_text(kind->name), kn_hash_bytes(numbers, sizeof numbers));
}

kn_status kn_group_agree(kn_group *group, const kn_work *work)
{
    kn_transport *transport = group->transport;
    const kn_hash hash = hash_of(work);
    /* The largest of all values and of all complements: equal only if all values are. */
    int64_t value;
    memcpy(&value, &hash.high, sizeof value);
    int64_t extremes[2] = {value, ~value};
    KN_WAITING_PART(KN_PART_WAIT);
    KN_TRY(transport->class->all_reduce(transport, extremes, 2, KN_I64, KN_REDUCE_MAX));
    return extremes[0] == ~extremes[1] ? KN_OK : fail_different(group, work);
}
