/* ops/pointwise/dropout.c - dropout of elements, of whole channels and of whole samples. The mask is a function of the
 * generator's state, which is in the parameters: no tensor is saved. */
#include <koine/dropout.h>

#include "loops/rows_plan.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/dropout.h"
#include "rt/graph/variable.h"
#include "tensor/philox.h"

extern const kn_op kn_dropout_op;

typedef struct kn_stochastic_depth_args {
    double p;
    kn_stochastic_depth_mode mode;
    bool training;
    kn_generator *generator;
} kn_stochastic_depth_args;

static kn_status dropout_shape(kn_call *call)
{
    KN_TRY(kn_call_check_floating(call, 0));
    return kn_call_output(call, call->inputs[0]->dtype, call->inputs[0]->ndim, call->inputs[0]->shape);
}

/* y = x times the mask. */
static kn_status launch(kn_stream *stream, const kn_dropout_record *params, const kn_tensor *x, kn_tensor *y)
{
    const int64_t n = kn_numel(y);
    const bool planes = params->inner != 1, is_cpu = kn_tensor_limits(y)->is_cpu;
    kn_work_size work = kn_work_for(kn_tensor_limits(y), is_cpu ? n : (n + 3) / 4);
    kn_arg args[9];
    int count = 0;

    if (n == 0)
        return KN_OK;
    args[count++] = kn_arg_tensor(x);
    args[count++] = kn_arg_tensor(y);
    args[count++] = kn_arg_i64(planes ? n / params->inner : n);
    if (planes)
        args[count++] = kn_arg_i64(params->inner);
    args[count++] = kn_arg_seed(&params->draw);
    args[count++] = kn_arg_draw_offset(&params->draw);
    args[count++] = kn_arg_i32(kn_dropout_threshold(params->p));
    args[count++] = kn_arg_real(y->dtype, kn_dropout_scale(params->p));
    if (planes && !is_cpu) { /* a team of work-items per plane */
        const int lanes = kn_team_for(params->inner, 16, work.local);
        work = kn_work_for_teams(kn_tensor_limits(y), n / params->inner, lanes);
        args[count++] = kn_arg_i32(lanes);
    }
    return kn_run(stream, .source = "pointwise/dropout.cl", .options = kn_dtype_options(y->dtype),
                  .kernel = planes ? "dropout2d" : "dropout", .dims = 1, .global = {work.global}, .local = {work.local},
                  .args = args, .num_args = count);
}

static kn_status dropout_forward(kn_call *call)
{
    kn_tensor *x;
    kn_status status;

    KN_TRY(kn_tensor_contiguous(&x, call->inputs[0]));
    status = launch(call->stream, call->params, x, call->outputs[0]);
    kn_release(x);
    return status;
}

static kn_status dropout_backward(kn_grad_call *grad)
{
    grad->grad_inputs[0] = kn_empty_like(grad->grad_outputs[0]);
    return grad->grad_inputs[0] ? launch(grad->stream, grad->params, grad->grad_outputs[0], grad->grad_inputs[0])
                                : kn_error_status();
}

/* The mask is applied again: with the record of this call the op draws the same. */
static kn_status dropout_backward_recorded(kn_grad_call *grad)
{
    grad->grad_inputs[0] = kn_apply(grad->op, grad->params, grad->grad_outputs[0]);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status dropout_reference(const kn_call *call)
{
    const kn_dropout_record *params = call->params;

    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        const int64_t word = i / params->inner;
        uint32_t words[4];
        kn_philox_block(words, params->draw.seed, params->draw.offset, (uint64_t)word / 4);
        const bool keep = (words[word % 4] >> 8) >= kn_dropout_threshold(params->p);
        kn_reference_set(call->outputs[0], i,
                         kn_reference_get(call->inputs[0], i) * (keep ? kn_dropout_scale(params->p) : 0));
    }
    return KN_OK;
}

/* A mask drawn in a graph: backward redraws that of the last replay, so the variable must outlive the graph. */
static void keep_draw(void *params) { kn_variable_keep(((kn_dropout_record *)params)->draw.live); }
static void drop_draw(void *params) { kn_variable_drop(((kn_dropout_record *)params)->draw.live); }

/* Without a draw if nothing is dropped: x is returned, as in PyTorch. */
static kn_status draw_with(kn_entry *entry, double p, kn_generator *generator, int64_t inner)
{
    const kn_tensor *x = entry->inputs[0];
    kn_dropout_record *own = kn_entry_record(entry, sizeof *own);

    if (p == 0)
        return kn_entry_return_input(entry);
    KN_TRY(kn_generator_check(generator, x->storage->device));
    own->p = p;
    own->inner = inner;
    own->draw = kn_generator_reserve(generator, x->storage->device, (uint64_t)(kn_numel(x) / (inner ? inner : 1)));
    return KN_OK;
}

static kn_status draw(kn_entry *entry, int64_t inner)
{
    const kn_dropout_params *params = entry->params;
    return params->training ? draw_with(entry, params->p, params->generator, inner) : kn_entry_return_input(entry);
}

static kn_status dropout_enter(kn_entry *entry) { return draw(entry, 1); }

