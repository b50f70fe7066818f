/* ops/sort/count.c - bincount and histc: how often numbers occur. */
#include <koine/autograd.h>
#include <koine/join.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/sort.h>
#include <koine/tensor.h>
#include <stdio.h>

#include "autograd/work.h"
#include "loops/work_size.h"
#include "loops/written_kernels.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"

/* --- counting ----------------------------------------------------------------------------------------------------- */

/* How the elements are cut: a few chunks on CPU devices, if their counts are no more than the elements. */
typedef struct cut {
    int64_t n, bins, length, chunks;
} cut;

static cut cut_of(const kn_limits *limits, int64_t n, int64_t bins)
{
    const int64_t fit = n / (bins > 0 ? bins : 1), most = limits->is_cpu ? 2 * (int64_t)limits->compute_units : 1;
    const int64_t chunks = n < 16384 || fit < 1 ? 1 : fit < most ? fit : most;
    return (cut){n, bins, (n + chunks - 1) / chunks, chunks};
}

static const char *options_of(char *text, size_t size, const kn_tensor *x, const kn_tensor *result, kn_dtype compute)
{
    const int length =
        snprintf(text, size, "-DX=%s -DLOAD=KN_LOAD_%s -DRESULT=%s -DSTORE=KN_STORE_%s", kn_dtype_cl(x->dtype),
                 kn_dtype_kind(x->dtype), kn_dtype_cl(result->dtype), kn_store_kind(KN_I64, result->dtype));
    const bool uses_f64 = x->dtype == KN_F64 || compute == KN_F64 || result->dtype == KN_F64;
    snprintf(text + length, size - (size_t)length, "%s%s%s", compute ? " -DT=" : "",
             compute ? kn_dtype_cl(compute) : "", uses_f64 ? " -DKN_USE_F64" : "");
    return text;
}

/* result [bins] = the counts of x; `range` NULL: of integers. */
static kn_status count(kn_call *call, const kn_tensor *x, const kn_tensor *range, const kn_tensor *result)
{
    const kn_limits *limits = kn_tensor_limits(x);
    const cut c = cut_of(limits, kn_numel(x), kn_numel(result));
    const kn_work_size elements =
        limits->is_cpu ? (kn_work_size){.global = (size_t)c.chunks} : kn_work_for(limits, c.n);
    const kn_work_size bins = kn_work_for(limits, c.bins);
    const int64_t all = c.chunks * c.bins;
    kn_tensor *counts;
    char options[200];

    options_of(options, sizeof options, x, result, range ? range->dtype : KN_DTYPE_DEFAULT);
    KN_TRY(kn_tensor_new(&counts, KN_I32, 1, &all, x->storage->device));
    kn_status status = kn_tensor_fill(counts, 0);
    if (status == KN_OK && c.n > 0)
        status =
            range
                ? kn_run(call->stream, .source = "sort/count.cl", .options = options, .kernel = "count_in_bins",
                         .operation = call->op->name, .dims = 1, .global = {elements.global}, .local = {elements.local},
                         KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(range), kn_arg_tensor(counts), kn_arg_i64(c.n),
                                 kn_arg_i64(c.bins), kn_arg_i64(c.length), kn_arg_i64(c.chunks)))
                : kn_run(call->stream, .source = "sort/count.cl", .options = options, .kernel = "count_integers",
                         .operation = call->op->name, .dims = 1, .global = {elements.global}, .local = {elements.local},
                         KN_ARGS(kn_arg_tensor(x), kn_arg_tensor(counts), kn_arg_i64(c.n), kn_arg_i64(c.bins),
                                 kn_arg_i64(c.length), kn_arg_i64(c.chunks), kn_arg_fault()));
    if (status == KN_OK)
        status =
            kn_run(call->stream, .source = "sort/count.cl", .options = options, .kernel = "sum_counts",
                   .operation = call->op->name, .dims = 1, .global = {bins.global}, .local = {bins.local},
                   KN_ARGS(kn_arg_tensor(counts), kn_arg_tensor(result), kn_arg_i64(c.bins), kn_arg_i64(c.chunks)));
    kn_release(counts);
    return status;
}

/* --- bincount ----------------------------------------------------------------------------------------------------- */

typedef struct bincount_record {
    int64_t bins;
} bincount_record;

