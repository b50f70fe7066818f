/* norm.c - batch and layer normalisation in training: forward, the whole backward pass, and a plain copy of x beside
 * them. size: index into `layers`, what is run. */
#include <stdlib.h>

#include "bench.h"

typedef struct layer {
    bool batch; /* else layer normalisation */
    int ndim;
    int64_t shape[4];
} layer;

static const layer layers[] = {
    {true, 4, {32, 64, 32, 32}}, {true, 4, {128, 512, 4, 4}}, {true, 4, {32, 256, 14, 14}},
    {true, 2, {4096, 256}},      {false, 2, {4096, 1024}},    {false, 2, {16384, 64}},
};

enum { FORWARD, BACKWARD, COPY };

typedef struct operands {
    kn_tensor *x, *weight, *bias, *mean, *var, *y, *gradient;
} operands;

static kn_tensor *apply(const layer *l, operands *o)
{
    if (l->batch)
        return kn_batch_norm(o->x, .weight = o->weight, .bias = o->bias, .running_mean = o->mean, .running_var = o->var,
                             .training = true);
    return kn_layer_norm(o->x, KN_SHAPE(l->shape[1]), .weight = o->weight, .bias = o->bias);
}

/* Backward is timed through the tape: the record of one forward is kept. Forward records too, as in training. */
static kn_status setup(const bench_case *self, bench_state *state)
{
    const layer *l = &layers[self->size[0]];
    operands *o = calloc(1, sizeof *o);
    if (!o)
        return KN_ERR_MEMORY;
    state->data = o;
    kn_device_set_current(state->device);
    KN_SCOPE
    {
        o->x = kn_retain(kn_randn_with(l->ndim, l->shape, &(kn_tensor_options){.requires_grad = true}));
        o->weight = kn_retain(kn_ones(KN_SHAPE(l->shape[1]), .requires_grad = true));
        o->bias = kn_retain(kn_zeros(KN_SHAPE(l->shape[1]), .requires_grad = true));
        o->mean = kn_retain(kn_zeros(KN_SHAPE(l->shape[1])));
        o->var = kn_retain(kn_ones(KN_SHAPE(l->shape[1])));
        o->y = kn_retain(apply(l, o));
        o->gradient = o->y ? kn_retain(kn_randn_with(l->ndim, l->shape, &(kn_tensor_options){.dtype = KN_F32})) : NULL;
    }
    return o->gradient ? KN_OK : kn_error_status();
}

static kn_status run(const bench_case *self, bench_state *state)
{
    operands *o = state->data;
    kn_status status = KN_ERR_MEMORY;
    KN_SCOPE
    {
        if (self->size[1] == COPY) {
            status = kn_copy_(o->gradient, kn_detach(o->x));
        } else if (self->size[1] == FORWARD) {
            status = apply(&layers[self->size[0]], o) ? KN_OK : kn_error_status();
        } else {
            kn_set_grad(o->x, NULL);
            kn_set_grad(o->weight, NULL);
            kn_set_grad(o->bias, NULL);
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
    kn_release(o->bias);
    kn_release(o->mean);
    kn_release(o->var);
    kn_release(o->y);
    kn_release(o->gradient);
    free(o);
}

/* Bytes: what must be moved, each tensor once. */
#define CASE(index, text, what, label, elements, tensors)                                                              \
    {                                                                                                                  \
        .name = "norm/" text "/" label, .shape = text, .dtype = KN_F32, .bytes = 4.0 * (tensors) * (elements),         \
        .setup = setup, .run = run, .teardown = teardown, .size = {                                                    \
            index,                                                                                                     \
            what                                                                                                       \
        }                                                                                                              \
    }
#define LAYER(index, text, elements)                                                                                   \
    CASE(index, text, FORWARD, "fwd", elements, 2), CASE(index, text, BACKWARD, "bwd", elements, 3),                   \
        CASE(index, text, COPY, "copy", elements, 2)

static const bench_case cases[] = {
    LAYER(0, "batch/32,64,32,32", 32.0 * 64 * 1024),  LAYER(1, "batch/128,512,4,4", 128.0 * 512 * 16),
    LAYER(2, "batch/32,256,14,14", 32.0 * 256 * 196), LAYER(3, "batch/4096,256", 4096.0 * 256),
    LAYER(4, "layer/4096,1024", 4096.0 * 1024),       LAYER(5, "layer/16384,64", 16384.0 * 64),
};
const bench_list bench_norm = {cases, (int)(sizeof cases / sizeof cases[0])};
