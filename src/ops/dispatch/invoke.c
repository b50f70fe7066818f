/* ops/dispatch/invoke.c - see invoke.h. */
#include "ops/dispatch/invoke.h"

#include <koine/tensor.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ops/dispatch/autocast.h"
#include "tensor/batched.h"

/* --- parameters --------------------------------------------------------------------------------------------------- */

static double number_at(const void *at, kn_param_kind kind)
{
    switch (kind) {
    case KN_PARAM_DOUBLE:
        return *(const double *)at;
    case KN_PARAM_INT64:
        return (double)*(const int64_t *)at;
    case KN_PARAM_SCALAR:
        return ((const kn_scalar *)at)->real;
    default:
        return *(const int *)at;
    }
}

/* The number of values in the parameter's `size` bytes. */
static int count_of(const kn_op_param *param)
{
    const size_t size = param->kind == KN_PARAM_DOUBLE  ? sizeof(double)
                        : param->kind == KN_PARAM_INT64 ? sizeof(int64_t)
                        : param->kind == KN_PARAM_INT   ? sizeof(int)
                                                        : param->size;
    return (int)(param->size / size);
}

static kn_status check_range(const kn_op_param *param, double value)
{
    if ((param->above_min ? value > param->min : value >= param->min) && value <= param->max)
        return KN_OK;
    if (param->above_min)
        return kn_fail(KN_ERR_ARGUMENT, "%s must be greater than %g, not %g", param->name, param->min, value);
    if (isinf(param->max))
        return kn_fail(KN_ERR_ARGUMENT, "%s must be at least %g, not %g", param->name, param->min, value);
    return kn_fail(KN_ERR_ARGUMENT, "%s must be from %g to %g, not %g", param->name, param->min, param->max, value);
}

static kn_status check_enum(const kn_op_param *param, int value)
{
    int count = 0;
    while (param->values[count])
        count++;
    return value >= 0 && value < count
               ? KN_OK
               : kn_fail(KN_ERR_ARGUMENT, "%s must be one of 0 to %d (%s to %s), not %d", param->name, count - 1,
                         param->values[0], param->values[count - 1], value);
}

static kn_status check_param(const kn_op_param *param, const void *params)
{
    const char *at = (const char *)params + param->offset;
    switch (param->kind) {
    case KN_PARAM_ENUM:
        return check_enum(param, *(const int *)at);
    case KN_PARAM_DTYPE:
        return *(const int *)at == KN_DTYPE_DEFAULT || kn_dtype_is_valid(*(const kn_dtype *)at)
                   ? KN_OK
                   : kn_fail(KN_ERR_ARGUMENT, "%s: %d is not a dtype", param->name, *(const int *)at);
    case KN_PARAM_INTS:
        return ((const kn_ints *)at)->count >= 0 && ((const kn_ints *)at)->count <= KN_MAX_DIMS
                   ? KN_OK
                   : kn_fail(KN_ERR_ARGUMENT, "%s has %d values; it takes 0 to %d", param->name,
                             ((const kn_ints *)at)->count, KN_MAX_DIMS);
    default:
        break;
    }
    const int count = count_of(param);
    for (int i = 0; param->min != param->max && i < count; i++)
        KN_TRY(check_range(param, number_at(at + (size_t)i * (param->size / (size_t)count), param->kind)));
    return KN_OK;
}

kn_status kn_op_check_params(const kn_op *op, const void *params)
{
    for (int i = 0; i < kn_op_params_of(op)->count; i++)
        KN_TRY(check_param(&kn_op_params_of(op)->rows[i], params));
    return KN_OK;
}

kn_status kn_dim_from_front(int *from_front, int64_t dim, int ndim)
{
    const int dims = ndim > 0 ? ndim : 1; /* a scalar has dimension 0, as in PyTorch */
    if (dim < -dims || dim >= dims)
        return kn_fail(KN_ERR_ARGUMENT, "dimension %lld is out of range for a tensor of %d dimensions", (long long)dim,
                       ndim);
    *from_front = (int)(dim < 0 ? dim + dims : dim);
    return KN_OK;
}

const kn_op_param kn_dim_rows[] = {KN_PARAM(kn_dim_args, dim)};
const kn_op_param kn_shape_rows[] = {KN_PARAM(kn_shape_args, shape)};
const kn_op_param kn_value_rows[] = {KN_PARAM_NAMED("value", kn_scalar_args, values[0])};

/* --- entering ----------------------------------------------------------------------------------------------------- */

void *kn_entry_record(kn_entry *entry, size_t size)
{
    memset(entry->space, 0, size);
    entry->record = entry->space;
    return entry->space;
}

