/* cli/scale.c - `koine scale`: what data parallel training would reach on many ranks (docs/scaling.md). */
#include <cjson/cJSON.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/layout.h"
#include "cli/scale_options.h"
#include "rt/rt.h"

/* --- the network -------------------------------------------------------------------------------------------------- */

static kn_module *new_gpt2(const char *name)
{
    if (strcmp(name, "gpt2") == 0)
        return kn_models_gpt2(.dropout = 0);
    if (strcmp(name, "gpt2-medium") == 0)
        return kn_models_gpt2_medium(.dropout = 0);
    return strcmp(name, "gpt2-large") == 0 ? kn_models_gpt2_large(.dropout = 0) : kn_models_gpt2_xl(.dropout = 0);
}

static bool is_gpt2(const char *name) { return strncmp(name, "gpt2", 4) == 0; }

static kn_module *new_model(const kn_scale_options *o)
{
    const char *name = o->model;
    static const char *const others[] = {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name, others[i]) == 0)
            return new_gpt2(name);
    return kn_models_new(name, .image_size = o->image_size);
}

#define TOKENS 256 /* of a sequence */

static kn_tensor *new_input(const kn_scale_options *o)
{
    return is_gpt2(o->model) ? kn_zeros(KN_SHAPE(o->batch_size, TOKENS), .dtype = KN_I64)
                             : kn_rand(KN_SHAPE(o->batch_size, 3, o->image_size, o->image_size));
}

static kn_status run_step(kn_module *net, kn_tensor *x, double *forward, double *whole)
{
    KN_SCOPE;
    const double began = kn_clock_seconds();
    kn_tensor *y = kn_forward(net, x);
    if (!y || kn_synchronize(NULL) != KN_OK)
        return kn_error_status();
    *forward = kn_clock_seconds() - began;
    kn_status status = kn_backward(kn_mean(y));
    if (status == KN_OK)
        status = kn_synchronize(NULL);
    *whole = kn_clock_seconds() - began;
    return status;
}

#define STEPS 4

/* The quickest of several steps after a first, which builds kernels. Groups do not copy the memory of CPU devices. */
static kn_status measure_compute(kn_scale_options *o, kn_module *net)
{
    KN_SCOPE;
    kn_tensor *x = new_input(o);
    if (!o->has_staging && kn_can_map(kn_device_current()))
        o->link.staging = 0;
    fprintf(stderr, "measuring steps of %s with %lld samples on %s\n", o->model, (long long)o->batch_size,
            kn_device_string(kn_device_current()));
    kn_status status = o->has_copies ? KN_OK : kn_scale_measure_copies(kn_device_current(), &o->link.copies);
    for (int i = 0; i <= STEPS && status == KN_OK; i++) {
        double forward = 0, whole = 0;
        status = run_step(net, x, &forward, &whole);
        if (i <= 1 || whole < o->compute) {
            o->compute = whole;
            o->forward = forward / whole;
        }
    }
    return status;
}

