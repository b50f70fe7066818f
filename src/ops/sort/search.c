/* ops/sort/search.c - searchsorted, bucketize, isin: binary search in sorted rows. */
#include <koine/sort.h>
#include <stdio.h>
#include <string.h>

#include "autograd/op.h"
#include "loops/work_size.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/sort/engine.h"

enum { SORTED, VALUES, SORTER };

/* --- searchsorted and bucketize ----------------------------------------------------------------------------------- */

static kn_status search_shape(kn_call *call)
{
    const kn_search_args *args = call->params;
    const kn_tensor *sorted = call->inputs[SORTED], *values = call->inputs[VALUES], *sorter = call->inputs[SORTER];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];

    if (sorted->ndim == 0)
        return kn_fail(KN_ERR_SHAPE, "the sorted sequence has no dimensions; it must have at least 1");
    bool fits = sorted->ndim == 1 || sorted->ndim == values->ndim;
    for (int d = 0; d < sorted->ndim - 1 && fits; d++)
        fits = sorted->shape[d] == values->shape[d];
    if (!fits)
        return kn_fail(KN_ERR_SHAPE,
                       "the sorted sequence must have one dimension or those of the values except the last, but it is "
                       "%s and the values are %s",
                       kn_tensor_describe(a, sizeof a, sorted), kn_tensor_describe(b, sizeof b, values));
    if (sorted->dtype != values->dtype)
        return kn_fail(KN_ERR_DTYPE, "the sorted sequence is %s, but the values are %s: convert one with kn_to_dtype",
                       kn_dtype_name(sorted->dtype), kn_dtype_name(values->dtype));
    if (sorter && (sorter->dtype != KN_I64 || !kn_same_shape(sorter, sorted)))
        return kn_fail(KN_ERR_SHAPE, "the sorter must be int64 of the sorted sequence's shape, not %s",
                       kn_tensor_describe(a, sizeof a, sorter));
    return kn_call_output(call, args->out_int32 ? KN_I32 : KN_I64, values->ndim, values->shape);
}

static kn_status search(kn_call *call, const kn_tensor *sorted, const kn_tensor *order, const kn_tensor *values)
{
    const kn_search_args *args = call->params;
    const kn_limits *limits = kn_tensor_limits(sorted);
    const int64_t count = kn_numel(values);
    const kn_work_size work = kn_work_for(limits, count);
    char options[200];

    kn_sort_options(options, sizeof options, sorted->dtype, limits);
    strcat(options, args->out_int32 ? " -DRESULT=int" : " -DRESULT=long");
    return kn_run(call->stream, .source = "sort/search.cl", .options = options, .kernel = "search_sorted",
                  .operation = call->op->name, .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(sorted), kn_arg_tensor(order ? order : sorted), kn_arg_tensor(values),
                          kn_arg_tensor(call->outputs[0]), kn_arg_i64(count),
                          kn_arg_i64(sorted->shape[sorted->ndim - 1]),
                          kn_arg_i64(values->ndim ? values->shape[values->ndim - 1] : 1), kn_arg_i32(sorted->ndim == 1),
                          kn_arg_i32(order != NULL), kn_arg_i32(args->right)));
}

static kn_status search_forward(kn_call *call)
{
    kn_tensor *inputs[3] = {NULL, NULL, NULL};
    kn_status status = KN_OK;
    if (kn_numel(call->outputs[0]) == 0)
        return KN_OK;
    for (int i = 0; i < 3 && status == KN_OK; i++)
        if (call->inputs[i])
            status = kn_tensor_contiguous(&inputs[i], call->inputs[i]);
    if (status == KN_OK)
        status = search(call, inputs[SORTED], inputs[SORTER], inputs[VALUES]);
    for (int i = 0; i < 3; i++)
        kn_release(inputs[i]);
    return status;
}

static kn_status search_reference(const kn_call *call)
{
    const kn_search_args *args = call->params;
    const kn_tensor *sorted = call->inputs[SORTED], *values = call->inputs[VALUES], *sorter = call->inputs[SORTER];
    const int64_t n = sorted->shape[sorted->ndim - 1], m = values->ndim ? values->shape[values->ndim - 1] : 1;
    for (int64_t i = 0; i < kn_numel(values); i++) {
        const int64_t first = sorted->ndim == 1 ? 0 : i / m * n;
        const double value = kn_reference_get(values, i);
        int64_t at = 0;
        for (; at < n; at++) {
            const int64_t place = sorter ? (int64_t)kn_reference_get(sorter, first + at) : at;
            const double other = kn_reference_get(sorted, first + place);
            if (args->right ? other > value : other >= value)
                break;
        }
        kn_reference_set(call->outputs[0], i, (double)at);
    }
    return KN_OK;
}

static kn_status bucketize_enter(kn_entry *entry)
{
    kn_tensor *values = entry->inputs[0];
    if (entry->inputs[1]->ndim != 1)
        return kn_fail(KN_ERR_SHAPE, "the boundaries have %d dimensions; they must have 1", entry->inputs[1]->ndim);
    entry->inputs[SORTED] = entry->inputs[1];
    entry->inputs[VALUES] = values;
    entry->inputs[SORTER] = NULL;
    entry->num_inputs = 3;
    return KN_OK;
}

static const kn_op_param search_rows[] = {KN_PARAM(kn_search_args, out_int32), KN_PARAM(kn_search_args, right)};
#define SEARCH_OP(name_, ...)                                                                                          \
    {                                                                                                                  \
        .name = name_, .params = KN_PARAMS(kn_search_args, search_rows, .right = false), .shape = search_shape,        \
        .forward = search_forward, .reference = search_reference, __VA_ARGS__                                          \
    }
