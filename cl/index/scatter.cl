/* index/scatter.cl - scattering into a table by index. Compiled in: T, INDEX, MODE. */
#include "common/prefetch.clh"
#include "index/walk.clh"

/* What becomes of an element and a value, by mode (kn_index_mode). */
#if MODE == 1
#define COMBINE(a, b) ((a) + (b))
#elif MODE == 2
#define COMBINE(a, b) ((a) * (b))
#elif MODE == 3
#define COMBINE(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#elif MODE == 4
#define COMBINE(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#else
#define COMBINE(a, b) (b)
#endif

/* A line of one element, whose indices are all in one range. */
#define KN_SCATTER(p, of_step, from_step, step)                                                                        \
    {                                                                                                                  \
        const long given = of[(p) * (of_step)], at = given < 0 ? given + added : given;                                \
        if ((ulong)at < (ulong)size)                                                                                   \
            to[at * (step)] = COMBINE(to[at * (step)], from[(p) * (from_step)]);                                       \
        else                                                                                                           \
            kn_report_index(fault, given, size);                                                                       \
    }
#define KN_SCATTER_ALONG(p) KN_SCATTER(p, 1, 1, 1)

static inline void kn_scatter_line(global T *to, const global INDEX *of, long of_step, const global T *from,
                                   long from_step, const kn_index_walk *w, KN_FAULT)
{
    const long step = w->step, places = w->places, size = w->size, added = w->wraps ? size : 0;
    if (of_step == 1 && from_step == 1 && step == 1) {
        KN_BY_FOUR(places, KN_SCATTER_ALONG)
    } else {
        for (long p = 0; p < places; p++)
            KN_SCATTER(p, of_step, from_step, step)
    }
}

/* The same where it takes one of several ranges of indices. It first lists the places that fall into its own, without a
 * branch that the processor would often guess wrongly. */
#define KN_LISTED 256
static inline void kn_scatter_part(global T *to, const global INDEX *of, long of_step, const global T *from,
                                   long from_step, long low, long high, const kn_index_walk *w, KN_FAULT)
{
    const long step = w->step, places = w->places, size = w->size, added = w->wraps ? size : 0;
    for (long start = 0; start < places; start += KN_LISTED) {
        const int n = (int)min(places - start, (long)KN_LISTED);
        short list[KN_LISTED], own[KN_LISTED];
        int listed = 0, outside = 0;
        for (int i = 0; i < n; i++) {
            const long given = of[(start + i) * of_step], at = given < 0 ? given + added : given;
            own[i] = (ulong)(at - low) < (ulong)(high - low);
            outside += (ulong)at >= (ulong)size;
        }
        for (int i = 0; i < n; i++) {
            list[listed] = (short)i;
            listed += own[i];
        }
        for (int k = 0; k < listed; k++) {
            const long p = start + list[k], given = of[p * of_step], at = given < 0 ? given + added : given;
            to[at * step] = COMBINE(to[at * step], from[p * from_step]);
        }
        for (int i = 0; low == 0 && outside && i < n; i++) {
            const long given = of[(start + i) * of_step], at = given < 0 ? given + added : given;
            if ((ulong)at >= (ulong)size)
                kn_report_index(fault, given, size);
        }
    }
}

#ifdef KN_CPU

static inline void kn_combine_row(global T *to, long to_step, const global T *from, long from_step, long n)
{
    if (to_step == 1 && from_step == 1)
        for (long i = 0; i < n; i++)
            to[i] = COMBINE(to[i], from[i]);
    else if (to_step == 1 && from_step == 0) {
        const T value = *from;
        for (long i = 0; i < n; i++)
            to[i] = COMBINE(to[i], value);
    } else
        for (long i = 0; i < n; i++)
            to[i * to_step] = COMBINE(to[i * to_step], from[i * from_step]);
}

/* What `n` neighbours have before the first value, for each index from `low` to `high`: zeros, or what `first` has. A
 * run is copied by kn_copy_row, which has a loop for each case: of a single loop the compiler may make masked loads,
 * which take a hundred times as long where nothing can be read. */
static inline void kn_fill_range(global T *restrict to, const global T *restrict first, long low, long high, long step,
                                 long n, long to_step)
{
    if ((n == 1 || to_step == 1) && n == step) { /* one run */
        kn_copy_row(to + low * n, 1, first ? first + low * n : first, 1, (high - low) * n, first != 0);
        return;
    }
    for (long at = low; at < high; at++)
        for (long i = 0; i < n; i++)
            to[at * step + i * to_step] = first ? first[at * step + i * to_step] : (T)0;
}

