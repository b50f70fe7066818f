/* ops/sort/unique.c - unique and unique_consecutive: distinct elements, or slices along a dimension. The number of them
 * is read from the device, once, between two halves of the work. */
#include <koine/autograd.h>
#include <koine/shape.h>
#include <koine/sort.h>
#include <koine/tensor.h>
#include <string.h>

#include "autograd/work.h"
#include "base/memory.h"
#include "loops/work_size.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"
#include "ops/sort/along.h"
#include "ops/sort/taken.h"

/* What `enter` has found: tensors of its scope, which ends after forward. */
typedef struct unique_params {
    kn_tensor *x;     /* contiguous, n rows of m elements, equal ones together */
    kn_tensor *order; /* of rows before sorting; NULL: these are not sorted */
    kn_tensor *sums;  /* the number of runs before each chunk of `length` rows */
    int64_t n, m, length, chunks, count;
    int dim; /* -1: all elements */
} unique_params;

enum { CHUNKS = 4096 };
enum { THE_VALUES, INVERSE, COUNTS }; /* the outputs */

/* --- entering ----------------------------------------------------------------------------------------------------- */

/* [n, m] with the slices of `dim` as rows. */
static kn_tensor *slices(kn_tensor *x, int dim)
{
    int dims[KN_MAX_DIMS];
    const int64_t n = x->shape[dim], shape[] = {n, n ? kn_numel(x) / n : 0};
    for (int d = 0; d < x->ndim; d++)
        dims[d] = d == 0 ? dim : d <= dim ? d - 1 : d;
    return kn_contiguous(kn_reshape(kn_permute(x, dims), 2, shape));
}

/* Sorts by the columns, the last first: each sort keeps the order of the ones before. */
static kn_status sort_slices(unique_params *p)
{
    p->order = kn_arange_with(0, (double)p->n, 1, &(kn_tensor_options){.dtype = KN_I64, .device = kn_device_of(p->x)});
    for (int64_t j = p->m - 1; j >= 0 && p->order; j--) {
        kn_tensor *column = kn_index_select(kn_select(p->x, 1, j), 0, p->order);
        p->order = kn_index_select(p->order, 0, kn_argsort(column));
    }
    p->x = p->order ? kn_index_select(p->x, 0, p->order) : NULL;
    return p->x ? KN_OK : kn_error_status();
}

/* The order is for the inverse alone. */
static kn_status sort_all(unique_params *p, bool wants_order)
{
    const int64_t n = p->n;
    const kn_tensor_options options = {.dtype = p->x->dtype, .device = kn_device_of(p->x)};
    kn_tensor *x = p->x;
    if (wants_order)
        p->x = kn_sort(x, &p->order);
    else if ((p->x = kn_empty_with(1, &n, &options)))
        KN_TRY(kn_sort_along(kn_tensor_stream(x), "unique", x, 0, n, false, p->x, NULL));
    return p->x ? KN_OK : kn_error_status();
}

static char *options_of(const unique_params *p, char *buffer, size_t size)
{
    kn_sort_options(buffer, size, p->x->dtype, kn_tensor_limits(p->x));
    return buffer;
}

