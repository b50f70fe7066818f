/* softmax/softmax.cl - softmax and log-softmax along the middle of [outer, n, inner], and their gradients.
 *
 *     softmax:     y = exp(x - max) / sum exp(x - max)        dL/dx = y (g - sum g y)
 *     log-softmax: y = x - max - log sum exp(x - max)         dL/dx = g - exp(y) sum g
 *
 * `logarithm` tells which. CPU devices: with inner = 1 the vector lanes run along the row, else over 16 neighbouring
 * columns. Other devices: a work-group per row with inner = 1 and long rows, else a work-item per row or column. */
#include "common/koine.clh"
#include "reduce/sum_run.clh"

#ifdef KN_CPU

/* `room` elements may be read from x on. Of y only the work-item's own: what follows is being written by another. */
static void forward_row(const global T *x, global T *y, long n, long room, int logarithm)
{
    TV most = -INFINITY, sum = 0;

    for (long k = 0; k < n; k += 16)
        most = fmax(most, load_part(x + k, n - k, room - k, -INFINITY));
    const T largest = max_lanes(most);
    for (long k = 0; k < n; k += 16) {
        const TV e = exp(load_part(x + k, n - k, room - k, -INFINITY) - largest);
        sum += e;
        if (!logarithm)
            store_part(e, y + k, n - k);
    }
    const T total = sum_lanes(sum);
    const T shift = logarithm ? log((TV)total).s0 : (T)0, scale = 1 / total; /* a vector's log is the faster one */
    for (long k = 0; k < n; k += 16)
        if (logarithm) /* the maximum first: a sum of it and the logarithm would be rounded to the maximum's digits */
            store_part(load_part(x + k, n - k, room - k, 0) - largest - shift, y + k, n - k);
        else
            store_part(load_part(y + k, n - k, n - k, 0) * scale, y + k, n - k);
}

/* `count` columns, 16 at most, `stride` elements from one row to the next. */
static void forward_columns(const global T *x, global T *y, long n, long stride, long count, long room, int logarithm)
{
    TV most = -INFINITY, sum = 0;

    for (long k = 0; k < n; k++)
        most = fmax(most, load_part(x + k * stride, count, room - k * stride, 0));
    for (long k = 0; k < n; k++) {
        const TV e = exp(load_part(x + k * stride, count, room - k * stride, 0) - most);
        sum += e;
        if (!logarithm)
            store_part(e, y + k * stride, count);
    }
    const TV scale = (T)1 / sum;
    const TV shift = logarithm ? log(sum) : (TV)0;
    for (long k = 0; k < n; k++)
        if (logarithm)
            store_part(load_part(x + k * stride, count, room - k * stride, 0) - most - shift, y + k * stride, count);
        else
            store_part(load_part(y + k * stride, count, count, 0) * scale, y + k * stride, count);
}

static void backward_row(const global T *g, const global T *y, global T *out, long n, long room, int logarithm)
{
    TV sum = 0;

    for (long k = 0; k < n; k += 16) {
        const TV a = load_part(g + k, n - k, room - k, 0);
        sum += logarithm ? a : a * load_part(y + k, n - k, room - k, 0);
    }
    const T total = sum_lanes(sum);
    for (long k = 0; k < n; k += 16) {
        const TV a = load_part(g + k, n - k, room - k, 0), b = load_part(y + k, n - k, room - k, 0);
        store_part(logarithm ? a - exp(b) * total : b * (a - total), out + k, n - k);
    }
}

static void backward_columns(const global T *g, const global T *y, global T *out, long n, long stride, long count,
                             long room, int logarithm)
{
    TV total = 0;

    for (long k = 0; k < n; k++) {
        const TV a = load_part(g + k * stride, count, room - k * stride, 0);
        total += logarithm ? a : a * load_part(y + k * stride, count, room - k * stride, 0);
    }
    for (long k = 0; k < n; k++) {
        const TV a = load_part(g + k * stride, count, room - k * stride, 0), b = load_part(y + k * stride, count,
                                                                                           room - k * stride, 0);
        store_part(logarithm ? a - exp(b) * total : b * (a - total), out + k * stride, count);
    }
}

