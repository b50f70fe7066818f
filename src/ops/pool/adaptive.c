/* ops/pool/adaptive.c - adaptive max and average pooling: window i of n covers floor(i size / n) to ceil((i + 1) size /
 * n). */
#include <koine/pool.h>

#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"
#include "ops/pool/pool.h"
#include "ops/shape/reduce.h"

/* Runs a kernel of pool/adaptive.cl with the given arguments, except number `cut`, which kn_pool_launch sets; `count`:
 * work-items on CPU devices. */
static kn_status launch(kn_stream *stream, const kn_op *op, const char *kernel, kn_dtype index,
                        const kn_pool_geometry *g, const kn_tensor *to, bool backward, int64_t count,
                        const kn_arg *args, int num_args, int cut)
{
    return kn_pool_launch(stream,
                          &(kn_launch_params){.source = "pool/adaptive.cl",
                                              .options = index == KN_I64 ? " -DINDEX=long" : " -DINDEX=int",
                                              .kernel = kernel,
                                              .operation = op->name,
                                              .args = args,
                                              .num_args = num_args},
                          cut, g, to, backward, count);
}

/* --- max --------------------------------------------------------------------------------------------------------- */

static bool returns_indices(const kn_call *call) { return ((const kn_pool_kind *)call->op->detail)->indices; }

/* The indices of the maxima: the op's second output, or a tensor for backward; NULL if not needed. */
static kn_status make_index(kn_tensor **index, kn_call *call, kn_device *device)
{
    *index = NULL;
    if (returns_indices(call))
        *index = kn_retain(call->outputs[1]);
    else if (call->needs_grad)
        KN_TRY(kn_tensor_new(index, KN_I32, call->spec[0].ndim, call->spec[0].shape, device));
    return call->needs_grad ? kn_call_save(call, *index) : KN_OK;
}

static kn_status max_forward(kn_call *call)
{
    const kn_pool_geometry g = kn_pool_of_call(call, true);
    kn_tensor *x, *y = call->outputs[0], *index = NULL;
    kn_status status;

    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    status = make_index(&index, call, x->storage->device);
    if (status == KN_OK && kn_numel(y) > 0) {
        const kn_arg args[] = {
            kn_arg_tensor(x),         kn_arg_tensor(y), kn_arg_tensor(index ? index : y), kn_arg_pool(&g), {0},
            kn_arg_i32(index != NULL)};
        status = launch(call->stream, call->op, "adaptive_max_pool_forward", index ? index->dtype : KN_I32, &g, y,
                        false, kn_numel(x), args, 6, 4);
    }
    kn_release(index);
    kn_release(x);
    return status;
}

static kn_status max_backward(kn_grad_call *grad)
{
    const kn_pool_geometry g = kn_pool_of_gradient(grad, true);
    kn_tensor *out;

    if (!grad->grad_outputs[0])
        return KN_OK;
    out = kn_grad_new(grad, 0);
    if (!out)
        return kn_error_status();
    const kn_arg args[] = {
        kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(grad->saved[0]), kn_arg_tensor(out), kn_arg_pool(&g), {0}};
    return launch(grad->stream, grad->op, "adaptive_max_pool_backward", grad->saved[0]->dtype, &g, out, true,
                  4 * kn_numel(out), args, 5, 4);
}

static kn_status max_backward_recorded(kn_grad_call *grad)
{
    return grad->grad_outputs[0]
               ? kn_pool_max_backward_recorded(grad, kn_to_dtype(grad->saved[0], KN_I64), grad->params)
               : KN_OK;
}

/* --- average ----------------------------------------------------------------------------------------------------- */

