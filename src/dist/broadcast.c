/* dist/broadcast.c - tensors from one device to others: each packed buffer is read once, whatever the number of
 * devices. */
#include <string.h>

#include "dist/collective.h"

/* --- without gradient ------------------------------------------------------------------------------------------- */

/* Copies packed buffer b to all devices and unpacks it there. */
static kn_status broadcast_buffer(const kn_packing *layout, int b, kn_tensor *const *tensors, kn_device *const *devices,
                                  int num_devices, kn_tensor **copies)
{
    kn_tensor *packed = NULL, *received[KN_MAX_DEVICES] = {NULL};
    kn_status status = kn_packing_pack(layout, b, tensors, kn_device_of(tensors[0]), &packed);
    for (int i = 0; i < num_devices && status == KN_OK; i++)
        status = kn_packing_new_buffer(layout, b, devices[i], &received[i]);
    if (status == KN_OK)
        status = kn_tensor_copy_to_many(received, num_devices, packed);
    for (int i = 0; i < num_devices && status == KN_OK; i++)
        status = kn_packing_unpack(layout, b, received[i], tensors, copies + (size_t)i * (size_t)layout->count);
    kn_release(packed);
    kn_release_all(received, num_devices);
    return status;
}

kn_status kn_broadcast_list(kn_tensor *const *tensors, int count, kn_device *const *devices, int num_devices,
                            size_t buffer_size, kn_tensor **copies)
{
    kn_packing layout;
    if (count == 0 || num_devices == 0)
        return KN_OK;
    memset(copies, 0, (size_t)count * (size_t)num_devices * sizeof(kn_tensor *));
    KN_TRY(kn_packing_make(&layout, tensors, count, buffer_size));
    kn_status status = KN_OK;
    for (int b = 0; b < layout.num_buffers && status == KN_OK; b++)
        status = broadcast_buffer(&layout, b, tensors, devices, num_devices, copies);
    kn_packing_free(&layout);
    if (status != KN_OK)
        kn_release_all(copies, count * num_devices);
    return status;
}

/* --- with gradient ---------------------------------------------------------------------------------------------- */

/* Output i * count + t is copy i of input t. */
typedef struct broadcast_params {
    size_t buffer_size;
} broadcast_params;

/* Sums the gradients of those copies of input t that have one. */
static kn_status sum_present_gradients(const kn_grad_call *grad, int t)
{
    int count = grad->num_inputs, there = 0;
    kn_tensor *few[KN_MAX_DEVICES];
    for (int g = t; g < grad->num_outputs; g += count)
        if (grad->grad_outputs[g])
            few[there++] = grad->grad_outputs[g];
    if (there == 0)
        return KN_OK;
    kn_tensor *sum = NULL;
    KN_TRY(kn_reduce_list(few, there, 1, grad->input[t].device, 0, &sum));
    grad->grad_inputs[t] = kn_scope_adopt(sum);
    return grad->grad_inputs[t] ? KN_OK : kn_error_status();
}

/* Usually every copy of most tensors has a gradient: `whole` lists those, for one packed reduction. */
static int find_whole(const kn_grad_call *grad, int *whole)
{
    int found = 0;
    for (int t = 0; t < grad->num_inputs; t++) {
        bool all = grad->needs[t] && grad->input[t].device == grad->input[0].device;
        for (int g = t; g < grad->num_outputs && all; g += grad->num_inputs)
            all = grad->grad_outputs[g] != NULL;
        if (all)
            whole[found++] = t;
    }
    return found;
}

static kn_status sum_packed(kn_grad_call *grad, const int *whole, int found, kn_tensor **block)
{
    const broadcast_params *params = grad->params;
    int copies = grad->num_outputs / grad->num_inputs;
    kn_tensor **inputs = block, **sums = block + (size_t)found * (size_t)copies;
    for (int i = 0; i < copies; i++)
        for (int k = 0; k < found; k++)
            inputs[i * found + k] = grad->grad_outputs[i * grad->num_inputs + whole[k]];
    KN_TRY(kn_reduce_list(inputs, copies, found, grad->input[0].device, params->buffer_size, sums));
    KN_TRY(kn_scope_adopt_all(sums, found, sums));
    for (int k = 0; k < found; k++)
        grad->grad_inputs[whole[k]] = sums[k];
    return KN_OK;
}

