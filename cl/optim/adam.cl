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
#ifdef OWN_STATES
#define KN_STEPS
#endif
#include "optim/slots.clh"

#ifdef AMSGRAD
#define LARGEST(i) state2[i]
#define KEEP_LARGEST(largest, square) \
    square = fmax(largest, square);   \
    largest = square;
#else
#define LARGEST(i)
#define KEEP_LARGEST(largest, square)
#endif

#ifdef MAXIMIZE
#define TOWARDS(gradient) -(gradient)
#else
#define TOWARDS(gradient) gradient
#endif
#ifdef DECOUPLED
#define DECAY(parameter, g) parameter *= weight_decay;
#else
#define DECAY(parameter, g) g = weight_decay != 0 ? g + weight_decay * parameter : g;
#endif

/* One element, in place. */
#define STEP(parameter, gradient, m, v, largest)                                        \
    {                                                                                   \
        KN_UNSCALE(gradient)                                                            \
        T g = TOWARDS(gradient);                                                        \
        DECAY(parameter, g)                                                             \
        T mean = beta1 * m + rest1 * g;                                                 \
        T square = beta2 * v + rest2 * g * g;                                           \
        m = mean;                                                                       \
        v = square;                                                                     \
        KEEP_LARGEST(largest, square)                                                   \
        parameter -= step_size * mean / (sqrt(square) / correction2 + eps);             \
    }

/* The bias corrections: the host's, or, with log(beta1) and log(beta2) from the host, those of the slot's step. */
#ifdef KN_STEPS
#define CORRECTIONS const T lr, const T log_beta1, const T log_beta2
#define BIND_CORRECTIONS()                                        \
    const T step_size = lr / -expm1((T)steps * log_beta1);        \
    const T correction2 = sqrt(-expm1((T)steps * log_beta2))
#else
#define CORRECTIONS const T step_size, const T correction2
#define BIND_CORRECTIONS()
#endif

kernel void adam(KN_SLOTS, const T beta1, const T rest1, const T beta2, const T rest2, CORRECTIONS, const T eps,
                 const T weight_decay)
{
    KN_BIND_SLOT();
    BIND_CORRECTIONS();
#ifdef KN_CPU
    KN_FOR(i, length) {
        STEP(parameter[i], gradient[i], state0[i], state1[i], LARGEST(i));
    }
#else
    if (count <= 0)
        return;
    four p = load_vec4(parameter + i, count, aligned), g4 = load_vec4(gradient + i, count, aligned);
    four m4 = load_vec4(state0 + i, count, aligned), v4 = load_vec4(state1 + i, count, aligned);
#ifdef AMSGRAD
    four most = load_vec4(state2 + i, count, aligned);
#endif
    STEP(p.x, g4.x, m4.x, v4.x, most.x);
    STEP(p.y, g4.y, m4.y, v4.y, most.y);
    STEP(p.z, g4.z, m4.z, v4.z, most.z);
    STEP(p.w, g4.w, m4.w, v4.w, most.w);
    store_vec4(m4, state0 + i, count, aligned);
    store_vec4(v4, state1 + i, count, aligned);
#ifdef AMSGRAD
    store_vec4(most, state2 + i, count, aligned);
#endif
    store_vec4(p, parameter + i, count, aligned);
#ifdef SCALED
    store_vec4(g4, gradient + i, count, aligned);
#endif
#endif
}
