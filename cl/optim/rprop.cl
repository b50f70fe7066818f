/* optim/rprop.cl - one step of resilient propagation over several parameters, as torch.optim.Rprop: the step size of an
 * element grows while its gradient keeps its sign, and shrinks, without a step, when the sign changes. It is lr at the
 * first step of a parameter, until when it is -1. */
#define KN_STATES 2
#include "optim/slots.clh"

#define STEP(parameter, gradient, previous, size, unused)                                             \
    {                                                                                                 \
        KN_UNSCALE(gradient)                                                                          \
        T g = KN_TOWARDS(gradient);                                                                   \
        const T turn = g * previous;                                                                  \
        size = size < 0 ? lr : size;                                                                  \
        size = clamp(size * (turn > 0 ? etaplus : turn < 0 ? etaminus : (T)1), smallest, largest);    \
        g = turn < 0 ? (T)0 : g;                                                                      \
        parameter -= g > 0 ? size : g < 0 ? -size : g * size;                                         \
        previous = g;                                                                                 \
    }

KN_KERNEL_ONCE(rprop,
               (KN_SLOTS_GIVEN, lr, etaminus, etaplus, smallest, largest),
               KN_SLOTS, const T lr, const T etaminus, const T etaplus, const T smallest, const T largest)
{
    KN_BIND_SLOT();
    KN_UPDATE(STEP);
}
