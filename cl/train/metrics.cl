/* train/metrics.cl - counts of right and of wrong predictions, added to the int64 cells of an entry of the log. */
#include "common/koine.clh"

#ifdef __ENDIAN_LITTLE__
#define LOW 0
#else
#define LOW 1
#endif

/* OpenCL 1.2 has atomics of 32 bits only: the one whose addition overflows carries. Integers, so the order of the
 * additions does not matter. */
static void count(global long *cell, uint amount)
{
    volatile global uint *halves = (volatile global uint *)cell;
    const uint before = atomic_add(halves + LOW, amount);
    if (before + amount < before)
        atomic_inc(halves + 1 - LOW);
}

/* cells: right, rows. predicted [n, k, inner] has the k best classes of each row. */
KN_KERNEL_ONCE(count_right, (KN_ARG(predicted), KN_ARG(target), KN_ARG(cells), rows, inner, k, ignored),
               KN_IN(predicted), KN_IN(target), KN_INOUT(cells), const long rows, const long inner, const long k,
               const long ignored)
{
    KN_BIND_IN(long, predicted);
    KN_BIND_IN(long, target);
    KN_BIND_OUT(long, cells);
    uint right = 0, seen = 0;
    KN_FOR_ONCE (row, rows) {
        const long wanted = target[row], first = row / inner * inner * k + row % inner;
        bool found = false;
        for (long i = 0; i < k; i++)
            found |= predicted[first + i * inner] == wanted;
        right += wanted != ignored && found;
        seen += wanted != ignored;
    }
    count(cells, right);
    count(cells + 1, seen);
}

/* False, with a report, if one of the two is not a class; false if the row is to be ignored. */
static bool counts(long predicted, long wanted, long classes, long ignored, KN_FAULT)
{
    if (wanted == ignored)
        return false;
    const bool bad_target = wanted < 0 || wanted >= classes, bad_prediction = predicted < 0 || predicted >= classes;
    if (bad_target || bad_prediction)
        kn_report_index(fault, bad_target ? wanted : predicted, classes);
    return !bad_target && !bad_prediction;
}

KN_KERNEL_ONCE(check_classes, (KN_ARG(target), rows, classes, ignored, fault, fault_operation), KN_IN(target),
               const long rows, const long classes, const long ignored, KN_FAULT)
{
    KN_BIND_IN(long, target);
    KN_FOR_ONCE (row, rows)
        counts(0, target[row], classes, ignored, fault, fault_operation);
}

/* cells [3][classes]: rows predicted correctly, rows predicted, rows. */
KN_KERNEL_ONCE(count_classes,
               (KN_ARG(predicted), KN_ARG(target), KN_ARG(cells), rows, classes, ignored, fault, fault_operation),
               KN_IN(predicted), KN_IN(target), KN_INOUT(cells), const long rows, const long classes,
               const long ignored, KN_FAULT)
{
    KN_BIND_IN(long, predicted);
    KN_BIND_IN(long, target);
    KN_BIND_OUT(long, cells);
    KN_FOR_ONCE (row, rows) {
        const long guess = predicted[row], wanted = target[row];
        if (!counts(guess, wanted, classes, ignored, fault, fault_operation))
            continue;
        if (guess == wanted)
            count(cells + wanted, 1);
        count(cells + classes + guess, 1);
        count(cells + 2 * classes + wanted, 1);
    }
}

/* cells [true class][predicted class]. */
KN_KERNEL_ONCE(count_pairs,
               (KN_ARG(predicted), KN_ARG(target), KN_ARG(cells), rows, classes, ignored, fault, fault_operation),
               KN_IN(predicted), KN_IN(target), KN_INOUT(cells), const long rows, const long classes,
               const long ignored, KN_FAULT)
{
    KN_BIND_IN(long, predicted);
    KN_BIND_IN(long, target);
    KN_BIND_OUT(long, cells);
    KN_FOR_ONCE (row, rows) {
        const long guess = predicted[row], wanted = target[row];
        if (counts(guess, wanted, classes, ignored, fault, fault_operation))
            count(cells + wanted * classes + guess, 1);
    }
}
