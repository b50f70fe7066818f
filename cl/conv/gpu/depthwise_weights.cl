/* conv/gpu/depthwise_weights.cl - gradients of the weights of a depthwise convolution on GPUs.
 *
 * A work-group sums one channel over a share of the images and of the columns: its work-items cover a row of dy, or as
 * many rows as fit, and advance by blocks of ROWS rows; each keeps its column, sums all taps in registers and moves the
 * window of x down line by line. The sums of a work-group are added through local memory, those of the shares by
 * conv/common/sums.cl, both in an order that depends on the shape alone.
 *
 * 0 times infinity would be NaN, so x outside the image is not multiplied: for rows dy is masked; a column is outside
 * for the work-item's whole loop, and its sum is masked at the end.
 *
 * Compiled in: T, C = 1, KERNEL, STRIDE, ROWS, GROUP; KERNEL 0: any size, stride and dilation, one work-group per
 * tap. */
#include "conv/gpu/depthwise.clh"

#if KERNEL > 0
#define WINDOW KERNEL
#define STEP_DOWN STRIDE
#define STEP_RIGHT STRIDE
#define FRESH min(KERNEL, STRIDE) /* lines of the window that change from one row to the next */
#else
#define WINDOW 1
#define STEP_DOWN (int)s.stride_height.divisor
#define STEP_RIGHT (int)s.stride_width.divisor
#define FRESH 1
#endif

/* --- the sums of a work-group ------------------------------------------------------------------------------------- */

#define LANES 16
#define PITCH (GROUP + LANES) /* so that two runs of LANES lie in different banks */

/* to[v] = the sum over the work-items of values[v], v < count. */
KN_INLINE void sum_values(local T *part, local T *few, const T *values, int count, global T *to)
{
    const int me = get_local_id(0), lane = me % LANES;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int v = 0; v < WINDOW; v++)
        part[v * PITCH + me] = values[v];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int v = me / LANES; v < WINDOW; v += GROUP / LANES) {
        T sum = 0;
#pragma unroll
        for (int i = 0; i < GROUP / LANES; i++)
            sum += part[v * PITCH + i * LANES + lane];
        few[v * (LANES + 1) + lane] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me < count) {
        T sum = 0;
#pragma unroll
        for (int i = 0; i < LANES; i++)
            sum += few[me * (LANES + 1) + i];
        to[me] = sum;
    }
}

/* --- the sums of a work-item -------------------------------------------------------------------------------------- */

typedef struct depthwise_sums {
    T tap[WINDOW][WINDOW], bias;
} depthwise_sums;

/* sums += one row's part: the window of lines line, line + 1, ... of x times d. */
KN_INLINE void add_row(depthwise_sums *sums, T (*window)[WINDOW], T d, int line, int height)
{
    sums->bias += d;
#pragma unroll
    for (int u = 0; u < WINDOW; u++) {
        const T kept = is_within(line + u, height) ? d : (T)0;
#pragma unroll
        for (int v = 0; v < WINDOW; v++)
            sums->tap[u][v] = fma(window[u][v], kept, sums->tap[u][v]);
    }
}

/* ROWS rows of dy, the first of which reads x from line `row`, column `column` on, at `from`. */
KN_INLINE void add_block(depthwise_sums *sums, const global T *from, const global T *dy, int row, int column,
                         const kn_depthwise_shape s)
{
    T window[WINDOW][WINDOW];
#pragma unroll
    for (int p = 0; p < ROWS; p++) {
        const int line = p * STEP_DOWN;
#pragma unroll
        for (int u = 0; u < WINDOW; u++)
            if (p == 0 || u >= WINDOW - FRESH) {
                LOAD_LINE(window[u], from + (line + u) * s.width, column, is_within(row + line + u, s.height), s.width,
                          0, WINDOW);
            } else
#pragma unroll
                for (int v = 0; v < WINDOW; v++)
                    window[u][v] = window[u + FRESH][v];
        add_row(sums, window, dy[p * s.out_width], row + line, s.height);
    }
}

