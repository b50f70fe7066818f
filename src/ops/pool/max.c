/* ops/pool/max.c - max pooling: one launch forward, which keeps where each maximum lies, and one backward. A maximum
 * that the activation cut off has no place, so that backward need not know of the activation. */
#include <koine/functional.h>
#include <stdio.h>

#include "loops/work_size.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"
#include "ops/operators.h"
#include "ops/pointwise/epilogue.h"
#include "ops/pool/pool.h"

static bool tells_indices(const kn_call *call) { return ((const kn_pool_kind *)call->op->detail)->indices; }

/* The dtype of a place within a window, or of none. */
static kn_dtype index_dtype(const kn_pool_geometry *g)
{
    return (int64_t)g->kernel_size[0] * g->kernel_size[1] * g->kernel_size[2] <= 255 ? KN_U8 : KN_I32;
}

static const char *index_options(const kn_pool_geometry *g)
{
    return index_dtype(g) == KN_U8 ? " -DINDEX=uchar" : " -DINDEX=int";
}

static kn_status max_pool_shape(kn_call *call)
{
    const kn_pool_params *params = call->params;
    if (tells_indices(call) && params->activation != KN_ACTIVATION_NONE)
        return kn_fail(KN_ERR_ARGUMENT, "takes no activation: what it cuts off has no place");
    return kn_pool_shape(call);
}

/* Where nobody asks for them the places are not written, and `index` is any buffer. */
static kn_status launch_forward(kn_call *call, const kn_pool_geometry *g, const kn_tensor *x, const kn_tensor *index)
{
    const kn_bounds bounds = kn_bounds_of(((const kn_pool_params *)call->params)->activation);
    kn_tensor *y = call->outputs[0];

    return kn_pool_launch(
        call->stream,
        &(kn_launch_params){.source = "pool/max.cl",
                            .options = index_options(g),
                            .kernel = "max_pool_forward",
                            .operation = call->op->name,
                            KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(y), kn_arg_tensor(index ? index : y),
                                    kn_arg_pool(g), {0}, kn_arg_i32(index != NULL), kn_arg_real(x->dtype, bounds.low),
                                    kn_arg_real(x->dtype, bounds.high))},
        4, g, y, false, kn_numel(y));
}

/* From places within windows to those within planes: of volumes, which flattening would hide. */
static kn_status launch_indices(kn_call *call, const kn_pool_geometry *flat, const kn_tensor *index)
{
    const kn_tensor *x = call->inputs[0], *indices = call->outputs[1];
    const kn_pool_kind *kind = call->op->detail;
    const kn_work_size work = kn_work_for(kn_tensor_limits(indices), kn_numel(indices));
    kn_pool_geometry g;
    char options[96];

    if (kn_numel(indices) == 0)
        return KN_OK;
    KN_TRY(kn_pool_resolve(&g, kind->dims, call->params, x->ndim, x->shape));
    snprintf(options, sizeof options, "%s -DKERNEL=0 -DVOLUME=1%s", kn_dtype_options(x->dtype), index_options(flat));
    return kn_run(call->stream, .source = "pool/max.cl", .options = options, .kernel = "max_pool_indices",
                  .operation = call->op->name, .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(index), kn_arg_tensor(indices), kn_arg_pool(&g)));
}

static kn_status max_pool_forward(kn_call *call)
{
    const kn_pool_geometry g = kn_pool_of_call(call, false);
    kn_tensor *x, *index = NULL;
    kn_status status = KN_OK;

    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    if (call->needs_grad || tells_indices(call))
        status = kn_tensor_new(&index, index_dtype(&g), call->spec[0].ndim, call->spec[0].shape, x->storage->device);
    if (status == KN_OK && call->needs_grad)
        status = kn_call_save(call, index);
    if (status == KN_OK)
        status = launch_forward(call, &g, x, index);
    if (status == KN_OK && tells_indices(call))
        status = launch_indices(call, &g, index);
    kn_release(index);
    kn_release(x);
    return status;
}

