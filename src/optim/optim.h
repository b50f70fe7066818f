/* optim/optim.h - the optimizer's internals. See koine/optim.h for the interface.
 *
 * Parameters of one device and dtype form a bucket, whose state lies in one flat tensor per kind of state ("exp_avg").
 * A step walks each bucket and updates up to KN_OPTIM_SLOTS parameters per launch: OpenCL 1.2 cannot pass an array of
 * pointers, so each slot has its own arguments (cl/optim/slots.clh). */
#pragma once

#include <koine/optim.h>

#include "nn/tensor_list.h"
#include "optim/slots.h"
#include "rt/trace/spans.h"
#include "tensor/tensor.h"

#define KN_OPTIM_MAX_STATES 3
#define KN_OPTIM_MAX_HYPER 6
#define KN_OPTIM_MAX_SCALARS 9
#define KN_OPTIM_LR 0 /* the learning rate's index among the hyperparameters */

typedef struct kn_optim_bucket {
    kn_device *device;
    kn_dtype dtype;
    int64_t elements; /* of each state tensor: the sum of the parameters' sizes, each rounded up */
    kn_tensor *states[KN_OPTIM_MAX_STATES];
} kn_optim_bucket;

/* Where a parameter's state is. */
typedef struct kn_optim_place {
    int bucket;
    int64_t start; /* in elements, in each of the bucket's state tensors */
} kn_optim_place;

typedef struct kn_optim_algorithm {
    const char *name;                          /* "Adam" */
    const char *step;                          /* as PyTorch's profiler names it: "Optimizer.step#Adam.step" */
    const char *const *states;                 /* "exp_avg", ...; the first optim->num_states are in use */
    const char *const *hyper;                  /* names of the hyperparameters, lr first; NULL-terminated */
    kn_status (*check)(const double *hyper);   /* checks the ranges */
    int (*count_states)(const double *hyper);  /* how many of `states` are in use */
    double (*flops)(const double *hyper);      /* operations per element, for the profiler */
    const char *source, *kernel;               /* optim/adam.cl, "adam" */
    const char *(*flags)(const double *hyper); /* build options besides the dtype; may be "" */
    /* The kernel's scalars for step `step` (from 1; 0: each slot counts its own); returns how many, at most
     * KN_OPTIM_MAX_SCALARS. */
    int (*scalars)(const double *hyper, int64_t step, double *scalars);
} kn_optim_algorithm;

/* A parameter of a step. */
typedef struct kn_optim_slot {
    kn_tensor *parameter, *gradient;
    int index;     /* in the optimizer or the lists */
    int64_t start; /* in the flat states */
    /* Without flat states: the parameter's own states and, if the kernel reads it, its number of steps (float32,
     * borrowed). */
    kn_tensor *states[KN_OPTIM_MAX_STATES], *step;
} kn_optim_slot;

/* Parameters updated by one launch: of one device and dtype. */
typedef struct kn_optim_group {
    const kn_optim_algorithm *algorithm;
    const double *hyper;
    const char *options; /* build options besides the algorithm's; NULL: none */
    int num_states;
    const kn_tensor *grad_scale, *found_inf; /* as in kn_optim_lists */
    kn_optim *optim;                         /* whose steps are counted; NULL: the caller's lists */
    kn_work work;                            /* of all parameters so far */
    kn_device *device;
    kn_dtype dtype;
    kn_stream *stream;
    kn_tensor *const *flat; /* the bucket's states; NULL: the slots' own */
    int64_t step;           /* this step's number, from 1, the same for all */
    int count;
    kn_optim_slot given[KN_OPTIM_SLOTS], slots[KN_OPTIM_SLOTS]; /* slots: contiguous, with references of their own */
} kn_optim_group;

/* A step: begins a span named `name`; adds parameters, launching whenever the next one does not fit; and ends with the
 * last launch or, if `status` is a failure, without. */
kn_span kn_optim_begin(const char *name, const kn_tensor *parameter);
kn_status kn_optim_add(kn_optim_group *group, const kn_optim_slot *given, kn_tensor *const *flat, int64_t step);
kn_status kn_optim_end(kn_optim_group *group, kn_status status, kn_span span);

/* A step on the caller's lists (koine/fused_optim.h): lists.c. */
typedef struct kn_optim_lists {
    const char *function; /* the public function, for messages */
    const kn_optim_algorithm *algorithm;
    const double *hyper;
    const char *options; /* " -DOWN_STATES" and more */
    int64_t step;        /* 0: `steps` has each parameter's */
    bool has_steps;
    bool clears_states;                      /* the states are uninitialised: clear them first */
    const kn_tensor *grad_scale, *found_inf; /* one float32 element each, or NULL (cl/optim/slots.clh) */
    int count, num_states;
    kn_tensor *const *parameters, *const *gradients, *const *states[KN_OPTIM_MAX_STATES], *const *steps;
    const char *names[KN_OPTIM_MAX_STATES]; /* of the lists of states */
} kn_optim_lists;
kn_status kn_optim_step_lists(const kn_optim_lists *lists);

typedef struct kn_optim_recorded kn_optim_recorded; /* a launch that a graph replays: optim/recorded.c */

struct kn_optim {
    const kn_optim_algorithm *algorithm;
    double hyper[KN_OPTIM_MAX_HYPER];
    int num_states;
    int count;
    kn_tensor **parameters; /* one reference each */
    int64_t *steps;         /* steps so far; a step without a gradient does not count */
    kn_optim_place *places;
    kn_optim_bucket *buckets; /* NULL until the first step */
    int num_buckets;
    kn_optim_recorded *recorded; /* its launches in graphs, notified when the optimizer is freed */
};

/* Creates an optimizer; `hyper` is in the order of the algorithm's names. NULL with a sticky error. */
kn_optim *kn_optim_new(const kn_optim_algorithm *algorithm, kn_parameter_list parameters, const double *hyper);

/* Allocates the buckets, again if a parameter has changed device or dtype; existing state is moved (optim/layout.c). */
kn_status kn_optim_lay_out(kn_optim *optim);
void kn_optim_free_buckets(kn_optim_bucket *buckets, int count);

/* An owned view of state `state` of parameter `index`, with the parameter's shape. */
kn_status kn_optim_state_view(kn_optim *optim, int index, int state, kn_tensor **view);

/* For a launch that is being captured: returns memory for its scalars, which each replay computes again. Each replay
 * counts a step for the group's parameters. NULL with an error. */
const void *kn_optim_record(const kn_optim_group *group);

/* The optimizer is being freed: graphs that step it fail from now on. */
void kn_optim_forget_recorded(kn_optim *optim);
