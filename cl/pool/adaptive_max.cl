/* pool/adaptive_max.cl - adaptive max pooling. The index that is stored, as INDEX, is the maximum's position in its
 * plane. The first among equals wins, but the last NaN, as in PyTorch.
 *
 * Compiled in: INDEX; on CPU devices WHOLE_PLANES: the window is the plane, of 16 elements at least. */
#include "pool/adaptive.clh"
#include "pool/plane_max.clh"
#ifdef KN_CPU
#include "common/real_lanes.clh"
#endif

#ifdef WHOLE_PLANES

/* Output number i. */
static T maximum_of(const kn_pool_geometry *p, const global T *x, long i, int *index)
{
    const long size = volume_of(p);
    T best;
    long at = max_of_plane(x + i * size, size, &best);
    if (IS_NAN(best))
        for (at = size - 1; !IS_NAN(x[i * size + at]); at--)
            ;
    *index = (int)at;
    return best;
}

#elif defined(KN_CPU)

/* Columns `left` to `right`, at most 16, of a window: each column's maximum, and then the largest of them. `room`
 * elements of the plane and after it exist. *index: of the maximum `best` of columns before these, -1 if there are
 * none. */
static T max_of_columns(const kn_pool_geometry *p, const global T *plane, long room, box b, T best, int *index)
{
    const int width = p->size[2], count = b.right - b.left;
    T value[16];
    int line_of[16], at = *index;
    const int first = SLICE(b.front) * p->size[1] + b.top;
    TV largest = load_part(plane + (long)first * width + b.left, count, room - ((long)first * width + b.left), (T)0);
    lane_number lines = (lane_number)first;

    for (int d = b.front; d < b.back; d++)
        for (int h = b.top; h < b.bottom; h++) {
            const int line = SLICE(d) * p->size[1] + h;
            const long from = (long)line * width + b.left;
            const TV v = load_part(plane + from, count, room - from, (T)0), same = v;
            const lane_number takes = (v > largest) | (v != same);
            largest = select(largest, v, takes);
            lines = select(lines, (lane_number)line, takes);
        }
    vstore16(largest, 0, value);
    vstore16(convert_int16(lines), 0, line_of);
    for (int j = 0; j < count; j++) {
        const T v = value[j];
        const int place = line_of[j] * width + b.left + j;
        const bool takes = IS_NAN(v) ? !IS_NAN(best) || place > at
                                     : !IS_NAN(best) && (v > best || (v == best && place < at));
        if (takes || at < 0) {
            best = v;
            at = place;
        }
    }
    *index = at;
    return best;
}

/* The same for windows of long lines. */
static T max_of_lines(const kn_pool_geometry *p, const global T *plane, box b, int *index)
{
    const int width = p->size[2];
    T best = 0;
    int at = -1;
    for (int d = b.front; d < b.back; d++)
        for (int h = b.top; h < b.bottom; h++) {
            const int from = (SLICE(d) * p->size[1] + h) * width + b.left;
            T v;
            const int place = from + (int)max_of_plane(plane + from, b.right - b.left, &v);
            if (at < 0 || v > best || IS_NAN(v)) {
                best = v;
                at = place;
            }
        }
    if (IS_NAN(best)) /* the first one of its line */
        for (at = at / width * width + b.right - 1; !IS_NAN(plane[at]); at--)
            ;
    *index = at;
    return best;
}

static T max_of_small(const kn_pool_geometry *p, const global T *plane, box b, int *index)
{
    T best = 0;
    int at = -1;
    FOR_BOX(b, d, h, w)
    {
        const int place = (SLICE(d) * p->size[1] + h) * p->size[2] + w;
        const T v = plane[place];
        if (at < 0 || v > best || IS_NAN(v)) {
            best = v;
            at = place;
        }
    }
    *index = at;
    return best;
}

static T maximum_in(const kn_pool_geometry *p, const global T *plane, long room, box b, int *index)
{
    const int right = b.right, wide = right - b.left;
    T best = 0;
    if (wide * (b.bottom - b.top) * (b.back - b.front) <= 8)
        return max_of_small(p, plane, b, index);
    if (wide >= 32)
        return max_of_lines(p, plane, b, index);
    *index = -1;
    for (; b.left < right; b.left += 16) {
        b.right = min(right, b.left + 16);
        best = max_of_columns(p, plane, room, b, best, index);
    }
    return best;
}

#else

