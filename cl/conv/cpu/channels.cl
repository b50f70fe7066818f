/* conv/cpu/channels.cl - depthwise convolution on CPU devices for small images, vectors along the channels.
 *
 * The planes of VW channels are transposed, VW pixels at a time, into a grid whose pixels are vectors and whose margins
 * are zeros. There each tap is a constant offset, nothing is masked or shuffled however short the rows, and a weight is
 * a vector that is loaded once for several pixels:
 *
 *     result[e] = bias + sum over taps t of grid[start of e + offset of t] * w[t]
 *
 * one load per multiplication, about 9 cycles for 9 taps. The results are transposed back, about 90 cycles for 16 x 16.
 * Weight gradients are sums within a lane, over pixels, then images. Strides cost nothing: skipped pixels are not
 * visited. While the grid and the result stay in the L2 cache, this takes half to three quarters of the time of
 * conv/cpu/planes.cl, which needs masks and handles line ends, and with a stride a quarter; of 8 x 8 pixels as long as
 * conv/cpu/stencil.cl, of more twice as long.
 *
 * Compiled in: T, VW, TAPS (at a time, of the weights' gradient). Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "common/prefetch.clh"
#include "gemm/pack.clh"
#include "conv/cpu/copy.clh"
#include "conv/cpu/planes.clh"

/* Copies pixel e of lane's plane, from[plane[lane] + e], to the vector at place[e]; n pixels. The last vectors
 * overlap. Asks for the planes of the next image, `next` elements further. */
KN_ONCE void to_channels(global T *restrict to, const global int *restrict place, const global T *restrict from,
                         const long plane[VW], long n, long next)
{
    if (n < VW) {
        for (int lane = 0; lane < VW; lane++)
            for (long e = 0; e < n; e++)
                to[place[e] + lane] = from[plane[lane] + e];
        return;
    }
    for (long first = 0; first < n; first += VW) {
        const long e = min(first, n - VW);
        V a[VW];
#pragma unroll
        for (int lane = 0; lane < VW; lane++)
            a[lane] = VLOAD(0, from + plane[lane] + e);
        if (first % LINE == 0)
            for (int lane = 0; lane < VW; lane++)
                PREFETCH(from + plane[lane] + next + e);
        zip_transpose(a);
#pragma unroll
        for (int k = 0; k < VW; k++)
            VSTORE(a[k], 0, to + place[e + k]);
    }
}

/* The inverse, from consecutive vectors to the planes of the first `lanes` lanes, n pixels apart; other lanes duplicate
 * the last of them. */
static inline void to_planes(global T *restrict to, int lanes, const global T *restrict from, long n)
{
    if (n < VW) {
        for (int lane = 0; lane < lanes; lane++)
            for (long e = 0; e < n; e++)
                to[lane * n + e] = from[e * VW + lane];
        return;
    }
    for (long first = 0; first < n; first += VW) {
        const long e = min(first, n - VW);
        V a[VW];
#pragma unroll
        for (int k = 0; k < VW; k++)
            a[k] = VLOAD(e + k, from);
        zip_transpose(a);
#pragma unroll
        for (int lane = 0; lane < VW; lane++)
            VSTORE(a[lane], 0, to + min(lane, lanes - 1) * n + e);
    }
}

/* A work-item's part of the scratch memory; numbers of elements in brackets. */
typedef struct channel_scratch {
    global T *grid, *result, *taps;     /* [line, pixels, taps + 1][VW]; taps: the weights or their sums, bias last */
    /* grid offsets of [input pixels], [output pixels], and relative ones of [taps] */
    global int *place, *start, *offset;
    global int *order;                  /* [pixels]: offsets in the result */
} channel_scratch;

