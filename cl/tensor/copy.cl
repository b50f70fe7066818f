/* tensor/copy.cl - copies between two strided layouts and converts.
 *
 * Compiled in: S and D, the storage types of source and destination, with S_KIND and D_KIND: 0 a plain number, 1 half (arithmetic in float), 2 bool.
 * The layout's dimensions are already merged where both sides allow. On CPU devices a work-item copies whole rows; on the others it takes four elements at a time
 * (pointwise/quads.clh), as vectors where they lie so: of f32 to f32 one load and one store of 16 bytes, 75 instructions of which 40 before the loop on NVIDIA's sm_90. */
#include "common/koine.clh"

#if S_KIND == 1
#define LOAD(at) vload_half(at, s)
#else
#define LOAD(at) s[at]
#endif

/* By way of long where a fraction goes: float to uchar wraps as in C, -1.0 gives 255, not what a saturating conversion gives. */
#if D_KIND == 1
#define STORE(at, value) vstore_half_rte((float)(value), at, d)
#else
#define STORE(at, value) d[at] = CONVERTED(value)
#endif
#if D_KIND == 2
#define CONVERTED(value) ((value) != 0)
#elif defined(D_WHOLE)
#define CONVERTED(value) (D)(long)(value)
#else
#define CONVERTED(value) (D)(value)
#endif

#ifdef KN_CPU

typedef struct layout {
    long shape[8];
    long source[8];      /* strides in elements */
    long destination[8];
    int ndim, unused;
} layout;

kernel void copy(KN_IN(s), KN_OUT(d), layout l, long rows)
{
    KN_BIND_IN(S, s);
    KN_BIND_OUT(D, d);
    const int last = l.ndim - 1;
    const long width = l.shape[last], step_s = l.source[last], step_d = l.destination[last];
    KN_FOR (i, rows) {
        long rest = i, from = 0, to = 0;
        for (int k = last - 1; k >= 0; k--) {
            const long index = rest % l.shape[k];
            rest /= l.shape[k];
            from += index * l.source[k];
            to += index * l.destination[k];
        }
        if (step_s == 1 && step_d == 1)
            for (long j = 0; j < width; j++)
                STORE(to + j, LOAD(from + j));
        else
            for (long j = 0; j < width; j++)
                STORE(to + j * step_d, LOAD(from + j * step_s));
    }
}

#else

#define KN_OPERANDS 4 /* two of them in use */
#include "pointwise/quads.clh"

/* Halves are loaded and stored as vectors of their own kind. */
#if S_KIND == 1
#define LOAD_FOUR                                                                                   \
    float v[4];                                                                                     \
    if (q.whole && !KN_QUAD_SPREAD(plan, 1)) {                                                      \
        const float4 four = vloada_half4(0, s + q.at[0].s1);                                        \
        v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;                                 \
    } else                                                                                          \
        v[0] = LOAD(q.at[0].s1), v[1] = LOAD(q.at[1].s1), v[2] = LOAD(q.at[2].s1), v[3] = LOAD(q.at[3].s1);
#else
#define LOAD_FOUR KN_QUAD_LOAD(S, v, s, 1)
#endif

kernel void copy(KN_OUT(d), KN_IN(s), kn_quads plan)
{
    KN_QUAD_OUT(D, d, 0)
    KN_QUAD_IN(S, s, 1)
    KN_QUADS(plan, task)
    {
        kn_quad q;
        kn_quad_of(&plan, task, &q);
        if (q.left == 0)
            continue;
        LOAD_FOUR
#if D_KIND == 1
        if (q.whole) {
            vstorea_half4_rte((float4)((float)v[0], (float)v[1], (float)v[2], (float)v[3]), 0, d + q.at[0].s0);
            continue;
        }
        STORE(q.at[0].s0, v[0]);
        if (q.left > 1)
            STORE(q.at[1].s0, v[1]);
        if (q.left > 2)
            STORE(q.at[2].s0, v[2]);
        if (q.left > 3)
            STORE(q.at[3].s0, v[3]);
#else
        const D results[4] = {CONVERTED(v[0]), CONVERTED(v[1]), CONVERTED(v[2]), CONVERTED(v[3])};
        KN_QUAD_STORE(D, results, d)
#endif
    }
}

#endif
