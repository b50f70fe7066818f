/* optim/average.cl - moves averages towards tensors: a += weight (x - a). The averages are the parameters of a launch,
 * the tensors its gradients. */
#define KN_STATES 0
#include "optim/slots.clh"

#define STEP(average, value, unused0, unused1, unused2) average += weight * (value - average);

KN_KERNEL_ONCE(average,
               (KN_SLOTS_GIVEN, weight),
               KN_SLOTS, const T weight)
{
    KN_BIND_SLOT();
    KN_UPDATE(STEP);
}
