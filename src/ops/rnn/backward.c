/* ops/rnn/backward.c - backward of a recurrent layer: the steps (rnn.h), and after them the gradients that are products
 * over all steps. */
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/gemm/matmul.h"
#include "ops/rnn/layer.h"

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
    return gradient ? kn_clone(kn_contiguous(gradient)) : zeros(2, (int64_t[]){rows, columns}, like);
}

static bool needs(const kn_grad_call *grad, int input)
{
    const int place = kn_rnn_place(grad->op->detail, input);
    return place >= 0 && place < grad->num_inputs && grad->needs[place];
}

/* With room for the gradients of `most` steps. */
static kn_rnn_pass backward_pass(const kn_grad_call *grad, int64_t *most)
{
    const kn_rnn_kind *kind = grad->op->detail;
    kn_tensor *const *saved = grad->saved, *gates = saved[KN_RNN_SAVED_GATES];
    const int c_n = kind->is_single ? 1 : 2;
    kn_rnn_pass pass = {.operation = grad->op->name,
                        .cell = kind->cell,
                        .is_backward = true,
                        .reverse = kn_rnn_reverses(grad->op, grad->params),
                        .size = kn_rnn_sizes_of(kind, saved[KN_RNN_SAVED_X], saved[KN_RNN_SAVED_WEIGHT_HH],
                                                saved[KN_RNN_SAVED_WEIGHT_HR]),
                        .weight_hh = saved[KN_RNN_SAVED_WEIGHT_HH],
                        .weight_hr = saved[KN_RNN_SAVED_WEIGHT_HR],
                        .lengths = saved[KN_RNN_SAVED_LENGTHS],
                        .gates = gates,
                        .states = saved[KN_RNN_SAVED_STATES],
                        .output = grad->grad_outputs[0]};
    const kn_rnn_sizes size = pass.size;

    *most = kn_rnn_steps_at_once(gates, size, kind->cell);
    const int64_t shape[] = {*most, size.batch, gates->shape[2]};
    pass.all_steps = size.steps;
    *(kind->cell == KN_RNN_LSTM ? &pass.cells : &pass.news) = saved[KN_RNN_SAVED_EXTRA];
    pass.d_gates = uninitialised(3, shape, gates);
    pass.d_products = kind->cell == KN_RNN_GRU ? uninitialised(3, shape, gates) : pass.d_gates;
    pass.d_state = started(kind->is_single ? NULL : grad->grad_outputs[1], size.batch, size.outputs, gates);
    if (pass.cells)
        pass.d_cell = started(grad->grad_outputs[c_n], size.batch, size.hidden, gates);
    if (pass.weight_hr) {
        pass.d_projected = uninitialised(3, (int64_t[]){*most, size.batch, size.outputs}, gates);
        pass.raw = uninitialised(2, (int64_t[]){size.batch, size.hidden}, gates);
    }
    return pass;
}

/* `count` steps from `start` on of [steps, ...], as one matrix. */
static kn_tensor *rows_of(kn_tensor *t, int64_t start, int64_t count)
{
    return kn_reshape(kn_narrow(t, 0, start, count), 2,
                      (int64_t[]){count * kn_shape_numel(t->ndim - 2, t->shape + 1), t->shape[t->ndim - 1]});
}

/* h' = o tanh(c') of some steps, before the projection. */
static kn_tensor *projected_states(const kn_rnn_pass *pass, int64_t start, int64_t count)
{
    const int64_t hidden = pass->size.hidden;
    kn_tensor *o = kn_narrow(kn_narrow(pass->gates, 0, start, count), 2, 3 * hidden, hidden);
    return rows_of(kn_mul(o, kn_tanh(kn_narrow(pass->cells, 0, start + !pass->reverse, count))), 0, count);
}

/* The gradients that are sums over all steps, of which `count` from `start` on are added; those are the first. */
typedef struct sums {
    kn_grad_call *grad;
    const kn_rnn_pass *pass;
    int64_t start, count;
    bool are_first, in_bf16;
} sums;

/* As an operand of the products. */
static kn_tensor *factor(const sums *s, kn_tensor *t) { return s->in_bf16 ? kn_to_dtype(t, KN_BF16) : t; }

/* Gradient of the weight `input` += d^T x, if it is needed. */
static kn_status add_product(const sums *s, int input, kn_tensor *d, kn_tensor *x)
{
    const int place = kn_rnn_place(s->grad->op->detail, input);
    kn_tensor **to = &s->grad->grad_inputs[place];

    if (!needs(s->grad, input))
        return KN_OK;
    const kn_matmul_problem product = {
        .y = *to, .a = kn_t(d), .b = x, .factors = &(kn_matmul_factors){1, s->are_first ? 0 : 1}};
    return product.a && product.b ? kn_matmul_run(s->grad->stream, &product) : kn_error_status();
}

