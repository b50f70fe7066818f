/* ops/pool/fractional.c - fractional max pooling. */
#include <koine/index.h>
#include <koine/pool.h>
#include <koine/random.h>
#include <koine/shape.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/directions.h"
#include "loops/work_size.h"
#include "ops/dispatch/reference.h"
#include "ops/pool/pool.h"

static int dims_of(const kn_op *op) { return *(const int *)op->detail; }

/* --- shape -------------------------------------------------------------------------------------------------------- */

static kn_status resolve(kn_pool_geometry *g, const kn_fractional_pool_args *args, int dims, int ndim,
                         const int64_t *shape)
{
    *g = (kn_pool_geometry){.planes = kn_shape_numel(ndim - dims, shape),
                            .size = {1, 1, 1},
                            .out_size = {1, 1, 1},
                            .kernel_size = {1, 1, 1}};
    if (args->kernel_size.count != dims || args->output_size.count != dims)
        return kn_fail(KN_ERR_ARGUMENT, "kernel_size and output_size have %d and %d numbers; they need %d",
                       args->kernel_size.count, args->output_size.count, dims);
    if (kn_shape_numel(dims, shape + ndim - dims) > INT_MAX)
        return kn_fail(KN_ERR_SHAPE, "images of more than 2^31 pixels are not supported");
    for (int i = 0; i < dims; i++) {
        const int64_t kernel = args->kernel_size.values[i], out = args->output_size.values[i],
                      size = shape[ndim - dims + i];
        const int d = kn_direction_of(dims, i);
        if (kernel < 1 || out < 1)
            return kn_fail(KN_ERR_ARGUMENT, "kernel_size %lld and output_size %lld (%s) must be 1 or more",
                           (long long)kernel, (long long)out, kn_direction_name(dims, d));
        if (kernel > size || out > size || out + kernel - 1 > size)
            return kn_fail(KN_ERR_SHAPE, "%lld windows of %s %lld do not fit into an input of %s %lld", (long long)out,
                           kn_direction_name(dims, d), (long long)kernel, kn_direction_name(dims, d), (long long)size);
        g->size[d] = (int32_t)size;
        g->kernel_size[d] = (int32_t)kernel;
        g->out_size[d] = (int32_t)out;
    }
    return KN_OK;
}

static kn_status fractional_shape(kn_call *call)
{
    const int dims = dims_of(call->op);
    const kn_tensor *x = call->inputs[0], *samples = call->inputs[1];
    kn_pool_geometry g;
    int64_t shape[KN_MAX_DIMS];
    char text[KN_DESCRIBE], other[KN_DESCRIBE];

    KN_TRY(kn_call_check_floating(call, 0));
    KN_TRY(kn_call_check_same_dtype(call, 0, 1));
    kn_tensor_describe(text, sizeof text, x);
    if (x->ndim != dims + 1 && x->ndim != dims + 2)
        return kn_fail(KN_ERR_SHAPE, "expected %d or %d dimensions, got %s", dims + 1, dims + 2, text);
    KN_TRY(resolve(&g, call->params, dims, x->ndim, x->shape));
    if (samples->ndim != 3 || samples->shape[0] * samples->shape[1] != g.planes || samples->shape[2] != dims)
        return kn_fail(KN_ERR_SHAPE, "expected samples [N, C, %d] for %s, got %s", dims, text,
                       kn_tensor_describe(other, sizeof other, samples));
    memcpy(shape, x->shape, sizeof shape);
    for (int i = 0; i < dims; i++)
        shape[x->ndim - dims + i] = g.out_size[kn_direction_of(dims, i)];
    KN_TRY(kn_call_output(call, x->dtype, x->ndim, shape));
    return kn_call_output(call, KN_I64, x->ndim, shape);
}

/* --- forward and backward ----------------------------------------------------------------------------------------- */

static kn_status launch(kn_call *call, const kn_tensor *x, const kn_tensor *samples)
{
    const kn_tensor *y = call->outputs[0];
    const int dims = dims_of(call->op);
    kn_pool_geometry g;

    KN_TRY(resolve(&g, call->params, dims, x->ndim, x->shape));
    const int64_t window = (int64_t)g.kernel_size[0] * g.kernel_size[1] * g.kernel_size[2];
    const kn_work_size work = kn_work_for(kn_tensor_limits(y), kn_numel(y) * (window + 8)); /* finding it: as 8 */
    return kn_run(call->stream, .source = "pool/fractional.cl", .options = kn_dtype_options(x->dtype),
                  .kernel = "fractional_max_pool", .operation = call->op->name, .dims = 1, .global = {work.global},
                  .local = {work.local},
                  KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(samples), kn_arg_tensor(y), kn_arg_tensor(call->outputs[1]),
                          kn_arg_pool(&g), kn_arg_i32(dims)));
}

