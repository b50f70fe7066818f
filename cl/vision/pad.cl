/* vision/pad.cl - padding with a value or a tensor's own elements: forward moves words of the element's size; backward,
 * of the latter, sums, one dimension at a time, the gradients of all copies of an element in a fixed order. */
#include "common/koine.clh"
#include "vision/pad.h"

/* What repeats in circular padding: the elements that are not cropped. */
static long period_of(long size, long out_size, long before)
{
    return size - max(-before, 0L) - max(size + before - out_size, 0L);
}

/* The element that place `at` is a copy of, negative if of none; places 0 .. size - 1 are the elements themselves. */
static long original(long at, long size, long period, int mode)
{
    if (at >= 0 && at < size)
        return at;
    if (mode == KN_PADS_BY_VALUE)
        return -1;
    if (mode == KN_PADS_BY_MIRROR)
        return at < 0 ? -at : 2 * (size - 1) - at;
    if (mode == KN_PADS_BY_EDGE)
        return at < 0 ? 0 : size - 1;
    return at < 0 ? at + period : at - period;
}

#ifndef PAD_BACKWARD

/* Where the input's elements for place `place` of dimensions 0 .. d of the result begin; negative if there are none. */
static long start_of(const kn_pad_geometry *p, long place, int d)
{
    long start = 0, step = 1;
    for (int i = d + 1; i < p->ndim; i++)
        step *= p->size[i];
    for (; d >= 0; d--) {
        const long next = place / p->out_size[d], period = period_of(p->size[d], p->out_size[d], p->before[d]);
        const long at = original(place - next * p->out_size[d] - p->before[d], p->size[d], period, p->mode);
        if (at < 0)
            return -1;
        start += step * at;
        step *= p->size[d];
        place = next;
    }
    return start;
}

#ifdef KN_CPU

static void fill(global T *to, long n, T value)
{
    for (long i = 0; i < n; i++)
        to[i] = value;
}

/* Places first .. end - 1 of a row, outside the input's. */
static void pad_places(global T *to, const global T *from, long first, long end, long size, long before, long period,
                       int mode, T value)
{
    if (mode == KN_PADS_BY_VALUE) {
        fill(to + first, end - first, value);
        return;
    }
    for (long i = first; i < end; i++)
        to[i] = from[original(i - before, size, period, mode)];
}

#endif

KN_KERNEL_ONCE(pad, (KN_ARG(x), KN_ARG(y), p, value), KN_IN(x), KN_OUT(y), const kn_pad_geometry p, const T value)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long width = p.out_size[p.ndim - 1], size = p.size[p.ndim - 1], before = p.before[p.ndim - 1];
    const long period = period_of(size, width, before);
#ifdef KN_CPU
    const long first = clamp(before, 0L, width), end = clamp(before + size, first, width);
    const int d = p.ndim - 2; /* rows are counted along it; only where it begins again, the others are divided */
    const long height = d >= 0 ? p.out_size[d] : 1, rows = d >= 0 ? p.size[d] : 1, above = d >= 0 ? p.before[d] : 0;
    const long rows_period = period_of(rows, height, above);
    long along = height, plane = 0;
    KN_FOR_ONCE(row, p.rows)
    {
        if (along == height) {
            along = row % height;
            plane = d > 0 ? start_of(&p, row / height, d - 1) : 0;
        }
        const long source = original(along++ - above, rows, rows_period, p.mode);
        global T *to = y + row * width;
        if (plane < 0 || source < 0) {
            fill(to, width, value);
            continue;
        }
        const global T *from = x + plane + source * size;
        pad_places(to, from, 0, first, size, before, period, p.mode, value);
        for (long i = first; i < end; i++)
            to[i] = from[i - before];
        pad_places(to, from, end, width, size, before, period, p.mode, value);
    }
#else
    KN_FOR_ONCE(i, p.rows * width)
    {
        const long row = i / width, start = start_of(&p, row, p.ndim - 2);
        const long at = original(i - row * width - before, size, period, p.mode);
        y[i] = start < 0 || at < 0 ? value : x[start + at];
    }