/* The last block of a plane, of fewer rows. */
KN_INLINE void add_rows(depthwise_sums *sums, const global T *from, const global T *dy, int row, int column, int rows,
                        const kn_depthwise_shape s)
{
    T window[WINDOW][WINDOW];
    for (int p = 0; p < rows; p++) {
        const int line = p * STEP_DOWN;
#pragma unroll
        for (int u = 0; u < WINDOW; u++)
            LOAD_LINE(window[u], from + (line + u) * s.width, column, is_within(row + line + u, s.height), s.width, 0,
                      WINDOW);
        add_row(sums, window, dy[p * s.out_width], row + line, s.height);
    }
}

/* sums: [shares][channels][taps], then, has_bias, bias sums [shares][channels]. */
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
conv_depthwise_weights(KN_IN(x), KN_IN(dy), KN_OUT(dw), KN_OUT(db), kn_depthwise_shape s, kn_depthwise_shares h,
                       int has_bias)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, dw);
    KN_BIND_OUT(T, db);
    local T part[WINDOW * PITCH], few[WINDOW * (LANES + 1)];
    const uint id = (uint)get_group_id(0), task = kn_quotient(id, h.taps), share = kn_quotient(task, h.channels),
               range = kn_quotient(share, h.chunks);
    const int tap = (int)kn_remainder(id, task, h.taps), channel = (int)kn_remainder(task, share, h.channels);
    const uint walker = kn_quotient((uint)get_local_id(0), h.chunk);
    const int out_column = (int)(kn_remainder(share, range, h.chunks) * h.chunk.divisor +
                                 kn_remainder((uint)get_local_id(0), walker, h.chunk));
#if KERNEL > 0
    const int down = -s.top, column = out_column * STRIDE - s.left;
#else
    const int down = tap / s.kernel_width * s.dilation_height - s.top;
    const int column = out_column * STEP_RIGHT + tap % s.kernel_width * s.dilation_width - s.left;
#endif
    const int last = min(h.units, (int)(range + 1) * h.units_per_share);
    const int pixels = s.height * s.width, out_pixels = s.out_height * s.out_width;
    const uint read_channel = kn_quotient((uint)channel, s.multiplier);
    const long read_channels = kn_quotient(h.channels.divisor, s.multiplier);
    depthwise_sums sums = {.bias = 0};
#pragma unroll
    for (int u = 0; u < WINDOW; u++)
#pragma unroll
        for (int v = 0; v < WINDOW; v++)
            sums.tap[u][v] = 0;
    if ((int)walker < h.walkers && out_column < s.out_width)
        for (int unit = (int)range * h.units_per_share + (int)walker; unit < last; unit += h.walkers) {
            const uint image = kn_quotient((uint)unit, s.blocks);
            const int first = (int)kn_remainder((uint)unit, image, s.blocks) * ROWS,
                      rows = min(ROWS, s.out_height - first);
            const int row = first * STEP_DOWN + down;
            const global T *from = x + (image * read_channels + read_channel) * pixels + (row * s.width + column);
            const global T *gradient =
                dy + (image * (long)h.channels.divisor + channel) * out_pixels + (first * s.out_width + out_column);
            if (rows == ROWS)
                add_block(&sums, from, gradient, row, column, s);
            else
                add_rows(&sums, from, gradient, row, column, rows, s);
        }
#pragma unroll
    for (int v = 0; v < WINDOW; v++)
        if (!is_within(column + v, s.width))
#pragma unroll
            for (int u = 0; u < WINDOW; u++)
                sums.tap[u][v] = 0;
    dw += (long)task * (WINDOW * WINDOW * (int)h.taps.divisor) + tap;
#pragma unroll
    for (int u = 0; u < WINDOW; u++)
        sum_values(part, few, sums.tap[u], WINDOW, dw + u * WINDOW);
    if (has_bias && tap == 0) {
        T bias[WINDOW];
#pragma unroll
        for (int v = 0; v < WINDOW; v++)
            bias[v] = sums.bias;
        sum_values(part, few, bias, 1, db + task);
    }
}
