/* optim.c - one step of an optimizer on ResNet-18's 62 parameters, 11.7 million elements, with a gradient each. Bytes:
 * parameters, gradients and states are read, parameters and states written once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench.h"

typedef struct stepped {
    kn_module *module;
    kn_parameter_list parameters;
    kn_optim *optim;
} stepped;

static kn_status make_gradients(const stepped *s, const bench_state *state)
{
    kn_status status = KN_OK;
    KN_SCOPE;
    for (int i = 0; i < s->parameters.count && status == KN_OK; i++) {
        kn_tensor *p = s->parameters.tensors[i];
        status = kn_set_grad(p, kn_randn_with(kn_ndim(p), kn_shape(p), &(kn_tensor_options){.device = state->device}));
    }
    return status;
}

/* The optimizer is the name after the slash, with a learning rate, and momentum, if it has one. */
static kn_status setup(const bench_case *self, bench_state *state)
{
    stepped *s = calloc(1, sizeof *s);
    const char *name = strchr(self->name, '/') + 1;
    const bool has_momentum = strcmp(name, "SGD") == 0 || strcmp(name, "RMSprop") == 0;
    state->data = s;
    if (!s)
        return KN_ERR_MEMORY;
    kn_device_set_current(state->device);
    s->module = kn_models_resnet18();
    KN_TRY(kn_status_of(s->module));
    s->parameters = kn_module_parameters(s->module);
    KN_TRY(make_gradients(s, state));
    s->optim = kn_optim_named(name, s->parameters, {"lr", 1e-3}, {has_momentum ? "momentum" : "", 0.9});
    return kn_status_of(s->optim);
}

static kn_status run(const bench_case *self, bench_state *state)
{
    (void)self;
    return kn_optim_step(((stepped *)state->data)->optim);
}

static kn_status put(const bench_state *state, kn_tensor_file *file, bool gradients)
{
    const stepped *s = state->data;
    kn_status status = KN_OK;
    for (int i = 0; i < s->parameters.count && status == KN_OK; i++) {
        kn_tensor *p = s->parameters.tensors[i];
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        status = kn_tensor_file_put(file, name, p);
        snprintf(name, sizeof name, "g%d", i);
        if (gradients && status == KN_OK)
            status = kn_tensor_file_put(file, name, kn_grad(p));
    }
    return status;
}

static kn_status inputs(const bench_case *self, bench_state *state, kn_tensor_file *file)
{
    return (void)self, put(state, file, true);
}

static kn_status results(const bench_case *self, bench_state *state, kn_tensor_file *file)
{
    return (void)self, put(state, file, false);
}

static void teardown(bench_state *state)
{
    stepped *s = state->data;
    if (!s)
        return;
    kn_optim_free(s->optim);
    kn_module_free(s->module);
    free(s);
}

/* `passes`: tensors read or written. */
#define CASE(algorithm, passes)                                                                                        \
    {                                                                                                                  \
        .name = "optim/" algorithm, .shape = "ResNet-18", .dtype = KN_F32, .on_request = true,                         \
        .bytes = 4.0 * (passes)*11689512, .setup = setup, .run = run, .teardown = teardown, .inputs = inputs,          \
        .results = results                                                                                             \
    }

static const bench_case cases[] = {
    CASE("SGD", 5),   CASE("Adam", 7),  CASE("AdamW", 7),  CASE("RMSprop", 7), CASE("Adagrad", 5), CASE("Adadelta", 7),
    CASE("NAdam", 7), CASE("RAdam", 7), CASE("Adamax", 7), CASE("ASGD", 5),    CASE("Lion", 5),    CASE("LAMB", 8),
};
const bench_list bench_optim = {cases, sizeof cases / sizeof cases[0]};
