/* op_gradient.c - gradients against central differences, in f64: element by element for rows with few of them, along
 * random directions for the others. */
#include "support/op_run.h"

#define MOST_ELEMENTS 96

static kn_tensor *apply(kn_tensor *const *inputs, void *user)
{
    kn_manual_seed(1); /* dropout draws the same mask each time */
    return op_build_from(user, inputs);
}

void op_check_gradient(op_run *run)
{
    const int64_t elements = op_differentiable_elements(run->row, run->layout);
    if (elements == 0)
        return;
    const kn_gradcheck_params params = {.rtol = 1e-4, .fast_mode = elements > MOST_ELEMENTS};
    const int scope = kn_scope_begin();
    kn_tensor *leaves[OP_MAX_INPUTS];
    if (!op_make_leaves(run, leaves) || kn_gradcheck(apply, run, leaves, op_num_inputs(run->row), &params) != KN_OK)
        op_fail(run, "gradient", "%s", kn_error_message());
    kn_scope_end(scope);
}
