// compute.h - calling Koine's operators for ATen's: results given by the caller, numbers on the CPU.
#pragma once

#include "../tensor.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

namespace koine
{

// Computes into `outputs`, or allocates those that are undefined. An output of another shape or dtype, as `out=` may
// be, is resized and receives a converted copy. `arguments` may be used again.
void compute(const kn_op *op, Tensors &arguments, const void *params, at::TensorList outputs);
inline void compute(const kn_op *op, Tensors &&arguments, const void *params, at::TensorList outputs)
{
    compute(op, arguments, params, outputs);
}

// The same of an operator that computes each element by itself: new results have the order of the operands' dimensions
// (order.h), which may have changed places in `arguments` afterwards.
void compute_elements(const kn_op *op, Tensors &arguments, const void *params, at::TensorList outputs);
inline void compute_elements(const kn_op *op, Tensors &&arguments, const void *params, at::TensorList outputs)
{
    compute_elements(op, arguments, params, outputs);
}

// PyTorch passes numbers as tensors of the CPU without dimensions.
inline bool is_number(const at::Tensor &tensor) { return tensor.dim() == 0 && tensor.is_cpu(); }
kn_scalar number_of(const at::Tensor &tensor);

// A tensor on the device, also of a number.
Tensor operand(const at::Tensor &tensor, c10::Device device);

// The first result as a new tensor; elements_of: as compute_elements.
at::Tensor result_of(const kn_op *op, Tensors &&arguments, const void *params = nullptr);
at::Tensor elements_of(const kn_op *op, Tensors &&arguments, const void *params = nullptr);

// Gives `out` the value, or what Koine made, an owned reference: resized, and converted to its dtype.
at::Tensor &set(at::Tensor &out, const at::Tensor &value);
at::Tensor &set(at::Tensor &out, kn_tensor *made);

// A Koine operator by its name, looked up once: `static const Op softmax("softmax");`.
struct Op {
    explicit Op(const char *name) : op(find_op(name)) {}
    operator const kn_op *() const { return op; }
    const kn_op *op;
};

} // namespace koine
