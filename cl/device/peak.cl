/* device/peak.cl - measures the device's peak: fused multiply-adds on registers only, and a plain copy. V is a vector
 * of T as wide as the device's registers. */
#include "common/koine.clh"

/* CHAINS independent chains of fma hide its latency; each step is 2 * CHAINS * width(V) operations. */
#define STEP(i) a##i = fma(a##i, x, y);
KN_KERNEL_ONCE(fma_peak, (KN_ARG(sink), steps, seed), KN_OUT(sink), const long steps, const float seed)
{
    KN_BIND_OUT(T, sink);
    const V x = (V)((T)seed), y = (V)((T)0.25);
    V a0 = x, a1 = x + 1, a2 = x + 2, a3 = x + 3, a4 = x + 4, a5 = x + 5, a6 = x + 6, a7 = x + 7, a8 = x + 8,
      a9 = x + 9;
    for (long i = 0; i < steps; i++) {
        STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9)
    }
    const V sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9;
    T total = 0;
    for (int lane = 0; lane < (int)(sizeof(V) / sizeof(T)); lane++)
        total += ((const T *)&sum)[lane];
    sink[KN_ID(0)] = total;
}

KN_KERNEL_ONCE(copy_peak, (KN_ARG(source), KN_ARG(destination), n), KN_IN(source), KN_OUT(destination), const long n)
{
    KN_BIND_IN(V, source);
    KN_BIND_OUT(V, destination);
    KN_FOR_ONCE (i, n)
        destination[i] = source[i];
}
