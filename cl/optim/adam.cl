/* optim/adam.cl - one step of Adam over up to eight parameters. Arithmetic in torch.optim.Adam's order:
 *
 *     g  = g + weight_decay p            (not with weight_decay 0: an infinite p would make it NaN)
 *     m  = beta1 m + (1 - beta1) g
 *     v  = beta2 v + (1 - beta2) g g
 *     p -= step_size m / (sqrt(v) / correction2 + eps)
 *
 * with step_size = lr / (1 - beta1^t) and correction2 = sqrt(1 - beta2^t) from the host. AMSGRAD: the largest v so far takes v's place under the root. */
#include "optim/slots.clh"

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
    KN_FOR(i, length) {
        T g = weight_decay != 0 ? gradient[i] + weight_decay * parameter[i] : gradient[i];
        T mean = beta1 * m[i] + rest1 * g;
        T square = beta2 * v[i] + rest2 * g * g;
        m[i] = mean;
        v[i] = square;
#ifdef AMSGRAD
        square = fmax(largest[i], square);
        largest[i] = square;
#endif
        parameter[i] -= step_size * mean / (sqrt(square) / correction2 + eps);
    }
}
