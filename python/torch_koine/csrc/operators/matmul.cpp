// matmul.cpp - products of matrices. Those without a bias are in table.inc.
#include "compute.h"
#include "kernels.h"

#include <koine/matmul.h>

namespace koine
{
namespace
{

// beta bias + alpha a b; that of a linear layer, with a vector, is one launch.
at::Tensor &addmm_out(const at::Tensor &bias, const at::Tensor &a, const at::Tensor &b, const at::Scalar &beta,
                      const at::Scalar &alpha, at::Tensor &out)
{
    static const Op linear("linear"), addmm("addmm");
    if (bias.dim() == 1 && bias.size(0) == b.size(1) && beta.equal(1) && alpha.equal(1)) {
        compute(linear, Tensors(a, b.t(), bias), nullptr, out);
        return out;
    }
    const kn_addmm_params params = {beta.toDouble(), alpha.toDouble()};
    compute(addmm, Tensors(bias, a, b), &params, out);
    return out;
}

} // namespace

KOINE_KERNELS(m) { m.impl("addmm.out", addmm_out); }

} // namespace koine
