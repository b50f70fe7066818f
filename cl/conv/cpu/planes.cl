/* conv/cpu/planes.cl - depthwise convolution on CPU devices, one channel's image at a time, its rows as one line.
 *
 * For pixel (i, j) of the line, element e = i * width + j, tap (u, v) reads at a constant offset, row_shift(u) * width
 * + column_shift(v); so vectors run along the whole line, however short the rows. The image in memory is that line; its
 * ends are copied to a buffer with zeros before and after, for taps above and below. Taps across the left or right edge
 * read the neighbouring row instead and are masked, all taps of a kernel column at once:
 *
 *     y[e] = bias + sum over v of (inside(j, v) ? sum over u of x[e + distance(u, v)] * w[u, v] : 0)
 *
 * Backward-data is the same with negated offsets. With a stride, every stride-th row of the line is computed and its
 * columns are extracted afterwards; dy as input is spread out with zeros to the image's grid, because depthwise
 * convolution is bound by memory, not arithmetic. Each plane is read once and written once, at the speed of a copy if
 * it needs no line buffer.
 *
 * Compiled in: T, VW. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/pack.clh"
#include "conv/cpu/copy.clh"
#include "conv/cpu/planes.clh"

/* A mask is all ones or all zeros, as wide as T. */
#ifdef KN_USE_F64
#define MASK long
#else
#define MASK int
#endif
#define MASKS KN_JOIN(MASK, VW)
#define AS_MASKS KN_JOIN(as_, MASKS)
#define AS_V KN_JOIN(as_, V)
#define CUT_OUT(value, mask) AS_V(AS_MASKS(value) & VLOAD(0, mask))
#define VX 4 /* vectors per step */

/* masks[v][e]: does kernel column v read inside the image? With `taken`, only at results of the line: rows are then
 * step_rows apart. */
static inline void write_masks(global MASK *restrict masks, const kn_conv_plane_shape *s, bool taken)
{
    for (long v = 0; v < s->kernel_columns; v++) {
        const long shift = s->column_shift + v * s->column_distance;
        for (long e = 0, row = 0, column = 0; e < s->run; e++) {
            const bool has_result = !taken || (row % s->step_rows == 0 && column % s->step_columns == 0 &&
                                               column / s->step_columns < s->columns);
            masks[v * s->run + e] = has_result && column + shift >= 0 && column + shift < s->width ? -1 : 0;
            column++;
            if (column == s->width) {
                column = 0;
                row++;
            }
        }
    }
}

/* Does the input plane have the line's layout in memory? */
static inline bool is_line(const kn_conv_plane_shape *s)
{
    return s->spread_rows == 1 && s->spread_columns == 1 && s->read_columns == s->width;
}

/* The address for reading n elements from the line's element `start` on, and what their taps reach: if is_line the
 * plane itself, unless they reach past its ends; then that part is copied to the line. */
static inline const global T *find_run(global T *line, const global T *plane, const kn_conv_plane_shape *s, long start,
                                       long n)
{
    const long last_row = s->row_shift + (s->kernel_rows - 1) * s->row_distance,
               last_column = s->column_shift + (s->kernel_columns - 1) * s->column_distance;
    const long size = s->read_rows * s->width;
    const long first = start + min(s->row_shift, last_row) * s->width + min(s->column_shift, last_column);
    const long end = start + max(n, (long)(VX * VW)) + max(s->row_shift, last_row) * s->width +
                     max(s->column_shift, last_column);
    if (!is_line(s))
        return line + start;
    if (first >= 0 && end <= size)
        return plane + start;
    copy_run(line + max(0L, first), plane + max(0L, first), min(size, end) - max(0L, first));
    return line + start;
}

#define SUM_VECTORS(name, N)                                                                                           \
    static inline void name(global T *restrict to, const global T *restrict line, const global MASK *restrict masks,   \
                            const global T *restrict w, const kn_conv_plane_shape *s, T start, T low, T high)          \
    {                                                                                                                  \
        V sum[N];                                                                                                      \
        _Pragma("unroll") for (int i = 0; i < N; i++) sum[i] = (V)start;                                               \
        for (long v = 0; v < s->kernel_columns; v++) {                                                                 \
            V part[N];                                                                                                 \
            _Pragma("unroll") for (int i = 0; i < N; i++) part[i] = (V)(T)0;                                           \
            const global T *from = line + s->row_shift * s->width + s->column_shift + v * s->column_distance;          \
            for (long u = 0; u < s->kernel_rows; u++) {                                                                \
                const V weight = (V)w[u * s->kernel_columns + v];                                                      \
                _Pragma("unroll") for (int i = 0; i < N; i++) part[i] = fma(weight, VLOAD(i, from), part[i]);          \
                from += s->row_distance * s->width;                                                                    \
            }                                                                                                          \
            _Pragma("unroll") for (int i = 0; i < N; i++) sum[i] += CUT_OUT(part[i], masks + v * s->run + i * VW);     \
        }                                                                                                              \
        _Pragma("unroll") for (int i = 0; i < N; i++) VSTORE(KN_CLAMP(sum[i], (V)low, (V)high), i, to);                \
    }
