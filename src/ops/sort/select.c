/* ops/sort/select.c - one element of each row in its order: kthvalue, median, nanmedian, mode, with its index. */
#include <koine/sort.h>

#include "autograd/work.h"
#include "base/integer.h"
#include "base/memory.h"
#include "loops/work_size.h"
#include "ops/dispatch/reference.h"
#include "ops/sort/along.h"

typedef enum which { KTH, MEDIAN, NANMEDIAN, MODE } which; /* as in cl/sort/which.clh */

typedef struct pick_params {
    kn_reduce_params reduce;
    int dim;
    int64_t k; /* from 0 */
} pick_params;

static which which_of(const kn_op *op) { return *(const which *)op->detail; }

/* --- entering ----------------------------------------------------------------------------------------------------- */

static kn_status pick_enter(kn_entry *entry, int dim, bool keepdim, pick_params **record)
{
    const kn_tensor *x = entry->inputs[0];
    *record = kn_entry_record(entry, sizeof **record);
    KN_TRY(kn_dim_from_front(&(*record)->dim, dim, x->ndim));
    if (x->ndim > 0 && x->shape[(*record)->dim] == 0)
        return kn_fail(KN_ERR_SHAPE, "there is nothing to select from along dimension %d, whose size is 0",
                       (*record)->dim);
    return kn_reduce_enter(&(*record)->reduce, &(kn_ints){1, {dim}}, keepdim, x->ndim);
}

static kn_status along_enter(kn_entry *entry)
{
    const kn_along_args *args = entry->params;
    pick_params *record;
    return pick_enter(entry, args->dim, args->keepdim, &record);
}

static kn_status kthvalue_enter(kn_entry *entry)
{
    const kn_kthvalue_args *args = entry->params;
    const kn_tensor *x = entry->inputs[0];
    pick_params *record;
    KN_TRY(pick_enter(entry, args->dim, args->keepdim, &record));
    const int64_t n = x->ndim ? x->shape[record->dim] : 1;
    record->k = args->k - 1;
    return args->k <= n ? KN_OK
                        : kn_fail(KN_ERR_ARGUMENT, "k is %lld, but dimension %d has %lld elements", (long long)args->k,
                                  record->dim, (long long)n);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static kn_status pick_shape(kn_call *call)
{
    const pick_params *params = call->params;
    KN_TRY(kn_reduce_output(call, &params->reduce, call->inputs[0]->dtype));
    return kn_reduce_output(call, &params->reduce, KN_I64);
}

/* Launches a kernel for `rows` of n elements in `from`, for which `second` is places or scratch memory. */
static kn_status launch(kn_call *call, const char *source, const char *kernel, kn_work_size work, const kn_tensor *from,
                        kn_arg second, int64_t rows, int64_t n)
{
    char options[160];
    kn_sort_options(options, sizeof options, from->dtype, kn_tensor_limits(from));
    return kn_run(call->stream, .source = source, .options = options, .kernel = kernel, .operation = call->op->name,
                  .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(from), second, kn_arg_tensor(call->outputs[0]), kn_arg_tensor(call->outputs[1]),
                          kn_arg_i64(rows), kn_arg_i64(n), kn_arg_i64(((const pick_params *)call->params)->k),
                          kn_arg_i32(which_of(call->op))));
}

/* Sorts rows, of kthvalue only the first k, and picks from them. */
static kn_status pick_sorted(kn_call *call, const kn_sorted_rows *rows)
{
    const int64_t k = which_of(call->op) == KTH ? ((const pick_params *)call->params)->k + 1 : rows->n;
    const int64_t shape[] = {rows->rows, k};
    kn_tensor *sorted = NULL, *places = NULL;
    kn_status status = kn_tensor_new(&sorted, rows->x->dtype, 2, shape, rows->x->storage->device);
    if (status == KN_OK)
        status = kn_tensor_new(&places, KN_I64, 2, shape, rows->x->storage->device);
    if (status == KN_OK)
        status = kn_sort_run(call->stream, &(kn_sort_problem){.operation = call->op->name,
                                                              .x = rows->x,
                                                              .rows = rows->rows,
                                                              .n = rows->n,
                                                              .k = k,
                                                              .values = sorted,
                                                              .indices = places});
    if (status == KN_OK)
        status = launch(call, "sort/pick.cl", "sort_pick", kn_work_for(kn_tensor_limits(sorted), rows->rows * 64),
                        sorted, kn_arg_tensor(places), rows->rows, k);
    kn_release(places);
    kn_release(sorted);
    return status;
}

