/* ops/reduce/reducer.c - shared by all reductions. See reducer.h. */
#include "ops/reduce/reducer.h"

#include <koine/reduce.h>
#include <koine/tensor.h>
#include <string.h>

#include "base/memory.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/compose.h"
#include "ops/pointwise/elementwise.h"

/* Not const: the engine caches kernels in the tables' codes. */
static kn_reducer *table_of(const kn_op *op, const void *params)
{
    kn_reducer *table = op->detail;
    return table->variant ? (kn_reducer *)table->variant(((const kn_reducer_params *)params)->number) : table;
}

static const kn_reduce_params *dims_of(const void *params) { return &((const kn_reducer_params *)params)->reduce; }

/* --- dtypes and shapes -------------------------------------------------------------------------------------------- */

static kn_dtype result_of(const kn_reducer *r, kn_dtype dtype)
{
    if (r->rule == KN_REDUCES_BOOL)
        return dtype == KN_U8 ? KN_U8 : KN_BOOL;
    if (r->rule == KN_REDUCES_COUNT)
        return KN_I64;
    if (kn_dtype_is_floating(dtype) || r->rule == KN_REDUCES_SAME)
        return dtype;
    return r->rule == KN_REDUCES_REAL ? KN_F32 : KN_I64;
}

/* The compute dtype for an input of `dtype`. */
static kn_dtype compute_of(const kn_reducer *r, kn_dtype dtype)
{
    const kn_dtype result = kn_compute_type(kn_dtype_is_floating(dtype) ? dtype : result_of(r, dtype));
    return kn_dtype_is_floating(result) ? result : result == KN_I64 || dtype == KN_I64 ? KN_I64 : KN_I32;
}

