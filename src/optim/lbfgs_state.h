/* optim/lbfgs_state.h - what LBFGS carries from step to step; names as in torch.optim.LBFGS. */
#pragma once

#include "optim/optim.h"

typedef struct kn_lbfgs_pair {
    kn_tensor *y, *s; /* a change of the gradient and the move that made it; one reference each */
    double ro;        /* 1 / (y . s) */
} kn_lbfgs_pair;

typedef struct kn_lbfgs_state {
    int64_t func_evals, n_iter;
    kn_tensor *d, *prev_flat_grad; /* the latest direction and gradient; NULL with n_iter 0 */
    double t, h_diag, prev_loss;
    kn_lbfgs_pair *pairs; /* the oldest first */
    int count, capacity;
} kn_lbfgs_state;

/* Takes over the pair's references. */
kn_status kn_lbfgs_push(kn_lbfgs_state *state, const kn_lbfgs_pair *pair);
/* Drops the oldest pairs until there are at most `most`. */
void kn_lbfgs_forget(kn_lbfgs_state *state, int most);

/* As in kn_optim_whole. */
kn_status kn_lbfgs_state_list(const kn_optim *optim, kn_tensor_list *list);
kn_status kn_lbfgs_state_load(const kn_optim *optim, const kn_tensor_list *list, const char *origin, void **own,
                              int *used);
void kn_lbfgs_state_free(void *own);
