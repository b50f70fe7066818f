/* optim/sgd.cl - one step of stochastic gradient descent over up to eight parameters. Arithmetic in torch.optim.SGD's order:
 *
 *     g  = g + weight_decay p            (not with weight_decay 0: an infinite p would make it NaN)
 *     b  = decay b + scale g             (MOMENTUM; the first step has decay 0 and scale 1)
 *     g  = b, or g + momentum b          (NESTEROV)
 *     p -= lr g
 */
#include "optim/slots.clh"

kernel void sgd(KN_SLOTS,
#ifdef MOMENTUM
                KN_INOUT(momentum_buffer),
#endif
                const T lr, const T momentum, const T decay, const T scale, const T weight_decay)
{
    KN_BIND_SLOT();
#ifdef MOMENTUM
    KN_BIND_OUT(T, momentum_buffer);
    global T *buffer = momentum_buffer + start;
#endif
    KN_FOR(i, length) {
        T g = weight_decay != 0 ? gradient[i] + weight_decay * parameter[i] : gradient[i];
#ifdef MOMENTUM
        T b = decay * buffer[i] + scale * g;
        buffer[i] = b;
#ifdef NESTEROV
        g += momentum * b;
#else
        g = b;
#endif
#endif
        parameter[i] -= lr * g;
    }
}
