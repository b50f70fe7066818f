/* reduce/max_gpu.cl - reduce/max.cl for devices with work-groups: maxima over the middle of [outer, n, inner] and where they are. NaN counts as the largest; the
 * first among equals wins.
 *
 * Four loads are under way at a time; 9 instructions an element of a row on NVIDIA's sm_90. The middle may be cut into chunks: a second launch takes the maxima of the
 * chunks' maxima, and their places from `places`. */
#include "common/divide.clh"
#include "common/koine.clh"
#include "reduce/max_run.clh"

/* The better of (best, at) and (v, place). */
#define TAKE(v, place)         \
    if (BEATS(v, best)) {      \
        best = (v);            \
        at = (place);          \
    }

/* The largest of run[first * stride], run[(first + step) * stride], ..., `count` elements there are at all, and its place. */
static int max_share(const global T *run, int count, long stride, int first, int step, T *value)
{
    const int last = count - 1;
    int at = min(first, last), k = first + step;
    T best = run[at * stride];

    for (; k + 3 * step < count; k += 4 * step) {
        const global T *p = run + k * stride;
        const long far = step * stride;
        const T a = p[0], b = p[far], c = p[2 * far], d = p[3 * far];
        TAKE(a, k)
        TAKE(b, k + step)
        TAKE(c, k + 2 * step)
        TAKE(d, k + 3 * step)
    }
    if (k < count) { /* three at most, the last one again where there are fewer */
        const int second = min(k + step, last), third = min(k + 2 * step, last);
        const T a = run[k * stride], b = run[second * stride], c = run[third * stride];
        TAKE(a, k)
        TAKE(b, second)
        TAKE(c, third)
    }
    *value = best;
    return at;
}

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
        for (int span = lanes / 2; span > 0; span /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < span) {
                const T other = best[me + span];
                const bool equal = other == best[me] || (IS_NAN(other) && IS_NAN(best[me]));
                if (BEATS(other, best[me]) || (equal && at[me + span] < at[me])) {
                    best[me] = other;
                    at[me] = at[me + span];
                }
            }
        }
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

/* dL/dx of the maxima: dL/dy at the place of each, 0 elsewhere. `small`: all places are below 2^31, and divided by multiplication. */
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