/* One output element of a plane. */
static T window_max(const kn_pool_geometry *p, const global T *plane, box b, int *index)
{
    int at = (b.front * p->size[1] + b.top) * p->size[2] + b.left;
    T best = plane[at];
    FOR_BOX(b, d, h, w)
    {
        const T v = plane[(SLICE(d) * p->size[1] + h) * p->size[2] + w];
        if (v > best || IS_NAN(v)) {
            best = v;
            at = (SLICE(d) * p->size[1] + h) * p->size[2] + w;
        }
    }
    *index = at;
    return best;
}

#endif

#ifdef KN_CPU

/* Is it in the window? A caller's index may lie anywhere. */
static bool is_inside(const kn_pool_geometry *p, box b, INDEX at)
{
    const int line = (int)(at / p->size[2]), w = (int)(at - (INDEX)line * p->size[2]), d = SLICE(line / p->size[1]),
              h = line - d * p->size[1];
    return d >= b.front && d < b.back && h >= b.top && h < b.bottom && w >= b.left && w < b.right;
}

/* The gradients of a plane: each output's at its maximum, in the order of the outputs. */
static void add_at_maxima(const kn_pool_geometry *p, const global T *gradient, const global INDEX *index,
                          global T *plane)
{
    const int lines = lines_of(p), columns = p->out_size[2];
    const long size = volume_of(p);
    for (long i = 0; i < size; i++)
        plane[i] = 0;
    for (int line = 0; line < lines; line++) {
        window_line l = windows_of_line(p, line);
        for (int i = line * columns; i < (line + 1) * columns; i++, next_window(&l)) {
            const INDEX at = index[i];
            if (at >= 0 && at < size && is_inside(p, l.window, at))
                plane[at] += gradient[i];
        }
    }
}

#else

/* The gradient of input element `own` of its plane. */
static T gather_max(const kn_pool_geometry *p, const global T *gradient, const global INDEX *index, box windows,
                    int own)
{
    T sum = 0;
    FOR_BOX(windows, slice, row, column)
    {
        const int at = (SLICE(slice) * p->out_size[1] + row) * p->out_size[2] + column;
        sum += index[at] == own ? gradient[at] : (T)0;
    }
    return sum;
}

#endif

KN_KERNEL_ONCE(adaptive_max_pool_forward, (KN_ARG(x), KN_ARG(y), KN_ARG(index), given, save), KN_IN(x), KN_OUT(y),
               KN_OUT(index), const kn_pool_geometry given, const int save AND_CUT)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(INDEX, index);
#ifdef WHOLE_PLANES
    KN_FOR_ONCE(i, p.planes)
    {
        int at;
        y[i] = maximum_of(&p, x, i, &at);
        if (save)
            index[i] = at;
    }
#elif defined(KN_CPU)
    const long size = volume_of(&p);
    KN_FOR_ONCE(line, p.planes * lines_of(&p))
    {
        const long plane = line / lines_of(&p);
        window_line l = windows_of_line(&p, (int)(line - plane * lines_of(&p)));
        for (long i = line * p.out_size[2]; i < (line + 1) * p.out_size[2]; i++, next_window(&l)) {
            int at;
            y[i] = maximum_in(&p, x + plane * size, (p.planes - plane) * size, l.window, &at);
            if (save)
                index[i] = at;
        }
    }
#else
    FIND_PLACE(place);
    const long to = place.plane * out_volume_of(&p) + find_output(&p, place);
    int at;
    y[to] = window_max(&p, x + place.plane * volume_of(&p), window(&p, place.slice, place.block, place.column), &at);
    if (save)
        index[to] = at;
#endif
}

KN_KERNEL_ONCE(adaptive_max_pool_backward, (KN_ARG(gradient), KN_ARG(index), KN_ARG(out), given), KN_IN(gradient),
               KN_IN(index), KN_OUT(out), const kn_pool_geometry given AND_CUT)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, out);
#ifdef KN_CPU
    KN_FOR_ONCE(plane, p.planes)
    {
        const long from = plane * out_volume_of(&p);
        add_at_maxima(&p, gradient + from, index + from, out + plane * volume_of(&p));
    }
#else
    FIND_PLACE(place);
    const long from = place.plane * out_volume_of(&p);
    const int own = find_input(&p, place);
    const box windows = windows_at(&p, place.slice, place.block, place.column);
    out[place.plane * volume_of(&p) + own] = gather_max(&p, gradient + from, index + from, windows, own);
#endif
}