static kn_status avg_forward(kn_call *call)
{
    const kn_pool_geometry g = kn_pool_of_call(call, true);
    const int64_t pixels = (int64_t)g.size[1] * g.size[2];
    kn_tensor *x, *y = call->outputs[0];
    kn_status status = KN_OK;

    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    if (!kn_tensor_limits(x)->is_cpu && kn_numel(y) == g.planes) { /* one work-item per plane would be slow */
        status = kn_sum_middle(call->stream, call->op->name, x, g.planes, pixels, 1, (double)pixels, y);
    } else if (kn_numel(y) > 0) {
        const kn_arg args[] = {kn_arg_tensor(x), kn_arg_tensor(y), kn_arg_pool(&g), {0}};
        status =
            launch(call->stream, call->op, "adaptive_avg_pool_forward", KN_I32, &g, y, false, kn_numel(x), args, 4, 3);
    }
    kn_release(x);
    return status;
}

static kn_status avg_backward(kn_grad_call *grad)
{
    const kn_pool_geometry g = kn_pool_of_gradient(grad, true);
    kn_tensor *out = kn_grad_new(grad, 0);

    if (!out)
        return kn_error_status();
    const kn_arg args[] = {kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(out), kn_arg_pool(&g), {0}};
    return launch(grad->stream, grad->op, "adaptive_avg_pool_backward", KN_I32, &g, out, true, 4 * kn_numel(out), args,
                  4, 3);
}

static kn_status avg_backward_recorded(kn_grad_call *grad) { return kn_backward_recorded(grad); }

/* --- references -------------------------------------------------------------------------------------------------- */

/* Accumulates a window's elements: sum, count, maximum and its index. */
typedef struct summary {
    double sum, count, best;
    int64_t index;
} summary;

static void look_at(summary *s, double v, int64_t index)
{
    s->sum += v;
    s->count++;
    if (v > s->best || isnan(v) || s->index < 0) {
        s->best = v;
        s->index = index;
    }
}

static summary reference_window(const kn_tensor *x, const kn_pool_geometry *g, int64_t plane, int64_t i)
{
    summary s = {.index = -1};
    int64_t low[3], high[3];

    for (int d = 2; d >= 0; d--) {
        const int64_t at = i % g->out_size[d], n = g->out_size[d];
        low[d] = at * g->size[d] / n;
        high[d] = ((at + 1) * g->size[d] + n - 1) / n;
        i /= n;
    }
    for (int64_t d = low[0]; d < high[0]; d++)
        for (int64_t h = low[1]; h < high[1]; h++)
            for (int64_t w = low[2]; w < high[2]; w++) {
                const int64_t at = (d * g->size[1] + h) * g->size[2] + w;
                look_at(&s, kn_reference_get(x, plane * g->size[0] * g->size[1] * g->size[2] + at), at);
            }
    return s;
}

static kn_status reference(const kn_call *call, bool average)
{
    const kn_tensor *x = call->inputs[0];
    kn_pool_geometry g;

    KN_TRY(
        kn_adaptive_pool_resolve(&g, ((const kn_pool_kind *)call->op->detail)->dims, call->params, x->ndim, x->shape));
    const int64_t outputs = (int64_t)g.out_size[0] * g.out_size[1] * g.out_size[2];
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        const summary s = reference_window(x, &g, i / outputs, i % outputs);
        kn_reference_set(call->outputs[0], i, average ? s.sum / s.count : s.best);
        if (returns_indices(call))
            kn_reference_set(call->outputs[1], i, (double)s.index);
    }
    return KN_OK;
}

static kn_status max_reference(const kn_call *call) { return reference(call, false); }
static kn_status avg_reference(const kn_call *call) { return reference(call, true); }

/* --- the ops ----------------------------------------------------------------------------------------------------- */

static const kn_op_param adaptive_row[] = {KN_PARAM(kn_adaptive_pool_args, output_size)};

#define max_saved "indices"
#define avg_saved NULL
#define ADAPTIVE(op, what, n, with_indices, gradient_work, of, ...)                                                    \
    const kn_op kn_##op##_op = {.name = #op,                                                                           \
                                .inputs = {"x"},                                                                       \
                                .dtypes = {KN_DTYPES_FLOATING},                                                        \
                                .outputs = {__VA_ARGS__},                                                              \
                                .params = KN_PARAMS(kn_adaptive_pool_args, adaptive_row, {.count = n}),                \
                                .widens_halves = true,                                                                 \
                                .shape = kn_adaptive_pool_shape,                                                       \
                                .forward = what##_forward,                                                             \
                                .backward = what##_backward,                                                           \
                                .backward_recorded = what##_backward_recorded,                                         \
                                .saved = {what##_saved},                                                               \
                                .backward_operator = &kn_##of##_backward_op,                                           \
                                .reference = what##_reference,                                                         \
                                .work = kn_adaptive_pool_work,                                                         \
                                .backward_work = gradient_work,                                                        \
                                .detail = &(kn_pool_kind){.dims = n, .indices = with_indices}};

