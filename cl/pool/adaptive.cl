/* pool/adaptive.cl - adaptive pooling: window i of n over `size` covers floor(i size / n) to ceil((i + 1) size / n).
 * Gradients are gathers. The index stored by max pooling, as INDEX, is the maximum's position in its plane. */
#include "pool/pool.clh"
#include "pool/plane_max.clh"

/* i a / b, rounded down and up; GPUs divide in 32 bits if possible: 64 bits take a hundred instructions. */
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

/* Element `at` of `count`, and the elements of `size` that it spans: an output's window over the inputs or, exchanged,
 * the outputs whose windows cover an input. */
static int span_start(int at, int count, int size) { return scale_down(at, size, count); }
static int span_end(int at, int count, int size) { return scale_up(at + 1, size, count); }

static box span_of(const int *count, const int *size, int slice, int row, int column)
{
    return (box){.front = SLICE(span_start(slice, count[0], size[0])),
                 .back = DEPTH(span_end(slice, count[0], size[0])),
                 .top = span_start(row, count[1], size[1]),
                 .bottom = span_end(row, count[1], size[1]),
                 .left = span_start(column, count[2], size[2]),
                 .right = span_end(column, count[2], size[2])};
}

static box window(const kn_pool_geometry *p, int slice, int row, int column)
{
    return span_of(p->out_size, p->size, slice, row, column);
}

/* The windows that cover an input. */
static box windows_at(const kn_pool_geometry *p, int slice, int row, int column)
{
    return span_of(p->size, p->out_size, slice, row, column);
}