static inline channel_scratch divide_scratch(global T *restrict scratch, const kn_conv_plane_shape *s)
{
    const long taps = s->kernel_rows * s->kernel_columns, pixels = s->rows * s->columns;
    channel_scratch c;
    c.grid = scratch;
    c.result = c.grid + s->line * VW;
    c.taps = c.result + pixels * VW;
    c.place = (global int *)(c.taps + (taps + 1) * VW);
    c.start = c.place + s->read_rows * s->read_columns;
    c.offset = c.start + pixels;
    c.order = c.offset + taps;
    zero_run(c.grid, s->line * VW);
    for (long i = 0; i < s->read_rows; i++)
        for (long j = 0; j < s->read_columns; j++)
            c.place[i * s->read_columns + j] = VW * (s->before + i * s->spread_rows * s->width + j * s->spread_columns);
    for (long i = 0; i < s->rows; i++)
        for (long j = 0; j < s->columns; j++) {
            c.start[i * s->columns + j] = VW * (s->before + i * s->step_rows * s->width + j * s->step_columns);
            c.order[i * s->columns + j] = VW * (i * s->columns + j);
        }
    for (long u = 0; u < s->kernel_rows; u++)
        for (long v = 0; v < s->kernel_columns; v++)
            c.offset[u * s->kernel_columns + v] = VW * ((s->row_shift + u * s->row_distance) * s->width +
                                                        s->column_shift + v * s->column_distance);
    return c;
}

/* The offsets in an image of the planes read by VW channels from `first` on. Lanes past the last channel repeat it. */
static inline void find_planes(long plane[VW], const kn_conv_plane_shape *s, long first)
{
    const long per_read = s->channels / s->read_channels;
    for (int lane = 0; lane < VW; lane++)
        plane[lane] = min(first + lane, s->channels - 1) / per_read * s->read_rows * s->read_columns;
}

static inline void read_weights(const channel_scratch *c, const global T *restrict w, const global T *restrict bias,
                                const kn_conv_plane_shape *s, long first, int has_bias)
{
    const long taps = s->kernel_rows * s->kernel_columns;
    for (int lane = 0; lane < VW; lane++) {
        const long channel = min(first + lane, s->channels - 1);
        for (long t = 0; t < taps; t++)
            c->taps[t * VW + lane] = w[channel * taps + t];
        c->taps[taps * VW + lane] = has_bias ? bias[channel] : (T)0;
    }
}

/* The sums of PIXELS pixels stay in registers, and each weight is loaded once for them. The last pixels may be the last
 * one several times. */
#define PIXELS 8
KN_ONCE void sum_taps(const channel_scratch *c, const kn_conv_plane_shape *s, T low, T high)
{
    const long taps = s->kernel_rows * s->kernel_columns, pixels = s->rows * s->columns;
    const global int *restrict start = c->start, *restrict offset = c->offset;
    const global T *restrict weights = c->taps;
    global T *restrict result = c->result;
    for (long e = 0; e < pixels; e += PIXELS) {
        const global T *from[PIXELS];
        V sum[PIXELS];
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            from[i] = c->grid + start[min(e + i, pixels - 1)];
            sum[i] = VLOAD(taps, weights);
        }
        for (long t = 0; t < taps; t++) {
            const V weight = VLOAD(t, weights);
            const long at = offset[t];
#pragma unroll
            for (int i = 0; i < PIXELS; i++)
                sum[i] = fma(VLOAD(0, from[i] + at), weight, sum[i]);
        }
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            VSTORE(KN_CLAMP(sum[i], (V)low, (V)high), min(e + i, pixels - 1), result);
    }
}

/* dim 0: tasks_per_item tasks of all blocks of VW channels of all images, image fastest. */
KN_KERNEL_ONCE(conv_channels,
               (KN_ARG(x), KN_ARG(w), KN_ARG(bias), KN_ARG(y), KN_ARG(scratch), s, tasks_per_item, scratch_size,
                has_bias, low, high),
               KN_IN(x), KN_IN(w), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), kn_conv_plane_shape s, long tasks_per_item,
               long scratch_size, int has_bias, T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long read_pixels = s.read_rows * s.read_columns, pixels = s.rows * s.columns;
    const long tasks = (s.channels + VW - 1) / VW * s.images;
    const long begin = KN_ID(0) * tasks_per_item, end = min(tasks, begin + tasks_per_item);
    const channel_scratch c = divide_scratch(scratch + KN_ID(0) * scratch_size, &s);
    const long next = s.read_channels * read_pixels;
    long plane[VW];
    for (long task = begin; task < end; task++) {
        const long first = task / s.images * VW, image = task % s.images;
        if (task == begin || image == 0) {
            find_planes(plane, &s, first);
            read_weights(&c, w, bias, &s, first, has_bias);
        }
        to_channels(c.grid, c.place, x + image * next, plane, read_pixels, next);
        sum_taps(&c, &s, low, high);
        to_planes(y + (image * s.channels + first) * pixels, (int)min((long)VW, s.channels - first), c.result, pixels);
    }
}

