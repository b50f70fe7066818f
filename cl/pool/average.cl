/* pool/average.cl - average pooling and its gradient. The divisor is kernel_size, the number of elements inside the
 * padded input, that inside the input, or a given number, as in PyTorch.
 *
 * Compile-time, on CPU devices: LONG, windows of long lines. */
#include "pool/average_window.clh"

#ifdef KN_CPU

/* row_forward: `count` outputs of a row; `room` elements of the plane and after it exist. row_backward: adds their
 * gradient to a plane. */
#ifdef LONG
#include "pool/sum_runs.clh"

static void row_forward(const kn_pool_geometry *p, const global T *plane, long room, int slice, int row, int first,
                        int count, global T *y)
{
    for (int k = 0; k < count; k++) {
        box b;
        const T divisor = window(p, slice, row, first + k, &b);
        y[k] = is_empty(&b) ? (T)0 : sum_of_runs(runs_of(p, b, 1, 1), plane, room) / divisor;
    }
}

static void row_backward(const kn_pool_geometry *p, const global T *gradient, int slice, int row, int first, int count,
                         global T *plane)
{
    for (int k = 0; k < count; k++) {
        box b;
        const T share = gradient[k] / window(p, slice, row, first + k, &b);
        FOR_BOX(b, d, h, w) plane[((long)SLICE(d) * p->size[1] + h) * p->size[2] + w] += share;
    }
}

static int outputs_at_once(const kn_pool_geometry *p, int rest) { return (void)p, rest; }

#else

/* The divisors of a row of windows, as computed by `window`, with the row's factor hoisted and no branches. */
typedef struct row_divisors {
    T rows, fixed;
    int high;
} row_divisors;

KN_INLINE row_divisors divisors_of(const kn_pool_geometry *p, int slice, int row)
{
    int front = 0, back = 1, top, bottom, places = 1;
#if VOLUME
    places = cut_window(p, 0, slice * p->stride[0] - p->padding[0], p->size[0], &front, &back);
#endif
    places *= cut_window(p, 1, row * p->stride[1] - p->padding[1], p->size[1], &top, &bottom);
    return (row_divisors){places, p->divisor, back > front ? bottom - top : 0};
}

/* 0 for an empty window. */
KN_INLINE T divide(const kn_pool_geometry *p, row_divisors by, int column, T value)
{
    const int w = column * p->stride[2] - p->padding[2], w_end = min(w + p->kernel_size[2], p->end[2]);
    const int wide = min(w_end, p->size[2]) - max(w, 0);
    const T columns = p->count_include_pad ? w_end - w : wide;
    const T divisor = by.fixed != 0 ? by.fixed : by.rows * columns;
    return ((by.high > 0) & (wide > 0)) ? value / divisor : (T)0;
}

/* Up to 64 outputs of a row at a time, with the loop over window elements outside, so that the loop over outputs
 * vectorises. */
#define ROW_PASS(step)                \
    for (int k = from; k < to; k++)   \
        sum[k] += line[left + k * (step)];
