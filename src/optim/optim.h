/* optim/optim.h - the optimizer's internals. See koine/optim.h for the interface.
 *
 * An optimizer is a row: the names and ranges of its hyperparameters, the kinds of state that it keeps for each
 * parameter, the scalars of a step, and a kernel of a few lines (cl/optim/NAME.cl). All else is common. In place of the
 * kernel a row may have a function that computes the step of one parameter with operators (Muon, Adafactor:
 * optim/composed.c), or a kn_optim_whole, which steps all parameters together (LBFGS).
 *
 * Parameters of one group, device and dtype form a bucket, whose state lies in one flat tensor per kind of state
 * ("exp_avg"). A step walks each bucket and updates up to KN_OPTIM_SLOTS parameters per launch: OpenCL 1.2 cannot pass
 * an array of pointers, so each slot has its own arguments (cl/optim/slots.clh). */
#pragma once

#include <koine/optim.h>
#include <stddef.h>

#include "nn/tensor_list.h"
#include "optim/slots.h"
#include "rt/trace/spans.h"
#include "tensor/tensor.h"

#define KN_OPTIM_OWN_STATES 3                         /* of an algorithm, at most */
#define KN_OPTIM_MAX_STATES (KN_OPTIM_OWN_STATES + 1) /* and the master weights */
#define KN_OPTIM_MAX_HYPER 12
#define KN_OPTIM_MAX_SCALARS 9
#define KN_OPTIM_MAX_CARRIED 2
#define KN_OPTIM_LR 0 /* the learning rate's index among the hyperparameters */

/* --- the row of an optimizer -------------------------------------------------------------------------------------- */

typedef enum kn_hyper_kind {
    KN_HYPER_FROM_0,  /* 0 or more */
    KN_HYPER_BELOW_1, /* at least 0 and below 1 */
    KN_HYPER_NUMBER,  /* any number but NaN */
    KN_HYPER_FLAG,    /* 0 or 1 */
    KN_HYPER_OPTION,  /* 0 or more, or -1: none, null in PyTorch's state_dict */
    KN_HYPER_COUNT,   /* an integer, 0 or more */
    KN_HYPER_CHOICE   /* the index of one of `choices` */
} kn_hyper_kind;

typedef struct kn_optim_hyper {
    const char *name;
    size_t at; /* in the parameter struct: a double; a bool for flags, an int for counts and choices */
    kn_hyper_kind kind;
    const char *list;           /* in PyTorch's state_dict: the list that has it and its neighbours, such as "betas" */
    const char *const *choices; /* their names there; the first may be NULL, for null; the last is "" */
    const char *define;         /* unless it is 0: a build option of the kernel, " -DAMSGRAD" / */
    double flops;               /* operations per element, for the profiler */
} kn_optim_hyper;
#define KN_HYPER(type, field, ...)                                                                                     \
    {                                                                                                                  \
        .name = #field, .at = offsetof(type, field), __VA_ARGS__                                                       \
    }

typedef struct kn_optim_state {
    const char *name; /* PyTorch's, "exp_avg" */
    int needs;        /* kept only if this hyperparameter is not 0; 0: always */
    /* Its shape; returns the number of dimensions, -1 if the parameter has no such state. NULL: the parameter's. */
    int (*shape)(const kn_tensor *parameter, int64_t shape[KN_MAX_DIMS]);
} kn_optim_state;
#define KN_STATE(...)                                                                                                  \
    {                                                                                                                  \
        .name = __VA_ARGS__                                                                                            \
    }

/* How far a parameter is. */
typedef struct kn_optim_course {
    int64_t step;                         /* steps so far; a step without a gradient does not count */
    double carried[KN_OPTIM_MAX_CARRIED]; /* numbers that the algorithm carries from step to step */
} kn_optim_course;

typedef struct kn_optim_composed kn_optim_composed;
typedef struct kn_optim_whole kn_optim_whole;