/* LANES: keys that cl/sort/nth.cl reads at once. SORTED_ROW: so few elements are sorted sooner than counted.
 * SHORT_ROW: elements that one work-item counts in soon enough. FIRST: the first 1 in FIRST elements are selected by
 * all work-items sooner than one of them counts. */
enum { LANES = 16, SORTED_ROW = 23, SHORT_ROW = 32768, FIRST = 2048 };

/* A work-item per row finds the element by counting. */
static kn_status pick_by_counting(kn_call *call, const kn_sorted_rows *rows)
{
    const kn_limits *limits = kn_tensor_limits(rows->x);
    const int64_t items = kn_min_i64(rows->rows, kn_work_items(limits, rows->rows * rows->n * 4, 4096));
    const size_t key = kn_dtype_size(rows->x->dtype) == 8 ? 8 : 4;
    kn_buffer *scratch;
    KN_TRY(kn_buffer_alloc(&scratch, call->stream, (size_t)(items * 2 * (rows->n + LANES)) * key));
    const kn_status status = launch(call, "sort/nth.cl", "sort_nth", (kn_work_size){.global = (size_t)items}, rows->x,
                                    kn_arg_buffer(scratch, 0), rows->rows, rows->n);
    kn_buffer_free(scratch);
    return status;
}

/* With few long rows, sorting them with all work-items is faster on devices of many cores. */
static bool counts(const kn_call *call, const kn_sorted_rows *rows)
{
    const kn_limits *limits = kn_tensor_limits(rows->x);
    const which w = which_of(call->op);
    if (!limits->is_cpu || w == MODE || rows->n <= SORTED_ROW ||
        (w == KTH && ((const pick_params *)call->params)->k < rows->n / FIRST))
        return false;
    return rows->n <= SHORT_ROW || (rows->n <= INT32_MAX && rows->rows * 8 >= limits->compute_units);
}

static kn_status pick_forward(kn_call *call)
{
    kn_sorted_rows rows;
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->outputs[1]));
    if (kn_numel(call->outputs[0]) == 0)
        return KN_OK;
    KN_TRY(kn_sorted_rows_of(&rows, call->inputs[0], ((const pick_params *)call->params)->dim));
    const kn_status status = (counts(call, &rows) ? pick_by_counting : pick_sorted)(call, &rows);
    kn_release(rows.x);
    return status;
}

static kn_status pick_backward(kn_grad_call *grad)
{
    return kn_taken_backward(grad, grad->grad_outputs[0], grad->saved[0], ((const pick_params *)grad->params)->dim);
}

static kn_status pick_backward_recorded(kn_grad_call *grad)
{
    return kn_taken_backward_recorded(grad, grad->grad_outputs[0], grad->saved[0],
                                      ((const pick_params *)grad->params)->dim);
}

/* --- the reference ------------------------------------------------------------------------------------------------ */

static int64_t reference_of_mode(const double *value, int64_t n)
{
    int64_t best = 0, most = 0;
    for (int64_t i = 0, run = 0; i < n; i++) {
        run = i > 0 && value[i] == value[i - 1] ? run + 1 : 1;
        if (run > most) {
            most = run;
            best = i;
        }
    }
    return best;
}

/* Which of n sorted values. */
static int64_t reference_of(which w, const double *value, int64_t n, int64_t k)
{
    int64_t numbers = n;
    if (w == KTH || w == MODE)
        return w == KTH ? k : reference_of_mode(value, n);
    while (numbers > 0 && isnan(value[numbers - 1]))
        numbers--;
    if (w == MEDIAN)
        return numbers < n ? numbers : (n - 1) / 2;
    return numbers > 0 ? (numbers - 1) / 2 : 0;
}

