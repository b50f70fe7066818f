/* ops/rnn/operators.c - rnn_tanh, rnn_relu, gru, lstm and their cells: shapes, descriptors and functions. */
#include "base/text.h"
#include "ops/dispatch/invoke.h"
#include "ops/gemm/pairs.h"
#include "ops/rnn/layer.h"

/* --- shape rule --------------------------------------------------------------------------------------------------- */

kn_rnn_sizes kn_rnn_sizes_of(const kn_rnn_kind *kind, const kn_tensor *x, const kn_tensor *weight_hh,
                             const kn_tensor *weight_hr)
{
    const int64_t *shape = x->shape + (kind->is_single ? 0 : 1),
                  hidden = weight_hh->shape[0] / kn_rnn_gates(kind->cell);

    return (kn_rnn_sizes){.steps = kind->is_single ? 1 : x->shape[0],
                          .batch = shape[0],
                          .input = shape[1],
                          .hidden = hidden,
                          .outputs = weight_hr ? weight_hr->shape[0] : hidden};
}

/* Has input `index`, if given, the shape [first, second], or [first] if second is negative? */
static kn_status check_size(const kn_call *call, int input, int64_t first, int64_t second)
{
    const int place = kn_rnn_place(call->op->detail, input);
    const kn_tensor *t = place >= 0 && place < call->num_inputs ? call->inputs[place] : NULL;
    const int ndim = second < 0 ? 1 : 2;
    const int64_t wanted[] = {first, second};
    char has[KN_DESCRIBE], wants[KN_DESCRIBE];

    if (!t || (t->ndim == ndim && t->shape[0] == first && (ndim == 1 || t->shape[1] == second)))
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "%s must be %s, not %s", call->op->inputs[place] + (call->op->inputs[place][0] == '?'),
                   kn_format_shape(wants, sizeof wants, ndim, wanted), kn_tensor_describe(has, sizeof has, t));
}

static kn_status check_weights(const kn_call *call, const kn_rnn_kind *kind)
{
    const kn_tensor *x = call->inputs[KN_RNN_X], *ih = call->inputs[KN_RNN_WEIGHT_IH],
                    *hh = call->inputs[KN_RNN_WEIGHT_HH];
    const int ndim = kind->is_single ? 2 : 3, gates = kn_rnn_gates(kind->cell);
    char a[KN_DESCRIBE], b[KN_DESCRIBE];

    if (x->ndim != ndim)
        return kn_fail(KN_ERR_SHAPE, "x must be [%sbatch, input], not %s", kind->is_single ? "" : "steps, ",
                       kn_tensor_describe(a, sizeof a, x));
    if (!kind->is_single && x->shape[0] < 1)
        return kn_fail(KN_ERR_SHAPE, "x, %s, has no steps", kn_tensor_describe(a, sizeof a, x));
    if (ih->ndim != 2 || hh->ndim != 2 || ih->shape[0] != hh->shape[0] || hh->shape[0] < 1 || hh->shape[0] % gates != 0)
        return kn_fail(KN_ERR_SHAPE,
                       "weight_ih must be [%d * hidden, input] and weight_hh [%d * hidden, hidden], not %s and %s",
                       gates, gates, kn_tensor_describe(a, sizeof a, ih), kn_tensor_describe(b, sizeof b, hh));
    if (ih->shape[1] != x->shape[ndim - 1])
        return kn_fail(KN_ERR_SHAPE, "x, %s, has %lld features, but weight_ih, %s, is for %lld",
                       kn_tensor_describe(a, sizeof a, x), (long long)x->shape[ndim - 1],
                       kn_tensor_describe(b, sizeof b, ih), (long long)ih->shape[1]);
    return KN_OK;
}

