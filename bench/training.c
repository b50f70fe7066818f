/* training.c - benchmarks of a training step: forward, loss, backward, optimizer, repeated on one batch; and of
 * inference, the forward pass alone. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "bench.h"

bench_training *bench_training_new(bench_state *state)
{
    bench_training *t = calloc(1, sizeof *t);
    state->data = t;
    kn_device_set_current(state->device);
    if (t)
        t->criterion = bench_cross_entropy;
    return t;
}

kn_tensor *bench_cross_entropy(kn_tensor *output, kn_tensor *target) { return kn_cross_entropy(output, target); }

static void keep(bench_training *t, kn_tensor *output, kn_tensor *loss)
{
    t->output = kn_retain(output);
    t->loss = kn_retain(loss);
    t->keep = false;
}

/* The loss, and the output. */
static kn_tensor *loss_of(bench_training *t, kn_tensor *x, kn_tensor *y, kn_tensor **output)
{
    KN_AUTOCAST(t->autocasts ? KN_BF16 : kn_autocast_dtype());
    *output = kn_forward(t->module, x);
    return t->criterion(*output, y);
}

kn_status bench_training_step(bench_training *t, kn_tensor *x, kn_tensor *y)
{
    KN_SCOPE;
    kn_optim_zero_grad(t->optim);
    kn_tensor *output, *loss = loss_of(t, x, y, &output);
    kn_status status = kn_backward(loss);
    if (status == KN_OK)
        status = kn_optim_step(t->optim);
    if (status == KN_OK && t->keep)
        keep(t, output, loss);
    return status;
}

static kn_status capture(bench_training *t)
{
    t->graph = kn_graph_new();
    KN_TRY(kn_status_of(t->graph));
    KN_TRY(kn_graph_capture_begin(t->graph, NULL));
    kn_status status = bench_training_step(t, t->x, t->y), ended = kn_graph_capture_end(t->graph);
    return status == KN_OK ? ended : status;
}

kn_status bench_training_run(const bench_case *self, bench_state *state)
{
    bench_training *t = state->data;
    t->autocasts = self->dtype == KN_BF16;
    if (!self->replayed || !t->stepped) {
        t->stepped = true;
        return bench_training_step(t, t->x, t->y);
    }
    if (!t->graph)
        KN_TRY(capture(t));
    return kn_graph_replay(t->graph);
}

static kn_status put_all(kn_tensor_file *file, kn_parameter_list list)
{
    kn_status status = KN_OK;
    for (int i = 0; i < list.count && status == KN_OK; i++) {
        char name[160];
        snprintf(name, sizeof name, "module.%s", list.names[i]);
        status = kn_tensor_file_put(file, name, list.tensors[i]);
    }
    return status;
}

/* The file is written before the first step, so it can share the tensors. */
kn_status bench_training_inputs(const bench_case *self, bench_state *state, kn_tensor_file *file)
{
    (void)self;
    bench_training *t = state->data;
    kn_status status = kn_tensor_file_put(file, "x", t->x);
    if (status == KN_OK)
        status = kn_tensor_file_put(file, "y", t->y);
    if (status == KN_OK)
        status = put_all(file, kn_module_parameters(t->module));
    if (status == KN_OK)
        status = put_all(file, kn_module_buffers(t->module));
    t->keep = true;
    if (t->has_dropout)
        kn_module_train(t->module, false);
    return status;
}

static kn_status put_present_loss(bench_training *t, kn_tensor_file *file, const char *name)
{
    kn_status status = KN_ERR_STATE;

    KN_SCOPE;
    kn_tensor *output, *loss = loss_of(t, t->x, t->y, &output);
    status = loss ? kn_tensor_file_put(file, name, loss) : kn_error_status();

    return status;
}

kn_status bench_training_results(const bench_case *self, bench_state *state, kn_tensor_file *file)
{
    bench_training *t = state->data;
    kn_status status = put_present_loss(t, file, "loss_after_a_step");
    if (status == KN_OK)
        status = kn_tensor_file_put(file, "output", t->output);
    if (status == KN_OK)
        status = kn_tensor_file_put(file, "loss", t->loss);
    kn_module_train(t->module, true);
    if (status == KN_OK && self->replayed && !t->has_dropout) {
        status = bench_training_run(self, state);
        if (status == KN_OK)
            status = put_present_loss(t, file, "loss_after_a_replay");
    }
    kn_release(t->output);
    kn_release(t->loss);
    t->output = t->loss = NULL;
    return status;
}

/* --- inference ------------------------------------------------------------------------------------------------ */

kn_status bench_inference_run(const bench_case *self, bench_state *state)
{
    (void)self;
    bench_training *t = state->data;
    KN_SCOPE;
    KN_NO_GRAD;
    kn_module_train(t->module, false);
    kn_tensor *output = kn_forward(t->module, t->x);
    if (t->keep)
        keep(t, output, NULL);
    return output ? KN_OK : kn_error_status();
}

kn_status bench_inference_results(const bench_case *self, bench_state *state, kn_tensor_file *file)
{
    (void)self;
    bench_training *t = state->data;
    const kn_status status = kn_tensor_file_put(file, "output", t->output);
    kn_release(t->output);
    t->output = NULL;
    return status;
}

void bench_training_teardown(bench_state *state)
{
    bench_training *t = state->data;
    if (!t)
        return;
    kn_graph_free(t->graph);
    kn_loader_free(t->loader);
    kn_dataset_free(t->dataset);
    kn_optim_free(t->optim);
    kn_module_free(t->module);
    kn_release(t->x);
    kn_release(t->y);
    kn_release(t->output);
    kn_release(t->loss);
    free(t);
}
