/* op_execute.c - one execution of a row: forward, backward, everything read to the host. */
#include <stdlib.h>
#include <string.h>

#include "rt/compile/compile.h"
#include "rt/compile/rehearsal.h"
#include "support/op_run.h"

static bool take_bytes(op_bytes *bytes, const kn_tensor *tensor)
{
    bytes->data = read_bytes(tensor, &bytes->size);
    bytes->values = bytes->data ? read_doubles(tensor) : NULL;
    bytes->count = kn_numel(tensor);
    bytes->dtype = kn_dtype_of(tensor);
    return bytes->values != NULL;
}

static bool run_backward(op_run *run, kn_tensor *output, kn_tensor *const *leaves, op_result *result)
{
    kn_tensor *gradient = op_output_gradient(run, kn_ndim(output), kn_shape(output), kn_dtype_of(output));
    if (!gradient || kn_backward_with(output, gradient, false) != KN_OK) {
        op_fail(run, "backward", "%s", kn_error_message());
        return false;
    }
    for (int i = 0; i < op_num_inputs(run->row); i++) {
        if (!op_input_differentiable(run->row, i))
            continue;
        kn_tensor *grad = kn_grad(leaves[i]);
        if (!grad) {
            op_fail(run, "backward", "input %d got no gradient", i);
            return false;
        }
        if (kn_dtype_of(grad) != kn_dtype_of(leaves[i]) || kn_numel(grad) != kn_numel(leaves[i])) {
            op_fail(run, "backward", "the gradient of input %d has another dtype or size than the input", i);
            return false;
        }
        if (!take_bytes(&result->gradients[i], grad)) {
            op_fail(run, "backward", "gradient of input %d: %s", i, kn_error_message());
            return false;
        }
    }
    return true;
}

static bool execute_in_scope(op_run *run, op_result *result)
{
    kn_tensor *leaves[OP_MAX_INPUTS];
    if (!op_make_leaves(run, leaves)) {
        op_fail(run, "inputs", "%s", kn_error_message());
        return false;
    }
    kn_tensor *output = op_build_from(run, leaves);
    if (!output || !take_bytes(&result->output, output)) {
        op_fail(run, "forward", "%s", kn_error_message());
        return false;
    }
    bool wants_gradient = false;
    for (int i = 0; i < op_num_inputs(run->row); i++)
        wants_gradient |= op_input_differentiable(run->row, i);
    if (!wants_gradient)
        return true;
    if (!kn_requires_grad(output)) {
        op_fail(run, "backward", "the output does not require a gradient although an input does");
        return false;
    }
    return run_backward(run, output, leaves, result);
}

/* --- on zeros ---------------------------------------------------------------------------------------------------- */

static bool take(uint64_t kernel, void *user)
{
    (void)kernel;
    (void)user;
    return true;
}

/* Kernels are compiled by running them on zeros instead of the buffers' values (rt/compile/compile.h), so each must
 * bear these: one that reads or writes outside its buffers ends the test by a signal. What fails for wrong values that
 * the host reads is no error. */
static void run_on_zeros(op_run *run)
{
    static kn_rehearsal rehearsal = {.takes = take};
    kn_tensor *leaves[OP_MAX_INPUTS];
    KN_SCOPE;
    kn_compile_is_strict = true;
    kn_rehearse(&rehearsal);
    kn_tensor *output = op_make_leaves(run, leaves) ? op_build_from(run, leaves) : NULL;
    if (output && kn_requires_grad(output))
        kn_backward_with(output, kn_ones_like(output), false);
    kn_synchronize(NULL);
    kn_rehearse(NULL);
    kn_error_clear();
}

bool op_execute(op_run *run, op_result *result, bool observe)
{
    memset(result, 0, sizeof *result);
    kn_error_clear();
    if (observe)
        run_on_zeros(run);
    kn_manual_seed(1);
    if (observe)
        op_observe_begin(run);
    int scope = kn_scope_begin();
    bool done = execute_in_scope(run, result);
    kn_scope_end(scope);
    if (observe)
        op_observe_end();
    return done;
}

void op_result_free(op_result *result)
{
    free(result->output.data);
    free(result->output.values);
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        free(result->gradients[i].data);
        free(result->gradients[i].values);
    }
    memset(result, 0, sizeof *result);
}
