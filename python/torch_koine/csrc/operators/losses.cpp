// losses.cpp - losses whose arguments or results differ from Koine's. Others are in table.inc.
#include "compute.h"
#include "kernels.h"

#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/zeros.h>
#include <koine/loss.h>

namespace koine
{
namespace
{

kn_reduction reduction_of(int64_t reduction)
{
    return reduction == 0 ? KN_REDUCTION_NONE : reduction == 1 ? KN_REDUCTION_MEAN : KN_REDUCTION_SUM;
}

// The sum of the weights of the targets that count.
at::Tensor total_weight(const at::Tensor &x, const at::Tensor &target, const std::optional<at::Tensor> &weight,
                        int64_t ignored)
{
    const at::Tensor counts = target.ne(ignored);
    if (!weight || !weight->defined())
        return counts.sum(x.scalar_type());
    const at::Tensor known = target.clamp(0, weight->size(0) - 1);
    return weight->index_select(0, known.reshape(-1)).mul(counts.reshape(-1)).sum();
}

std::tuple<at::Tensor, at::Tensor> nll_loss(const at::Tensor &x, const at::Tensor &target,
                                            const std::optional<at::Tensor> &weight, int64_t reduction, int64_t ignored)
{
    static const Op op("nll_loss");
    kn_class_loss_args args = defaults<kn_class_loss_args>(op);
    args.ignore_index = ignored;
    args.reduction = reduction_of(reduction);
    at::Tensor total =
        reduction == 0 ? empty({}, x.scalar_type(), x.device()).zero_() : total_weight(x, target, weight, ignored);
    return {call(op, Tensors(x, target, weight), &args), total};
}

std::tuple<at::Tensor &, at::Tensor &> nll_loss_out(const at::Tensor &x, const at::Tensor &target,
                                                    const std::optional<at::Tensor> &weight, int64_t reduction,
                                                    int64_t ignored, at::Tensor &out, at::Tensor &total)
{
    const auto [loss, sum] = nll_loss(x, target, weight, reduction, ignored);
    out.resize_(loss.sizes()).copy_(loss);
    total.resize_(sum.sizes()).copy_(sum);
    return {out, total};
}

// --- gradients of differences ----------------------------------------------------------------------------------------

// Second derivatives are sums over all elements by their formulas, but have a gradient for each of them; a mean's are
// divided by their number.
template <class Args>
at::Tensor &difference_backward(const kn_op *op, Args args, const at::Tensor &grad, const at::Tensor &x,
                                const at::Tensor &target, int64_t reduction, at::Tensor &out)
{
    const bool is_of_each = grad.dim() > 0;
    args.reduction = reduction_of(is_of_each ? 0 : reduction);
    const bool is_mean_of_each = is_of_each && reduction == 1;
    compute(op, Tensors(is_mean_of_each ? grad.div(grad.numel()) : grad, x, target), &args, out);
    return out;
}

at::Tensor &mse_loss_backward_out(const at::Tensor &grad, const at::Tensor &x, const at::Tensor &target,
                                  int64_t reduction, at::Tensor &out)
{
    static const Op op("mse_loss_backward");
    return difference_backward(op, defaults<kn_reduction_args>(op), grad, x, target, reduction, out);
}

at::Tensor mse_loss_backward(const at::Tensor &grad, const at::Tensor &x, const at::Tensor &target, int64_t reduction)
{
    at::Tensor out = at::empty({0}, x.options());
    return mse_loss_backward_out(grad, x, target, reduction, out);
}

at::Tensor &smooth_l1_loss_backward_out(const at::Tensor &grad, const at::Tensor &x, const at::Tensor &target,
                                        int64_t reduction, double beta, at::Tensor &out)
{
    static const Op op("smooth_l1_loss_backward");
    kn_smooth_l1_loss_params params = defaults<kn_smooth_l1_loss_params>(op);
    params.beta = beta;
    return difference_backward(op, params, grad, x, target, reduction, out);
}

} // namespace

KOINE_KERNELS(m)
{
    m.impl("mse_loss_backward", mse_loss_backward);
    m.impl("mse_loss_backward.grad_input", mse_loss_backward_out);
    m.impl("smooth_l1_loss_backward.grad_input", smooth_l1_loss_backward_out);
    m.impl("nll_loss_forward", nll_loss);
    m.impl("nll_loss_forward.output", nll_loss_out);
    m.impl("nll_loss2d_forward", nll_loss);
    m.impl("nll_loss2d_forward.output", nll_loss_out);
}

} // namespace koine
