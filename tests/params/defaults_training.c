/* defaults_training.c - datasets, the trainer, the profiler. */
#include "defaults.h"
/* --- data and training --- */

static kn_loader *load(bool with, const kn_loader_params *params)
{
    return with ? kn_loader_new_with(some_data(), params) : kn_loader_new(some_data());
}
/* The transform adds one. */
static kn_status add_one(void *value, const kn_field *field, uint64_t random, void *user)
{
    (void)field, (void)random, (void)user;
    *(float *)value += 1;
    return KN_OK;
}
static char *transformed(bool with, const kn_transform_dataset_params *params)
{
    float x[2];
    int64_t y;
    static char text[64];
    KN_SCOPE;
    kn_tensor *rows = kn_ones(KN_SHAPE(1, 2), .device = kn_device_host());
    kn_dataset *base = kn_tensor_dataset(rows, kn_zeros(KN_SHAPE(1), .dtype = KN_I64, .device = kn_device_host()));
    kn_dataset *dataset =
        with ? kn_transform_dataset_with(base, add_one, NULL, params) : kn_transform_dataset(base, add_one, NULL);
    if (kn_dataset_get(dataset, 0, (void *[]){x, &y}) != KN_OK)
        return show_error();
    snprintf(text, sizeof text, "%g %g %d", (double)x[0], (double)x[1], (int)y);
    kn_dataset_free(dataset);
    return strdup(text);
}
CALLS(kn_transform_dataset, kn_transform_dataset_params, , transformed(true, params), transformed(false, NULL))

