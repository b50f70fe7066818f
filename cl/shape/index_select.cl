/* shape/index_select.cl - rows of x [outer, n, inner] by index: y [outer, count, inner]. An index out of range is
 * reported and gives zeros. Compiled in: T, INDEX (long or int). */
#include "common/koine.clh"

#ifdef KN_CPU

kernel void index_select_forward(KN_IN(x), KN_IN(index), KN_OUT(y), const long outer, const long n, const long inner,
                                 const long count, KN_FAULT)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, y);
    KN_FOR (line, outer * count) {
        const long at = index[line % count];
        const int inside = at >= 0 && at < n;
        const global T *from = x + (line / count * n + (inside ? at : 0)) * inner;
        if (!inside)
            kn_report_index(fault, at, n);
        for (long i = 0; i < inner; i++)
            y[line * inner + i] = inside ? from[i] : (T)0;
    }
}

#else

#include "common/divide.clh"

/* T is the unit of copying: 16 bytes if rows are a multiple of that, else less. WIDE: more than 2^31 units. */
#if WIDE
typedef long number;
#define QUOTIENT(n, d) ((n) / (d))
#else
typedef uint number;
#define QUOTIENT(n, d) kn_quotient(n, by_##d)
#endif

kernel void index_select_forward(KN_IN(x), KN_IN(index), KN_OUT(y), const long outer, const long n, const long inner,
                                 const long count, const kn_divisor by_inner, const kn_divisor by_count, KN_FAULT)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, y);
    const number all = (number)(outer * count * inner);
    for (number i = (number)get_global_id(0); i < all; i += (number)get_global_size(0)) {
        const number line = QUOTIENT(i, inner), block = QUOTIENT(line, count);
        const long at = index[line - block * (number)count];
        T row = (T)0;
        if (at >= 0 && at < n)
            row = x[(block * n + at) * inner + (i - line * (number)inner)];
        else
            kn_report_index(fault, at, n);
        y[i] = row;
    }
}

#endif

/* dL/dx: adds each row of the gradient to the row it came from. A work-item owns `rows` rows of some columns and loops
 * over all indices in order, so there are no conflicts and the order of each sum is fixed, however the work is divided.
 * `out` starts as zero. */
kernel void index_select_backward(KN_IN(gradient), KN_IN(index), KN_INOUT(out), const long outer, const long n,
                                  const long inner, const long count, const long rows)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, out);
    const long parts = (n + rows - 1) / rows;
#ifdef KN_CPU
    KN_FOR (task, outer * parts) {
        const long o = task / parts, first = task % parts * rows, end = min(first + rows, n);
        for (long j = 0; j < count; j++) {
            const long at = index[j];
            if (at < first || at >= end)
                continue;
            global T *to = out + (o * n + at) * inner;
            const global T *from = gradient + (o * count + j) * inner;
            for (long i = 0; i < inner; i++)
                to[i] += from[i];
        }
    }
#else
    KN_FOR (task, outer * parts * inner) {
        const long i = task % inner, o = task / inner / parts;
        const long first = task / inner % parts * rows, end = min(first + rows, n);
        for (long j = 0; j < count; j++) {
            const long at = index[j];
            if (at >= first && at < end)
                out[(o * n + at) * inner + i] += gradient[(o * count + j) * inner + i];
        }
    }
#endif
}

#ifndef KN_CPU

/* The same, with all indices read once by a work-group, which owns `rows` rows and `lanes` columns, a power of two: the
 * work-items test SCAN indices each and list those of the group's rows in order; then groups of LANES neighbours each
 * take a row's columns, with the rows distributed modulo GROUP / lanes. A work-item keeps the row that it adds to in a
 * register. */
#define GROUP 256
#define SCAN 4
#define WORDS (GROUP * SCAN / 32)
#define AHEAD 4 /* gradients in flight */

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
index_select_backward_listed(KN_IN(gradient), KN_IN(index), KN_INOUT(out), const long n, const long inner,
                             const long count, const int rows, const int lanes, const int parts, const int chunks)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(INDEX, index);
    KN_BIND_OUT(T, out);
    local uint found[WORDS];
    local int list[GROUP * SCAN], row[GROUP * SCAN];
    const int me = get_local_id(0), group = (int)get_group_id(0), part = group / chunks % parts;
    const long first = (long)part * rows, block = group / chunks / parts;
    const int mine = me / lanes, apart = GROUP / lanes, column = group % chunks * GROUP + me % lanes;
    const bool idle = column >= inner;
    int current = -1;
    T sum = 0;
    gradient += block * count * inner + column;
    out += (block * n + first) * inner + column;
    for (long start = 0; start < count; start += GROUP * SCAN) {
        int at[SCAN];
        if (me < WORDS)
            found[me] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int i = 0; i < SCAN; i++) {
            const long j = start + i * GROUP + me, of = j < count ? index[j] - first : -1;
            at[i] = of >= 0 && of < rows && first + of < n ? (int)of : -1;
            if (at[i] >= 0)
                atomic_or(&found[(i * GROUP + me) / 32], 1u << me % 32);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        int hits = 0;
#pragma unroll
        for (int i = 0; i < SCAN; i++) {
            const int word = me / 32;
            int place = hits;
#pragma unroll
            for (int w = 0; w < GROUP / 32; w++) {
                const int bits = popcount(found[i * (GROUP / 32) + w]);
                place += w < word ? bits : 0;
                hits += bits;
            }
            if (at[i] >= 0) {
                place += popcount(found[i * (GROUP / 32) + word] & ((1u << me % 32) - 1));
                list[place] = i * GROUP + me;
                row[place] = at[i];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < hits; k += AHEAD) {
            T added[AHEAD];
            int to[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                to[i] = k + i < hits && !idle ? row[k + i] : -1;
                if (to[i] >= 0 && (to[i] & (apart - 1)) != mine)
                    to[i] = -1;
                added[i] = to[i] >= 0 ? gradient[(start + list[k + i]) * inner] : (T)0;
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                if (to[i] < 0)
                    continue;
                if (to[i] != current) {
                    if (current >= 0)
                        out[current * inner] = sum;
                    sum = out[to[i] * inner];
                    current = to[i];
                }
                sum += added[i];
            }
        }
    }
    if (current >= 0)
        out[current * inner] = sum;
}

#endif
