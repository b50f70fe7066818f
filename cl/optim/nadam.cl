/* optim/nadam.cl - one step of NAdam over several parameters, as torch.optim.NAdam: after the moments m and v
 *
 *     d  = sqrt(v) / correction2 + eps
 *     p -= size_g g / d + size_m m / d
 *
 * with the step sizes from the host. */
#include "optim/moments.clh"

#define STEP(parameter, gradient, m, v, unused)                                \
    {                                                                          \
        KN_NEXT_MOMENTS(parameter, gradient, m, v)                             \
        const T root = sqrt(v) / correction2 + eps;                            \
        parameter -= size_g * (g / root);                                      \
        parameter -= size_m * (m / root);                                      \
    }

KN_KERNEL_ONCE(nadam,
               (KN_MOMENTS_GIVEN, correction2, size_g, size_m),
               KN_MOMENTS, const T correction2, const T size_g, const T size_m)
{
    KN_BIND_SLOT();
    KN_UPDATE(STEP);
}
