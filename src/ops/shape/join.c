/* ops/shape/join.c - cat and stack: concatenation along an existing dimension and along a new one. */
#include <koine/join.h>
#include <koine/shape.h>
#include <string.h>

#include "autograd/work.h"
#include "ops/dispatch/operators.h"
#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/shape/join_together.h"
#include "ops/shape/views.h"

static int dim_of(const void *params) { return ((const kn_dim_args *)params)->dim; }

/* cat skips tensors of shape [0], whatever shape the others have. */
static bool is_left_out(int ndim, const int64_t *shape) { return ndim == 1 && shape[0] == 0; }

/* The first tensor that is not skipped, or the first if all are. */
static const kn_tensor *first_of(kn_tensor *const *tensors, int count)
{
    for (int i = 0; i < count; i++)
        if (!is_left_out(tensors[i]->ndim, tensors[i]->shape))
            return tensors[i];
    return tensors[0];
}

/* --- shapes ------------------------------------------------------------------------------------------------------ */

static kn_status fail_shapes(const char *rule, const kn_tensor *first, int index, const kn_tensor *other)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    return kn_fail(KN_ERR_SHAPE, "%s, but tensor %d is %s and one before it %s", rule, index,
                   kn_tensor_describe(b, sizeof b, other), kn_tensor_describe(a, sizeof a, first));
}

static kn_status cat_enter(kn_entry *entry)
{
    kn_dim_args *own = kn_entry_record(entry, sizeof *own);
    const kn_tensor *first = first_of(entry->inputs, entry->num_inputs);
    if (first->ndim == 0)
        return kn_fail(KN_ERR_SHAPE, "0-dimensional tensors cannot be concatenated; use kn_stack");
    if (is_left_out(first->ndim, first->shape)) /* any dimension will do */
        return KN_OK;
    return kn_dim_from_front(&own->dim, dim_of(entry->params), first->ndim);
}

static kn_status cat_shape(kn_call *call)
{
    const int dim = dim_of(call->params);
    const kn_tensor *first = first_of(call->inputs, call->num_inputs);
    int64_t shape[KN_MAX_DIMS];

    memcpy(shape, first->shape, sizeof shape);
    shape[dim] = 0;
    for (int i = 0; i < call->num_inputs; i++) {
        const kn_tensor *x = call->inputs[i];
        if (is_left_out(x->ndim, x->shape))
            continue;
        bool fits = x->ndim == first->ndim;
        for (int d = 0; d < first->ndim && fits; d++)
            fits = d == dim || x->shape[d] == first->shape[d];
        if (!fits)
            return fail_shapes("sizes must match except along the dimension", first, i, x);
        if (x->shape[dim] > INT64_MAX - shape[dim])
            return kn_fail(KN_ERR_SHAPE, "the sizes along dimension %d are too large to count", dim);
        shape[dim] += x->shape[dim];
    }
    return kn_call_output(call, kn_result_type_of(call->inputs, call->num_inputs), first->ndim, shape);
}

static kn_status stack_enter(kn_entry *entry)
{
    kn_dim_args *own = kn_entry_record(entry, sizeof *own);
    const int ndim = entry->inputs[0]->ndim;
    if (ndim == KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "the tensors already have %d dimensions, the maximum", KN_MAX_DIMS);
    return kn_dim_from_front(&own->dim, dim_of(entry->params), ndim + 1);
}

