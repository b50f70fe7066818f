/* pool/average.cl - average pooling and its gradient. A window counts kernel_size places, or those inside the padded
 * input, or those inside the input, or a given number, as PyTorch does. */
#include "pool/pool2d.clh"

/* The window of output (row, column): inside the input top .. bottom and left .. right, the ends excluded; returns
 * what its sum is divided by. */
static T window(const pool2d *p, int row, int column, int *top, int *bottom, int *left, int *right)
{
    const int h = row * p->stride[0] - p->padding[0], w = column * p->stride[1] - p->padding[1];
    const int h_end = min(h + p->kernel_size[0], p->height + p->padding[0]);
    const int w_end = min(w + p->kernel_size[1], p->width + p->padding[1]);

    *top = max(h, 0);
    *left = max(w, 0);
    *bottom = min(h_end, p->height);
    *right = min(w_end, p->width);
    if (p->divisor != 0)
        return (T)p->divisor;
    if (p->count_include_pad)
        return (T)((long)(h_end - h) * (w_end - w));
    return (T)((long)(*bottom - *top) * (*right - *left));
}

#ifdef KN_CPU

/* Up to 64 outputs of a row at a time, place of the window by place, so that the loop over the outputs vectorises. */
#define ROW_PASS(step)                \
    for (int k = from; k < to; k++)   \
        sum[k] += line[left + k * (step)];
static void row_forward(const pool2d *p, const global T *plane, int row, int first, int count, global T *y)
{
    T sum[64];

    for (int k = 0; k < count; k++)
        sum[k] = 0;
    for (int r = 0; r < p->kernel_size[0]; r++) {
        const int h = row * p->stride[0] - p->padding[0] + r;
        if (h < 0 || h >= p->height)
            continue;
        const global T *line = plane + (long)h * p->width;
        for (int s = 0; s < p->kernel_size[1]; s++) {
            const int stride = p->stride[1], left = first * stride - p->padding[1] + s;
            const int from = left >= 0 ? 0 : (-left + stride - 1) / stride;
            const int to = left >= p->width ? 0 : min(count, (p->width - 1 - left) / stride + 1);
            if (stride == 1)
                ROW_PASS(1)
            else if (stride == 2)
                ROW_PASS(2)
            else
                ROW_PASS(stride)
        }
    }
    /* The divisors as `window` gives them, the row's part once and without branches. */
    const int h = row * p->stride[0] - p->padding[0], h_end = min(h + p->kernel_size[0], p->height + p->padding[0]);
    const int high = min(h_end, p->height) - max(h, 0);
    const T rows = p->count_include_pad ? h_end - h : high, fixed = p->divisor;
    for (int k = 0; k < count; k++) {
        const int w = (first + k) * p->stride[1] - p->padding[1];
        const int w_end = min(w + p->kernel_size[1], p->width + p->padding[1]);
        const int wide = min(w_end, p->width) - max(w, 0);
        const T columns = p->count_include_pad ? w_end - w : wide;
        const T divisor = fixed != 0 ? fixed : rows * columns;
        y[k] = ((high > 0) & (wide > 0)) ? sum[k] / divisor : (T)0;
    }
}

kernel void avg_pool2d_forward(KN_IN(x), KN_OUT(y), const pool2d p)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_FOR(line, p.planes * p.out_height)
    {
        const global T *plane = x + line / p.out_height * p.height * p.width;
        for (int first = 0; first < p.out_width; first += 64)
            row_forward(&p, plane, line % p.out_height, first, min(64, p.out_width - first),
                        y + line * p.out_width + first);
    }
}

/* A work-item owns whole planes and adds in the order of the outputs. */
kernel void avg_pool2d_backward(KN_IN(gradient), KN_OUT(out), const pool2d p)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_OUT(T, out);
    KN_FOR(i, p.planes)
    {
        const global T *g = gradient + i * p.out_height * p.out_width;
        global T *plane = out + i * p.height * p.width;
        for (long k = 0; k < (long)p.height * p.width; k++)
            plane[k] = 0;
        for (int row = 0; row < p.out_height; row++)
            for (int column = 0; column < p.out_width; column++) {
                int top, bottom, left, right;
                const T divisor = window(&p, row, column, &top, &bottom, &left, &right);
                const T share = g[(long)row * p.out_width + column] / divisor;
                for (int h = top; h < bottom; h++)
                    for (int w = left; w < right; w++)
                        plane[(long)h * p.width + w] += share;
            }
    }
}

