/* ops/rnn/steps.c - the steps of a layer: which rows of its tensors each has, and the choice of an implementation. */
#include "ops/rnn/rnn.h"

int kn_rnn_place(const kn_rnn_kind *kind, int input)
{
    const bool is_lstm = kind->cell == KN_RNN_LSTM;

    if (input <= KN_RNN_H0)
        return input;
    if (input == KN_RNN_LENGTHS)
        return kind->is_single ? -1 : is_lstm ? KN_RNN_LENGTHS : KN_RNN_H0 + 1;
    return is_lstm && (input == KN_RNN_C0 || !kind->is_single) ? input : -1;
}

kn_rnn_place_in_time kn_rnn_step_at(const kn_rnn_pass *pass, int64_t step)
{
    /* The backward pass undoes the last step first. */
    const bool falls = pass->reverse != pass->is_backward;
    const int64_t time = falls ? pass->size.steps - 1 - step : step;

    return pass->reverse ? (kn_rnn_place_in_time){time, time + 1, time} : (kn_rnn_place_in_time){time, time, time + 1};
}

kn_rnn_step kn_rnn_step_of(const kn_rnn_pass *pass, kn_rnn_place_in_time at)
{
    return (kn_rnn_step){.batch = pass->size.batch,
                         .hidden = pass->size.hidden,
                         .time = at.time,
                         .steps = pass->size.steps,
                         .has_bias = pass->bias_hh != NULL,
                         .has_gradient = pass->is_backward && pass->output != NULL,
                         .has_lengths = pass->lengths != NULL,
                         .has_output = !pass->is_backward && pass->output != NULL};
}

kn_arg kn_rnn_row(const kn_tensor *t, int64_t row, const kn_tensor *instead)
{
    if (!t)
        return kn_arg_tensor(instead);
    const int64_t elements = kn_shape_numel(t->ndim - 1, t->shape + 1);
    return kn_arg_buffer(t->storage->buffer, (t->offset + row * elements) * (int64_t)kn_dtype_size(t->dtype));
}

static const kn_implementation rows[] = {
    {.name = "fused",
     .supports = kn_rnn_supports_fused,
     .prefers = kn_rnn_prefers_fused,
     .run = kn_rnn_fused,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "reference", .run = kn_rnn_by_products},
};
const kn_implementation_table kn_rnn_implementations = KN_IMPLEMENTATION_TABLE("rnn", rows, KN_FAMILY_MATMUL, NULL);

kn_status kn_rnn_run(kn_stream *stream, const kn_rnn_pass *pass)
{
    if (pass->size.steps * pass->size.batch == 0)
        return KN_OK;
    return kn_run_implementation(&kn_rnn_implementations, stream, pass);
}
