/* optim/lion.cl - one step of Lion over several parameters (Chen et al., "Symbolic Discovery of Optimization
 * Algorithms", 2023):
 *
 *     p *= decay                         (1 - lr weight_decay)
 *     p -= lr sign(beta1 m + (1 - beta1) g)
 *     m  = beta2 m + (1 - beta2) g */
#define KN_STATES 1
#include "optim/slots.clh"

#define STEP(parameter, gradient, m, unused1, unused2)                                         \
    {                                                                                          \
        KN_UNSCALE(gradient)                                                                   \
        const T g = KN_TOWARDS(gradient);                                                      \
        const T direction = beta1 * m + rest1 * g;                                             \
        parameter *= decay;                                                                    \
        parameter -= direction > 0 ? lr : direction < 0 ? -lr : direction * lr;                \
        m = beta2 * m + rest2 * g;                                                             \
    }

KN_KERNEL_ONCE(lion,
               (KN_SLOTS_GIVEN, lr, beta1, rest1, beta2, rest2, decay),
               KN_SLOTS, const T lr, const T beta1, const T rest1, const T beta2, const T rest2, const T decay)
{
    KN_BIND_SLOT();
    KN_UPDATE(STEP);
}
