/* ops/rnn/layer.c - forward of a recurrent layer: the product with its input, before the steps (rnn.h). */
#include "ops/rnn/layer.h"
#include "autograd/work.h"
#include "ops/gemm/matmul.h"

/* --- tensors of a pass -------------------------------------------------------------------------------------------- */

static kn_tensor *input_of(const kn_call *call, int input)
{
    const int place = kn_rnn_place(call->op->detail, input);
    return place >= 0 && place < call->num_inputs ? call->inputs[place] : NULL;
}

/* A tensor [..., columns] as one matrix of all its rows; `t` is contiguous. */
static kn_status as_rows(kn_tensor **matrix, kn_tensor *t)
{
    const int64_t columns = t->shape[t->ndim - 1];
    return kn_tensor_view(matrix, t, 2, (int64_t[]){kn_shape_numel(t->ndim - 1, t->shape), columns},
                          (int64_t[]){columns, 1}, t->offset);
}

/* Row `row` of a contiguous tensor. */
static kn_status row_of(kn_tensor **view, kn_tensor *t, int64_t row)
{
    return kn_tensor_view(view, t, t->ndim - 1, t->shape + 1, t->strides + 1, t->offset + row * t->strides[0]);
}

/* Row `row` = value, or 0 if that is NULL. */
static kn_status set_row(kn_tensor *t, int64_t row, const kn_tensor *value)
{
    kn_tensor *view;
    KN_TRY(row_of(&view, t, row));
    const kn_status status = value ? kn_tensor_copy(view, value) : kn_tensor_fill(view, 0);
    kn_release(view);
    return status;
}

