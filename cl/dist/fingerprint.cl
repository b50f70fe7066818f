/* dist/fingerprint.cl - numbers that tell whether the bits of two tensors are equal: FNV-1a in 64 bits, four chains for
 * each work-item. They depend on the bits and `items` alone, not on the device. W: an element's bits, unsigned. */
#include "common/koine.clh"

#define RUN 16 /* neighbouring elements of a work-item, 4 for each chain */
#define PRIME 1099511628211UL

KN_KERNEL_ONCE(fingerprint, (KN_ARG(values), KN_ARG(numbers), n, first, items),
               KN_IN(values), KN_OUT(numbers), const long n, const long first, const long items)
{
    KN_BIND_IN(W, values);
    KN_BIND_OUT(ulong, numbers);
    const long item = KN_ID(0);
    if (item >= items)
        return;
    ulong a = 14695981039346656037UL, b = a + 1, c = a + 2, d = a + 3;
    long i = item * RUN;
    for (; i + RUN <= n; i += items * RUN)
        for (int k = 0; k < RUN; k += 4) {
            a = (a ^ (ulong)values[i + k]) * PRIME;
            b = (b ^ (ulong)values[i + k + 1]) * PRIME;
            c = (c ^ (ulong)values[i + k + 2]) * PRIME;
            d = (d ^ (ulong)values[i + k + 3]) * PRIME;
        }
    for (; i < n; i++)
        a = (a ^ (ulong)values[i]) * PRIME;
    numbers[first + item] = ((a * PRIME ^ b) * PRIME ^ c) * PRIME ^ d;
}
