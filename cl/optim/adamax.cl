/* optim/adamax.cl - one step of Adamax over several parameters. Arithmetic in torch.optim.Adamax's order:
 *
 *     g  = g + weight_decay p            (not with weight_decay 0: an infinite p would make it NaN)
 *     m  = m + (1 - beta1) (g - m)
 *     u  = max(beta2 u, |g| + eps)
 *     p -= size m / u                    (size = lr / (1 - beta1^t), from the host) */
#define KN_STATES 2
#include "optim/slots.clh"

#define STEP(parameter, gradient, m, largest, unused)                     \
    {                                                                     \
        KN_UNSCALE(gradient)                                              \
        T g = KN_TOWARDS(gradient);                                       \
        g = weight_decay != 0 ? g + weight_decay * parameter : g;         \
        m = m + rest1 * (g - m);                                          \
        largest = fmax(beta2 * largest, fabs(g) + eps);                   \
        parameter -= size * (m / largest);                                \
    }

KN_KERNEL_ONCE(adamax,
               (KN_SLOTS_GIVEN, size, rest1, beta2, eps, weight_decay),
               KN_SLOTS, const T size, const T rest1, const T beta2, const T eps, const T weight_decay)
{
    KN_BIND_SLOT();
    KN_UPDATE(STEP);
}
