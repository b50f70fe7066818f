/* ops/dispatch/convert.c - kn_to, kn_to_dtype, kn_contiguous, kn_clone: copies that change only dtype, device or
 * layout. */
#include <koine/autograd.h>
#include <koine/shape.h>

#include "autograd/tape.h"
#include "autograd/work.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/promote.h"
#include "tensor/batched.h"

/* --- copies on one device ---------------------------------------------------------------------------------------- */

static kn_status convert_shape(kn_call *call)
{
    const kn_to_dtype_args *params = call->params;
    return kn_call_output(call, params->dtype, call->inputs[0]->ndim, call->inputs[0]->shape);
}

static kn_status convert_forward(kn_call *call) { return kn_tensor_copy(call->outputs[0], call->inputs[0]); }

static kn_status convert_backward(kn_grad_call *grad)
{
    if (!kn_dtype_is_floating(grad->input[0].dtype))
        return KN_OK;
    grad->grad_inputs[0] = kn_to_dtype(grad->grad_outputs[0], grad->input[0].dtype);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

/* A copy in the same dtype. */
static kn_status clone_enter(kn_entry *entry)
{
    kn_to_dtype_args *own = kn_entry_record(entry, sizeof *own);
    own->dtype = entry->inputs[0]->dtype;
    return KN_OK;
}

static kn_status contiguous_enter(kn_entry *entry)
{
    return kn_is_contiguous(entry->inputs[0]) ? kn_entry_return_input(entry) : clone_enter(entry);
}

static kn_status to_dtype_enter(kn_entry *entry)
{
    const kn_dtype dtype = ((const kn_to_dtype_args *)entry->params)->dtype;
    if (dtype == KN_DTYPE_DEFAULT)
        return kn_fail(KN_ERR_ARGUMENT, "%d is not a dtype", (int)dtype);
    return dtype == entry->inputs[0]->dtype ? kn_entry_return_input(entry) : KN_OK;
}

#define COPY_OP(op_name, params_, enter_, ...)                                                                         \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x"}, .params = params_, .enter = enter_, .record_size = sizeof(kn_to_dtype_args), \
        .shape = convert_shape, .forward = convert_forward, .backward = convert_backward,                              \
        .backward_recorded = convert_backward, .work = kn_work_memory_bound,                                           \
        .backward_work = kn_grad_work_memory_bound, __VA_ARGS__                                                        \
    }

static const kn_op_param dtype_row[] = {KN_PARAM(kn_to_dtype_args, dtype)};
const kn_op kn_to_dtype_op = COPY_OP("to_dtype", KN_PARAMS(kn_to_dtype_args, dtype_row, .dtype = KN_F32),
                                     to_dtype_enter, .arrange = kn_call_arrange);
const kn_op kn_contiguous_op = COPY_OP("contiguous", KN_NO_PARAMS, contiguous_enter, );
const kn_op kn_clone_op = COPY_OP("clone", KN_NO_PARAMS, clone_enter, .arrange = kn_call_arrange);

/* The tensor itself, with one more reference. */
static kn_tensor *same(kn_tensor *tensor) { return kn_scope_adopt(kn_retain(tensor)); }

/* On the host, or if no gradient is needed, a conversion is a plain copy. */
static bool is_recorded(const kn_tensor *tensor) { return kn_grad_enabled() && kn_requires_grad(tensor); }
static bool needs_op(const kn_tensor *tensor) { return tensor->whole || is_recorded(tensor); }

static kn_tensor *given(const char *function, kn_tensor *copy, kn_status status)
{
    if (status == KN_OK)
        return kn_scope_adopt(copy);
    kn_error_prefix("%s", function);
    return kn_error_make_sticky();
}

static kn_tensor *plain_copy(const char *function, kn_tensor *tensor, kn_dtype dtype, kn_device *device)
{
    kn_tensor *copy = NULL;
    const kn_status status = kn_tensor_cast(&copy, tensor, dtype, device);
    return given(function, copy, status);
}

/* In the tensor's order. */
static kn_tensor *plain_conversion(const char *function, kn_tensor *tensor, kn_dtype dtype)
{
    kn_tensor *result;
    kn_status status = kn_tensor_new(&result, dtype, tensor->ndim, tensor->shape, tensor->storage->device);
    if (status != KN_OK)
        return given(function, NULL, status);
    kn_tensor_arrange(result, &tensor, 1);
    status = kn_tensor_copy(result, tensor);
    if (status != KN_OK)
        kn_release(result);
    return given(function, result, status);
}

