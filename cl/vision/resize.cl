/* vision/resize.cl - resizing along one dimension as a product with a banded matrix, and with its transpose for
 * gradients: a kernel that makes the table of the matrix, and one that applies it. */
#include "common/koine.clh"
#include "vision/resize.h"

#ifdef RESIZE_TABLE

/* `scale`: the step in the input per element of the result. */

/* The place in the input of the centre of element i of the result. */
static T centre(const kn_resize_axis *a, T scale, int i)
{
    return a->align_corners ? scale * i : scale * (i + (T)0.5f) - (T)0.5f;
}

/* As PyTorch does it, in float32 for every dtype: another rounding would take another element. */
static int nearest(const kn_resize_axis *a, T scale, int i)
{
    const float step = (float)scale, at = a->kind == KN_RESIZE_NEAREST ? i * step : (i + 0.5f) * step;
    return min((int)floor(at), a->size - 1);
}

/* The filters' width in the input, on either side of the centre. */
static T support(const kn_resize_axis *a, T scale)
{
    const T half_width = a->kind == KN_RESIZE_CUBIC_SMOOTH ? 2 : 1;
    return scale >= 1 ? half_width * scale : half_width;
}

/* Elements first .. last of the input make element i of the result. */
static void window(const kn_resize_axis *a, T scale, int i, int *first, int *last)
{
    if (a->kind <= KN_RESIZE_NEAREST_EXACT) {
        *first = *last = nearest(a, scale, i);
    } else if (a->size == a->out_size && a->kind == KN_RESIZE_LINEAR) {
        *first = *last = i;
    } else if (a->kind >= KN_RESIZE_LINEAR_SMOOTH) {
        const T middle = scale * (i + (T)0.5f);
        *first = max((int)(middle - support(a, scale) + (T)0.5f), 0);
        *last = max(min((int)(middle + support(a, scale) + (T)0.5f), a->size) - 1, *first);
    } else {
        const int left = (int)floor(a->kind == KN_RESIZE_CUBIC ? centre(a, scale, i) : max(centre(a, scale, i), (T)0));
        const int around = a->kind == KN_RESIZE_CUBIC ? 1 : 0;
        *first = clamp(left - around, 0, a->size - 1);
        *last = clamp(left + 1 + around, 0, a->size - 1);
    }
}

static T triangle(T x) { return max(1 - fabs(x), (T)0); }

/* Keys' cubic with parameter c. */
static T cubic(T x, T c)
{
    x = fabs(x);
    return x <= 1 ? ((c + 2) * x - (c + 3)) * x * x + 1 : x < 2 ? ((c * x - 5 * c) * x + 8 * c) * x - 4 * c : 0;
}

static T smooth_weight(const kn_resize_axis *a, T scale, int i, int j)
{
    const T step = scale >= 1 ? 1 / scale : 1;
    const T at = (j - scale * (i + (T)0.5f) + (T)0.5f) * step;
    return a->kind == KN_RESIZE_CUBIC_SMOOTH ? cubic(at, (T)-0.5f) : triangle(at);
}

/* The weight of element j, one of the window, in element i of the result. */
static T weight(const kn_resize_axis *a, T scale, int i, int j, int first, int last)
{
    if (first == last)
        return 1;
    if (a->kind == KN_RESIZE_LINEAR) {
        const T at = max(centre(a, scale, i), (T)0), right = clamp(at - first, (T)0, (T)1);
        return j == first ? 1 - right : right;
    }
    T sum = 0;
    if (a->kind == KN_RESIZE_CUBIC) { /* elements outside are those at the edge */
        const int left = (int)floor(centre(a, scale, i));
        const T t = clamp(centre(a, scale, i) - left, (T)0, (T)1);
        for (int k = -1; k <= 2; k++)
            sum += clamp(left + k, 0, a->size - 1) == j ? cubic(t - k, (T)-0.75f) : 0;
        return sum;
    }
    for (int k = first; k <= last; k++)
        sum += smooth_weight(a, scale, i, k);
    return smooth_weight(a, scale, i, j) / sum;
}

/* The first element of the result whose window ends at or behind element j of the input (begins behind it, if
 * `begins`): windows move to the right. */
