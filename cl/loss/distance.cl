/* loss/distance.cl - the norms of the differences of all pairs of rows, without the differences in memory.
 *
 * KN_NORM selects the norm: 0, 1, 2, 3 for the largest element, 4 for any p. CPU devices compute a vector of results at
 * once, others one per work-item. Sums of more than RUN terms are added with compensation. */
#include "common/koine.clh"
#include "common/real_lanes.clh"
#include "common/two_sum.clh"
#include "loss/distance.h"

#define RUN 64

#ifdef KN_CPU
#define V TV
#define LANES 16
#define LOAD(p) KN_VLOAD(p)
#else
#define V T
#define LANES 1
#define LOAD(p) (*(p))
#endif

#if KN_NORM == 4 && defined(KN_CPU)
#define KN_VECTOR 16
#ifdef KN_USE_F64
#define KN_ELEMENT double
#else
#define KN_ELEMENT float
#endif
#include "pointwise/vector_type.clh"
#pragma push_macro("T")
#undef T
#define T KN_VECTOR_TYPE
#ifdef KN_USE_F64
#include "pointwise/vector_f64.clh"
#else
#include "pointwise/vector_f32.clh"
#endif
#include "pointwise/vector_math.clh"
#pragma pop_macro("T")
KN_ONCE V power(V a, V p) { return kn_vector_pow(a, p); }
#else
#define power pow
#endif

/* What an element d of a difference adds to s; parts of a row together; the norm. */
#if KN_NORM == 0
#define ADD(s, d) s += (d) != 0 ? (V)1 : (V)0
#define NORM(s) (s)
#elif KN_NORM == 1
#define ADD(s, d) s += fabs(d)
#define NORM(s) (s)
#elif KN_NORM == 2
#define ADD(s, d) s = fma(d, d, s)
#define NORM(s) sqrt(s)
#elif KN_NORM == 3
#define ADD(s, d) s = fabs(d) <= s ? s : fabs(d)
#define NORM(s) (s)
#else
#define ADD(s, d) s += power(fabs(d), (V)p)
#define NORM(s) power(s, (V)q)
#endif

/* The gradient of d, of a norm y with gradient g: SLOPE(c, y, d), where c is the same for all elements. That of norm 0
 * is 0, without a kernel. */
#define SIGNED(d, size) ((d) < 0 ? -(V)(size) : (d) > 0 ? (V)(size) : (d) * 0)
#if KN_NORM <= 1
#define FACTOR(g, y) (g)
#define SLOPE(c, y, d) SIGNED(d, c)
#elif KN_NORM == 2
#define FACTOR(g, y) ((y) == 0 ? (T)0 : (g) / (y))
#define SLOPE(c, y, d) ((V)(c) * (d))
#elif KN_NORM == 3
#define FACTOR(g, y) (g)
#define SLOPE(c, y, d) (fabs(d) >= (V)(y) ? SIGNED(d, c) : (d) * 0)
#else
#define FACTOR(g, y) ((y) == 0 ? (T)0 : (g))
#define SLOPE(c, y, d) ((d) == 0 ? (V)0 : SIGNED(d, c) * power(fabs(d) / (V)((y) == 0 ? (T)1 : (y)), (V)(p - 1)))
#endif

/* Where in the result of a triangle of n rows the pairs of row i are, less the other row's number. */
KN_INLINE long triangle_row(long i, long n) { return i * (2 * n - i - 1) / 2 - i - 1; }

/* x [batches, others, length] as panels of KN_PANEL rows, [batches, panels, length, KN_PANEL]; the last row repeats. */
KN_KERNEL_ONCE(pack_rows, (KN_ARG(x), KN_ARG(y), plan), KN_IN(x), KN_OUT(y), const kn_distance_plan plan)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long panels = (plan.others + KN_PANEL - 1) / KN_PANEL;
#ifdef KN_CPU
#define ROW(j) from[min(panel * KN_PANEL + (j), plan.others - 1) * plan.length]
#define FOUR(j) ROW(j), ROW((j) + 1), ROW((j) + 2), ROW((j) + 3)
    KN_FOR_ONCE(i, plan.batches * panels * plan.length)
    {
        const long k = i % plan.length, panel = i / plan.length % panels, batch = i / plan.length / panels;
        const global T *from = x + batch * plan.others * plan.length + k;
        KN_VSTORE((TV)(FOUR(0), FOUR(4), FOUR(8), FOUR(12)), y + i * KN_PANEL);
    }
