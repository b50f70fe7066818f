/* train/metric_values.c - metrics that are means: of values, of squared and absolute errors, of the cross entropy. */
#include <math.h>

#include <koine/logic.h>
#include <koine/loss.h>
#include <koine/reduce.h>

#include "train/device_log.h"

#define SUM 0    /* of the sums: the first scalar's */
#define WEIGHT 1 /* its weight */
#define TOKENS 2 /* the sum of the second scalar */

static double mean_of(const double *sums) { return sums[WEIGHT] > 0 ? sums[SUM] / sums[WEIGHT] : (double)NAN; }

/* --- the mean --------------------------------------------------------------------------------------------------- */

static void compute_mean(const kn_metric_spec *spec, const double *sums, double *values)
{
    (void)spec;
    values[0] = mean_of(sums);
}

static const kn_metric_kind mean_kind = {.name = "mean", .scalars = 1, .compute = compute_mean};

bool kn_metric_is_mean(const kn_metric_spec *spec) { return spec->kind == &mean_kind; }

kn_metric *kn_metric_mean(void) { return kn_metric_new(&(kn_metric_spec){.kind = &mean_kind}); }

/* --- errors ----------------------------------------------------------------------------------------------------- */

/* Adds a figure of the batch, which may be a half. */
static kn_status add(kn_device_log *log, kn_log_entry *entry, int scalar, kn_tensor *value, int64_t weight)
{
    if (value != NULL && value->dtype != KN_F64)
        value = kn_to_dtype(value, KN_F32);
    KN_TRY(kn_status_of(value));
    return kn_log_note_scalar(log, entry, scalar, value, weight);
}

typedef kn_tensor *(*elementwise_loss)(kn_tensor *input, kn_tensor *target, kn_reduction reduction);

static kn_status update_error(kn_device_log *log, kn_log_entry *entry, kn_tensor *output, kn_tensor *target,
                              elementwise_loss loss)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    bool fits = kn_dtype_is_floating(output->dtype) && output->ndim == target->ndim;
    for (int d = 0; fits && d < output->ndim; d++)
        fits = output->shape[d] == target->shape[d];
    if (!fits)
        return kn_fail(KN_ERR_SHAPE, "%s: needs a floating output and a target of one shape, not %s and %s",
                       entry->spec.kind->name, kn_tensor_describe(a, sizeof a, output),
                       kn_tensor_describe(b, sizeof b, target));
    const kn_dtype dtype = output->dtype == KN_F64 ? KN_F64 : KN_F32;
    if (kn_numel(output) == 0)
        return KN_OK;
    kn_tensor *error = loss(kn_to_dtype(output, dtype), kn_to_dtype(target, dtype), KN_REDUCTION_MEAN);
    return add(log, entry, 0, error, kn_numel(output));
}

static kn_status update_squared(kn_device_log *log, kn_log_entry *entry, kn_tensor *output, kn_tensor *target)
{
    return update_error(log, entry, output, target, kn_mse_loss);
}

static kn_status update_absolute(kn_device_log *log, kn_log_entry *entry, kn_tensor *output, kn_tensor *target)
{
    return update_error(log, entry, output, target, kn_l1_loss);
}

static void compute_squared(const kn_metric_spec *spec, const double *sums, double *values)
{
    values[0] = spec->squared ? mean_of(sums) : sqrt(mean_of(sums));
}

static const kn_metric_kind squared_kind = {
    .name = "mean_squared_error", .scalars = 1, .update = update_squared, .compute = compute_squared};
static const kn_metric_kind absolute_kind = {
    .name = "mean_absolute_error", .scalars = 1, .update = update_absolute, .compute = compute_mean};

kn_metric_mean_squared_error_params kn_metric_mean_squared_error_params_init(void)
{
    return (kn_metric_mean_squared_error_params){KN_METRIC_MEAN_SQUARED_ERROR_DEFAULTS};
}

kn_metric *kn_metric_mean_squared_error_with(const kn_metric_mean_squared_error_params *params)
{
    return kn_metric_new(&(kn_metric_spec){.kind = &squared_kind, .squared = params == NULL || params->squared});
}

kn_metric *kn_metric_mean_absolute_error(void) { return kn_metric_new(&(kn_metric_spec){.kind = &absolute_kind}); }

/* --- perplexity ------------------------------------------------------------------------------------------------- */

/* The number of targets that count is on the device: two sums. */
static kn_status update_perplexity(kn_device_log *log, kn_log_entry *entry, kn_tensor *output, kn_tensor *target)
{
    const int64_t ignored = entry->spec.ignore_index;
    char text[KN_DESCRIBE];
    if (kn_dtype_is_floating(target->dtype)) /* probabilities, to the loss */
        return kn_fail(KN_ERR_DTYPE, "perplexity: target classes must be integers, not %s",
                       kn_tensor_describe(text, sizeof text, target));
    if (kn_numel(target) == 0)
        return KN_OK;
    output = kn_to_dtype(output, output->dtype == KN_F64 ? KN_F64 : KN_F32);
    kn_tensor *loss = kn_cross_entropy(output, target, .ignore_index = ignored, .reduction = KN_REDUCTION_SUM);
    KN_TRY(add(log, entry, 0, loss, 1));
    kn_tensor *tokens = kn_sum(kn_ne_scalar(kn_to_dtype(target, KN_I64), ignored));
    return add(log, entry, 1, kn_to_dtype(tokens, output->dtype), 1);
}

static void compute_perplexity(const kn_metric_spec *spec, const double *sums, double *values)
{
    (void)spec;
    values[0] = sums[TOKENS] > 0 ? exp(sums[SUM] / sums[TOKENS]) : (double)NAN;
}

static const kn_metric_kind perplexity_kind = {.name = "perplexity",
                                               .is_of_classes = true,
                                               .scalars = 2,
                                               .update = update_perplexity,
                                               .compute = compute_perplexity};

kn_metric_perplexity_params kn_metric_perplexity_params_init(void)
{
    return (kn_metric_perplexity_params){KN_METRIC_PERPLEXITY_DEFAULTS};
}

kn_metric *kn_metric_perplexity_with(const kn_metric_perplexity_params *params)
{
    params = params ? params : &(kn_metric_perplexity_params){KN_METRIC_PERPLEXITY_DEFAULTS};
    return kn_metric_new(&(kn_metric_spec){.kind = &perplexity_kind, .ignore_index = params->ignore_index});
}
