/* ops/vision/pad.c - padding: one kernel writes all of the result; cropping alone copies what remains. Backward,
 * constants are padded by the opposite numbers, other modes take one dimension after another. */
#include <koine/pad.h>
#include <stdio.h>
#include <string.h>

#include "autograd/work.h"
#include "loops/work_size.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/reference.h"
#include "ops/shape/views.h"
#include "tensor/element.h"
#include "vision/pad.h"

/* The padding before and after dimension d; 0 for those that are not listed. */
static int64_t pad_of(const kn_pad_args *args, int ndim, int d, bool after)
{
    const int at = 2 * (ndim - 1 - d) + after;
    return at < args->pad.count ? args->pad.values[at] : 0;
}

static bool only_crops(const kn_pad_args *args)
{
    for (int i = 0; i < args->pad.count; i++)
        if (args->pad.values[i] > 0)
            return false;
    return true;
}

/* --- shape -------------------------------------------------------------------------------------------------------- */

static kn_status check_dimension(const kn_pad_args *args, int64_t size, int64_t before, int64_t after, int dim)
{
    const int64_t kept = size + (before < 0 ? before : 0) + (after < 0 ? after : 0);
    const int64_t limit = args->mode == KN_PAD_REFLECT ? size - 1 : kept;
    const bool is_constant = args->mode == KN_PAD_CONSTANT, may_be_empty = is_constant || (before == 0 && after == 0);
    if (before > INT64_MAX / 4 || after > INT64_MAX / 4 || before < -(INT64_MAX / 4) || after < -(INT64_MAX / 4) ||
        size + before + after < (may_be_empty ? 0 : 1))
        return kn_fail(KN_ERR_SHAPE, "dimension %d of size %lld, padded by %lld and %lld, would have %lld elements",
                       dim, (long long)size, (long long)before, (long long)after, (long long)(size + before + after));
    if (is_constant || (before <= 0 && after <= 0))
        return KN_OK;
    if (size == 0)
        return kn_fail(KN_ERR_SHAPE, "dimension %d is empty: there is nothing to pad with", dim);
    if (args->mode != KN_PAD_REPLICATE && (before > limit || after > limit))
        return kn_fail(KN_ERR_SHAPE, "%s padding of %lld and %lld must be at most %lld in dimension %d of size %lld",
                       args->mode == KN_PAD_REFLECT ? "reflected" : "circular", (long long)before, (long long)after,
                       (long long)limit, dim, (long long)size);
    return KN_OK;
}

static kn_status pad_shape(kn_call *call)
{
    const kn_pad_args *args = call->params;
    const kn_tensor *x = call->inputs[0];
    int64_t shape[KN_MAX_DIMS];

    if (args->pad.count % 2 != 0)
        return kn_fail(KN_ERR_ARGUMENT, "pad has %d numbers; it takes two for each dimension", args->pad.count);
    if (args->pad.count > 2 * x->ndim)
        return kn_fail(KN_ERR_ARGUMENT, "pad has %d numbers, two for each of %d dimensions, but the tensor has %d",
                       args->pad.count, args->pad.count / 2, x->ndim);
    for (int d = 0; d < x->ndim; d++) {
        const int64_t before = pad_of(args, x->ndim, d, false), after = pad_of(args, x->ndim, d, true);
        KN_TRY(check_dimension(args, x->shape[d], before, after, d));
        shape[d] = x->shape[d] + before + after;
    }
    return kn_call_output(call, x->dtype, x->ndim, shape);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* y = what remains of x. */
static kn_status crop(const kn_pad_args *args, kn_tensor *x, kn_tensor *y)
{
    kn_tensor *remains;
    int64_t offset = x->offset;
    for (int d = 0; d < x->ndim; d++)
        offset -= pad_of(args, x->ndim, d, false) * x->strides[d];
    KN_TRY(kn_tensor_view(&remains, x, y->ndim, y->shape, x->strides, offset));
    const kn_status status = kn_tensor_copy(y, remains);
    kn_release(remains);
    return status;
}

/* Dimensions without padding are merged with those before them. */
static kn_pad_geometry geometry_of(const kn_pad_args *args, int ndim, const int64_t *shape)
{
    kn_pad_geometry g = {.rows = 1, .mode = (int32_t)args->mode};
    bool is_plain = false;
    for (int d = 0; d < ndim; d++) {
        const int64_t before = pad_of(args, ndim, d, false), after = pad_of(args, ndim, d, true);
        const bool merges = before == 0 && after == 0 && is_plain;
        is_plain = before == 0 && after == 0;
        if (merges) {
            g.size[g.ndim - 1] *= shape[d];
            g.out_size[g.ndim - 1] *= shape[d];
            continue;
        }
        g.size[g.ndim] = shape[d];
        g.out_size[g.ndim] = shape[d] + before + after;
        g.before[g.ndim++] = before;
    }
    for (int d = 0; d + 1 < g.ndim; d++)
        g.rows *= g.out_size[d];
    return g;
}

static kn_status run_pad(kn_stream *stream, const kn_pad_args *args, const kn_tensor *x, const kn_tensor *y)
{
    static const char *const words[] = {[1] = "-DT=uchar", [2] = "-DT=ushort", [4] = "-DT=uint", [8] = "-DT=ulong"};
    const kn_pad_geometry g = geometry_of(args, x->ndim, x->shape);
    const kn_work_size work = kn_work_for(kn_tensor_limits(y), kn_numel(y));
    const size_t size = kn_tensor_element_size(x);
    uint64_t value = 0;

    kn_element_set(&value, x->dtype, 0, (kn_element){args->value.real, args->value.whole},
                   args->value.is_whole ? KN_I64 : KN_F64);
    return kn_run(
        stream, .source = "vision/pad.cl", .options = words[size], .kernel = "pad", .operation = "pad", .dims = 1,
        .global = {work.global}, .local = {work.local},
        KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(y), kn_arg_struct(&g, sizeof g), kn_arg_struct(&value, size)));
}

