/* sequence_networks.c - one training step, and inference, of recurrent networks that classify sequences: two layers of
 * an LSTM or a GRU, and a linear layer after the last step. */
#include "bench.h"

enum { LAYERS = 2, CLASSES = 10 };
enum { LSTM, GRU };

/* The children are "rnn", with the batch first, and "fc". */
static kn_tensor *forward(kn_module *m, kn_tensor *x)
{
    kn_tensor *outputs[3] = {NULL};
    kn_forward_many(kn_module_child(m, 0), &x, 1, outputs, kn_module_output_count(kn_module_child(m, 0)));
    return kn_forward(kn_module_child(m, 1), kn_select(outputs[0], 1, -1));
}

static kn_module *classifier(int64_t features, int64_t hidden, int64_t which)
{
    kn_module *net = kn_module_new("SequenceClassifier", forward, 0, NULL);
    kn_nn_rnn_params params = kn_nn_rnn_params_init();
    params.input_size = features;
    params.hidden_size = hidden;
    params.num_layers = LAYERS;
    params.batch_first = true;
    kn_module_register_module(net, "rnn", which == LSTM ? kn_nn_lstm_with(&params) : kn_nn_gru_with(&params));
    kn_module_register_module(net, "fc", kn_nn_linear(.in_features = hidden, .out_features = CLASSES));
    return net;
}

/* size: batch, steps, features (as many are hidden), which. */
static kn_status setup(const bench_case *self, bench_state *state)
{
    bench_training *t = bench_training_new(state);
    const int64_t batch = self->size[0], steps = self->size[1], features = self->size[2];
    if (!t)
        return KN_ERR_MEMORY;
    t->module = classifier(features, features, self->size[3]);
    t->optim = t->module ? kn_optim_adam(kn_module_parameters(t->module), .lr = 0.001) : NULL;
    {
        KN_SCOPE;
        t->x = kn_retain(kn_randn(KN_SHAPE(batch, steps, features)));
        t->y = kn_retain(kn_randint(0, CLASSES, KN_SHAPE(batch)));
    }
    return t->optim && t->x && t->y ? KN_OK : kn_error_status();
}

/* Each layer has a product with its input and one with its state, of as many gates; each counts three times, but the
 * gradient of the network's input is not needed. */
#define FLOPS(batch, steps, hidden, gates)                                                                             \
    ((3.0 * 2 * LAYERS - 1) * 2.0 * (double)(batch) * (double)(steps) * (gates) * (double)(hidden) * (double)(hidden))
#define INFERENCE_FLOPS(batch, steps, hidden, gates)                                                                   \
    (2.0 * LAYERS * 2.0 * (double)(batch) * (double)(steps) * (gates) * (double)(hidden) * (double)(hidden))
#define CASE(label, batch, steps, hidden, which, work, ...)                                                            \
    {                                                                                                                  \
        .name = label, .shape = "batch " #batch ", " #steps " steps of " #hidden, .dtype = KN_F32, .setup = setup,     \
        .flops = work, .size = {batch, steps, hidden, which}, __VA_ARGS__                                              \
    }
#define NETWORK(label, batch, steps, hidden, which, gates)                                                             \
    CASE(label, batch, steps, hidden, which, FLOPS(batch, steps, hidden, gates), BENCH_TRAINING),                      \
        CASE(label "/replayed", batch, steps, hidden, which, FLOPS(batch, steps, hidden, gates), BENCH_TRAINING,       \
             .replayed = true),                                                                                        \
        CASE(label "/inference", batch, steps, hidden, which, INFERENCE_FLOPS(batch, steps, hidden, gates),            \
             BENCH_INFERENCE)

static const bench_case cases[] = {
    NETWORK("lstm", 64, 128, 256, LSTM, 4),
    NETWORK("gru", 64, 128, 256, GRU, 3),
    NETWORK("gpu/lstm", 512, 128, 256, LSTM, 4),
};
const bench_list bench_sequence_networks = {cases, sizeof cases / sizeof cases[0]};
