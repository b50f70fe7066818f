// order.h - the order of dimensions in memory that PyTorch gives new results of elementwise operators: that of their
// operands, where its TensorIterator keeps it. torch.compile relies on it.
#pragma once

#include "../tensor.h"

#include <ATen/DimVector.h>

namespace koine
{

// Of each operand the strides among the result's dimensions: 0 where it is broadcast, or has no such dimension.
using Strides = c10::SmallVector<at::DimVector, 4>;

// The strides of a new result of these sizes.
at::DimVector strides_of_result(at::IntArrayRef sizes, const Strides &operands);

// Results are contiguous in the order of the operands' dimensions:
//
//     const Order order(operands); // their dimensions change places
//     check(kn_op_call(op, operands.data(), operands.size(), params, &result, 1));
//     return order.restore(from_koine(result));
class Order
{
  public:
    Order() = default; // changes nothing
    explicit Order(Tensors &operands);

    // The same tensor, with its dimensions in their places. One of fewer dimensions, as a loss is, stays as it is.
    at::Tensor restore(at::Tensor result) const;

  private:
    at::DimVector dims; // from the outermost in memory to the innermost; empty: in order
};

} // namespace koine