/* Gradient of the bias `input` += sum, if it is needed. */
static kn_status add_sum(const sums *s, int input, kn_tensor *sum)
{
    kn_tensor *to = s->grad->grad_inputs[input];

    if (!needs(s->grad, input))
        return KN_OK;
    if (!sum)
        return kn_error_status();
    return s->are_first ? kn_tensor_copy(to, sum) : kn_tensor_accumulate(to, sum);
}

static kn_status bias_gradients(const sums *s, kn_tensor *d_x, kn_tensor *d_h)
{
    const bool are_equal = s->pass->d_gates == s->pass->d_products;
    kn_tensor *sum = NULL;

    if (needs(s->grad, KN_RNN_BIAS_IH) || (are_equal && needs(s->grad, KN_RNN_BIAS_HH)))
        sum = kn_sum_dims(d_x, (int[]){0}, 1, false);
    KN_TRY(add_sum(s, KN_RNN_BIAS_IH, sum));
    if (!are_equal && needs(s->grad, KN_RNN_BIAS_HH))
        sum = kn_sum_dims(d_h, (int[]){0}, 1, false);
    return add_sum(s, KN_RNN_BIAS_HH, sum);
}

static kn_status input_gradient(const sums *s, kn_tensor *d)
{
    const kn_input_spec *x = &s->grad->input[KN_RNN_X];

    if (!needs(s->grad, KN_RNN_X))
        return KN_OK;
    const int64_t batch = s->pass->size.batch;
    kn_tensor *rows =
        kn_reshape(s->grad->grad_inputs[KN_RNN_X], 2, (int64_t[]){s->pass->all_steps * batch, x->shape[x->ndim - 1]});
    const kn_matmul_problem product = {.y = rows ? kn_narrow(rows, 0, s->start * batch, s->count * batch) : NULL,
                                       .a = d,
                                       .b = factor(s, s->grad->saved[KN_RNN_SAVED_WEIGHT_IH])};
    return product.y && product.a && product.b ? kn_matmul_run(s->grad->stream, &product) : kn_error_status();
}

/* The gradients of x, too, of these steps. */
static kn_status add_steps(const sums *s)
{
    const kn_rnn_pass *pass = s->pass;
    kn_tensor *d_x = rows_of(pass->d_gates, 0, s->count), *d_h = rows_of(pass->d_products, 0, s->count);
    kn_tensor *left = factor(s, d_x), *left_h = pass->d_products == pass->d_gates ? left : factor(s, d_h);
    kn_tensor *x = s->grad->saved[KN_RNN_SAVED_X], *states = rows_of(pass->states, s->start + pass->reverse, s->count);

    x = x->ndim == 2 ? x : rows_of(x, s->start, s->count);
    KN_TRY(input_gradient(s, left));
    KN_TRY(add_product(s, KN_RNN_WEIGHT_IH, left, factor(s, x)));
    KN_TRY(add_product(s, KN_RNN_WEIGHT_HH, left_h, factor(s, states)));
    KN_TRY(bias_gradients(s, d_x, d_h));
    return pass->weight_hr ? add_product(s, KN_RNN_WEIGHT_HR, rows_of(pass->d_projected, 0, s->count),
                                         projected_states(pass, s->start, s->count))
                           : KN_OK;
}

/* The steps, as many at a time as there is room for. */
static kn_status run_backward(kn_grad_call *grad, const kn_rnn_pass *pass, int64_t most)
{
    const bool in_bf16 = kn_rnn_multiplies_bf16(grad->op, grad->params);

    for (int64_t done = 0, count; done < pass->all_steps; done += count) {
        count = kn_min_i64(most, pass->all_steps - done);
        const int64_t start = kn_rnn_start_of(pass, done, count);
        KN_TRY(kn_rnn_run_part(grad->stream, pass, start, count));
        KN_SCOPE;
        KN_TRY(add_steps(&(sums){grad, pass, start, count, done == 0, in_bf16}));
    }
    return KN_OK;
}

kn_status kn_rnn_backward(kn_grad_call *grad)
{
    int64_t most;
    kn_rnn_pass pass = backward_pass(grad, &most);

    if (!pass.d_gates || !pass.d_products || !pass.d_state || (pass.cells && !pass.d_cell) ||
        (pass.weight_hr && (!pass.d_projected || !pass.raw)))
        return kn_error_status();
    if (needs(grad, KN_RNN_H0))
        grad->grad_inputs[KN_RNN_H0] = pass.d_state;
    if (needs(grad, KN_RNN_C0))
        grad->grad_inputs[KN_RNN_C0] = pass.d_cell;
    for (int i = 0; i < grad->num_inputs; i++)
        if (grad->needs[i] && !kn_grad_new(grad, i))
            return kn_error_status();
    return run_backward(grad, &pass, most);
}
