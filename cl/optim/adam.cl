/* optim/adam.cl - one step of Adam over several parameters. Arithmetic in torch.optim.Adam's order:
 *
 *     g  = g + weight_decay p            (not with weight_decay 0: an infinite p would make it NaN)
 *     m  = beta1 m + (1 - beta1) g
 *     v  = beta2 v + (1 - beta2) g g
 *     p -= step_size m / (sqrt(v) / correction2 + eps)
 *
 * with step_size = lr / (1 - beta1^t) and correction2 = sqrt(1 - beta2^t) from the host. AMSGRAD: the largest v so far
 * replaces v under the root. */
#include "optim/slots.clh"

#ifdef AMSGRAD
#define LARGEST(i) largest[i]
#define KEEP_LARGEST(largest, square) \
    square = fmax(largest, square);   \
    largest = square;
#else
#define LARGEST(i)
#define KEEP_LARGEST(largest, square)
#endif

/* One element, in place. */
#define STEP(parameter, gradient, m, v, largest)                                        \
    {                                                                                   \
        T g = weight_decay != 0 ? gradient + weight_decay * parameter : gradient;       \
        T mean = beta1 * m + rest1 * g;                                                 \
        T square = beta2 * v + rest2 * g * g;                                           \
        m = mean;                                                                       \
        v = square;                                                                     \
        KEEP_LARGEST(largest, square)                                                   \
        parameter -= step_size * mean / (sqrt(square) / correction2 + eps);             \
    }

kernel void adam(KN_SLOTS, KN_INOUT(exp_avg), KN_INOUT(exp_avg_sq),
#ifdef AMSGRAD
                 KN_INOUT(max_exp_avg_sq),
#endif
                 const T beta1, const T rest1, const T beta2, const T rest2, const T step_size, const T correction2,
                 const T eps, const T weight_decay)
{
    KN_BIND_SLOT();
    KN_BIND_OUT(T, exp_avg);
    KN_BIND_OUT(T, exp_avg_sq);
    global T *m = exp_avg + start, *v = exp_avg_sq + start;
#ifdef AMSGRAD
    KN_BIND_OUT(T, max_exp_avg_sq);
    global T *largest = max_exp_avg_sq + start;
#endif
#ifdef KN_CPU
    KN_FOR(i, length) {
        STEP(parameter[i], gradient[i], m[i], v[i], LARGEST(i));
    }
#else
    if (count <= 0)
        return;
    four p = load_vec4(parameter + i, count, aligned), g4 = load_vec4(gradient + i, count, aligned);
    four m4 = load_vec4(m + i, count, aligned), v4 = load_vec4(v + i, count, aligned);
#ifdef AMSGRAD
    four most = load_vec4(largest + i, count, aligned);
#endif
    STEP(p.x, g4.x, m4.x, v4.x, most.x);
    STEP(p.y, g4.y, m4.y, v4.y, most.y);
    STEP(p.z, g4.z, m4.z, v4.z, most.z);
    STEP(p.w, g4.w, m4.w, v4.w, most.w);
    store_vec4(m4, m + i, count, aligned);
    store_vec4(v4, v + i, count, aligned);
#ifdef AMSGRAD
    store_vec4(most, largest + i, count, aligned);
#endif
    store_vec4(p, parameter + i, count, aligned);
#endif
}