/* Lines of several elements that share their indices. The first bytes of a row of values are asked for some rows before
 * it is added; the processor fetches the others by itself. */
#define KN_AHEAD 4
#define KN_AHEAD_BYTES 1024
static inline void kn_scatter_rows(global T *to, const global INDEX *of, const global T *from, long n, long low,
                                   long high, const kn_index_walk *w, const bool reports, KN_FAULT)
{
    const long to_step = w->inner_strides[1], from_step = w->inner_strides[0], step = w->step, size = w->size;
    const long of_place = w->place_strides[2], from_place = w->place_strides[0], added = w->wraps ? size : 0;
    const long ahead = from_step == 1 ? min(n, (long)(KN_AHEAD_BYTES / sizeof(T))) : 0;
    long own[KN_AHEAD], place[KN_AHEAD], found = 0;
    for (long p = 0; p < w->places; p++) {
        const long given = of[p * of_place], at = given < 0 ? given + added : given, slot = found % KN_AHEAD;
        if ((ulong)(at - low) < (ulong)(high - low)) {
            if (found++ >= KN_AHEAD)
                kn_combine_row(to + own[slot] * step, to_step, from + place[slot] * from_place, from_step, n);
            own[slot] = at;
            place[slot] = p;
            for (long i = 0; i < ahead; i += 64 / sizeof(T))
                PREFETCH(from + p * from_place + i);
        } else if (reports && (ulong)at >= (ulong)size)
            kn_report_index(fault, given, size);
    }
    for (long k = max(found - KN_AHEAD, 0L); k < found; k++)
        kn_combine_row(to + own[k % KN_AHEAD] * step, to_step, from + place[k % KN_AHEAD] * from_place, from_step, n);
}

/* Those whose elements have an index each. */
static inline void kn_scatter_elements(global T *to, const global INDEX *of, const global T *from, long n, long low,
                                       long high, const kn_index_walk *w, KN_FAULT)
{
    const long to_step = w->inner_strides[1], from_step = w->inner_strides[0], of_step = w->inner_strides[2];
    const long step = w->step, size = w->size, added = w->wraps ? size : 0;
    for (long p = 0; p < w->places; p++, from += w->place_strides[0], of += w->place_strides[2])
        for (long i = 0; i < n; i++) {
            const long given = of[i * of_step], at = given < 0 ? given + added : given;
            if ((ulong)(at - low) < (ulong)(high - low))
                to[i * to_step + at * step] = COMBINE(to[i * to_step + at * step], from[i * from_step]);
            else if (low == 0 && (ulong)at >= (ulong)size)
                kn_report_index(fault, given, size);
        }
}

#endif

/* A work-item owns the elements of a part of a line whose index is in one range, and goes through all indices in order:
 * there are no conflicts, and of several values for one element the order is fixed, however the work is divided. On
 * GPUs a part is one element. */
KN_KERNEL_ONCE(index_scatter,
                   (KN_ARG(table), KN_ARG(index), KN_ARG(values), KN_ARG(initial), w, fault, fault_operation),
                   KN_INOUT(table), KN_IN(index), KN_IN(values), KN_IN(initial), const kn_index_walk w, KN_FAULT)
{
    KN_BIND_OUT(T, table);
    KN_BIND_IN(INDEX, index);
    KN_BIND_IN(T, values);
    KN_BIND_IN(T, initial);
    const long length = (w.inner + w.parts - 1) / w.parts, range = (w.size + w.ranges - 1) / w.ranges;
    const long to_step = w.inner_strides[1], from_step = w.inner_strides[0], index_step = w.inner_strides[2];
    KN_FOR_ONCE (task, w.lines * w.ranges * w.parts) {
        const long block = w.parts > 1 ? task / w.parts : task, line = w.ranges > 1 ? block / w.ranges : block;
        /* The last ranges may be empty, and then end at the size, too. */
        const long first = (task - block * w.parts) * length, n = min(length, w.inner - first);
        const long low = min((block - line * w.ranges) * range, (long)w.size), high = min(low + range, (long)w.size);
        long start[KN_INDEX_LANES];
        kn_index_start(start, line, &w);
        global T *to = table + start[1] + first * to_step;
        const global T *from = values + start[0] + first * from_step;
        const global INDEX *of = index + start[2] + first * index_step;
        if (n <= 0)
            continue;
#ifdef KN_CPU
        if (w.fills)
            kn_fill_range(to, w.fills > 1 ? initial + start[1] + first * to_step : 0, low, high, w.step, n, to_step);
#endif
        if (n == 1 && w.ranges == 1)
            kn_scatter_line(to, of, w.place_strides[2], from, w.place_strides[0], &w, fault, fault_operation);
        else if (n == 1)
            kn_scatter_part(to, of, w.place_strides[2], from, w.place_strides[0], low, high, &w, fault,
                            fault_operation);
#ifdef KN_CPU
        else if (index_step == 0)
            kn_scatter_rows(to, of, from, n, low, high, &w, low == 0 && first == 0, fault, fault_operation);
        else
            kn_scatter_elements(to, of, from, n, low, high, &w, fault, fault_operation);
#endif
    }
}

