/* pool/max.cl - max pooling by any windows; adjacent ones of 2 x 2 elements on CPU devices: pool/max_pairs.cl. In
 * backward no two work-items write the same element: on CPU devices a work-item owns whole planes and adds in the order
 * of the outputs; on others each input element gathers from the windows that cover it. */
#include "pool/max.clh"

/* The index in its plane of element `place` of an output's window; -1 in the padding and for NO_PLACE. */
static long find_in_plane(const kn_pool_geometry *p, int slice, int row, int column, INDEX place)
{
    const int area = p->kernel_size[1] * p->kernel_size[2], t = SLICE(place / area), rest = place - t * area;
    const int d = SLICE(slice * p->stride[0] - p->padding[0] + t * p->dilation[0]);
    const int h = row * p->stride[1] - p->padding[1] + rest / p->kernel_size[2] * p->dilation[1];
    const int w = column * p->stride[2] - p->padding[2] + rest % p->kernel_size[2] * p->dilation[2];
    const bool inside = place != NO_PLACE && is_within(d, DEPTH(p->size[0])) && is_within(h, p->size[1]) &&
                        is_within(w, p->size[2]);
    return inside ? ((long)d * p->size[1] + h) * p->size[2] + w : -1;
}

#ifdef KN_CPU

/* Where in its plane the row of the input starts that row `lines` of a row of windows covers; -1: outside. */
static long find_line(const kn_pool_geometry *p, int slice, int row, int lines)
{
    const int t = SLICE(lines / p->kernel_size[1]), r = lines - t * p->kernel_size[1];
    const int d = SLICE(slice * p->stride[0] - p->padding[0] + t * p->dilation[0]);
    const int h = row * p->stride[1] - p->padding[1] + r * p->dilation[1];
    return is_within(d, DEPTH(p->size[0])) && is_within(h, p->size[1]) ? ((long)d * p->size[1] + h) * p->size[2] : -1;
}

/* Any windows: up to 64 outputs of a row at a time, with the loop over window elements outside. Only columns inside the
 * input take part, so padding is never read; the first element inside initialises the maximum. */
static void row_forward(const kn_pool_geometry *p, const global T *volume, int slice, int row, int first, int count,
                        global T *y, global INDEX *index, int save, T low, T high)
{
    T best[64];
    int at[64];

    for (int k = 0; k < count; k++) {
        best[k] = -INFINITY;
        at[k] = -1;
    }
    for (int lines = 0; lines < DEPTH(p->kernel_size[0]) * p->kernel_size[1]; lines++) {
        const long start = find_line(p, slice, row, lines);
        const global T *line = volume + start;
        for (int s = 0; start >= 0 && s < p->kernel_size[2]; s++) {
            const int stride = p->stride[2], left = first * stride - p->padding[2] + s * p->dilation[2];
            const int from = left >= 0 ? 0 : (-left + stride - 1) / stride;
            const int to = left >= p->size[2] ? 0 : min(count, (p->size[2] - 1 - left) / stride + 1);
            const int place = lines * p->kernel_size[2] + s, flat = (int)(start + left);
            for (int k = from; k < to; k++) {
                const T v = line[left + k * stride];
                const int take = (at[k] < 0) | (v > best[k]) | (v != v); /* no branches: the loop vectorises */
                best[k] = take ? v : best[k];
                at[k] = take ? FLAT ? flat + k * stride : place : at[k];
            }
        }
    }
    KN_NOT_UNROLLED
    for (int k = 0; k < count; k++)
        y[k] = KN_CLAMP(best[k], low, high);
    KN_NOT_UNROLLED
    for (int k = 0; save && k < count; k++)
        index[k] = ((best[k] <= low) | (best[k] >= high)) ? NO_PLACE : (INDEX)max(at[k], 0);
}

/* The same of LANES outputs whose windows are within the rows, at a stride of 1 or 2; rows have 2 * LANES elements or
 * more. */
