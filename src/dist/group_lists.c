/* dist/group_lists.c - what groups do with lists of tensors and with single numbers. */
#include <string.h>

#include "dist/distributed.h"

/* --- broadcasts --------------------------------------------------------------------------------------------------- */

/* A tensor that is its own buffer (kn_packing_pack) has its values already. */
static kn_status unpack(const kn_packing *layout, int b, kn_tensor *packed, kn_tensor *const *tensors,
                        kn_tensor **parts)
{
    KN_TRY(kn_packing_unpack(layout, b, packed, tensors, parts));
    for (int t = 0; t < layout->count; t++)
        if (parts[t] && packed->storage != tensors[t]->storage)
            KN_TRY(kn_tensor_copy(tensors[t], parts[t]));
    return KN_OK;
}

static kn_status broadcast_buffer(kn_group *group, const kn_packing *layout, int b, kn_tensor *const *tensors, int root)
{
    kn_tensor *packed = NULL;
    kn_tensor **parts = kn_calloc((size_t)layout->count, sizeof *parts);
    kn_status status = parts ? kn_packing_pack(layout, b, tensors, kn_device_of(tensors[0]), &packed) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = kn_group_broadcast(group, packed, root);
    if (status == KN_OK && kn_group_rank(group) != root)
        status = unpack(layout, b, packed, tensors, parts);
    for (int t = 0; parts && t < layout->count; t++)
        kn_release(parts[t]);
    kn_free(parts);
    kn_release(packed);
    return status;
}

kn_status kn_group_broadcast_list(kn_group *group, kn_tensor *const *tensors, int count, int root)
{
    if (count == 0 || kn_group_size(group) == 1)
        return KN_OK;
    KN_NO_GRAD;
    kn_packing layout;
    kn_status status = kn_packing_make(&layout, tensors, count, 0);
    for (int b = 0; b < layout.num_buffers && status == KN_OK; b++)
        status = broadcast_buffer(group, &layout, b, tensors, root);
    kn_packing_free(&layout);
    for (int t = 0; t < count; t++)
        kn_tensor_bump_version(tensors[t]);
    return status;
}

/* --- comparisons -------------------------------------------------------------------------------------------------- */

/* The first rank with the number that most ranks have. */
static int find_most_common(kn_tensor *const *numbers, int size)
{
    int best = 0, most = 0;
    for (int r = 0; r < size; r++) {
        int votes = 0;
        for (int other = 0; other < size; other++)
            votes += *(int64_t *)kn_data(numbers[other]) == *(int64_t *)kn_data(numbers[r]);
        if (votes > most) {
            best = r;
            most = votes;
        }
    }
    return best;
}

static kn_status compare(kn_group *group, kn_tensor *const *numbers, const char *what)
{
    const int size = kn_group_size(group), model = find_most_common(numbers, size);
    for (int r = 0; r < size; r++)
        if (*(int64_t *)kn_data(numbers[r]) != *(int64_t *)kn_data(numbers[model]))
            return kn_fail(KN_ERR_STATE, "%s of rank %d (%s) differ from those of rank %d", what, r,
                           kn_group_host(group, r), model);
    return KN_OK;
}

kn_status kn_group_compare(kn_group *group, int64_t number, const char *what)
{
    const int size = kn_group_size(group);
    const kn_tensor_options options = {.dtype = KN_I64, .device = kn_device_host()};
    KN_SCOPE;
    kn_tensor *mine = kn_empty_with(KN_SHAPE(1), &options);
    kn_tensor **all = mine ? kn_calloc((size_t)size, sizeof *all) : NULL;
    kn_status status = all ? KN_OK : KN_ERR_MEMORY;
    for (int r = 0; r < size && status == KN_OK; r++)
        status = (all[r] = kn_empty_with(KN_SHAPE(1), &options)) ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK) {
        *(int64_t *)kn_data(mine) = number;
        status = kn_group_all_gather(group, all, mine);
    }
    if (status == KN_OK)
        status = compare(group, all, what);
    kn_free(all);
    return status;
}
