/* norm/batch_gpu_backward.cl - gradients of batch normalisation for devices with work-groups; the formulas are in
 * norm/batch_backward.cl. */
#define BACKWARD
#include "norm/batch_shared.clh"

/* Sums of g and g c. */
#define PARTS 2
typedef struct totals {
    T g, gc;
} totals;
/* The result was c scale + bias. */
typedef struct channel_numbers {
    statistics stats;
    T scale, bias;
} channel_numbers;

#include "norm/batch_gpu.clh"

static channel_numbers numbers_of(operands in, kn_batch_shape s, long channel)
{
    channel_numbers n;
    n.stats = load_statistics(in.table + 3 * channel);
    n.scale = scale_of(n.stats.inverse, channel, in, s);
    n.bias = bias_of(channel, in, s);
    return n;
}

static void add_sums(vec g, vec x, channel_numbers n, cut bounds, vec *sum_g, vec *sum_gc)
{
    const vec c = KN_CENTRED(x, n.stats), passed = let_through(g, c * n.scale + n.bias, bounds);
    *sum_g += passed;
    *sum_gc += passed * c;
}

static totals totals_of(operands in, kn_batch_shape s, long channel, long chunk, channel_numbers n)
{
    const global T *g = in.g + channel * s.inner, *x = in.x + channel * s.inner;
    vec total_g = 0, total_gc = 0;
    WALK_BEGIN(chunk);
    while (left > (8 / WIDTH - 1) * step) {
        vec gs[8 / WIDTH], xs[8 / WIDTH];
#pragma unroll
        for (int j = 0; j < 8 / WIDTH; j++) {
            gs[j] = LOAD(g + here);
            xs[j] = LOAD(x + here);
            WALK_NEXT();
        }
#pragma unroll
        for (int j = 0; j < 8 / WIDTH; j++)
            add_sums(gs[j], xs[j], n, in.bounds, &total_g, &total_gc);
    }
    while (left > 0) {
        add_sums(LOAD(g + here), LOAD(x + here), n, in.bounds, &total_g, &total_gc);
        WALK_NEXT();
    }
    const totals t = {SUM_OF(total_g), SUM_OF(total_gc)};
    return t;
}

static totals totals_of_chunks(operands in, kn_batch_shape s, long channel)
{
    T g = 0, g_error = 0, gc = 0, gc_error = 0;
    for (long chunk = get_local_id(0); chunk < s.summed; chunk += get_local_size(0)) {
        const global T *p = in.partial + 2 * (chunk * s.channels + channel);
        KN_TWO_SUM(T, g, g_error, p[0]);
        KN_TWO_SUM(T, gc, gc_error, p[1]);
    }
    const totals t = {sum_finish(g, g_error), sum_finish(gc, gc_error)};
    return t;
}

static totals merge(local T (*parts)[KN_SUM_GROUP], int holders, totals t)
{
    sum_pair_group(parts[0], parts[1], holders, &t.g, &t.gc);
    return t;
}

static void store_totals(global T *to, totals t)
{
    to[0] = t.g;
    to[1] = t.gc;
}

/* d/dx = (g - middle - c slope) scale */
static vec gradient_of(vec g, vec x, channel_numbers n, T middle, T slope, cut bounds)
{
    const vec c = KN_CENTRED(x, n.stats), passed = let_through(g, c * n.scale + n.bias, bounds);
    return (passed - middle - c * slope) * n.scale;
}

static void apply_to(operands in, kn_batch_shape s, long channel, long chunk, channel_numbers n, totals t)
{
    if (chunk == 0 && get_local_id(0) == 0) {
        if (s.flags & KN_NORM_WANTS_WEIGHT)
            in.grad_weight[channel] = t.gc * n.stats.inverse;
        if (s.flags & KN_NORM_WANTS_BIAS)
            in.grad_bias[channel] = t.g;
    }
    if (!(s.flags & KN_NORM_WANTS_X))
        return;
    const global T *g = in.g + channel * s.inner, *x = in.x + channel * s.inner;
    global T *to = in.grad_x + channel * s.inner;
    const T count = s.outer * s.inner, middle = s.flags & KN_NORM_TRAINING ? t.g / count : 0;
    const T slope = s.flags & KN_NORM_TRAINING ? t.gc / count * n.stats.inverse * n.stats.inverse : 0;
    WALK_BEGIN(chunk);
    while (left > (8 / WIDTH - 1) * step) {
        vec gs[8 / WIDTH], xs[8 / WIDTH];
        long at[8 / WIDTH];
#pragma unroll
        for (int j = 0; j < 8 / WIDTH; j++) {
            at[j] = here;
            gs[j] = LOAD(g + here);
            xs[j] = LOAD(x + here);
            WALK_NEXT();
        }
#pragma unroll
        for (int j = 0; j < 8 / WIDTH; j++)
            STORE(gradient_of(gs[j], xs[j], n, middle, slope, in.bounds), to + at[j]);
    }
    while (left > 0) {
        STORE(gradient_of(LOAD(g + here), LOAD(x + here), n, middle, slope, in.bounds), to + here);
        WALK_NEXT();
    }
}