kn_tensor *kn_to_dtype(kn_tensor *tensor, kn_dtype dtype)
{
    const kn_to_dtype_args params = {.dtype = dtype};

    if (!kn_check_argument("to_dtype", "tensor", tensor))
        return NULL;
    if (!kn_dtype_is_valid(dtype))
        return kn_fail_null(KN_ERR_ARGUMENT, "to_dtype: %d is not a dtype", (int)dtype);
    if (dtype == tensor->dtype)
        return same(tensor);
    if (!needs_op(tensor))
        return plain_conversion("to_dtype", tensor, dtype);
    return kn_invoke(&kn_to_dtype_op, &params, tensor);
}

kn_tensor *kn_contiguous(kn_tensor *x)
{
    if (!kn_check_argument("contiguous", "x", x))
        return NULL;
    if (kn_is_contiguous(x))
        return same(x);
    if (!needs_op(x))
        return plain_copy("contiguous", x, x->dtype, x->storage->device);
    return kn_invoke(&kn_contiguous_op, NULL, x);
}

kn_tensor *kn_clone(kn_tensor *x)
{
    if (!kn_check_argument("clone", "x", x))
        return NULL;
    if (!needs_op(x))
        return plain_conversion("clone", x, x->dtype);
    return kn_invoke(&kn_clone_op, NULL, x);
}

/* --- from device to device --------------------------------------------------------------------------------------- */

/* An op with a descriptor, but recorded explicitly: kn_op_apply is for ops whose inputs and outputs are on the same
 * device. */
typedef struct kn_to_origin {
    kn_device *device;
} kn_to_origin;

static kn_status to_backward(kn_grad_call *grad)
{
    if (!kn_dtype_is_floating(grad->input[0].dtype))
        return KN_OK;
    const kn_to_params back = {.device = ((const kn_to_origin *)grad->params)->device, .dtype = grad->input[0].dtype};
    grad->grad_inputs[0] = kn_to_with(grad->grad_outputs[0], &back);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static const kn_op to_op = {
    .name = "to", .inputs = {"x"}, .record_size = sizeof(kn_to_origin), .backward = to_backward};

/* A non_blocking copy to the host is in pinned memory. */
static kn_tensor *move(kn_tensor *tensor, kn_dtype dtype, kn_device *device, bool non_blocking)
{
    kn_device *from = tensor->storage->device;
    kn_tensor *result = NULL;
    const bool pinned = non_blocking && kn_device_is_host(device) && !kn_device_is_host(from);
    kn_status status = pinned ? kn_tensor_new_pinned(&result, dtype, tensor->ndim, tensor->shape, from)
                              : kn_tensor_new(&result, dtype, tensor->ndim, tensor->shape, device);

    if (status == KN_OK)
        status = kn_tensor_copy_with(result, tensor, non_blocking);
    if (status == KN_OK)
        return kn_scope_adopt(result);
    kn_release(result);
    kn_error_prefix("to");
    return kn_error_make_sticky();
}

kn_to_params kn_to_params_init(void) { return (kn_to_params){KN_TO_DEFAULTS}; }

kn_tensor *kn_to_with(kn_tensor *tensor, const kn_to_params *params)
{
    if (!kn_check_argument("to", "tensor", tensor))
        return NULL;
    params = params ? params : &(kn_to_params){KN_TO_DEFAULTS};
    kn_device *device = params->device ? params->device : tensor->storage->device;
    const kn_dtype dtype = params->dtype ? params->dtype : tensor->dtype;
    if (!kn_dtype_is_valid(dtype))
        return kn_fail_null(KN_ERR_ARGUMENT, "to: %d is not a dtype", (int)dtype);
    const bool stays = device == tensor->storage->device && dtype == tensor->dtype;
    if (stays && !params->copy)
        return same(tensor);
    if (tensor->whole)
        KN_RETURN_BATCHED(tensor, kn_to_with(tensor->whole, params));
    if (device == tensor->storage->device && !kn_device_is_host(device))
        return stays ? kn_clone(tensor) : kn_to_dtype(tensor, dtype);

    kn_tensor *result = move(tensor, dtype, device, params->non_blocking);
    if (!result || !is_recorded(tensor) || !kn_dtype_is_floating(dtype))
        return result;
    const kn_to_origin origin = {.device = tensor->storage->device};
    kn_call call = {.op = &to_op,
                    .params = &origin,
                    .num_inputs = 1,
                    .inputs = &tensor,
                    .num_outputs = 1,
                    .outputs = {result},
                    .needs_grad = true};
    const kn_record record = kn_record_of(&call);
    return kn_tape_add(&record) == KN_OK ? result : kn_error_make_sticky();
}

kn_tensor *kn_to(kn_tensor *tensor, kn_device *device)
{
    if (tensor && !device)
        return kn_fail_argument_null("to", "device"), kn_error_make_sticky();
    return kn_to_with(tensor, &(kn_to_params){.device = device});
}