/* Of channels: [N, C, ...] or, with fewer dimensions than a batch has, [C, ...]. */
static kn_status draw_channels(kn_entry *entry, int unbatched, const char *expected)
{
    const kn_tensor *x = entry->inputs[0];
    const int leading = x->ndim == unbatched ? 1 : 2;
    char text[KN_DESCRIBE];
    if (x->ndim < 2 || (unbatched > 0 && x->ndim != unbatched && x->ndim != unbatched + 1))
        return kn_fail(KN_ERR_SHAPE, "expected %s, got %s", expected, kn_tensor_describe(text, sizeof text, x));
    return draw(entry, kn_shape_numel(x->ndim - leading, x->shape + leading));
}

static kn_status dropout1d_enter(kn_entry *entry) { return draw_channels(entry, 2, "[N, C, L] or [C, L]"); }
static kn_status dropout2d_enter(kn_entry *entry) { return draw_channels(entry, 0, "[N, C, ...]"); }
static kn_status dropout3d_enter(kn_entry *entry) { return draw_channels(entry, 4, "[N, C, D, H, W] or [C, D, H, W]"); }

/* One random word for each sample, or one for all of them. */
static kn_status stochastic_depth_enter(kn_entry *entry)
{
    const kn_stochastic_depth_args *args = entry->params;
    const kn_tensor *x = entry->inputs[0];
    char text[KN_DESCRIBE];
    if (args->mode == KN_STOCHASTIC_DEPTH_ROW && x->ndim == 0)
        return kn_fail(KN_ERR_SHAPE, "mode \"row\" takes an input with a batch, not %s",
                       kn_tensor_describe(text, sizeof text, x));
    if (!args->training)
        return kn_entry_return_input(entry);
    const int first = args->mode == KN_STOCHASTIC_DEPTH_ROW ? 1 : 0;
    return draw_with(entry, args->p, args->generator, kn_shape_numel(x->ndim - first, x->shape + first));
}

kn_tensor *kn_dropout_again(kn_tensor *x, const kn_philox *draw, double p)
{
    const kn_dropout_record record = {*draw, p, 1};
    return kn_apply(&kn_dropout_op, &record, x);
}

static const kn_op_param dropout_rows[] = {KN_PARAM(kn_dropout_params, p, .min = 0, .max = 1),
                                           KN_PARAM(kn_dropout_params, training),
                                           KN_PARAM(kn_dropout_params, generator)};

static const char *const mode_names[] = {"batch", "row", NULL};
static const kn_op_param depth_rows[] = {KN_PARAM(kn_stochastic_depth_args, p, .min = 0, .max = 1),
                                         KN_PARAM(kn_stochastic_depth_args, mode, .values = mode_names),
                                         KN_PARAM(kn_stochastic_depth_args, training),
                                         KN_PARAM(kn_stochastic_depth_args, generator)};

#define DROPS(op_name, enter_)                                                                                         \
    .name = op_name, .inputs = {"x"}, .dtypes = {KN_DTYPES_FLOATING}, .widens_halves = true, .enter = enter_,          \
    .record_size = sizeof(kn_dropout_record), .record_keep = keep_draw, .record_drop = drop_draw,                      \
    .shape = dropout_shape, .forward = dropout_forward, .backward = dropout_backward,                                  \
    .backward_recorded = dropout_backward_recorded, .reference = dropout_reference
#define DROPOUT_OP(op_name, enter_)                                                                                    \
    {                                                                                                                  \
        DROPS(op_name, enter_), .params = KN_PARAMS(kn_dropout_params, dropout_rows, KN_DROPOUT_DEFAULTS)              \
    }
const kn_op kn_dropout_op = DROPOUT_OP("dropout", dropout_enter);
const kn_op kn_dropout1d_op = DROPOUT_OP("dropout1d", dropout1d_enter);
const kn_op kn_dropout2d_op = DROPOUT_OP("dropout2d", dropout2d_enter);
const kn_op kn_dropout3d_op = DROPOUT_OP("dropout3d", dropout3d_enter);
const kn_op kn_stochastic_depth_op = {
    DROPS("stochastic_depth", stochastic_depth_enter),
    .params = KN_PARAMS(kn_stochastic_depth_args, depth_rows, .mode = KN_STOCHASTIC_DEPTH_ROW, .training = true)};

kn_dropout_params kn_dropout_params_init(void) { return (kn_dropout_params){KN_DROPOUT_DEFAULTS}; }

#define WITH(name)                                                                                                     \
    kn_tensor *kn_##name##_with(kn_tensor *x, const kn_dropout_params *params)                                         \
    {                                                                                                                  \
        return kn_invoke(&kn_##name##_op, params, x);                                                                  \
    }
WITH(dropout)
WITH(dropout1d)
WITH(dropout2d)
WITH(dropout3d)

kn_stochastic_depth_params kn_stochastic_depth_params_init(void)
{
    return (kn_stochastic_depth_params){KN_STOCHASTIC_DEPTH_DEFAULTS};
}

kn_tensor *kn_stochastic_depth_with(kn_tensor *x, double p, kn_stochastic_depth_mode mode,
                                    const kn_stochastic_depth_params *params)
{
    params = params ? params : &(kn_stochastic_depth_params){KN_STOCHASTIC_DEPTH_DEFAULTS};
    const kn_stochastic_depth_args args = {p, mode, params->training, params->generator};
    return kn_invoke(&kn_stochastic_depth_op, &args, x);
}
