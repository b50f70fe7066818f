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

#ifdef MAXIMIZE
#define TOWARDS(gradient) -(gradient)
#else
#define TOWARDS(gradient) gradient
#endif

/* One element, in place. */
#define STEP(parameter, gradient, buffer)                                          \
    {                                                                              \
        KN_UNSCALE(gradient)                                                       \
        T g = TOWARDS(gradient);                                                   \
        g = weight_decay != 0 ? g + weight_decay * parameter : g;                  \
        FOLLOW(g, buffer)                                                          \
        parameter -= lr * g;                                                       \
    }

kernel void sgd(KN_SLOTS, const T lr, const T momentum, const T decay, const T scale, const T weight_decay)
{
    KN_BIND_SLOT();
#ifdef KN_CPU
    KN_FOR(i, length) {
        STEP(parameter[i], gradient[i], state0[i]);
    }
#else
    if (count <= 0)
        return;
    four p = load_vec4(parameter + i, count, aligned), g4 = load_vec4(gradient + i, count, aligned);
#ifdef MOMENTUM
    four b4 = load_vec4(state0 + i, count, aligned);
#endif
    STEP(p.x, g4.x, b4.x);
    STEP(p.y, g4.y, b4.y);
    STEP(p.z, g4.z, b4.z);
    STEP(p.w, g4.w, b4.w);
#ifdef MOMENTUM
    store_vec4(b4, state0 + i, count, aligned);
#endif
    store_vec4(p, parameter + i, count, aligned);
#ifdef SCALED
    store_vec4(g4, gradient + i, count, aligned);
#endif
#endif
}