static kn_status pick_reference(const kn_call *call)
{
    const pick_params *params = call->params;
    const kn_tensor *x = call->inputs[0];
    const kn_along l = kn_along_dim(x->ndim, x->shape, params->dim);
    double *value = kn_calloc((size_t)l.n + 1, sizeof *value);

    for (int64_t row = 0; value && row < l.outer * l.inner; row++) {
        const int64_t first = row / l.inner * l.n * l.inner + row % l.inner;
        int64_t *places = kn_sort_reference_order(x, first, l.inner, l.n, false);
        for (int64_t i = 0; places && i < l.n; i++)
            value[i] = kn_reference_get(x, first + places[i] * l.inner);
        const int64_t at = reference_of(which_of(call->op), value, l.n, params->k);
        if (places) {
            kn_reference_set(call->outputs[0], row, value[at]);
            kn_reference_set(call->outputs[1], row, (double)places[at]);
        }
        kn_free(places);
    }
    kn_free(value);
    return value ? KN_OK : KN_ERR_MEMORY;
}

/* --- operators ---------------------------------------------------------------------------------------------------- */

static const kn_op_param along_rows[] = {KN_PARAM(kn_along_args, dim), KN_PARAM(kn_along_args, keepdim)};
static const kn_op_param kthvalue_rows[] = {KN_PARAM(kn_kthvalue_args, k, .min = 1, .max = INFINITY),
                                            KN_PARAM(kn_kthvalue_args, dim), KN_PARAM(kn_kthvalue_args, keepdim)};
static const which kth = KTH, median = MEDIAN, nanmedian = NANMEDIAN, mode = MODE;

#define PICK_OP(name_, params_, enter_, which_)                                                                        \
    {                                                                                                                  \
        .name = name_, .inputs = {"x"}, .outputs = {"values", "indices"}, .params = params_, .enter = enter_,          \
        .record_size = sizeof(pick_params), .shape = pick_shape, .forward = pick_forward, .backward = pick_backward,   \
        .backward_recorded = pick_backward_recorded, .saved = {"indices"}, .reference = pick_reference,                \
        .work = kn_work_reducing, .backward_work = kn_grad_work_memory_bound, .detail = (void *)&(which_)              \
    }
#define ALONG KN_PARAMS(kn_along_args, along_rows, .dim = -1)
const kn_op kn_kthvalue_op =
    PICK_OP("kthvalue", KN_PARAMS(kn_kthvalue_args, kthvalue_rows, .k = 1, .dim = -1), kthvalue_enter, kth);
const kn_op kn_median_dim_op = PICK_OP("median_dim", ALONG, along_enter, median);
const kn_op kn_nanmedian_dim_op = PICK_OP("nanmedian_dim", ALONG, along_enter, nanmedian);
const kn_op kn_mode_op = PICK_OP("mode", ALONG, along_enter, mode);
const kn_op kn_kthvalue_backward_op = KN_TAKEN_BACKWARD_OP(kthvalue),
            kn_median_dim_backward_op = KN_TAKEN_BACKWARD_OP(median_dim),
            kn_nanmedian_dim_backward_op = KN_TAKEN_BACKWARD_OP(nanmedian_dim),
            kn_mode_backward_op = KN_TAKEN_BACKWARD_OP(mode);

kn_kthvalue_params kn_kthvalue_params_init(void) { return (kn_kthvalue_params){KN_KTHVALUE_DEFAULTS}; }
kn_mode_params kn_mode_params_init(void) { return (kn_mode_params){KN_MODE_DEFAULTS}; }

kn_tensor *kn_kthvalue_with(kn_tensor *x, int64_t k, kn_tensor **indices, const kn_kthvalue_params *params)
{
    const kn_kthvalue_params p = params ? *params : kn_kthvalue_params_init();
    return kn_invoke_with_indices(&kn_kthvalue_op, x, &(kn_kthvalue_args){k, p.dim, p.keepdim}, indices);
}

kn_tensor *kn_mode_with(kn_tensor *x, kn_tensor **indices, const kn_mode_params *params)
{
    const kn_mode_params p = params ? *params : kn_mode_params_init();
    return kn_invoke_with_indices(&kn_mode_op, x, &(kn_along_args){p.dim, p.keepdim}, indices);
}

kn_tensor *kn_median_dim(kn_tensor *x, int dim, bool keepdim, kn_tensor **indices)
{
    return kn_invoke_with_indices(&kn_median_dim_op, x, &(kn_along_args){dim, keepdim}, indices);
}

kn_tensor *kn_nanmedian_dim(kn_tensor *x, int dim, bool keepdim, kn_tensor **indices)
{
    return kn_invoke_with_indices(&kn_nanmedian_dim_op, x, &(kn_along_args){dim, keepdim}, indices);
}