static kn_status pad_tensor(kn_stream *stream, const kn_pad_args *args, kn_tensor *x, kn_tensor *y)
{
    if (kn_numel(y) == 0)
        return KN_OK;
    if (kn_numel(x) == 0)
        return kn_tensor_fill_with(y, args->value);
    if (only_crops(args))
        return crop(args, x, y);
    KN_TRY(kn_tensor_contiguous(&x, x));
    const kn_status status = run_pad(stream, args, x, y);
    kn_release(x);
    return status;
}

static kn_status pad_forward(kn_call *call)
{
    return pad_tensor(call->stream, call->params, call->inputs[0], call->outputs[0]);
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static kn_status pad_by_opposite(kn_stream *stream, const kn_pad_args *args, kn_tensor *gradient, kn_tensor *out)
{
    kn_pad_args opposite = {.pad = args->pad};
    for (int i = 0; i < args->pad.count; i++)
        opposite.pad.values[i] = -args->pad.values[i];
    return pad_tensor(stream, &opposite, gradient, out);
}

static kn_status sum_copies(kn_stream *stream, const kn_pad_axis *axis, const kn_tensor *gradient, kn_tensor *out)
{
    const kn_work_size work = kn_work_for(kn_tensor_limits(out), kn_numel(out));
    char options[64];
    snprintf(options, sizeof options, "%s -DPAD_BACKWARD", kn_dtype_options(out->dtype));
    return kn_run(stream, .source = "vision/pad.cl", .options = options, .kernel = "pad_backward", .operation = "pad",
                  .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(gradient), kn_arg_tensor(out), kn_arg_struct(axis, sizeof *axis)));
}

/* One padded dimension after another, the last one first. */
static kn_tensor *sum_all_copies(const kn_grad_call *grad, kn_tensor *gradient)
{
    const kn_pad_args *args = grad->params;
    const kn_input_spec *x = &grad->input[0];
    int64_t shape[KN_MAX_DIMS];

    memcpy(shape, gradient->shape, sizeof shape);
    for (int d = x->ndim - 1; d >= 0 && gradient; d--) {
        const kn_pad_axis axis = {.outer = kn_shape_numel(d, shape),
                                  .size = x->shape[d],
                                  .out_size = shape[d],
                                  .before = pad_of(args, x->ndim, d, false),
                                  .inner = kn_shape_numel(x->ndim - d - 1, shape + d + 1),
                                  .mode = (int32_t)args->mode};
        if (axis.before == 0 && axis.size == axis.out_size)
            continue;
        shape[d] = x->shape[d];
        kn_tensor *out = kn_empty_with(
            x->ndim, shape, &(kn_tensor_options){.dtype = gradient->dtype, .device = kn_device_of(gradient)});
        if (out && sum_copies(grad->stream, &axis, gradient, out) != KN_OK)
            out = NULL;
        gradient = out;
    }
    return gradient;
}

