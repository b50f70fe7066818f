/* reduce/max_gpu.cl - reduce/max.cl for devices with work-groups: maxima over the middle of [outer, n, inner] and where
 * they are. NaN counts as the largest; the first among equals wins.
 *
 * Four loads are under way at a time; 9 instructions an element of a row on NVIDIA's sm_90. The middle may be cut into
 * chunks: a second launch takes the maxima of the chunks' maxima, and their places from `places`. */
#include "common/divide.clh"
#include "common/koine.clh"
#include "reduce/max_team.clh"

/* inner = 1: `lanes` work-items, a power of two, take a run. */
kernel void max_rows(KN_IN(x), KN_IN(places), KN_OUT(values), KN_OUT(indices), const long outer, const long n,
                     const long length, const long chunks, const int has_places, const int lanes)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(long, places);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(long, indices);
    local T best[256];
    local int at[256];
    const int me = get_local_id(0), lane = me & (lanes - 1), teams = get_local_size(0) / lanes;
    for (long first = get_group_id(0) * (long)teams; first < outer * chunks; first += get_num_groups(0) * (long)teams) {
        const long task = min(first + me / lanes, outer * chunks - 1); /* the last one by several teams, with one result */
        const long row = chunks == 1 ? task : task / chunks, chunk = task - row * chunks;
        const long from = row * n + chunk * length;
        T value;
        at[me] = max_share(x + from, (int)min(length, n - chunk * length), 1, lane, lanes, &value);
        best[me] = value;
        max_merge(best, at, lanes);
        if (lane == 0 && first + me / lanes == task) {
            values[task] = best[me];
            indices[task] = has_places ? places[from + at[me]] : chunk * length + at[me];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* A work-item per column of a chunk. */
kernel void max_columns(KN_IN(x), KN_IN(places), KN_OUT(values), KN_OUT(indices), const long outer, const long n,
                        const long inner, const long length, const long chunks, const int has_places)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(long, places);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(long, indices);
    KN_FOR(task, outer * chunks * inner)
    {
        const long piece = task / inner, row = chunks == 1 ? piece : piece / chunks, chunk = piece - row * chunks;
        const long from = (row * n + chunk * length) * inner + (task - piece * inner);
        T value;
        const long at = max_share(x + from, (int)min(length, n - chunk * length), inner, 0, 1, &value);
        values[task] = value;
        indices[task] = has_places ? places[from + at * inner] : chunk * length + at;
    }
}

/* dL/dx of the maxima: dL/dy at the place of each, 0 elsewhere. `small`: all places are below 2^31, and divided by
 * multiplication. */
kernel void max_backward(KN_IN(gradient), KN_IN(indices), KN_OUT(out), const long outer, const long n, const long inner,
                         const kn_divisor by_n, const kn_divisor by_inner, const int small)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(long, indices);
    KN_BIND_OUT(T, out);
    KN_FOR(i, outer * n * inner)
    {
        const long row = small ? (long)kn_quotient((uint)i, by_inner) : i / inner;
        const long block = small ? (long)kn_quotient((uint)row, by_n) : row / n;
        const long from = block * inner + (i - row * inner);
        out[i] = indices[from] == row - block * n ? gradient[from] : (T)0;
    }
}
