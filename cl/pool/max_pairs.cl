/* pool/max_pairs.cl - max pooling on CPU devices by adjacent windows of 2 x 2 elements, at least 4 in a row: the most
 * usual ones, apart from others because a program compiles in proportion to its code. A work-item owns whole planes in
 * backward. */
#include "pool/max.clh"

/* LANES outputs from two rows, of which the upper one starts at `first` in its plane. */
#define PAIR_FUNCTIONS(LANES)                                                                                          \
    static void pair_forward_##LANES(const global T *top, int width, global T *y, global INDEX *index, int first,      \
                                     int save, T low, T high)                                                          \
    {                                                                                                                  \
        const global T *bottom = top + width;                                                                          \
        const VEC(T, LANES) a0 = VEC(vload, LANES)(0, top), a1 = VEC(vload, LANES)(1, top);                            \
        const VEC(T, LANES) b0 = VEC(vload, LANES)(0, bottom), b1 = VEC(vload, LANES)(1, bottom);                      \
        const VEC(T, LANES) v0 = (VEC(T, LANES))(a0.even, a1.even), v1 = (VEC(T, LANES))(a0.odd, a1.odd);              \
        const VEC(T, LANES) v2 = (VEC(T, LANES))(b0.even, b1.even), v3 = (VEC(T, LANES))(b0.odd, b1.odd);              \
        VEC(LANE_INT, LANES) at = 0, take = (v1 > v0) | (v1 != v1);                                                    \
        VEC(T, LANES) best = select(v0, v1, take);                                                                     \
        at = select(at, (VEC(LANE_INT, LANES))1, take);                                                                \
        take = (v2 > best) | (v2 != v2);                                                                               \
        best = select(best, v2, take);                                                                                 \
        at = select(at, (VEC(LANE_INT, LANES))2, take);                                                                \
        take = (v3 > best) | (v3 != v3);                                                                               \
        best = select(best, v3, take);                                                                                 \
        at = select(at, (VEC(LANE_INT, LANES))3, take);                                                                \
        take = (best <= (VEC(T, LANES))low) | (best >= (VEC(T, LANES))high);                                           \
        if (FLAT)                                                                                                      \
            at = (at >> 1) * width + (at & 1) + 2 * ASCENDING_##LANES + first;                                         \
        at = select(at, (VEC(LANE_INT, LANES))NO_PLACE, take);                                                         \
        VEC(vstore, LANES)(KN_CLAMP(best, (VEC(T, LANES))low, (VEC(T, LANES))high), 0, y);                             \
        if (save)                                                                                                      \
            VEC(vstore, LANES)(VEC(KN_JOIN(convert_, INDEX), LANES)(at), 0, index);                                    \
    }                                                                                                                  \
    static void pair_backward_##LANES(const global T *gradient, const global INDEX *index, global T *top,              \
                                      global T *bottom)                                                                \
    {                                                                                                                  \
        const VEC(T, LANES) g = VEC(vload, LANES)(0, gradient), none = 0;                                              \
        const VEC(LANE_INT, LANES) at = VEC(KN_JOIN(convert_, LANE_INT), LANES)(VEC(vload, LANES)(0, index));          \
        const VEC(T, LANES) v0 = select(none, g, at == 0), v1 = select(none, g, at == 1);                              \
        const VEC(T, LANES) v2 = select(none, g, at == 2), v3 = select(none, g, at == 3);                              \
        VEC(T, LANES) low, high;                                                                                       \
        low.even = v0.lo, low.odd = v1.lo, high.even = v0.hi, high.odd = v1.hi;                                        \
        VEC(vstore, LANES)(low, 0, top), VEC(vstore, LANES)(high, 1, top);                                             \
        low.even = v2.lo, low.odd = v3.lo, high.even = v2.hi, high.odd = v3.hi;                                        \
        VEC(vstore, LANES)(low, 0, bottom), VEC(vstore, LANES)(high, 1, bottom);                                       \
    }

PAIR_FUNCTIONS(16)
PAIR_FUNCTIONS(8)
PAIR_FUNCTIONS(4)

/* Vectors of a row of n outputs; the last one overlaps the one before. */
#define OVERLAPPING(LANES, call)                                                   \
    KN_NOT_UNROLLED                                                                \
    for (int from = 0; from < n; from += LANES) {                                  \
        const int k = min(from, n - LANES);                                        \
        call;                                                                      \
    }

static void pair_forward(const global T *top, int width, global T *y, global INDEX *index, int first, int n, int save,
                         T low, T high)
{
    if (n >= 16)
        OVERLAPPING(16, pair_forward_16(top + 2 * k, width, y + k, index + k, first + 2 * k, save, low, high))
    else if (n >= 8)
        OVERLAPPING(8, pair_forward_8(top + 2 * k, width, y + k, index + k, first + 2 * k, save, low, high))
    else
        OVERLAPPING(4, pair_forward_4(top + 2 * k, width, y + k, index + k, first + 2 * k, save, low, high))
}

static void pair_backward(const global T *gradient, const global INDEX *index, global T *top, global T *bottom, int n)
{
    if (n >= 16)
        OVERLAPPING(16, pair_backward_16(gradient + k, index + k, top + 2 * k, bottom + 2 * k))
    else if (n >= 8)
        OVERLAPPING(8, pair_backward_8(gradient + k, index + k, top + 2 * k, bottom + 2 * k))
    else
        OVERLAPPING(4, pair_backward_4(gradient + k, index + k, top + 2 * k, bottom + 2 * k))
}

KN_KERNEL_ONCE(max_pool_forward, (KN_ARG(x), KN_ARG(y), KN_ARG(index), given, save, low, high), KN_IN(x), KN_OUT(y),
               KN_OUT(index), const kn_pool_geometry given, const int save, const T low, const T high)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(INDEX, index);
    KN_FOR_ONCE(line, p.planes * p.out_size[1])
    {
        const int first = 2 * (line % p.out_size[1]) * p.size[2];
        const long to = line * p.out_size[2];
        pair_forward(x + line / p.out_size[1] * volume_of(&p) + first, p.size[2], y + to, index + to, first,
                     p.out_size[2], save, low, high);
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
    {
        global T *plane = out + i * volume_of(&p);
        int h = 0;
        for (; h < 2 * p.out_size[1]; h += 2) {
            const long from = i * out_volume_of(&p) + (long)(h / 2) * p.out_size[2];
            global T *top = plane + (long)h * p.size[2];
            pair_backward(gradient + from, index + from, top, top + p.size[2], p.out_size[2]);
            KN_NOT_UNROLLED
            for (int w = 2 * p.out_size[2]; w < p.size[2]; w++)
                top[w] = top[p.size[2] + w] = 0;
        }
        KN_NOT_UNROLLED
        for (; h < p.size[1]; h++)
            KN_NOT_UNROLLED
            for (int w = 0; w < p.size[2]; w++)
                plane[(long)h * p.size[2] + w] = 0;
    }
}
