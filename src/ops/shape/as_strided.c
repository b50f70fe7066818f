/* ops/shape/as_strided.c - a regenerated view (autograd/view.h): elements of its base's memory. */
#include <koine/reduce.h>
#include <koine/shape.h>

#include "autograd/view.h"
#include "base/load.h"

/* Elements that occur several times in the view, as after kn_expand, sum their gradients. */
static kn_tensor *collapse(kn_tensor *gradient, kn_geometry *view)
{
    int dims[KN_MAX_DIMS], count = 0;

    for (int d = 0; d < view->ndim; d++)
        if (view->strides[d] == 0 && view->shape[d] != 1) {
            dims[count++] = d;
            view->shape[d] = 1;
        }
    return count > 0 ? kn_sum_dims(gradient, dims, count, true) : gradient;
}

static kn_status as_strided_backward(kn_grad_call *grad)
{
    kn_slice slice = *(const kn_slice *)grad->params;
    kn_tensor *whole, *part, *gradient = collapse(grad->grad_outputs[0], &slice.view);
    kn_status status;

    if (!gradient)
        return kn_error_status();
    KN_TRY(kn_slice_new(&slice, grad->input[0].dtype, grad->input[0].device, true, &whole, &part));
    status = kn_tensor_copy(part, gradient);
    kn_release(part);
    grad->grad_inputs[0] = kn_scope_adopt(whole);
    if (!grad->grad_inputs[0])
        return kn_error_status();
    return status;
}

const kn_op kn_as_strided_op = {.name = "as_strided",
                                .inputs = {"x"},
                                .record_size = sizeof(kn_slice),
                                .is_view = true,
                                .backward = as_strided_backward};

KN_AT_LOAD register_op(void) { kn_view_set_op(&kn_as_strided_op); }
