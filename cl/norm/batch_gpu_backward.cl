/* norm/batch_gpu_backward.cl - gradients of batch normalisation for devices with work-groups; the formulas are in
 * norm/batch_backward.cl.
 *
 * Two launches: the sums of g and g c over each chunk; then every work-group adds its channel's sums, by one tree, and
 * computes a chunk of the gradient. Small channels are one chunk: batch_backward_whole does both. partial
 * [chunks][channels][2]. */
#include "norm/batch_gpu.clh"

/* A channel's constants: the result was c scale + bias. */
typedef struct channel_numbers {
    statistics s;
    T scale, bias;
} channel_numbers;

static channel_numbers numbers_of(operands in, long channel)
{
    channel_numbers n;
    n.s = load_statistics(in.table + 3 * channel);
    n.scale = in.flags & HAS_WEIGHT ? in.weight[channel] * n.s.inverse : n.s.inverse;
    n.bias = in.flags & HAS_BIAS ? in.bias[channel] : 0;
    return n;
}

static void add_sums(vec g, vec x, channel_numbers n, cut bounds, vec *sum_g, vec *sum_gc)
{
    const vec c = KN_CENTRED(x, n.s), passed = let_through(g, c * n.scale + n.bias, bounds);
    *sum_g += passed;
    *sum_gc += passed * c;
}

/* This work-item's sums of g and g c over a chunk of the channel whose first element is number `first`. */
static void sums_of(operands in, long first, long chunk, channel_numbers n, SHAPE_PARAMETERS, T *sum_g, T *sum_gc)
{
    const global T *g = in.g + first, *x = in.x + first;
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
    *sum_g = SUM_OF(total_g);
    *sum_gc = SUM_OF(total_gc);
}

/* This work-item's sum over its share of the channel's chunks. */
static void sums_of_chunks(const global T *partial, long channel, long channels, long chunks, T *sum_g, T *sum_gc)
{
    T g = 0, g_error = 0, gc = 0, gc_error = 0;
    for (long chunk = get_local_id(0); chunk < chunks; chunk += get_local_size(0)) {
        const global T *p = partial + 2 * (chunk * channels + channel);
        KN_TWO_SUM(T, g, g_error, p[0]);
        KN_TWO_SUM(T, gc, gc_error, p[1]);
    }
    *sum_g = sum_finish(g, g_error);
    *sum_gc = sum_finish(gc, gc_error);
}

/* d/dx = (g - middle - c slope) scale */
static vec gradient_of(vec g, vec x, channel_numbers n, T middle, T slope, cut bounds)
{
    const vec c = KN_CENTRED(x, n.s), passed = let_through(g, c * n.scale + n.bias, bounds);
    return (passed - middle - c * slope) * n.scale;
}

static void apply_to(operands in, global T *grad_x, long first, long chunk, channel_numbers n, T sum_g, T sum_gc,
                     SHAPE_PARAMETERS)
{
    const global T *g = in.g + first, *x = in.x + first;
    global T *to = grad_x + first;
    const T count = outer * inner, middle = in.flags & TRAINING ? sum_g / count : 0;
    const T slope = in.flags & TRAINING ? sum_gc / count * n.s.inverse * n.s.inverse : 0;
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

/* Called by one work-item. */
static void keep(long channel, T inverse, T sum_g, T sum_gc, global T *grad_weight, global T *grad_bias, int flags)
{
    if (flags & WANTS_WEIGHT)
        grad_weight[channel] = sum_gc * inverse;
    if (flags & WANTS_BIAS)
        grad_bias[channel] = sum_g;
}

kernel void batch_sums(OPERANDS, KN_OUT(partial), SHAPE_PARAMETERS)
{
    BIND_OPERANDS(in);
    KN_BIND_OUT(T, partial);
    local T gs[KN_SUM_GROUP], gcs[KN_SUM_GROUP];
    for (long i = get_group_id(0); i < channels * chunks; i += get_num_groups(0)) {
        const long channel = quotient(i, chunks), chunk = i - channel * chunks;
        T sum_g, sum_gc;
        sums_of(in, channel * inner, chunk, numbers_of(in, channel), SHAPE, &sum_g, &sum_gc);
        sum_pair_group(gs, gcs, get_local_size(0), &sum_g, &sum_gc);
        if (get_local_id(0) == 0) {
            partial[2 * (chunk * channels + channel)] = sum_g;
            partial[2 * (chunk * channels + channel) + 1] = sum_gc;
        }
    }
}

/* `summed`: the number of chunks with sums, 0 if none are needed. One work-group per chunk, or per channel if no
 * gradient of x is wanted. */
kernel void batch_backward_apply(OPERANDS, KN_IN(partial), KN_OUT(grad_x), KN_OUT(grad_weight), KN_OUT(grad_bias),
                                 SHAPE_PARAMETERS, const long summed)
{
    BIND_OPERANDS(in);
    KN_BIND_IN(T, partial);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_OUT(T, grad_weight);
    KN_BIND_OUT(T, grad_bias);
    local T gs[KN_SUM_GROUP], gcs[KN_SUM_GROUP];
    const int holders = chunk_holders(summed);
    const long pieces = flags & WANTS_X ? chunks : 1;
    for (long i = get_group_id(0); i < channels * pieces; i += get_num_groups(0)) {
        const long channel = quotient(i, pieces), chunk = i - channel * pieces;
        const channel_numbers n = numbers_of(in, channel);
        T sum_g, sum_gc;
        sums_of_chunks(partial, channel, channels, summed, &sum_g, &sum_gc);
        sum_pair_group(gs, gcs, holders, &sum_g, &sum_gc);
        if (chunk == 0 && get_local_id(0) == 0)
            keep(channel, n.s.inverse, sum_g, sum_gc, grad_weight, grad_bias, flags);
        if (flags & WANTS_X)
            apply_to(in, grad_x, channel * inner, chunk, n, sum_g, sum_gc, SHAPE);
    }
}

/* For channels of one chunk. */
kernel void batch_backward_whole(OPERANDS, KN_OUT(grad_x), KN_OUT(grad_weight), KN_OUT(grad_bias), SHAPE_PARAMETERS)
{
    BIND_OPERANDS(in);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_OUT(T, grad_weight);
    KN_BIND_OUT(T, grad_bias);
    local T gs[KN_SUM_GROUP], gcs[KN_SUM_GROUP];
    for (long channel = get_group_id(0); channel < channels; channel += get_num_groups(0)) {
        const channel_numbers n = numbers_of(in, channel);
        T sum_g, sum_gc;
        sums_of(in, channel * inner, 0, n, SHAPE, &sum_g, &sum_gc);
        sum_pair_group(gs, gcs, get_local_size(0), &sum_g, &sum_gc);
        if (get_local_id(0) == 0)
            keep(channel, n.s.inverse, sum_g, sum_gc, grad_weight, grad_bias, flags);
        if (flags & WANTS_X)
            apply_to(in, grad_x, channel * inner, 0, n, sum_g, sum_gc, SHAPE);
    }
}