typedef struct kn_optim_algorithm {
    const void *params;           /* the parameter struct with its defaults: KN_OPTIM_PARAMS */
    size_t master_at;             /* in it: master_weights; 0: it has none */
    const char *name;             /* "Adam" */
    const char *step;             /* as PyTorch's profiler names it: "Optimizer.step#Adam.step" */
    const kn_optim_hyper *hyper;  /* lr first; the last has no name */
    const kn_optim_state *states; /* the last has no name */
    const char *const *carried;   /* names of the carried numbers; NULL-terminated; NULL: none */
    const char *source, *kernel;  /* optim/adam.cl, "adam" */
    double flops;                 /* operations per element besides those of hyperparameters */
    bool counts_steps;            /* PyTorch's state has a "step" */
    bool counts_on_device;        /* the kernel can compute its scalars from a count of steps on the device */
    bool is_same_each_step;       /* the scalars do not depend on the step */
    const char *measure;          /* the kernel that runs first: cl/optim/measure.clh; NULL: none */
    kn_status (*compose)(const kn_optim_composed *it); /* instead of a kernel: the step of one parameter */
    const kn_optim_whole *whole;                       /* instead of states, scalars and a kernel */
    void (*complete)(double *hyper);                   /* defaults that depend on other hyperparameters; NULL: none */
    kn_status (*check)(const double *hyper);           /* besides the ranges; NULL: nothing */
    kn_status (*check_parameter)(const kn_tensor *parameter, int index); /* NULL: any floating leaf */
    double (*initial)(const double *hyper, int state);                   /* of a state's elements; NULL: 0 */
    void (*start)(const double *hyper, double *carried);                 /* before the first step; NULL: 0 */
    /* The kernel's scalars for the step `course->step` (from 1; 0: each slot counts its own), at most
     * KN_OPTIM_MAX_SCALARS; updates what is carried. Returns how many. */
    int (*scalars)(const double *hyper, kn_optim_course *course, double *scalars);
} kn_optim_algorithm;

#define KN_OPTIM_PARAMS(type, ...) .params = &(const type){__VA_ARGS__}, .master_at = offsetof(type, master_weights)

/* The rows of all optimizers, which optim.c lists by name. */
extern const kn_optim_algorithm kn_optim_row_sgd, kn_optim_row_adam, kn_optim_row_adamw, kn_optim_row_rmsprop,
    kn_optim_row_adagrad, kn_optim_row_adadelta, kn_optim_row_nadam, kn_optim_row_radam, kn_optim_row_adamax,
    kn_optim_row_asgd, kn_optim_row_rprop, kn_optim_row_lamb, kn_optim_row_lion, kn_optim_row_adafactor,
    kn_optim_row_muon, kn_optim_row_lbfgs;