kn_status kn_rnn_shape(kn_call *call)
{
    const kn_rnn_kind *kind = call->op->detail;
    const kn_tensor *x = call->inputs[KN_RNN_X];
    const int hr = kn_rnn_place(kind, KN_RNN_WEIGHT_HR), lengths = kn_rnn_place(kind, KN_RNN_LENGTHS);
    const kn_tensor *weight_hr = hr >= 0 && hr < call->num_inputs ? call->inputs[hr] : NULL;

    KN_TRY(kn_call_check_floating(call, KN_RNN_X));
    KN_TRY(kn_call_check_same_dtype(call, KN_RNN_X, lengths < 0 ? KN_RNN_INPUTS : lengths - 1));
    KN_TRY(check_weights(call, kind));
    if (weight_hr && weight_hr->ndim != 2)
        return kn_fail(KN_ERR_SHAPE, "weight_hr must be [proj_size, hidden], not %d-dimensional", weight_hr->ndim);
    const kn_rnn_sizes size = kn_rnn_sizes_of(kind, x, call->inputs[KN_RNN_WEIGHT_HH], weight_hr);
    const int64_t gates = kn_rnn_gates(kind->cell) * size.hidden;
    KN_TRY(check_size(call, KN_RNN_WEIGHT_HR, size.outputs, size.hidden));
    KN_TRY(check_size(call, KN_RNN_WEIGHT_HH, gates, size.outputs));
    KN_TRY(check_size(call, KN_RNN_BIAS_IH, gates, -1));
    KN_TRY(check_size(call, KN_RNN_BIAS_HH, gates, -1));
    KN_TRY(check_size(call, KN_RNN_H0, size.batch, size.outputs));
    KN_TRY(check_size(call, KN_RNN_C0, size.batch, size.hidden));
    KN_TRY(check_size(call, KN_RNN_LENGTHS, size.batch, -1));
    if (!kind->is_single)
        KN_TRY(kn_call_output(call, x->dtype, 3, (int64_t[]){size.steps, size.batch, size.outputs}));
    KN_TRY(kn_call_output(call, x->dtype, 2, (int64_t[]){size.batch, size.outputs}));
    return kind->cell == KN_RNN_LSTM ? kn_call_output(call, x->dtype, 2, (int64_t[]){size.batch, size.hidden}) : KN_OK;
}

/* --- descriptors -------------------------------------------------------------------------------------------------- */

#define RNN(id, cell_, single, ...)                                                                                    \
    const kn_op kn_##id##_op = {.name = #id,                                                                           \
                                .widens_halves = true,                                                                 \
                                .shape = kn_rnn_shape,                                                                 \
                                .forward = kn_rnn_forward,                                                             \
                                .backward = kn_rnn_backward,                                                           \
                                .backward_recorded = kn_rnn_backward_recorded,                                         \
                                .reference = kn_rnn_reference,                                                         \
                                .detail = &(kn_rnn_kind){cell_, single},                                               \
                                .work = kn_rnn_work,                                                                   \
                                .backward_work = kn_rnn_backward_work,                                                 \
                                __VA_ARGS__}
#define WEIGHTS "x", "weight_ih", "weight_hh", "?bias_ih", "?bias_hh"

/* Before halves are widened. */
static kn_status enter_layer(kn_entry *entry)
{
    const kn_tensor *x = entry->inputs[KN_RNN_X];
    kn_rnn_record *own = kn_entry_record(entry, sizeof *own);

    own->args = *(const kn_rnn_args *)entry->params;
    own->in_bf16 = x->dtype == KN_BF16 && kn_pairs_are_preferred(kn_tensor_limits(x));
    return KN_OK;
}

static const kn_op_param direction[] = {KN_PARAM(kn_rnn_args, reverse)};
#define LAYER                                                                                                          \
    .params = KN_PARAMS(kn_rnn_args, direction, .reverse = false), .enter = enter_layer,                               \
    .record_size = sizeof(kn_rnn_record)

#define SIMPLE_LAYER                                                                                                   \
    LAYER, .inputs = {WEIGHTS, "?h0", "?lengths"}, .dtypes = {KN_DTYPES_FLOATING, [6] = KN_DTYPES_INDICES},            \
           .outputs = {"result", "h_n"}
#define SIMPLE_CELL .inputs = {WEIGHTS, "?h"}, .dtypes = {KN_DTYPES_FLOATING}

RNN(rnn_tanh, KN_RNN_TANH, false, SIMPLE_LAYER);
RNN(rnn_relu, KN_RNN_RELU, false, SIMPLE_LAYER);
RNN(gru, KN_RNN_GRU, false, SIMPLE_LAYER);
RNN(lstm, KN_RNN_LSTM, false, LAYER, .inputs = {WEIGHTS, "?h0", "?c0", "?weight_hr", "?lengths"},
    .dtypes = {KN_DTYPES_FLOATING, [8] = KN_DTYPES_INDICES}, .outputs = {"result", "h_n", "c_n"});
