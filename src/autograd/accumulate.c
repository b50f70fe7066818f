/* autograd/accumulate.c - see autograd/accumulate.h. */
#include "autograd/accumulate.h"

#include "autograd/whole.h"
#include "tensor/scope.h"

kn_status kn_gradient_clone(kn_tensor **copy, kn_tensor *tensor)
{
    return kn_tensor_cast(copy, tensor, tensor->dtype, tensor->storage->device);
}

static const kn_op *sum_op;

void kn_gradient_set_sum(const kn_op *op) { sum_op = op; }

kn_tensor *kn_gradient_sum(kn_tensor *a, kn_tensor *b)
{
    return kn_op_apply(sum_op, (kn_tensor *[]){a, b}, 2, NULL, NULL);
}

/* *sum += gradient, as a recorded operation. */
static kn_status add_recorded(kn_tensor **sum, kn_tensor *gradient)
{
    int scope = kn_scope_begin_internal();
    if (!scope)
        return KN_ERR_MEMORY;
    kn_tensor *total = kn_retain(kn_gradient_sum(*sum, gradient));
    kn_scope_end(scope);
    if (!total)
        return kn_error_status();
    kn_release(*sum);
    *sum = total;
    return KN_OK;
}

kn_status kn_gradient_add(kn_tensor **sum, kn_tensor *gradient, bool recorded)
{
    kn_status status = KN_OK;
    if (!*sum) {
        *sum = gradient;
        return KN_OK;
    }
    if (recorded) {
        status = add_recorded(sum, gradient);
        kn_release(gradient);
        return status;
    }
    if (!kn_gradient_is_ours(*sum)) {
        kn_tensor *copy;
        status = kn_gradient_clone(&copy, *sum);
        if (status == KN_OK) {
            kn_release(*sum);
            *sum = copy;
        }
    }
    if (status == KN_OK)
        status = kn_tensor_accumulate(*sum, gradient);
    kn_release(gradient);
    return status;
}

static kn_status check_leaf(const kn_tensor *leaf, const kn_tensor *gradient)
{
    if (gradient->storage->device == leaf->storage->device && gradient->dtype == leaf->dtype)
        return KN_OK;
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    return kn_fail(KN_ERR_STATE,
                   "kn_backward: a leaf was moved or converted after it was used: it is %s, its gradient %s; move a "
                   "module before its forward pass",
                   kn_tensor_describe(a, sizeof a, leaf), kn_tensor_describe(b, sizeof b, gradient));
}

kn_status kn_leaf_accumulate(kn_node *node, bool recorded)
{
    kn_tensor *leaf = node->leaf, *gradient = node->gradients[0];
    node->gradients[0] = NULL;
    if (node->released) {
        kn_release(gradient);
        return kn_fail(KN_ERR_STATE, "a leaf of the recorded graph was changed in place and is no longer a leaf, so "
                                     "its gradient cannot be stored; kn_clone it before the change");
    }
    if (!leaf || !gradient) {
        kn_release(gradient);
        return KN_OK;
    }
    kn_status fits = check_leaf(leaf, gradient);
    if (fits != KN_OK) {
        kn_release(gradient);
        return fits;
    }
    if (recorded && leaf->autograd->grad)
        return kn_gradient_add(&leaf->autograd->grad, gradient, true);
    const bool is_kept = kn_gradient_is_ours(gradient) && kn_is_contiguous(gradient);
    if (!recorded && !leaf->autograd->grad && !is_kept) {
        kn_tensor *copy;
        kn_status status = kn_gradient_clone(&copy, gradient);
        kn_release(gradient);
        if (status != KN_OK)
            return status;
        gradient = copy;
    }
    if (leaf->autograd->grad) {
        kn_tensor_bump_version(leaf->autograd->grad);
        kn_status status = kn_tensor_accumulate(leaf->autograd->grad, gradient);
        kn_release(gradient);
        return status;
    }
    leaf->autograd->grad = gradient;
    return KN_OK;
}
