/* optim/lamb.cl - one step of LAMB over several parameters (You et al., "Large Batch Optimization for Deep Learning",
 * 2020): after the moments m and v of Adam
 *
 *     u  = (m / correction1) / (sqrt(v) / correction2 + eps) + weight_decay p
 *     p -= lr |p| / |u| u                (the ratio is 1 if either norm is 0)
 *
 * lamb_measure finds the norms of each parameter and its u, lamb takes the step. */
#define KN_STATES 2
#include "optim/slots.clh"
#include "optim/measure.clh"

#define DIRECTION(parameter, gradient, m, v)                                                         \
    KN_UNSCALE(gradient)                                                                             \
    const T g = KN_TOWARDS(gradient);                                                                \
    const T mean = beta1 * m + rest1 * g, square = beta2 * v + rest2 * g * g;                        \
    const T direction = mean / correction1 / (sqrt(square) / correction2 + eps) + weight_decay * parameter;

#define MEASURE(parameter, gradient, m, v, unused, first, second)        \
    {                                                                    \
        DIRECTION(parameter, gradient, m, v)                             \
        first += parameter * parameter;                                  \
        second += direction * direction;                                 \
    }

#define STEP(parameter, gradient, m, v, unused)                          \
    {                                                                    \
        DIRECTION(parameter, gradient, m, v)                             \
        m = mean;                                                        \
        v = square;                                                      \
        parameter -= size * direction;                                   \
    }

#define SCALARS                                                                                                    \
    const T beta1, const T rest1, const T beta2, const T rest2, const T correction1, const T correction2, const T eps, \
        const T weight_decay, const T lr
#define SCALARS_GIVEN beta1, rest1, beta2, rest2, correction1, correction2, eps, weight_decay, lr

KN_KERNEL_ONCE(lamb_measure,
               (KN_SLOTS_GIVEN, KN_ARG(parts), SCALARS_GIVEN),
               KN_SLOTS, KN_OUT(parts), SCALARS)
{
    KN_BIND_SLOT();
    KN_MEASURE(MEASURE);
}

KN_KERNEL_ONCE(lamb,
               (KN_SLOTS_GIVEN, KN_ARG(totals), SCALARS_GIVEN),
               KN_SLOTS, KN_IN(totals), SCALARS)
{
    KN_BIND_SLOT();
    KN_BIND_IN(T, totals);
    const T parameter_norm = sqrt(totals[2 * slot]), direction_norm = sqrt(totals[2 * slot + 1]);
    const T size = lr * (parameter_norm > 0 && direction_norm > 0 ? parameter_norm / direction_norm : (T)1);
    KN_UPDATE(STEP);
}