static kn_status max_pool_backward(kn_grad_call *grad)
{
    const kn_pool_geometry g = kn_pool_of_gradient(grad, false);
    kn_tensor *out;

    if (!grad->grad_outputs[0])
        return KN_OK;
    out = kn_pool_new_gradient(grad);
    if (!out)
        return kn_error_status();
    return kn_pool_launch(
        grad->stream,
        &(kn_launch_params){.source = "pool/max.cl",
                            .options = index_options(&g),
                            .kernel = "max_pool_backward",
                            .operation = grad->op->name,
                            KN_ARGS(kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(grad->saved[0]),
                                    kn_arg_tensor(out), kn_arg_pool(&g), {0})},
        4, &g, out, true, kn_numel(out));
}

/* --- the plain C reference ---------------------------------------------------------------------------------------- */

/* Where place number `place` of the window of output `i` of a plane lies, both numbered row by row; -1 in the padding. */
static int64_t reference_place(const kn_pool_geometry *g, int64_t i, int64_t place)
{
    int64_t at[3];
    for (int d = 2; d >= 0; d--) {
        at[d] = i % g->out_size[d] * g->stride[d] - g->padding[d] + place % g->kernel_size[d] * g->dilation[d];
        i /= g->out_size[d];
        place /= g->kernel_size[d];
        if (at[d] < 0 || at[d] >= g->size[d])
            return -1;
    }
    return (at[0] * g->size[1] + at[1]) * g->size[2] + at[2];
}

/* The maximum of one window; padding is not looked at, as it stands for minus infinity. */
static double reference_window(const kn_tensor *x, const kn_pool_geometry *g, int64_t plane, int64_t i, int64_t *index)
{
    const int64_t places = (int64_t)g->kernel_size[0] * g->kernel_size[1] * g->kernel_size[2];
    const int64_t first = plane * g->size[0] * g->size[1] * g->size[2];
    double best = -INFINITY;

    *index = -1;
    for (int64_t place = 0; place < places; place++) {
        const int64_t at = reference_place(g, i, place);
        const double v = at < 0 ? 0 : kn_reference_get(x, first + at);
        if (at < 0 || (*index >= 0 && !(v > best) && !isnan(v)))
            continue;
        best = v;
        *index = at;
    }
    return best;
}

static kn_status max_pool_reference(const kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    const kn_pool_params *params = call->params;
    const kn_bounds bounds = kn_bounds_of(params->activation);
    kn_pool_geometry g;

    KN_TRY(kn_pool_resolve(&g, ((const kn_pool_kind *)call->op->detail)->dims, params, x->ndim, x->shape));
    const int64_t outputs = (int64_t)g.out_size[0] * g.out_size[1] * g.out_size[2];
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        int64_t index;
        const double best = reference_window(x, &g, i / outputs, i % outputs, &index);
        kn_reference_set(call->outputs[0], i, kn_clamp_value(bounds, best));
        if (tells_indices(call))
            kn_reference_set(call->outputs[1], i, (double)(index < 0 ? 0 : index));
    }
    return KN_OK;
}

/* --- the ops ------------------------------------------------------------------------------------------------------ */

#define MAX_POOL(op, count, with_indices, ...)                                                                         \
    const kn_op kn_##op##_op = {.name = #op,                                                                           \
                                .inputs = {"x"},                                                                       \
                                .dtypes = {KN_DTYPES_FLOATING},                                                        \
                                .outputs = {__VA_ARGS__},                                                              \
                                .params = KN_PARAMS(kn_pool_params, kn_pool_rows, KN_POOL_DEFAULTS),                   \
                                .widens_halves = true,                                                                 \
                                .shape = max_pool_shape,                                                               \
                                .forward = max_pool_forward,                                                           \
                                .backward = max_pool_backward,                                                         \
                                .reference = max_pool_reference,                                                       \
                                .work = kn_pool_work,                                                                  \
                                .backward_work = kn_pool_max_backward_work,                                            \
                                .detail = &(kn_pool_kind){.dims = count, .indices = with_indices}};
#define MAX_POOLS(count)                                                                                               \
    MAX_POOL(max_pool##count##d, count, false, "result")                                                               \
    MAX_POOL(max_pool##count##d_with_indices, count, true, "result", "indices")                                        \
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
