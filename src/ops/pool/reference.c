/* ops/pool/reference.c - all poolings in plain C. */
#include "ops/dispatch/reference.h"
#include "base/integer.h"
#include "ops/pointwise/epilogue.h"
#include "ops/pool/pool.h"

/* Along one dimension: `count` positions from `first` on, `step` apart. Those outside the input are padding. */
typedef struct axis {
    int64_t first, step, count;
} axis;

static axis axis_of(const kn_pool_geometry *g, int d, int64_t at)
{
    const int64_t size = g->size[d], outputs = g->out_size[d], first = at * size / outputs;
    if (g->kernel_size[d] == 0) /* adaptive */
        return (axis){first, 1, ((at + 1) * size + outputs - 1) / outputs - first};
    return (axis){at * g->stride[d] - g->padding[d], g->dilation[d], g->kernel_size[d]};
}

/* A window: the sum and number of its elements inside the input, their maximum and its index in the plane (-1: none),
 * and the number of places that include padding. */
typedef struct summary {
    double sum, inside, best, padded;
    int64_t index;
} summary;

/* The index in the plane of element `place` of a window, in row-major order; -1 in the padding. */
static int64_t index_of(const kn_pool_geometry *g, const axis window[3], int64_t place)
{
    int64_t at[3];
    for (int d = 2; d >= 0; d--) {
        at[d] = window[d].first + place % window[d].count * window[d].step;
        place /= window[d].count;
        if (at[d] < 0 || at[d] >= g->size[d])
            return -1;
    }
    return (at[0] * g->size[1] + at[1]) * g->size[2] + at[2];
}

/* The window of output `i` of a plane. */
static summary summarise(const kn_tensor *x, const kn_pool_geometry *g, int64_t plane, int64_t i)
{
    summary s = {.best = -INFINITY, .padded = 1, .index = -1};
    axis window[3];
    for (int d = 2; d >= 0; d--) {
        window[d] = axis_of(g, d, i % g->out_size[d]);
        i /= g->out_size[d];
        s.padded *= (double)kn_min_i64(window[d].count, g->end[d] - window[d].first);
    }
    for (int64_t place = 0; place < window[0].count * window[1].count * window[2].count; place++) {
        const int64_t at = index_of(g, window, place);
        if (at < 0)
            continue;
        const double v = kn_reference_get(x, plane * g->size[0] * g->size[1] * g->size[2] + at);
        s.sum += v;
        s.inside++;
        if (s.index < 0 || v > s.best || isnan(v)) {
            s.best = v;
            s.index = at;
        }
    }
    return s;
}

static double average(const kn_pool_geometry *g, const summary *s)
{
    const double divisor = g->divisor ? (double)g->divisor : g->count_include_pad ? s->padded : s->inside;
    return s->inside > 0 ? s->sum / divisor : 0;
}

kn_status kn_pool_reference(const kn_call *call)
{
    const kn_pool_kind *kind = kn_pool_kind_of(call->op);
    const kn_tensor *x = call->inputs[0];
    kn_activation activation = KN_ACTIVATION_NONE;
    kn_pool_geometry g;

    if (!kind->adaptive)
        activation = ((const kn_pool_params *)call->params)->activation;
    KN_TRY(kn_pool_resolve(&g, kind, call->params, x->ndim, x->shape));
    const int64_t outputs = (int64_t)g.out_size[0] * g.out_size[1] * g.out_size[2];
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        const summary s = summarise(x, &g, i / outputs, i % outputs);
        kn_reference_set(call->outputs[0], i,
                         kind->average ? average(&g, &s) : kn_clamp_value(kn_bounds_of(activation), s.best));
        if (kind->indices)
            kn_reference_set(call->outputs[1], i, s.index < 0 ? 0 : (double)s.index);
    }
    return KN_OK;
}
