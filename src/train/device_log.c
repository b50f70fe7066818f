/* train/device_log.c - the log: its entries and the buffer on the device that holds their state. */
#include "train/device_log.h"

#include <math.h>
#include <string.h>

#include <koine/graph.h>

#include "base/error.h"
#include "base/memory.h"

kn_device_log *kn_device_log_new(void)
{
    kn_device_log *log = kn_calloc(1, sizeof *log);
    return log ? log : kn_error_make_sticky();
}

static void clear_entry(kn_log_entry *entry)
{
    for (int i = 0; i < entry->num_parameters; i++)
        kn_release(entry->parameters[i]);
    kn_metric_drop(&entry->samples);
    kn_free(entry->parameters);
    kn_free(entry->sums);
    kn_free(entry->values);
    kn_free(entry->name);
}

void kn_device_log_free(kn_device_log *log)
{
    if (!log)
        return;
    for (int i = 0; i < log->count; i++)
        clear_entry(&log->entries[i]);
    for (int i = 0; i < KN_LOG_REQUESTS; i++)
        kn_release(log->requests[i]);
    kn_release(log->state);
    kn_free(log->entries);
    kn_free(log->figures);
    kn_free(log);
}

/* --- entries --------------------------------------------------------------------------------------------------- */

int kn_device_log_find(const kn_device_log *log, const char *name)
{
    for (int i = 0; log && name && i < log->count; i++)
        if (strcmp(log->entries[i].name, name) == 0)
            return i;
    return -1;
}

/* Takes ownership of the entry; on failure releases what it holds and returns -1. */
static int add(kn_device_log *log, const char *name, kn_log_entry entry)
{
    kn_status status = log && name ? KN_OK : kn_fail_argument_null("device_log_add", log ? "name" : "log");
    if (status == KN_OK && kn_device_log_find(log, name) >= 0)
        status = kn_fail(KN_ERR_ARGUMENT, "device_log: another entry is already named \"%s\"", name);
    if (status == KN_OK)
        status = KN_GROW(log->entries, log->count, log->capacity);
    if (status == KN_OK && !(entry.name = kn_strdup(name)))
        status = KN_ERR_MEMORY;
    if (status != KN_OK) {
        clear_entry(&entry);
        return -1;
    }
    entry.first = log->cells;
    log->cells += entry.cells;
    log->entries[log->count] = entry;
    return log->count++;
}

int kn_device_log_add_scalar(kn_device_log *log, const char *name)
{
    return add(log, name, (kn_log_entry){.kind = KN_ENTRY_SCALAR, .cells = KN_SCALAR_CELLS});
}

int kn_device_log_add_accuracy(kn_device_log *log, const char *name)
{
    return kn_log_add_metric(log, name, &kn_metric_plain_accuracy);
}

int kn_device_log_add_metric(kn_device_log *log, const char *name, const kn_metric *metric)
{
    if (metric != NULL)
        return kn_log_add_metric(log, name, kn_metric_spec_of(metric));
    kn_fail_argument_null("device_log_add_metric", "metric");
    return -1;
}

int kn_log_add_metric(kn_device_log *log, const char *name, const kn_metric_spec *spec)
{
    const kn_metric_kind *kind = spec->kind;
    const int64_t counts = kind->counts ? kind->counts(spec) : 0;
    kn_log_entry entry = {.kind = KN_ENTRY_METRIC, .cells = kind->scalars * KN_SCALAR_CELLS + counts, .spec = *spec};
    entry.sums = kn_calloc((size_t)kn_metric_sum_count(spec) + 1, sizeof *entry.sums);
    entry.values = kn_calloc((size_t)kn_metric_value_count(spec), sizeof *entry.values);
    if (entry.sums && entry.values)
        return add(log, name, entry);
    clear_entry(&entry);
    return -1;
}

int kn_device_log_add_histogram(kn_device_log *log, const char *name, int bins, double min, double max)
{
    if (bins < 1 || bins > KN_MAX_BINS || !isfinite(min) || !isfinite(max) || !(min < max)) {
        kn_fail(KN_ERR_ARGUMENT,
                "device_log: a histogram needs 1 to %d bins and a finite range, not %d bins from %g to %g", KN_MAX_BINS,
                bins, min, max);
        return -1;
    }
    return add(
        log, name,
        (kn_log_entry){
            .kind = KN_ENTRY_HISTOGRAM, .cells = KN_HISTOGRAM_BINS + bins, .bins = bins, .min = min, .max = max});
}

