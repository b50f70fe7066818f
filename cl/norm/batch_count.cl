/* norm/batch_count.cl - increments the batch counter, before kernels that read it and if there is nothing to
 * normalise. */
#include "common/koine.clh"

kernel void batch_count(KN_INOUT(counter) KN_NUMBERED)
{
    KN_NOTE_START;
    KN_BIND_OUT(long, counter);
    if (get_global_id(0) == 0)
        counter[0]++;
}