kn_status kn_entry_return_input(kn_entry *entry)
{
    entry->result = kn_scope_adopt(kn_retain(entry->inputs[0]));
    return entry->result ? KN_OK : kn_error_status();
}

/* Prefixes an error with the op's name, also a sticky one of a public function that was called here, but not one that
 * was pending before. */
static kn_status name_error(const kn_op *op, bool was_pending, kn_status status)
{
    if (status != KN_OK && !was_pending)
        kn_error_prefix_sticky("%s", op->name);
    return status;
}

/* Compositions have no shape rule that does this. */
static kn_status check_dtypes(const kn_entry *entry)
{
    for (int i = 0; i < entry->num_inputs; i++) {
        const kn_op_input input = kn_op_input_at(entry->op, i);
        if (entry->inputs[i] && input.name && !(input.dtypes >> entry->inputs[i]->dtype & 1))
            return kn_fail(KN_ERR_DTYPE, "%s must not be %s", input.name, kn_dtype_name(entry->inputs[i]->dtype));
    }
    return KN_OK;
}

static kn_status enter(kn_entry *entry, kn_tensor *const *inputs, int num_inputs, const void *params)
{
    const bool was_pending = kn_error_is_sticky();
    memcpy(entry->inputs, inputs, (size_t)num_inputs * sizeof *inputs);
    for (entry->num_inputs = num_inputs; entry->num_inputs < KN_OP_MAX_INPUTS && entry->op->inputs[entry->num_inputs];
         entry->num_inputs++)
        entry->inputs[entry->num_inputs] = NULL; /* omitted at the end */
    if (entry->autocast)
        KN_TRY(kn_autocast_inputs(entry->inputs, entry->num_inputs, entry->autocast));
    entry->params = entry->record = params ? params : kn_op_params_of(entry->op)->defaults;
    kn_status status = kn_op_check_params(entry->op, entry->params);
    if (status == KN_OK && kn_op_is_composition(entry->op))
        status = check_dtypes(entry);
    if (status == KN_OK && entry->op->enter)
        status = entry->op->enter(entry);
    return name_error(entry->op, was_pending, status);
}

kn_status kn_dim_enter(kn_entry *entry)
{
    kn_dim_args *own = kn_entry_record(entry, sizeof *own);
    return kn_dim_from_front(&own->dim, ((const kn_dim_args *)entry->params)->dim, entry->inputs[0]->ndim);
}

/* --- calling ------------------------------------------------------------------------------------------------------ */

static kn_status deliver(const kn_op *op, int index, kn_tensor **output, kn_tensor *result)
{
    if (*output && *output != KN_SKIP_OUTPUT)
        return kn_op_deliver(op, index, *output, result);
    *output = *output ? NULL : result;
    return KN_OK;
}

static int widened_inputs(const kn_op *op, int num_inputs)
{
    return !op->widens_halves ? 0 : op->num_widened && op->num_widened < num_inputs ? op->num_widened : num_inputs;
}

static bool has_halves(const kn_op *op, kn_tensor *const *inputs, int num_inputs)
{
    for (int i = 0; i < widened_inputs(op, num_inputs); i++)
        if (inputs[i] && kn_dtype_is_reduced(inputs[i]->dtype))
            return true;
    return false;
}

static bool reads_halves(const kn_entry *entry) { return entry->op->reads_halves && entry->op->reads_halves(entry); }

/* Is output `index`, computed in float32 for a half, returned as a half? */
static bool is_rounded(const kn_op *op, int index, const kn_tensor *result)
{
    return result->dtype == KN_F32 && !(op->first_statistic && index >= op->first_statistic);
}

/* Computes in float32: widens the inputs and rounds the floating results to input 0's dtype. */
static kn_status apply_widened(kn_entry *entry, kn_tensor **outputs, int num_outputs)
{
    const kn_dtype dtype = entry->inputs[0]->dtype;
    const bool was_pending = kn_error_is_sticky();
    kn_tensor *results[KN_OP_MAX_OUTPUTS] = {NULL};

    for (int i = 0; i < widened_inputs(entry->op, entry->num_inputs); i++)
        if (entry->inputs[i] && kn_dtype_is_reduced(entry->inputs[i]->dtype) &&
            !(entry->inputs[i] = kn_to_dtype(entry->inputs[i], KN_F32)))
            return name_error(entry->op, was_pending, kn_error_status());
    for (int i = 0; i < num_outputs; i++)
        if (outputs[i] == KN_SKIP_OUTPUT)
            results[i] = outputs[i];
    KN_TRY(kn_op_apply_to(entry->op, entry->inputs, entry->num_inputs, entry->record, results, num_outputs));
    for (int i = 0; i < num_outputs; i++) {
        if (!results[i]) {
            outputs[i] = NULL;
            continue;
        }
        kn_tensor *result = is_rounded(entry->op, i, results[i]) ? kn_to_dtype(results[i], dtype) : results[i];
        if (!result)
            return kn_error_status();
        KN_TRY(deliver(entry->op, i, &outputs[i], result));
    }
    return KN_OK;
}