RNN(rnn_tanh_cell, KN_RNN_TANH, true, SIMPLE_CELL);
RNN(rnn_relu_cell, KN_RNN_RELU, true, SIMPLE_CELL);
RNN(gru_cell, KN_RNN_GRU, true, SIMPLE_CELL);
RNN(lstm_cell, KN_RNN_LSTM, true, .inputs = {WEIGHTS, "?h", "?c"}, .dtypes = {KN_DTYPES_FLOATING},
    .outputs = {"result", "c_n"});

/* --- functions ---------------------------------------------------------------------------------------------------- */

kn_rnn_params kn_rnn_params_init(void) { return (kn_rnn_params){KN_RNN_DEFAULTS}; }

static kn_tensor *layer(const kn_op *op, kn_tensor *x, kn_tensor *weight_ih, kn_tensor *weight_hh,
                        const kn_rnn_params *params)
{
    params = params ? params : &(kn_rnn_params){KN_RNN_DEFAULTS};
    const kn_rnn_kind *kind = op->detail;
    const bool is_lstm = kind->cell == KN_RNN_LSTM;
    kn_tensor *inputs[KN_RNN_INPUTS] = {x, weight_ih, weight_hh, params->bias_ih, params->bias_hh, params->h0};
    kn_tensor *outputs[] = {NULL, params->h_n ? NULL : KN_SKIP_OUTPUT, params->c_n ? NULL : KN_SKIP_OUTPUT};
    kn_status status = KN_OK;

    if (is_lstm) {
        inputs[KN_RNN_C0] = params->c0;
        inputs[KN_RNN_WEIGHT_HR] = params->weight_hr;
    } else if (params->c0 || params->weight_hr || params->c_n) {
        status = kn_fail(KN_ERR_ARGUMENT, "%s: only an lstm has c0, weight_hr and c_n", op->name);
    }
    inputs[kn_rnn_place(kind, KN_RNN_LENGTHS)] = params->lengths;
    if (status == KN_OK)
        status = kn_op_invoke_to(op, inputs, kn_rnn_place(kind, KN_RNN_LENGTHS) + 1,
                                 &(kn_rnn_args){.reverse = params->reverse}, outputs, is_lstm ? 3 : 2);
    if (params->h_n)
        *params->h_n = status == KN_OK ? outputs[1] : NULL;
    if (params->c_n)
        *params->c_n = status == KN_OK ? outputs[2] : NULL;
    return status == KN_OK ? outputs[0] : kn_error_make_sticky();
}

#define FUNCTIONS(id)                                                                                                  \
    kn_tensor *kn_##id##_with(kn_tensor *x, kn_tensor *weight_ih, kn_tensor *weight_hh, const kn_rnn_params *params)   \
    {                                                                                                                  \
        return layer(&kn_##id##_op, x, weight_ih, weight_hh, params);                                                  \
    }
#define CELL_FUNCTION(id)                                                                                              \
    kn_tensor *kn_##id(kn_tensor *x, kn_tensor *h, kn_tensor *weight_ih, kn_tensor *weight_hh, kn_tensor *bias_ih,     \
                       kn_tensor *bias_hh)                                                                             \
    {                                                                                                                  \
        return kn_invoke(&kn_##id##_op, NULL, x, weight_ih, weight_hh, bias_ih, bias_hh, h);                           \
    }

FUNCTIONS(rnn_tanh)
FUNCTIONS(rnn_relu)
FUNCTIONS(gru)
FUNCTIONS(lstm)
CELL_FUNCTION(rnn_tanh_cell)
CELL_FUNCTION(rnn_relu_cell)
CELL_FUNCTION(gru_cell)

kn_tensor *kn_lstm_cell(kn_tensor *x, kn_tensor *h, kn_tensor *c, kn_tensor *weight_ih, kn_tensor *weight_hh,
                        kn_tensor *bias_ih, kn_tensor *bias_hh, kn_tensor **c_next)
{
    kn_tensor *inputs[] = {x, weight_ih, weight_hh, bias_ih, bias_hh, h, c};
    kn_tensor *outputs[] = {NULL, c_next ? NULL : KN_SKIP_OUTPUT};
    const kn_status status = kn_op_invoke_to(&kn_lstm_cell_op, inputs, 7, NULL, outputs, 2);

    if (c_next)
        *c_next = status == KN_OK ? outputs[1] : NULL;
    return status == KN_OK ? outputs[0] : kn_error_make_sticky();
}
