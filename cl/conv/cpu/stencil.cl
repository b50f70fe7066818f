/* conv/cpu/stencil.cl - depthwise convolution with stride 1 of kernels known when compiled, on CPU devices, one
 * channel's image at a time.
 *
 * The image is copied into a grid with margins of zeros, which stays in the L1 cache. There each tap is a constant
 * distance from its pixel, so nothing is masked, and a vector of the grid is loaded once for the sums of up to ROWS
 * result rows that read it:
 *
 *     result[i][j] = bias + sum over taps (u, v) of grid[i + u][j + v] * w[u][v]
 *
 * Backward-data is the same of dy, spread by the stride, with a flipped kernel. A row's last vector overlaps the one
 * before, as do the last ROWS rows.
 *
 * Compiled in: T, VW, KR, KC (the kernel's rows and columns). Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "common/prefetch.clh"
#include "gemm/pack.clh"
#include "conv/cpu/copy.clh"
#include "conv/cpu/planes.clh"

#define ROWS 4
#define TAPS (KR * KC)

/* ROWS rows of a vector of results. */
KN_INLINE void sum_rows(global T *restrict to, long columns, const global T *restrict grid, long width,
                        const V weight[TAPS], V start, V low, V high)
{
    V sum[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        sum[r] = start;
#pragma unroll
    for (int i = 0; i < ROWS + KR - 1; i++)
#pragma unroll
        for (int v = 0; v < KC; v++) {
            const V pixels = VLOAD(0, grid + i * width + v);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (i >= r && i - r < KR)
                    sum[r] = fma(pixels, weight[(i - r) * KC + v], sum[r]);
        }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        VSTORE(KN_CLAMP(sum[r], low, high), 0, to + r * columns);
}

static inline void read_taps(V weight[TAPS], const global T *restrict w, bool flipped)
{
#pragma unroll
    for (int t = 0; t < TAPS; t++)
        weight[t] = (V)w[flipped ? TAPS - 1 - t : t];
}

/* dim 0: planes_per_item planes of the result, numbered channel fastest. A work-item's scratch memory is its grid. */
KN_KERNEL_ONCE(conv_stencil,
               (KN_ARG(x), KN_ARG(w), KN_ARG(bias), KN_ARG(y), KN_ARG(scratch), s, planes_per_item, scratch_size,
                has_bias, low, high),
               KN_IN(x), KN_IN(w), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), kn_conv_plane_shape s, long planes_per_item,
               long scratch_size, int has_bias, T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long first = KN_ID(0) * planes_per_item, last = min(s.images * s.channels, first + planes_per_item),
               read_size = s.read_rows * s.read_columns;
    global T *grid = scratch + KN_ID(0) * scratch_size;
    zero_run(grid, s.line);
    for (long plane = first; plane < last; plane++) {
        const long channel = plane % s.channels, image = plane / s.channels;
        const global T *read = x + (image * s.read_channels + channel / (s.channels / s.read_channels)) * read_size;
        V weight[TAPS];
        read_taps(weight, w + channel * TAPS, s.row_distance < 0);
        fill_rows(grid + s.before, read, s.read_rows, s.read_columns, s.width, s.spread_rows, s.spread_columns);
        const V start = (V)(has_bias ? bias[channel] : (T)0);
        const global T *ahead = read + read_size, *ahead_end = ahead + read_size;
        for (long i = 0; i < s.rows; i += ROWS) {
            const long row = min(i, s.rows - ROWS);
            global T *to = y + (plane * s.rows + row) * s.columns;
            for (long j = 0; j < s.columns; j += VW) {
                const long column = min(j, s.columns - VW);
                for (int k = 0; k < ROWS * VW && ahead < ahead_end; k += LINE, ahead += LINE)
                    PREFETCH(ahead);
                sum_rows(to + column, s.columns, grid + row * s.width + column, s.width, weight, start, (V)low,
                         (V)high);
            }
        }
    }
}

/* --- the gradient of the weights ---------------------------------------------------------------------------------- */

#define TOGETHER (TAPS <= 9 ? KR : 1) /* kernel rows whose sums are in registers */

/* totals[u][v] += the sum over the pixels of dy of grid[i + u][j + v] * dy[i][j], for kernel rows from u on. Asks for
 * the next image of x and of dy. */
static inline void add_taps(V totals[TAPS], const global T *restrict grid, const global T *restrict dy,
                            const global T *ahead, const kn_conv_plane_shape *s, int u)
{
    const long dy_ahead = s->channels * s->rows * s->columns;
    V sum[TOGETHER * KC];
#pragma unroll
    for (int t = 0; t < TOGETHER * KC; t++)
        sum[t] = totals[u * KC + t];
    const int rest = (int)(s->columns % VW); /* pixels of a row's last vector, which overlaps the one before */
    for (long i = 0; i < s->rows; i++, dy += s->columns) {
        const global T *from = grid + (i + u) * s->width;
        for (long j = 0; j + VW <= s->columns; j += VW) {
            if (j % LINE == 0) {
                PREFETCH(ahead + i * s->columns + j);
                PREFETCH(dy + dy_ahead + j);
            }
            const V d = VLOAD(0, dy + j);
#pragma unroll
            for (int t = 0; t < TOGETHER * KC; t++)
                sum[t] = fma(VLOAD(0, from + j + t / KC * s->width + t % KC), d, sum[t]);
        }
        if (rest > 0) {
            const V d = load_rest(dy, s->columns, rest);
#pragma unroll
            for (int t = 0; t < TOGETHER * KC; t++)
                sum[t] = fma(load_rest(from + t / KC * s->width + t % KC, s->columns, rest), d, sum[t]);
        }
    }
#pragma unroll
    for (int t = 0; t < TOGETHER * KC; t++)
        totals[u * KC + t] = sum[t];
}

/* dim 0: tasks_per_item tasks of all channels of dy by shares of the images, channel fastest. Rows have
 * VW pixels and more. dw is [shares][channels][taps], db [shares][channels]. */
KN_KERNEL_ONCE(conv_stencil_weights,
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
    const long first = KN_ID(0) * tasks_per_item, last = min(s.channels * shares, first + tasks_per_item);
    global T *grid = scratch + KN_ID(0) * scratch_size;
    zero_run(grid, s.line);
    for (long task = first; task < last; task++) {
        const long channel = task % s.channels, share = task / s.channels;
        V totals[TAPS];
        T total = 0;
        for (int t = 0; t < TAPS; t++)
            totals[t] = (V)(T)0;
        for (long image = share * images_per_share; image < min(s.images, (share + 1) * images_per_share); image++) {
            const long from = image * s.read_channels + channel / (s.channels / s.read_channels);
            const global T *gradient = dy + (image * s.channels + channel) * s.rows * s.columns;
            const long read_size = s.read_rows * s.read_columns;
            const global T *read = x + from * read_size;
            fill_rows(grid + s.before, read, s.read_rows, s.read_columns, s.width, s.spread_rows, s.spread_columns);
            for (int u = 0; u < KR; u += TOGETHER)
                add_taps(totals, grid, gradient, read + s.read_channels * read_size, &s, u);
            if (has_bias)
                total += sum_plane(gradient, s.rows * s.columns);
        }
        for (int t = 0; t < TAPS; t++)
            dw[task * TAPS + t] = sum_lanes(totals[t]);
        if (has_bias)
            db[task] = total;
    }
}