static kn_scale_bucket *find_buckets(kn_scale_options *o, int *count)
{
    if (!o->model)
        return kn_scale_buckets_of_equal(o->parameters, o->layers, &o->buckets, o->element ? o->element : 4, count);
    kn_device *device = kn_device_open(o->device ? o->device : "auto");
    if (!device || kn_device_set_current(device) != KN_OK)
        return NULL;
    kn_module *net = new_model(o);
    kn_scale_bucket *buckets = NULL;
    if (net) {
        const kn_parameter_list list = kn_module_parameters(net);
        for (int i = 0; i < list.count; i++)
            o->parameters += (double)kn_numel(list.tensors[i]);
    }
    if (net && (o->compute > 0 || measure_compute(o, net) == KN_OK))
        buckets = kn_scale_buckets_of(net, &o->buckets, o->element, count);
    kn_module_free(net);
    return buckets;
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static const char *format_time(char text[24], double seconds)
{
    snprintf(text, 24,
             seconds >= 1      ? "%.3f s"
             : seconds >= 1e-3 ? "%.3f ms"
                               : "%.1f us",
             seconds >= 1      ? seconds
             : seconds >= 1e-3 ? seconds * 1e3
                               : seconds * 1e6);
    return text;
}

static double gradient_bytes(const kn_scale_job *job)
{
    double bytes = 0;
    for (int b = 0; b < job->num_buckets; b++)
        bytes += job->buckets[b].bytes;
    return bytes;
}

static void put_heading(kn_text *text, const kn_scale_options *o, const kn_scale_job *job)
{
    char computing[24], latency[24], call[24];
    kn_text_format(text,
                   "%s: %.1f M parameters, %.1f MB of gradients in %d buckets; computing takes %s, %.0f %% of it "
                   "forward\n",
                   o->model ? o->model : "network", o->parameters * 1e-6, gradient_bytes(job) * 1e-6, job->num_buckets,
                   format_time(computing, o->compute), 100 * o->forward);
    kn_text_format(text, "link: %.4g Gbit/s, latency %s, %s for each call, ", o->link.bandwidth * 8e-9,
                   format_time(latency, o->link.latency), format_time(call, o->link.call));
    if (o->link.staging > 0)
        kn_text_format(text, "copies to and from the device at %.3g GB/s", o->link.staging * 1e-9);
    else
        kn_text_append(text, "no copies to and from the device");
    if (o->link.copies > 0)
        kn_text_format(text, ", into and out of buckets at %.3g GB/s", o->link.copies * 1e-9);
    kn_text_append(text, "\n\n");
}

static int print_table(const kn_scale_options *o, const kn_scale_job *job)
{
    static const kn_table_column columns[] = {
        {.title = "Ranks", .is_number = true},
        {.title = "Step", .is_number = true},
        {.title = "Efficiency", .is_number = true},
        {.title = "Communication", .is_number = true, .rank = 2},
        {.title = "Exposed", .is_number = true, .rank = 1},
        {.title = "Samples/s", .is_number = true, .rank = 3},
    };
    kn_text text = {0};
    kn_table table = {.columns = columns, .num_columns = sizeof columns / sizeof columns[0]};
    put_heading(&text, o, job);
    for (int i = 0; i < o->num_ranks; i++) {
        char times[3][24];
        const kn_scale_step step = kn_scale_predict(job, o->ranks[i]);
        kn_table_put(&table, "%d", o->ranks[i]);
        kn_table_put(&table, "%s", format_time(times[0], step.time));
        kn_table_put(&table, "%.1f %%", 100 * step.efficiency);
        kn_table_put(&table, "%s", format_time(times[1], step.communication));
        kn_table_put(&table, "%s", format_time(times[2], step.exposed));
        kn_table_put(&table, "%.0f", o->ranks[i] * (double)o->batch_size / step.time);
    }
    kn_table_append(&text, &table, kn_page_for(0));
    kn_table_free(&table);
    return kn_print_text(&text);
}

static int print_json(cJSON *root)
{
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text) {
        fprintf(stderr, "koine: out of host memory\n");
        return KN_EXIT_FAILED;
    }
    puts(text);
    cJSON_free(text);
    return KN_EXIT_DONE;
}

static void add_link(cJSON *root, const kn_scale_link *link)
{
    cJSON *object = cJSON_AddObjectToObject(root, "link");
    cJSON_AddNumberToObject(object, "bytes_per_s", link->bandwidth);
    cJSON_AddNumberToObject(object, "latency_s", link->latency);
    cJSON_AddNumberToObject(object, "call_s", link->call);
    cJSON_AddNumberToObject(object, "staging_bytes_per_s", link->staging);
    cJSON_AddNumberToObject(object, "copies_bytes_per_s", link->copies);
}

static cJSON *json_of(const kn_scale_options *o, const kn_scale_job *job)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "model", o->model ? o->model : "");
    cJSON_AddNumberToObject(root, "parameters", o->parameters);
    cJSON_AddNumberToObject(root, "gradient_bytes", gradient_bytes(job));
    cJSON_AddNumberToObject(root, "buckets", job->num_buckets);
    cJSON_AddNumberToObject(root, "compute_s", o->compute);
    cJSON_AddNumberToObject(root, "forward_share", o->forward);
    add_link(root, &o->link);
    cJSON *rows = cJSON_AddArrayToObject(root, "ranks");
    for (int i = 0; i < o->num_ranks; i++) {
        const kn_scale_step step = kn_scale_predict(job, o->ranks[i]);
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "ranks", o->ranks[i]);
        cJSON_AddNumberToObject(row, "step_s", step.time);
        cJSON_AddNumberToObject(row, "efficiency", step.efficiency);
        cJSON_AddNumberToObject(row, "communication_s", step.communication);
        cJSON_AddNumberToObject(row, "exposed_s", step.exposed);
        cJSON_AddItemToArray(rows, row);
    }
    return root;
}

