// amp.cpp - torch.amp.GradScaler.
#include "tensor.h"

#include <koine/fused_optim.h>

#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

namespace koine
{

static void unscale_(at::TensorList gradients, at::Tensor &found_inf, const at::Tensor &inv_scale)
{
    Tensors list{gradients};
    check(kn_fused_unscale(list.data(), list.size(), as_koine(inv_scale).get(), as_koine(found_inf).get()));
}

// Nothing waits for the device: both outcomes are computed.
static at::Tensor &update_scale_(at::Tensor &scale, at::Tensor &growth_tracker, const at::Tensor &found_inf,
                                 double growth_factor, double backoff_factor, int64_t growth_interval)
{
    const at::Tensor found = found_inf.ne(0);
    const at::Tensor steps = growth_tracker.add(1).masked_fill(found, 0);
    const at::Tensor grown = scale.mul(growth_factor);
    const at::Tensor grows = steps.eq(growth_interval);
    growth_tracker.copy_(steps.masked_fill(grows, 0));
    // A scale stays finite.
    const at::Tensor unless_found = at::where(grows.logical_and(at::isfinite(grown)), grown, scale);
    scale.copy_(at::where(found, scale.mul(backoff_factor), unless_found));
    return scale;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("_amp_foreach_non_finite_check_and_unscale_", unscale_);
    m.impl("_amp_update_scale_", update_scale_);
}

} // namespace koine
