/* train/grad_norm.cl - the 2-norm of many gradients, in two steps: sums of squares over parts of each, up to eight
 * gradients per launch; then the total. */
#include "reduce/sum_run.clh"
#include "train/device_log.clh"

#define SLOT(i) KN_IN(gradient##i), const long length##i
#define SLOT_ARGUMENTS(i) KN_ARG(gradient##i), length##i
#define SLOT_CASE(i)                                                            \
    case i:                                                                     \
        gradient = (const global T *)(gradient##i##_base + gradient##i##_offset); \
        n = length##i;                                                          \
        break;

/* parts [gradients][count]: dimension 0 of the launch is the part (on GPUs one per work-group), dimension 1 the slot:
 * gradient `first` and those after it. */
KN_KERNEL_ONCE(norm_parts,
               (SLOT_ARGUMENTS(0), SLOT_ARGUMENTS(1), SLOT_ARGUMENTS(2), SLOT_ARGUMENTS(3), SLOT_ARGUMENTS(4),
                SLOT_ARGUMENTS(5), SLOT_ARGUMENTS(6), SLOT_ARGUMENTS(7), KN_ARG(parts), first, count),
               SLOT(0), SLOT(1), SLOT(2), SLOT(3), SLOT(4), SLOT(5), SLOT(6), SLOT(7), KN_OUT(parts),
               const long first, const long count)
{
    KN_BIND_OUT(T, parts);
    const global T *gradient = 0;
    long n = 0;
    switch (KN_ID(1)) {
        SLOT_CASE(0) SLOT_CASE(1) SLOT_CASE(2) SLOT_CASE(3)
        SLOT_CASE(4) SLOT_CASE(5) SLOT_CASE(6) SLOT_CASE(7)
    }
#ifndef KN_CPU
    local T sums[KN_SUM_GROUP];
#endif
    const long part = KN_GROUP_ID;
    const long length = (n + count - 1) / count, from = min(part * length, n), run = min(length, n - from);
    const global T *g = gradient + from;
    T total;
#define SQUARE(k) (g[k] * g[k])
#ifdef KN_CPU
#define SQUARES(k) (KN_VLOAD(g + (k)) * KN_VLOAD(g + (k)))
    KN_SUM_RUN(total, run, SQUARES, SQUARE);
    parts[(first + KN_ID(1)) * count + part] = total;
#else
    KN_SUM_RUN(total, run, SQUARE, sums);
    if (get_local_id(0) == 0)
        parts[(first + KN_ID(1)) * count + part] = total;
#endif
}

/* Each work-item sums a share of the gradients; there is one work-group. */
KN_KERNEL_ONCE(norm_total, (KN_ARG(parts), KN_ARG(cells), gradients, count, skips_infinite), KN_IN(parts),
               KN_INOUT(cells), const long gradients, const long count, const int skips_infinite)
{
    KN_BIND_IN(T, parts);
    KN_BIND_OUT(long, cells);
    T sum = 0, error = 0;
    for (long i = KN_LOCAL_ID; i < gradients; i += KN_LOCAL_SIZE) {
        T one = 0, one_error = 0;
        for (long part = 0; part < count; part++)
            KN_TWO_SUM(T, one, one_error, parts[i * count + part]);
        const T square = sum_finish(one, one_error);
        CELL(cells, KN_SCALAR_CELLS + i) = sqrt(square);
        KN_TWO_SUM(T, sum, error, square);
    }
    T total = sum_finish(sum, error);
#ifndef KN_CPU
    local T sums[KN_SUM_GROUP];
    total = sum_group(sums, total);
#endif
    if (KN_LOCAL_ID == 0)
        note_scalar(cells, sqrt(total), isfinite(total) || !skips_infinite);
}
