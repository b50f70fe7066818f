/* pointwise/dropout.cl - y = x times 0 with probability p, else times 1 / (1 - p). The mask is not stored: backward
 * draws it again from the counter.
 *
 * Word i of the draw decides over element i (dropout) or over plane i of `inner` elements (dropout2d). An element is
 * kept if the word's upper 24 bits, the uniform number of kn_uniform_f32, are not below threshold = p 2^24. */
#include "common/lanes.clh"
#include "common/koine.clh"
#include "common/philox.clh"
#include "common/philox16.clh"

static T factor_of(uint word, uint threshold, T scale) { return (word >> 8) >= threshold ? scale : (T)0; }

#ifdef KN_CPU

#ifdef KN_USE_F64
#define MASK(v) convert_long16(v)
#else
#define MASK(v) (v)
#endif

KN_KERNEL_ONCE(dropout,
               (KN_ARG(x), KN_ARG(y), n, seed, offset, threshold, scale),
               KN_IN(x), KN_OUT(y), const long n, const ulong seed, const ulong offset, const uint threshold,
               const T scale)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_FOR_ONCE(group, (n + 63) / 64)
    {
        const long from = group * 64;
        if (from + 64 <= n) {
            uint16 words[4];
            philox_words(seed, offset + group * 16, words);
            for (int q = 0; q < 4; q++) {
                const int16 keep = (words[q] >> 8) >= threshold;
                KN_VSTORE(KN_VLOAD(x + from + 16 * q) * select((TV)0, (TV)scale, MASK(keep)), y + from + 16 * q);
            }
            continue;
        }
        for (long i = from; i < n; i++) {
            const uint4 w = kn_philox_block(seed, offset, i / 4);
            const uint words[4] = {w.x, w.y, w.z, w.w};
            y[i] = x[i] * factor_of(words[i % 4], threshold, scale);
        }
    }
}

/* 64 planes at a time. */
KN_KERNEL_ONCE(dropout2d,
               (KN_ARG(x), KN_ARG(y), planes, inner, seed, offset, threshold, scale),
               KN_IN(x), KN_OUT(y), const long planes, const long inner, const ulong seed, const ulong offset,
               const uint threshold, const T scale)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_FOR_ONCE(group, (planes + 63) / 64)
    {
        const long count = min(64L, planes - group * 64);
        uint16 words[4];
        philox_words(seed, offset + group * 16, words);
        for (long plane = 0; plane < count; plane++) {
            const T factor = factor_of(((const private uint *)words)[plane], threshold, scale);
            const long from = (group * 64 + plane) * inner;
            for (long i = 0; i < inner; i++)
                y[from + i] = x[from + i] * factor;
        }
    }
}

#else

#include "common/vec4.clh"

/* A block of the draw, four elements, per work-item and step: 30 instructions per element, most of them for the
 * draw. */
kernel void dropout(KN_IN(x), KN_OUT(y), const long n, const ulong seed, const ulong offset, const uint threshold,
                    const T scale)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const int aligned = is_vector_aligned(x) && is_vector_aligned(y);
    KN_FOR_VEC4(i, n)
    {
        const uint4 w = kn_philox_block(seed, offset, i / 4);
        const four factor = (four)(factor_of(w.x, threshold, scale), factor_of(w.y, threshold, scale),
                                   factor_of(w.z, threshold, scale), factor_of(w.w, threshold, scale));
        store_vec4(load_vec4(x + i, n - i, aligned) * factor, y + i, n - i, aligned);
    }
}

/* `lanes` work-items, a power of two, share a plane: each draws its word once. */
kernel void dropout2d(KN_IN(x), KN_OUT(y), const long planes, const long inner, const ulong seed, const ulong offset,
                      const uint threshold, const T scale, const int lanes)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const int lane = get_local_id(0) & (lanes - 1), teams = get_local_size(0) / lanes;
    for (long plane = get_group_id(0) * (long)teams + get_local_id(0) / lanes; plane < planes;
         plane += get_num_groups(0) * (long)teams) {
        const uint4 w = kn_philox_block(seed, offset, plane / 4);
        const uint word = plane % 4 == 0 ? w.x : plane % 4 == 1 ? w.y : plane % 4 == 2 ? w.z : w.w;
        const T factor = factor_of(word, threshold, scale);
        const global T *from = x + plane * inner;
        global T *to = y + plane * inner;
        long i = lane;
        for (; i + 3 * lanes < inner; i += 4 * lanes) {
            const T a = from[i], b = from[i + lanes], c = from[i + 2 * lanes], d = from[i + 3 * lanes];
            to[i] = a * factor;
            to[i + lanes] = b * factor;
            to[i + 2 * lanes] = c * factor;
            to[i + 3 * lanes] = d * factor;
        }
        for (; i < inner; i += lanes)
            to[i] = from[i] * factor;
    }
}

#endif