static kn_status pad_backward(kn_grad_call *grad)
{
    const kn_pad_args *args = grad->params;
    const kn_dtype dtype = grad->input[0].dtype;
    kn_tensor *gradient = grad->grad_outputs[0];

    if (args->mode == KN_PAD_CONSTANT || only_crops(args) ||
        kn_shape_numel(grad->input[0].ndim, grad->input[0].shape) == 0) {
        kn_tensor *out = kn_grad_new(grad, 0);
        return out ? pad_by_opposite(grad->stream, args, gradient, out) : kn_error_status();
    }
    gradient = kn_to_dtype(gradient, kn_compute_type(dtype));
    kn_tensor *sums = gradient ? sum_all_copies(grad, gradient) : NULL;
    grad->grad_inputs[0] = sums ? kn_to_dtype(sums, dtype) : NULL;
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

/* The backward pass is linear in the gradient: its own gradient is padding, with zeros. */
static kn_status pad_backward_backward(kn_grad_call *grad)
{
    kn_pad_args args = *(const kn_pad_args *)grad->params;
    args.value = kn_scalar_int(0);
    if (!grad->needs[0])
        return KN_OK;
    grad->grad_inputs[0] = kn_apply(grad->op->backward_of, &args, grad->grad_outputs[0]);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

/* --- reference ---------------------------------------------------------------------------------------------------- */

/* The place along a dimension that place `at` repeats; -1: none. */
static int64_t repeated(int64_t at, int64_t size, int64_t before, int64_t after, kn_padding_mode mode)
{
    if (mode == KN_PAD_CIRCULAR) { /* what is not cropped repeats */
        const int64_t first = before < 0 ? -before : 0, period = size - first + (after < 0 ? after : 0);
        return first + (at - first + period) % period;
    }
    if (mode == KN_PAD_CONSTANT)
        return at < 0 || at >= size ? -1 : at;
    if (mode == KN_PAD_REPLICATE)
        return at < 0 ? 0 : at >= size ? size - 1 : at;
    at = at < 0 ? -at : at;
    return at >= size ? 2 * (size - 1) - at : at;
}

static kn_status pad_reference(const kn_call *call)
{
    const kn_pad_args *args = call->params;
    const kn_tensor *x = call->inputs[0], *y = call->outputs[0];

    for (int64_t i = 0; i < kn_numel(y); i++) {
        int64_t rest = i, from = 0, step = 1;
        bool inside = true;
        for (int d = x->ndim - 1; d >= 0; d--) {
            const int64_t before = pad_of(args, x->ndim, d, false), after = pad_of(args, x->ndim, d, true);
            const int64_t at = repeated(rest % y->shape[d] - before, x->shape[d], before, after, args->mode);
            inside = inside && at >= 0;
            from += at * step;
            step *= x->shape[d];
            rest /= y->shape[d];
        }
        kn_reference_set(call->outputs[0], i, inside ? kn_reference_get(x, from) : args->value.real);
    }
    return KN_OK;
}

/* --- the op ------------------------------------------------------------------------------------------------------- */

static const char *const mode_names[] = {"constant", "reflect", "replicate", "circular", NULL};
static const kn_op_param pad_rows[] = {KN_PARAM(kn_pad_args, pad), KN_PARAM(kn_pad_args, mode, .values = mode_names),
                                       KN_PARAM(kn_pad_args, value)};

extern const kn_op kn_pad_backward_op;
const kn_op kn_pad_op = {.name = "pad",
                         .inputs = {"x"},
                         .params = KN_PARAMS(kn_pad_args, pad_rows, .mode = KN_PAD_CONSTANT),
                         .shape = pad_shape,
                         .forward = pad_forward,
                         .backward = pad_backward,
                         KN_RECORDED_AS(pad_backward),
                         .reference = pad_reference,
                         .work = kn_work_memory_bound,
                         .backward_work = kn_grad_work_memory_bound};

const kn_op kn_pad_backward_op = {
    KN_BACKWARD_OP(pad),   .inputs = {"grad", "x"},           .outputs = {"grad_x"},
    .widens_halves = true, .backward = pad_backward_backward, .backward_recorded = pad_backward_backward};

kn_pad_params kn_pad_params_init(void) { return (kn_pad_params){KN_PAD_DEFAULTS}; }

kn_tensor *kn_pad_with(kn_tensor *x, int count, const int64_t *pad, const kn_pad_params *params)
{
    params = params ? params : &(kn_pad_params){KN_PAD_DEFAULTS};
    kn_pad_args args = {.mode = params->mode, .value = params->value};
    return kn_ints_of(&args.pad, "pad", "pad", count, pad) ? kn_invoke(&kn_pad_op, &args, x) : NULL;
}