kernel void softmax_forward(KN_IN(x), KN_OUT(y), const long outer, const long n, const long inner, const int logarithm)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long tiles = (inner + 15) / 16;
    KN_FOR(task, outer * tiles)
    {
        /* 64-bit division costs as much as a short row. */
        const long column = tiles == 1 ? 0 : task % tiles * 16;
        const long at = (tiles == 1 ? task : task / tiles) * n * inner + column, room = outer * n * inner - at;
        if (inner == 1)
            forward_row(x + at, y + at, n, room, logarithm);
        else
            forward_columns(x + at, y + at, n, inner, min(16L, inner - column), room, logarithm);
    }
}

kernel void softmax_backward(KN_IN(gradient), KN_IN(y), KN_OUT(out), const long outer, const long n, const long inner,
                             const int logarithm)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(T, y);
    KN_BIND_OUT(T, out);
    const long tiles = (inner + 15) / 16;
    KN_FOR(task, outer * tiles)
    {
        /* 64-bit division costs as much as a short row. */
        const long column = tiles == 1 ? 0 : task % tiles * 16;
        const long at = (tiles == 1 ? task : task / tiles) * n * inner + column, room = outer * n * inner - at;
        if (inner == 1)
            backward_row(gradient + at, y + at, out + at, n, room, logarithm);
        else
            backward_columns(gradient + at, y + at, out + at, n, inner, min(16L, inner - column), room, logarithm);
    }
}

#else

kernel void softmax_forward(KN_IN(x), KN_OUT(y), const long outer, const long n, const long inner, const int logarithm)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_FOR(task, outer * inner)
    {
        const long at = task / inner * n * inner + task % inner;
        T largest = -INFINITY, sum = 0;
        for (long k = 0; k < n; k++)
            largest = fmax(largest, x[at + k * inner]);
        for (long k = 0; k < n; k++)
            sum += exp(x[at + k * inner] - largest);
        const T shift = log(sum);
        for (long k = 0; k < n; k++) {
            const T v = x[at + k * inner];
            y[at + k * inner] = logarithm ? v - largest - shift : exp(v - largest) / sum;
        }
    }
}

kernel void softmax_backward(KN_IN(gradient), KN_IN(y), KN_OUT(out), const long outer, const long n, const long inner,
                             const int logarithm)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(T, y);
    KN_BIND_OUT(T, out);
    KN_FOR(task, outer * inner)
    {
        const long at = task / inner * n * inner + task % inner;
        T sum = 0;
        for (long k = 0; k < n; k++)
            sum += logarithm ? gradient[at + k * inner] : gradient[at + k * inner] * y[at + k * inner];
        for (long k = 0; k < n; k++) {
            const T a = gradient[at + k * inner], b = y[at + k * inner];
            out[at + k * inner] = logarithm ? a - exp(b) * sum : b * (a - sum);
        }
    }
}

kernel void softmax_forward_rows(KN_IN(x), KN_OUT(y), const long outer, const long n, const int logarithm)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    local T part[KN_SUM_GROUP];
    const long step = get_local_size(0);
    for (long row = get_group_id(0); row < outer; row += get_num_groups(0)) {
        const global T *from = x + row * n;
        T largest = -INFINITY, sum = 0;
        for (long k = get_local_id(0); k < n; k += step)
            largest = fmax(largest, from[k]);
        largest = max_group(part, largest);
        for (long k = get_local_id(0); k < n; k += step)
            sum += exp(from[k] - largest);
        sum = sum_group(part, sum);
        const T shift = log(sum);
        for (long k = get_local_id(0); k < n; k += step)
            y[row * n + k] = logarithm ? from[k] - largest - shift : exp(from[k] - largest) / sum;
    }
}

kernel void softmax_backward_rows(KN_IN(gradient), KN_IN(y), KN_OUT(out), const long outer, const long n,
                                  const int logarithm)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(T, y);
    KN_BIND_OUT(T, out);
    local T part[KN_SUM_GROUP];
    const long step = get_local_size(0);
    for (long row = get_group_id(0); row < outer; row += get_num_groups(0)) {
        T sum = 0;
        for (long k = get_local_id(0); k < n; k += step)
            sum += logarithm ? gradient[row * n + k] : gradient[row * n + k] * y[row * n + k];
        sum = sum_group(part, sum);
        for (long k = get_local_id(0); k < n; k += step) {
            const T a = gradient[row * n + k], b = y[row * n + k];
            out[row * n + k] = logarithm ? a - exp(b) * sum : b * (a - sum);
        }
    }
}

#endif
