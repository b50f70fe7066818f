/* cli/scale_options.c - numbers with units, and what they may be. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/scale_options.h"

/* --- units -------------------------------------------------------------------------------------------------------- */

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit seconds[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {NULL, 0}};
/* Of networks in bits, of memory in bytes; "/s" may follow. */
static const unit rates[] = {{"bit", 0.125}, {"kbit", 125}, {"Mbit", 125e3}, {"Gbit", 125e6}, {"Tbit", 125e9}, {"B", 1},
                             {"kB", 1e3},    {"MB", 1e6},   {"GB", 1e9},     {"TB", 1e12},    {NULL, 0}};
static const unit sizes[] = {{"", 1}, {"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {NULL, 0}};
static const unit numbers[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"B", 1e9}, {"T", 1e12}, {NULL, 0}};

#define MOST 1e18 /* of any amount */

static bool parse(double *value, const char *text, const unit *units)
{
    char *end;
    char name[16];
    const double number = strtod(text, &end);
    const size_t length = strlen(end);
    if (end == text || length >= sizeof name || !isfinite(number) || number < 0)
        return false;
    const bool per_second = units == rates && length > 2 && strcmp(end + length - 2, "/s") == 0;
    snprintf(name, sizeof name, "%.*s", (int)(per_second ? length - 2 : length), end);
    for (const unit *u = units; u->name; u++)
        if (strcmp(u->name, name) == 0) {
            *value = number * u->factor;
            return *value <= MOST;
        }
    return false;
}

/* --- the options -------------------------------------------------------------------------------------------------- */

typedef struct texts {
    const char *ranks, *network, *latency, *call, *staging, *copies, *compute, *forward, *batch, *image, *parameters,
        *layers;
    const char *algorithm, *bucket, *first_bucket, *gradients;
} texts;

static int wrong(const char *option, const char *value, const char *example)
{
    return kn_usage_error(kn_command_scale.usage, "koine scale: %s `%s` is not such as %s", option, value, example);
}

/* With `in_list` another may follow, after a comma. */
static bool parse_whole(int *value, const char *text, bool in_list)
{
    char *end;
    const long number = strtol(text, &end, 10);
    *value = (int)number;
    return end != text && (*end == '\0' || (in_list && *end == ',')) && number >= 1 && number <= 1 << 24;
}

/* "1024": all powers of two up to it, and itself; "8,24": these. */
static int parse_ranks(kn_scale_options *o, const char *text)
{
    const char *at = text;
    do {
        int ranks;
        if (o->num_ranks == KN_SCALE_MOST_ROWS || !parse_whole(&ranks, at, true))
            return wrong("--ranks", text, "1024, or 8,64,512");
        o->ranks[o->num_ranks++] = ranks;
        at = strchr(at, ',');
    } while (at++);
    if (o->num_ranks > 1 || strchr(text, ','))
        return -1;
    const int last = o->ranks[0];
    o->num_ranks = 0;
    for (int ranks = 1; ranks < last; ranks *= 2)
        o->ranks[o->num_ranks++] = ranks;
    o->ranks[o->num_ranks++] = last;
    return -1;
}

typedef struct number_option {
    const char *name, *text, *example;
    const unit *units;
    double *value;
    bool positive;
} number_option;

static int parse_numbers(const number_option *list, int count)
{
    for (int i = 0; i < count; i++) {
        const number_option *n = &list[i];
        if (n->text && (!parse(n->value, n->text, n->units) || (n->positive && *n->value <= 0)))
            return wrong(n->name, n->text, n->example);
    }
    return -1;
}

static int parse_values(kn_scale_options *o, const texts *t)
{
    double bucket = (double)o->buckets.bucket_bytes, first = (double)o->buckets.first_bucket_bytes;
    const number_option list[] = {
        {"--network", t->network, "100Gbit or 12.5GB", rates, &o->link.bandwidth, true},
        {"--latency", t->latency, "5us", seconds, &o->link.latency, false},
        {"--call", t->call, "50us", seconds, &o->link.call, false},
        {"--staging", t->staging, "12GB, or none", rates, &o->link.staging, true},
        {"--copies", t->copies, "100GB, or none", rates, &o->link.copies, true},
        {"--compute", t->compute, "250ms", seconds, &o->compute, true},
        {"--forward", t->forward, "0.33, a share", numbers, &o->forward, false},
        {"--parameters", t->parameters, "124M", numbers, &o->parameters, true},
        {"--bucket", t->bucket, "25MiB", sizes, &bucket, true},
        {"--first-bucket", t->first_bucket, "1MiB", sizes, &first, true},
    };
    const int status = parse_numbers(list, sizeof list / sizeof list[0]);
    o->buckets.bucket_bytes = (size_t)bucket;
    o->buckets.first_bucket_bytes = (size_t)first;
    return status >= 0 || o->forward <= 1 ? status : wrong("--forward", t->forward, "0.33, a share");
}

static int parse_choices(kn_scale_options *o, const texts *t)
{
    static const char *const algorithms[] = {"best", "ring", "halving"};
    int batch = (int)o->batch_size, image = (int)o->image_size, chosen = 0;
    if (t->batch && !parse_whole(&batch, t->batch, false))
        return wrong("--batch-size", t->batch, "32");
    o->batch_size = batch;
    if (t->image && !parse_whole(&image, t->image, false))
        return wrong("--image-size", t->image, "224");
    o->image_size = image;
    if (t->layers && !parse_whole(&o->layers, t->layers, false))
        return wrong("--layers", t->layers, "100");
    while (t->algorithm && chosen < 3 && strcmp(t->algorithm, algorithms[chosen]) != 0)
        chosen++;
    if (chosen == 3)
        return wrong("--algorithm", t->algorithm, "best, ring or halving");
    o->algorithm = (kn_scale_algorithm)chosen;
    if (!t->gradients || strcmp(t->gradients, "f32") == 0)
        return -1;
    o->element = 2;
    return strcmp(t->gradients, "f16") == 0 ? -1 : wrong("--gradients", t->gradients, "f32 or f16");
}

static int check_needed(const kn_scale_options *o, const texts *t)
{
    const char *usage = kn_command_scale.usage;
    if (!o->model && o->parameters <= 0)
        return kn_usage_error(usage, "koine scale: --model or --parameters is missing");
    if (o->model && t->parameters)
        return kn_usage_error(usage, "koine scale: --model has its own number of parameters: leave out --parameters");
    if (!t->network)
        return kn_usage_error(usage, "koine scale: --network is missing, such as --network 100Gbit");
    if (!o->model && o->compute <= 0)
        return kn_usage_error(usage, "koine scale: --parameters needs --compute: there is no network to measure");
    return -1;
}

int kn_scale_parse(kn_scale_options *o, int argc, char **argv)
{
    *o = (kn_scale_options){
        .layers = 50, .batch_size = 32, .image_size = 224, .forward = 1.0 / 3, .buckets = {KN_DISTRIBUTED_DEFAULTS}};
    o->link = (kn_scale_link){.latency = 5e-6, .call = 50e-6, .staging = 12e9};
    texts t = {.ranks = "1024"};
    const kn_option options[] = {
        {"--model", NULL, &o->model},
        {"--device", NULL, &o->device},
        {"--ranks", NULL, &t.ranks},
        {"--network", NULL, &t.network},
        {"--latency", NULL, &t.latency},
        {"--call", NULL, &t.call},
        {"--staging", NULL, &t.staging},
        {"--copies", NULL, &t.copies},
        {"--compute", NULL, &t.compute},
        {"--forward", NULL, &t.forward},
        {"--batch-size", NULL, &t.batch},
        {"--image-size", NULL, &t.image},
        {"--parameters", NULL, &t.parameters},
        {"--layers", NULL, &t.layers},
        {"--algorithm", NULL, &t.algorithm},
        {"--bucket", NULL, &t.bucket},
        {"--first-bucket", NULL, &t.first_bucket},
        {"--gradients", NULL, &t.gradients},
        {"--no-overlap", &o->no_overlap, NULL},
        {"--measure-link", &o->measure_link, NULL},
        {"--json", &o->json, NULL},
    };
    int status = kn_parse_options(&kn_command_scale, argc, argv, options, sizeof options / sizeof options[0], NULL, 0);
    if (status >= 0 || o->measure_link)
        return status;
    o->has_staging = t.staging != NULL;
    o->has_copies = t.copies != NULL;
    if (t.staging && strcmp(t.staging, "none") == 0) {
        o->link.staging = 0;
        t.staging = NULL;
    }
    if (t.copies && strcmp(t.copies, "none") == 0)
        t.copies = NULL;
    if ((status = parse_ranks(o, t.ranks)) < 0 && (status = parse_values(o, &t)) < 0 &&
        (status = parse_choices(o, &t)) < 0)
        status = check_needed(o, &t);
    return status;
}
