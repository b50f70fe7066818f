/* dist/fingerprint.c - a number for the bits of many tensors, computed on their device: only few numbers for each come
 * to the host. */
#include <string.h>

#include "base/hash.h"
#include "dist/distributed.h"

#define ELEMENTS_PER_ITEM 1024
#define MOST_ITEMS 4096 /* for a tensor */

/* The same on all devices, as the result depends on it. */
static int64_t items_of(const kn_tensor *tensor)
{
    const int64_t items = (kn_numel(tensor) + ELEMENTS_PER_ITEM - 1) / ELEMENTS_PER_ITEM;
    return items < 1 ? 1 : items > MOST_ITEMS ? MOST_ITEMS : items;
}

static const char *word_option(const kn_tensor *tensor)
{
    switch (kn_dtype_size(tensor->dtype)) {
    case 8:
        return "-DT=float -DW=ulong";
    case 4:
        return "-DT=float -DW=uint";
    case 2:
        return "-DT=float -DW=ushort";
    default:
        return "-DT=float -DW=uchar";
    }
}

static kn_status launch(kn_tensor *tensor, kn_tensor *numbers, int64_t first)
{
    kn_tensor *contiguous = NULL;
    KN_TRY(kn_tensor_contiguous(&contiguous, tensor));
    const int64_t items = items_of(tensor);
    kn_status status = kn_run(kn_tensor_stream(tensor), .source = "dist/fingerprint.cl", .options = word_option(tensor),
                              .kernel = "fingerprint", .dims = 1, .global = {(size_t)items},
                              KN_ARGS(kn_arg_tensor(contiguous), kn_arg_tensor(numbers), kn_arg_i64(kn_numel(tensor)),
                                      kn_arg_i64(first), kn_arg_i64(items)));
    kn_release(contiguous);
    return status;
}

static kn_status fill_and_read(kn_tensor *const *tensors, int count, kn_tensor *numbers, int64_t *number)
{
    int64_t first = 0;
    for (int i = 0; i < count; first += items_of(tensors[i++]))
        if (kn_numel(tensors[i]) > 0)
            KN_TRY(launch(tensors[i], numbers, first));
    const size_t bytes = (size_t)kn_numel(numbers) * sizeof(int64_t);
    void *values = kn_malloc(bytes);
    kn_status status = values ? kn_read(numbers, values, bytes) : KN_ERR_MEMORY;
    const kn_hash hash = status == KN_OK ? kn_hash_bytes(values, bytes) : (kn_hash){0};
    memcpy(number, &hash.high, sizeof hash.high);
    kn_free(values);
    return status;
}

kn_status kn_fingerprint(kn_tensor *const *tensors, int count, int64_t *number)
{
    int64_t items = 0;
    kn_tensor *numbers = NULL;
    *number = 0;
    for (int i = 0; i < count; i++)
        items += items_of(tensors[i]);
    if (items == 0)
        return KN_OK;
    KN_TRY(kn_tensor_new(&numbers, KN_I64, 1, &items, kn_device_of(tensors[0])));
    kn_status status = kn_tensor_fill(numbers, 0); /* for tensors without elements */
    if (status == KN_OK)
        status = fill_and_read(tensors, count, numbers, number);
    kn_release(numbers);
    return status;
}
