/* pool/adaptive.cl - adaptive pooling: window i of n over `size` covers floor(i size / n) to ceil((i + 1) size / n).
 * Gradients are gathers. The index kept by max pooling is the maximum's place in its plane. */
#include "pool/pool2d.clh"
#include "reduce/max_run.clh"

/* i a / b, rounded down and up; GPUs divide in 32 bits where those are enough: 64 take a hundred instructions. */
#ifdef KN_CPU
#define IS_SHORT(a, b) false
#else
#define IS_SHORT(a, b) (max(a, b) < 32768)
#endif
static int scale_down(int i, int a, int b)
{
    return IS_SHORT(a, b) ? (int)((uint)(i * a) / (uint)b) : (int)((long)i * a / b);
}
static int scale_up(int i, int a, int b)
{
    return IS_SHORT(a, b) ? (int)((uint)(i * a + b - 1) / (uint)b) : (int)(((long)i * a + b - 1) / b);
}

static int window_start(int i, int n, int size) { return scale_down(i, size, n); }
static int window_end(int i, int n, int size) { return scale_up(i + 1, size, n); }

/* Windows that cover `at`: from the first whose end lies behind it to the last that starts at or before it. */
static int covering_start(int at, int n, int size) { return scale_down(at, n, size); }
static int covering_end(int at, int n, int size) { return scale_up(at + 1, n, size); }

/* One output element of a plane. Of several NaN the last one is taken, as PyTorch does. */
static T window_max(const pool2d *p, const global T *plane, int row, int column, int *index)
{
    const int top = window_start(row, p->out_height, p->height), bottom = window_end(row, p->out_height, p->height);
    const int left = window_start(column, p->out_width, p->width), right = window_end(column, p->out_width, p->width);
    int at = top * p->width + left;
    T best = plane[at];
    for (int h = top; h < bottom; h++)
        for (int w = left; w < right; w++) {
            const T v = plane[h * p->width + w];
            if (v > best || IS_NAN(v)) {
                best = v;
                at = h * p->width + w;
            }
        }
    *index = at;
    return best;
}

static T window_average(const pool2d *p, const global T *plane, int row, int column)
{
    const int top = window_start(row, p->out_height, p->height), bottom = window_end(row, p->out_height, p->height);
    const int left = window_start(column, p->out_width, p->width), right = window_end(column, p->out_width, p->width);
    T sum = 0;
    for (int h = top; h < bottom; h++)
        for (int w = left; w < right; w++)
            sum += plane[h * p->width + w];
    return sum / (T)((long)(bottom - top) * (right - left));
}

#ifdef KN_CPU

kernel void adaptive_max_pool2d_forward(KN_IN(x), KN_OUT(y), KN_OUT(index), const pool2d p, const int save)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(int, index);
    const long size = (long)p.height * p.width;
    if (p.out_height == 1 && p.out_width == 1 && size >= 16) { /* a window is a plane, and a run */
        KN_FOR(plane, p.planes)
        {
            T best;
            long at = max_long_run(x + plane * size, size, &best, 1);
            y[plane] = best;
            if (IS_NAN(best))
                for (at = size - 1; !IS_NAN(x[plane * size + at]); at--)
                    ;
            if (save)
                index[plane] = (int)at;
        }
        return;
    }
    KN_FOR(i, p.planes * p.out_height * p.out_width)
    {
        int at;
        const T best = window_max(&p, x + i / ((long)p.out_width * p.out_height) * p.height * p.width,
                                  i / p.out_width % p.out_height, i % p.out_width, &at);
        y[i] = best;
        if (save)
            index[i] = at;
    }
}

kernel void adaptive_max_pool2d_backward(KN_IN(gradient), KN_IN(index), KN_OUT(out), const pool2d p)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(int, index);
    KN_BIND_OUT(T, out);
    if (p.out_height == 1 && p.out_width == 1) { /* one window: no search */
        const int size = p.height * p.width;
        KN_FOR(plane, p.planes)
        {
            for (int i = 0; i < size; i++)
                out[plane * size + i] = 0;
            out[plane * size + index[plane]] = gradient[plane];
        }
        return;
    }
    KN_FOR(line, p.planes * p.height)
    {
        const int h = line % p.height;
        const long from = line / p.height * p.out_height * p.out_width;
        const int first_row = covering_start(h, p.out_height, p.height);
        const int end_row = covering_end(h, p.out_height, p.height);
        for (int w = 0; w < p.width; w++) {
            const int one = p.out_width == 1; /* one window across: no division per element */
            const int first = one ? 0 : covering_start(w, p.out_width, p.width);
            const int end = one ? 1 : covering_end(w, p.out_width, p.width);
            T sum = 0;
            for (int row = first_row; row < end_row; row++)
                for (int column = first; column < end; column++) {
                    const long at = from + (long)row * p.out_width + column;
                    sum += index[at] == h * p.width + w ? gradient[at] : (T)0;
                }
            out[line * p.width + w] = sum;
        }
    }
}

