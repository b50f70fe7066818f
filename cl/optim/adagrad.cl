/* optim/adagrad.cl - one step of Adagrad over several parameters. Arithmetic in torch.optim.Adagrad's order:
 *
 *     g  = g + weight_decay p            (not with weight_decay 0: an infinite p would make it NaN)
 *     s  = s + g g
 *     p -= lr g / (sqrt(s) + eps)        (lr of this step, from the host) */
#define KN_STATES 1
#include "optim/slots.clh"

#define STEP(parameter, gradient, sum, unused1, unused2)                  \
    {                                                                     \
        KN_UNSCALE(gradient)                                              \
        T g = KN_TOWARDS(gradient);                                       \
        g = weight_decay != 0 ? g + weight_decay * parameter : g;         \
        sum += g * g;                                                     \
        parameter -= lr * (g / (sqrt(sum) + eps));                        \
    }

KN_KERNEL_ONCE(adagrad,
               (KN_SLOTS_GIVEN, lr, eps, weight_decay),
               KN_SLOTS, const T lr, const T eps, const T weight_decay)
{
    KN_BIND_SLOT();
    KN_UPDATE(STEP);
}