static kn_status broadcast_backward(kn_grad_call *grad)
{
    int copies = grad->num_outputs / grad->num_inputs;
    int *whole = kn_calloc((size_t)grad->num_inputs, sizeof *whole);
    if (!whole)
        return KN_ERR_MEMORY;
    int found = find_whole(grad, whole);
    kn_tensor **block = kn_calloc((size_t)found * (size_t)(copies + 1), sizeof *block);
    kn_status status = block ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK && found > 0)
        status = sum_packed(grad, whole, found, block);
    for (int t = 0; t < grad->num_inputs && status == KN_OK; t++)
        if (grad->needs[t] && !grad->grad_inputs[t])
            status = sum_present_gradients(grad, t);
    kn_free(whole);
    kn_free(block);
    return status;
}

static const kn_op broadcast_op = {
    .name = "broadcast", .record_size = sizeof(broadcast_params), .backward = broadcast_backward};

kn_status kn_broadcast_recorded(kn_tensor *const *tensors, int count, kn_device *const *devices, int num_devices,
                                size_t buffer_size, kn_tensor **copies)
{
    KN_TRY(kn_broadcast_list(tensors, count, devices, num_devices, buffer_size, copies));
    if (count == 0 || num_devices == 0 || !kn_is_recorded(tensors[0]))
        return KN_OK;
    const broadcast_params params = {buffer_size};
    kn_status status = kn_tape_record_many(&broadcast_op, &params, tensors, count, copies, count * num_devices);
    if (status != KN_OK)
        kn_release_all(copies, count * num_devices);
    return status;
}

/* --- the interface ---------------------------------------------------------------------------------------------- */

static kn_status check(const char *function, kn_tensor *const *tensors, int count, kn_device *const *devices,
                       int num_devices, kn_tensor **out)
{
    if (!tensors || !out || count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: needs at least one tensor and an array for the results", function);
    for (int t = 0; t < count; t++) {
        if (!tensors[t])
            return kn_fail_argument_null(function, "tensor");
        if (kn_device_of(tensors[t]) != kn_device_of(tensors[0]))
            return kn_fail(KN_ERR_DEVICE, "%s: tensor 0 is on %s but tensor %d on %s; all must be on one device",
                           function, kn_device_string(kn_device_of(tensors[0])), t,
                           kn_device_string(kn_device_of(tensors[t])));
    }
    return kn_check_device_list(function, devices, num_devices, false);
}

/* The subset of the tensors that is recorded, or not (`recorded`), and its copies on other devices. */
typedef struct some_tensors {
    kn_tensor *const *all;
    kn_device *const *devices;
    int count, num_devices;
    size_t buffer_size;
} some_tensors;

static kn_status broadcast_some(const some_tensors *some, bool recorded, kn_tensor **made)
{
    int chosen = 0, targets = 0, count = some->count;
    kn_device *others[KN_MAX_DEVICES];
    for (int i = 0; i < some->num_devices; i++)
        if (some->devices[i] != kn_device_of(some->all[0]))
            others[targets++] = some->devices[i];
    size_t copies = (size_t)count * (size_t)targets;
    kn_tensor **block = kn_calloc((size_t)count + copies + 1, sizeof *block), **copy = block + count;
    if (!block)
        return KN_ERR_MEMORY;
    for (int t = 0; t < count; t++)
        if (kn_is_recorded(some->all[t]) == recorded)
            block[chosen++] = some->all[t];
    kn_status status = kn_broadcast_recorded(block, chosen, others, targets, some->buffer_size, copy);
    for (int i = 0; i < some->num_devices && status == KN_OK; i++) {
        bool own = some->devices[i] == kn_device_of(some->all[0]);
        for (int t = 0; t < count; t++)
            if (kn_is_recorded(some->all[t]) == recorded)
                made[i * count + t] = own ? kn_retain(some->all[t]) : *copy++;
    }
    kn_free(block);
    return status;
}

kn_status kn_comm_broadcast_coalesced(kn_tensor *const *tensors, int count, kn_device *const *devices, int num_devices,
                                      size_t buffer_size, kn_tensor **out)
{
    KN_TRY(check("broadcast_coalesced", tensors, count, devices, num_devices, out));
    const some_tensors some = {tensors, devices, count, num_devices, buffer_size};
    int results = count * num_devices;
    kn_tensor **made = kn_calloc((size_t)results, sizeof *made);
    kn_status status = made ? broadcast_some(&some, true, made) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = broadcast_some(&some, false, made);
    if (status == KN_OK)
        status = kn_scope_adopt_all(made, results, out);
    else if (made)
        kn_release_all(made, results);
    if (status != KN_OK)
        kn_error_prefix("broadcast_coalesced");
    kn_free(made);
    return status;
}

kn_status kn_comm_broadcast(kn_tensor *tensor, kn_device *const *devices, int num_devices, kn_tensor **out)
{
    KN_TRY(check("broadcast", &tensor, 1, devices, num_devices, out));
    return kn_comm_broadcast_coalesced(&tensor, 1, devices, num_devices, 0, out);
}
