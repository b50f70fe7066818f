/* ops/conv/reference.c - the plain C reference of convolutions, transposed ones included. */
#include <koine/conv.h>

#include "ops/conv/common/conv.h"
#include "ops/dispatch/reference.h"

/* The first element of the row of x that row `at` of y reads through tap `tap`, all in row-major order; -1 in the
 * padding. */
static int64_t reference_row(const kn_conv_shape *s, int64_t at, int64_t tap)
{
    int64_t place[2];
    tap /= s->kernel_size[2];
    for (int d = 1; d >= 0; d--) {
        place[d] = at % s->out_size[d] * s->stride[d] - s->padding[d] + tap % s->kernel_size[d] * s->dilation[d];
        at /= s->out_size[d];
        tap /= s->kernel_size[d];
        if (place[d] < 0 || place[d] >= s->in_size[d])
            return -1;
    }
    return (place[0] * s->in_size[1] + place[1]) * s->in_size[2];
}

/* What a row of y and the rows of x that it reads through one tap, one of each channel in a group, have in common: y
 * from x or, transposed, x from y. `weight` is the tap's of the first channel. */
static void reference_taps(const kn_conv_shape *s, const kn_call *call, int64_t x, int64_t y, int64_t tap,
                           const double *weight)
{
    const kn_conv_kind *kind = call->op->detail;
    const double *from = kn_reference_values(call->inputs[0]);
    double *to = kn_reference_values(call->outputs[0]);
    const int64_t volume = kn_conv_volume(s->in_size), taps = kn_conv_volume(s->kernel_size), step = s->stride[2];
    const int64_t offset = tap % s->kernel_size[2] * s->dilation[2] - s->padding[2];
    int64_t begin = 0, end = s->out_size[2];
    while (begin < end && begin * step + offset < 0)
        begin++;
    while (begin < end && (end - 1) * step + offset >= s->in_size[2])
        end--;
    x += offset;
    for (int64_t c = 0; c < s->in_channels / s->groups; c++, x += volume, weight += taps)
        for (int64_t j = begin; j < end; j++)
            if (kind->transposed)
                to[x + j * step] += from[y + j] * *weight;
            else
                to[y + j] += from[x + j * step] * *weight;
}

/* The contribution of output channel k of image n. */
static void reference_channel(const kn_conv_shape *s, const kn_call *call, int64_t n, int64_t k)
{
    const int64_t inner = s->in_channels / s->groups, first = k / (s->out_channels / s->groups) * inner;
    const int64_t taps = kn_conv_volume(s->kernel_size), rows = s->out_size[0] * s->out_size[1];
    const int64_t x = (n * s->in_channels + first) * kn_conv_volume(s->in_size);
    const double *weight = kn_reference_values(call->inputs[1]) + k * inner * taps;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t row = reference_row(s, i, tap), y = ((n * s->out_channels + k) * rows + i) * s->out_size[2];
            if (row >= 0)
                reference_taps(s, call, x + row, y, tap, weight + tap);
        }
}

kn_status kn_conv_reference(const kn_call *call)
{
    const kn_conv_kind *kind = call->op->detail;
    const kn_tensor *bias = call->num_inputs > 2 ? call->inputs[2] : NULL;
    const kn_bounds bounds = kn_bounds_of(((const kn_conv_params *)call->params)->activation);
    kn_tensor *result = call->outputs[0];
    kn_conv_shape s;
    KN_TRY(kn_conv_resolve_call(&s, call, KN_F64));
    const int64_t channels = kind->transposed ? s.in_channels : s.out_channels;
    const int64_t pixels = kn_conv_volume(kind->transposed ? s.in_size : s.out_size);
    for (int64_t n = 0; n < s.images; n++)
        for (int64_t k = 0; k < s.out_channels; k++)
            reference_channel(&s, call, n, k);
    for (int64_t i = 0; i < kn_numel(result); i++) {
        const double value = kn_reference_get(result, i);
        kn_reference_set(result, i,
                         kn_clamp_value(bounds, bias ? value + kn_reference_get(bias, i / pixels % channels) : value));
    }
    return KN_OK;
}
