/* vision/fold.cl - patches as columns, and the sum of all patches at an element. Columns are [plane, kernel place,
 * window]. */
#include "common/koine.clh"
#include "vision/fold.h"

static long image_of(const kn_fold_geometry *p) { return (long)p->size[0] * p->size[1]; }
static long windows_of(const kn_fold_geometry *p) { return (long)p->windows[0] * p->windows[1]; }

/* The windows first .. end - 1 of a row that have their element `place` inside. */
static void windows_inside(const kn_fold_geometry *p, int place, int *first, int *end)
{
    const int start = place * p->dilation[1] - p->padding[1], stride = p->stride[1], last = p->size[1] - 1 - start;
    *first = min(start < 0 ? (-start + stride - 1) / stride : 0, p->windows[1]);
    *end = last < 0 ? *first : clamp(last / stride + 1, *first, p->windows[1]);
}

kernel void unfold(KN_IN(x), KN_OUT(y), const kn_fold_geometry p KN_NUMBERED)
{
    KN_NOTE_START;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const int area = p.kernel_size[0] * p.kernel_size[1];
#ifdef KN_CPU
    KN_FOR(line, p.planes * area * p.windows[0])
    {
        const long place = line / p.windows[0], plane = place / area;
        const int at = (int)(place - plane * area), i = at / p.kernel_size[1], j = at - i * p.kernel_size[1];
        const int row = (int)(line - place * p.windows[0]) * p.stride[0] - p.padding[0] + i * p.dilation[0];
        const global T *from = x + plane * image_of(&p) + (long)row * p.size[1] + j * p.dilation[1] - p.padding[1];
        global T *to = y + line * p.windows[1];
        int first = 0, end = 0;
        if (row >= 0 && row < p.size[0])
            windows_inside(&p, j, &first, &end);
        for (int w = 0; w < first; w++)
            to[w] = 0;
        if (p.stride[1] == 1)
            for (int w = first; w < end; w++)
                to[w] = from[w];
        else if (p.stride[1] == 2)
            for (int w = first; w < end; w++)
                to[w] = from[2 * w];
        else
            for (int w = first; w < end; w++)
                to[w] = from[w * p.stride[1]];
        for (int w = end; w < p.windows[1]; w++)
            to[w] = 0;
    }
#else
    const long windows = windows_of(&p);
    KN_FOR(e, p.planes * area * windows)
    {
        const long place = e / windows, plane = place / area;
        const int window = (int)(e - place * windows), at = (int)(place - plane * area);
        const int i = at / p.kernel_size[1], j = at - i * p.kernel_size[1];
        const int top = window / p.windows[1], left = window - top * p.windows[1];
        const int row = top * p.stride[0] - p.padding[0] + i * p.dilation[0];
        const int column = left * p.stride[1] - p.padding[1] + j * p.dilation[1];
        const bool inside = row >= 0 && row < p.size[0] && column >= 0 && column < p.size[1];
        y[e] = inside ? x[plane * image_of(&p) + (long)row * p.size[1] + column] : (T)0;
    }
#endif
}

/* Which window has, as its element `place` of this dimension, the element `at`? -1: none. */
static int window_with(const kn_fold_geometry *p, int d, int at, int place)
{
    const int from = at + p->padding[d] - place * p->dilation[d], window = from / p->stride[d];
    return from >= 0 && window * p->stride[d] == from && window < p->windows[d] ? window : -1;
}

kernel void fold(KN_IN(x), KN_OUT(y), const kn_fold_geometry p KN_NUMBERED)
{
    KN_NOTE_START;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const int area = p.kernel_size[0] * p.kernel_size[1];
    const long windows = windows_of(&p);
#ifdef KN_CPU
    KN_FOR(line, p.planes * p.size[0])
    {
        const long plane = line / p.size[0];
        global T *to = y + line * p.size[1];
        for (int k = 0; k < p.size[1]; k++)
            to[k] = 0;
        for (int i = 0; i < p.kernel_size[0]; i++) {
            const int row = window_with(&p, 0, (int)(line - plane * p.size[0]), i);
            if (row < 0)
                continue;
            for (int j = 0; j < p.kernel_size[1]; j++) {
                const global T *from = x + (plane * area + i * p.kernel_size[1] + j) * windows + row * p.windows[1];
                global T *at = to + j * p.dilation[1] - p.padding[1];
                int first, end;
                windows_inside(&p, j, &first, &end);
                if (p.stride[1] == 1)
                    for (int w = first; w < end; w++)
                        at[w] += from[w];
                else
                    for (int w = first; w < end; w++)
                        at[w * p.stride[1]] += from[w];
            }
        }
    }
#else
    KN_FOR(e, p.planes * image_of(&p))
    {
        const long plane = e / image_of(&p);
        const int at = (int)(e - plane * image_of(&p)), row = at / p.size[1], column = at - row * p.size[1];
        T sum = 0;
        for (int i = 0; i < p.kernel_size[0]; i++)
            for (int j = 0; j < p.kernel_size[1]; j++) {
                const int top = window_with(&p, 0, row, i), left = window_with(&p, 1, column, j);
                if (top >= 0 && left >= 0)
                    sum += x[(plane * area + i * p.kernel_size[1] + j) * windows + top * p.windows[1] + left];
            }
        y[e] = sum;
    }
#endif
}
