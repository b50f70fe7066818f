/* train/metrics.cl - running figures that stay on the device until somebody reads them. */
#include "common/koine.clh"

#ifdef TARGET
/* Counts the rows of `output` [n, classes, inner] whose largest class, the first among equals and NaN before all (torch.argmax), is the target's [n, inner]. Each
 * work-item adds to a count of its own: no atomics, and whole numbers sum to the same in any order. */
kernel void count_correct(KN_IN(output), KN_IN(target), KN_INOUT(counts), const long n, const long classes,
                          const long inner)
{
    KN_BIND_IN(T, output);
    KN_BIND_IN(TARGET, target);
    KN_BIND_OUT(long, counts);
    long correct = 0;
    KN_FOR(row, n * inner) {
        const global T *scores = output + (row / inner) * classes * inner + row % inner;
        T best = scores[0];
        long winner = 0;
        for (long c = 1; c < classes; c++) {
            T score = scores[c * inner];
            if (score > best || (isnan(score) && !isnan(best))) {
                best = score;
                winner = c;
            }
        }
        correct += winner == (long)target[row];
    }
    counts[get_global_id(0)] += correct;
}
#else
/* sums = {sum, compensation} of weight * value, summed by Neumaier's method: the error does not grow with the number of steps.
 * updates = {how many, the first with a value that is NaN or infinite or 0, whether that was NaN}. One work-item. */
kernel void add_weighted(KN_IN(value), KN_INOUT(sums), KN_INOUT(updates), const T weight)
{
    KN_BIND_IN(T, value);
    KN_BIND_OUT(T, sums);
    KN_BIND_OUT(long, updates);
    if (get_global_id(0) != 0)
        return;
    T x = value[0] * weight, sum = sums[0], next = sum + x;
    sums[1] += fabs(sum) >= fabs(x) ? (sum - next) + x : (x - next) + sum;
    sums[0] = next;
    updates[0]++;
    if (!isfinite(value[0]) && updates[1] == 0) {
        updates[1] = updates[0];
        updates[2] = isnan(value[0]);
    }
}
#endif
