/* optim/adadelta.cl - one step of Adadelta over several parameters. Arithmetic in torch.optim.Adadelta's order:
 *
 *     g  = g + weight_decay p            (not with weight_decay 0: an infinite p would make it NaN)
 *     s  = rho s + (1 - rho) g g
 *     d  = sqrt(a + eps) / sqrt(s + eps) g
 *     a  = rho a + (1 - rho) d d
 *     p -= lr d */
#define KN_STATES 2
#include "optim/slots.clh"

#define STEP(parameter, gradient, square, changes, unused)                \
    {                                                                     \
        KN_UNSCALE(gradient)                                              \
        T g = KN_TOWARDS(gradient);                                       \
        g = weight_decay != 0 ? g + weight_decay * parameter : g;         \
        square = rho * square + rest * g * g;                             \
        const T delta = sqrt(changes + eps) / sqrt(square + eps) * g;     \
        changes = rho * changes + rest * delta * delta;                   \
        parameter -= lr * delta;                                          \
    }

KN_KERNEL_ONCE(adadelta,
               (KN_SLOTS_GIVEN, lr, rho, rest, eps, weight_decay),
               KN_SLOTS, const T lr, const T rho, const T rest, const T eps, const T weight_decay)
{
    KN_BIND_SLOT();
    KN_UPDATE(STEP);
}
