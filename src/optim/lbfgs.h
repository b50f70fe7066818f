/* optim/lbfgs.h - shared by LBFGS and its line search. */
#pragma once

#include "optim/optim.h"

/* A point x + t d of a line, with the loss there and, as flat vectors, its gradient. */
typedef struct kn_lbfgs_point {
    double t, loss;
    double slope;        /* gradient . d */
    kn_tensor *gradient; /* one reference */
} kn_lbfgs_point;

/* A step in progress. */
typedef struct kn_lbfgs_run {
    kn_optim *optim;
    kn_optim_closure closure;
    void *user;
    kn_dtype dtype; /* of flat vectors */
    int64_t length;
    kn_device *device;
    double sign;          /* -1: maximize */
    kn_tensor *origin;    /* x, the parameters at the start of an iteration */
    kn_tensor *direction; /* d */
    int evaluations;
} kn_lbfgs_run;

/* Moves the parameters to x + t d and evaluates the loss and gradient there; point->t is given. The slope is found if
 * there is a direction. `loss`, unless it is NULL, gets the loss as a tensor of the scope that encloses the call. */
kn_status kn_lbfgs_evaluate(kn_lbfgs_run *run, kn_lbfgs_point *point, kn_tensor **loss);
/* Moves the parameters to x + t d. */
kn_status kn_lbfgs_move(kn_lbfgs_run *run, double t);

/* A point on the line that satisfies the strong Wolfe conditions, in at most `most` evaluations; `first` is at t = 0,
 * `found->t` the first guess. The parameters are left anywhere on the line. */
kn_status kn_lbfgs_search(kn_lbfgs_run *run, const kn_lbfgs_point *first, double tolerance_change, int most,
                          kn_lbfgs_point *found);