/* Reads the least and the largest element: the wait. */
static kn_status find_bins(kn_entry *entry, bincount_record *record)
{
    kn_tensor *x = entry->inputs[0];
    int64_t ends[2] = {0, -1};
    if (kn_numel(x) > 0) {
        kn_tensor *both[] = {kn_min(x), kn_max(x)};
        kn_tensor *joined = both[0] && both[1] ? kn_to_dtype(kn_stack(both, 2, 0), KN_I64) : NULL;
        if (!joined)
            return kn_error_status();
        KN_TRY(kn_read(joined, ends, sizeof ends));
    }
    if (ends[0] < 0)
        return kn_fail(KN_ERR_ARGUMENT, "x has a negative element, %lld; it counts numbers from 0 on",
                       (long long)ends[0]);
    const int64_t least = ((const kn_bincount_args *)entry->params)->minlength;
    record->bins = ends[1] + 1 > least ? ends[1] + 1 : least;
    return KN_OK;
}

static kn_status bincount_enter(kn_entry *entry)
{
    bincount_record *record = kn_entry_record(entry, sizeof *record);
    const kn_tensor *x = entry->inputs[0], *weights = entry->inputs[1];
    kn_status status = KN_OK;
    if (kn_dtype_is_floating(x->dtype) || x->dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "x must consist of integers, not %s", kn_dtype_name(x->dtype));
    if (x->ndim != 1)
        return kn_fail(KN_ERR_SHAPE, "x has %d dimensions; it must have 1", x->ndim);
    if (!(entry->op->dtypes[0] >> x->dtype & 1))
        return kn_fail(KN_ERR_DTYPE, "x is %s; it must be of integers", kn_dtype_name(x->dtype));
    if (weights && !kn_same_shape(x, weights)) {
        char text[KN_DESCRIBE];
        return kn_fail(KN_ERR_SHAPE, "the weights must have x's shape, [%lld], not %s", (long long)x->shape[0],
                       kn_tensor_describe(text, sizeof text, weights));
    }
    KN_NO_GRAD;
    status = find_bins(entry, record);
    if (status == KN_OK && weights && weights->dtype != KN_F32) {
        entry->inputs[1] = kn_to_dtype(entry->inputs[1], KN_F64);
        status = kn_status_of(entry->inputs[1]);
    }
    return status;
}

static kn_status bincount_shape(kn_call *call)
{
    const kn_tensor *weights = kn_numel(call->inputs[0]) > 0 ? call->inputs[1] : NULL; /* as PyTorch and NumPy */
    return kn_call_output(call, weights ? weights->dtype : KN_I64, 1, &((const bincount_record *)call->params)->bins);
}

/* Sorts, so that the weights of a bin are added in their order. */
static kn_status sum_weights(kn_call *call, kn_tensor *x)
{
    const int64_t bins = kn_numel(call->outputs[0]);
    const kn_work_size work = kn_work_for(kn_tensor_limits(x), bins * 8);
    kn_tensor *order, *sorted = kn_sort(x, &order), *weights = kn_contiguous(call->inputs[1]);
    kn_tensor *numbers = kn_arange(0, (double)bins + 1, 1, .dtype = x->dtype, .device = kn_device_of(x));
    kn_tensor *starts = kn_searchsorted(sorted, numbers);
    char options[200];
    if (!starts || !weights)
        return kn_error_status();
    options_of(options, sizeof options, x, call->outputs[0], weights->dtype);
    return kn_run(call->stream, .source = "sort/count.cl", .options = options, .kernel = "sum_weights",
                  .operation = "bincount", .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(weights), kn_arg_tensor(order), kn_arg_tensor(starts),
                          kn_arg_tensor(call->outputs[0]), kn_arg_i64(bins)));
}

static kn_status bincount_forward(kn_call *call)
{
    KN_NO_GRAD;
    if (kn_numel(call->outputs[0]) == 0)
        return KN_OK;
    if (kn_numel(call->inputs[0]) == 0)
        return kn_tensor_fill(call->outputs[0], 0);
    kn_tensor *x = kn_contiguous(kn_to_dtype(call->inputs[0], KN_I64));
    return !x ? kn_error_status() : call->inputs[1] ? sum_weights(call, x) : count(call, x, NULL, call->outputs[0]);
}

static kn_status bincount_reference(const kn_call *call)
{
    for (int64_t i = 0; i < kn_numel(call->inputs[0]); i++) {
        const int64_t bin = (int64_t)kn_reference_get(call->inputs[0], i);
        const double weight = call->inputs[1] ? kn_reference_get(call->inputs[1], i) : 1;
        kn_reference_set(call->outputs[0], bin, kn_reference_get(call->outputs[0], bin) + weight);
    }
    return KN_OK;
}