#endif
}

#else

/* Places first .. end - 1 before (or behind) the elements that are copies of element j. */
static void copies_of(const kn_pad_axis *a, long j, bool behind, long *first, long *end)
{
    const long low = behind ? max(a->before + a->size, 0L) : 0;
    const long high = behind ? a->out_size : min(a->before, a->out_size);
    *first = low, *end = high;
    if (a->mode == KN_PADS_BY_EDGE) {
        *end = j == (behind ? a->size - 1 : 0) ? high : low;
        return;
    }
    const long period = period_of(a->size, a->out_size, a->before);
    const long at = a->mode == KN_PADS_BY_MIRROR ? a->before - j + (behind ? 2 * (a->size - 1) : 0)
                                                 : a->before + j + (behind ? period : -period);
    const bool is_copy = at >= low && at < high;
    *first = at, *end = is_copy ? at + 1 : at;
}

#ifdef KN_CPU

/* Adds a line, or copies it if it is the first. */
static void add_line(global T *to, const global T *from, long n, bool is_first)
{
    if (is_first)
        for (long i = 0; i < n; i++)
            to[i] = from[i];
    else
        for (long i = 0; i < n; i++)
            to[i] += from[i];
}

/* The lines of an element; `g` is that of place 0. */
static void sum_lines(const kn_pad_axis *a, long j, const global T *g, global T *to)
{
    const long own = j + a->before;
    bool is_first = true;
    if (own >= 0 && own < a->out_size) {
        add_line(to, g + own * a->inner, a->inner, true);
        is_first = false;
    }
    for (int behind = 0; behind < 2; behind++) {
        long first, end;
        copies_of(a, j, behind, &first, &end);
        for (; first < end; first++, is_first = false)
            add_line(to, g + first * a->inner, a->inner, is_first);
    }
    for (long i = 0; is_first && i < a->inner; i++)
        to[i] = 0;
}

/* A row whose elements are adjacent. */
static void sum_row(const kn_pad_axis *a, const global T *g, global T *to)
{
    const long first = clamp(-a->before, 0L, a->size), end = clamp(a->out_size - a->before, first, a->size);
    const long period = period_of(a->size, a->out_size, a->before);
    for (long j = 0; j < first; j++)
        to[j] = 0;
    for (long j = first; j < end; j++)
        to[j] = g[j + a->before];
    for (long j = end; j < a->size; j++)
        to[j] = 0;
    for (long i = 0; i < min(a->before, a->out_size); i++)
        to[original(i - a->before, a->size, period, a->mode)] += g[i];
    for (long i = max(a->before + a->size, 0L); i < a->out_size; i++)
        to[original(i - a->before, a->size, period, a->mode)] += g[i];
}

#endif

KN_KERNEL_ONCE(pad_backward, (KN_ARG(gradient), KN_ARG(out), a), KN_IN(gradient), KN_OUT(out),
                   const kn_pad_axis a)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_OUT(T, out);
#ifdef KN_CPU
    if (a.inner == 1) {
        KN_FOR_ONCE(row, a.outer)
            sum_row(&a, gradient + row * a.out_size, out + row * a.size);
        return;
    }
    KN_FOR_ONCE(line, a.outer * a.size)
    {
        const long outer = line / a.size;
        sum_lines(&a, line - outer * a.size, gradient + outer * a.out_size * a.inner, out + line * a.inner);
    }
#else
    KN_FOR_ONCE(i, a.outer * a.size * a.inner)
    {
        const long line = i / a.inner, outer = line / a.size, j = line - outer * a.size, own = j + a.before;
        const global T *g = gradient + outer * a.out_size * a.inner + (i - line * a.inner);
        T sum = own >= 0 && own < a.out_size ? g[own * a.inner] : (T)0;
        for (int behind = 0; behind < 2; behind++) {
            long first, end;
            copies_of(&a, j, behind, &first, &end);
            for (; first < end; first++)
                sum += g[first * a.inner];
        }
        out[i] = sum;
    }
#endif
}

#endif
