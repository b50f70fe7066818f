/* op_captured.c - a row as a graph: captured and replayed, it gives the same bits as without. */
#include <stdlib.h>
#include <string.h>

#include "support/op_run.h"

static bool capture(op_run *run, kn_graph *graph, kn_tensor *const *leaves, kn_tensor *gradient, kn_tensor **output)
{
    kn_set_fusion(false); /* which makes further kernels: tests/graph/test_fusion.c */
    if (kn_graph_capture_begin(graph, NULL) != KN_OK)
        return false;
    *output = op_build_from(run, leaves);
    const bool built = *output && (!gradient || kn_backward_with(*output, gradient, false) == KN_OK);
    return kn_graph_capture_end(graph) == KN_OK && built;
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
    if (made && differentiable) {
        kn_tensor *like = op_build_from(run, leaves); /* for its shape */
        double *weights = like ? op_weights(run, kn_numel(like)) : NULL;
        if (weights)
            gradient = tensor_of_doubles(weights, kn_ndim(like), kn_shape(like), kn_dtype_of(like), false);
        free(weights);
    }
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