static const kn_op_param bincount_rows[] = {KN_PARAM(kn_bincount_args, minlength, .min = 0, .max = INFINITY)};
const kn_op kn_bincount_op = {.name = "bincount",
                              .inputs = {"x", "?weights"},
                              .dtypes = {KN_DTYPES_NUMBERS & ~KN_DTYPES_FLOATING, KN_DTYPES_ALL},
                              .params = KN_PARAMS(kn_bincount_args, bincount_rows, .minlength = 0),
                              .composes = true,
                              .enter = bincount_enter,
                              .record_size = sizeof(bincount_record),
                              .shape = bincount_shape,
                              .forward = bincount_forward,
                              .reference = bincount_reference,
                              .work = kn_work_reducing};

kn_bincount_params kn_bincount_params_init(void) { return (kn_bincount_params){KN_BINCOUNT_DEFAULTS}; }

kn_tensor *kn_bincount_with(kn_tensor *x, const kn_bincount_params *params)
{
    const kn_bincount_params p = params ? *params : kn_bincount_params_init();
    return kn_invoke(&kn_bincount_op, &(kn_bincount_args){p.minlength}, x, p.weights);
}

/* --- histc -------------------------------------------------------------------------------------------------------- */

static kn_status histc_enter(kn_entry *entry)
{
    const kn_histc_params *p = entry->params;
    if (!(p->max >= p->min) || isinf(p->max) || isinf(p->min))
        return kn_fail(KN_ERR_ARGUMENT, "min and max are %g and %g; they must be finite, and max at least min", p->min,
                       p->max);
    return KN_OK;
}

static kn_status histc_shape(kn_call *call)
{
    KN_TRY(kn_call_check_floating(call, 0));
    return kn_call_output(call, call->inputs[0]->dtype, 1, &((const kn_histc_params *)call->params)->bins);
}

/* The range, on the device: that of the elements if both ends are equal. */
static kn_tensor *range_of(kn_tensor *x, const kn_histc_params *p)
{
    const kn_tensor_options options = {.dtype = x->dtype, .device = kn_device_of(x)};
    const bool given = p->min != p->max || kn_numel(x) == 0;
    kn_tensor *ends[] = {given ? kn_full_with(0, NULL, kn_scalar_real(p->min), &options) : kn_min(x),
                         given ? kn_full_with(0, NULL, kn_scalar_real(p->max), &options) : kn_max(x)};
    return ends[0] && ends[1] ? kn_stack(ends, 2, 0) : NULL;
}

static kn_status histc_forward(kn_call *call)
{
    KN_NO_GRAD;
    kn_tensor *x = kn_contiguous(call->inputs[0]), *range = x ? range_of(x, call->params) : NULL;
    return range ? count(call, x, range, call->outputs[0]) : kn_error_status();
}

static kn_status histc_reference(const kn_call *call)
{
    const kn_histc_params *p = call->params;
    const kn_tensor *x = call->inputs[0];
    double least = p->min, most = p->max;
    for (int64_t i = 0; i < kn_numel(x) && p->min == p->max; i++) {
        const double a = kn_reference_get(x, i);
        least = i == 0 || !(a >= least) ? a : least;
        most = i == 0 || !(a <= most) ? a : most;
    }
    if (least == most) {
        least -= 1;
        most += 1;
    }
    for (int64_t i = 0; i < kn_numel(x); i++) {
        const double a = kn_reference_get(x, i);
        if (!(a >= least && a <= most))
            continue;
        const int64_t at = (int64_t)((a - least) * (double)p->bins / (most - least));
        const int64_t bin = at < p->bins ? at : p->bins - 1;
        kn_reference_set(call->outputs[0], bin, kn_reference_get(call->outputs[0], bin) + 1);
    }
    return KN_OK;
}

static const kn_op_param histc_rows[] = {KN_PARAM(kn_histc_params, bins, .min = 1, .max = INFINITY),
                                         KN_PARAM(kn_histc_params, min), KN_PARAM(kn_histc_params, max)};
const kn_op kn_histc_op = {.name = "histc",
                           .inputs = {"x"},
                           .dtypes = {KN_DTYPES_FLOATING},
                           .params = KN_PARAMS(kn_histc_params, histc_rows, KN_HISTC_DEFAULTS),
                           .widens_halves = true,
                           .composes = true,
                           .enter = histc_enter,
                           .shape = histc_shape,
                           .forward = histc_forward,
                           .reference = histc_reference,
                           .work = kn_work_reducing};

kn_histc_params kn_histc_params_init(void) { return (kn_histc_params){KN_HISTC_DEFAULTS}; }

kn_tensor *kn_histc_with(kn_tensor *x, const kn_histc_params *params) { return kn_invoke(&kn_histc_op, params, x); }
