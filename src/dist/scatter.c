/* dist/scatter.c - splits a tensor into one chunk per device, and joins tensors of several devices. Each is the other's
 * backward pass. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "dist/collective.h"

/* --- pieces along a dimension ----------------------------------------------------------------------------------- */

/* A view of `length` indices of `whole` from `start` along `dim`. */
static kn_status piece(kn_tensor **view, kn_tensor *whole, int dim, int64_t start, int64_t length)
{
    int64_t shape[KN_MAX_DIMS];
    memcpy(shape, whole->shape, sizeof shape);
    shape[dim] = length;
    return kn_tensor_view(view, whole, whole->ndim, shape, whole->strides, whole->offset + start * whole->strides[dim]);
}

/* piece, on `device`: a copy unless it is already there. */
static kn_status piece_on(kn_tensor **result, kn_tensor *whole, int dim, int64_t start, int64_t length,
                          kn_device *device)
{
    kn_tensor *view = NULL;
    KN_TRY(piece(&view, whole, dim, start, length));
    if (kn_device_of(whole) == device) {
        *result = view;
        return KN_OK;
    }
    kn_status status = kn_tensor_cast(result, view, whole->dtype, device);
    kn_release(view);
    return status;
}

/* --- scatter ---------------------------------------------------------------------------------------------------- */

typedef struct scatter_params {
    int dim;
    int64_t sizes[KN_MAX_DEVICES];
} scatter_params;

/* The input's gradient: the chunks' gradients, with zeros for missing ones. */
static kn_status scatter_backward(kn_grad_call *grad)
{
    const scatter_params *params = grad->params;
    const kn_input_spec *input = &grad->input[0];
    kn_tensor *whole = NULL;
    KN_TRY(kn_tensor_new(&whole, input->dtype, input->ndim, input->shape, input->device));
    kn_status status = KN_OK;
    int64_t start = 0;
    for (int i = 0; i < grad->num_outputs && status == KN_OK; i++) {
        kn_tensor *view = NULL;
        status = piece(&view, whole, params->dim, start, params->sizes[i]);
        if (status == KN_OK)
            status = grad->grad_outputs[i] ? kn_tensor_copy(view, grad->grad_outputs[i]) : kn_tensor_fill(view, 0);
        kn_release(view);
        start += params->sizes[i];
    }
    if (status != KN_OK)
        kn_release(whole);
    else if (!(grad->grad_inputs[0] = kn_scope_adopt(whole)))
        status = kn_error_status();
    return status;
}

/* A chunk may share the input's memory, as a view does. */
static const kn_op scatter_op = {
    .name = "scatter", .record_size = sizeof(scatter_params), .is_view = true, .backward = scatter_backward};

/* Splits like torch.chunk; returns the number of chunks. Size 0 gives an empty chunk per device. */
static int default_sizes(int64_t size, int num_devices, int64_t *sizes)
{
    int64_t each = (size + num_devices - 1) / num_devices;
    int count = 0;
    for (int64_t left = size; count < num_devices && (left > 0 || each == 0); left -= each)
        sizes[count++] = left < each ? left : each;
    return count;
}

static kn_status given_sizes(const kn_tensor *tensor, int dim, const int64_t *chunk_sizes, int num_devices,
                             int64_t *sizes)
{
    int64_t sum = 0, size = tensor->shape[dim];
    bool valid = true;
    for (int i = 0; i < num_devices; i++) {
        valid = valid && chunk_sizes[i] >= 0 && chunk_sizes[i] <= size - sum;
        if (!valid)
            break;
        sizes[i] = chunk_sizes[i];
        sum += chunk_sizes[i];
    }
    if (valid && sum == size)
        return KN_OK;
    char text[1024];
    return kn_fail(KN_ERR_SHAPE,
                   "scatter: chunk_sizes %s must be 0 or more and add up to %" PRId64 ", the size of dimension %d",
                   kn_format_shape(text, sizeof text, num_devices, chunk_sizes), size, dim);
}

static kn_status scatter(kn_tensor *tensor, kn_device *const *devices, const scatter_params *params, int count,
                         kn_tensor **made)
{
    int64_t start = 0;
    for (int i = 0; i < count; i++) {
        KN_TRY(piece_on(&made[i], tensor, params->dim, start, params->sizes[i], devices[i]));
        if (made[i]->storage == tensor->storage)
            KN_TRY(kn_view_track(made[i], tensor, KN_VIEW_OF_MANY));
        start += params->sizes[i];
    }
    return kn_is_recorded(tensor) ? kn_tape_record_many(&scatter_op, params, &tensor, 1, made, count) : KN_OK;
}

