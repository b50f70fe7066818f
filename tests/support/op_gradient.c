/* op_gradient.c - gradients against finite differences, in f64.
 *
 * Rows with few elements use kn_gradcheck, element by element. For the others that would take too long; instead, the
 * derivative along a few random directions v of all inputs is checked: (L(x + eps v) - L(x - eps v)) / (2 eps) = sum of
 * gradient times v, with L the weighted sum of the output. */
#include <math.h>
#include <stdlib.h>

#include "support/op_run.h"

#define GRADCHECK_ELEMENTS 96
#define DIRECTIONS 2
#define STEP 1e-6

static kn_tensor *gradcheck_function(kn_tensor *const *inputs, void *user)
{
    kn_manual_seed(1); /* dropout draws the same mask each time */
    return op_build_from(user, inputs);
}

static void check_elements(op_run *run)
{
    int scope = kn_scope_begin();
    kn_tensor *leaves[OP_MAX_INPUTS];
    if (!op_make_leaves(run, leaves, 0, 0) ||
        kn_gradcheck(gradcheck_function, run, leaves, op_num_inputs(run->row), NULL) != KN_OK)
        op_fail(run, "gradient", "%s", kn_error_message());
    kn_scope_end(scope);
}

/* L at x + step * v: the output weighted by op_weights, summed in long double. NaN on failure. */
static double weighted_output(op_run *run, double step, int direction)
{
    double total = NAN;
    bool enabled = kn_set_grad_enabled(false);
    int scope = kn_scope_begin();
    kn_tensor *leaves[OP_MAX_INPUTS];
    kn_manual_seed(1);
    kn_tensor *output = op_make_leaves(run, leaves, step, direction) ? op_build_from(run, leaves) : NULL;
    double *values = read_doubles(output);
    double *weights = values ? op_weights(run, kn_numel(output)) : NULL;
    if (weights) {
        long double sum = 0;
        for (int64_t i = 0; i < kn_numel(output); i++)
            sum += (long double)values[i] * weights[i];
        total = (double)sum;
    }
    free(values);
    free(weights);
    kn_scope_end(scope);
    kn_set_grad_enabled(enabled);
    return total;
}

static double slope_by_gradients(const op_run *run, const op_result *result, int direction)
{
    long double slope = 0;
    for (int i = 0; i < op_num_inputs(run->row); i++) {
        if (!op_input_differentiable(run->row, i))
            continue;
        int64_t count;
        double *along = op_leaf_direction(run, i, direction, &count);
        for (int64_t j = 0; along && j < count; j++)
            slope += (long double)along[j] * result->gradients[i].values[j];
        free(along);
    }
    return (double)slope;
}

static void check_directions(op_run *run)
{
    op_result result;
    if (op_execute(run, &result, false))
        for (int d = 0; d < DIRECTIONS; d++) {
            double numeric = (weighted_output(run, STEP, d) - weighted_output(run, -STEP, d)) / (2 * STEP);
            double analytic = slope_by_gradients(run, &result, d);
            if (!(fabs(numeric - analytic) <= 1e-5 + 1e-4 * fabs(numeric)))
                op_fail(run, "gradient", "along direction %d the gradients give %.9g, finite differences %.9g", d,
                        analytic, numeric);
        }
    op_result_free(&result);
}

void op_check_gradient(op_run *run)
{
    int64_t elements = op_differentiable_elements(run->row, run->layout);
    if (elements == 0)
        return;
    if (elements <= GRADCHECK_ELEMENTS)
        check_elements(run);
    else
        check_directions(run);
}