/* The number of runs, and of those before each chunk. */
static kn_status count_runs(kn_entry *entry, unique_params *p)
{
    const kn_limits *limits = kn_tensor_limits(p->x);
    const kn_tensor_options whole = {.dtype = KN_I64, .device = kn_device_of(p->x)};
    char options[160];

    p->length = p->n / CHUNKS + 1;
    p->chunks = p->n / p->length + 1;
    const kn_work_size work = kn_work_for(limits, p->chunks * 64);
    p->sums = kn_empty_with(1, (const int64_t[]){p->chunks + 1}, &whole);
    kn_stream *stream = p->sums ? kn_tensor_stream(p->sums) : NULL;
    if (!stream)
        return kn_error_status();
    KN_TRY(kn_run(stream, .source = "sort/unique.cl", .options = options_of(p, options, sizeof options),
                  .kernel = "count_runs", .operation = entry->op->name, .dims = 1, .global = {work.global},
                  .local = {work.local},
                  KN_ARGS(kn_arg_tensor(p->x), kn_arg_tensor(p->sums), kn_arg_i64(p->n), kn_arg_i64(p->m),
                          kn_arg_i64(p->length), kn_arg_i64(p->chunks))));
    KN_TRY(kn_run(stream, .source = "sort/unique.cl", .options = options, .kernel = "sum_runs_before",
                  .operation = entry->op->name, .dims = 1, .global = {1},
                  KN_ARGS(kn_arg_tensor(p->sums), kn_arg_i64(p->chunks))));
    return kn_item_i64(kn_narrow(p->sums, 0, p->chunks, 1), &p->count);
}

static kn_status prepare(kn_entry *entry, unique_params *p, bool sorts)
{
    const kn_unique_args *args = entry->params;
    kn_tensor *x = entry->inputs[0];
    p->dim = -1;
    if (args->dim.count > 1)
        return kn_fail(KN_ERR_ARGUMENT, "dim has %d values; it takes one, or none for all elements", args->dim.count);
    if (args->dim.count == 1) {
        KN_TRY(kn_dim_from_front(&p->dim, args->dim.values[0], x->ndim));
        if (x->ndim == 0)
            return kn_fail(KN_ERR_SHAPE, "a 0-dimensional tensor has no slices");
        if (kn_numel(x) == 0 && x->shape[p->dim] > 0)
            return kn_fail(KN_ERR_SHAPE, "the slices of dimension %d have no elements", p->dim);
    }
    p->x = p->dim < 0 ? kn_contiguous(kn_reshape(x, 1, (const int64_t[]){kn_numel(x)})) : slices(x, p->dim);
    if (!p->x)
        return kn_error_status();
    p->n = p->x->shape[0];
    p->m = p->dim < 0 ? 1 : p->x->shape[1];
    if (sorts && p->n > 0)
        KN_TRY(p->dim < 0 ? sort_all(p, kn_entry_wants(entry, INVERSE)) : sort_slices(p));
    return p->n > 0 ? count_runs(entry, p) : KN_OK;
}

