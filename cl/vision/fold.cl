/* vision/fold.cl - patches as columns (im2col), and the sum of all patches at an element (col2im), in a fixed order.
 * Columns are [plane, kernel place, window].
 *
 * Compiled in: T, VOLUME. For elements of 16 bits T is ushort: sums of windows that do not overlap are copies. One line
 * at a time on CPU devices, elsewhere one element. */
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

/* A row of columns, of which each plane has one for each place in the kernel: its slice, row and column. */
typedef struct column_row {
    long plane;
    int u, i, j;
} column_row;

static column_row column_row_at(const kn_fold_geometry *p, long number)
{
    const long plane = number / area_of(p);
    const int place = (int)(number - plane * area_of(p)), line = place / p->kernel_size[2];
    const int u = SLICE(line / p->kernel_size[1]);
    return (column_row){plane, u, line - u * p->kernel_size[1], place - line * p->kernel_size[2]};
}

/* The element of x at which the row begins that a line of windows has at this place; -1: it is outside. */
static long find_row(const kn_fold_geometry *p, column_row r, int line)
{
    const int o = SLICE(line / p->windows[1]), slice = SLICE(element_at(p, 0, o, r.u));
    const int row = element_at(p, 1, line - o * p->windows[1], r.i);
    if ((VOLUME && !is_inside(p, 0, slice)) || !is_inside(p, 1, row))
        return -1;
    return ((r.plane * DEPTH(p->size[0]) + slice) * p->size[1] + row) * p->size[2];
}

#ifdef KN_CPU
/* What is left of a line, in vectors of w elements; of every second element only if another follows the vector. */
#define COPY_NEXT(w)                                                                                                   \
    for (; i + w <= n; i += w)                                                                                         \
    vstore##w(vload##w(0, from + i), 0, to + i)
#define COPY_NEXT_OF_TWO(w, both)                                                                                      \
    for (; i + w < n; i += w)                                                                                          \
    vstore##w(vload##both(0, from + 2 * i).even, 0, to + i)

/* to[i] = from[i * step]. */
static void copy_line(global T *restrict to, const global T *restrict from, int n, long step)
{
    int i = 0;
    if (step == 1) {
        COPY_NEXT(16);
        COPY_NEXT(8);
        COPY_NEXT(4);
    } else if (step == 2) {
        COPY_NEXT_OF_TWO(8, 16);
        COPY_NEXT_OF_TWO(4, 8);
    }
    KN_NOT_UNROLLED
    for (; i < n; i++)
        to[i] = from[i * step];
}

static void clear_line(global T *restrict to, int n)
{
    KN_NOT_UNROLLED
    for (int i = 0; i < n; i++)
        to[i] = 0;
}

/* Lines of a row of columns that a work-item copies one after the other: what they share is computed once. */
enum { LINES_AT_ONCE = 16 };
static void copy_lines(global T *restrict to, const global T *restrict x, const kn_fold_geometry *p, column_row r,
                       int line, int end)
{
    int first, last;
    windows_inside(p, r.j, &first, &last);
    for (; line < end; line++, to += p->windows[2]) {
        const long start = find_row(p, r, line);
        if (start < 0) {
            clear_line(to, p->windows[2]);
            continue;
        }
        clear_line(to, first);
        copy_line(to + first, x + start + element_at(p, 2, first, r.j), last - first, p->stride[2]);
        clear_line(to + last, p->windows[2] - last);
    }
}
#endif

KN_KERNEL_ONCE(unfold, (KN_ARG(x), KN_ARG(y), p), KN_IN(x), KN_OUT(y), const kn_fold_geometry p)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long lines = lines_of(p.windows), rows = p.planes * area_of(&p);
#ifdef KN_CPU
    const long parts = (lines + LINES_AT_ONCE - 1) / LINES_AT_ONCE;
    KN_FOR_ONCE (part, rows * parts) {
        const long row = part / parts, line = (part - row * parts) * LINES_AT_ONCE;
        copy_lines(y + (row * lines + line) * p.windows[2], x, &p, column_row_at(&p, row), (int)line,
                   (int)min(lines, line + LINES_AT_ONCE));
    }
#else
    KN_FOR_ONCE (e, rows * lines * p.windows[2]) {
        const long line = e / p.windows[2], row = line / lines;
        const column_row r = column_row_at(&p, row);
        const long start = find_row(&p, r, (int)(line - row * lines));
        const int column = element_at(&p, 2, (int)(e - line * p.windows[2]), r.j);
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
