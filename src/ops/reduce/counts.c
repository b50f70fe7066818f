/* ops/reduce/counts.c - any, all, count_nonzero; sums and means of what is not NaN. */
#include <koine/logic.h>
#include <koine/reduce.h>

#include "autograd/anomaly.h"
#include "base/load.h"
#include "ops/reduce/reducer.h"

static const kn_op_param rows[] = {KN_REDUCE_ROWS(kn_reduce_args)};

/* --- conditions --------------------------------------------------------------------------------------------------- */

static double any_reference(const double *a, int64_t n, double number)
{
    (void)number;
    for (int64_t i = 0; i < n; i++)
        if (a[i] != 0)
            return 1;
    return 0;
}

static double all_reference(const double *a, int64_t n, double number)
{
    (void)number;
    for (int64_t i = 0; i < n; i++)
        if (a[i] == 0)
            return 0;
    return 1;
}

static double count_reference(const double *a, int64_t n, double number)
{
    int64_t count = 0;
    (void)number;
    for (int64_t i = 0; i < n; i++)
        count += a[i] != 0;
    return (double)count;
}

static kn_reducer any_table = {.rule = KN_REDUCES_BOOL,
                               .nests = true,
                               .forward = {.name = "any",
                                           .inputs = "a",
                                           .state = "s",
                                           .init = "s = 0;",
                                           .step = "s = a != 0 ? (T)1 : s;",
                                           .merge = "s = S != 0 ? (T)1 : s;",
                                           .values = {"s"}},
                               .reference = any_reference};
static kn_reducer all_table = {.rule = KN_REDUCES_BOOL,
                               .nests = true,
                               .forward = {.name = "all",
                                           .inputs = "a",
                                           .state = "s",
                                           .init = "s = 1;",
                                           .step = "s = a == 0 ? (T)0 : s;",
                                           .merge = "s = S == 0 ? (T)0 : s;",
                                           .values = {"s"}},
                               .reference = all_reference};
static kn_reducer count_nonzero_table = {
    .rule = KN_REDUCES_COUNT,
    .forward = {.name = "count_nonzero", .inputs = "a", KN_SUM_OF("(a != 0 ? (T)1 : (T)0)"), .values = {"s"}},
    .reference = count_reference};

const kn_op kn_any_op = KN_REDUCER_PLAIN_OP("any", KN_PARAMS(kn_reduce_args, rows), &any_table);
const kn_op kn_all_op = KN_REDUCER_PLAIN_OP("all", KN_PARAMS(kn_reduce_args, rows), &all_table);
const kn_op kn_count_nonzero_op =
    KN_REDUCER_PLAIN_OP("count_nonzero", KN_PARAMS(kn_reduce_args, rows), &count_nonzero_table);

/* --- without NaN -------------------------------------------------------------------------------------------------- */

static double nansum_reference(const double *a, int64_t n, double number)
{
    double sum = 0;
    (void)number;
    for (int64_t i = 0; i < n; i++)
        sum += isnan(a[i]) ? 0 : a[i];
    return sum;
}

static double nanmean_reference(const double *a, int64_t n, double number)
{
    double count = 0;
    for (int64_t i = 0; i < n; i++)
        count += !isnan(a[i]);
    return nansum_reference(a, n, number) / count;
}

#define IF_NUMBER(value) "(KN_NAN(a) ? (T)0 : " value ")"

static kn_rows_code count_of_numbers = {
    .name = "count_of_numbers", .inputs = "a", KN_SUM_OF(IF_NUMBER("(T)1")), .values = {"s"}};

static kn_reducer nansum_table = {
    .rule = KN_REDUCES_WIDE,
    .forward = {.name = "nansum", .inputs = "a", KN_SUM_OF(IF_NUMBER("a")), .values = {"s"}},
    .backward = {.name = "nansum_backward", .inputs = "ga", .values = {"a != a ? (T)0 : g"}},
    .reference = nansum_reference};
static kn_reducer nanmean_table = {
    .rule = KN_REDUCES_SAME,
    .forward = {.name = "nanmean",
                .inputs = "a",
                KN_TWO_SUMS_BY("u += " IF_NUMBER("a") "; v += " IF_NUMBER("(T)1") ";"),
                .values = {"u / v"}},
    .row_values = &count_of_numbers,
    .backward = {.name = "nanmean_backward", .inputs = "gau", .values = {"a != a ? (T)0 : g / u"}},
    .reference = nanmean_reference};

const kn_op kn_nansum_op = KN_REDUCER_OP("nansum", KN_DTYPES_ALL, KN_PARAMS(kn_reduce_args, rows), &nansum_table);
const kn_op kn_nansum_backward_op = KN_REDUCER_BACKWARD_OP(nansum);
const kn_op kn_nanmean_op =
    KN_REDUCER_OP("nanmean", KN_DTYPES_FLOATING, KN_PARAMS(kn_reduce_args, rows), &nanmean_table);
const kn_op kn_nanmean_backward_op = KN_REDUCER_BACKWARD_OP(nanmean);

/* --- calling ------------------------------------------------------------------------------------------------------ */

static kn_tensor *over(const kn_op *op, kn_tensor *x, const int *dims, int num_dims, bool keepdim)
{
    kn_reduce_args args = {.keepdim = keepdim};
    return kn_reduce_named(&args.dims, op->name, dims, num_dims) ? kn_invoke(op, &args, x) : NULL;
}

#define CALLS(name)                                                                                                    \
    kn_tensor *kn_##name(kn_tensor *x) { return kn_invoke(&kn_##name##_op, NULL, x); }                                 \
    kn_tensor *kn_##name##_dims(kn_tensor *x, const int *dims, int num_dims, bool keepdim)                             \
    {                                                                                                                  \
        return over(&kn_##name##_op, x, dims, num_dims, keepdim);                                                      \
    }

CALLS(any)
CALLS(all)
CALLS(count_nonzero)
CALLS(nansum)
CALLS(nanmean)

static kn_status search_nan(bool *has_nan, kn_tensor *tensor)
{
    double any = 0;
    const kn_status status = kn_item(kn_any(kn_isnan(tensor)), &any);
    *has_nan = any != 0;
    return status;
}

KN_AT_LOAD register_search(void) { kn_anomaly_set_search(search_nan); }
