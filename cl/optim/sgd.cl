/* optim/sgd.cl - one step of stochastic gradient descent over several parameters. Arithmetic in torch.optim.SGD's
 * order:
 *
 *     g  = g + weight_decay p            (not with weight_decay 0: an infinite p would make it NaN)
 *     b  = decay b + scale g             (MOMENTUM; the first step has decay 0 and scale 1)
 *     g  = b, or g + momentum b          (NESTEROV)
 *     p -= lr g */
#ifdef MOMENTUM
#define KN_STATES 1
#else
#define KN_STATES 0
#endif
#include "optim/slots.clh"

#ifdef MOMENTUM
#ifdef NESTEROV
#define DIRECTION(g, b) g += momentum * b;
#else
#define DIRECTION(g, b) g = b;
#endif
#define FOLLOW(g, buffer)                  \
    T b = decay * buffer + scale * g;      \
    buffer = b;                            \
    DIRECTION(g, b)
#else
#define FOLLOW(g, buffer)
#endif

/* One element, in place. */
#define STEP(parameter, gradient, buffer, unused1, unused2)        \
    {                                                              \
        KN_UNSCALE(gradient)                                       \
        T g = KN_TOWARDS(gradient);                                \
        g = weight_decay != 0 ? g + weight_decay * parameter : g;  \
        FOLLOW(g, buffer)                                          \
        parameter -= lr * g;                                       \
    }

/* With a count of steps on the device, its first is known here. */
#ifdef KN_STEPS
#define BIND_FIRST() const T decay = steps == 1 ? (T)0 : decay_later, scale = steps == 1 ? (T)1 : scale_later
#else
#define BIND_FIRST() const T decay = decay_later, scale = scale_later
#endif

KN_KERNEL_ONCE(sgd,
               (KN_SLOTS_GIVEN, lr, momentum, decay_later, scale_later, weight_decay),
               KN_SLOTS, const T lr, const T momentum, const T decay_later, const T scale_later, const T weight_decay)
{
    KN_BIND_SLOT();
    BIND_FIRST();
    KN_UPDATE(STEP);
}