#else
#include "pool/windows.clh"

/* The window's sum, which the caller has of what is inside, as an average. */
static T average(const pool2d *p, int row, int column, T sum)
{
    int top, bottom, left, right;
    const T divisor = window(p, row, column, &top, &bottom, &left, &right);
    return bottom > top && right > left ? sum / divisor : (T)0;
}

#if KERNEL > 0

kernel void avg_pool2d_forward(KN_IN(x), KN_OUT(y), const pool2d p, const pool_cut cut)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    if (get_global_id(0) >= cut.items)
        return;
    const pool_place place = find_place(&cut);
    const int first = place.block * ROWS, upper = first * STRIDE - LEFT, outer = place.column * STRIDE - LEFT;
    const global T *from = x + place.plane * (p.height * p.width) + (upper * p.width + outer);
    T sum[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        sum[r] = 0;
#pragma unroll
    for (int i = 0; i < LINES; i++, from += p.width) {
        T line[KERNEL];
        LOAD_LINE(line, from, upper + i, outer, (T)0);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (i >= r * STRIDE && i < r * STRIDE + KERNEL)
#pragma unroll
                for (int v = 0; v < KERNEL; v++)
                    sum[r] += line[v];
    }
    y += place.plane * (p.out_height * p.out_width) + (first * p.out_width + place.column);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (first + r < p.out_height)
            y[r * p.out_width] = average(&p, first + r, place.column, sum[r]);
}

kernel void avg_pool2d_backward(KN_IN(gradient), KN_OUT(out), const pool2d p, const pool_cut cut)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_OUT(T, out);
    if (get_global_id(0) >= cut.items)
        return;
    const pool_place place = find_place(&cut);
    T sums[ROWS * STRIDE][STRIDE];
    gradient += place.plane * (p.out_height * p.out_width);
    LOAD_WINDOWS(T, g, gradient, 0)
#pragma unroll
    for (int at = 0; at < ROWS * STRIDE; at++)
#pragma unroll
        for (int c = 0; c < STRIDE; c++)
            sums[at][c] = 0;
    FOR_WINDOWS(const T share = average(&p, row, column, g[i][j]); FOR_PLACES(sums[at][c] += share))
    store_block(sums, out + place.plane * (p.height * p.width), place, p.height, p.width);
}

#else

kernel void avg_pool2d_forward(KN_IN(x), KN_OUT(y), const pool2d p, const pool_cut cut)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    if (get_global_id(0) >= cut.items)
        return;
    const pool_place place = find_place(&cut);
    const global T *plane = x + place.plane * (p.height * p.width);
    int top, bottom, left, right;
    const T divisor = window(&p, place.block, place.column, &top, &bottom, &left, &right);
    T sum = 0;
    for (int h = top; h < bottom; h++)
        for (int w = left; w < right; w++)
            sum += plane[h * p.width + w];
    y[place.plane * (p.out_height * p.out_width) + (place.block * p.out_width + place.column)] = bottom > top && right > left ? sum / divisor : (T)0;
}

kernel void avg_pool2d_backward(KN_IN(gradient), KN_OUT(out), const pool2d p, const pool_cut cut)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_OUT(T, out);
    if (get_global_id(0) >= cut.items)
        return;
    const pool_place place = find_place(&cut);
    const global T *plane = gradient + place.plane * (p.out_height * p.out_width);
    int first_row, last_row, first_column, last_column;
    T sum = 0;
    covering(place.block, p.padding[0], p.stride[0], p.kernel_size[0], p.out_height, &first_row, &last_row);
    covering(place.column, p.padding[1], p.stride[1], p.kernel_size[1], p.out_width, &first_column, &last_column);
    for (int row = first_row; row <= last_row; row++)
        for (int column = first_column; column <= last_column; column++) {
            int top, bottom, left, right;
            const T divisor = window(&p, row, column, &top, &bottom, &left, &right);
            sum += plane[row * p.out_width + column] / divisor;
        }
    out[place.plane * (p.height * p.width) + (place.block * p.width + place.column)] = sum;
}

#endif
#endif