SUM_VECTORS(sum_vectors, VX)
SUM_VECTORS(sum_vector, 1)

/* n elements from the line's element 0 on; if fewer than VX vectors, computes VX, for which `to` must have room. */
static inline void sum_run(global T *restrict to, const global T *restrict line, const global MASK *restrict masks,
                           const global T *restrict w, const kn_conv_plane_shape *s, long n, T start, T low, T high)
{
    long e = 0;
    for (; e == 0 || e + VX * VW <= n; e += VX * VW)
        sum_vectors(to + e, line + e, masks + e, w, s, start, low, high);
    for (; e + VW <= n; e += VW)
        sum_vector(to + e, line + e, masks + e, w, s, start, low, high);
    if (e < n) { /* the last vector overlaps */
        e = n - VW;
        sum_vector(to + e, line + e, masks + e, w, s, start, low, high);
    }
}

/* dim 0: planes_per_item planes of the result, numbered channel fastest. A work-item's scratch memory holds the line,
 * one run and the masks. */
KN_KERNEL_ONCE(conv_planes,
               (KN_ARG(x), KN_ARG(w), KN_ARG(bias), KN_ARG(y), KN_ARG(scratch), s, planes_per_item, scratch_size,
                has_bias, low, high),
               KN_IN(x), KN_IN(w), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), kn_conv_plane_shape s, long planes_per_item,
               long scratch_size, int has_bias, T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long first = KN_ID(0) * planes_per_item,
               last = min(s.images * s.channels, first + planes_per_item);
    const bool straight = s.step_rows == 1 && s.step_columns == 1 && s.columns == s.width;
    scratch += KN_ID(0) * scratch_size;
    global T *line = scratch + s.before, *run = scratch + s.line;
    global MASK *masks = (global MASK *)(run + s.run);
    zero_run(scratch, s.line);
    write_masks(masks, &s, false);
    for (long plane = first; plane < last; plane++) {
        const long channel = plane % s.channels, image = plane / s.channels;
        const long from = image * s.read_channels + channel / (s.channels / s.read_channels);
        const global T *weight = w + channel * s.kernel_rows * s.kernel_columns;
        const T start = has_bias ? bias[channel] : (T)0;
        const global T *read = x + from * s.read_rows * s.read_columns;
        if (!is_line(&s))
            fill_rows(line, read, s.read_rows, s.read_columns, s.width, s.spread_rows, s.spread_columns);
        global T *to = y + plane * s.rows * s.columns;
        for (long row = 0; row < s.rows; row += s.rows_per_run) {
            const long n = min(s.rows_per_run, s.rows - row) * s.width;
            const global T *pixels = find_run(line, read, &s, row * s.step_rows * s.width, n);
            if (straight && n >= VX * VW) {
                sum_run(to + row * s.columns, pixels, masks, weight, &s, n, start, low, high);
                continue;
            }
            sum_run(run, pixels, masks, weight, &s, n, start, low, high);
            if (s.columns == s.width && s.step_columns == 1)
                copy_run(to + row * s.columns, run, n);
            else
                copy_steps(to + row * s.columns, run, s.columns, s.step_columns);
        }
    }
}

/* sum[i] += x * dy for UX positions of x, VW pixels at a time. Both are masked: 0 * infinity would be NaN. */
#define UX 3
KN_INLINE void add_pixels(V sum[UX], const global T *from[UX], long e, const global T *dy, const MASKS keep)
{
    const V d = select((V)(T)0, VLOAD(0, dy + e), keep);
#pragma unroll
    for (int i = 0; i < UX; i++)
        sum[i] = fma(select((V)(T)0, VLOAD(0, from[i] + e), keep), d, sum[i]);
}

/* Adds the products of a run of dy, on the line's grid, with the line of x to the vectors totals[u][v], for UX kernel
 * rows from u on. `lanes` is 0, 1, 2, ...; a run shorter than a vector must have room for one. */
