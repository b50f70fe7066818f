/* reduce/max.cl - maxima over the middle of [outer, n, inner] and where they are, for any T. NaN counts as the
 * largest; the first among equals wins.
 *
 * Where places are not wanted they may be wrong.
 *
 * The middle may be cut into chunks: then `max_middle` gives [outer, chunks, inner] maxima, and `max_combine` the
 * maxima of these. */
#include "common/koine.clh"
#include "reduce/max_run.clh"

#ifdef KN_CPU

static void max_columns(const global T *x, global T *values, global long *indices, long rows, long inner, long columns,
                        long first)
{
    T best[64];
    int at[64];

    for (long j = 0; j < columns; j++) {
        best[j] = x[j];
        at[j] = 0;
    }
    for (long row = 1; row < rows; row++)
        for (long j = 0; j < columns; j++) {
            const T v = x[row * inner + j];
            const bool take = BEATS(v, best[j]);
            best[j] = take ? v : best[j];
            at[j] = take ? (int)row : at[j];
        }
    for (long j = 0; j < columns; j++) {
        values[j] = best[j];
        indices[j] = first + at[j];
    }
}

#endif

kernel void max_middle(KN_IN(x), KN_OUT(values), KN_OUT(indices), const long outer, const long n, const long inner,
                       const long length, const long chunks, const int wants_places)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(long, indices);
#ifdef KN_CPU
    const long width = 64;
#else
    const long width = 1;
#endif
    const long tiles = (inner + width - 1) / width;
    KN_FOR(task, outer * chunks * tiles)
    {
        /* 64-bit division costs as much as a short run: none where nothing is cut. */
        const long piece = tiles == 1 ? task : task / tiles, tile = tiles == 1 ? 0 : task % tiles;
        const long block = chunks == 1 ? piece : piece / chunks, chunk = chunks == 1 ? 0 : piece % chunks;
        const long rows = min(length, n - chunk * length);
        const global T *from = x + (block * n + chunk * length) * inner + tile * width;
        const long to = piece * inner + tile * width;
#ifdef KN_CPU
        if (inner > 1) {
            max_columns(from, values + to, indices + to, rows, inner, min(width, inner - tile * width), chunk * length);
            continue;
        }
        T value;
        const long at = rows >= 16 ? max_long_run(from, rows, &value, wants_places) : max_run(from, rows, 1, &value);
#else
        T value;
        const long at = max_run(from, rows, inner, &value);
#endif
        values[to] = value;
        indices[to] = chunk * length + at;
    }
}

#ifndef KN_CPU

/* inner = 1 and long runs: a work-group per run. The local size is a power of two, at most 256. */
kernel void max_rows(KN_IN(x), KN_OUT(values), KN_OUT(indices), const long outer, const long n, const long length,
                     const long chunks)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(long, indices);
    local T best[256];
    local long at[256];
    const int me = get_local_id(0), size = get_local_size(0);
    for (long task = get_group_id(0); task < outer * chunks; task += get_num_groups(0)) {
        const long chunk = task % chunks;
        const long count = min(length, n - chunk * length);
        const global T *run = x + task / chunks * n + chunk * length;
        T value = run[min((long)me, count - 1)];
        long place = min((long)me, count - 1);
        for (long k = me + size; k < count; k += size)
            if (BEATS(run[k], value)) {
                value = run[k];
                place = k;
            }
        best[me] = value;
        at[me] = place;
        for (int span = size / 2; span > 0; span /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (me < span) {
                const T other = best[me + span];
                const bool equal = other == best[me] || (IS_NAN(other) && IS_NAN(best[me]));
                if (BEATS(other, best[me]) || (equal && at[me + span] < at[me])) {
                    best[me] = other;
                    at[me] = at[me + span];
                }
            }
        }
        if (me == 0) {
            values[task] = best[0];
            indices[task] = chunk * length + at[0];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

kernel void max_combine(KN_IN(part_values), KN_IN(part_indices), KN_OUT(values), KN_OUT(indices), const long outer,
                        const long chunks, const long inner)
{
    KN_BIND_IN(T, part_values);
    KN_BIND_IN(long, part_indices);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(long, indices);
    KN_FOR(task, outer * inner)
    {
        const long from = task / inner * chunks * inner + task % inner;
        T value;
        const long chunk = max_run(part_values + from, chunks, inner, &value);
        values[task] = value;
        indices[task] = part_indices[from + chunk * inner];
    }
}

/* dL/dx of the maxima: dL/dy at the place of each, 0 elsewhere. */
kernel void max_backward(KN_IN(gradient), KN_IN(indices), KN_OUT(out), const long outer, const long n, const long inner)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(long, indices);
    KN_BIND_OUT(T, out);
    KN_FOR(row, outer * n)
    {
        const long from = row / n * inner, at = row % n;
        for (long j = 0; j < inner; j++)
            out[row * inner + j] = indices[from + j] == at ? gradient[from + j] : (T)0;
    }
}
