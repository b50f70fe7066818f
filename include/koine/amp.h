/* koine/amp.h - automatic mixed precision (torch.amp.autocast): a region in which matrix products and convolutions
 * compute on float16 or bfloat16 while the parameters stay float32.
 *
 *     {
 *         KN_AUTOCAST(KN_BF16);
 *         loss = kn_cross_entropy(kn_forward(net, x), y);
 *     }
 *     kn_backward(loss);                           // outside, as in PyTorch
 *
 * In the region an operator's floating inputs are converted first, by PyTorch's lists: to the region's dtype for
 * matrix products, convolutions, attention and recurrent layers; to float32 for what needs the range or the precision
 * (exponentials, logarithms, powers, sums, norms, softmax, losses); to the widest dtype among the inputs where several
 * tensors are combined (cat, stack, addcmul). All others take what they get. float64 is never converted. Conversions
 * are recorded, so gradients have the parameters' dtype. A parameter is converted once per region.
 *
 * float16's range is small: scale the loss, so that its gradients do not underflow. bfloat16 needs no scaling.
 *
 * Per thread. Nothing is converted inside an operator's own computation or in a backward pass. */
#ifndef KOINE_AMP_H
#define KOINE_AMP_H

#include <koine/common.h>
#include <koine/dtype.h>
#include <koine/status.h>

KN_BEGIN_DECLS

/* The dtype of the region that the thread is in; KN_DTYPE_DEFAULT outside. */
KN_API kn_dtype kn_autocast_dtype(void);

/* Autocast to the end of the enclosing block (a guard: koine/common.h). KN_AUTOCAST(KN_DTYPE_DEFAULT) turns it off
 * there. Any dtype but float16 and bfloat16 is KN_ERR_ARGUMENT, and changes nothing. */
#define KN_AUTOCAST(dtype) KN_GUARD(kn_dtype, kn_autocast_guard_, kn_autocast_enter(dtype), kn_autocast_guard_leave)

/* The guard's functions: `enter` returns the dtype before, which `leave` restores. Every `enter` needs a `leave`, also
 * after an error. */
KN_API kn_dtype kn_autocast_enter(kn_dtype dtype);
KN_API void kn_autocast_leave(kn_dtype before);

static inline void kn_autocast_guard_leave(kn_dtype *before) { kn_autocast_leave(*before); }

KN_END_DECLS

#endif