static int search(const kn_resize_axis *a, T scale, int j, bool begins)
{
    int low = 0, high = a->out_size;
    while (low < high) {
        const int middle = (low + high) / 2;
        int first, last;
        window(a, scale, middle, &first, &last);
        if (begins ? first > j : last >= j)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

KN_KERNEL_ONCE(resize_table, (KN_ARG(places), KN_ARG(weights), a, scale),
               KN_OUT(places), KN_OUT(weights), const kn_resize_axis a, const T scale)
{
    KN_BIND_OUT(int, places);
    KN_BIND_OUT(T, weights);
    KN_FOR_ONCE(at, a.transposed ? a.size : a.out_size)
    {
        const int i = (int)at;
        int begin, end;
        if (a.transposed) {
            begin = search(&a, scale, i, false);
            end = search(&a, scale, i, true);
        } else {
            window(&a, scale, i, &begin, &end);
            end++;
        }
        const int count = clamp(end - begin, 0, a.most);
        places[2 * i] = count > 0 ? begin : 0;
        places[2 * i + 1] = count;
        for (int k = 0; k < count; k++) {
            const int made = a.transposed ? begin + k : i, from = a.transposed ? i : begin + k;
            int first, last;
            window(&a, scale, made, &first, &last);
            const bool takes = from >= first && from <= last;
            weights[(long)i * a.most + k] = takes ? weight(&a, scale, made, from, first, last) : 0;
        }
    }
}

#else

#ifdef KN_CPU

/* One element per row of the table from a row, whose elements are adjacent. */
static void make_row(const global int *places, const global T *weights, int most, const global T *from, global T *to,
                     int n)
{
    for (int i = 0; i < n; i++) {
        const global T *w = weights + (long)i * most, *at = from + places[2 * i];
        T sum = 0;
        for (int k = 0; k < places[2 * i + 1]; k++)
            sum += w[k] * at[k];
        to[i] = sum;
    }
}

/* The same, of at most two elements each. */
static void make_row_of_pairs(const global int *places, const global T *weights, const global T *from, global T *to,
                              int n)
{
    for (int i = 0; i < n; i++) {
        const int at = places[2 * i], next = at + (places[2 * i + 1] > 1);
        const T w = weights[2 * i], other = weights[2 * i + 1];
        const T sum = w * from[at], more = other * from[next];
        to[i] = places[2 * i + 1] > 1 ? sum + more : places[2 * i + 1] > 0 ? sum : (T)0;
    }
}

/* A line of `inner` elements, the weighted sum of `count` lines. */
static void make_line(const global T *weights, int count, const global T *from, global T *to, long inner)
{
    if (count == 1 || count == 0) {
        for (long c = 0; c < inner; c++)
            to[c] = count ? weights[0] * from[c] : (T)0;
        return;
    }
    const T a = weights[0], b = weights[1];
    for (long c = 0; c < inner; c++)
        to[c] = a * from[c] + b * from[c + inner];
    int k = 2;
    for (; k + 1 < count; k += 2) {
        const T u = weights[k], v = weights[k + 1];
        const global T *next = from + k * inner;
        for (long c = 0; c < inner; c++)
            to[c] += u * next[c] + v * next[c + inner];
    }
    for (long c = 0; k < count && c < inner; c++)
        to[c] += weights[k] * from[k * inner + c];
}

#endif

KN_KERNEL_ONCE(resize, (KN_ARG(x), KN_ARG(places), KN_ARG(weights), KN_ARG(y), a),
               KN_IN(x), KN_IN(places), KN_IN(weights), KN_OUT(y), const kn_resize_axis a)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(int, places);
    KN_BIND_IN(T, weights);
    KN_BIND_OUT(T, y);
    const long n = a.transposed ? a.size : a.out_size, from = a.transposed ? a.out_size : a.size;
#ifdef KN_CPU
    if (a.inner == 1) {
        KN_FOR_ONCE(row, a.outer)
        {
            if (a.most == 2)
                make_row_of_pairs(places, weights, x + row * from, y + row * n, (int)n);
            else
                make_row(places, weights, a.most, x + row * from, y + row * n, (int)n);
        }
        return;
    }
    KN_FOR_ONCE(line, a.outer * n)
    {
        const long outer = line / n, i = line - outer * n;
        make_line(weights + i * a.most, places[2 * i + 1], x + (outer * from + places[2 * i]) * a.inner,
                  y + line * a.inner, a.inner);
    }
#else
    KN_FOR_ONCE(e, a.outer * n * a.inner)
    {
        const long line = e / a.inner, outer = line / n, i = line - outer * n;
        const global T *at = x + (outer * from + places[2 * i]) * a.inner + (e - line * a.inner);
        const global T *w = weights + i * a.most;
        T sum = 0;
        for (int k = 0; k < places[2 * i + 1]; k++)
            sum += w[k] * at[k * a.inner];
        y[e] = sum;
    }
#endif
}

#endif