#define MOST_COLUMNS 256
static void row_forward(const kn_pool_geometry *p, const global T *volume, long room, int slice, int row, int first,
                        int count, global T *y)
{
    (void)room;
    const int stride_x = p->stride[2], start = first * stride_x - p->padding[2];
    const int span = (count - 1) * stride_x + p->kernel_size[2];
    const bool by_columns = DEPTH(p->kernel_size[0]) * p->kernel_size[1] > 1 && span <= MOST_COLUMNS;
    T sum[64], column[MOST_COLUMNS]; /* the sums of the input's columns, if several lines are added */

    for (int k = 0; k < count; k++)
        sum[k] = 0;
    for (int k = 0; by_columns && k < span; k++)
        column[k] = 0;
    for (int lines = 0; lines < DEPTH(p->kernel_size[0]) * p->kernel_size[1]; lines++) {
        const int t = SLICE(lines / p->kernel_size[1]);
        const int d = SLICE(slice * p->stride[0] - p->padding[0] + t);
        const int h = row * p->stride[1] - p->padding[1] + lines - t * p->kernel_size[1];
        if (!is_within(d, DEPTH(p->size[0])) || !is_within(h, p->size[1]))
            continue;
        const global T *line = volume + ((long)d * p->size[1] + h) * p->size[2];
        if (by_columns) {
            for (int k = max(-start, 0); k < min(span, p->size[2] - start); k++)
                column[k] += line[start + k];
            continue;
        }
        for (int s = 0; s < p->kernel_size[2]; s++) {
            const int stride = p->stride[2], left = first * stride - p->padding[2] + s;
            const int from = left >= 0 ? 0 : (-left + stride - 1) / stride;
            const int to = left >= p->size[2] ? 0 : min(count, (p->size[2] - 1 - left) / stride + 1);
            if (stride == 1)
                ROW_PASS(1)
            else if (stride == 2)
                ROW_PASS(2)
            else
                ROW_PASS(stride)
        }
    }
    for (int s = 0; by_columns && s < p->kernel_size[2]; s++)
        if (stride_x == 1)
            for (int k = 0; k < count; k++)
                sum[k] += column[k + s];
        else if (stride_x == 2)
            for (int k = 0; k < count; k++)
                sum[k] += column[2 * k + s];
        else
            for (int k = 0; k < count; k++)
                sum[k] += column[k * stride_x + s];
    const row_divisors by = divisors_of(p, slice, row);
    for (int k = 0; k < count; k++)
        y[k] = divide(p, by, first + k, sum[k]);
}

/* The gradient of `count` outputs of a row, which cover MOST_COLUMNS columns at most: their shares are added column by
 * column, then to each line of the windows. */
static void row_backward(const kn_pool_geometry *p, const global T *gradient, int slice, int row, int first, int count,
                         global T *volume)
{
    const int stride = p->stride[2], start = first * stride - p->padding[2];
    const int span = (count - 1) * stride + p->kernel_size[2];
    const int from = max(-start, 0), to = min(span, p->size[2] - start);
    T share[64], column[MOST_COLUMNS];

    const row_divisors by = divisors_of(p, slice, row);
    for (int k = 0; k < count; k++)
        share[k] = divide(p, by, first + k, gradient[k]);
    for (int k = 0; k < span; k++)
        column[k] = 0;
    for (int s = 0; s < p->kernel_size[2]; s++)
        if (stride == 1)
            for (int k = 0; k < count; k++)
                column[k + s] += share[k];
        else
            for (int k = 0; k < count; k++)
                column[k * stride + s] += share[k];
    for (int lines = 0; lines < DEPTH(p->kernel_size[0]) * p->kernel_size[1]; lines++) {
        const int t = SLICE(lines / p->kernel_size[1]), d = SLICE(slice * p->stride[0] - p->padding[0] + t);
        const int h = row * p->stride[1] - p->padding[1] + lines - t * p->kernel_size[1];
        if (!is_within(d, DEPTH(p->size[0])) || !is_within(h, p->size[1]))
            continue;
        global T *line = volume + ((long)d * p->size[1] + h) * p->size[2] + start;
        for (int k = from; k < to; k++)
            line[k] += column[k];
    }
}

/* How many outputs of a row are taken at a time, of which `rest` remain. */
static int outputs_at_once(const kn_pool_geometry *p, int rest)
{
    return min(min(64, rest), (MOST_COLUMNS - p->kernel_size[2]) / p->stride[2] + 1);
}

#endif

KN_KERNEL_ONCE(avg_pool_forward, (KN_ARG(x), KN_ARG(y), p), KN_IN(x), KN_OUT(y), const kn_pool_geometry p)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long size = volume_of(&p);
    KN_FOR_ONCE(line, output_lines(&p))
    {
        const output_line l = find_output_line(&p, line);
        for (int first = 0; first < p.out_size[2]; first += 64)
            row_forward(&p, x + l.plane * size, (p.planes - l.plane) * size, l.slice, l.row, first,
                        min(64, p.out_size[2] - first), y + line * p.out_size[2] + first);
    }
}

