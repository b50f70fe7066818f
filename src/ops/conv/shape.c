/* ops/conv/shape.c - the shape rule of convolutions: computes the problem's shape from parameters and sizes. */
#include <string.h>

#include "autograd/op.h"
#include "base/directions.h"
#include "base/text.h"
#include "ops/conv/common/conv.h"
#include "tensor/tensor.h"

/* State of the rule, including texts for errors. */
typedef struct rule {
    const kn_conv_kind *kind;
    kn_conv_shape *s;
    int64_t after[3], output_padding[3]; /* the padding after the data; `s` has that before it */
    char input[KN_DESCRIBE], weight[KN_DESCRIBE];
} rule;

static const char *name_of(const rule *r, int d) { return kn_direction_name(r->kind->dims, d); }

static void read_params(rule *r, const kn_conv_params *p)
{
    const int dims = r->kind->dims;
    kn_directions(r->s->stride, dims, p->stride, p->strides, 1);
    kn_directions(r->s->dilation, dims, p->dilation, p->dilations, 1);
    kn_directions(r->s->padding, dims, p->padding, p->paddings, 0);
    kn_directions(r->output_padding, dims, p->output_padding, p->output_paddings, 0);
    for (int d = 0; d < 3; d++)
        r->after[d] = r->s->padding[d];
    for (int i = 0; i < dims; i++)
        if (p->paddings_after[i] != KN_PADDING_SYMMETRIC)
            r->after[kn_direction_of(dims, i)] = p->paddings_after[i];
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static kn_status check_ranks(const rule *r, int input_ndim, int weight_ndim)
{
    static const char *const sizes[3] = {"L", "H, W", "D, H, W"}, *const taps[3] = {"R", "R, S", "Q, R, S"};
    const int dims = r->kind->dims;
    if (input_ndim != dims + 1 && input_ndim != dims + 2)
        return kn_fail(KN_ERR_SHAPE, "the input must be [N, C, %s] or [C, %s], not %s", sizes[dims - 1],
                       sizes[dims - 1], r->input);
    if (weight_ndim != dims + 2)
        return kn_fail(KN_ERR_SHAPE, "the weight must be [%s, %s], not %s",
                       r->kind->transposed ? "C, K / groups" : "K, C / groups", taps[dims - 1], r->weight);
    return KN_OK;
}

/* Sizes are limited to below 2^31, so that no product of two overflows. */
static bool is_size(int64_t n, int64_t least) { return n >= least && n <= INT32_MAX; }

static kn_status check_same(const rule *r, int d)
{
    if (r->after[d] != KN_PADDING_SAME || r->s->padding[d] != KN_PADDING_SAME)
        return kn_fail(KN_ERR_ARGUMENT, "KN_PADDING_SAME must be set on both sides, not on one (%s)", name_of(r, d));
    if (r->kind->transposed)
        return kn_fail(KN_ERR_ARGUMENT,
                       "padding must be 0 or more (%s): KN_PADDING_SAME is for convolution that is "
                       "not transposed",
                       name_of(r, d));
    if (r->s->stride[d] != 1)
        return kn_fail(KN_ERR_ARGUMENT, "KN_PADDING_SAME needs stride 1, not %lld (%s)", (long long)r->s->stride[d],
                       name_of(r, d));
    return KN_OK;
}

static kn_status check_output_padding(const rule *r, int d)
{
    const kn_conv_shape *s = r->s;
    if (r->output_padding[d] == 0)
        return KN_OK;
    if (!r->kind->transposed)
        return kn_fail(KN_ERR_ARGUMENT, "output_padding (%lld) is for transposed convolution",
                       (long long)r->output_padding[d]);
    if (r->output_padding[d] < 0 || r->output_padding[d] >= kn_max_i64(s->stride[d], s->dilation[d]))
        return kn_fail(KN_ERR_ARGUMENT,
                       "output_padding must be 0 or more and smaller than either stride or dilation, not %lld with "
                       "stride %lld and dilation %lld (%s)",
                       (long long)r->output_padding[d], (long long)s->stride[d], (long long)s->dilation[d],
                       name_of(r, d));
    return KN_OK;
}

static kn_status check_params(const rule *r)
{
    const kn_conv_shape *s = r->s;
    for (int d = 0; d < 3; d++) {
        if (!is_size(s->stride[d], 1) || !is_size(s->dilation[d], 1))
            return kn_fail(KN_ERR_ARGUMENT, "stride and dilation must be at least 1, not %lld and %lld (%s)",
                           (long long)s->stride[d], (long long)s->dilation[d], name_of(r, d));
        if (s->padding[d] == KN_PADDING_SAME || r->after[d] == KN_PADDING_SAME)
            KN_TRY(check_same(r, d));
        else if (!is_size(s->padding[d], 0) || !is_size(r->after[d], 0))
            return kn_fail(KN_ERR_ARGUMENT, "padding must be 0 or more, or KN_PADDING_SAME, not %lld and %lld (%s)",
                           (long long)s->padding[d], (long long)r->after[d], name_of(r, d));
        KN_TRY(check_output_padding(r, d));
    }
    return KN_OK;
}

static kn_status check_channels(const rule *r, int64_t channels, const int64_t *weight)
{
    const kn_conv_shape *s = r->s;
    if (s->out_channels < 1 || !is_size(s->kernel_size[0], 1) || !is_size(s->kernel_size[1], 1) ||
        !is_size(s->kernel_size[2], 1))
        return kn_fail(KN_ERR_SHAPE, "the weight %s has an empty dimension", r->weight);
    if (s->out_channels % s->groups != 0)
        return kn_fail(KN_ERR_SHAPE, "the weight %s has %lld %s channels, which is not divisible by %lld groups",
                       r->weight, (long long)s->out_channels, r->kind->transposed ? "input" : "output",
                       (long long)s->groups);
    const int64_t taken = r->kind->transposed ? weight[0] : weight[1] * s->groups;
    if (channels != taken)
        return kn_fail(KN_ERR_SHAPE,
                       "the weight %s with %lld group(s) needs %lld input channels, but the input %s has %lld",
                       r->weight, (long long)s->groups, (long long)taken, r->input, (long long)channels);
    return KN_OK;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* floor((size + padding - dilation (kernel - 1) - 1) / stride) + 1. 'same' pads dilation (kernel - 1) in total, the odd
 * one after the data. */
static kn_status choose_out_size(rule *r, int d)
{
    kn_conv_shape *s = r->s;
    const int64_t reach = s->dilation[d] * (s->kernel_size[d] - 1);
    if (s->padding[d] == KN_PADDING_SAME) {
        s->padding[d] = reach / 2;
        r->after[d] = reach - reach / 2;
    }
    const int64_t padded = s->in_size[d] + s->padding[d] + r->after[d];
    if (padded < reach + 1)
        return kn_fail(KN_ERR_SHAPE,
                       "the kernel of the weight %s spans %lld, more than the %s of the input %s with its "
                       "padding, %lld",
                       r->weight, (long long)reach + 1, name_of(r, d), r->input, (long long)padded);
    s->out_size[d] = (padded - reach - 1) / s->stride[d] + 1;
    return KN_OK;
}

/* (size - 1) stride - padding + dilation (kernel - 1) + output_padding + 1: the smallest input for which a convolution
 * gives `size`, and output_padding more. Possibly none. */
static kn_status choose_transposed_size(rule *r, int d)
{
    kn_conv_shape *s = r->s;
    const int64_t reach = s->dilation[d] * (s->kernel_size[d] - 1);
    if (s->out_size[d] < 1 || (double)s->out_size[d] * (double)s->stride[d] > 1e18)
        return kn_fail(KN_ERR_SHAPE, "the %s of the input %s must be at least 1, and less than 10^18 times the stride",
                       name_of(r, d), r->input);
    s->in_size[d] =
        (s->out_size[d] - 1) * s->stride[d] - s->padding[d] - r->after[d] + reach + r->output_padding[d] + 1;
    if (s->in_size[d] < 0)
        return kn_fail(KN_ERR_SHAPE,
                       "the output's %s would be %lld: (%lld - 1) * stride %lld + kernel reach %lld + output_padding "
                       "%lld - padding %lld, for the input %s and the weight %s",
                       name_of(r, d), (long long)s->in_size[d], (long long)s->out_size[d], (long long)s->stride[d],
                       (long long)reach + 1, (long long)r->output_padding[d], (long long)(s->padding[d] + r->after[d]),
                       r->input, r->weight);
    return KN_OK;
}

kn_status kn_conv_resolve(kn_conv_shape *s, const kn_conv_kind *kind, const kn_conv_params *params, kn_dtype dtype,
                          int input_ndim, const int64_t *input, int weight_ndim, const int64_t *weight)
{
    const int dims = kind->dims;
    rule r = {.kind = kind, .s = s};
    kn_format_shape(r.input, sizeof r.input, input_ndim, input);
    kn_format_shape(r.weight, sizeof r.weight, weight_ndim, weight);
    KN_TRY(check_ranks(&r, input_ndim, weight_ndim));
    if (!is_size(params->groups, 1))
        return kn_fail(KN_ERR_ARGUMENT, "groups must be at least 1, not %lld", (long long)params->groups);
    const int64_t *sizes = input + input_ndim - dims, channels = sizes[-1];
    *s = (kn_conv_shape){.f64 = dtype == KN_F64,
                         .images = input_ndim == dims + 2 ? input[0] : 1,
                         .in_channels = kind->transposed ? weight[1] * params->groups : channels,
                         .out_channels = weight[0],
                         .in_size = {1, 1, 1},
                         .out_size = {1, 1, 1},
                         .kernel_size = {1, 1, 1},
                         .groups = params->groups};
    read_params(&r, params);
    KN_TRY(check_params(&r));
    for (int i = 0; i < dims; i++) {
        const int d = kn_direction_of(dims, i);
        (kind->transposed ? s->out_size : s->in_size)[d] = sizes[i];
        s->kernel_size[d] = weight[2 + i];
    }
    KN_TRY(check_channels(&r, channels, weight));
    for (int d = 3 - dims; d < 3; d++)
        KN_TRY(kind->transposed ? choose_transposed_size(&r, d) : choose_out_size(&r, d));
    return KN_OK;
}

/* --- the rule of the ops ------------------------------------------------------------------------------------------ */

kn_status kn_conv_resolve_call(kn_conv_shape *s, const kn_call *call, kn_dtype dtype)
{
    const kn_tensor *x = call->inputs[0], *weight = call->inputs[1];
    return kn_conv_resolve(s, call->op->detail, call->params, dtype, x->ndim, x->shape, weight->ndim, weight->shape);
}

static kn_status check_bias(const kn_call *call, int64_t channels)
{
    const kn_tensor *weight = call->inputs[1], *bias = call->num_inputs > 2 ? call->inputs[2] : NULL;
    char bias_text[KN_DESCRIBE], weight_text[KN_DESCRIBE];
    if (!bias || (bias->ndim == 1 && bias->shape[0] == channels))
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "the bias must be [%lld] for the weight %s, not %s", (long long)channels,
                   kn_format_shape(weight_text, sizeof weight_text, weight->ndim, weight->shape),
                   kn_format_shape(bias_text, sizeof bias_text, bias->ndim, bias->shape));
}

kn_status kn_conv_shape_rule(kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    const kn_conv_kind *kind = call->op->detail;
    kn_conv_shape s;
    KN_TRY(kn_call_check_floating_or_half(call, 0));
    KN_TRY(kn_conv_resolve_call(&s, call, x->dtype));
    const int64_t channels = kind->transposed ? s.in_channels : s.out_channels;
    const int64_t *size = (kind->transposed ? s.in_size : s.out_size) + 3 - kind->dims;
    KN_TRY(check_bias(call, channels));
    int64_t shape[KN_MAX_DIMS] = {s.images, channels};
    memcpy(shape + 2, size, (size_t)kind->dims * sizeof *size);
    return kn_call_output(call, x->dtype, x->ndim, x->ndim == kind->dims + 1 ? shape + 1 : shape);
}
