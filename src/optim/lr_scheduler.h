/* optim/lr_scheduler.h - internals of schedules. One is a row, with the formulas, and numbers. */
#pragma once

#include <koine/lr_scheduler.h>

#include "nn/tensor_list.h"
#include "optim/optim.h"

#define KN_LR_NUMBERS 10 /* parameters, at most */
#define KN_LR_MUTABLE 3  /* numbers that steps change, at most */

typedef struct kn_lr_row {
    const char *name; /* "StepLR" */
    /* The next learning rate of a group from its current one. */
    double (*chained)(const kn_lr_scheduler *s, int group, double lr);
    double (*closed)(const kn_lr_scheduler *s, int group);   /* of last_epoch alone; NULL: as `chained` */
    void (*advance)(kn_lr_scheduler *s);                     /* after last_epoch has changed; NULL: nothing */
    void (*seek)(kn_lr_scheduler *s, double epoch);          /* the state of an epoch; NULL: epochs are whole */
    kn_status (*check)(const kn_lr_scheduler *s);            /* may it have this last_epoch? NULL: yes */
    double (*momentum)(const kn_lr_scheduler *s, int group); /* NULL: none; used if s->momentum is set */
} kn_lr_row;

struct kn_lr_scheduler {
    const kn_lr_row *row;
    kn_optim *optim;
    int groups;
    int64_t last_epoch, step_count;
    bool is_initial;
    double numbers[KN_LR_NUMBERS], state[KN_LR_MUTABLE];
    double *base_lrs, *last_lrs, *max_lrs; /* one for each group; max_lrs: of cycles, or the least */
    bool has_bases;                        /* base_lrs are its own, not the optimizer's from before any schedule */
    int64_t *milestones;
    int num_milestones;
    const char *momentum; /* the hyperparameter that is cycled; NULL: none */
    kn_lr_lambda lambda;
    double (*scale)(double x, void *user);
    void *user;
    kn_lr_scheduler **parts; /* of several */
    int num_parts;
};

/* A schedule with copies of what is given; NULL with a sticky error. kn_lr_start makes its first step, and frees it if
 * that fails. */
kn_lr_scheduler *kn_lr_new(const kn_lr_row *row, kn_optim *optim, int64_t last_epoch, const double *numbers, int count);
kn_lr_scheduler *kn_lr_start(kn_lr_scheduler *s);

/* For each group, `list` or, if that is NULL, `value`; NULL with a sticky error. */
double *kn_lr_per_group(const kn_optim *optim, double value, const double *list);

/* The first step, again / a step to an epoch, by the closed form if there is one. */
kn_status kn_lr_initial_step(kn_lr_scheduler *s);
kn_status kn_lr_step_to(kn_lr_scheduler *s, int64_t epoch);
/* Takes over the learning rates of the optimizer's groups as the last ones. */
void kn_lr_note(kn_lr_scheduler *s);

/* lr_composite.c */
kn_status kn_lr_step_parts(kn_lr_scheduler *s);
/* lr_plateau.c */
extern const kn_lr_row kn_lr_plateau;

/* The state as host tensors, appended under `name` (and `name`.0, ... for those of several), and back; for
 * io/training_state.c. `origin` names the source in messages; a failure changes nothing. */
kn_status kn_lr_state_list(const kn_lr_scheduler *s, const char *name, kn_tensor_list *list);
kn_status kn_lr_state_load(kn_lr_scheduler *s, const char *name, const kn_tensor_list *list, const char *origin);
