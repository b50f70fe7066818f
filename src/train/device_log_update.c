/* train/device_log_update.c - scalars, metrics and histograms, without waiting. */
#include <math.h>
#include <stdio.h>

#include <koine/amp.h>
#include <koine/autograd.h>

#include "base/error.h"
#include "train/device_log.h"

#define VALUES_PER_ITEM 4096
#define HISTOGRAM_GROUPS 256

#define SOURCE "train/device_log.cl"

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* --- scalars --------------------------------------------------------------------------------------------------- */

/* Adds to scalar number `index` of an entry. */
kn_status kn_log_note_scalar(kn_device_log *log, kn_log_entry *entry, int index, kn_tensor *value, int64_t weight)
{
    KN_TRY(kn_log_check_values("device_log_scalar", value));
    if (kn_numel(value) != 1 || weight < 0) {
        char text[KN_DESCRIBE];
        return kn_fail(KN_ERR_ARGUMENT,
                       "device_log_scalar: needs a value of one element and a weight of 0 or more, not %s and %lld",
                       kn_tensor_describe(text, sizeof text, value), (long long)weight);
    }
    KN_TRY(kn_log_prepare(log, entry, value->storage->device, value->dtype));
    const int64_t cells = log->state->offset + entry->first + index * (int64_t)KN_SCALAR_CELLS;
    return kn_run(kn_tensor_stream(value), .source = SOURCE, .options = kn_dtype_options(value->dtype),
                  .kernel = "log_scalar", .operation = "device_log_scalar", .dims = 1, .global = {1},
                  KN_ARGS(kn_arg_tensor(value),
                          kn_arg_buffer(log->state->storage->buffer, cells * (int64_t)sizeof(int64_t)),
                          kn_arg_i64(weight)));
}

kn_status kn_device_log_scalar(kn_device_log *log, int entry, kn_tensor *value, int64_t weight)
{
    kn_log_entry *scalar = kn_log_entry_of(log, entry, KN_ENTRY_SCALAR, "device_log_scalar");
    if (!scalar)
        return kn_error_status();
    if (!value)
        return kn_fail_argument_null("device_log_scalar", "value");
    return kn_log_note_scalar(log, scalar, 0, value, weight);
}

/* --- metrics --------------------------------------------------------------------------------------------------- */

static kn_status check_devices(const kn_log_entry *entry, const kn_tensor *output, const kn_tensor *target)
{
    const char *name = entry->spec.kind->name;
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    if (kn_device_is_host(output->storage->device))
        return kn_fail(KN_ERR_DEVICE, "%s: the output is on the host: move it to a device with kn_to", name);
    if (target->storage->device != output->storage->device)
        return kn_fail(KN_ERR_DEVICE, "%s: output is %s but target is %s", name,
                       kn_tensor_describe(a, sizeof a, output), kn_tensor_describe(b, sizeof b, target));
    return KN_OK;
}

kn_status kn_log_update_metric(kn_device_log *log, kn_log_entry *entry, kn_tensor *output, kn_tensor *target,
                               int64_t weight)
{
    const kn_metric_spec *spec = &entry->spec;
    if (kn_metric_is_mean(spec))
        return kn_log_note_scalar(log, entry, 0, output, weight);
    if (!target)
        return kn_fail_argument_null(spec->kind->name, "target");
    KN_TRY(check_devices(entry, output, target));
    KN_SCOPE;
    KN_NO_GRAD;
    const kn_dtype before = kn_autocast_enter(KN_DTYPE_DEFAULT);
    kn_status status = spec->kind->update(log, entry, output, target);
    kn_autocast_leave(before);
    return status;
}

kn_status kn_device_log_metric(kn_device_log *log, int entry, kn_tensor *output, kn_tensor *target)
{
    kn_log_entry *metric = kn_log_entry_of(log, entry, KN_ENTRY_METRIC, "device_log_metric");
    if (!metric)
        return kn_error_status();
    if (!output)
        return kn_fail_argument_null("device_log_metric", "output");
    return kn_log_update_metric(log, metric, output, target, 1);
}

kn_status kn_device_log_accuracy(kn_device_log *log, int entry, kn_tensor *output, kn_tensor *target)
{
    return kn_device_log_metric(log, entry, output, target);
}