static kn_status stack_shape(kn_call *call)
{
    const int dim = dim_of(call->params);
    const kn_tensor *first = call->inputs[0];
    int64_t shape[KN_MAX_DIMS];

    for (int i = 1; i < call->num_inputs; i++)
        if (!kn_same_shape(first, call->inputs[i]))
            return fail_shapes("shapes must be equal", first, i, call->inputs[i]);
    for (int d = 0; d <= first->ndim; d++)
        shape[d] = d == dim ? call->num_inputs : first->shape[d < dim ? d : d - 1];
    return kn_call_output(call, kn_result_type_of(call->inputs, call->num_inputs), first->ndim + 1, shape);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* The slice of `whole` for x, starting at index `at` of the dimension, which x has (cat) or lacks (stack). */
static kn_status part_of(kn_tensor **part, kn_tensor *whole, int dim, int64_t at, const kn_tensor *x)
{
    int64_t strides[KN_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        strides[d] = whole->strides[d < dim || x->ndim == whole->ndim ? d : d + 1];
    return kn_tensor_view(part, whole, x->ndim, x->shape, strides, whole->offset + at * whole->strides[dim]);
}

static kn_status join_forward(kn_call *call)
{
    const int dim = dim_of(call->params);
    kn_tensor *whole = call->outputs[0], *part;
    const int64_t outer = kn_shape_numel(dim, whole->shape);
    int64_t at = 0;

    if (kn_joins_together(call, outer))
        return kn_join_together(call, outer);
    for (int i = 0; i < call->num_inputs; i++) {
        kn_tensor *x = call->inputs[i];
        if (kn_numel(x) == 0)
            continue;
        KN_TRY(part_of(&part, whole, dim, at, x));
        const kn_status status = kn_tensor_copy(part, x);
        kn_release(part);
        KN_TRY(status);
        at += x->ndim == whole->ndim ? x->shape[dim] : 1;
    }
    return KN_OK;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* Each input's gradient is its slice of the output's. */
static kn_status join_backward(kn_grad_call *grad, bool stacked)
{
    const int dim = dim_of(grad->params);
    kn_tensor *g = grad->grad_outputs[0];
    int64_t at = 0;

    for (int i = 0; i < grad->num_inputs; i++) {
        const kn_input_spec *input = &grad->input[i];
        const bool left_out = !stacked && is_left_out(input->ndim, input->shape);
        const int64_t size = stacked ? 1 : left_out ? 0 : input->shape[dim];
        if (grad->needs[i]) {
            kn_tensor *part = stacked    ? kn_select(g, dim, at)
                              : left_out ? kn_zeros(KN_SHAPE(0), .dtype = input->dtype, .device = input->device)
                                         : kn_narrow(g, dim, at, size);
            grad->grad_inputs[i] = kn_to_dtype(part, input->dtype);
            if (!grad->grad_inputs[i])
                return kn_error_status();
        }
        at += size;
    }
    return KN_OK;
}

static kn_status cat_backward(kn_grad_call *grad) { return join_backward(grad, false); }
static kn_status stack_backward(kn_grad_call *grad) { return join_backward(grad, true); }

/* --- reference ---------------------------------------------------------------------------------------------------- */

/* For each index of the outer dimensions, the result has one block of each tensor. */
static kn_status join_reference(const kn_call *call)
{
    kn_tensor *whole = call->outputs[0];
    const int64_t outer = kn_shape_numel(dim_of(call->params), whole->shape);
    int64_t start = 0;

    for (int t = 0; t < call->num_inputs && kn_numel(whole) > 0; t++) {
        const int64_t n = kn_numel(call->inputs[t]), block = n / outer;
        for (int64_t i = 0; i < n; i++)
            kn_reference_set(whole, i / block * (kn_numel(whole) / outer) + start + i % block,
                             kn_reference_get(call->inputs[t], i));
        start += block;
    }
    return KN_OK;
}

/* --- the operators ------------------------------------------------------------------------------------------------ */

#define JOIN_OP(op_name)                                                                                               \
    {                                                                                                                  \
        .name = #op_name, .inputs = {"*tensors"}, .params = KN_PARAMS(kn_dim_args, kn_dim_rows),                       \
        .enter = op_name##_enter, .strided_outputs = true, .shape = op_name##_shape, .forward = join_forward,          \
        .backward = op_name##_backward, .backward_recorded = op_name##_backward, .reference = join_reference,          \
        .work = kn_work_memory_bound, .backward_work = kn_grad_work_memory_bound                                       \
    }
const kn_op kn_cat_op = JOIN_OP(cat);
const kn_op kn_stack_op = JOIN_OP(stack);

static kn_tensor *join(const kn_op *op, kn_tensor *const *tensors, int count, int dim)
{
    if (!tensors)
        return kn_fail_argument_null(op->name, "tensors"), kn_error_make_sticky();
    return kn_op_invoke(op, tensors, count, &(kn_dim_args){dim});
}

kn_tensor *kn_cat(kn_tensor *const *tensors, int count, int dim) { return join(&kn_cat_op, tensors, count, dim); }
kn_tensor *kn_stack(kn_tensor *const *tensors, int count, int dim) { return join(&kn_stack_op, tensors, count, dim); }
