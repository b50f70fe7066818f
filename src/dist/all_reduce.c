/* dist/all_reduce.c - every device gets the sum, mean, maximum or minimum of all, in place. */
#include <koine/pointwise.h>

#include "base/dtype.h"
#include "dist/collective.h"
#include "ops/pointwise/elementwise.h"

/* A sum of bools is "or": nonzero values are stored as 1. NaN wins, as all comparisons with it are false. */
static kn_pointwise_code adding = {.name = "all_reduce_sum", .inputs = "ab", .values = {"a + b"}};
static kn_pointwise_code larger = {.name = "all_reduce_max", .inputs = "ab", .values = {"(a >= b || a != a) ? a : b"}};
static kn_pointwise_code smaller = {.name = "all_reduce_min", .inputs = "ab", .values = {"(a <= b || a != a) ? a : b"}};

static kn_pointwise_code multiplying = {.name = "all_reduce_product", .inputs = "ab", .values = {"a * b"}};
static kn_pointwise_code all_bits = {.name = "all_reduce_and", .inputs = "ab", .values = {"a & b"}};
static kn_pointwise_code any_bits = {.name = "all_reduce_or", .inputs = "ab", .values = {"a | b"}};
static kn_pointwise_code other_bits = {.name = "all_reduce_xor", .inputs = "ab", .values = {"a ^ b"}};

static kn_pointwise_code *const codes[] = {
    [KN_REDUCE_SUM] = &adding,          [KN_REDUCE_MEAN] = &adding,    [KN_REDUCE_MAX] = &larger,
    [KN_REDUCE_MIN] = &smaller,         [KN_REDUCE_AND] = &all_bits,   [KN_REDUCE_OR] = &any_bits,
    [KN_REDUCE_PRODUCT] = &multiplying, [KN_REDUCE_XOR] = &other_bits,
};

/* result = operation(result, other), elementwise; both on one device. */
static kn_status combine(kn_tensor *result, const kn_tensor *other, kn_reduce_op op)
{
    kn_pointwise_code *code = codes[op];
    kn_stream *stream = kn_tensor_stream(result);
    return stream ? kn_elements(stream, code, "all_reduce", kn_compute_type(result->dtype), result,
                                (const kn_tensor *const[]){result, other}, 2, NULL)
                  : kn_error_status();
}

static kn_status divide(kn_tensor **result, int count)
{
    int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_status();
    kn_tensor *divisor = kn_full(KN_SCALAR, count, .dtype = (*result)->dtype, .device = kn_device_of(*result));
    kn_tensor *mean = kn_retain(kn_div(*result, divisor));
    kn_scope_end(depth);
    if (!mean)
        return kn_error_status();
    kn_release(*result);
    *result = mean;
    return KN_OK;
}

/* Reduces on the first tensor's device, in list order; all copies are enqueued before the first is used. */
static kn_status reduce(kn_tensor *const *tensors, int count, kn_reduce_op op, kn_tensor **here)
{
    for (int i = 0; i < count; i++)
        KN_TRY(kn_tensor_cast(&here[i], tensors[i], tensors[i]->dtype, kn_device_of(tensors[0])));
    for (int i = 1; i < count; i++)
        KN_TRY(combine(here[0], here[i], op));
    return op == KN_REDUCE_MEAN ? divide(&here[0], count) : KN_OK;
}

/* Copies the result to all; one read serves all destinations with matching memory. */
static kn_status spread(kn_tensor *const *tensors, int count, kn_tensor *result)
{
    kn_tensor *direct[KN_MAX_DEVICES];
    int num_direct = 0;
    for (int i = 0; i < count; i++) {
        kn_tensor_bump_version(tensors[i]);
        if (i > 0 && kn_is_contiguous(tensors[i]))
            direct[num_direct++] = tensors[i];
        else
            KN_TRY(kn_tensor_copy(tensors[i], result));
    }
    return kn_tensor_copy_to_many(direct, num_direct, result);
}

static kn_status check(kn_tensor *const *tensors, int count, kn_reduce_op op)
{
    KN_TRY(kn_check_tensor_list("all_reduce", tensors, count));
    KN_TRY(kn_check_alike("all_reduce", tensors, count, 1, -1));
    KN_TRY(kn_check_reduce_op("all_reduce", op, tensors[0]->dtype));
    for (int i = 0; i < count; i++) {
        if (kn_tensor_check_no_overlap(tensors[i]) != KN_OK) {
            kn_error_prefix("all_reduce: tensor %d", i);
            return kn_error_status();
        }
        if (kn_grad_enabled() && kn_change_wants_record(tensors[i]))
            return kn_fail(KN_ERR_STATE,
                           "all_reduce is not recorded, and tensor %d requires gradients: do it inside KN_NO_GRAD", i);
        for (int j = 0; j < i; j++)
            if (kn_device_of(tensors[j]) == kn_device_of(tensors[i]))
                return kn_fail(KN_ERR_ARGUMENT,
                               "all_reduce: tensors %d and %d are both on %s; each needs a device of "
                               "its own",
                               j, i, kn_device_string(kn_device_of(tensors[i])));
    }
    return KN_OK;
}

kn_status kn_comm_all_reduce(kn_tensor *const *tensors, int num_tensors, kn_reduce_op op)
{
    KN_TRY(check(tensors, num_tensors, op));
    if (num_tensors == 1)
        return KN_OK;
    kn_tensor *here[KN_MAX_DEVICES] = {NULL}; /* at most one per device */
    bool enabled = kn_set_grad_enabled(false);
    kn_status status = reduce(tensors, num_tensors, op, here);
    if (status == KN_OK)
        status = spread(tensors, num_tensors, here[0]);
    kn_set_grad_enabled(enabled);
    kn_release_all(here, num_tensors);
    if (status != KN_OK)
        kn_error_prefix("all_reduce");
    return status;
}
