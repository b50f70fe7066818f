/* ops/rnn/layer.c - forward and backward of a recurrent layer: the products over all steps, around the steps (rnn.h).
 */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "autograd/work.h"
#include "ops/gemm/matmul.h"
#include "ops/rnn/layer.h"

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

/* Row `row` of a contiguous tensor [rows, ...]. */
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
} forward;

static void release(forward *f)
{
    kn_tensor *const all[] = {f->x,
                              f->weight_ih,
                              f->bias_ih,
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

static kn_status make_tensors(forward *f, const kn_call *call)
{
    const kn_rnn_sizes size = f->pass.size;
    const int64_t start = f->pass.reverse ? size.steps : 0;

    KN_TRY(make(&f->pass.gates, f, size.steps, kn_rnn_gates(f->pass.cell) * size.hidden));
    KN_TRY(make(&f->pass.states, f, size.steps + 1, size.outputs));
    KN_TRY(set_row(f->pass.states, start, input_of(call, KN_RNN_H0)));
    if (f->pass.cell == KN_RNN_LSTM) {
        KN_TRY(make(&f->pass.cells, f, size.steps + 1, size.hidden));
        KN_TRY(set_row(f->pass.cells, start, input_of(call, KN_RNN_C0)));
    }
    if (f->pass.cell == KN_RNN_GRU)
        KN_TRY(make(&f->pass.news, f, size.steps, size.hidden));
    if (f->pass.weight_hr)
        KN_TRY(
            kn_tensor_new(&f->pass.raw, f->x->dtype, 2, (int64_t[]){size.batch, size.hidden}, f->x->storage->device));
    return KN_OK;
}

/* gates = x weight_ih^T + bias_ih, of all steps. */
static kn_status project_input(kn_stream *stream, const forward *f)
{
    const kn_tensor *w = f->weight_ih;
    kn_matmul_problem product = {.bias = f->bias_ih};
    kn_status status = as_rows(&product.y, f->pass.gates);

    if (status == KN_OK)
        status = as_rows(&product.a, f->x);
    if (status == KN_OK)
        status = kn_tensor_view(&product.b, f->weight_ih, 2, (int64_t[]){w->shape[1], w->shape[0]},
                                (int64_t[]){w->strides[1], w->strides[0]}, w->offset);
    if (status == KN_OK)
        status = kn_matmul_run(stream, &product);
    kn_release(product.y);
    kn_release(product.a);
    kn_release(product.b);
    return status;
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

/* The results: the output is there already. */
static kn_status deliver(kn_call *call, const forward *f)
{
    const int64_t last = f->pass.reverse ? 0 : f->pass.size.steps;
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
    KN_TRY(take_inputs(f, call));
    KN_TRY(make_tensors(f, call));
    KN_TRY(project_input(call->stream, f));
    KN_TRY(kn_rnn_run(call->stream, &f->pass));
    KN_TRY(deliver(call, f));
    return call->needs_grad ? save(call, f) : KN_OK;
}

kn_status kn_rnn_forward(kn_call *call)
{
    const kn_rnn_kind *kind = call->op->detail;
    forward f = {.pass = {.operation = call->op->name,
                          .cell = kind->cell,
                          .reverse = !kind->is_single && ((const kn_rnn_args *)call->params)->reverse,
                          .size = kn_rnn_sizes_of(kind, call->inputs[KN_RNN_X], call->inputs[KN_RNN_WEIGHT_HH],
                                                  input_of(call, KN_RNN_WEIGHT_HR)),
                          .output = call->outputs[0]}};
    const kn_status status = run(call, &f);

    release(&f);
    return status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static kn_tensor *zeros(int ndim, const int64_t *shape, const kn_tensor *like)
{
    return kn_zeros_with(ndim, shape, &(kn_tensor_options){.dtype = like->dtype, .device = kn_device_of(like)});
}

static kn_tensor *uninitialised(int ndim, const int64_t *shape, const kn_tensor *like)
{
    return kn_empty_with(ndim, shape, &(kn_tensor_options){.dtype = like->dtype, .device = kn_device_of(like)});
}

/* A gradient that the steps change: a copy of the given one, or zeros. */
static kn_tensor *started(kn_tensor *gradient, int64_t rows, int64_t columns, const kn_tensor *like)
{
    return gradient ? kn_clone(gradient) : zeros(2, (int64_t[]){rows, columns}, like);
}

static bool needs(const kn_grad_call *grad, int input)
{
    const int place = kn_rnn_place(grad->op->detail, input);
    return place >= 0 && place < grad->num_inputs && grad->needs[place];
}

static kn_rnn_pass backward_pass(const kn_grad_call *grad)
{
    const kn_rnn_kind *kind = grad->op->detail;
    kn_tensor *const *saved = grad->saved, *gates = saved[KN_RNN_SAVED_GATES];
    const int c_n = kind->is_single ? 1 : 2;
    kn_rnn_pass pass = {.operation = grad->op->name,
                        .cell = kind->cell,
                        .is_backward = true,
                        .reverse = !kind->is_single && ((const kn_rnn_args *)grad->params)->reverse,
                        .size = kn_rnn_sizes_of(kind, saved[KN_RNN_SAVED_X], saved[KN_RNN_SAVED_WEIGHT_HH],
                                                saved[KN_RNN_SAVED_WEIGHT_HR]),
                        .weight_hh = saved[KN_RNN_SAVED_WEIGHT_HH],
                        .weight_hr = saved[KN_RNN_SAVED_WEIGHT_HR],
                        .lengths = saved[KN_RNN_SAVED_LENGTHS],
                        .gates = gates,
                        .states = saved[KN_RNN_SAVED_STATES],
                        .output = grad->grad_outputs[0]};
    const kn_rnn_sizes size = pass.size;

    *(kind->cell == KN_RNN_LSTM ? &pass.cells : &pass.news) = saved[KN_RNN_SAVED_EXTRA];
    pass.d_gates = uninitialised(3, gates->shape, gates);
    pass.d_products = kind->cell == KN_RNN_GRU ? uninitialised(3, gates->shape, gates) : pass.d_gates;
    pass.d_state = started(kind->is_single ? NULL : grad->grad_outputs[1], size.batch, size.outputs, gates);
    if (pass.cells)
        pass.d_cell = started(grad->grad_outputs[c_n], size.batch, size.hidden, gates);
    if (pass.weight_hr) {
        pass.d_projected = uninitialised(3, (int64_t[]){size.steps, size.batch, size.outputs}, gates);
        pass.raw = uninitialised(2, (int64_t[]){size.batch, size.hidden}, gates);
    }
    return pass;
}

static kn_tensor *rows_of(kn_tensor *t)
{
    return t ? kn_reshape(t, 2, (int64_t[]){kn_shape_numel(t->ndim - 1, t->shape), t->shape[t->ndim - 1]}) : NULL;
}

/* h' = o tanh(c') of all steps, before the projection. */
static kn_tensor *projected_states(const kn_rnn_pass *pass)
{
    const int64_t hidden = pass->size.hidden;
    kn_tensor *o = kn_narrow(pass->gates, 2, 3 * hidden, hidden);
    return kn_mul(o, kn_tanh(kn_narrow(pass->cells, 0, !pass->reverse, pass->size.steps)));
}

/* The gradients that are sums over all steps. */
static void sum_over_steps(kn_grad_call *grad, const kn_rnn_pass *pass)
{
    const kn_rnn_kind *kind = grad->op->detail;
    kn_tensor *d_x = rows_of(pass->d_gates), *d_h = rows_of(pass->d_products), **to = grad->grad_inputs;
    const int hr = kn_rnn_place(kind, KN_RNN_WEIGHT_HR);

    if (needs(grad, KN_RNN_X))
        to[KN_RNN_X] = kn_reshape(kn_matmul(d_x, grad->saved[KN_RNN_SAVED_WEIGHT_IH]), grad->input[KN_RNN_X].ndim,
                                  grad->input[KN_RNN_X].shape);
    if (needs(grad, KN_RNN_WEIGHT_IH))
        to[KN_RNN_WEIGHT_IH] = kn_matmul(kn_t(d_x), rows_of(grad->saved[KN_RNN_SAVED_X]));
    if (needs(grad, KN_RNN_WEIGHT_HH))
        to[KN_RNN_WEIGHT_HH] =
            kn_matmul(kn_t(d_h), rows_of(kn_narrow(pass->states, 0, pass->reverse, pass->size.steps)));
    if (needs(grad, KN_RNN_BIAS_IH))
        to[KN_RNN_BIAS_IH] = kn_sum_dims(d_x, (int[]){0}, 1, false);
    if (needs(grad, KN_RNN_BIAS_HH))
        to[KN_RNN_BIAS_HH] = d_h->storage == d_x->storage && to[KN_RNN_BIAS_IH]
                                 ? kn_clone(to[KN_RNN_BIAS_IH])
                                 : kn_sum_dims(d_h, (int[]){0}, 1, false);
    if (needs(grad, KN_RNN_WEIGHT_HR))
        to[hr] = kn_matmul(kn_t(rows_of(pass->d_projected)), rows_of(projected_states(pass)));
}

kn_status kn_rnn_backward(kn_grad_call *grad)
{
    kn_rnn_pass pass = backward_pass(grad);

    if (!pass.d_gates || !pass.d_products || !pass.d_state || (pass.cells && !pass.d_cell) ||
        (pass.weight_hr && (!pass.d_projected || !pass.raw)))
        return kn_error_status();
    KN_TRY(kn_rnn_run(grad->stream, &pass));
    sum_over_steps(grad, &pass);
    if (needs(grad, KN_RNN_H0))
        grad->grad_inputs[KN_RNN_H0] = pass.d_state;
    if (needs(grad, KN_RNN_C0))
        grad->grad_inputs[KN_RNN_C0] = pass.d_cell;
    for (int i = 0; i < grad->num_inputs; i++)
        if (grad->needs[i] && !grad->grad_inputs[i])
            return kn_error_status();
    return KN_OK;
}

/* --- work: multiply-adds of the two products and, with a projection, of its --------------------------------------- */

static double products(kn_rnn_sizes size, int cell)
{
    const double gates = (double)(kn_rnn_gates(cell) * size.hidden), rows = (double)(size.steps * size.batch);
    const double projection = size.outputs != size.hidden ? (double)(size.outputs * size.hidden) : 0;
    return rows * (gates * (double)(size.input + size.outputs) + projection);
}

kn_work kn_rnn_work(const kn_call *call)
{
    const kn_rnn_kind *kind = call->op->detail;
    kn_work work = kn_work_of_outputs(call, 0);

    work.flops = 2 * products(kn_rnn_sizes_of(kind, call->inputs[KN_RNN_X], call->inputs[KN_RNN_WEIGHT_HH],
                                              input_of(call, KN_RNN_WEIGHT_HR)),
                              kind->cell);
    return work;
}

kn_work kn_rnn_backward_work(const kn_grad_call *grad)
{
    const kn_rnn_kind *kind = grad->op->detail;
    const kn_rnn_sizes size = kn_rnn_sizes_of(kind, grad->saved[KN_RNN_SAVED_X], grad->saved[KN_RNN_SAVED_WEIGHT_HH],
                                              grad->saved[KN_RNN_SAVED_WEIGHT_HR]);
    return kn_grad_work(grad, 4 * products(size, kind->cell));
}