/* `enter` of a composition may have chosen another op. */
static bool is_batched(const kn_entry *entry)
{
    return kn_vmap_level() > 0 && kn_batch_level_of(entry->inputs, entry->num_inputs) > 0;
}

static kn_status apply_entry(kn_entry *entry, kn_tensor **outputs, int num_outputs)
{
    if (entry->result)
        return num_outputs > 0 ? deliver(entry->op, 0, &outputs[0], entry->result) : KN_OK;
    if (is_batched(entry) && !entry->op->enter)
        return kn_op_invoke_batched(entry->op, entry->inputs, entry->num_inputs, entry->record, outputs, num_outputs);
    return has_halves(entry->op, entry->inputs, entry->num_inputs) && !reads_halves(entry)
               ? apply_widened(entry, outputs, num_outputs)
               : kn_op_apply_to(entry->op, entry->inputs, entry->num_inputs, entry->record, outputs, num_outputs);
}

static kn_status call(const kn_op *op, kn_dtype autocast, kn_tensor *const *inputs, int num_inputs, const void *params,
                      kn_tensor **outputs, int num_outputs)
{
    kn_tensor *few[KN_OP_MAX_INPUTS], **many = NULL;
    kn_entry entry; /* not all of it need be zero */
    entry.op = op;
    entry.autocast = autocast;
    entry.inputs = few;
    entry.outputs = outputs;
    entry.num_outputs = num_outputs;
    entry.result = NULL;
    if (num_inputs > KN_OP_MAX_INPUTS && !(entry.inputs = many = kn_malloc((size_t)num_inputs * sizeof *many)))
        return KN_ERR_MEMORY;
    kn_status status = enter(&entry, inputs, num_inputs, params);
    if (status == KN_OK)
        status = apply_entry(&entry, outputs, num_outputs);
    kn_free(many);
    return status;
}

/* The same for ops that create temporaries: the results outlive the scope that releases those. */
static kn_status call_in_scope(const kn_op *op, kn_dtype autocast, kn_tensor *const *inputs, int num_inputs,
                               const void *params, kn_tensor **outputs, int num_outputs)
{
    bool is_made[KN_OP_MAX_OUTPUTS] = {false};
    const int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_status();
    for (int i = 0; i < num_outputs; i++)
        is_made[i] = !outputs[i] && !(op->in_place && i == 0);
    const kn_status status = call(op, autocast, inputs, num_inputs, params, outputs, num_outputs);
    for (int i = 0; status == KN_OK && i < num_outputs; i++)
        if (is_made[i])
            kn_retain(outputs[i]);
    kn_scope_end(depth);
    for (int i = 0; status == KN_OK && i < num_outputs; i++)
        if (is_made[i] && outputs[i])
            outputs[i] = kn_scope_adopt(outputs[i]);
    return status;
}

kn_status kn_op_invoke_unbatched(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                                 kn_tensor **outputs, int num_outputs)
{
    const kn_dtype autocast = kn_autocast_type(op, inputs, num_inputs);
    const bool scoped = op->composes || autocast || has_halves(op, inputs, num_inputs);
    return (scoped ? call_in_scope : call)(op, autocast, inputs, num_inputs, params, outputs, num_outputs);
}

kn_op_invoker kn_op_invoke_batched;

kn_status kn_op_invoke_to(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                          kn_tensor **outputs, int num_outputs)
{
    KN_TRY(kn_op_check_given(op, inputs, num_inputs));
    const bool is_batched = kn_vmap_level() > 0 && kn_batch_level_of(inputs, num_inputs) > 0;
    return (is_batched ? kn_op_invoke_batched : kn_op_invoke_unbatched)(op, inputs, num_inputs, params, outputs,
                                                                        num_outputs);
}

kn_tensor *kn_op_invoke(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params)
{
    kn_tensor *output = NULL;
    return kn_op_invoke_to(op, inputs, num_inputs, params, &output, 1) == KN_OK ? output : kn_error_make_sticky();
}
