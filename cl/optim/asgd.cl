/* optim/asgd.cl - one step of averaged stochastic gradient descent over several parameters, as torch.optim.ASGD:
 *
 *     g  = g + weight_decay p            (not with weight_decay 0: an infinite p would make it NaN)
 *     p  = decay p - eta g               (decay = 1 - lambd eta)
 *     a  = a + mu (p - a)                (the average; with mu 1 p itself) */
#define KN_STATES 1
#include "optim/slots.clh"

#define STEP(parameter, gradient, average, unused1, unused2)                          \
    {                                                                                 \
        KN_UNSCALE(gradient)                                                          \
        T g = KN_TOWARDS(gradient);                                                   \
        g = weight_decay != 0 ? g + weight_decay * parameter : g;                     \
        parameter = parameter * decay - eta * g;                                      \
        average = mu != 1 ? average + mu * (parameter - average) : parameter;         \
    }

KN_KERNEL_ONCE(asgd,
               (KN_SLOTS_GIVEN, eta, decay, mu, weight_decay),
               KN_SLOTS, const T eta, const T decay, const T mu, const T weight_decay)
{
    KN_BIND_SLOT();
    KN_UPDATE(STEP);
}