/* The public constructor of the row kn_optim_row_NAME. */
#define KN_OPTIM_CONSTRUCTOR(name)                                                                                     \
    kn_optim *kn_optim_##name##_with(kn_parameter_list parameters, const kn_##name##_params *params)                   \
    {                                                                                                                  \
        return kn_optim_new(&kn_optim_row_##name, parameters, params, NULL);                                           \
    }

int kn_optim_hyper_count(const kn_optim_algorithm *algorithm);
/* Fills `hyper` from a parameter struct. */
void kn_optim_take_hyper(const kn_optim_algorithm *algorithm, const void *params, double *hyper);
kn_status kn_optim_check_hyper(const kn_optim_algorithm *algorithm, const double *hyper);
/* The rows of the states that are kept; returns how many. */
int kn_optim_states_in_use(const kn_optim_algorithm *algorithm, const double *hyper, int rows[KN_OPTIM_OWN_STATES]);

/* --- launches ----------------------------------------------------------------------------------------------------- */

typedef struct kn_optim_bucket {
    int group;
    kn_device *device;
    kn_dtype dtype;
    int64_t elements[KN_OPTIM_MAX_STATES];  /* of each state: the sum of the parameters' shares, each rounded up */
    kn_tensor *states[KN_OPTIM_MAX_STATES]; /* in the order of the group's states; then the master weights, if any */
} kn_optim_bucket;

/* Where a parameter's state is. */
typedef struct kn_optim_place {
    int bucket;
    int64_t starts[KN_OPTIM_MAX_STATES]; /* in elements, in the bucket's state tensors; for kernels all are equal */
} kn_optim_place;

/* A parameter of a step. */
typedef struct kn_optim_slot {
    kn_tensor *parameter, *gradient;
    int index;     /* in the optimizer or the lists */
    int64_t start; /* in the flat states */
    /* Without flat states: the parameter's own states. */
    kn_tensor *states[KN_OPTIM_OWN_STATES];
    /* If the kernel reads it: the tensor that has its number of steps (float32, borrowed), and where. */
    kn_tensor *step;
    int64_t step_at;
} kn_optim_slot;

/* Parameters updated by one launch: of one group, device and dtype. */
typedef struct kn_optim_batch {
    const kn_optim_algorithm *algorithm;
    const double *hyper;
    const char *options; /* build options besides the algorithm's; NULL: none */
    int num_states;
    bool has_master;
    const kn_tensor *grad_scale, *found_inf; /* as in kn_optim_lists */
    kn_optim *optim;                         /* whose steps are counted; NULL: the caller's lists */
    int group;                               /* of the optimizer */
    kn_span_work work;                       /* of all parameters so far */
    kn_device *device;
    kn_dtype dtype;
    kn_stream *stream;
    kn_tensor *const *flat; /* the bucket's states; NULL: the slots' own */
    kn_optim_course course; /* with this step's number, from 1, the same for all; what is carried into it */
    int count;
    kn_optim_slot given[KN_OPTIM_SLOTS], slots[KN_OPTIM_SLOTS]; /* slots: contiguous, with references of their own */
} kn_optim_batch;

/* A step: begins a span named `name`; adds parameters, launching whenever the next one does not fit; and ends with the
 * last launch or, if `status` is a failure, without. kn_optim_flush launches what has been added. */
kn_span kn_optim_begin(const char *name, const kn_tensor *parameter);
kn_status kn_optim_add(kn_optim_batch *batch, const kn_optim_slot *given, kn_tensor *const *flat,
                       const kn_optim_course *course);
kn_status kn_optim_flush(kn_optim_batch *batch, kn_status status);
kn_status kn_optim_end(kn_optim_batch *batch, kn_status status, kn_span span);
/* The arguments for the step's scalars, at most KN_OPTIM_MAX_SCALARS; advances the batch's course. In a graph they are
 * variables that each replay updates. */
kn_status kn_optim_scalar_arguments(kn_optim_batch *batch, kn_arg *args, int *count);

/* The step of one parameter, computed with operators. All tensors are borrowed. */
struct kn_optim_composed {
    const double *hyper;
    kn_stream *stream;
    kn_dtype dtype;                         /* of the parameter; what follows has the dtype to compute in */
    kn_tensor *parameter, *gradient;        /* the gradient of what is minimised; the parameter is to be changed */
    kn_tensor *states[KN_OPTIM_OWN_STATES]; /* NULL: the parameter has none */
    kn_tensor *scalars;                     /* [n], on the device */
};
/* Steps the parameters of a batch with its algorithm's `compose`: composed.c. */
kn_status kn_optim_compose(kn_optim_batch *batch);
/* Element `index` of the scalars, a tensor without dimensions; the innermost scope owns it. */
kn_tensor *kn_optim_composed_scalar(const kn_optim_composed *it, int index);

/* A step on the caller's lists (koine/fused_optim.h): lists.c. */
typedef struct kn_optim_lists {
    const char *function; /* the public function, for messages */
    int64_t step;         /* 0: `steps` has each parameter's */
    bool has_steps;
    bool clears_states;                      /* the states are uninitialised: clear them first */
    const kn_tensor *grad_scale, *found_inf; /* one float32 element each, or NULL (cl/optim/slots.clh) */
    int count;
    kn_tensor *const *parameters, *const *gradients, *const *states[KN_OPTIM_OWN_STATES], *const *steps;
    const char *names[KN_OPTIM_OWN_STATES]; /* of the lists of states */
} kn_optim_lists;
/* With the algorithm's hyperparameters from `params`, a record that `rows` describe in place of the algorithm's own. */
kn_status kn_optim_step_lists(const kn_optim_lists *lists, const kn_optim_algorithm *algorithm,
                              const kn_optim_hyper *rows, const void *params);

/* --- the optimizer ------------------------------------------------------------------------------------------------ */

typedef struct kn_optim_recorded kn_optim_recorded; /* a launch that a graph replays: optim/recorded.c */

/* Parameters with hyperparameters of their own: those numbered first .. first + count - 1. */
typedef struct kn_optim_group {
    double hyper[KN_OPTIM_MAX_HYPER];
    double initial_lr; /* set by schedules; NaN: not */
    int first, count;
    int states[KN_OPTIM_OWN_STATES], num_states; /* rows of the algorithm's states that are kept */
} kn_optim_group;

/* An optimizer whose parameters and state are divided among processes (dist/zero.c): this one steps those that it
 * owns. */
typedef struct kn_optim_shard kn_optim_shard;
struct kn_optim_shard {
    int rank, size;
    int *owners;                                               /* the rank of each parameter */
    kn_status (*extend)(kn_optim *optim);                      /* parameters were added: gives them owners */
    kn_status (*agree)(kn_optim *optim, kn_tensor *found_inf); /* not 0 on all ranks if it is not 0 on one */
    /* A step: its layout is made; all parameters of this rank before `index` are being stepped; so are all (or the step
     * failed with `status`): when the last returns all ranks have all parameters. */
    kn_status (*begin)(kn_optim *optim);
    kn_status (*stepped)(kn_optim *optim, int index);
    kn_status (*finish)(kn_optim *optim, kn_status status);
    void (*free)(kn_optim_shard *shard);
    kn_tensor_list whole; /* the state of all ranks, until the next step; if has_whole */
    bool has_whole;
};

struct kn_optim {
    const kn_optim_algorithm *algorithm;
    kn_optim_shard *shard;               /* NULL: this process has and steps all parameters */
    double defaults[KN_OPTIM_MAX_HYPER]; /* of groups to be added */
    bool master_weights;
    kn_optim_group *groups;
    int num_groups;
    int count;
    kn_tensor **parameters; /* one reference each */
    int *group_of;          /* each parameter's group */
    kn_optim_course *courses;
    kn_optim_place *places;
    kn_optim_bucket *buckets; /* NULL until the first step */
    int num_buckets;
    kn_tensor *device_steps; /* float32 [count], once steps may be skipped on the device (optim/fused.c); else NULL */
    kn_optim_recorded *recorded; /* its launches in graphs, notified when the optimizer is freed */
    void *own;                   /* the state of an algorithm with a kn_optim_whole; NULL until the first step */
};

static inline bool kn_optim_owns(const kn_optim *optim, int index)
{
    return !optim->shard || optim->shard->owners[index] == optim->shard->rank;
}

/* An algorithm that steps all parameters together and evaluates the loss itself. It has one group. */
struct kn_optim_whole {
    kn_tensor *(*step)(kn_optim *optim, kn_optim_closure closure, void *user); /* as kn_optim_step_closure */
    kn_status (*list)(const kn_optim *optim, kn_tensor_list *list);            /* adds its state's tensors */
    /* Makes `*own` from such a list, `*used` of its tensors. NULL: a state before the first step. */
    kn_status (*load)(const kn_optim *optim, const kn_tensor_list *list, const char *origin, void **own, int *used);
    void (*free)(void *own); /* NULL allowed */
};

/* Creates an optimizer with one group; `params` is the parameter struct of the algorithm's row, NULL: the defaults.
 * `options` replace some of them. NULL with a sticky error. */
kn_optim *kn_optim_new(const kn_optim_algorithm *algorithm, kn_parameter_list parameters, const void *params,
                       const kn_optim_option *options);

/* Allocates the buckets, again if a parameter has changed device or dtype or a group was added; existing state is moved
 * (optim/layout.c). */
kn_status kn_optim_lay_out(kn_optim *optim);
void kn_optim_free_buckets(kn_optim_bucket *buckets, int count);

/* An owned view of state `state` of parameter `index`, with the parameter's shape: one of its group's states, or, after
 * those, the master weights. */
kn_status kn_optim_state_view(kn_optim *optim, int index, int state, kn_tensor **view);
/* How many its group has; whether the parameter has this one too, here. */
int kn_optim_state_count(const kn_optim *optim, int index);
bool kn_optim_has_state(const kn_optim *optim, int index, int state);
/* Its shape; returns the number of dimensions. */
int kn_optim_state_shape(const kn_optim *optim, int index, int state, int64_t shape[KN_MAX_DIMS]);
/* The name of such a state. */
const char *kn_optim_state_name(const kn_optim *optim, int index, int state);
bool kn_optim_has_master(const kn_optim *optim, kn_dtype dtype);

/* The closure's loss, recorded; NULL with an error. */
kn_tensor *kn_optim_call_closure(const kn_optim *optim, kn_optim_closure closure, void *user);

/* A step with gradients divided by *grad_scale, skipped on the device if *found_inf is not 0 (either may be NULL). */
kn_status kn_optim_step_scaled(kn_optim *optim, const kn_tensor *grad_scale, const kn_tensor *found_inf);

/* Steps counted on the device (optim/fused.c): starts, counts one for each parameter with a gradient unless *found_inf,
 * and brings the host's counts up to date, which waits. */
kn_status kn_optim_count_on_device(kn_optim *optim, const kn_tensor *found_inf);
kn_status kn_optim_fetch_steps(kn_optim *optim);

/* For a launch that is being captured: returns memory for its scalars, which each replay computes again. Each replay
 * counts a step for the batch's parameters. NULL with an error. */
const void *kn_optim_record(const kn_optim_batch *batch);

/* The optimizer is being freed: graphs that step it fail from now on. */
void kn_optim_forget_recorded(kn_optim *optim);
