/* vision/fold.cl - patches as columns (im2col), and the sum of all patches at an element (col2im), in a fixed order.
 * Columns are [plane, kernel place, window].
 *
 * Compiled in: T, VOLUME. One line at a time on CPU devices, elsewhere one element. */
#include "common/koine.clh"
#include "common/volume.clh"
#include "vision/fold.h"

static int area_of(const kn_fold_geometry *p)
{
    return DEPTH(p->kernel_size[0]) * p->kernel_size[1] * p->kernel_size[2];
}

/* Lines of windows, and of a plane. */
static long lines_of(const int *sizes) { return (long)DEPTH(sizes[0]) * sizes[1]; }

/* Along dimension d: the element of the plane that is the window's element `place`. */
static int element_at(const kn_fold_geometry *p, int d, int window, int place)
{
    return window * p->stride[d] - p->padding[d] + place * p->dilation[d];
}

static bool is_inside(const kn_fold_geometry *p, int d, int at) { return at >= 0 && at < p->size[d]; }

/* Which window has, as its element `place` of this dimension, the element `at`? -1: none. */
static int window_with(const kn_fold_geometry *p, int d, int at, int place)
{
    const int from = at + p->padding[d] - place * p->dilation[d], window = from / p->stride[d];
    return from >= 0 && window * p->stride[d] == from && window < p->windows[d] ? window : -1;
}

/* The windows first .. end - 1 of a row that have their element `place` inside. */
static void windows_inside(const kn_fold_geometry *p, int place, int *first, int *end)
{
    const int start = element_at(p, 2, 0, place), stride = p->stride[2], last = p->size[2] - 1 - start;
    *first = min(start < 0 ? (-start + stride - 1) / stride : 0, p->windows[2]);
    *end = last < 0 ? *first : clamp(last / stride + 1, *first, p->windows[2]);
}

/* --- unfold ------------------------------------------------------------------------------------------------------- */

/* Where a line of columns comes from: the element of x that its row starts at (-1: it is outside), and the column's
 * place in the kernel. */
static long find_row(const kn_fold_geometry *p, long line, int *place)
{
    const long at = line / lines_of(p->windows), plane = at / area_of(p);
    const int window = (int)(line - at * lines_of(p->windows)), area = (int)(at - plane * area_of(p));
    const int o = SLICE(window / p->windows[1]), i = area / p->kernel_size[2], u = SLICE(i / p->kernel_size[1]);
    const int slice = SLICE(element_at(p, 0, o, u));
    const int row = element_at(p, 1, window - o * p->windows[1], i - u * p->kernel_size[1]);
    *place = area - i * p->kernel_size[2];
    if ((VOLUME && !is_inside(p, 0, slice)) || !is_inside(p, 1, row))
        return -1;
    return ((plane * DEPTH(p->size[0]) + slice) * p->size[1] + row) * p->size[2];
}

KN_KERNEL_ONCE(unfold, (KN_ARG(x), KN_ARG(y), p), KN_IN(x), KN_OUT(y), const kn_fold_geometry p)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long lines = p.planes * area_of(&p) * lines_of(p.windows);
    int place;
#ifdef KN_CPU
    KN_FOR_ONCE (line, lines) {
        const long start = find_row(&p, line, &place);
        const global T *from = x + start + element_at(&p, 2, 0, place);
        global T *to = y + line * p.windows[2];
        int first = 0, end = 0;
        if (start >= 0)
            windows_inside(&p, place, &first, &end);
        for (int w = 0; w < first; w++)
            to[w] = 0;
        if (p.stride[2] == 1)
            for (int w = first; w < end; w++)
                to[w] = from[w];
        else if (p.stride[2] == 2)
            for (int w = first; w < end; w++)
                to[w] = from[2 * w];
        else
            for (int w = first; w < end; w++)
                to[w] = from[w * p.stride[2]];
        for (int w = end; w < p.windows[2]; w++)
            to[w] = 0;
    }
#else
    KN_FOR_ONCE (e, lines * p.windows[2]) {
        const long line = e / p.windows[2], start = find_row(&p, line, &place);
        const int column = element_at(&p, 2, (int)(e - line * p.windows[2]), place);
        y[e] = start >= 0 && is_inside(&p, 2, column) ? x[start + column] : (T)0;
    }