/* --- histograms ------------------------------------------------------------------------------------------------ */

/* How the values are split: one part per work-item on CPU devices, per work-group on others. */
typedef struct histogram_work {
    size_t global, local, parts;
} histogram_work;

static histogram_work cut(const kn_limits *limits, int64_t n)
{
    if (limits->is_cpu) {
        size_t items = kn_work_items(limits, n, VALUES_PER_ITEM);
        return (histogram_work){items, 1, items};
    }
    size_t local = smaller(256, limits->max_work_group_size);
    size_t groups = smaller((size_t)((n + VALUES_PER_ITEM - 1) / VALUES_PER_ITEM), HISTOGRAM_GROUPS);
    return (histogram_work){groups * local, local, groups};
}

static kn_status count_values(kn_device_log *log, const kn_log_entry *entry, const kn_tensor *x)
{
    kn_stream *stream = kn_tensor_stream(x);
    const kn_limits *limits = kn_tensor_limits(x);
    const int64_t n = kn_numel(x), places = 3 + entry->bins;
    const histogram_work work = cut(limits, n);
    const int64_t total = (int64_t)work.parts * places;
    char options[128];
    snprintf(options, sizeof options, "%s -DHISTOGRAM", kn_dtype_options(x->dtype));
    kn_tensor *parts;
    KN_TRY(kn_tensor_new(&parts, KN_I32, 1, &total, x->storage->device));
    const kn_arg args[] = {kn_arg_tensor(x),
                           kn_arg_tensor(parts),
                           kn_arg_i64(n),
                           kn_arg_real(x->dtype, entry->min),
                           kn_arg_real(x->dtype, entry->max),
                           kn_arg_i32(entry->bins),
                           kn_arg_local((size_t)places * sizeof(int32_t))};
    kn_status status = kn_run(stream, .source = SOURCE, .options = options, .kernel = "histogram_parts",
                              .operation = "device_log_histogram", .dims = 1, .global = {work.global},
                              .local = {work.local}, .args = args, .num_args = limits->is_cpu ? 6 : 7);
    if (status == KN_OK)
        status = kn_run(stream, .source = SOURCE, .options = options, .kernel = "histogram_sum",
                        .operation = "device_log_histogram", .dims = 1,
                        .global = {kn_work_items(limits, places, VALUES_PER_ITEM)},
                        KN_ARGS(kn_arg_tensor(parts), kn_log_arg(log, entry), kn_arg_i64(n),
                                kn_arg_i64((int64_t)work.parts), kn_arg_i64(places)));
    kn_release(parts);
    return status;
}

/* The values' dtype must be able to hold the range and resolve its bounds. */
static kn_status check_range(const kn_log_entry *entry, kn_dtype dtype)
{
    const double low = dtype == KN_F64 ? entry->min : (double)(float)entry->min;
    const double high = dtype == KN_F64 ? entry->max : (double)(float)entry->max;
    const double width = dtype == KN_F64 ? high - low : (double)((float)high - (float)low);
    if (isfinite(low) && isfinite(high) && isfinite(width) && width > 0)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT,
                   "device_log_histogram: \"%s\" goes from %.17g to %.17g, which is not a valid range in %s",
                   entry->name, entry->min, entry->max, kn_dtype_name(dtype));
}

kn_status kn_device_log_histogram(kn_device_log *log, int entry, kn_tensor *values)
{
    kn_log_entry *histogram = kn_log_entry_of(log, entry, KN_ENTRY_HISTOGRAM, "device_log_histogram");
    if (!histogram)
        return kn_error_status();
    if (!values)
        return kn_fail_argument_null("device_log_histogram", "values");
    KN_TRY(kn_log_check_values("device_log_histogram", values));
    KN_TRY(check_range(histogram, values->dtype));
    KN_TRY(kn_log_prepare(log, histogram, values->storage->device, values->dtype));
    if (kn_numel(values) == 0)
        return KN_OK;
    kn_tensor *x;
    KN_TRY(kn_tensor_contiguous(&x, values));
    kn_status status = count_values(log, histogram, x);
    kn_release(x);
    return status;
}