/* Adds an image's products to the sums of the taps, and the gradient to that of the bias. */
KN_ONCE void add_image(const channel_scratch *c, const kn_conv_plane_shape *s, int has_bias)
{
    const long taps = s->kernel_rows * s->kernel_columns, pixels = s->rows * s->columns;
    const global T *restrict grid = c->grid, *restrict gradient = c->result;
    const global int *restrict start = c->start;
    for (long t = 0; t < taps; t += TAPS) {
        V sum[TAPS];
        long offset[TAPS];
#pragma unroll
        for (int i = 0; i < TAPS; i++) {
            sum[i] = (V)(T)0;
            offset[i] = c->offset[min(t + i, taps - 1)];
        }
        for (long e = 0; e < pixels; e++) {
            const global T *from = grid + start[e];
            const V d = VLOAD(e, gradient);
#pragma unroll
            for (int i = 0; i < TAPS; i++)
                sum[i] = fma(VLOAD(0, from + offset[i]), d, sum[i]);
        }
#pragma unroll
        for (int i = 0; i < TAPS; i++)
            if (t + i < taps)
                VSTORE(VLOAD(t + i, c->taps) + sum[i], t + i, c->taps);
    }
    if (!has_bias)
        return;
    V sum = (V)(T)0;
    for (long e = 0; e < pixels; e++)
        sum += VLOAD(e, gradient);
    VSTORE(VLOAD(taps, c->taps) + sum, taps, c->taps);
}

/* dim 0: tasks_per_item tasks of all blocks of VW channels of dy by shares of the images, block fastest. dw is
 * [shares][channels][taps], db [shares][channels]. */
KN_KERNEL_ONCE(conv_channels_weights,
               (KN_ARG(x), KN_ARG(dy), KN_ARG(dw), KN_ARG(db), KN_ARG(scratch), s, images_per_share, shares,
                tasks_per_item, scratch_size, has_bias),
               KN_IN(x), KN_IN(dy), KN_OUT(dw), KN_OUT(db), KN_OUT(scratch), kn_conv_plane_shape s,
               long images_per_share, long shares, long tasks_per_item, long scratch_size, int has_bias)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, dw);
    KN_BIND_OUT(T, db);
    KN_BIND_OUT(T, scratch);
    const long read_pixels = s.read_rows * s.read_columns, pixels = s.rows * s.columns;
    const long taps = s.kernel_rows * s.kernel_columns, blocks = (s.channels + VW - 1) / VW;
    const long begin = KN_ID(0) * tasks_per_item, end = min(blocks * shares, begin + tasks_per_item);
    const channel_scratch c = divide_scratch(scratch + KN_ID(0) * scratch_size, &s);
    const long next = s.read_channels * read_pixels, next_gradient = s.channels * pixels;
    for (long task = begin; task < end; task++) {
        const long first = task % blocks * VW, share = task / blocks;
        long plane[VW], gradient_plane[VW];
        find_planes(plane, &s, first);
        for (int lane = 0; lane < VW; lane++)
            gradient_plane[lane] = min(first + lane, s.channels - 1) * pixels;
        zero_run(c.taps, (taps + 1) * VW);
        for (long image = share * images_per_share; image < min(s.images, (share + 1) * images_per_share); image++) {
            to_channels(c.grid, c.place, x + image * next, plane, read_pixels, next);
            to_channels(c.result, c.order, dy + image * next_gradient, gradient_plane, pixels, next_gradient);
            add_image(&c, &s, has_bias);
        }
        for (int lane = 0; lane < min((long)VW, s.channels - first); lane++) {
            const long channel = share * s.channels + first + lane;
            for (long t = 0; t < taps; t++)
                dw[channel * taps + t] = c.taps[t * VW + lane];
            if (has_bias)
                db[channel] = c.taps[taps * VW + lane];
        }
    }
}
