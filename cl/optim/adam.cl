/* optim/adam.cl - one step of Adam over several parameters. Arithmetic in torch.optim.Adam's order:
 *
 *     g  = g + weight_decay p            (not with weight_decay 0: an infinite p would make it NaN)
 *     m  = beta1 m + (1 - beta1) g
 *     v  = beta2 v + (1 - beta2) g g
 *     p -= step_size m / (sqrt(v) / correction2 + eps)
 *
 * with step_size = lr / (1 - beta1^t) and correction2 = sqrt(1 - beta2^t) from the host. AMSGRAD: the largest v so far
 * replaces v under the root. MAXIMIZE: -g in place of g. DECOUPLED (AdamW): in place of the first line p *=
 * weight_decay, which is then 1 - lr times the decay. */
#ifdef AMSGRAD
#define KN_STATES 3
#else
#define KN_STATES 2
#endif
#include "optim/slots.clh"

#ifdef AMSGRAD
#define KEEP_LARGEST(largest, square) \
    square = fmax(largest, square);   \
    largest = square;
#else
#define KEEP_LARGEST(largest, square)
#endif

#ifdef DECOUPLED
#define DECAY(parameter, g) parameter *= weight_decay;
#else
#define DECAY(parameter, g) g = weight_decay != 0 ? g + weight_decay * parameter : g;
#endif

/* One element, in place. */
#define STEP(parameter, gradient, m, v, largest)                             \
    {                                                                        \
        KN_UNSCALE(gradient)                                                 \
        T g = KN_TOWARDS(gradient);                                          \
        DECAY(parameter, g)                                                  \
        T mean = beta1 * m + rest1 * g;                                      \
        T square = beta2 * v + rest2 * g * g;                                \
        m = mean;                                                            \
        v = square;                                                          \
        KEEP_LARGEST(largest, square)                                        \
        parameter -= step_size * mean / (sqrt(square) / correction2 + eps);  \
    }

/* The bias corrections: the host's, or, with log(beta1) and log(beta2) from the host, those of the slot's step. */
#ifdef KN_STEPS
#define CORRECTIONS const T lr, const T log_beta1, const T log_beta2
#define CORRECTIONS_GIVEN lr, log_beta1, log_beta2
#define BIND_CORRECTIONS()                                        \
    const T step_size = lr / -expm1((T)steps * log_beta1);        \
    const T correction2 = sqrt(-expm1((T)steps * log_beta2))
#else
#define CORRECTIONS const T step_size, const T correction2
#define CORRECTIONS_GIVEN step_size, correction2
#define BIND_CORRECTIONS()
#endif

KN_KERNEL_ONCE(adam,
               (KN_SLOTS_GIVEN, beta1, rest1, beta2, rest2, CORRECTIONS_GIVEN, eps, weight_decay),
               KN_SLOTS, const T beta1, const T rest1, const T beta2, const T rest2, CORRECTIONS, const T eps,
               const T weight_decay)
{
    KN_BIND_SLOT();
    BIND_CORRECTIONS();
    KN_UPDATE(STEP);
}
