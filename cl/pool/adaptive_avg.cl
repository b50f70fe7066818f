/* pool/adaptive_avg.cl - adaptive average pooling. */
#include "pool/adaptive.clh"
#ifdef KN_CPU
#include "pool/sum_runs.clh"
#endif

static T area_of(box b) { return (T)((long)(b.back - b.front) * (b.bottom - b.top) * (b.right - b.left)); }

#ifdef KN_CPU

/* `room` elements of the plane and after it exist. */
static T window_average(const kn_pool_geometry *p, const global T *plane, long room, box b)
{
    const T area = area_of(b);
    if (area <= 8) {
        T few = 0;
        FOR_BOX(b, d, h, w) few += plane[(SLICE(d) * p->size[1] + h) * p->size[2] + w];
        return few / area;
    }
    return sum_of_runs(runs_of(p, b, 1, 1), plane, room) / area;
}

/* The gradients of a plane: each window's, in the order of the outputs. */
static void add_windows(const kn_pool_geometry *p, const global T *gradient, global T *plane)
{
    const int rows = p->out_size[1], columns = p->out_size[2], lines = DEPTH(p->out_size[0]) * rows;
    const long size = volume_of(p);
    for (long i = 0; i < size; i++)
        plane[i] = 0;
    for (int line = 0; line < lines; line++) {
        window_line l = windows_of_line(p, SLICE(line / rows), line - SLICE(line / rows) * rows);
        for (int i = 0; i < columns; i++, next_window(&l)) {
            const box b = l.window;
            const T share = gradient[(long)line * columns + i] / area_of(b);
            FOR_BOX(b, d, h, w) plane[(SLICE(d) * p->size[1] + h) * p->size[2] + w] += share;
        }
    }
}

#else

static T window_average(const kn_pool_geometry *p, const global T *plane, box b)
{
    T sum = 0;
    FOR_BOX(b, d, h, w) sum += plane[(SLICE(d) * p->size[1] + h) * p->size[2] + w];
    return sum / area_of(b);
}

static T gather_average(const kn_pool_geometry *p, const global T *gradient, box windows)
{
    T sum = 0;
    for (int slice = windows.front; slice < windows.back; slice++)
        for (int row = windows.top; row < windows.bottom; row++) {
            const box line = window(p, slice, row, 0);
            const long area = (long)(line.back - line.front) * (line.bottom - line.top);
            for (int column = windows.left; column < windows.right; column++) {
                const int start = span_start(column, p->out_size[2], p->size[2]);
                const int wide = span_end(column, p->out_size[2], p->size[2]) - start;
                sum += gradient[(SLICE(slice) * p->out_size[1] + row) * p->out_size[2] + column] / (T)(area * wide);
            }
        }
    return sum;
}

#endif

KN_KERNEL_ONCE(adaptive_avg_pool_forward, (KN_ARG(x), KN_ARG(y), given), KN_IN(x), KN_OUT(y),
               const kn_pool_geometry given AND_CUT)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
#ifdef KN_CPU
    const long size = volume_of(&p);
    if (is_one_window(&p)) {
        KN_FOR_ONCE(plane, p.planes)
        {
            y[plane] = sum_of_plane(x + plane * size, size) / (T)size;
        }
        return;
    }
    KN_FOR_ONCE(line, output_lines(&p))
    {
        const output_line at = find_output_line(&p, line);
        const global T *plane = x + at.plane * size;
        window_line l = windows_of_line(&p, at.slice, at.row);
        for (int i = 0; i < p.out_size[2]; i++, next_window(&l))
            y[line * p.out_size[2] + i] = window_average(&p, plane, (p.planes - at.plane) * size, l.window);
    }
#else
    FIND_PLACE(place);
    y[place.plane * out_volume_of(&p) + find_output(&p, place)] =
        window_average(&p, x + place.plane * volume_of(&p), window(&p, place.slice, place.block, place.column));
#endif
}

KN_KERNEL_ONCE(adaptive_avg_pool_backward, (KN_ARG(gradient), KN_ARG(out), given), KN_IN(gradient), KN_OUT(out),
               const kn_pool_geometry given AND_CUT)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, gradient);
    KN_BIND_OUT(T, out);
#ifdef KN_CPU
    if (is_one_window(&p)) {
        const int size = p.size[1] * p.size[2];
        KN_FOR_ONCE(plane, p.planes)
        {
            const T share = gradient[plane] / (T)size;
            for (int i = 0; i < size; i++)
                out[plane * size + i] = share;
        }
        return;
    }
    KN_FOR_ONCE(plane, p.planes)
        add_windows(&p, gradient + plane * out_volume_of(&p), out + plane * volume_of(&p));
#else
    FIND_PLACE(place);
    const long to = place.plane * volume_of(&p) + find_input(&p, place);
    if (is_one_window(&p)) {
        out[to] = gradient[place.plane] / (T)(p.size[1] * p.size[2]);
        return;
    }
    const box windows = windows_at(&p, place.slice, place.block, place.column);
    out[to] = gather_average(&p, gradient + place.plane * out_volume_of(&p), windows);
#endif
}