/* One output element of a plane. The last NaN wins, as in PyTorch. */
static T window_max(const kn_pool_geometry *p, const global T *plane, int slice, int row, int column, int *index)
{
    const box b = window(p, slice, row, column);
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

static T window_average(const kn_pool_geometry *p, const global T *plane, int slice, int row, int column)
{
    const box b = window(p, slice, row, column);
    T sum = 0;
    FOR_BOX(b, d, h, w) sum += plane[(SLICE(d) * p->size[1] + h) * p->size[2] + w];
    return sum / (T)((long)(b.back - b.front) * (b.bottom - b.top) * (b.right - b.left));
}

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

static bool is_one_window(const kn_pool_geometry *p)
{
    return !VOLUME && p->out_size[1] == 1 && p->out_size[2] == 1;
}

#ifdef KN_CPU

/* The mean of `n` contiguous elements. */
static T mean_of_run(const global T *run, long n)
{
    TV a = 0, b = 0;
    long k = 0;
    for (; k + 32 <= n; k += 32) {
        a += KN_VLOAD(run + k);
        b += KN_VLOAD(run + k + 16);
    }
    for (; k + 16 <= n; k += 16)
        a += KN_VLOAD(run + k);
    a += b;
    const KN_JOIN(T, 8) eight = a.lo + a.hi;
    const KN_JOIN(T, 4) four = eight.lo + eight.hi;
    const KN_JOIN(T, 2) two = four.lo + four.hi;
    T sum = two.x + two.y;
    for (; k < n; k++)
        sum += run[k];
    return sum / (T)n;
}

/* Output number i of all planes. */
#define PLANE(i) (x + (i) / out_volume_of(&p) * volume_of(&p))
#define WINDOW(i) \
    SLICE((i) / p.out_size[2] / p.out_size[1] % p.out_size[0]), (i) / p.out_size[2] % p.out_size[1], (i) % p.out_size[2]

/* The windows that cover an input row, in depth and height. With a single window along the width there is no division
 * per element. */
static box covering_row(const kn_pool_geometry *p, long line)
{
    return windows_at(p, SLICE(line / p->size[1] % p->size[0]), line % p->size[1], 0);
}
static void move_to_column(const kn_pool_geometry *p, box *windows, int w)
{
    if (p->out_size[2] == 1)
        return;
    windows->left = span_start(w, p->size[2], p->out_size[2]);
    windows->right = span_end(w, p->size[2], p->out_size[2]);
}

#define AND_CUT

#else
#define KERNEL 0
#include "pool/windows.clh"
#define AND_CUT , const kn_pool_blocking cut /* the last argument on GPUs */
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
    if (is_one_window(&p) && size >= 16) { /* the window is the plane, a contiguous run */
        KN_FOR_ONCE(plane, p.planes)
        {
            T best;
            long at = max_of_plane(x + plane * size, size, &best);
            y[plane] = best;
            if (IS_NAN(best))
                for (at = size - 1; !IS_NAN(x[plane * size + at]); at--)
                    ;
            if (save)
                index[plane] = (int)at;
        }
        return;
    }
    KN_FOR_ONCE(i, p.planes * out_volume_of(&p))
    {
        int at;
        const T best = window_max(&p, PLANE(i), WINDOW(i), &at);
        y[i] = best;
        if (save)
            index[i] = at;
    }
#else
    FIND_PLACE(place);
    const long to = place.plane * out_volume_of(&p) + find_output(&p, place);
    int at;
    y[to] = window_max(&p, x + place.plane * volume_of(&p), place.slice, place.block, place.column, &at);
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
    if (is_one_window(&p)) { /* one window: no search */
        const int size = p.size[1] * p.size[2];
        KN_FOR_ONCE(plane, p.planes)
        {
            for (int i = 0; i < size; i++)
                out[plane * size + i] = 0;
            if (index[plane] >= 0 && index[plane] < size) /* a caller's may lie anywhere */
                out[plane * size + index[plane]] = gradient[plane];
        }
        return;
    }
    KN_FOR_ONCE(line, p.planes * DEPTH(p.size[0]) * p.size[1])
    {
        const long plane = line / p.size[1] / DEPTH(p.size[0]), from = plane * out_volume_of(&p);
        const int own = line * p.size[2] - plane * volume_of(&p);
        box windows = covering_row(&p, line);
        for (int w = 0; w < p.size[2]; w++) {
            move_to_column(&p, &windows, w);
            out[line * p.size[2] + w] = gather_max(&p, gradient + from, index + from, windows, own + w);
        }
    }
#else
    FIND_PLACE(place);
    const long from = place.plane * out_volume_of(&p);
    const int own = find_input(&p, place);
    const box windows = windows_at(&p, place.slice, place.block, place.column);
    out[place.plane * volume_of(&p) + own] = gather_max(&p, gradient + from, index + from, windows, own);
#endif
}

KN_KERNEL_ONCE(adaptive_avg_pool_forward, (KN_ARG(x), KN_ARG(y), given), KN_IN(x), KN_OUT(y),
               const kn_pool_geometry given AND_CUT)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
#ifdef KN_CPU
    const long size = volume_of(&p);
    if (is_one_window(&p) && size > 0) {
        KN_FOR_ONCE(plane, p.planes)
        {
            y[plane] = mean_of_run(x + plane * size, size);
        }
        return;
    }
    KN_FOR_ONCE(i, p.planes * out_volume_of(&p))
    {
        y[i] = window_average(&p, PLANE(i), WINDOW(i));
    }
#else
    FIND_PLACE(place);
    y[place.plane * out_volume_of(&p) + find_output(&p, place)] =
        window_average(&p, x + place.plane * volume_of(&p), place.slice, place.block, place.column);
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
    KN_FOR_ONCE(line, p.planes * DEPTH(p.size[0]) * p.size[1])
    {
        const global T *plane = gradient + line / p.size[1] / DEPTH(p.size[0]) * out_volume_of(&p);
        box windows = covering_row(&p, line);
        for (int w = 0; w < p.size[2]; w++) {
            move_to_column(&p, &windows, w);
            out[line * p.size[2] + w] = gather_average(&p, plane, windows);
        }
    }
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