/* The ops and functions for a number of dimensions: their sizes as parameters, as arguments. */
#define ADAPTIVES(n, parameters, ...)                                                                                  \
    extern const kn_op kn_adaptive_max_pool##n##d_with_indices_backward_op, kn_adaptive_avg_pool##n##d_backward_op;    \
    ADAPTIVE(adaptive_max_pool##n##d, max, n, false, kn_pool_max_backward_work, adaptive_max_pool##n##d_with_indices,  \
             "result")                                                                                                 \
    ADAPTIVE(adaptive_max_pool##n##d_with_indices, max, n, true, kn_pool_max_backward_work,                            \
             adaptive_max_pool##n##d_with_indices, "result", "indices")                                                \
    ADAPTIVE(adaptive_avg_pool##n##d, avg, n, false, kn_adaptive_pool_average_backward_work, adaptive_avg_pool##n##d,  \
             "result")                                                                                                 \
    const kn_op kn_adaptive_max_pool##n##d_with_indices_backward_op = {                                                \
        KN_POOL_MAX_BACKWARD_OP(adaptive_max_pool##n##d_with_indices)};                                                \
    const kn_op kn_adaptive_avg_pool##n##d_backward_op = {KN_LINEAR_BACKWARD_OP(adaptive_avg_pool##n##d),              \
                                                          .inputs = {"grad", "x"}, .outputs = {"grad_x"},              \
                                                          .widens_halves = true};                                      \
    kn_tensor *kn_adaptive_max_pool##n##d parameters                                                                   \
    {                                                                                                                  \
        const kn_adaptive_pool_args args = {{.count = n, .values = {__VA_ARGS__}}};                                    \
        return kn_invoke(&kn_adaptive_max_pool##n##d_op, &args, x);                                                    \
    }                                                                                                                  \
    kn_tensor *kn_adaptive_avg_pool##n##d parameters                                                                   \
    {                                                                                                                  \
        const kn_adaptive_pool_args args = {{.count = n, .values = {__VA_ARGS__}}};                                    \
        return kn_invoke(&kn_adaptive_avg_pool##n##d_op, &args, x);                                                    \
    }

ADAPTIVES(1, (kn_tensor * x, int64_t length), length)
ADAPTIVES(2, (kn_tensor * x, int64_t height, int64_t width), height, width)
ADAPTIVES(3, (kn_tensor * x, int64_t depth, int64_t height, int64_t width), depth, height, width)

kn_tensor *kn_adaptive_max_pool1d_with_indices(kn_tensor *x, int64_t length, kn_tensor **indices)
{
    const kn_adaptive_pool_args args = {{1, {length}}};
    return kn_pool_with_indices(&kn_adaptive_max_pool1d_with_indices_op, x, &args, indices);
}

kn_tensor *kn_adaptive_max_pool2d_with_indices(kn_tensor *x, int64_t height, int64_t width, kn_tensor **indices)
{
    const kn_adaptive_pool_args args = {{2, {height, width}}};
    return kn_pool_with_indices(&kn_adaptive_max_pool2d_with_indices_op, x, &args, indices);
}

kn_tensor *kn_adaptive_max_pool3d_with_indices(kn_tensor *x, int64_t depth, int64_t height, int64_t width,
                                               kn_tensor **indices)
{
    const kn_adaptive_pool_args args = {{3, {depth, height, width}}};
    return kn_pool_with_indices(&kn_adaptive_max_pool3d_with_indices_op, x, &args, indices);
}
