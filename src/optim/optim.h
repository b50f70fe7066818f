/* optim/optim.h - the optimizer as the optim layer sees it. See koine/optim.h for what optimizers do.
 *
 * Parameters of one device and dtype form a bucket, whose state lies in one flat tensor per kind of state ("exp_avg").
 * A step walks each bucket and updates up to KN_OPTIM_SLOTS parameters per launch: OpenCL 1.2 cannot pass an array of
 * pointers, so each slot has arguments of its own (cl/optim/slots.clh). */
#ifndef KN_OPTIM_OPTIM_H
#define KN_OPTIM_OPTIM_H

#include <koine/optim.h>

#include "nn/tensor_list.h"
#include "tensor/tensor.h"

#define KN_OPTIM_SLOTS 16 /* on CPU devices 8: their launches cost little */
#define KN_OPTIM_MAX_STATES 3
#define KN_OPTIM_MAX_HYPER 6
#define KN_OPTIM_MAX_SCALARS 8
#define KN_OPTIM_LR 0 /* the learning rate's place among the hyperparameters */

typedef struct kn_optim_bucket {
    kn_device *device;
    kn_dtype dtype;
    int64_t elements; /* of each state tensor: the parameters' sizes, each rounded up */
    kn_tensor *states[KN_OPTIM_MAX_STATES];
} kn_optim_bucket;

/* Where a parameter's state is. */
typedef struct kn_optim_place {
    int bucket;
    int64_t start; /* element in each of the bucket's state tensors */
} kn_optim_place;

/* Parameters that one launch updates: of one bucket, with the same number of steps behind them. */
typedef struct kn_optim_group {
    const kn_optim_bucket *bucket;
    kn_stream *stream;
    int64_t step; /* the step that this launch makes, from 1 */
    int count;
    struct {
        kn_tensor *parameter, *gradient; /* contiguous */
        int64_t start;
    } slots[KN_OPTIM_SLOTS];
} kn_optim_group;

typedef struct kn_optim_algorithm {
    const char *name;                          /* "Adam" */
    const char *const *states;                 /* "exp_avg", ...; the first optim->num_states are in use */
    const char *const *hyper;                  /* names of the hyperparameters, lr first; NULL ends them */
    kn_status (*check)(const double *hyper);   /* are they in range? */
    int (*count_states)(const double *hyper);  /* how many of `states` are in use */
    double (*flops)(const double *hyper);      /* operations per element, for the profiler */
    const char *source, *kernel;               /* optim/adam.cl, "adam" */
    const char *(*flags)(const double *hyper); /* what is compiled in besides the dtype; "" for nothing */
    /* The kernel's numbers for the step `step` (from 1); returns how many, KN_OPTIM_MAX_SCALARS at most. */
    int (*scalars)(const double *hyper, int64_t step, double *scalars);
} kn_optim_algorithm;

typedef struct kn_optim_recorded kn_optim_recorded; /* a launch that a graph replays: optim/recorded.c */

struct kn_optim {
    const kn_optim_algorithm *algorithm;
    double hyper[KN_OPTIM_MAX_HYPER];
    int num_states;
    int count;
    kn_tensor **parameters; /* one reference each */
    int64_t *steps;         /* made so far; a parameter without a gradient does not count the step */
    kn_optim_place *places;
    kn_optim_bucket *buckets; /* NULL until the first step */
    int num_buckets;
    kn_optim_recorded *recorded; /* its launches in graphs: told when the optimizer goes */
};

/* Makes an optimizer; `hyper` as the algorithm names them. NULL with a sticky error. */
kn_optim *kn_optim_new(const kn_optim_algorithm *algorithm, kn_parameter_list parameters, const double *hyper);

/* Makes the buckets, or makes them anew where a parameter has changed device or dtype; state moves along
 * (optim/layout.c). */
kn_status kn_optim_lay_out(kn_optim *optim);
void kn_optim_free_buckets(kn_optim_bucket *buckets, int count);

/* An owned view of state `state` of parameter `index`, with the parameter's shape. */
kn_status kn_optim_state_view(kn_optim *optim, int index, int state, kn_tensor **view);

/* A launch under capture: `scalars` (of `dtype`'s kernels) get memory whose contents each replay works out anew, and
 * each replay counts a step for the parameters `indices`. NULL with an error. */
const void *kn_optim_record(kn_optim *optim, const kn_optim_group *group, const int *indices);

/* The optimizer goes: graphs that step it fail from now on. */
void kn_optim_forget_recorded(kn_optim *optim);

/* The step's numbers as the kernel's T, one after another. */
void kn_optim_write_scalars(void *memory, kn_dtype dtype, const double *scalars, int count);

#endif
