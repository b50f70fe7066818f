/* dist/scale.h - a model of data parallel training on many ranks: docs/scaling.md has its formulas. */
#pragma once

#include <koine/distributed.h>
#include <koine/group.h>
#include <koine/module.h>

/* How values travel. */
typedef struct kn_scale_link {
    double latency;   /* seconds of a message between two ranks */
    double bandwidth; /* bytes per second of each rank's link, in each direction */
    double call;      /* seconds of a call, whatever its size and the number of ranks */
    double staging;   /* bytes per second of copies between device and host; 0: the values are there already */
    double copies;    /* the same on the device, of gradients into buckets and back; 0: they take no time */
} kn_scale_link;

typedef enum kn_scale_algorithm { KN_SCALE_BEST, KN_SCALE_RING, KN_SCALE_HALVING } kn_scale_algorithm;

typedef struct kn_scale_bucket {
    double bytes;
    double ready; /* the share of the backward pass after which it can be sent */
} kn_scale_bucket;

typedef struct kn_scale_job {
    double forward, backward;       /* seconds of one rank's computation; the optimizer's counts as forward */
    const kn_scale_bucket *buckets; /* in the order in which they are sent */
    int num_buckets;
    kn_scale_link link;
    kn_scale_algorithm algorithm;
    bool no_overlap; /* buckets are sent after the backward pass */
} kn_scale_job;

typedef struct kn_scale_step {
    double time, communication, exposed; /* seconds; exposed: what the step takes longer than its computation */
    double efficiency;                   /* against one rank */
} kn_scale_step;

/* Of one all_reduce. */
double kn_scale_all_reduce(const kn_scale_link *link, kn_scale_algorithm algorithm, double bytes, int ranks);
kn_scale_step kn_scale_predict(const kn_scale_job *job, int ranks);

/* The buckets that kn_nn_distributed makes of a module's parameters; layers are assumed to take equal times. The caller
 * frees the array with kn_free; NULL with an error. `element`: bytes of a gradient's element, 0: the parameters'. */
kn_scale_bucket *kn_scale_buckets_of(kn_module *module, const kn_distributed_params *params, size_t element,
                                     int *count);
/* The same of `parameters` numbers in `layers` equal layers. */
kn_scale_bucket *kn_scale_buckets_of_equal(double parameters, int layers, const kn_distributed_params *params,
                                           size_t element, int *count);

/* Of tensors that no cache holds. */
kn_status kn_scale_measure_copies(kn_device *device, double *bytes_per_second);

/* A collective call: the link between the ranks, with copies to and from `device` (the host: none); ranks get the same
 * figures. (scale_measure.c) */
kn_status kn_scale_measure_link(kn_group *group, kn_device *device, kn_scale_link *link);
