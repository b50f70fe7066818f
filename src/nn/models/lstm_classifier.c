/* nn/models/lstm_classifier.c - a classifier of texts: embedding, LSTM, dropout, fc. */
#include <koine/join.h>
#include <koine/shape.h>

#include "base/error.h"
#include "nn/models/build.h"

enum { EMBEDDING, LSTM, DROPOUT, FC };

typedef struct classifier {
    bool bidirectional;
} classifier;

/* The last layer's states after the last token: h_n is [layers * directions, N, hidden_size]. */
static kn_tensor *last_state(const classifier *self, kn_tensor *h_n)
{
    kn_tensor *last = kn_select(h_n, 0, -1);
    return self->bidirectional ? kn_cat(KN_TENSORS(kn_select(h_n, 0, -2), last), 1) : last;
}

/* tokens, lengths */
static kn_status forward(kn_module *m, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_tensor *found[3] = {NULL}; /* output, h_n, c_n */
    if (kn_ndim(inputs[0]) != 2)
        return kn_fail(KN_ERR_SHAPE, "LSTMClassifier: tokens must be [N, T], not of %d dimensions", kn_ndim(inputs[0]));
    kn_tensor *x = kn_apply_child(m, EMBEDDING, inputs[0]);
    KN_TRY(kn_forward_many(kn_module_child(m, LSTM), KN_TENSORS(x, NULL, NULL, inputs[1]), found, 3));
    outputs[0] = kn_apply_child(m, FC, kn_apply_child(m, DROPOUT, last_state(m->self, found[1])));
    return KN_OK;
}

kn_models_lstm_classifier_params kn_models_lstm_classifier_params_init(void)
{
    return (kn_models_lstm_classifier_params){KN_MODELS_LSTM_CLASSIFIER_DEFAULTS};
}

kn_module *kn_models_lstm_classifier_with(const kn_models_lstm_classifier_params *params)
{
    const kn_models_lstm_classifier_params *p =
        params ? params : &(kn_models_lstm_classifier_params){KN_MODELS_LSTM_CLASSIFIER_DEFAULTS};
    const kn_module_kind kind = KN_TWO_TO_ONE(forward, 1);
    if (p->vocab_size < 1 || p->num_classes < 1 || p->embedding_dim < 1 || p->hidden_size < 1)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "models_lstm_classifier: vocab_size (%lld), num_classes (%lld), "
                            "embedding_dim (%lld) and hidden_size (%lld) must be at least 1",
                            (long long)p->vocab_size, (long long)p->num_classes, (long long)p->embedding_dim,
                            (long long)p->hidden_size);
    kn_module *embedding = kn_nn_embedding(.num_embeddings = p->vocab_size, .embedding_dim = p->embedding_dim,
                                           .padding_idx = p->padding_idx);
    kn_module *lstm =
        kn_nn_lstm(.input_size = p->embedding_dim, .hidden_size = p->hidden_size, .num_layers = p->num_layers,
                   .batch_first = true, .dropout = p->dropout, .bidirectional = p->bidirectional);
    const int64_t states = p->bidirectional ? 2 * p->hidden_size : p->hidden_size;
    return kn_model_of_kind("LSTMClassifier", &kind, &(const classifier){p->bidirectional}, sizeof(classifier),
                            KN_PARTS({"embedding", embedding}, {"lstm", lstm},
                                     {"dropout", kn_nn_dropout(.p = p->dropout)},
                                     {"fc", kn_nn_linear(.in_features = states, .out_features = p->num_classes)}));
}
