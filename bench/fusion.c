/* fusion.c - chains of elementwise operations, recorded as a graph, which fuses them, and replayed: GELU written out as
 * eight operations, and dropout, a residual sum and layer normalisation; forward, and forward with backward. */
#include <stdlib.h>

#include "base/error.h"
#include "bench.h"

typedef struct chain {
    kn_tensor *x, *residual, *weight, *bias, *gradient;
    kn_tensor *y, *grads[4];
    kn_graph *graph;
} chain;

enum { GELU, NORM };

static kn_tensor *gelu(kn_tensor *x)
{
    kn_tensor *cube = kn_mul(kn_mul(x, x), x);
    kn_tensor *inner = kn_mul_scalar(kn_add(x, kn_mul_scalar(cube, 0.044715)), 0.7978845608028654);
    return kn_mul(kn_mul_scalar(x, 0.5), kn_add_scalar(kn_tanh(inner), 1));
}

static kn_status setup(const bench_case *self, bench_state *state)
{
    chain *c = calloc(1, sizeof *c);
    const int64_t rows = self->size[0], columns = self->size[1];
    const bool wanted = self->size[3] != 0;
    state->data = c;
    kn_device_set_current(state->device);
    if (!c)
        return KN_ERR_MEMORY;
    c->x = kn_randn(KN_SHAPE(rows, columns), .requires_grad = wanted);
    c->gradient = kn_randn(KN_SHAPE(rows, columns));
    if (self->size[2] == NORM) {
        c->residual = kn_randn(KN_SHAPE(rows, columns), .requires_grad = wanted);
        c->weight = kn_rand(KN_SHAPE(columns), .requires_grad = wanted);
        c->bias = kn_rand(KN_SHAPE(columns), .requires_grad = wanted);
    }
    return c->gradient ? KN_OK : kn_error_status();
}

static kn_tensor *apply(const bench_case *self, const chain *c)
{
    if (self->size[2] == GELU)
        return gelu(c->x);
    kn_tensor *sum = kn_add(kn_dropout(c->x, .p = 0.1), c->residual);
    return kn_layer_norm(sum, KN_SHAPE(self->size[1]), .weight = c->weight, .bias = c->bias);
}

static kn_status step(const bench_case *self, chain *c)
{
    KN_SCOPE;
    kn_tensor *y = apply(self, c), *leaves[] = {c->x, c->residual, c->weight, c->bias};
    kn_status status = y ? KN_OK : kn_error_status();
    if (self->size[3] && status == KN_OK)
        status = kn_backward_with(y, c->gradient, false);
    if (status == KN_OK)
        c->y = kn_retain(kn_detach(y));
    for (int i = 0; i < 4 && status == KN_OK && self->size[3]; i++)
        if (leaves[i]) {
            c->grads[i] = kn_retain(kn_grad(leaves[i]));
            status = kn_set_grad(leaves[i], NULL);
        }
    return status;
}

static void release_results(chain *c)
{
    kn_release(c->y);
    for (int i = 0; i < 4; i++)
        kn_release(c->grads[i]);
    c->y = c->grads[0] = c->grads[1] = c->grads[2] = c->grads[3] = NULL;
}

/* The first repetition is captured, too. */
static kn_status run(const bench_case *self, bench_state *state)
{
    chain *c = state->data;
    if (!c->graph) {
        KN_TRY(step(self, c)); /* compiles, makes the generator */
        release_results(c);
        c->graph = kn_graph_new();
        KN_TRY(kn_graph_capture_begin(c->graph, NULL));
        const kn_status status = step(self, c), ended = kn_graph_capture_end(c->graph);
        KN_TRY(status);
        KN_TRY(ended);
    }
    return kn_graph_replay(c->graph);
}

static kn_status put(kn_tensor_file *file, const char *name, kn_tensor *tensor)
{
    return tensor ? kn_tensor_file_put(file, name, tensor) : KN_OK;
}

static kn_status inputs(const bench_case *self, bench_state *state, kn_tensor_file *file)
{
    (void)self;
    chain *c = state->data;
    KN_TRY(put(file, "x", c->x));
    KN_TRY(put(file, "residual", c->residual));
    KN_TRY(put(file, "weight", c->weight));
    KN_TRY(put(file, "bias", c->bias));
    return put(file, "gradient", c->gradient);
}

/* What dropout draws differs between libraries. */
static kn_status results(const bench_case *self, bench_state *state, kn_tensor_file *file)
{
    chain *c = state->data;
    if (self->size[2] == NORM)
        return put(file, "bias_gradient", c->grads[3]);
    KN_TRY(put(file, "out", c->y));
    return put(file, "grad", c->grads[0]);
}

static void teardown(bench_state *state)
{
    chain *c = state->data;
    if (!c)
        return;
    kn_graph_free(c->graph);
    release_results(c);
    kn_release(c->x);
    kn_release(c->residual);
    kn_release(c->weight);
    kn_release(c->bias);
    kn_release(c->gradient);
    free(c);
}

/* Bytes: forward the inputs and the result, backward the inputs, the result's gradient and the inputs' gradients. */
#define CASE(name_, text, rows, columns, which, trains, operations, passes)                                            \
    {                                                                                                                  \
        .name = "fusion/" name_ "/" text, .shape = #rows "x" #columns, .dtype = KN_F32,                                \
        .flops = 1.0 * operations * rows * columns, .bytes = 4.0 * passes * rows * columns, .setup = setup,            \
        .run = run, .teardown = teardown, .inputs = inputs, .results = results, .size = {                              \
            rows,                                                                                                      \
            columns,                                                                                                   \
            which,                                                                                                     \
            trains                                                                                                     \
        }                                                                                                              \
    }
#define STEPS(name, which, operations, passes)                                                                         \
    CASE(name, "small/step", 256, 1024, which, 1, operations, passes),                                                 \
        CASE(name, "large/step", 4096, 1024, which, 1, operations, passes)

static const bench_case cases[] = {
    CASE("gelu_chain", "small/fwd", 256, 1024, GELU, 0, 9, 2),
    CASE("gelu_chain", "large/fwd", 4096, 1024, GELU, 0, 9, 2),
    STEPS("gelu_chain", GELU, 30, 5),
    STEPS("dropout_norm", NORM, 30, 7),
};
const bench_list bench_fusion = {cases, sizeof cases / sizeof cases[0]};