int kn_device_log_add_grad_norm(kn_device_log *log, const char *name, kn_parameter_list parameters)
{
    if (parameters.count < 1) {
        kn_fail(KN_ERR_ARGUMENT, "device_log: a gradient norm needs at least one parameter");
        return -1;
    }
    kn_log_entry entry = {.kind = KN_ENTRY_NORM, .cells = KN_SCALAR_CELLS + parameters.count};
    entry.parameters = kn_calloc((size_t)parameters.count, sizeof *entry.parameters);
    if (!entry.parameters)
        return -1;
    for (int i = 0; i < parameters.count; i++)
        entry.parameters[entry.num_parameters++] = kn_retain(parameters.tensors[i]);
    return add(log, name, entry);
}

kn_log_entry *kn_log_entry_of(const kn_device_log *log, int entry, kn_entry_kind kind, const char *function)
{
    static const char *const kinds[] = {"scalar", "metric", "histogram", "gradient norm"};
    if (!log) {
        kn_fail_argument_null(function, "log");
        return NULL;
    }
    if (entry < 0 || entry >= log->count) {
        kn_fail(KN_ERR_ARGUMENT, "%s: there is no entry %d; the log has %d", function, entry, log->count);
        return NULL;
    }
    kn_log_entry *found = &log->entries[entry];
    if (found->kind == kind)
        return found;
    kn_fail(KN_ERR_ARGUMENT, "%s: entry \"%s\" is a %s", function, found->name, kinds[found->kind]);
    return NULL;
}

/* --- the state ------------------------------------------------------------------------------------------------- */

kn_status kn_log_check_values(const char *function, const kn_tensor *values)
{
    if (values->dtype != KN_F32 && values->dtype != KN_F64)
        return kn_fail(KN_ERR_DTYPE, "%s: takes float32 and float64, not %s", function, kn_dtype_name(values->dtype));
    if (kn_device_is_host(values->storage->device))
        return kn_fail(KN_ERR_DEVICE, "%s: the values are on the host: move them to a device with kn_to", function);
    return KN_OK;
}

/* A new state on `device`, with the current one's contents. Inside a graph it would be created, and so cleared, at each
 * replay. */
static kn_status make_state(kn_device_log *log, kn_device *device)
{
    kn_tensor *state = NULL, *part = NULL;
    if (kn_is_current_stream_capturing(device))
        return kn_capture_fail(kn_stream_current(device),
                               kn_fail(KN_ERR_STATE, "device_log: a graph is being captured, and the log has no memory "
                                                     "for all its entries yet: update one of them before the capture"));
    KN_TRY(kn_tensor_new(&state, KN_I64, 1, &log->cells, device));
    kn_status status = kn_tensor_fill(state, 0);
    if (status == KN_OK && log->state && !log->stale && log->state->storage->device == device) {
        status = kn_tensor_view(&part, state, 1, log->state->shape, NULL, 0);
        if (status == KN_OK)
            status = kn_tensor_copy(part, log->state);
        kn_release(part);
    }
    if (status != KN_OK) {
        kn_release(state);
        return status;
    }
    kn_release(log->state);
    log->state = state;
    log->stale = false;
    return KN_OK;
}

kn_status kn_log_clear_stale(kn_device_log *log)
{
    if (log->stale)
        KN_TRY(kn_tensor_fill(log->state, 0));
    log->stale = false;
    return KN_OK;
}

kn_status kn_log_prepare(kn_device_log *log, kn_log_entry *entry, kn_device *device, kn_dtype dtype)
{
    kn_device *present = log->state ? log->state->storage->device : NULL;
    if ((log->used && present != device) || (entry->used && entry->dtype != dtype))
        return kn_fail(KN_ERR_DEVICE,
                       "device_log: \"%s\" holds %s values on %s, the log is on %s; it cannot take %s values on %s "
                       "before it is reset",
                       entry->name, kn_dtype_name(entry->used ? entry->dtype : dtype), kn_device_string(present),
                       kn_device_string(present), kn_dtype_name(dtype), kn_device_string(device));
    if (present != device || log->state->shape[0] < log->cells)
        KN_TRY(make_state(log, device));
    KN_TRY(kn_log_clear_stale(log));
    log->used = entry->used = true;
    entry->dtype = dtype;
    return KN_OK;
}

kn_status kn_device_log_reset(kn_device_log *log)
{
    if (!log)
        return kn_fail_argument_null("device_log_reset", "log");
    log->used = false;
    for (int i = 0; i < log->count; i++) {
        log->entries[i].used = false;
        kn_metric_drop(&log->entries[i].samples);
    }
    log->stale = log->state != NULL;
    return kn_log_clear_stale(log);
}
