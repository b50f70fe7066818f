/* norm/softmax_gpu.cl - softmax and log-softmax along the middle of [outer, n, inner], and their gradients, for devices
 * with work-groups; the formulas are in norm/softmax.cl.
 *
 * With inner = 1 a team of `lanes` work-items, a power of two, processes a row; otherwise each work-item processes a
 * column, so that accesses are coalesced. Compile-time: HELD, the number of elements that a work-item keeps in
 * registers between the passes, so that memory is read once and each exponential computed once; 0 for longer rows,
 * which are read twice. With 16 elements the two reduction trees of the team, about 300 instructions per work-item,
 * cost less than the exponentials. */
#include "common/koine.clh"
#include "norm/softmax_row.clh"

/* The start of the task's elements, and whether the task exists: teams past the last one repeat it, because all of a
 * work-group must reach the barriers. */
#define TASKS_BEGIN                                                                                                     \
    local T part[KN_SUM_GROUP], other[KN_SUM_GROUP];                                                                    \
    const int lane = get_local_id(0) & (lanes - 1), teams = get_local_size(0) / lanes;                                  \
    const long tasks = outer * inner;                                                                                   \
    for (long first = get_group_id(0) * (long)teams; first < tasks; first += get_num_groups(0) * (long)teams) {          \
        const long own = first + get_local_id(0) / lanes, task = min(own, tasks - 1);                                    \
        const long row = inner == 1 ? task : task / inner, at = row * n * inner + (task - row * inner) + lane * inner;   \
        const int left = (int)min(n - lane, 0x40000000L);                                                               \
        const long far = lanes * inner;
#define TASKS_END }

#if HELD > 0

/* Does the work-item's element j exist? */
#define THERE(j) ((j) * lanes < left)

kernel void softmax_forward(KN_IN(x), KN_OUT(y), const long outer, const long n, const long inner, const int logarithm,
                            const int lanes)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    TASKS_BEGIN
        T v[HELD], largest = -INFINITY, sum = 0;
#pragma unroll
        for (int j = 0; j < HELD; j++)
            v[j] = THERE(j) ? x[at + j * far] : (T)-INFINITY;
#pragma unroll
        for (int j = 0; j < HELD; j++)
            largest = fmax(largest, v[j]);
        largest = max_team(part, largest, lanes);
#pragma unroll
        for (int j = 0; j < HELD; j++) {
            const T shifted = v[j] - largest, e = exp(shifted);
            v[j] = logarithm ? shifted : e;
            sum += THERE(j) ? e : (T)0;
        }
        sum = sum_team(other, sum, lanes);
        const T shift = log(sum), scale = 1 / sum;
#pragma unroll
        for (int j = 0; j < HELD; j++)
            if (own == task && THERE(j))
                y[at + j * far] = logarithm ? v[j] - shift : v[j] * scale;
    TASKS_END
}

kernel void softmax_backward(KN_IN(gradient), KN_IN(y), KN_OUT(out), const long outer, const long n, const long inner,
                             const int logarithm, const int lanes)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(T, y);
    KN_BIND_OUT(T, out);
    TASKS_BEGIN
        T g[HELD], v[HELD], sum = 0;
#pragma unroll
        for (int j = 0; j < HELD; j++) {
            g[j] = THERE(j) ? gradient[at + j * far] : (T)0;
            v[j] = THERE(j) ? y[at + j * far] : (T)0;
        }
#pragma unroll
        for (int j = 0; j < HELD; j++)
            sum += logarithm ? g[j] : g[j] * v[j];
        sum = sum_team(part, sum, lanes);
#pragma unroll
        for (int j = 0; j < HELD; j++)
            if (own == task && THERE(j))
                out[at + j * far] = logarithm ? g[j] - exp(v[j]) * sum : v[j] * (g[j] - sum);
    TASKS_END
}

#else

kernel void softmax_forward(KN_IN(x), KN_OUT(y), const long outer, const long n, const long inner, const int logarithm,
                            const int lanes)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    TASKS_BEGIN
        T largest, sum;
        row_share(x + (at - lane * inner), n, inner, lane, lanes, &largest, &sum);
        row_merge(part, other, lanes, &largest, &sum);
        const T shift = log(sum), scale = 1 / sum;
        const global T *from = x + at;
        global T *to = y + at;
        for (long k = lane; k < (own == task ? n : 0); k += lanes, from += far, to += far)
            *to = logarithm ? *from - largest - shift : exp(*from - largest) * scale;
    TASKS_END
}

kernel void softmax_backward(KN_IN(gradient), KN_IN(y), KN_OUT(out), const long outer, const long n, const long inner,
                             const int logarithm, const int lanes)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(T, y);
    KN_BIND_OUT(T, out);
    TASKS_BEGIN
        const global T *g = gradient + (at - lane * inner), *v = y + (at - lane * inner);
        T sum;
#define TERM(k) (logarithm ? g[(k) * inner] : g[(k) * inner] * v[(k) * inner])
        KN_SUM_SHARE(sum, n, TERM, lane, lanes);
        sum = sum_team(part, sum, lanes);
        global T *to = out + (at - lane * inner);
        for (long k = lane; k < (own == task ? n : 0); k += lanes)
            to[k * inner] = logarithm ? g[k * inner] - exp(v[k * inner]) * sum : v[k * inner] * (g[k * inner] - sum);
    TASKS_END
}

#endif