#define WITHIN_FUNCTION(LANES)                                                                                         \
    static void within_##LANES(const kn_pool_geometry *p, const global T *volume, int slice, int row, int first,       \
                               global T *y, global INDEX *index, int save, T low, T high)                              \
    {                                                                                                                  \
        const int stride = p->stride[2];                                                                               \
        VEC(T, LANES) best = -INFINITY;                                                                                \
        VEC(LANE_INT, LANES) at = -1;                                                                                  \
        for (int lines = 0; lines < DEPTH(p->kernel_size[0]) * p->kernel_size[1]; lines++) {                           \
            const long start = find_line(p, slice, row, lines);                                                        \
            KN_NOT_UNROLLED                                                                                            \
            for (int s = 0; start >= 0 && s < p->kernel_size[2]; s++) {                                                \
                const int left = first * stride - p->padding[2] + s * p->dilation[2];                                  \
                const int shift = stride == 2 && left + 2 * LANES > p->size[2]; /* a row's last element is odd */      \
                const global T *from = volume + start + left - shift;                                                  \
                VEC(T, LANES) v = VEC(vload, LANES)(0, from);                                                          \
                if (stride == 2) {                                                                                     \
                    const VEC(T, LANES) more = VEC(vload, LANES)(1, from);                                             \
                    v = shift ? (VEC(T, LANES))(v.odd, more.odd) : (VEC(T, LANES))(v.even, more.even);                 \
                }                                                                                                      \
                const VEC(LANE_INT, LANES) here = FLAT ? ASCENDING_##LANES * stride + (LANE_INT)(start + left)         \
                                                       : (VEC(LANE_INT, LANES))(lines * p->kernel_size[2] + s);        \
                const VEC(LANE_INT, LANES) take = (at < 0) | (v > best) | (v != v);                                    \
                best = select(best, v, take);                                                                          \
                at = select(at, here, take);                                                                           \
            }                                                                                                          \
        }                                                                                                              \
        VEC(vstore, LANES)(KN_CLAMP(best, (VEC(T, LANES))low, (VEC(T, LANES))high), 0, y);                             \
        at = select(max(at, (LANE_INT)0), (VEC(LANE_INT, LANES))NO_PLACE,                                              \
                    (best <= (VEC(T, LANES))low) | (best >= (VEC(T, LANES))high));                                     \
        if (save)                                                                                                      \
            VEC(vstore, LANES)(VEC(KN_JOIN(convert_, INDEX), LANES)(at), 0, index);                                    \
    }
WITHIN_FUNCTION(16)
WITHIN_FUNCTION(8)

/* One output; for those at the ends of a row, where dividing by the stride would take longer. */
static void one_forward(const kn_pool_geometry *p, const global T *volume, int slice, int row, int column, global T *y,
                        global INDEX *index, int save, T low, T high)
{
    T best = -INFINITY;
    int at = -1;
    for (int lines = 0; lines < DEPTH(p->kernel_size[0]) * p->kernel_size[1]; lines++) {
        const long start = find_line(p, slice, row, lines);
        KN_NOT_UNROLLED
        for (int s = 0; start >= 0 && s < p->kernel_size[2]; s++) {
            const int w = column * p->stride[2] - p->padding[2] + s * p->dilation[2];
            if (!is_within(w, p->size[2]))
                continue;
            const T v = volume[start + w];
            const int take = (at < 0) | (v > best) | (v != v);
            best = take ? v : best;
            at = take ? FLAT ? (int)start + w : lines * p->kernel_size[2] + s : at;
        }
    }
    y[column] = KN_CLAMP(best, low, high);
    if (save)
        index[column] = ((best <= low) | (best >= high)) ? NO_PLACE : (INDEX)max(at, 0);
}

/* A row of outputs: vectors where the windows are within the rows of the input, of which the last overlaps the one
 * before. */
static void any_forward(const kn_pool_geometry *p, const global T *volume, int slice, int row, global T *y,
                        global INDEX *index, int save, T low, T high)
{
    const int stride = p->stride[2], width = (p->kernel_size[2] - 1) * p->dilation[2], size = p->size[2];
    const int last = size - 1 - width + p->padding[2], from = (p->padding[2] + stride - 1) / stride;
    const int to = last >= 0 ? min(last / stride + 1, p->out_size[2]) : 0;
    const int most = stride <= 2 ? min(to - from, size / 2) : 0;
    const int lanes = most >= 16 ? 16 : most >= 8 ? 8 : 0;
    for (int k = from; lanes && k < to; k += lanes) {
        const int first = min(k, to - lanes);
        if (lanes == 16)
            within_16(p, volume, slice, row, first, y + first, index + first, save, low, high);
        else
            within_8(p, volume, slice, row, first, y + first, index + first, save, low, high);
    }
    for (int k = 0; lanes && k < from; k++)
        one_forward(p, volume, slice, row, k, y, index, save, low, high);
    for (int k = to; lanes && k < p->out_size[2]; k++)
        one_forward(p, volume, slice, row, k, y, index, save, low, high);
    for (int first = 0; !lanes && first < p->out_size[2]; first += 64)
        row_forward(p, volume, slice, row, first, min(64, p->out_size[2] - first), y + first, index + first, save, low,
                    high);
}

