/* conv.c - convolution layers, each pass on its own: forward, gradient of the input (bwd_data), gradient of the weight
 * (bwd_weights). The layers are those of AlexNet, VGG, ResNet and of the seeds' network. size: index into `layers`,
 * pass. */
#include <stdlib.h>

#include "bench.h"

typedef struct layer {
    int64_t n, c, h, w, k, r, stride, padding;
} layer;

static const layer layers[] = {
    {128, 1, 28, 28, 32, 3, 1, 0}, {128, 32, 13, 13, 64, 5, 1, 0}, {8, 3, 224, 224, 64, 7, 2, 3},
    {8, 64, 56, 56, 64, 3, 1, 1},  {8, 512, 7, 7, 512, 3, 1, 1},   {8, 64, 56, 56, 256, 1, 1, 0},
    {8, 256, 56, 56, 64, 1, 1, 0}, {4, 96, 27, 27, 256, 5, 1, 2},
};

enum { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS };

typedef struct operands {
    kn_tensor *x, *weight, *y, *gradient;
} operands;

static kn_tensor *apply(const layer *l, operands *o)
{
    return kn_conv2d(o->x, o->weight, NULL, .stride = l->stride, .padding = l->padding);
}

/* The backward passes are timed through the tape: only the operand whose gradient is wanted requires one, and the
 * record of one forward is kept. */
static kn_status setup(const bench_case *self, bench_state *state)
{
    const layer *l = &layers[self->size[0]];
    operands *o = calloc(1, sizeof *o);
    if (!o)
        return KN_ERR_MEMORY;
    state->data = o;
    KN_SCOPE
    {
        o->x = kn_retain(kn_randn(KN_SHAPE(l->n, l->c, l->h, l->w), .device = state->device,
                                  .requires_grad = self->size[1] == BACKWARD_DATA));
        o->weight = kn_retain(kn_randn(KN_SHAPE(l->k, l->c, l->r, l->r), .device = state->device,
                                       .requires_grad = self->size[1] == BACKWARD_WEIGHTS));
        o->y = kn_retain(apply(l, o));
        o->gradient = o->y ? kn_retain(kn_ones_like(o->y)) : NULL;
    }
    return o->gradient ? KN_OK : kn_error_status();
}

static kn_status run(const bench_case *self, bench_state *state)
{
    operands *o = state->data;
    kn_status status = KN_ERR_MEMORY;
    KN_SCOPE
    {
        if (self->size[1] == FORWARD) {
            status = apply(&layers[self->size[0]], o) ? KN_OK : kn_error_status();
        } else {
            kn_set_grad(o->x, NULL);
            kn_set_grad(o->weight, NULL);
            status = kn_backward_with(o->y, o->gradient, true);
        }
    }
    return status;
}

static void teardown(bench_state *state)
{
    operands *o = state->data;
    if (!o)
        return;
    kn_release(o->x);
    kn_release(o->weight);
    kn_release(o->y);
    kn_release(o->gradient);
    free(o);
}

/* p, q: the output's height and width. */
#define PASS(index, text, pass, label, n, c, k, r, p, q)                                                               \
    {                                                                                                                  \
        .name = "conv/" text "/" label, .shape = text, .dtype = KN_F32, .flops = 2.0 * n * c * k * r * r * p * q,      \
        .setup = setup, .run = run, .teardown = teardown, .size = {index, pass},                                       \
    }
#define LAYER(index, text, n, c, k, r, p, q)                                                                           \
    PASS(index, text, FORWARD, "fwd", n, c, k, r, p, q),                                                               \
        PASS(index, text, BACKWARD_DATA, "bwd_data", n, c, k, r, p, q),                                                \
        PASS(index, text, BACKWARD_WEIGHTS, "bwd_weights", n, c, k, r, p, q)

static const bench_case cases[] = {
    LAYER(0, "128,1,28,28-32,3x3", 128, 1, 32, 3, 26, 26),   LAYER(1, "128,32,13,13-64,5x5", 128, 32, 64, 5, 9, 9),
    LAYER(2, "8,3,224,224-64,7x7s2", 8, 3, 64, 7, 112, 112), LAYER(3, "8,64,56,56-64,3x3", 8, 64, 64, 3, 56, 56),
    LAYER(4, "8,512,7,7-512,3x3", 8, 512, 512, 3, 7, 7),     LAYER(5, "8,64,56,56-256,1x1", 8, 64, 256, 1, 56, 56),
    LAYER(6, "8,256,56,56-64,1x1", 8, 256, 64, 1, 56, 56),   LAYER(7, "4,96,27,27-256,5x5", 4, 96, 256, 5, 27, 27),
};
const bench_list bench_conv = {cases, sizeof cases / sizeof cases[0]};
