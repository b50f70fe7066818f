/* dist/group/bytes.c - see bytes.h. */
#include "dist/group/bytes.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "dist/collective.h"
#include "tensor/tensor.h"

/* Host memory as a tensor; its place. */
static kn_status make_bytes(kn_tensor **memory, size_t bytes, void **place)
{
    KN_TRY(kn_tensor_new(memory, KN_U8, 1, &(int64_t){(int64_t)bytes}, kn_device_host()));
    *place = kn_data(*memory);
    return *place ? KN_OK : kn_error_status();
}

kn_status kn_group_pass_bytes(kn_group *group, void *data, size_t bytes, int other, bool sends)
{
    kn_tensor *memory = NULL;
    void *place = NULL;
    kn_status status = make_bytes(&memory, bytes, &place);
    if (status == KN_OK && sends)
        memcpy(place, data, bytes);
    if (status == KN_OK)
        status = sends ? kn_group_send(group, memory, other) : kn_group_receive(group, memory, other);
    if (status == KN_OK && !sends)
        memcpy(data, place, bytes);
    kn_release(memory);
    return status;
}

static kn_status gather_into(kn_group *group, const void *mine, size_t bytes, kn_tensor **blocks, char *all)
{
    const int size = kn_group_size(group);
    void *place = NULL;
    for (int r = 0; r < size; r++)
        KN_TRY(make_bytes(&blocks[r], bytes, &place));
    KN_TRY(make_bytes(&blocks[size], bytes, &place));
    memcpy(place, mine, bytes);
    KN_TRY(kn_group_all_gather(group, blocks, blocks[size]));
    for (int r = 0; r < size; r++)
        memcpy(all + (size_t)r * bytes, kn_data(blocks[r]), bytes);
    return KN_OK;
}

void *kn_group_gather_bytes(kn_group *group, const void *mine, size_t bytes)
{
    const int size = kn_group_size(group);
    char *all = kn_calloc((size_t)size, bytes);
    kn_tensor **blocks = kn_calloc((size_t)size + 1, sizeof *blocks); /* the ranks', and this one's own */
    const kn_status status = all && blocks ? gather_into(group, mine, bytes, blocks, all) : KN_ERR_MEMORY;
    if (blocks)
        kn_release_all(blocks, size + 1);
    kn_free(blocks);
    if (status == KN_OK)
        return all;
    kn_free(all);
    return NULL;
}