static kn_status copy_row(kn_tensor *to, kn_tensor *t, int64_t row)
{
    kn_tensor *view;
    KN_TRY(row_of(&view, t, row));
    const kn_status status = kn_tensor_copy(to, view);
    kn_release(view);
    return status;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* The owned tensors of a forward pass; `pass` refers to them. */
typedef struct forward {
    kn_rnn_pass pass;
    kn_tensor *x, *weight_ih, *bias_ih;
    kn_tensor *factors[2]; /* x and weight_ih, or their values in bf16 */
} forward;

static void release(forward *f)
{
    kn_tensor *const all[] = {f->x,
                              f->weight_ih,
                              f->bias_ih,
                              f->factors[0],
                              f->factors[1],
                              f->pass.weight_hh,
                              f->pass.bias_hh,
                              f->pass.weight_hr,
                              f->pass.lengths,
                              f->pass.gates,
                              f->pass.states,
                              f->pass.cells,
                              f->pass.news,
                              f->pass.raw};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        kn_release(all[i]);
}

static kn_status make(kn_tensor **t, const forward *f, int64_t steps, int64_t columns)
{
    return kn_tensor_new(t, f->x->dtype, 3, (int64_t[]){steps, f->pass.size.batch, columns}, f->x->storage->device);
}

static kn_status take_inputs(forward *f, const kn_call *call)
{
    const struct {
        kn_tensor **to;
        int input;
    } taken[] = {{&f->x, KN_RNN_X},
                 {&f->weight_ih, KN_RNN_WEIGHT_IH},
                 {&f->bias_ih, KN_RNN_BIAS_IH},
                 {&f->pass.weight_hh, KN_RNN_WEIGHT_HH},
                 {&f->pass.bias_hh, KN_RNN_BIAS_HH},
                 {&f->pass.weight_hr, KN_RNN_WEIGHT_HR}};
    kn_tensor *lengths = input_of(call, KN_RNN_LENGTHS);

    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (input_of(call, taken[i].input))
            KN_TRY(kn_tensor_contiguous(taken[i].to, input_of(call, taken[i].input)));
    return lengths ? kn_tensor_cast(&f->pass.lengths, lengths, KN_I64, lengths->storage->device) : KN_OK;
}

static kn_status make_factors(forward *f, bool in_bf16)
{
    kn_tensor *const operands[] = {f->x, f->weight_ih};

    for (int i = 0; i < 2; i++)
        if (in_bf16)
            KN_TRY(kn_tensor_cast(&f->factors[i], operands[i], KN_BF16, f->x->storage->device));
        else
            f->factors[i] = kn_retain(operands[i]);
    return KN_OK;
}

/* For `steps` steps at a time. */
static kn_status make_tensors(forward *f, int64_t steps)
{
    const kn_rnn_sizes size = f->pass.size;

    KN_TRY(make(&f->pass.gates, f, steps, kn_rnn_gates(f->pass.cell) * size.hidden));
    KN_TRY(make(&f->pass.states, f, steps + 1, size.outputs));
    if (f->pass.cell == KN_RNN_LSTM)
        KN_TRY(make(&f->pass.cells, f, steps + 1, size.hidden));
    if (f->pass.cell == KN_RNN_GRU && f->pass.keeps_gates)
        KN_TRY(make(&f->pass.news, f, steps, size.hidden));
    if (f->pass.weight_hr)
        KN_TRY(
            kn_tensor_new(&f->pass.raw, f->x->dtype, 2, (int64_t[]){size.batch, size.hidden}, f->x->storage->device));
    return KN_OK;
}

/* The first `count` rows of gates = x weight_ih^T + bias_ih, of x from `start` on. */
static kn_status project_input(kn_stream *stream, const forward *f, int64_t start, int64_t count)
{
    kn_tensor *w = f->factors[1];
    const int64_t batch = f->pass.size.batch;
    kn_tensor *gates = NULL, *x = NULL;
    kn_matmul_problem product = {.bias = f->bias_ih};
    kn_status status = as_rows(&gates, f->pass.gates);

    if (status == KN_OK)
        status = as_rows(&x, f->factors[0]);
    if (status == KN_OK)
        status = kn_rnn_rows_from(&product.y, gates, 0, count * batch);
    if (status == KN_OK)
        status = kn_rnn_rows_from(&product.a, x, start * batch, count * batch);
    if (status == KN_OK)
        status = kn_tensor_view(&product.b, w, 2, (int64_t[]){w->shape[1], w->shape[0]},
                                (int64_t[]){w->strides[1], w->strides[0]}, w->offset);
    if (status == KN_OK)
        status = kn_matmul_run(stream, &product);
    kn_release(gates);
    kn_release(x);
    kn_release(product.y);
    kn_release(product.a);
    kn_release(product.b);
    return status;
}

/* The state, or cell, that `count` steps begin with: the given one or, after `before` steps, the last of those. */
static kn_status begin_with(const kn_rnn_pass *pass, kn_tensor *t, int64_t count, const kn_tensor *given,
                            int64_t before)
{
    kn_tensor *last = NULL;

    if (!t)
        return KN_OK;
    if (before > 0)
        KN_TRY(row_of(&last, t, pass->reverse ? 0 : before));
    const kn_status status = set_row(t, pass->reverse ? count : 0, last ? last : given);
    kn_release(last);
    return status;
}

/* All steps, `most` at a time. Returns the number of the last ones in *last. */
static kn_status run_forward(kn_call *call, const forward *f, int64_t most, int64_t *last)
{
    const kn_rnn_pass *pass = &f->pass;

    *last = 0;
    for (int64_t done = 0; done < pass->all_steps; done += *last) {
        const int64_t count = kn_min_i64(most, pass->all_steps - done), start = kn_rnn_start_of(pass, done, count);
        KN_TRY(begin_with(pass, pass->states, count, input_of(call, KN_RNN_H0), *last));
        KN_TRY(begin_with(pass, pass->cells, count, input_of(call, KN_RNN_C0), *last));
        KN_TRY(project_input(call->stream, f, start, count));
        KN_TRY(kn_rnn_run_part(call->stream, pass, start, count));
        *last = count;
    }
    return KN_OK;
}

static kn_status save(kn_call *call, const forward *f)
{
    kn_tensor *const saved[KN_RNN_SAVED] = {[KN_RNN_SAVED_X] = f->x,
                                            [KN_RNN_SAVED_WEIGHT_IH] = f->weight_ih,
                                            [KN_RNN_SAVED_WEIGHT_HH] = f->pass.weight_hh,
                                            [KN_RNN_SAVED_WEIGHT_HR] = f->pass.weight_hr,
                                            [KN_RNN_SAVED_BIAS_IH] = f->bias_ih,
                                            [KN_RNN_SAVED_BIAS_HH] = f->pass.bias_hh,
                                            [KN_RNN_SAVED_H0] = input_of(call, KN_RNN_H0),
                                            [KN_RNN_SAVED_C0] = input_of(call, KN_RNN_C0),
                                            [KN_RNN_SAVED_LENGTHS] = f->pass.lengths,
                                            [KN_RNN_SAVED_GATES] = f->pass.gates,
                                            [KN_RNN_SAVED_STATES] = f->pass.states,
                                            [KN_RNN_SAVED_EXTRA] = f->pass.cells ? f->pass.cells : f->pass.news};
    for (int i = 0; i < KN_RNN_SAVED; i++)
        KN_TRY(kn_call_save(call, saved[i]));
    return KN_OK;
}

/* The results: the output is there already. `steps`: of the last part. */
static kn_status deliver(kn_call *call, const forward *f, int64_t steps)
{
    const int64_t last = f->pass.reverse ? 0 : steps;
    const bool is_single = ((const kn_rnn_kind *)call->op->detail)->is_single;
    kn_tensor *h_n = is_single ? NULL : call->outputs[1], *c_n = NULL;

    if (f->pass.cells)
        c_n = call->outputs[is_single ? 1 : 2];
    if (h_n)
        KN_TRY(copy_row(h_n, f->pass.states, last));
    return c_n ? copy_row(c_n, f->pass.cells, last) : KN_OK;
}

static kn_status run(kn_call *call, forward *f)
{
    int64_t most, last;

    KN_TRY(take_inputs(f, call));
    KN_TRY(make_factors(f, kn_rnn_multiplies_bf16(call->op, call->params)));
    most = call->needs_grad ? f->pass.size.steps : kn_rnn_steps_at_once(f->x, f->pass.size, f->pass.cell);
    KN_TRY(make_tensors(f, most));
    KN_TRY(run_forward(call, f, most, &last));
    KN_TRY(deliver(call, f, last));
    return call->needs_grad ? save(call, f) : KN_OK;
}

kn_status kn_rnn_forward(kn_call *call)
{
    const kn_rnn_kind *kind = call->op->detail;
    forward f = {.pass = {.operation = call->op->name,
                          .cell = kind->cell,
                          .reverse = kn_rnn_reverses(call->op, call->params),
                          .keeps_gates = call->needs_grad,
                          .size = kn_rnn_sizes_of(kind, call->inputs[KN_RNN_X], call->inputs[KN_RNN_WEIGHT_HH],
                                                  input_of(call, KN_RNN_WEIGHT_HR)),
                          .output = call->outputs[0]}};
    kn_status status;

    f.pass.all_steps = f.pass.size.steps;
    status = run(call, &f);
    release(&f);
    return status;
}

/* --- work: multiply-adds of the two products and, with a projection, of its --------------------------------------- */

static double products(kn_rnn_sizes size, int cell)
{
    const double gates = (double)(kn_rnn_gates(cell) * size.hidden), rows = (double)(size.steps * size.batch);
    const double projection = size.outputs != size.hidden ? (double)(size.outputs * size.hidden) : 0;
    return rows * (gates * (double)(size.input + size.outputs) + projection);
}

kn_span_work kn_rnn_work(const kn_call *call)
{
    const kn_rnn_kind *kind = call->op->detail;
    kn_span_work work = kn_work_of_outputs(call, 0);

    work.flops = 2 * products(kn_rnn_sizes_of(kind, call->inputs[KN_RNN_X], call->inputs[KN_RNN_WEIGHT_HH],
                                              input_of(call, KN_RNN_WEIGHT_HR)),
                              kind->cell);
    return work;
}

kn_span_work kn_rnn_backward_work(const kn_grad_call *grad)
{
    const kn_rnn_kind *kind = grad->op->detail;
    const kn_rnn_sizes size = kn_rnn_sizes_of(kind, grad->saved[KN_RNN_SAVED_X], grad->saved[KN_RNN_SAVED_WEIGHT_HH],
                                              grad->saved[KN_RNN_SAVED_WEIGHT_HR]);
    return kn_grad_work(grad, 4 * products(size, kind->cell));
}
