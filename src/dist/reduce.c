/* dist/reduce.c - sums over devices, always added in list order. */
#include <string.h>

#include <koine/pointwise.h>

#include "dist/collective.h"

/* --- sums without gradient -------------------------------------------------------------------------------------- */

/* A copy of `like` on `device` that may be modified. */
static kn_status copy_to(kn_tensor **copy, kn_tensor *like, kn_device *device)
{
    return kn_tensor_cast(copy, like, like->dtype, device);
}

/* *sum += addend, on one device; replaces the tensor if it cannot be added to in place. */
static kn_status add(kn_tensor **sum, kn_tensor *addend)
{
    if (kn_dtype_is_floating((*sum)->dtype))
        return kn_tensor_accumulate(*sum, addend);
    int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_status();
    kn_tensor *whole = kn_retain(kn_add(*sum, addend));
    kn_scope_end(depth);
    if (!whole)
        return kn_error_status();
    kn_release(*sum);
    *sum = whole;
    return KN_OK;
}

/* The sum on `destination` of `count` tensors anywhere: all copies are enqueued before the first is added. Takes
 * ownership of the tensors. */
static kn_status sum_of(kn_tensor **parts, int count, kn_device *destination, kn_tensor **sum)
{
    kn_status status = KN_OK;
    for (int i = 0; i < count && status == KN_OK; i++) {
        kn_tensor *here = NULL;
        if (i > 0 && kn_device_of(parts[i]) == destination)
            continue;
        status = copy_to(&here, parts[i], destination);
        if (status == KN_OK) {
            kn_release(parts[i]);
            parts[i] = here;
        }
    }
    for (int i = 1; i < count && status == KN_OK; i++)
        status = add(&parts[0], parts[i]);
    if (status == KN_OK)
        *sum = kn_retain(parts[0]);
    kn_release_all(parts, count);
    return status;
}

static kn_status reduce_buffer(const kn_packing *layout, int b, kn_tensor *const *inputs, int num_inputs,
                               kn_device *destination, kn_tensor **sums)
{
    kn_tensor **packed = kn_calloc((size_t)num_inputs, sizeof *packed), *sum = NULL;
    kn_status status = packed ? KN_OK : KN_ERR_MEMORY;
    for (int i = 0; i < num_inputs && status == KN_OK; i++) {
        kn_tensor *const *list = inputs + (size_t)i * (size_t)layout->count;
        status = kn_packing_pack(layout, b, list, kn_device_of(list[0]), &packed[i]);
    }
    if (status == KN_OK)
        status = sum_of(packed, num_inputs, destination, &sum);
    else if (packed)
        kn_release_all(packed, num_inputs);
    if (status == KN_OK)
        status = kn_packing_unpack(layout, b, sum, inputs, sums);
    kn_release(sum);
    kn_free(packed);
    return status;
}

kn_status kn_reduce_list(kn_tensor *const *inputs, int num_inputs, int count, kn_device *destination,
                         size_t buffer_size, kn_tensor **sums)
{
    kn_packing layout;
    memset(sums, 0, (size_t)count * sizeof *sums);
    KN_TRY(kn_packing_make(&layout, inputs, count, buffer_size));
    kn_status status = KN_OK;
    for (int b = 0; b < layout.num_buffers && status == KN_OK; b++)
        status = reduce_buffer(&layout, b, inputs, num_inputs, destination, sums);
    kn_packing_free(&layout);
    if (status != KN_OK)
        kn_release_all(sums, count);
    return status;
}

/* --- with gradient: that of the sum goes to every addend ---------------------------------------------------------- */

static kn_status reduce_backward(kn_grad_call *grad)
{
    for (int i = 0; i < grad->num_inputs; i++) {
        kn_tensor *of_sum = grad->grad_outputs[i % grad->num_outputs];
        if (!grad->needs[i] || !of_sum)
            continue;
        grad->grad_inputs[i] = kn_to(of_sum, grad->input[i].device);
        if (!grad->grad_inputs[i])
            return kn_error_status();
    }
    return KN_OK;
}

static const kn_op reduce_op = {.name = "reduce_add", .backward = reduce_backward};

static kn_status record(kn_tensor *const *inputs, int num_inputs, kn_tensor **sums, int count)
{
    for (int i = 0; i < num_inputs; i++)
        if (kn_is_recorded(inputs[i]))
            return kn_tape_record_many(&reduce_op, NULL, inputs, num_inputs, sums, count);
    return KN_OK;
}

/* --- the interface ---------------------------------------------------------------------------------------------- */

static kn_status check(const char *function, kn_tensor *const *inputs, int num_inputs, int count,
                       kn_device **destination)
{
    if (count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: needs at least one tensor per device, not %d", function, count);
    KN_TRY(kn_check_tensor_list(function, inputs, inputs && num_inputs > 0 ? num_inputs * count : 0));
    KN_TRY(kn_check_alike(function, inputs, num_inputs * count, count, -1));
    for (int i = 0; i < num_inputs * count; i++) {
        const kn_device *first = kn_device_of(inputs[i / count * count]), *own = kn_device_of(inputs[i]);
        if (own != first)
            return kn_fail(KN_ERR_DEVICE, "%s: input %d is on %s, but the first of its list is on %s", function, i,
                           kn_device_string(own), kn_device_string(first));
    }
    return kn_check_destination(function, destination, false);
}

static kn_status reduce_add(const char *function, kn_tensor *const *inputs, int num_inputs, int count,
                            kn_device *destination, size_t buffer_size, kn_tensor **out)
{
    KN_TRY(check(function, inputs, num_inputs, count, &destination));
    kn_tensor **sums = kn_calloc((size_t)count, sizeof *sums);
    if (!sums)
        return KN_ERR_MEMORY;
    kn_status status = kn_reduce_list(inputs, num_inputs, count, destination, buffer_size, sums);
    if (status == KN_OK) {
        status = record(inputs, num_inputs * count, sums, count);
        if (status == KN_OK)
            status = kn_scope_adopt_all(sums, count, out);
        else
            kn_release_all(sums, count);
    }
    if (status != KN_OK)
        kn_error_prefix("%s", function);
    kn_free(sums);
    return status;
}

kn_status kn_comm_reduce_add_coalesced(kn_tensor *const *inputs, int num_inputs, int count, kn_device *destination,
                                       size_t buffer_size, kn_tensor **out)
{
    if (!out)
        return kn_fail_argument_null("reduce_add_coalesced", "out");
    return reduce_add("reduce_add_coalesced", inputs, num_inputs, count, destination, buffer_size, out);
}

kn_tensor *kn_comm_reduce_add(kn_tensor *const *inputs, int num_inputs, kn_device *destination)
{
    kn_tensor *sum = NULL;
    if (reduce_add("reduce_add", inputs, num_inputs, 1, destination, 0, &sum) != KN_OK)
        return kn_error_make_sticky();
    return sum;
}