kernel void adaptive_avg_pool2d_forward(KN_IN(x), KN_OUT(y), const pool2d p)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_FOR(i, p.planes * p.out_height * p.out_width)
    {
        y[i] = window_average(&p, x + i / ((long)p.out_width * p.out_height) * p.height * p.width,
                              i / p.out_width % p.out_height, i % p.out_width);
    }
}

kernel void adaptive_avg_pool2d_backward(KN_IN(gradient), KN_OUT(out), const pool2d p)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_OUT(T, out);
    if (p.out_height == 1 && p.out_width == 1) {
        const int size = p.height * p.width;
        KN_FOR(plane, p.planes)
        {
            const T share = gradient[plane] / (T)size;
            for (int i = 0; i < size; i++)
                out[plane * size + i] = share;
        }
        return;
    }
    KN_FOR(line, p.planes * p.height)
    {
        const int h = line % p.height;
        const global T *plane = gradient + line / p.height * p.out_height * p.out_width;
        const int first_row = covering_start(h, p.out_height, p.height);
        const int end_row = covering_end(h, p.out_height, p.height);
        for (int w = 0; w < p.width; w++) {
            const int one = p.out_width == 1;
            const int first = one ? 0 : covering_start(w, p.out_width, p.width);
            const int end = one ? 1 : covering_end(w, p.out_width, p.width);
            T sum = 0;
            for (int row = first_row; row < end_row; row++) {
                const int high = window_end(row, p.out_height, p.height) - window_start(row, p.out_height, p.height);
                for (int column = first; column < end; column++) {
                    const int start = window_start(column, p.out_width, p.width);
                    const int wide = window_end(column, p.out_width, p.width) - start;
                    sum += plane[(long)row * p.out_width + column] / (T)((long)high * wide);
                }
            }
            out[line * p.width + w] = sum;
        }
    }
}

#else
#define KERNEL 0
#include "pool/windows.clh"

kernel void adaptive_max_pool2d_forward(KN_IN(x), KN_OUT(y), KN_OUT(index), const pool2d p, const pool_cut cut, const int save)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(int, index);
    if (get_global_id(0) >= cut.items)
        return;
    const pool_place place = find_place(&cut);
    const long to = place.plane * (p.out_height * p.out_width) + (place.block * p.out_width + place.column);
    int at;
    y[to] = window_max(&p, x + place.plane * (p.height * p.width), place.block, place.column, &at);
    if (save)
        index[to] = at;
}

kernel void adaptive_max_pool2d_backward(KN_IN(gradient), KN_IN(index), KN_OUT(out), const pool2d p, const pool_cut cut)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(int, index);
    KN_BIND_OUT(T, out);
    if (get_global_id(0) >= cut.items)
        return;
    const pool_place place = find_place(&cut);
    const int end_row = covering_end(place.block, p.out_height, p.height);
    const int first = covering_start(place.column, p.out_width, p.width), end = covering_end(place.column, p.out_width, p.width);
    const int own = place.block * p.width + place.column;
    T sum = 0;
    gradient += place.plane * (p.out_height * p.out_width);
    index += place.plane * (p.out_height * p.out_width);
    for (int row = covering_start(place.block, p.out_height, p.height); row < end_row; row++)
        for (int column = first; column < end; column++)
            sum += index[row * p.out_width + column] == own ? gradient[row * p.out_width + column] : (T)0;
    out[place.plane * (p.height * p.width) + own] = sum;
}

kernel void adaptive_avg_pool2d_forward(KN_IN(x), KN_OUT(y), const pool2d p, const pool_cut cut)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    if (get_global_id(0) >= cut.items)
        return;
    const pool_place place = find_place(&cut);
    y[place.plane * (p.out_height * p.out_width) + (place.block * p.out_width + place.column)] =
        window_average(&p, x + place.plane * (p.height * p.width), place.block, place.column);
}

kernel void adaptive_avg_pool2d_backward(KN_IN(gradient), KN_OUT(out), const pool2d p, const pool_cut cut)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_OUT(T, out);
    if (get_global_id(0) >= cut.items)
        return;
    const pool_place place = find_place(&cut);
    const long to = place.plane * (p.height * p.width) + (place.block * p.width + place.column);
    if (p.out_height == 1 && p.out_width == 1) {
        out[to] = gradient[place.plane] / (T)(p.height * p.width);
        return;
    }
    const int end_row = covering_end(place.block, p.out_height, p.height);
    const int first = covering_start(place.column, p.out_width, p.width), end = covering_end(place.column, p.out_width, p.width);
    T sum = 0;
    gradient += place.plane * (p.out_height * p.out_width);
    for (int row = covering_start(place.block, p.out_height, p.height); row < end_row; row++) {
        const int high = window_end(row, p.out_height, p.height) - window_start(row, p.out_height, p.height);
        for (int column = first; column < end; column++) {
            const int wide = window_end(column, p.out_width, p.width) - window_start(column, p.out_width, p.width);
            sum += gradient[row * p.out_width + column] / (T)((long)high * wide);
        }
    }
    out[to] = sum;
}

#endif
