/* tensor/transpose.cl - copies between layouts whose dense dimensions differ: p is dense in the source, q in the
 * destination.
 *
 *     d[to + p * step_d + q] = s[from + q * step_s + p]
 *
 * Compiled in: E, an integer type as wide as an element. */
#include "common/koine.clh"
#include "tensor/transpose.h"

#ifdef KN_CPU

/* Compiled in: VW, the elements of a vector register. Square tiles of VW x VW are transposed in registers. A
 * task covers TILES tiles of q, so that whole cache lines are written, and advances along p. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define V JOIN(E, VW)
#define VLOAD(p) JOIN(vload, VW)(0, p)
#define VSTORE(v, p) JOIN(vstore, VW)(v, 0, p)
#define TILES 4
#include "common/zip.clh"

static void tile(const global E *s, global E *d, long step_s, long step_d)
{
    V a[VW];

#pragma unroll
    for (int i = 0; i < VW; i++)
        a[i] = VLOAD(s + i * step_s);
    zip_transpose(a);
#pragma unroll
    for (int i = 0; i < VW; i++)
        VSTORE(a[i], d + i * step_d);
}

static void edge(const global E *s, global E *d, long ps, long qs, long step_s, long step_d)
{
    for (long p = 0; p < ps; p++)
        for (long q = 0; q < qs; q++)
            d[p * step_d + q] = s[q * step_s + p];
}

/* `length`, a multiple of VW: the elements of a task along p. */
KN_KERNEL_ONCE(transpose, (KN_ARG(s), KN_ARG(d), o, count, ps, qs, step_s, step_d, length), KN_IN(s), KN_OUT(d),
                   const kn_transpose_outer o, const long count, const long ps, const long qs, const long step_s,
                   const long step_d, const long length)
{
    KN_BIND_IN(E, s);
    KN_BIND_OUT(E, d);
    const long chunks = (ps + length - 1) / length, blocks = (qs + TILES * VW - 1) / (TILES * VW);
    KN_FOR_ONCE(task, count * chunks * blocks)
    {
        const long block = task % blocks, chunk = task / blocks % chunks;
        long rest = task / blocks / chunks, from = 0, to = 0;
        for (int k = o.ndim - 1; k >= 0; k--) {
            from += rest % o.shape[k] * o.source[k];
            to += rest % o.shape[k] * o.destination[k];
            rest /= o.shape[k];
        }
        const long end = min(ps, (chunk + 1) * length), q_end = min(qs, (block + 1) * TILES * VW);
        long p = chunk * length;
        for (; p + VW <= end; p += VW) {
            long q = block * TILES * VW;
            for (; q + VW <= q_end; q += VW)
                tile(s + from + q * step_s + p, d + to + p * step_d + q, step_s, step_d);
            edge(s + from + q * step_s + p, d + to + p * step_d + q, VW, q_end - q, step_s, step_d);
        }
        const long q = block * TILES * VW;
        edge(s + from + q * step_s + p, d + to + p * step_d + q, end - p, q_end - q, step_s, step_d);
    }
}

#else

#include "common/divide.clh"

/* Tiles of SIDE x SIDE through local memory, with rows padded by an element to avoid bank conflicts. A work-item moves
 * SIDE / LINES elements, all of them read before the first is stored: 32 registers and, with three dimensions, 33
 * instructions per element on NVIDIA's sm_90, with 4 KiB of f32 in flight per group. */
#define SIDE 32
#define LINES 4

kernel __attribute__((reqd_work_group_size(SIDE, LINES, 1))) void
transpose(KN_IN(s), KN_OUT(d), const kn_transpose_tiles t)
{
    KN_BIND_IN(E, s);
    KN_BIND_OUT(E, d);
    local E part[SIDE][SIDE + 1];
    const int x = get_local_id(0), y = get_local_id(1);
    const uint number = (uint)get_group_id(0), row = kn_quotient(number, t.along_p);
    uint rest = kn_quotient(row, t.along_q);
    const int p = (int)kn_remainder(number, row, t.along_p) * SIDE, q = (int)kn_remainder(row, rest, t.along_q) * SIDE;
    for (int k = 0; k < t.ndim; k++) {
        const uint outer = kn_quotient(rest, t.shape[k]);
        const long index = kn_remainder(rest, outer, t.shape[k]);
        s += index * t.source[k];
        d += index * t.destination[k];
        rest = outer;
    }
    s += (q + y) * t.step_s + (p + x);
    d += (p + y) * t.step_d + (q + x);
    E kept[SIDE / LINES];
#pragma unroll
    for (int i = 0; i < SIDE / LINES; i++)
        kept[i] = p + x < t.ps && q + y + i * LINES < t.qs ? s[i * LINES * t.step_s] : 0;
#pragma unroll
    for (int i = 0; i < SIDE / LINES; i++)
        part[y + i * LINES][x] = kept[i];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < SIDE / LINES; i++)
        if (q + x < t.qs && p + y + i * LINES < t.ps)
            d[i * LINES * t.step_d] = part[x][y + i * LINES];
}

#endif
