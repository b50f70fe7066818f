/* tensor/transpose.cl - copies between layouts whose dense dimensions differ, on CPU devices: p is dense in the source, q in the destination.
 *
 *     d[to + p * step_d + q] = s[from + q * step_s + p]
 *
 * Compiled in: E, a whole number as wide as an element, and LANES, how many of them fill a vector register. Square tiles of LANES x LANES are transposed in
 * registers: each round takes the rows' numbers to the left by one bit, row and column seen as one number, (row, column) -> (row without its top bit, top bit of
 * the column; column without it, top bit of the row), and after log2(LANES) rounds rows and columns have changed places. A task walks TILES tiles of q, so
 * that whole cache lines are written that lie side by side, along p. */
#include "common/koine.clh"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define V JOIN(E, LANES)
#define VLOAD(p) JOIN(vload, LANES)(0, p)
#define VSTORE(v, p) JOIN(vstore, LANES)(v, 0, p)
#define TILES 4

typedef struct outer {
    long shape[8], source[8], destination[8]; /* strides in elements */
    int ndim, unused;
} outer;

static void turn(V *to, const V *from)
{
#pragma unroll
    for (int i = 0; i < LANES / 2; i++) {
        to[2 * i].even = from[i].lo;
        to[2 * i].odd = from[i + LANES / 2].lo;
        to[2 * i + 1].even = from[i].hi;
        to[2 * i + 1].odd = from[i + LANES / 2].hi;
    }
}

static void tile(const global E *s, global E *d, long step_s, long step_d)
{
    V a[LANES], b[LANES];

#pragma unroll
    for (int i = 0; i < LANES; i++)
        a[i] = VLOAD(s + i * step_s);
    turn(b, a);
    turn(a, b);
#if LANES >= 8
    turn(b, a);
#if LANES >= 16
    turn(a, b);
#else
#pragma unroll
    for (int i = 0; i < LANES; i++)
        a[i] = b[i];
#endif
#endif
#pragma unroll
    for (int i = 0; i < LANES; i++)
        VSTORE(a[i], d + i * step_d);
}

static void edge(const global E *s, global E *d, long ps, long qs, long step_s, long step_d)
{
    for (long p = 0; p < ps; p++)
        for (long q = 0; q < qs; q++)
            d[p * step_d + q] = s[q * step_s + p];
}

/* `length`, a multiple of LANES: how far a task goes along p. */
kernel void transpose(KN_IN(s), KN_OUT(d), const outer o, const long count, const long ps, const long qs,
                      const long step_s, const long step_d, const long length)
{
    KN_BIND_IN(E, s);
    KN_BIND_OUT(E, d);
    const long chunks = (ps + length - 1) / length, blocks = (qs + TILES * LANES - 1) / (TILES * LANES);
    KN_FOR(task, count * chunks * blocks)
    {
        const long block = task % blocks, chunk = task / blocks % chunks;
        long rest = task / blocks / chunks, from = 0, to = 0;
        for (int k = o.ndim - 1; k >= 0; k--) {
            from += rest % o.shape[k] * o.source[k];
            to += rest % o.shape[k] * o.destination[k];
            rest /= o.shape[k];
        }
        const long end = min(ps, (chunk + 1) * length), q_end = min(qs, (block + 1) * TILES * LANES);
        long p = chunk * length;
        for (; p + LANES <= end; p += LANES) {
            long q = block * TILES * LANES;
            for (; q + LANES <= q_end; q += LANES)
                tile(s + from + q * step_s + p, d + to + p * step_d + q, step_s, step_d);
            edge(s + from + q * step_s + p, d + to + p * step_d + q, LANES, q_end - q, step_s, step_d);
        }
        const long q = block * TILES * LANES;
        edge(s + from + q * step_s + p, d + to + p * step_d + q, end - p, q_end - q, step_s, step_d);
    }
}