#ifndef KN_CPU

/* The same for few lines, whose elements share their indices: all indices are read once by a work-group, which owns a
 * range of them and `lanes` elements, a power of two. The work-items test SCAN indices each and list those of the
 * group's range in order; then groups of LANES neighbours each take the elements of one index, distributed modulo
 * GROUP / lanes. A work-item keeps the element that it changes in a register. */
#define GROUP 256
#define SCAN 4
#define WORDS (GROUP * SCAN / 32)
#define AHEAD 4 /* values in flight */

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void index_scatter_listed(KN_INOUT(table), KN_IN(index),
                                                                                    KN_IN(values),
                                                                                    const kn_index_walk w,
                                                                                    const int lanes, KN_FAULT)
{
    KN_BIND_OUT(T, table);
    KN_BIND_IN(INDEX, index);
    KN_BIND_IN(T, values);
    local uint found[WORDS];
    local int list[GROUP * SCAN], row[GROUP * SCAN];
    const int chunks = (int)((w.inner + GROUP - 1) / GROUP), ranges = (int)w.ranges;
    const int me = get_local_id(0), group = (int)get_group_id(0), part = group / chunks % ranges;
    const long range = (w.size + ranges - 1) / ranges, low = part * range;
    const int mine = me / lanes, apart = GROUP / lanes, column = group % chunks * GROUP + me % lanes;
    const bool idle = column >= w.inner;
    const bool reports = part == 0 && group % chunks == 0;
    const long to_step = w.step, from_step = w.place_strides[0], of_step = w.place_strides[2];
    int current = -1;
    T kept = 0;
    long begins[KN_INDEX_LANES];
    kn_index_start(begins, group / chunks / ranges, &w);
    values += begins[0] + column * w.inner_strides[0];
    table += begins[1] + column * w.inner_strides[1] + low * to_step;
    index += begins[2];
    for (long start = 0; start < w.places; start += GROUP * SCAN) {
        int at[SCAN];
        if (me < WORDS)
            found[me] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int i = 0; i < SCAN; i++) {
            const long j = start + i * GROUP + me, value = j < w.places ? kn_index_at(index[j * of_step], &w) : 0;
            const long of = value - low;
            if (reports && (value < 0 || value >= w.size))
                kn_report_index(fault, index[j * of_step], w.size);
            at[i] = j < w.places && of >= 0 && of < range && value < w.size ? (int)of : -1;
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
            for (int v = 0; v < GROUP / 32; v++) {
                const int bits = popcount(found[i * (GROUP / 32) + v]);
                place += v < word ? bits : 0;
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
            T next[AHEAD];
            int to[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                to[i] = k + i < hits && !idle ? row[k + i] : -1;
                if (to[i] >= 0 && (to[i] & (apart - 1)) != mine)
                    to[i] = -1;
                next[i] = to[i] >= 0 ? values[(start + list[k + i]) * from_step] : (T)0;
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                if (to[i] < 0)
                    continue;
                if (to[i] != current) {
                    if (current >= 0)
                        table[current * to_step] = kept;
                    kept = table[to[i] * to_step];
                    current = to[i];
                }
                kept = COMBINE(kept, next[i]);
            }
        }
    }
    if (current >= 0)
        table[current * to_step] = kept;
}

#endif
