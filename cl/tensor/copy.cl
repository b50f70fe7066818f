/* tensor/copy.cl - copies between two strided layouts and converts.
 *
 * Compiled in: S and D, the storage types of source and destination, with S_KIND and D_KIND: 0 a plain number, 1 half (arithmetic in float), 2 bool.
 * The layout's dimensions are already merged where both sides allow; the last one is the innermost loop. */
#include "common/koine.clh"

typedef struct layout {
    long shape[8];
    long source[8];      /* strides in elements */
    long destination[8];
    int ndim, unused;
} layout;

#if S_KIND == 1
#define LOAD(at) vload_half(at, s)
#else
#define LOAD(at) s[at]
#endif

/* By way of long where a fraction goes: float to uchar wraps as in C, -1.0 gives 255, not what a saturating conversion gives. */
#if D_KIND == 1
#define STORE(at, value) vstore_half_rte((float)(value), at, d)
#elif D_KIND == 2
#define STORE(at, value) d[at] = (value) != 0
#elif defined(D_WHOLE)
#define STORE(at, value) d[at] = (D)(long)(value)
#else
#define STORE(at, value) d[at] = (D)(value)
#endif

/* One work-item copies whole rows on CPU devices; single elements elsewhere. */
kernel void copy(KN_IN(s), KN_OUT(d), layout l, long rows)
{
    KN_BIND_IN(S, s);
    KN_BIND_OUT(D, d);
    const int last = l.ndim - 1;
    const long width = l.shape[last], step_s = l.source[last], step_d = l.destination[last];
#ifdef KN_CPU
    const long count = rows;
#else
    const long count = rows * width;
#endif
    KN_FOR (i, count) {
#ifdef KN_CPU
        long rest = i, from = 0, to = 0;
#else
        long rest = i / width, from = (i % width) * step_s, to = (i % width) * step_d;
#endif
        for (int k = last - 1; k >= 0; k--) {
            const long index = rest % l.shape[k];
            rest /= l.shape[k];
            from += index * l.source[k];
            to += index * l.destination[k];
        }
#ifdef KN_CPU
        if (step_s == 1 && step_d == 1)
            for (long j = 0; j < width; j++)
                STORE(to + j, LOAD(from + j));
        else
            for (long j = 0; j < width; j++)
                STORE(to + j * step_d, LOAD(from + j * step_s));
#else
        STORE(to, LOAD(from));
#endif
    }
}
