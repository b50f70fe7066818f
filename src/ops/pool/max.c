/* ops/pool/max.c - max pooling: one launch forward, which stores the index of each maximum, and one backward. A maximum
 * that the activation clamped has no index, so backward need not know the activation. */
#include <koine/pool.h>
#include <stdio.h>
#include <string.h>

#include "loops/work_size.h"
#include "ops/dispatch/invoke.h"
#include "ops/pointwise/epilogue.h"
#include "ops/pool/pool.h"

/* Whether forward writes indices in planes, as the operators with indices have them: on CPU devices, whose kernel
 * counts them in int. Otherwise indices within windows are converted. `g` becomes that of whole volumes then. */
static bool is_written_flat(const kn_call *call, kn_pool_geometry *g)
{
    const kn_tensor *x = call->inputs[0];
    kn_pool_geometry whole;
    if (!kn_pool_kind_of(call->op)->indices || !kn_tensor_limits(x)->is_cpu ||
        kn_pool_resolve(&whole, call->op->detail, call->params, x->ndim, x->shape) != KN_OK ||
        (int64_t)whole.size[0] * whole.size[1] * whole.size[2] > INT32_MAX)
        return false;
    *g = whole;
    return true;
}

/* The dtype of an index within a window, including "none". */
static kn_dtype index_dtype(const kn_pool_geometry *g)
{
    return (int64_t)g->kernel_size[0] * g->kernel_size[1] * g->kernel_size[2] <= 255 ? KN_U8 : KN_I32;
}

static const char *index_options(const kn_pool_geometry *g)
{
    return index_dtype(g) == KN_U8 ? " -DINDEX=uchar" : " -DINDEX=int";
}

/* Adjacent windows of 2 x 2 elements, for which CPU devices have code of their own. */
static bool are_pairs(const kn_limits *limits, const kn_pool_geometry *g)
{
    bool pairs = limits->is_cpu && kn_pool_is_image(g) && g->out_size[2] >= 4;
    for (int d = 1; d < 3; d++)
        pairs = pairs && g->kernel_size[d] == 2 && g->stride[d] == 2 && g->padding[d] == 0 && g->dilation[d] == 1 &&
                2 * g->out_size[d] <= g->size[d];
    return pairs;
}

/* Finding the place of a window's maximum takes as long as comparing a few elements. */
static bool has_long_lines(const kn_tensor *t, const kn_pool_geometry *g)
{
    return (int64_t)g->kernel_size[0] * g->kernel_size[1] * g->kernel_size[2] >= 12 &&
           kn_pool_has_long_lines(kn_tensor_limits(t), g, 8);
}

/* Those of pool/max.cl; `buffer` has MAX_OPTIONS bytes and is returned. */
enum { MAX_OPTIONS = 64 };
static const char *options_of(char *buffer, const kn_tensor *t, const kn_pool_geometry *g, bool is_flat)
{
    const char *form = are_pairs(kn_tensor_limits(t), g) ? " -DPAIRS" : has_long_lines(t, g) ? " -DLONG" : "";
    snprintf(buffer, MAX_OPTIONS, "%s%s", is_flat ? " -DINDEX=long -DFLAT=1" : index_options(g), form);
    return buffer;
}

static kn_status max_pool_shape(kn_call *call)
{
    const kn_pool_params *params = call->params;
    if (kn_pool_kind_of(call->op)->indices && params->activation != KN_ACTIVATION_NONE)
        return kn_fail(KN_ERR_ARGUMENT, "takes no activation: clamped maxima have no index");
    return kn_pool_shape(call);
}

/* By vectors of `channels`, which are innermost in memory, or of small planes: 0. Indices are written only if needed;
 * otherwise `index` is any buffer. */
static kn_status launch_lanes(kn_call *call, const kn_pool_geometry *g, const kn_tensor *x, const kn_tensor *index,
                              int64_t channels)
{
    const kn_bounds bounds = kn_bounds_of(((const kn_pool_params *)call->params)->activation);
    kn_tensor *y = call->outputs[0];
    const kn_arg args[] = {kn_arg_tensor(x),
                           kn_arg_tensor(y),
                           kn_arg_tensor(index ? index : y),
                           kn_arg_pool(g),
                           kn_arg_i32(index != NULL),
                           kn_arg_real(x->dtype, bounds.low),
                           kn_arg_real(x->dtype, bounds.high),
                           kn_arg_i64(channels)};
    char options[MAX_OPTIONS];

    snprintf(options, sizeof options, "%s%s", index_options(g), channels == 0 ? " -DPLANES" : "");
    return kn_pool_launch(call->stream,
                          &(kn_launch_params){.source = "pool/max_lanes.cl",
                                              .options = options,
                                              .kernel = channels == 0 ? "max_pool_planes" : "max_pool_channels",
                                              .operation = call->op->name,
                                              .args = args,
                                              .num_args = channels == 0 ? 7 : 8},
                          g, y, false, kn_numel(x) / 2);
}

