/* optim/rmsprop.cl - one step of RMSprop over several parameters. Arithmetic in torch.optim.RMSprop's order:
 *
 *     g  = g + weight_decay p            (not with weight_decay 0: an infinite p would make it NaN)
 *     s  = alpha s + (1 - alpha) g g
 *     a  = alpha a + (1 - alpha) g       (CENTERED; the root is then that of s - a a)
 *     d  = g / (sqrt(s) + eps)
 *     b  = momentum b + d                (MOMENTUM; d is then b)
 *     p -= lr d */
#if defined(MOMENTUM) && defined(CENTERED)
#define KN_STATES 3
#elif defined(MOMENTUM) || defined(CENTERED)
#define KN_STATES 2
#else
#define KN_STATES 1
#endif
#include "optim/slots.clh"

#ifdef CENTERED
#define CENTER(g, square, average)              \
    average = average + rest * (g - average);   \
    variance = square - average * average;
#else
#define CENTER(g, square, average)
#endif
#ifdef MOMENTUM
#define FOLLOW(buffer)                          \
    buffer = momentum * buffer + direction;     \
    direction = buffer;
#else
#define FOLLOW(buffer)
#endif

#define UPDATE(parameter, gradient, square, buffer, average)              \
    {                                                                     \
        KN_UNSCALE(gradient)                                              \
        T g = KN_TOWARDS(gradient);                                       \
        g = weight_decay != 0 ? g + weight_decay * parameter : g;         \
        square = alpha * square + rest * g * g;                           \
        T variance = square;                                              \
        CENTER(g, square, average)                                        \
        T direction = g / (sqrt(variance) + eps);                         \
        FOLLOW(buffer)                                                    \
        parameter -= lr * direction;                                      \
    }

/* Without momentum the average is the second state. */
#ifdef MOMENTUM
#define STEP(parameter, gradient, square, buffer, average) UPDATE(parameter, gradient, square, buffer, average)
#else
#define STEP(parameter, gradient, square, average, unused) UPDATE(parameter, gradient, square, unused, average)
#endif

KN_KERNEL_ONCE(rmsprop,
               (KN_SLOTS_GIVEN, lr, alpha, rest, eps, weight_decay, momentum),
               KN_SLOTS, const T lr, const T alpha, const T rest, const T eps, const T weight_decay, const T momentum)
{
    KN_BIND_SLOT();
    KN_UPDATE(STEP);
}