static kn_status fractional_forward(kn_call *call)
{
    kn_tensor *x = NULL, *samples = NULL;
    kn_status status = kn_tensor_contiguous(&x, call->inputs[0]);

    if (status == KN_OK)
        status = kn_tensor_contiguous(&samples, call->inputs[1]);
    if (status == KN_OK && call->needs_grad)
        status = kn_call_save(call, call->outputs[1]);
    if (status == KN_OK && kn_numel(call->outputs[0]) > 0)
        status = launch(call, x, samples);
    kn_release(samples);
    kn_release(x);
    return status;
}

/* Windows may overlap: what they add to an element is summed in a fixed order. */
static kn_status fractional_backward(kn_grad_call *grad)
{
    const int dims = dims_of(grad->op);
    const kn_input_spec *x = &grad->input[0];
    kn_tensor *g = grad->grad_outputs[0];

    if (!g || !grad->needs[0])
        return KN_OK;
    const int first = x->ndim - dims;
    const int64_t planes = kn_shape_numel(first, x->shape), outputs = kn_shape_numel(dims, g->shape + first);
    const int64_t volume[] = {planes, kn_shape_numel(dims, x->shape + first)}, places[] = {planes, outputs};
    kn_tensor *zeros = kn_zeros_with(2, volume, &(kn_tensor_options){.dtype = x->dtype, .device = x->device});
    kn_tensor *sums = kn_scatter_add(zeros, 1, kn_reshape(grad->saved[0], 2, places), kn_reshape(g, 2, places));
    grad->grad_inputs[0] = kn_reshape(sums, x->ndim, x->shape);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

/* --- reference ---------------------------------------------------------------------------------------------------- */

static int64_t begin_of(const kn_pool_geometry *g, int d, int64_t i, double draw)
{
    const double room = g->size[d] - g->kernel_size[d], step = g->out_size[d] > 1 ? room / (g->out_size[d] - 1) : 0;
    return i == g->out_size[d] - 1 ? (int64_t)room
                                   : (int64_t)floor(((double)i + draw) * step) - (int64_t)floor(draw * step);
}

static kn_status fractional_reference(const kn_call *call)
{
    const int dims = dims_of(call->op);
    const kn_tensor *x = call->inputs[0], *samples = call->inputs[1];
    kn_pool_geometry g;
    KN_TRY(resolve(&g, call->params, dims, x->ndim, x->shape));
    const int64_t outputs = (int64_t)g.out_size[0] * g.out_size[1] * g.out_size[2],
                  volume = (int64_t)g.size[0] * g.size[1] * g.size[2],
                  window = (int64_t)g.kernel_size[0] * g.kernel_size[1] * g.kernel_size[2];

    for (int64_t i = 0; i < g.planes * outputs; i++) {
        int64_t rest = i, begin[3] = {0}, best = -1;
        for (int d = 2; d >= 3 - dims; d--) {
            const int64_t at = i / outputs * dims + (dims == 3 ? d : 2 - d);
            begin[d] = begin_of(&g, d, rest % g.out_size[d], kn_reference_get(samples, at));
            rest /= g.out_size[d];
        }
        for (int64_t k = 0; k < window; k++) {
            const int64_t w = begin[2] + k % g.kernel_size[2], h = begin[1] + k / g.kernel_size[2] % g.kernel_size[1],
                          d = begin[0] + k / g.kernel_size[2] / g.kernel_size[1];
            const int64_t at = (d * g.size[1] + h) * g.size[2] + w;
            const double v = kn_reference_get(x, i / outputs * volume + at);
            if (best < 0 || v > kn_reference_get(x, i / outputs * volume + best) || isnan(v))
                best = at;
        }
        kn_reference_set(call->outputs[0], i, kn_reference_get(x, i / outputs * volume + best));
        kn_reference_set(call->outputs[1], i, (double)best);
    }
    return KN_OK;
}

/* --- the ops ------------------------------------------------------------------------------------------------------ */

static const kn_op_param rows[] = {KN_PARAM(kn_fractional_pool_args, kernel_size),
                                   KN_PARAM(kn_fractional_pool_args, output_size)};

kn_fractional_max_pool_params kn_fractional_max_pool_params_init(void)
{
    return (kn_fractional_max_pool_params){KN_FRACTIONAL_MAX_POOL_DEFAULTS};
}

kn_status kn_fractional_args(kn_fractional_pool_args *args, const kn_fractional_max_pool_params *p, int dims,
                             const int64_t *size)
{
    int64_t kernel[3], out[3];
    bool sized = p->output_size != 0, scaled = p->output_ratio != 0, each = false;
    for (int i = 0; i < dims; i++) {
        sized = sized || p->output_sizes[i] != 0;
        each = each || p->output_ratios[i] != 0;
    }
    if (sized == (scaled || each))
        return kn_fail(KN_ERR_ARGUMENT, sized ? "only one of output_size and output_ratio can be given"
                                              : "either output_size or output_ratio must be given");
    kn_directions(kernel, dims, p->kernel_size, p->kernel_sizes, 1);
    kn_directions(out, dims, p->output_size, p->output_sizes, 1);
    *args = (kn_fractional_pool_args){.kernel_size.count = dims, .output_size.count = dims};
    for (int i = 0; i < dims; i++) {
        if (kernel[kn_direction_of(dims, i)] < 1)
            return kn_fail(KN_ERR_ARGUMENT, "kernel_size must be at least 1, not %lld",
                           (long long)kernel[kn_direction_of(dims, i)]);
        const double ratio = each ? p->output_ratios[i] : p->output_ratio;
        if (!sized && !(ratio > 0 && ratio < 1))
            return kn_fail(KN_ERR_ARGUMENT, "output_ratio must be between 0 and 1, not %g", ratio);
        args->kernel_size.values[i] = kernel[kn_direction_of(dims, i)];
        args->output_size.values[i] = sized ? out[kn_direction_of(dims, i)] : (int64_t)floor((double)size[i] * ratio);
    }
    return KN_OK;
}

/* Draws samples unless they are given. */
static kn_tensor *samples_for(const kn_tensor *x, int dims, const kn_fractional_max_pool_params *p)
{
    const int64_t batch = x->ndim == dims + 2 ? x->shape[0] : 1;
    const int64_t shape[] = {batch, x->shape[x->ndim - dims - 1], dims};
    if (p->samples)
        return p->samples;
    kn_tensor *samples = kn_empty_with(3, shape, &(kn_tensor_options){.dtype = x->dtype, .device = kn_device_of(x)});
    return kn_uniform_with_(samples, 0, 1, &(kn_random_params){.generator = p->generator});
}

static kn_tensor *fractional(const kn_op *op, kn_tensor *x, kn_tensor **indices,
                             const kn_fractional_max_pool_params *given)
{
    const kn_fractional_max_pool_params p =
        given ? *given : (kn_fractional_max_pool_params){KN_FRACTIONAL_MAX_POOL_DEFAULTS};
    const int dims = dims_of(op);
    kn_fractional_pool_args args;
    kn_tensor *outputs[2] = {NULL, NULL};

    if (indices)
        *indices = NULL;
    if (!x)
        return kn_fail_argument_null(op->name, "x"), kn_error_make_sticky();
    if (x->ndim != dims + 1 && x->ndim != dims + 2)
        return kn_fail_null(KN_ERR_SHAPE, "%s: expected %d or %d dimensions, not %d", op->name, dims + 1, dims + 2,
                            x->ndim);
    if (kn_fractional_args(&args, &p, dims, x->shape + x->ndim - dims) != KN_OK)
        return kn_error_prefix("%s", op->name), kn_error_make_sticky();
    kn_tensor *samples = samples_for(x, dims, &p);
    if (!samples || kn_op_invoke_to(op, (kn_tensor *const[]){x, samples}, 2, &args, outputs, indices ? 2 : 1) != KN_OK)
        return kn_error_make_sticky();
    if (indices)
        *indices = outputs[1];
    return outputs[0];
}

#define FRACTIONAL(n)                                                                                                  \
    const kn_op kn_fractional_max_pool##n##d_op = {.name = "fractional_max_pool" #n "d",                               \
                                                   .inputs = {"x", "samples"},                                         \
                                                   .outputs = {"result", "indices"},                                   \
                                                   .dtypes = {KN_DTYPES_FLOATING},                                     \
                                                   .widens_halves = true,                                              \
                                                   .params =                                                           \
                                                       KN_PARAMS(kn_fractional_pool_args, rows, .kernel_size = {0}),   \
                                                   .shape = fractional_shape,                                          \
                                                   .forward = fractional_forward,                                      \
                                                   .backward = fractional_backward,                                    \
                                                   .backward_recorded = fractional_backward,                           \
                                                   .reference = fractional_reference,                                  \
                                                   .detail = &(int){n}};                                               \
    kn_tensor *kn_fractional_max_pool##n##d_with(kn_tensor *x, const kn_fractional_max_pool_params *params)            \
    {                                                                                                                  \
        return fractional(&kn_fractional_max_pool##n##d_op, x, NULL, params);                                          \
    }                                                                                                                  \
    kn_tensor *kn_fractional_max_pool##n##d_with_indices_with(kn_tensor *x, kn_tensor **indices,                       \
                                                              const kn_fractional_max_pool_params *params)             \
    {                                                                                                                  \
        return fractional(&kn_fractional_max_pool##n##d_op, x, indices, params);                                       \
    }

FRACTIONAL(2)
FRACTIONAL(3)