/* The order of the first epoch. */
static char *sampled(kn_sampler *sampler)
{
    int64_t order[16];
    char text[128] = "";
    if (!sampler || kn_sampler_order(sampler, 0, 0, order) != KN_OK)
        return show_error();
    for (int64_t i = 0, used = 0; i < kn_sampler_length(sampler); i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%lld ", (long long)order[i]);
    kn_sampler_free(sampler);
    return strdup(text);
}
static const double some_weights[] = {1, 3, 2, 0};
CALLS(kn_random_sampler, kn_random_sampler_params, sampled, kn_random_sampler_with(some_data(), params),
      kn_random_sampler(some_data()))
CALLS(kn_weighted_random_sampler, kn_weighted_random_sampler_params, sampled,
      kn_weighted_random_sampler_with(some_weights, 4, 12, params), kn_weighted_random_sampler(some_weights, 4, 12))
CALLS(kn_distributed_sampler, kn_distributed_sampler_params, sampled, kn_distributed_sampler_with(some_data(), params),
      kn_distributed_sampler(some_data()))
static char *split(bool with, const kn_random_split_params *params)
{
    kn_dataset *parts[1];
    float sample[64];
    int64_t target;
    kn_status status = with ? kn_random_split_with(some_data(), KN_LENGTHS(1), parts, params)
                            : kn_random_split(some_data(), KN_LENGTHS(1), parts);
    if (status != KN_OK || kn_dataset_get(parts[0], 0, (void *[]){sample, &target}) != KN_OK)
        return show_error();
    char text[64];
    snprintf(text, sizeof text, "%g", (double)sample[0]);
    kn_dataset_free(parts[0]);
    return strdup(text);
}
CALLS(kn_random_split, kn_random_split_params, , split(true, params), split(false, NULL))

CALLS(kn_loader_new, kn_loader_params, show_loader, load(true, params), load(false, NULL))

static kn_trainer *train(bool with, bool given, const kn_trainer_params *params)
{
    return with    ? kn_trainer_new_with(params)
           : given ? kn_trainer_new(.module = some_module(), .optim = some_optim(), .quiet = true)
                   : kn_trainer_new();
}
CALLS(kn_trainer_new, kn_trainer_params, show_trainer, train(true, false, params), train(false, false, NULL))
CALLS(trainer_of_a_module, kn_trainer_params, show_trainer, train(true, true, params), train(false, true, NULL))
static void give_module(void *params)
{
    ((kn_trainer_params *)params)->module = some_module();
    ((kn_trainer_params *)params)->optim = some_optim();
    ((kn_trainer_params *)params)->quiet = true;
}

/* --- metrics --- */

/* Four rows, or another number of values, and the figures of the metric; frees it. */
static char *measured(kn_metric *metric, kn_tensor *output, kn_tensor *target)
{
    if (metric == NULL)
        return show_error();
    kn_tensor *values = kn_metric_update(metric, output, target, 0) == KN_OK ? kn_metric_values(metric) : NULL;
    kn_metric_free(metric);
    return values != NULL ? show_tensor(values) : show_error();
}
static char *of_classes(kn_metric *metric) { return measured(metric, matrix(), classes()); }
static char *of_matrices(kn_metric *metric) { return measured(metric, matrix(), kn_ones(KN_SHAPE(4, 3))); }
static char *of_scores(kn_metric *metric)
{
    return measured(metric, kn_select(matrix(), 1, 0), kn_remainder_scalar(classes(), 2));
}
static void give_classes(void *params) { ((kn_metric_class_params *)params)->num_classes = 3; }
static void give_matrix(void *params) { ((kn_metric_confusion_matrix_params *)params)->num_classes = 3; }
CALLS(kn_metric_accuracy, kn_metric_accuracy_params, of_classes, kn_metric_accuracy_with(params), kn_metric_accuracy())
CALLS(kn_metric_auroc, kn_metric_auroc_params, of_scores, kn_metric_auroc_with(params), kn_metric_auroc())
CALLS(kn_metric_perplexity, kn_metric_perplexity_params, of_classes, kn_metric_perplexity_with(params),
      kn_metric_perplexity())
CALLS(kn_metric_mean_squared_error, kn_metric_mean_squared_error_params, of_matrices,
      kn_metric_mean_squared_error_with(params), kn_metric_mean_squared_error())
CALLS(kn_metric_precision, kn_metric_class_params, of_classes, kn_metric_precision_with(params), kn_metric_precision())
CALLS(precision_of_3, kn_metric_class_params, of_classes, kn_metric_precision_with(params),
      kn_metric_precision(.num_classes = 3))
CALLS(recall_of_3, kn_metric_class_params, of_classes, kn_metric_recall_with(params),
      kn_metric_recall(.num_classes = 3))
CALLS(f1_score_of_3, kn_metric_class_params, of_classes, kn_metric_f1_score_with(params),
      kn_metric_f1_score(.num_classes = 3))
CALLS(confusion_matrix_of_3, kn_metric_confusion_matrix_params, of_classes, kn_metric_confusion_matrix_with(params),
      kn_metric_confusion_matrix(.num_classes = 3))

/* --- the profiler --- */

static char *profiled(kn_status started)
{
    if (started != KN_OK)
        return show_error();
    kn_sum(matrix());
    return kn_profiler_stop() == KN_OK ? show_profile() : show_error();
}
CALLS(kn_profiler_start, kn_profiler_params, profiled, kn_profiler_start_with(params), kn_profiler_start())
static char *enter(const kn_profiler_params *params)
{
    return profiled(kn_profiler_enter(params) ? KN_OK : kn_error_status());
}
static char *enter_by_macro(void)
{
    {
        KN_PROFILE();
        kn_sum(matrix());
    }
    return show_profile();
}
CALLS(kn_profiler_enter, kn_profiler_params, , enter(params), enter_by_macro())
/* For the recording left by the previous rows. */
CALLS(kn_profiler_table, kn_profiler_table_params, show_text, kn_profiler_table_with(params), kn_profiler_table())

/* clang-format off */
DEFAULTS(training_defaults,
         ROW(kn_transform_dataset),
         ROW(kn_random_sampler),
         ROW(kn_weighted_random_sampler),
         ROW(kn_distributed_sampler),
         ROW(kn_random_split),
         ROW(kn_loader_new),
         NEEDS(kn_trainer_new),
         GIVEN(trainer_of_a_module, give_module),
         ROW(kn_metric_accuracy),
         ROW(kn_metric_auroc),
         ROW(kn_metric_perplexity),
         ROW(kn_metric_mean_squared_error),
         NEEDS(kn_metric_precision),
         GIVEN(precision_of_3, give_classes),
         GIVEN(recall_of_3, give_classes),
         GIVEN(f1_score_of_3, give_classes),
         GIVEN(confusion_matrix_of_3, give_matrix),
         ROW(kn_profiler_start),
         ROW(kn_profiler_enter),
         ROW(kn_profiler_table))
/* clang-format on */