static kn_status unique_enter(kn_entry *entry)
{
    unique_params *p = kn_entry_record(entry, sizeof *p);
    KN_NO_GRAD;
    return prepare(entry, p, strcmp(entry->op->name, "unique") == 0);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static kn_status unique_shape(kn_call *call)
{
    const unique_params *p = call->params;
    const kn_tensor *x = call->inputs[0];
    int64_t shape[KN_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d == p->dim ? p->count : x->shape[d];
    KN_TRY(p->dim < 0 ? kn_call_output(call, x->dtype, 1, &p->count) : kn_call_output(call, x->dtype, x->ndim, shape));
    KN_TRY(p->dim < 0 ? kn_call_output(call, KN_I64, x->ndim, x->shape) : kn_call_output(call, KN_I64, 1, &p->n));
    return kn_call_output(call, KN_I64, 1, &p->count);
}

/* `rows` [count, m], the slices, as the output. */
static kn_status deliver_slices(kn_tensor *rows, kn_tensor *output, int dim)
{
    int dims[KN_MAX_DIMS];
    int64_t shape[KN_MAX_DIMS];
    KN_NO_GRAD;
    for (int d = 0; d < output->ndim; d++) {
        dims[d] = d == dim ? 0 : d < dim ? d + 1 : d;
        shape[d] = output->shape[d == 0 ? dim : d <= dim ? d - 1 : d];
    }
    kn_tensor *moved = kn_permute(kn_reshape(rows, output->ndim, shape), dims);
    return moved ? kn_tensor_copy(output, moved) : kn_error_status();
}

/* The values of single elements come with the marks. */
static kn_status take_runs(kn_call *call, const unique_params *p, kn_tensor *values)
{
    const kn_limits *limits = kn_tensor_limits(p->x);
    const kn_work_size of_chunks = kn_work_for(limits, p->chunks * 64), of_runs = kn_work_for(limits, p->count * 4);
    kn_tensor *inverse = call->outputs[INVERSE], *counts = call->outputs[COUNTS], *starts;
    const bool single = p->m == 1, takes = counts || (values && !single);
    const int64_t num_starts = takes ? p->count : 1;
    char options[160];

    options_of(p, options, sizeof options);
    KN_TRY(kn_tensor_new(&starts, KN_I64, 1, &num_starts, p->x->storage->device));
    kn_status status =
        kn_run(call->stream, .source = "sort/unique.cl", .options = options, .kernel = "mark_runs",
               .operation = call->op->name, .dims = 1, .global = {of_chunks.global}, .local = {of_chunks.local},
               KN_ARGS(kn_arg_tensor(p->x), kn_arg_tensor(p->sums), kn_arg_tensor(p->order ? p->order : p->x),
                       kn_arg_tensor(starts), kn_arg_tensor(values && single ? values : starts),
                       kn_arg_tensor(inverse ? inverse : starts), kn_arg_i64(p->n), kn_arg_i64(p->m),
                       kn_arg_i64(p->length), kn_arg_i64(p->chunks), kn_arg_i32(p->order != NULL), kn_arg_i32(takes),
                       kn_arg_i32(values && single), kn_arg_i32(inverse != NULL)));
    if (status == KN_OK && takes)
        status = kn_run(call->stream, .source = "sort/unique.cl", .options = options, .kernel = "take_runs",
                        .operation = call->op->name, .dims = 1, .global = {of_runs.global}, .local = {of_runs.local},
                        KN_ARGS(kn_arg_tensor(p->x), kn_arg_tensor(starts),
                                kn_arg_tensor(values && !single ? values : starts),
                                kn_arg_tensor(counts ? counts : starts), kn_arg_i64(p->n), kn_arg_i64(p->m),
                                kn_arg_i64(p->count), kn_arg_i32(values && !single), kn_arg_i32(counts != NULL)));
    kn_release(starts);
    return status;
}

static kn_status unique_forward(kn_call *call)
{
    const unique_params *p = call->params;
    kn_tensor *values = call->outputs[THE_VALUES], *rows = NULL;
    const int64_t shape[] = {p->count, p->m};

    if (p->count == 0)
        return KN_OK;
    if (!values || p->dim <= 0)
        return take_runs(call, p, values);
    KN_TRY(kn_tensor_new(&rows, values->dtype, 2, shape, values->storage->device));
    kn_status status = take_runs(call, p, rows);
    if (status == KN_OK)
        status = deliver_slices(rows, values, p->dim);
    kn_release(rows);
    return status;
}

/* --- the reference ------------------------------------------------------------------------------------------------ */

/* Element j of slice i, in the order of the slices' elements in x. */
static int64_t place_in(const kn_along *l, int64_t i, int64_t j)
{
    return (j / l->inner * l->n + i) * l->inner + j % l->inner;
}

static int compare_slices(const kn_tensor *x, const kn_along *l, int64_t a, int64_t b, int64_t m)
{
    for (int64_t j = 0; j < m; j++) {
        const double of_a = kn_reference_get(x, place_in(l, a, j)), of_b = kn_reference_get(x, place_in(l, b, j));
        if (of_a != of_b) /* of two NaNs the first in memory is the first */
            return of_a < of_b || (isnan(of_b) && !isnan(of_a)) ? -1 : isnan(of_a) && isnan(of_b) ? 2 : 1;
    }
    return 0;
}

/* The places of the slices in order, by insertion. */
static void order_slices(int64_t *order, const kn_tensor *x, const kn_along *l, int64_t m, bool sorts)
{
    for (int64_t i = 0; i < l->n; i++) {
        int64_t at = i;
        for (; sorts && at > 0 && compare_slices(x, l, order[at - 1], i, m) == 1; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static kn_status unique_reference(const kn_call *call)
{
    const unique_params *p = call->params;
    const kn_tensor *x = call->inputs[0];
    const kn_along l = p->dim < 0 ? (kn_along){1, kn_numel(x), 1} : kn_along_dim(x->ndim, x->shape, p->dim);
    kn_along out = l;
    int64_t *order = kn_calloc((size_t)l.n + 1, sizeof *order), run = -1;

    if (!order)
        return KN_ERR_MEMORY;
    out.n = p->count;
    order_slices(order, x, &l, p->m, strcmp(call->op->name, "unique") == 0);
    for (int64_t i = 0; i < l.n; i++) {
        const bool begins = i == 0 || compare_slices(x, &l, order[i - 1], order[i], p->m) != 0;
        run += begins;
        for (int64_t j = 0; j < p->m && begins && call->outputs[THE_VALUES]; j++)
            kn_reference_set(call->outputs[THE_VALUES], place_in(&out, run, j),
                             kn_reference_get(x, place_in(&l, order[i], j)));
        if (call->outputs[INVERSE])
            kn_reference_set(call->outputs[INVERSE], order[i], (double)run);
        if (call->outputs[COUNTS])
            kn_reference_set(call->outputs[COUNTS], run, begins ? 1 : kn_reference_get(call->outputs[COUNTS], run) + 1);
    }
    kn_free(order);
    return KN_OK;
}

/* --- operators ---------------------------------------------------------------------------------------------------- */

static const kn_op_param rows[] = {KN_PARAM(kn_unique_args, dim)};
#define UNIQUE_OP(id)                                                                                                  \
    {                                                                                                                  \
        .name = #id, .inputs = {"x"}, .outputs = {"values", "inverse_indices", "counts"}, .skips_outputs = true,       \
        .params = KN_PARAMS(kn_unique_args, rows), .composes = true, .enter = unique_enter,                            \
        .record_size = sizeof(unique_params), .shape = unique_shape, .forward = unique_forward,                        \
        .reference = unique_reference, .work = kn_work_reducing                                                        \
    }
const kn_op kn_unique_op = UNIQUE_OP(unique), kn_unique_consecutive_op = UNIQUE_OP(unique_consecutive);

static kn_tensor *distinct(const kn_op *op, kn_tensor *x, const int *dim, kn_tensor **inverse, kn_tensor **counts)
{
    kn_unique_args args = {.dim = {.count = dim != NULL, .values = {dim ? *dim : 0}}};
    kn_tensor *outputs[] = {NULL, inverse ? NULL : KN_SKIP_OUTPUT, counts ? NULL : KN_SKIP_OUTPUT};
    const kn_status status = kn_op_invoke_to(op, &x, 1, &args, outputs, 3);
    if (inverse)
        *inverse = status == KN_OK ? outputs[INVERSE] : NULL;
    if (counts)
        *counts = status == KN_OK ? outputs[COUNTS] : NULL;
    return status == KN_OK ? outputs[THE_VALUES] : kn_error_make_sticky();
}

kn_tensor *kn_unique(kn_tensor *x, kn_tensor **inverse, kn_tensor **counts)
{
    return distinct(&kn_unique_op, x, NULL, inverse, counts);
}

kn_tensor *kn_unique_dim(kn_tensor *x, int dim, kn_tensor **inverse, kn_tensor **counts)
{
    return distinct(&kn_unique_op, x, &dim, inverse, counts);
}

kn_tensor *kn_unique_consecutive(kn_tensor *x, kn_tensor **inverse, kn_tensor **counts)
{
    return distinct(&kn_unique_consecutive_op, x, NULL, inverse, counts);
}

kn_tensor *kn_unique_consecutive_dim(kn_tensor *x, int dim, kn_tensor **inverse, kn_tensor **counts)
{
    return distinct(&kn_unique_consecutive_op, x, &dim, inverse, counts);
}
