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

} // namespace

KOINE_KERNELS(m)
{
    m.impl("nll_loss_forward", nll_loss);
    m.impl("nll_loss_forward.output", nll_loss_out);
    m.impl("nll_loss2d_forward", nll_loss);
    m.impl("nll_loss2d_forward.output", nll_loss_out);
}

} // namespace koine
