/* ops/rnn/steps.c - the steps of a layer: which rows of its tensors each has, and the choice of an implementation. */
#include <string.h>

#include "base/integer.h"
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

kn_rnn_step kn_rnn_step_of(const kn_rnn_pass *pass, int64_t time)
{
    return (kn_rnn_step){.batch = pass->size.batch,
                         .hidden = pass->size.hidden,
                         .time = pass->start + time,
                         .steps = pass->all_steps,
                         .has_bias = pass->bias_hh != NULL,
                         .has_gradient = pass->is_backward && pass->output != NULL,
                         .has_lengths = pass->lengths != NULL,
                         .has_output = !pass->is_backward && pass->output != NULL,
                         .keeps_gates = pass->keeps_gates};
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

/* --- parts of a pass ---------------------------------------------------------------------------------------------- */

kn_status kn_rnn_rows_from(kn_tensor **view, kn_tensor *t, int64_t first, int64_t count)
{
    int64_t shape[KN_MAX_DIMS];

    *view = NULL;
    if (!t)
        return KN_OK;
    memcpy(shape, t->shape, (size_t)t->ndim * sizeof *shape);
    shape[0] = count;
    return kn_tensor_view(view, t, t->ndim, shape, t->strides, t->offset + first * t->strides[0]);
}

enum { PART_BYTES = 8 << 20 };

int64_t kn_rnn_steps_at_once(const kn_tensor *like, kn_rnn_sizes size, int cell)
{
    const int64_t step = size.batch * kn_rnn_gates(cell) * size.hidden * (int64_t)kn_dtype_size(like->dtype);

    if (!kn_tensor_limits(like)->is_cpu)
        return size.steps;
    return kn_min_i64(size.steps, kn_max_i64(1, PART_BYTES / kn_max_i64(1, step)));
}

int64_t kn_rnn_start_of(const kn_rnn_pass *pass, int64_t done, int64_t count)
{
    return pass->reverse != pass->is_backward ? pass->all_steps - done - count : done;
}

/* The tensors of a pass that a part narrows, and how many rows more than steps they have. */
typedef struct narrowed {
    kn_tensor **tensor;
    int more;
    bool is_of_part; /* it has the rows of one part only, not those of all steps */
} narrowed;

kn_status kn_rnn_run_part(kn_stream *stream, const kn_rnn_pass *pass, int64_t start, int64_t count)
{
    if (count == pass->all_steps)
        return kn_rnn_run(stream, pass);
    kn_rnn_pass part = *pass;
    const bool passes = !pass->is_backward && !pass->keeps_gates;
    const narrowed all[] = {{&part.gates, 0, passes},    {&part.states, 1, passes},   {&part.cells, 1, passes},
                            {&part.news, 0, false},      {&part.output, 0, false},    {&part.d_gates, 0, true},
                            {&part.d_products, 0, true}, {&part.d_projected, 0, true}};
    const size_t number = sizeof all / sizeof *all;
    kn_status status = KN_OK;
    size_t made = 0;

    part.start = start;
    part.size.steps = count;
    for (; status == KN_OK && made < number; made++)
        status = kn_rnn_rows_from(all[made].tensor, *all[made].tensor, all[made].is_of_part ? 0 : start,
                                  count + all[made].more);
    if (status == KN_OK)
        status = kn_rnn_run(stream, &part);
    for (size_t i = 0; i < made; i++)
        kn_release(*all[i].tensor);
    return status;
}
