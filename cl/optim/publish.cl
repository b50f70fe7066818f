/* optim/publish.cl - writes the scalars of a step to memory, for optimizers composed of operators: so their replays in
 * graphs read the current ones. */
#include "common/koine.clh"

KN_KERNEL_ONCE(publish, (KN_ARG(scalars), count, s0, s1, s2, s3, s4),
               KN_OUT(scalars), const int count, const T s0, const T s1, const T s2, const T s3, const T s4)
{
    KN_BIND_OUT(T, scalars);
    const T values[] = {s0, s1, s2, s3, s4};
    if (KN_ID(0) == 0)
        for (int i = 0; i < count; i++)
            scalars[i] = values[i];
}