const kn_op kn_searchsorted_op = SEARCH_OP("searchsorted", .inputs = {"sorted_sequence", "input", "?sorter"},
                                           .dtypes = {KN_DTYPES_ALL, KN_DTYPES_ALL, 1u << KN_I64});
const kn_op kn_bucketize_op = SEARCH_OP("bucketize", .inputs = {"input", "boundaries"}, .enter = bucketize_enter,
                                        .dtypes = {KN_DTYPES_ALL, KN_DTYPES_ALL});

kn_searchsorted_params kn_searchsorted_params_init(void) { return (kn_searchsorted_params){KN_SEARCHSORTED_DEFAULTS}; }
kn_bucketize_params kn_bucketize_params_init(void) { return (kn_bucketize_params){KN_BUCKETIZE_DEFAULTS}; }

kn_tensor *kn_searchsorted_with(kn_tensor *sorted_sequence, kn_tensor *input, const kn_searchsorted_params *params)
{
    const kn_searchsorted_params p = params ? *params : kn_searchsorted_params_init();
    return kn_invoke(&kn_searchsorted_op, (&(kn_search_args){.out_int32 = p.out_int32, .right = p.right}),
                     sorted_sequence, input, p.sorter);
}

kn_tensor *kn_bucketize_with(kn_tensor *input, kn_tensor *boundaries, const kn_bucketize_params *params)
{
    const kn_bucketize_params p = params ? *params : kn_bucketize_params_init();
    return kn_invoke(&kn_bucketize_op, (&(kn_search_args){.out_int32 = p.out_int32, .right = p.right}), input,
                     boundaries);
}

/* --- isin --------------------------------------------------------------------------------------------------------- */

enum { ELEMENTS, TESTS };

/* Both in their joint dtype; the tests flat. */
static kn_status isin_enter(kn_entry *entry)
{
    const kn_dtype dtype = kn_result_type_of(entry->inputs, 2);
    for (int i = 0; i < 2; i++) {
        entry->inputs[i] = kn_to_dtype(entry->inputs[i], dtype);
        if (!entry->inputs[i])
            return kn_error_status();
    }
    return KN_OK;
}

static kn_status isin_shape(kn_call *call)
{
    return kn_call_output(call, KN_BOOL, call->inputs[ELEMENTS]->ndim, call->inputs[ELEMENTS]->shape);
}

static kn_status find(kn_call *call, kn_tensor *elements, kn_tensor *tests)
{
    const kn_limits *limits = kn_tensor_limits(elements);
    const int64_t count = kn_numel(elements), n = kn_numel(tests);
    const kn_work_size work = kn_work_for(limits, count);
    kn_tensor *sorted;
    char options[200];

    KN_TRY(kn_tensor_new(&sorted, tests->dtype, 1, &n, tests->storage->device));
    kn_status status = kn_sort_run(
        call->stream, &(kn_sort_problem){.operation = "isin", .x = tests, .rows = 1, .n = n, .k = n, .values = sorted});
    kn_sort_options(options, sizeof options, tests->dtype, limits);
    strcat(options, " -DRESULT=uchar");
    if (status == KN_OK)
        status = kn_run(call->stream, .source = "sort/search.cl", .options = options, .kernel = "is_in",
                        .operation = "isin", .dims = 1, .global = {work.global}, .local = {work.local},
                        KN_ARGS(kn_arg_tensor(sorted), kn_arg_tensor(elements), kn_arg_tensor(call->outputs[0]),
                                kn_arg_i64(count), kn_arg_i64(n),
                                kn_arg_i32(((const kn_isin_params *)call->params)->invert)));
    kn_release(sorted);
    return status;
}

static kn_status isin_forward(kn_call *call)
{
    kn_tensor *elements, *tests;
    if (kn_numel(call->outputs[0]) == 0)
        return KN_OK;
    if (kn_numel(call->inputs[TESTS]) == 0)
        return kn_tensor_fill(call->outputs[0], ((const kn_isin_params *)call->params)->invert);
    KN_TRY(kn_tensor_contiguous(&elements, call->inputs[ELEMENTS]));
    kn_status status = kn_tensor_contiguous(&tests, call->inputs[TESTS]);
    if (status == KN_OK) {
        status = find(call, elements, tests);
        kn_release(tests);
    }
    kn_release(elements);
    return status;
}

static kn_status isin_reference(const kn_call *call)
{
    const bool invert = ((const kn_isin_params *)call->params)->invert;
    for (int64_t i = 0; i < kn_numel(call->inputs[ELEMENTS]); i++) {
        bool is = false;
        for (int64_t j = 0; j < kn_numel(call->inputs[TESTS]); j++)
            is |= kn_reference_get(call->inputs[ELEMENTS], i) == kn_reference_get(call->inputs[TESTS], j);
        kn_reference_set(call->outputs[0], i, is != invert);
    }
    return KN_OK;
}

static const kn_op_param isin_rows[] = {KN_PARAM(kn_isin_params, assume_unique), KN_PARAM(kn_isin_params, invert)};
const kn_op kn_isin_op = {.name = "isin",
                          .inputs = {"elements", "test_elements"},
                          .dtypes = {KN_DTYPES_ALL, KN_DTYPES_ALL},
                          .params = KN_PARAMS(kn_isin_params, isin_rows, KN_ISIN_DEFAULTS),
                          .composes = true,
                          .enter = isin_enter,
                          .shape = isin_shape,
                          .forward = isin_forward,
                          .reference = isin_reference};

kn_isin_params kn_isin_params_init(void) { return (kn_isin_params){KN_ISIN_DEFAULTS}; }

kn_tensor *kn_isin_with(kn_tensor *elements, kn_tensor *test_elements, const kn_isin_params *params)
{
    return kn_invoke(&kn_isin_op, params, elements, test_elements);
}