#else
    KN_FOR_ONCE(i, plan.batches * panels * plan.length * KN_PANEL)
    {
        const long at = i / KN_PANEL, k = at % plan.length, panel = at / plan.length;
        const long row = min(panel % panels * KN_PANEL + i % KN_PANEL, plan.others - 1);
        y[i] = x[(panel / panels * plan.others + row) * plan.length + k];
    }
#endif
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

#if KN_NORM == 4
#define ROWS 1
#elif defined(KN_CPU)
#define ROWS 8
#else
#define ROWS 4
#endif

/* The norms of a vector of differences for each of ROWS rows: number r begins at a + at[r]. */
KN_INLINE void norms(const global T *a, const long *at, const global T *panel, long length, T p, T q, V *result)
{
    V total[ROWS], error[ROWS];
    for (int r = 0; r < ROWS; r++)
        total[r] = error[r] = (V)0;
    for (long from = 0; from < length; from += RUN) {
        const long to = min(from + RUN, length);
        V s[ROWS];
        for (int r = 0; r < ROWS; r++)
            s[r] = (V)0;
        KN_NOT_UNROLLED
        for (long k = from; k < to; k++) {
            const V b = LOAD(panel + k * KN_PANEL);
            _Pragma("unroll") for (int r = 0; r < ROWS; r++)
            {
                const V d = (V)a[at[r] + k] - b;
                ADD(s[r], d);
            }
        }
        for (int r = 0; r < ROWS; r++) {
#if KN_NORM == 3
            total[r] = s[r] <= total[r] ? total[r] : s[r];
#else
            KN_TWO_SUM(V, total[r], error[r], s[r]);
#endif
        }
    }
    for (int r = 0; r < ROWS; r++) {
        const V sum = KN_SUM_AND_ERROR(total[r], error[r]);
        result[r] = NORM(sum);
    }
}

/* Stores the results of one row with others from `other` on. */
KN_INLINE void put(V value, global T *y, const kn_distance_plan *plan, long row, long other)
{
    const long first = plan->triangle ? max(row + 1 - other, 0L) : 0, end = min((long)LANES, plan->others - other);
    global T *to = y + (plan->triangle ? triangle_row(row, plan->others) : row * plan->others) + other;
#ifdef KN_CPU
    if (first == 0) {
        store_part(value, to, end);
        return;
    }
    T values[16];
    KN_VSTORE(value, values);
    for (long j = first; j < end; j++)
        to[j] = values[j];
#else
    if (first < end)
        *to = value;
#endif
}