static kn_status launch_forward(kn_call *call, const kn_pool_geometry *g, const kn_tensor *x, const kn_tensor *index,
                                bool is_flat)
{
    const kn_bounds bounds = kn_bounds_of(((const kn_pool_params *)call->params)->activation);
    kn_tensor *y = call->outputs[0];
    const kn_limits *limits = kn_tensor_limits(y);
    char options[MAX_OPTIONS];

    if (!is_flat && !are_pairs(limits, g) && kn_pool_has_small_planes(limits, g))
        return launch_lanes(call, g, x, index, 0);
    return kn_pool_launch(
        call->stream,
        &(kn_launch_params){.source = "pool/max.cl",
                            .options = options_of(options, y, g, is_flat),
                            .kernel = "max_pool_forward",
                            .operation = call->op->name,
                            KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(y), kn_arg_tensor(index ? index : y),
                                    kn_arg_pool(g), kn_arg_i32(index != NULL), kn_arg_real(x->dtype, bounds.low),
                                    kn_arg_real(x->dtype, bounds.high))},
        g, y, false, has_long_lines(y, g) ? kn_numel(x) / 2 : kn_numel(y));
}

/* Converts indices within windows to indices within planes or back, of volumes before flattening: the kernels
 * max_pool_indices, with `none` for no index, and max_pool_places. x gives the input's shape. */
static kn_status convert_places(kn_stream *stream, const kn_op *op, const void *params, const kn_input_spec *x,
                                const char *kernel, const kn_tensor *from, const kn_tensor *to, int none)
{
    const kn_work_size work = kn_work_for(kn_tensor_limits(to), kn_numel(to));
    kn_pool_geometry g;
    char options[96];

    if (kn_numel(to) == 0)
        return KN_OK;
    KN_TRY(kn_pool_resolve(&g, op->detail, params, x->ndim, x->shape));
    snprintf(options, sizeof options, "%s -DKERNEL=0 -DVOLUME=1%s", kn_dtype_options(x->dtype), index_options(&g));
    const kn_arg args[] = {kn_arg_tensor(from), kn_arg_tensor(to), kn_arg_pool(&g), kn_arg_i32(none)};
    return kn_run(stream, .source = "pool/max_indices.cl", .options = options, .kernel = kernel, .operation = op->name,
                  .dims = 1, .global = {work.global}, .local = {work.local}, .args = args,
                  .num_args = from->dtype == KN_I64 ? 3 : 4);
}

static kn_status launch_indices(kn_call *call, const kn_tensor *index)
{
    const kn_tensor *t = call->inputs[0];
    kn_input_spec x = {.dtype = t->dtype, .ndim = t->ndim};
    memcpy(x.shape, t->shape, sizeof x.shape);
    return convert_places(call->stream, call->op, call->params, &x, "max_pool_indices", index, call->outputs[1], 0);
}

/* Images whose channels are innermost, also those of the indices within windows that backward takes. */
static kn_status forward_of_channels(kn_call *call)
{
    kn_tensor *x = call->inputs[0], *y = call->outputs[0], *index = NULL;
    int64_t channels;
    const kn_pool_geometry g = kn_pool_of_images(call, &channels);

    if (call->needs_grad) {
        KN_TRY(kn_tensor_new(&index, index_dtype(&g), y->ndim, y->shape, x->storage->device));
        memcpy(index->strides, y->strides, sizeof index->strides);
    }
    kn_status status = index ? kn_call_save(call, index) : KN_OK;
    if (status == KN_OK)
        status = launch_lanes(call, &g, x, index, channels);
    kn_release(index);
    return status;
}

static kn_status max_pool_forward(kn_call *call)
{
    if (!kn_pool_kind_of(call->op)->indices && kn_pool_has_inner_channels(call))
        return forward_of_channels(call);
    kn_pool_geometry g = kn_pool_of_call(call);
    const bool is_flat = is_written_flat(call, &g);
    kn_tensor *x, *index = NULL;
    kn_status status = KN_OK;

    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    if (is_flat)
        index = kn_retain(call->outputs[1]);
    else if (call->needs_grad || kn_pool_kind_of(call->op)->indices)
        status = kn_tensor_new(&index, index_dtype(&g), call->spec[0].ndim, call->spec[0].shape, x->storage->device);
    if (status == KN_OK && call->needs_grad)
        status = kn_call_save(call, index);
    if (status == KN_OK)
        status = launch_forward(call, &g, x, index, is_flat);
    if (status == KN_OK && kn_pool_kind_of(call->op)->indices && !is_flat)
        status = launch_indices(call, index);
    kn_release(index);
    kn_release(x);
    return status;
}