kn_status kn_reducer_shape(kn_call *call)
{
    const kn_reducer *r = table_of(call->op, call->params);
    const kn_reduce_params *dims = dims_of(call->params);
    const kn_tensor *x = call->inputs[0];

    if (!(call->op->dtypes[0] >> x->dtype & 1))
        return kn_fail(KN_ERR_DTYPE, "the input is %s: it takes floating dtypes; convert it with kn_to_dtype first",
                       kn_dtype_name(x->dtype));
    if (r->identity && kn_reduce_count(dims, x->ndim, x->shape) == 0)
        return kn_fail(KN_ERR_SHAPE, "an empty tensor has no %s", r->identity);
    return kn_reduce_output(call, dims, result_of(r, x->dtype));
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static kn_status find_rows(kn_reduce_rows *rows, kn_tensor *input, const kn_reducer *r, const kn_reduce_params *dims)
{
    /* Codes with two passes are maps, which walk contiguous rows. */
    return !r->prepass && kn_reduce_in_place(rows, input, dims->over) ? KN_OK : kn_reduce_copy(rows, input, dims->over);
}

/* outputs = code(rows); `m` and `y` are per-row operands, NULL if the code has none. */
static kn_status run_rows(kn_stream *stream, const char *operation, kn_rows_code *code, kn_dtype compute,
                          const kn_reduce_rows *rows, const kn_tensor *m, const kn_tensor *y, const double *numbers,
                          kn_tensor *const *outputs, int num_outputs)
{
    kn_rows_problem p = kn_reduce_problem(code, operation, compute, rows);
    p.numbers[0] = numbers[0];
    p.numbers[1] = numbers[1];
    for (int i = 0; code->inputs[i]; i++)
        p.inputs[i] = kn_row_operand(code->inputs[i] == 'm' ? m : code->inputs[i] == 'y' ? y : rows->x);
    for (int i = 0; i < num_outputs; i++)
        p.outputs[i] = kn_row_operand(outputs[i]);
    return kn_rows_run(stream, &p);
}

static void take_numbers(double *pq, const kn_reducer *r, const void *params, int64_t n)
{
    pq[0] = pq[1] = 0;
    if (r->numbers)
        r->numbers(pq, ((const kn_reducer_params *)params)->number, n);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* Saves what backward names, in this order. */
static kn_status save(kn_call *call, const kn_reducer *r, kn_tensor *m)
{
    const char *names = r->backward.inputs;
    const bool row_values_a = r->row_values && strchr(r->row_values->inputs, 'a'),
               row_values_y = r->row_values && strchr(r->row_values->inputs, 'y');
    if (!call->needs_grad)
        return KN_OK;
    KN_TRY(kn_call_save(call, strchr(names, 'a') || row_values_a ? call->inputs[0] : NULL));
    KN_TRY(kn_call_save(call, strchr(names, 'y') || row_values_y ? call->outputs[0] : NULL));
    return kn_call_save(call, strchr(names, 'm') ? m : NULL);
}

/* A row that stays whole is in the cache or in registers when the second pass comes. */
static bool runs_in_one(const kn_call *call, const kn_reducer *r, const kn_reduce_rows *rows)
{
    const kn_limits *limits = kn_tensor_limits(call->outputs[0]);
    return r->in_one && rows->n > 0 && kn_split_middle(limits, rows->outer, rows->n, rows->inner, true).count == 1;
}

static kn_status run_forward(kn_call *call, kn_reducer *r, const kn_reduce_rows *rows, kn_tensor *m)
{
    const kn_dtype compute = compute_of(r, call->inputs[0]->dtype);
    const char *name = call->op->name;
    double numbers[2];

    take_numbers(numbers, r, call->params, rows->n);
    if (r->prepass && !m)
        return run_rows(call->stream, name, r->in_one, compute, rows, NULL, NULL, numbers, call->outputs, 1);
    if (m)
        KN_TRY(run_rows(call->stream, name, r->prepass, compute, rows, NULL, NULL, (const double[]){(double)rows->n, 0},
                        &m, 1));
    return run_rows(call->stream, name, &r->forward, compute, rows, m, NULL, numbers, call->outputs, 1);
}

/* Takes the last neighbours among the dimensions out of `dims`. */
static kn_reduce_params take_neighbours(kn_reduce_params *dims, const kn_tensor *x)
{
    kn_reduce_params taken = {.keepdim = true};
    bool found = false;
    for (int d = x->ndim - 1; d >= 0 && (!found || dims->over[d] || x->shape[d] == 1); d--) {
        taken.over[d] = dims->over[d];
        found = found || (dims->over[d] && x->shape[d] != 1);
        dims->over[d] = false;
    }
    return taken;
}

/* The rows of what nests, over the last of several groups of dimensions, after reducing over the others: one group
 * after another reads the tensor where it is. */
static kn_status find_nested_rows(kn_call *call, kn_reducer *r, kn_reduce_rows *rows)
{
    const kn_dtype compute = compute_of(r, call->inputs[0]->dtype);
    kn_reduce_params dims = *dims_of(call->params);
    kn_tensor *x = kn_retain(call->inputs[0]);
    kn_status status = KN_OK;

    while (status == KN_OK && !kn_reduce_in_place(rows, x, dims.over)) {
        const kn_reduce_params all = dims, part = take_neighbours(&dims, x);
        int64_t shape[KN_MAX_DIMS];
        kn_tensor *y = NULL;
        if (memcmp(all.over, part.over, sizeof all.over) == 0) {
            status = kn_reduce_copy(rows, x, part.over);
            break;
        }
        for (int d = 0; d < x->ndim; d++)
            shape[d] = part.over[d] ? 1 : x->shape[d];
        status = find_rows(rows, x, r, &part);
        if (status == KN_OK)
            status = kn_tensor_new(&y, compute, x->ndim, shape, x->storage->device);
        if (status == KN_OK)
            status = run_rows(call->stream, call->op->name, &r->forward, compute, rows, NULL, NULL,
                              (const double[]){0, 0}, &y, 1);
        kn_release(rows->x);
        kn_release(x);
        rows->x = NULL;
        x = y;
    }
    kn_release(x);
    return status;
}

kn_status kn_reducer_forward(kn_call *call)
{
    kn_reducer *r = table_of(call->op, call->params);
    const kn_reduce_params *dims = dims_of(call->params);
    kn_tensor *x = call->inputs[0], *y = call->outputs[0], *m = NULL;
    kn_reduce_rows rows = {0};
    kn_status status = KN_OK;

    if (kn_numel(y) > 0)
        status = r->nests ? find_nested_rows(call, r, &rows) : find_rows(&rows, x, r, dims);
    if (status == KN_OK && r->prepass && !runs_in_one(call, r, &rows))
        status = kn_tensor_new(&m, compute_of(r, x->dtype), y->ndim, y->shape, x->storage->device);
    if (status == KN_OK)
        status = save(call, r, m);
    if (status == KN_OK && kn_numel(y) > 0)
        status = run_forward(call, r, &rows, m);
    kn_release(rows.x);
    kn_release(m);
    return status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

enum { A, Y, M };

/* The operator of the pass may be called without the result. */
static kn_status check_result(const kn_grad_call *grad, const char *names)
{
    return !strchr(names, 'y') || grad->saved[Y]
               ? KN_OK
               : kn_fail(KN_ERR_ARGUMENT, "argument `result` is NULL: the gradient is computed from it");
}

/* u and v, in the output's shape. */
static kn_status run_row_values(kn_grad_call *grad, const kn_reducer *r, const kn_reduce_params *dims, kn_tensor **uv)
{
    kn_tensor *const *saved = grad->saved;
    const kn_tensor *g = grad->grad_outputs[0];
    const kn_dtype compute = compute_of(r, grad->input[0].dtype);
    kn_reduce_rows rows = {0};
    int count = 0;

    KN_TRY(check_result(grad, r->row_values->inputs));
    while (count < KN_ROWS_OUTPUTS && r->row_values->values[count]) {
        uv[count] = kn_empty_with(g->ndim, g->shape, &(kn_tensor_options){.dtype = compute, .device = kn_device_of(g)});
        if (!uv[count++])
            return kn_error_status();
    }
    KN_TRY(find_rows(&rows, saved[A], r, dims));
    const kn_status status = run_rows(grad->stream, grad->op->name, r->row_values, compute, &rows, saved[M], saved[Y],
                                      (const double[]){0, 0}, uv, count);
    kn_release(rows.x);
    return status;
}

/* Broadcasts a per-row tensor over the input's shape. */
static kn_tensor *spread(const kn_grad_call *grad, kn_tensor *tensor, const kn_reduce_params *dims)
{
    return kn_reduce_spread(tensor, dims, grad->input[0].ndim, grad->input[0].shape);
}

/* The mean, recorded if gradients are enabled. */
static kn_tensor *mean_of(kn_tensor *x, const kn_reduce_params *dims)
{
    int named[KN_MAX_DIMS], count = 0;
    for (int d = 0; x && d < x->ndim; d++)
        if (dims->over[d])
            named[count++] = d;
    return kn_mean_dims(x ? kn_to_dtype(x, kn_compute_type(x->dtype)) : NULL, named, count, true);
}

/* The per-row operand named `name`. */
static kn_tensor *per_row(const kn_grad_call *grad, const kn_reduce_params *dims, char name, kn_tensor *const *uv)
{
    if (name == 'm' && !grad->saved[M])
        return mean_of(grad->saved[A], dims);
    return name == 'g'   ? grad->grad_outputs[0]
           : name == 'y' ? grad->saved[Y]
           : name == 'm' ? grad->saved[M]
                         : uv[name == 'v'];
}

static kn_status run_backward(kn_grad_call *grad, kn_reducer *r, const kn_reduce_params *dims, kn_tensor *result)
{
    const kn_input_spec *input = &grad->input[0];
    const kn_tensor *operands[KN_POINTWISE_INPUTS];
    kn_scalar numbers[2];
    kn_tensor *uv[KN_ROWS_OUTPUTS] = {NULL};
    double pq[2];
    int count = 0;

    KN_TRY(check_result(grad, r->backward.inputs));
    if (r->row_values)
        KN_TRY(run_row_values(grad, r, dims, uv));
    for (; r->backward.inputs[count]; count++) {
        const char name = r->backward.inputs[count];
        kn_tensor *operand = name == 'a' ? grad->saved[A] : per_row(grad, dims, name, uv);
        operands[count] = name == 'a' || !operand ? operand : spread(grad, operand, dims);
        if (!operands[count])
            return kn_error_status();
    }
    take_numbers(pq, r, grad->params, kn_reduce_count(dims, input->ndim, input->shape));
    for (int i = 0; i < 2; i++)
        numbers[i] = kn_scalar_real(pq[i]);
    return kn_elements(grad->stream, &r->backward, grad->op->name, kn_compute_type(input->dtype), result, operands,
                       count, numbers);
}

kn_status kn_reducer_backward(kn_grad_call *grad)
{
    kn_reducer *r = table_of(grad->op, grad->params);
    const kn_reduce_params *dims = dims_of(grad->params);
    kn_tensor *result = kn_grad_new(grad, 0);
    if (!result)
        return kn_error_status();
    return kn_numel(result) == 0 ? KN_OK : run_backward(grad, r, dims, result);
}

/* The same composed of recorded operations. Element counts have no gradient; m is the mean. */
kn_status kn_reducer_backward_recorded(kn_grad_call *grad)
{
    enum { G_, A_, Y_, M_, U_, V_, P_, Q_, ALL };
    kn_reducer *r = table_of(grad->op, grad->params);
    const kn_reduce_params *dims = dims_of(grad->params);
    const kn_input_spec *input = &grad->input[0];
    const char *names = r->backward.inputs;
    kn_tensor *uv[KN_ROWS_OUTPUTS] = {NULL}, *a = kn_widened(kn_grad_saved_input(grad, A, 0)),
              *y = kn_widened(kn_grad_saved_output(grad, Y, 0));
    kn_composed operands[ALL] = {{NULL, 0}};
    double pq[2];

    if (kn_shape_numel(input->ndim, input->shape) == 0) /* an empty row has no mean */
        return kn_reducer_backward(grad);
    if (r->recorded)
        return r->recorded(grad);
    if (r->row_values)
        KN_TRY(run_row_values(grad, r, dims, uv));
    take_numbers(pq, r, grad->params, kn_reduce_count(dims, input->ndim, input->shape));
    operands[G_].tensor = spread(grad, kn_widened(grad->grad_outputs[0]), dims);
    operands[A_].tensor = a;
    operands[Y_].tensor = y ? spread(grad, y, dims) : NULL;
    operands[M_].tensor = strchr(names, 'm') ? spread(grad, mean_of(a, dims), dims) : NULL;
    for (int i = 0; i < 2; i++) {
        operands[U_ + i].tensor = uv[i] ? spread(grad, uv[i], dims) : NULL;
        operands[P_ + i].number = pq[i];
    }
    kn_tensor *gradient = kn_compose(r->backward.values[0], "gaymuvpq", operands);
    grad->grad_inputs[0] = gradient ? kn_to_dtype(gradient, input->dtype) : NULL;
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

/* --- the reference ------------------------------------------------------------------------------------------------ */

/* The output element that input element `i` belongs to. */
static int64_t row_of(const kn_tensor *x, const kn_reduce_params *dims, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (!dims->over[d]) {
            at += i % x->shape[d] * step;
            step *= x->shape[d];
        }
        i /= x->shape[d];
    }
    return at;
}

kn_status kn_reducer_reference(const kn_call *call)
{
    const kn_reducer *r = table_of(call->op, call->params);
    const kn_reduce_params *dims = dims_of(call->params);
    const kn_tensor *x = call->inputs[0];
    const int64_t n = kn_reduce_count(dims, x->ndim, x->shape), rows = kn_numel(call->outputs[0]);
    double *elements = kn_calloc((size_t)(rows * n + 1), sizeof *elements);
    int64_t *counts = kn_calloc((size_t)(rows + 1), sizeof *counts);
    const double number = ((const kn_reducer_params *)call->params)->number;

    for (int64_t i = 0; elements && counts && i < kn_numel(x); i++) {
        const int64_t row = row_of(x, dims, i);
        elements[row * n + counts[row]++] = kn_reference_get(x, i);
    }
    for (int64_t row = 0; elements && counts && row < rows; row++)
        kn_reference_set(call->outputs[0], row, r->reference(elements + row * n, n, number));
    const bool failed = !elements || !counts;
    kn_free(elements);
    kn_free(counts);
    return failed ? KN_ERR_MEMORY : KN_OK;
}

/* --- calling ------------------------------------------------------------------------------------------------------ */

/* Structs with a number also begin with the fields of kn_reduce_args; without parameters all dimensions are reduced. */
kn_status kn_reducer_enter(kn_entry *entry)
{
    const kn_op_params *params = &entry->op->params;
    const kn_reduce_args all = {.keepdim = false}, *args = params->count > 0 ? entry->params : &all;
    kn_reducer_params *record = kn_entry_record(entry, sizeof *record);
    if (params->count > 2)
        record->number = *(const double *)((const char *)entry->params + params->rows[2].offset);
    return kn_reduce_enter(&record->reduce, &args->dims, args->keepdim, entry->inputs[0]->ndim);
}
