/* pool/adaptive_max.cl - adaptive max pooling. The index that is stored, as INDEX, is the maximum's position in its
 * plane. The first among equals wins, but the last NaN, as in PyTorch.
 *
 * Compiled in: INDEX. */
#include "pool/adaptive.clh"
#ifdef KN_CPU
#include "pool/max_runs.clh"
#endif

#ifdef KN_CPU

static T max_of_small(const kn_pool_geometry *p, const global T *plane, box b, int *index)
{
    T best = 0;
    int at = -1;
    FOR_BOX(b, d, h, w)
    {
        const int place = (SLICE(d) * p->size[1] + h) * p->size[2] + w;
        const T v = plane[place];
        if (at < 0 || v > best || v != v) {
            best = v;
            at = place;
        }
    }
    *index = at;
    return best;
}

static T maximum_in(const kn_pool_geometry *p, const global T *plane, long room, box b, int wanted, int *index)
{
    if ((b.right - b.left) * (b.bottom - b.top) * (b.back - b.front) <= 8)
        return max_of_small(p, plane, b, index);
    return max_of_runs(runs_of(p, b, 1, 1), plane, room, wanted, index);
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
        if (v > best || v != v) {
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
    const int rows = p->out_size[1], columns = p->out_size[2], lines = DEPTH(p->out_size[0]) * rows;
    const long size = volume_of(p);
    for (long i = 0; i < size; i++)
        plane[i] = 0;
    for (int line = 0; line < lines; line++) {
        window_line l = windows_of_line(p, SLICE(line / rows), line - SLICE(line / rows) * rows);
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
#ifdef KN_CPU
    const long size = volume_of(&p);
    if (is_one_window(&p)) {
        KN_FOR_ONCE(plane, p.planes)
        {
            int best_at;
            y[plane] = max_of_runs(whole_plane(size), x + plane * size, (p.planes - plane) * size, save, &best_at);
            if (save)
                index[plane] = best_at;
        }
        return;
    }
    KN_FOR_ONCE(line, output_lines(&p))
    {
        const output_line at = find_output_line(&p, line);
        const global T *plane = x + at.plane * size;
        window_line l = windows_of_line(&p, at.slice, at.row);
        for (long i = line * p.out_size[2]; i < (line + 1) * p.out_size[2]; i++, next_window(&l)) {
            int best_at;
            y[i] = maximum_in(&p, plane, (p.planes - at.plane) * size, l.window, save, &best_at);
            if (save)
                index[i] = best_at;
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
