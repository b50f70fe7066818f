/* optim/radam.cl - one step of RAdam over several parameters, as torch.optim.RAdam: after the moments m and v
 *
 *     p -= size m                                     (until the variance is tractable: rectified 0)
 *     p -= size m correction2 / (sqrt(v) + eps)       (then; the size includes the rectification) */
#include "optim/moments.clh"

#define STEP(parameter, gradient, m, v, unused)                                \
    {                                                                          \
        KN_NEXT_MOMENTS(parameter, gradient, m, v)                             \
        parameter -= size * m * (rectified != 0 ? correction2 / (sqrt(v) + eps) : (T)1); \
    }

KN_KERNEL_ONCE(radam,
               (KN_MOMENTS_GIVEN, size, correction2, rectified),
               KN_MOMENTS, const T size, const T correction2, const T rectified)
{
    KN_BIND_SLOT();
    KN_UPDATE(STEP);
}