#endif
}

/* --- fold --------------------------------------------------------------------------------------------------------- */

/* The places of a window's dimension that may be the element `at`, in order: from the first on, so far apart. */
static int first_place(const kn_fold_geometry *p, int d, int at)
{
    return p->dilation[d] == 1 ? (at + p->padding[d]) % p->stride[d] : 0;
}
static int place_step(const kn_fold_geometry *p, int d) { return p->dilation[d] == 1 ? p->stride[d] : 1; }

#define FOR_PLACES(place, d, at)                                                                                       \
    for (int place = first_place(p, d, at); place < p->kernel_size[d]; place += place_step(p, d))

#define FOR_SLICES(place, at)                                                              \
    for (int place = SLICE(first_place(p, 0, at)); place < DEPTH(p->kernel_size[0]); \
         place += DEPTH(place_step(p, 0)))

/* A row of a plane. */
typedef struct plane_row {
    long plane;
    int slice, row;
} plane_row;

static plane_row row_number(const kn_fold_geometry *p, long number)
{
    const long plane = number / lines_of(p->size);
    const int line = (int)(number - plane * lines_of(p->size)), slice = SLICE(line / p->size[1]);
    return (plane_row){plane, slice, line - slice * p->size[1]};
}

/* The columns of the windows that have the row as their row i of slice u, at its first place; NULL: none has. */
static const global T *find_columns(const global T *x, const kn_fold_geometry *p, plane_row r, int u, int i)
{
    const int o = SLICE(window_with(p, 0, r.slice, u)), top = window_with(p, 1, r.row, i);
    if (o < 0 || top < 0)
        return 0;
    const long place = r.plane * area_of(p) + (u * p->kernel_size[1] + i) * p->kernel_size[2];
    return x + ((place * DEPTH(p->windows[0]) + o) * p->windows[1] + top) * p->windows[2];
}

#ifdef KN_CPU
static void fold_row(global T *restrict to, const global T *restrict x, const kn_fold_geometry *p, plane_row r,
                     long distance)
{
    for (int k = 0; k < p->size[2]; k++)
        to[k] = 0;
    FOR_SLICES(u, r.slice)
        FOR_PLACES(i, 1, r.row)
        {
            const global T *from = find_columns(x, p, r, u, i);
            if (!from)
                continue;
            for (int j = 0; j < p->kernel_size[2]; j++, from += distance) {
                global T *at = to + element_at(p, 2, 0, j);
                int first, end;
                windows_inside(p, j, &first, &end);
                if (p->stride[2] == 1)
                    for (int w = first; w < end; w++)
                        at[w] += from[w];
                else
                    for (int w = first; w < end; w++)
                        at[w * p->stride[2]] += from[w];
            }
        }
}
#else
static T fold_element(const global T *x, const kn_fold_geometry *p, plane_row r, int column, long distance)
{
    T sum = 0;
    FOR_SLICES(u, r.slice)
        FOR_PLACES(i, 1, r.row)
        {
            const global T *from = find_columns(x, p, r, u, i);
            if (!from)
                continue;
            FOR_PLACES(j, 2, column)
            {
                const int left = window_with(p, 2, column, j);
                if (left >= 0)
                    sum += from[j * distance + left];
            }
        }
    return sum;
}
#endif

KN_KERNEL_ONCE(fold, (KN_ARG(x), KN_ARG(y), p), KN_IN(x), KN_OUT(y), const kn_fold_geometry p)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long rows = p.planes * lines_of(p.size), distance = lines_of(p.windows) * p.windows[2];
#ifdef KN_CPU
    KN_FOR_ONCE (row, rows) {
        fold_row(y + row * p.size[2], x, &p, row_number(&p, row), distance);
    }
#else
    KN_FOR_ONCE (e, rows * p.size[2]) {
        const long row = e / p.size[2];
        y[e] = fold_element(x, &p, row_number(&p, row), (int)(e - row * p.size[2]), distance);
    }
#endif
}
