/* norm/batch_count.cl - increments the batch counter, before kernels that read it and if there is nothing to
 * normalise. */
#include "common/koine.clh"

KN_KERNEL_ONCE(batch_count, (KN_ARG(counter)), KN_INOUT(counter))
{
    KN_BIND_OUT(long, counter);
    if (KN_ID(0) == 0)
        counter[0]++;
}