static inline void add_products(global T *restrict totals, const global T *restrict line, const global T *restrict dy,
                                const global MASK *restrict masks, const kn_conv_plane_shape *s, long u, long v, long n,
                                const MASKS lanes)
{
    const global T *from[UX];
    V sum[UX];
#pragma unroll
    for (int i = 0; i < UX; i++) {
        const long row = s->row_shift + min(u + i, s->kernel_rows - 1) * s->row_distance;
        from[i] = line + row * s->width + s->column_shift + v * s->column_distance;
        sum[i] = (V)(T)0;
    }
    masks += v * s->run;
    long e = 0;
    for (; e + VW <= n; e += VW)
        add_pixels(sum, from, e, dy, VLOAD(0, masks + e) != (MASKS)0);
    if (e < n) { /* the last vector starts earlier, with the overlap masked */
        const long start = max(0L, n - VW);
        const MASKS fresh = lanes >= (MASKS)(MASK)(e - start) && lanes < (MASKS)(MASK)(n - start);
        add_pixels(sum, from, start, dy, VLOAD(0, masks + start) != (MASKS)0 && fresh);
    }
#pragma unroll
    for (int i = 0; i < UX; i++)
        if (u + i < s->kernel_rows) {
            global T *total = totals + ((u + i) * s->kernel_columns + v) * VW;
            VSTORE(VLOAD(0, total) + sum[i], 0, total);
        }
}

/* dim 0: tasks_per_item tasks of all channels of dy by shares of the images, channel fastest. dw is [shares][channels]
 * [taps], db [shares][channels]. `scratch` holds the line of x, that of dy, the masks and the vectors of totals. */
KN_KERNEL_ONCE(conv_planes_weights,
               (KN_ARG(x), KN_ARG(dy), KN_ARG(dw), KN_ARG(db), KN_ARG(scratch), s, images_per_share, shares,
                tasks_per_item, scratch_size, has_bias),
               KN_IN(x), KN_IN(dy), KN_OUT(dw), KN_OUT(db), KN_OUT(scratch), kn_conv_plane_shape s,
               long images_per_share, long shares, long tasks_per_item, long scratch_size, int has_bias)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, dw);
    KN_BIND_OUT(T, db);
    KN_BIND_OUT(T, scratch);
    const int taps = (int)(s.kernel_rows * s.kernel_columns);
    const long pixels = s.rows * s.columns;
    const long first = KN_ID(0) * tasks_per_item, last = min(s.channels * shares, first + tasks_per_item);
    scratch += KN_ID(0) * scratch_size;
    global T *line = scratch + s.before, *gradient = scratch + s.line, *totals = gradient + s.gradient_line;
    global MASK *masks = (global MASK *)(totals + taps * VW);
    zero_run(scratch, s.line + s.gradient_line);
    write_masks(masks, &s, true);
    MASK numbers[VW];
    for (int i = 0; i < VW; i++)
        numbers[i] = i;
    const MASKS lanes = VLOAD(0, numbers);
    const long short_run = s.rows % s.rows_per_run > 0 ? s.rows % s.rows_per_run : s.rows_per_run;
    const bool in_place = s.step_rows == 1 && s.step_columns == 1 && s.columns == s.width && short_run * s.width >= VW;
    const bool copied = s.step_rows > 1; /* then runs are single rows, and one long read is faster */
    for (long task = first; task < last; task++) {
        const long channel = task % s.channels, share = task / s.channels;
        T bias = 0;
        zero_run(totals, taps * VW);
        for (long image = share * images_per_share; image < min(s.images, (share + 1) * images_per_share); image++) {
            const long from = image * s.read_channels + channel / (s.channels / s.read_channels);
            const global T *plane = dy + (image * s.channels + channel) * pixels;
            const global T *read = x + from * s.read_rows * s.read_columns;
            if (copied)
                copy_run(line, read, s.read_rows * s.width);
            if (!in_place)
                fill_rows(gradient, plane, s.rows, s.columns, s.width, s.step_rows, s.step_columns);
            if (has_bias)
                bias += sum_plane(plane, pixels);
            for (long row = 0; row < s.rows; row += s.rows_per_run) {
                const long start = row * s.step_rows * s.width;
                const long n = (min(s.rows_per_run, s.rows - row) - 1) * s.step_rows * s.width + s.width;
                const global T *pixels = copied ? line + start : find_run(line, read, &s, start, n);
                for (long u = 0; u < s.kernel_rows; u += UX)
                    for (long v = 0; v < s.kernel_columns; v++)
                        add_products(totals, pixels, (in_place ? plane : gradient) + start, masks, &s, u, v, n,
                                     lanes);
            }
        }
        for (int t = 0; t < taps; t++)
            dw[task * taps + t] = sum_lanes(VLOAD(t, totals));
        if (has_bias)
            db[task] = bias;
    }
}
