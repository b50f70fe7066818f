/* op_captured.c - a row as a graph: captured and replayed, it gives the same bits as without. */
#include <stdlib.h>
#include <string.h>

#include "support/op_run.h"

/* `gradient`: of the output's elements, in a row; NULL: no backward pass. Without fusion, which would make further
 * kernels: tests/graph/test_fusion.c. */
static bool capture(op_run *run, kn_graph *graph, kn_tensor *const *leaves, kn_tensor *gradient, kn_tensor **output)
{
    const bool fusion = kn_get_fusion();
    if (kn_graph_capture_begin(graph, NULL) != KN_OK)
        return false;
    kn_set_fusion(false);
    kn_tensor *y = *output = op_build_from(run, leaves);
    bool done = y != NULL;
    if (done && gradient)
        done = kn_backward_with(y, kn_reshape(gradient, kn_ndim(y), kn_shape(y)), false) == KN_OK;
    kn_set_fusion(fusion);
    return kn_graph_capture_end(graph) == KN_OK && done;
}

static void compare(op_run *run, const op_bytes *right, const kn_tensor *tensor, const char *what, int index)
{
    size_t size = 0;
    void *data = tensor ? read_bytes(tensor, &size) : NULL;
    if (!data || size != right->size || memcmp(data, right->data, size) != 0)
        op_fail(run, "captured", "%s %d of a replay differs bitwise", what, index);
    free(data);
}

static void check(op_run *run, const op_result *result, kn_graph *graph)
{
    kn_tensor *leaves[OP_MAX_INPUTS], *output = NULL, *gradient = NULL;
    const bool made = op_make_leaves(run, leaves);
    bool differentiable = false;
    for (int i = 0; i < OP_MAX_INPUTS; i++)
        differentiable |= result->gradients[i].data != NULL;
    if (differentiable)
        gradient = op_output_gradient(run, 1, &result->output.count, result->output.dtype);
    if (!made || (differentiable && !gradient) || !capture(run, graph, leaves, gradient, &output)) {
        op_fail(run, "captured", "%s", kn_error_message());
        return;
    }
    kn_manual_seed(1);
    if (kn_graph_replay(graph) != KN_OK) {
        op_fail(run, "captured", "%s", kn_error_message());
        return;
    }
    compare(run, &result->output, output, "output", 0);
    for (int i = 0; i < OP_MAX_INPUTS; i++)
        if (result->gradients[i].data)
            compare(run, &result->gradients[i], kn_grad(leaves[i]), "the gradient of input", i);
}

void op_check_captured(op_run *run, const op_result *result)
{
    kn_graph *graph = kn_graph_new();
    if (graph) {
        KN_SCOPE;
        check(run, result, graph);
    }
    kn_graph_free(graph);
}