static kn_tensor *empty_like(const kn_tensor *t, kn_dtype dtype)
{
    return kn_empty_with(t->ndim, t->shape, &(kn_tensor_options){.dtype = dtype, .device = kn_device_of(t)});
}

static kn_status max_pool_backward(kn_grad_call *grad)
{
    kn_pool_geometry g = kn_pool_of_gradient(grad);
    kn_tensor *index = kn_contiguous(grad->saved[0]), *out;
    char options[MAX_OPTIONS];

    if (!index)
        return kn_error_status();
    if (!grad->grad_outputs[0])
        return KN_OK;
    const bool has_indices = index->dtype == KN_I64 && kn_tensor_limits(index)->is_cpu;
    if (has_indices) /* in whole volumes */
        KN_TRY(kn_pool_resolve(&g, grad->op->detail, grad->params, grad->input[0].ndim, grad->input[0].shape));
    if (index->dtype == KN_I64 && !has_indices) { /* of the operator: places in planes */
        const kn_tensor *given = index;
        index = empty_like(grad->grad_outputs[0], index_dtype(&g));
        if (!index)
            return kn_error_status();
        KN_TRY(
            convert_places(grad->stream, grad->op, grad->params, &grad->input[0], "max_pool_places", given, index, 0));
    }
    out = kn_grad_new(grad, 0);
    if (!out)
        return kn_error_status();
    return kn_pool_launch(
        grad->stream,
        &(kn_launch_params){
            .source = has_indices ? "pool/max_indices.cl" : "pool/max.cl",
            .options = has_indices ? index_options(&g) : options_of(options, out, &g, false),
            .kernel = has_indices ? "max_pool_backward_by_indices" : "max_pool_backward",
            .operation = grad->op->name,
            KN_ARGS(kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(index), kn_arg_tensor(out), kn_arg_pool(&g))},
        &g, out, true, kn_numel(out));
}

/* The backward operator has no activation; a maximum that it clamped has no index. */
static kn_status max_pool_backward_recorded(kn_grad_call *grad)
{
    kn_pool_params params = *(const kn_pool_params *)grad->params;
    kn_tensor *indices = kn_contiguous(grad->saved[0]);

    if (!indices)
        return kn_error_status();
    if (!grad->grad_outputs[0])
        return KN_OK;
    if (indices->dtype != KN_I64) {
        const kn_tensor *places = indices;
        indices = empty_like(grad->grad_outputs[0], KN_I64);
        if (!indices)
            return kn_error_status();
        KN_TRY(
            convert_places(grad->stream, grad->op, &params, &grad->input[0], "max_pool_indices", places, indices, -1));
    }
    params.activation = KN_ACTIVATION_NONE;
    return kn_pool_max_backward_recorded(grad, indices, &params);
}

/* --- the ops ------------------------------------------------------------------------------------------------------ */

#define MAX_POOL(op, count, with_indices, ...)                                                                         \
    const kn_op kn_##op##_op = {KN_POOL_OP(op, .dims = count, .indices = with_indices),                                \
                                .arrange = with_indices ? NULL : kn_pool_arrange,                                      \
                                .outputs = {__VA_ARGS__},                                                              \
                                .params = KN_PARAMS(kn_pool_params, kn_pool_rows, KN_POOL_DEFAULTS),                   \
                                .shape = max_pool_shape,                                                               \
                                .forward = max_pool_forward,                                                           \
                                .backward = max_pool_backward,                                                         \
                                .backward_recorded = max_pool_backward_recorded,                                       \
                                .saved = {"indices"},                                                                  \
                                .backward_operator = &kn_max_pool##count##d_with_indices_backward_op,                  \
                                .backward_work = kn_pool_max_backward_work};
#define MAX_POOLS(count)                                                                                               \
    extern const kn_op kn_max_pool##count##d_with_indices_backward_op;                                                 \
    MAX_POOL(max_pool##count##d, count, false, "result")                                                               \
    MAX_POOL(max_pool##count##d_with_indices, count, true, "result", "indices")                                        \
    const kn_op kn_max_pool##count##d_with_indices_backward_op = {                                                     \
        KN_POOL_MAX_BACKWARD_OP(max_pool##count##d_with_indices)};                                                     \
    kn_tensor *kn_max_pool##count##d_with(kn_tensor *x, const kn_pool_params *params)                                  \
    {                                                                                                                  \
        return kn_invoke(&kn_max_pool##count##d_op, params, x);                                                        \
    }                                                                                                                  \
    kn_tensor *kn_max_pool##count##d_with_indices_with(kn_tensor *x, kn_tensor **indices,                              \
                                                       const kn_pool_params *params)                                   \
    {                                                                                                                  \
        return kn_pool_with_indices(&kn_max_pool##count##d_with_indices_op, x, params, indices);                       \
    }

MAX_POOLS(1)
MAX_POOLS(2)
MAX_POOLS(3)