/* Work-items take turns, since a triangle's panels have more and more rows. */
KN_KERNEL_ONCE(distances, (KN_ARG(x1), KN_ARG(panels), KN_ARG(y), plan, p, q), KN_IN(x1), KN_IN(panels), KN_OUT(y),
               const kn_distance_plan plan, const T p, const T q)
{
    KN_BIND_IN(T, x1);
    KN_BIND_IN(T, panels);
    KN_BIND_OUT(T, y);
    const long blocks = (plan.rows + ROWS - 1) / ROWS, count = (plan.others + KN_PANEL - 1) / KN_PANEL;
    const long parts = KN_PANEL / LANES;
    for (long i = KN_ID(0); i < plan.batches * count * blocks * parts; i += KN_SIZE(0)) {
        const long lane = i % parts, row = i / parts % blocks * ROWS, panel = i / parts / blocks;
        const long other = panel % count * KN_PANEL + lane, batch = panel / count;
        if (other >= plan.others || (plan.triangle && row >= min(other + LANES, plan.others) - 1))
            continue;
        long at[ROWS];
        V values[ROWS];
        for (int r = 0; r < ROWS; r++)
            at[r] = (batch * plan.rows + min(row + r, plan.rows - 1)) * plan.length;
        norms(x1, at, panels + panel * plan.length * KN_PANEL + lane, plan.length, p, q, values);
        for (int r = 0; r < ROWS && row + r < plan.rows; r++)
            put(values[r], y + batch * plan.rows * plan.others, &plan, row + r, other);
    }
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

#if KN_NORM == 4 || !defined(KN_CPU)
#define VECTORS 1
#else
#define VECTORS 4
#endif

/* The others of a row whose results are in memory from `at` on, `step` apart, and each step shorter by `fall`. */
typedef struct others_run {
    long from, to, at, step, fall;
} others_run;

/* x1's gradient: for each row and some vectors of its elements, the sum over the others. */
KN_INLINE void slopes(const global T *x1, const global T *x2, const global T *g, const global T *y, global T *out,
                      const others_run *runs, const kn_distance_plan *plan, long left, const int vectors, T p)
{
    V a[VECTORS], total[VECTORS], error[VECTORS], s[VECTORS];
    const bool is_whole = vectors > 1; /* else one vector, of which `left` elements exist */
    for (int v = 0; v < vectors; v++) {
#ifdef KN_CPU
        a[v] = is_whole ? KN_VLOAD(x1 + 16 * v) : load_part(x1, left, 0, (T)0);
#else
        a[v] = *x1;
#endif
        s[v] = total[v] = error[v] = (V)0;
    }
    for (int part = 0; part < 2; part++) {
        const others_run run = runs[part];
        long at = run.at, step = run.step;
        for (long from = run.from; from < run.to; from += RUN) {
            KN_NOT_UNROLLED
            for (long j = from; j < min(from + RUN, run.to); j++, at += step, step -= run.fall) {
                const T of_pair = y[at], c = FACTOR(g[at], of_pair);
                const global T *b = x2 + j * plan->length;
                _Pragma("unroll") for (int v = 0; v < vectors; v++)
                {
#ifdef KN_CPU
                    const long room = left + (plan->others - 1 - j) * plan->length;
                    const V d = a[v] - (is_whole ? KN_VLOAD(b + 16 * v) : load_part(b, left, room, (T)0));
#else
                    const V d = a[v] - *b;
#endif
                    s[v] += SLOPE(c, of_pair, d);
                }
            }
            for (int v = 0; v < vectors; v++) {
                KN_TWO_SUM(V, total[v], error[v], s[v]);
                s[v] = (V)0;
            }
        }
    }
    for (int v = 0; v < vectors; v++) {
        const V sum = KN_SUM_AND_ERROR(total[v], error[v]);
#ifdef KN_CPU
        store_part(sum, out + 16 * v, is_whole ? 16 : left);
#else
        *out = sum;
#endif
    }
}

KN_KERNEL_ONCE(distances_backward, (KN_ARG(x1), KN_ARG(x2), KN_ARG(g), KN_ARG(y), KN_ARG(out), plan, p),
               KN_IN(x1), KN_IN(x2), KN_IN(g), KN_IN(y), KN_OUT(out), const kn_distance_plan plan, const T p)
{
    KN_BIND_IN(T, x1);
    KN_BIND_IN(T, x2);
    KN_BIND_IN(T, g);
    KN_BIND_IN(T, y);
    KN_BIND_OUT(T, out);
    const long chunk = VECTORS * LANES, chunks = (plan.length + chunk - 1) / chunk;
    KN_FOR_ONCE(i, plan.batches * plan.rows * chunks)
    {
#ifdef KN_CPU /* the others' elements of a chunk stay in the cache */
        const long row = i % plan.rows, part = i / plan.rows % chunks, batch = i / plan.rows / chunks;
#else
        const long part = i % chunks, row = i / chunks % plan.rows, batch = i / chunks / plan.rows;
#endif
        const long k = part * chunk, at = (batch * plan.rows + row) * plan.length;
        const long result = batch * plan.rows * plan.others;
        const others_run all = {0, plan.others, result + row * plan.row_pitch, plan.other_pitch, 0};
        const others_run before = {0, row, row - 1, plan.others - 2, 1};
        const others_run after = {row + 1, plan.others, triangle_row(row, plan.others) + row + 1, 1, 0};
        const others_run runs[2] = {plan.triangle ? before : all, plan.triangle ? after : (others_run){0, 0, 0, 0, 0}};
        const global T *others = x2 + batch * plan.others * plan.length + k;
        if (VECTORS > 1 && k + chunk <= plan.length) {
            slopes(x1 + at + k, others, g, y, out + at + k, runs, &plan, chunk, VECTORS, p);
            continue;
        }
        for (long j = 0; j < chunk && k + j < plan.length; j += LANES)
            slopes(x1 + at + k + j, others + j, g, y, out + at + k + j, runs, &plan, plan.length - k - j, 1, p);
    }
}