/* A work-item owns whole planes and adds in the order of the outputs. */
KN_KERNEL_ONCE(avg_pool_backward, (KN_ARG(gradient), KN_ARG(out), p),
               KN_IN(gradient), KN_OUT(out), const kn_pool_geometry p)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_OUT(T, out);
    KN_FOR_ONCE(i, p.planes)
    {
        const global T *g = gradient + i * out_volume_of(&p);
        global T *volume = out + i * volume_of(&p);
        for (long k = 0; k < volume_of(&p); k++)
            volume[k] = 0;
        for (int rows = 0; rows < DEPTH(p.out_size[0]) * p.out_size[1]; rows++) {
            const int slice = SLICE(rows / p.out_size[1]), row = rows - slice * p.out_size[1];
            for (int first = 0, count; first < p.out_size[2]; first += count) {
                count = outputs_at_once(&p, p.out_size[2] - first);
                row_backward(&p, g + (long)rows * p.out_size[2] + first, slice, row, first, count, volume);
            }
        }
    }
}

#else
#include "pool/windows.clh"

/* The average, from the window's sum inside the input. */
static T average(const kn_pool_geometry *p, int row, int column, T sum)
{
    box b;
    const T divisor = window(p, 0, row, column, &b);
    return is_empty(&b) ? (T)0 : sum / divisor;
}

kernel void avg_pool_forward(KN_IN(x), KN_OUT(y), const kn_pool_geometry p, const kn_pool_blocking cut)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    FIND_PLACE(place);
#if KERNEL > 0
    const int first = place.block * ROWS, upper = first * STRIDE - LEFT, outer = place.column * STRIDE - LEFT;
    const global T *from = x + place.plane * (p.size[1] * p.size[2]) + (upper * p.size[2] + outer);
    T sum[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        sum[r] = 0;
#pragma unroll
    for (int i = 0; i < LINES; i++, from += p.size[2]) {
        T line[KERNEL];
        LOAD_LINE(line, from, upper + i, outer, (T)0);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (i >= r * STRIDE && i < r * STRIDE + KERNEL)
#pragma unroll
                for (int v = 0; v < KERNEL; v++)
                    sum[r] += line[v];
    }
    y += place.plane * (p.out_size[1] * p.out_size[2]) + (first * p.out_size[2] + place.column);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (first + r < p.out_size[1])
            y[r * p.out_size[2]] = average(&p, first + r, place.column, sum[r]);
#else
    const global T *volume = x + place.plane * volume_of(&p);
    box b;
    const T divisor = window(&p, place.slice, place.block, place.column, &b);
    T sum = 0;
    FOR_BOX(b, d, h, w) sum += volume[(SLICE(d) * p.size[1] + h) * p.size[2] + w];
    y[place.plane * out_volume_of(&p) + find_output(&p, place)] = is_empty(&b) ? (T)0 : sum / divisor;
#endif
}

kernel void avg_pool_backward(KN_IN(gradient), KN_OUT(out), const kn_pool_geometry p,
                              const kn_pool_blocking cut)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_OUT(T, out);
    FIND_PLACE(place);
    gradient += place.plane * out_volume_of(&p);
#if KERNEL > 0
    T sums[ROWS * STRIDE][STRIDE];
    LOAD_WINDOWS(T, g, gradient, 0)
    CLEAR_BLOCK(sums)
    FOR_WINDOWS(const T share = average(&p, row, column, g[i][j]); FOR_PLACES(sums[at][c] += share))
    store_block(sums, out + place.plane * (p.size[1] * p.size[2]), place, p.size[1], p.size[2]);
#else
    const box windows = covering_windows(&p, place);
    T sum = 0;
    FOR_BOX(windows, slice, row, column)
    {
        box b;
        const T divisor = window(&p, slice, row, column, &b);
        sum += gradient[(slice * p.out_size[1] + row) * p.out_size[2] + column] / divisor;
    }
    out[place.plane * volume_of(&p) + find_input(&p, place)] = sum;
#endif
}

#endif