KN_KERNEL_ONCE(max_pool_forward, (KN_ARG(x), KN_ARG(y), KN_ARG(index), given, save, low, high), KN_IN(x), KN_OUT(y),
               KN_OUT(index), const kn_pool_geometry given, const int save, const T low, const T high)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(INDEX, index);
    KN_FOR_ONCE(line, p.planes * DEPTH(p.out_size[0]) * p.out_size[1])
    {
        const int row = line % p.out_size[1], slice = SLICE(line / p.out_size[1] % p.out_size[0]);
        const global T *volume = x + line / p.out_size[1] / DEPTH(p.out_size[0]) * volume_of(&p);
        const long to = line * p.out_size[2];
        any_forward(&p, volume, slice, row, y + to, index + to, save, low, high);
    }
}

/* The index in its plane of the first element of a row's first window; in the padding it may be that of another row's
 * element, or negative. */
static long find_first(const kn_pool_geometry *p, int slice, int row)
{
    const int d = SLICE(slice * p->stride[0] - p->padding[0]), h = row * p->stride[1] - p->padding[1];
    return ((long)d * p->size[1] + h) * p->size[2] - p->padding[2];
}

/* The distances in a plane of a window's elements from its first one: those of places but the last, NO_PLACE. */
#define MOST_PLACES 255
static void find_distances(const kn_pool_geometry *p, int distances[MOST_PLACES + 1])
{
    int place = 0;
    for (int lines = 0; lines < DEPTH(p->kernel_size[0]) * p->kernel_size[1]; lines++) {
        const int t = SLICE(lines / p->kernel_size[1]), r = lines - t * p->kernel_size[1];
        KN_NOT_UNROLLED
        for (int s = 0; s < p->kernel_size[2]; s++)
            distances[place++] = (t * p->size[1] + r) * p->size[2] + s;
    }
}

/* Any windows: adds each output's gradient at its maximum. Windows entirely in the padding, which only dilation makes,
 * or clamped by the activation, contribute nothing. */
static void volume_backward(const kn_pool_geometry *p, const global T *gradient, const global INDEX *index,
                            global T *volume)
{
    int distances[MOST_PLACES + 1];
    const bool is_looked_up = sizeof(INDEX) == 1 && p->dilation[0] == 1 && p->dilation[1] == 1 && p->dilation[2] == 1;
    if (is_looked_up)
        find_distances(p, distances);
    for (long i = 0; i < volume_of(p); i++)
        volume[i] = 0;
    for (int rows = 0; rows < DEPTH(p->out_size[0]) * p->out_size[1]; rows++) {
        const int slice = SLICE(rows / p->out_size[1]), row = rows - slice * p->out_size[1];
        const long first = find_first(p, slice, row), from = (long)rows * p->out_size[2];
        for (int column = 0; column < p->out_size[2]; column++) {
            const INDEX place = index[from + column];
            const long at = place == NO_PLACE ? -1
                            : is_looked_up ? first + column * p->stride[2] + distances[(uchar)place]
                                           : find_in_plane(p, slice, row, column, place);
            if (at >= 0)
                volume[at] += gradient[from + column];
        }
    }
}

KN_KERNEL_ONCE(max_pool_backward, (KN_ARG(gradient), KN_ARG(index), KN_ARG(out), given), KN_IN(gradient),
               KN_IN(index), KN_OUT(out), const kn_pool_geometry given)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, out);
    KN_FOR_ONCE(i, p.planes)
        volume_backward(&p, gradient + i * out_volume_of(&p), index + i * out_volume_of(&p), out + i * volume_of(&p));
}

#else
#include "pool/max_windows.clh"
#endif