/* --- the link ----------------------------------------------------------------------------------------------------- */

/* The options that describe the link between these ranks. */
static int show_link(kn_group *group, const kn_scale_options *o)
{
    kn_scale_link link;
    kn_device *device = kn_device_open(o->device ? o->device : "auto");
    if (!device || kn_scale_measure_link(group, device, &link) != KN_OK)
        return kn_report_error();
    if (kn_group_rank(group) != 0)
        return KN_EXIT_DONE;
    if (o->json) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddNumberToObject(root, "ranks", kn_group_size(group));
        add_link(root, &link);
        return print_json(root);
    }
    printf("--network %.4gMbit --latency %.4gus --call %.4gus --staging ", link.bandwidth * 8e-6, link.latency * 1e6,
           link.call * 1e6);
    if (link.staging > 0)
        printf("%.4gGB", link.staging * 1e-9);
    else
        printf("none");
    printf(" --copies %.4gGB\n", link.copies * 1e-9);
    return KN_EXIT_DONE;
}

static int measure_link(const kn_scale_options *o)
{
    kn_group *group = kn_group_open();
    if (!group)
        return kn_report_error();
    const int status = show_link(group, o);
    kn_group_free(group);
    return status;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int run(int argc, char **argv)
{
    kn_scale_options o;
    int status = kn_scale_parse(&o, argc, argv);
    if (status >= 0)
        return status;
    if (o.measure_link)
        return measure_link(&o);
    kn_scale_job job = {.algorithm = o.algorithm, .no_overlap = o.no_overlap};
    kn_scale_bucket *buckets = find_buckets(&o, &job.num_buckets);
    if (!buckets)
        return kn_report_error();
    job.link = o.link;
    job.buckets = buckets;
    job.forward = o.forward * o.compute;
    job.backward = o.compute - job.forward;
    status = o.json ? print_json(json_of(&o, &job)) : print_table(&o, &job);
    kn_free(buckets);
    return status;
}

const kn_command kn_command_scale = {
    .name = "scale",
    .summary = "predict the step time of data parallel training on many ranks",
    .usage = "usage: koine scale --model NAME --network RATE [OPTION...]\n"
             "       koine scale --parameters NUMBER --compute TIME --network RATE [OPTION...]\n"
             "       mpirun -n 2 koine scale --measure-link [--device D] [--json]\n\n"
             "Predicts the time of a step and its efficiency with the model of docs/scaling.md.\n\n"
             "  --model NAME        resnet50 or another of kn_models_new, gpt2, gpt2-medium, gpt2-large, gpt2-xl\n"
             "  --parameters N      instead of a model: 124M, in --layers equal layers (50)\n"
             "  --ranks N           powers of two up to N (1024), or a list: 8,24,64\n"
             "  --network RATE      of each rank's link, in each direction: 100Gbit, 12.5GB\n"
             "  --latency TIME      of a message between two ranks (5us)\n"
             "  --call TIME         of a call, whatever its size (50us)\n"
             "  --staging RATE      of copies between device and host (12GB), or none\n"
             "  --copies RATE       of gradients into buckets and back (none: they take no time)\n"
             "  --compute TIME      of one rank's step, forward and backward: 250ms; without it a step is measured\n"
             "  --forward SHARE     of it that is the forward pass (0.333)\n"
             "  --batch-size N      samples of each rank's step (32)\n"
             "  --image-size N      sides of the images of a measured step (224)\n"
             "  --device D          where it is measured (auto)\n"
             "  --algorithm NAME    of all_reduce: ring, halving, or best (the quicker of both for each piece)\n"
             "  --bucket SIZE       of gradients, as of kn_nn_distributed (25MiB)\n"
             "  --first-bucket SIZE the first one's (1MiB)\n"
             "  --gradients DTYPE   that are sent: f32, or f16\n"
             "  --no-overlap        gradients are sent after the backward pass\n"
             "  --measure-link      measures the link between the ranks and prints it as options\n"
             "  --json              print JSON\n",
    .run = run,
};
