/* cli/scale_options.h - what `koine scale` is asked for. */
#pragma once

#include "cli/cli.h"
#include "dist/scale.h"

#define KN_SCALE_MOST_ROWS 32

typedef struct kn_scale_options {
    const char *model, *device; /* model: NULL with --parameters */
    int ranks[KN_SCALE_MOST_ROWS], num_ranks;
    double parameters;
    int layers;
    int64_t batch_size, image_size;
    double compute, forward; /* seconds; compute 0: to be measured. forward: its share */
    kn_scale_link link;
    kn_scale_algorithm algorithm;
    kn_distributed_params buckets;
    size_t element; /* bytes of a gradient's element; 0: the parameters' */
    bool no_overlap, measure_link, json, has_staging, has_copies; /* has_...: as an option */
} kn_scale_options;

/* -1 to continue, else the exit status. */
int kn_scale_parse(kn_scale_options *options, int argc, char **argv);