kn_status kn_comm_scatter(kn_tensor *tensor, kn_device *const *devices, int num_devices, const int64_t *chunk_sizes,
                          int dim, kn_tensor **out)
{
    if (!tensor || !out)
        return kn_fail_argument_null("scatter", tensor ? "out" : "tensor");
    KN_TRY(kn_check_device_list("scatter", devices, num_devices, true));
    KN_TRY(kn_check_dim("scatter", tensor, &dim));
    scatter_params params = {.dim = dim};
    int count = num_devices;
    if (chunk_sizes)
        KN_TRY(given_sizes(tensor, dim, chunk_sizes, num_devices, params.sizes));
    else
        count = default_sizes(tensor->shape[dim], num_devices, params.sizes);
    kn_tensor *made[KN_MAX_DEVICES] = {NULL};
    kn_status status = scatter(tensor, devices, &params, count, made);
    if (status != KN_OK) {
        kn_release_all(made, count);
        kn_error_prefix("scatter");
        return status;
    }
    KN_TRY(kn_scope_adopt_all(made, count, out));
    for (int i = count; i < num_devices; i++)
        out[i] = NULL;
    return KN_OK;
}

/* --- gather ----------------------------------------------------------------------------------------------------- */

typedef struct gather_params {
    int dim;
} gather_params;

/* A tensor without dimensions counts as one element of a vector. */
static int64_t length_along(int ndim, const int64_t *shape, int dim) { return ndim == 0 ? 1 : shape[dim]; }

static kn_status gather_backward(kn_grad_call *grad)
{
    const gather_params *params = grad->params;
    int64_t start = 0;
    for (int i = 0; i < grad->num_inputs; i++) {
        const kn_input_spec *input = &grad->input[i];
        int64_t length = length_along(input->ndim, input->shape, params->dim);
        kn_tensor *slice = NULL, *shaped = NULL;
        start += length;
        if (!grad->needs[i])
            continue;
        KN_TRY(piece_on(&slice, grad->grad_outputs[0], params->dim, start - length, length, input->device));
        if (input->ndim == 0) {
            kn_status status = kn_tensor_view(&shaped, slice, 0, NULL, NULL, slice->offset);
            kn_release(slice);
            KN_TRY(status);
            slice = shaped;
        }
        if (!(grad->grad_inputs[i] = kn_scope_adopt(slice)))
            return kn_error_status();
    }
    return KN_OK;
}

static const kn_op gather_op = {.name = "gather", .record_size = sizeof(gather_params), .backward = gather_backward};

/* All copies are enqueued before anything is waited for. */
static kn_status fill(kn_tensor *whole, kn_tensor *const *tensors, int count, int dim)
{
    int64_t start = 0;
    kn_status status = KN_OK;
    for (int i = 0; i < count && status == KN_OK; i++) {
        kn_tensor *view = NULL;
        int64_t length = length_along(tensors[i]->ndim, tensors[i]->shape, dim);
        status = tensors[i]->ndim == 0 ? kn_tensor_view(&view, whole, 0, NULL, NULL, whole->offset + start)
                                       : piece(&view, whole, dim, start, length);
        if (status == KN_OK)
            status = kn_tensor_copy(view, tensors[i]);
        kn_release(view);
        start += length;
    }
    return status;
}

static kn_status gather(kn_tensor *const *tensors, int count, int dim, kn_device *destination, kn_tensor **whole)
{
    const gather_params params = {dim};
    int64_t shape[KN_MAX_DIMS], length = 0;
    bool recorded = false;
    memcpy(shape, tensors[0]->shape, sizeof shape);
    for (int i = 0; i < count; i++) {
        length += length_along(tensors[i]->ndim, tensors[i]->shape, dim);
        recorded = recorded || kn_is_recorded(tensors[i]);
    }
    shape[dim] = length;
    int ndim = tensors[0]->ndim > 0 ? tensors[0]->ndim : 1;
    KN_TRY(kn_tensor_new(whole, tensors[0]->dtype, ndim, shape, destination));
    kn_status status = fill(*whole, tensors, count, dim);
    if (status == KN_OK && recorded)
        status = kn_tape_record_many(&gather_op, &params, tensors, count, whole, 1);
    if (status != KN_OK)
        kn_release(*whole);
    return status;
}

static kn_status check_gather(kn_tensor *const *tensors, int count, int *dim, kn_device **destination)
{
    KN_TRY(kn_check_tensor_list("gather", tensors, count));
    if (tensors[0]->ndim == 0 && (*dim == 0 || *dim == -1))
        *dim = 0;
    else
        KN_TRY(kn_check_dim("gather", tensors[0], dim));
    KN_TRY(kn_check_alike("gather", tensors, count, 1, *dim));
    return kn_check_destination("gather", destination, true);
}

kn_tensor *kn_comm_gather(kn_tensor *const *tensors, int num_tensors, int dim, kn_device *destination)
{
    kn_tensor *whole = NULL;
    if (check_gather(tensors, num_tensors, &dim, &destination) != KN_OK)
        return kn_error_make_sticky();
    if (gather(tensors, num_tensors, dim, destination, &whole) != KN_OK) {
        kn_error_prefix("gather");
        return kn_error_make_sticky();
    }
    return kn_scope_adopt(whole);
}
