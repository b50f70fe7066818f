// ternary.cpp - elementwise operators of three tensors, bounds, filling. Others are in table.inc.
#include "compute.h"
#include "kernels.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/result_type.h>

#include <cmath>

namespace koine
{
namespace
{

// --- three operands --------------------------------------------------------------------------------------------------

template <class Run>
at::Tensor &three(const at::Tensor &a, const at::Tensor &b, const at::Tensor &c, at::Tensor &out, Run run)
{
    const at::ScalarType type = out.scalar_type();
    const auto ready = [&](const at::Tensor &x) { return !x.is_cpu() && x.scalar_type() == type; };
    if (C10_LIKELY(ready(a) && ready(b) && ready(c)))
        run(Tensors(a, b, c));
    else
        run(Tensors(a.to(out.device(), type), b.to(out.device(), type), c.to(out.device(), type)));
    return out;
}

template <bool divides>
at::Tensor &addc_out(const at::Tensor &a, const at::Tensor &b, const at::Tensor &c, const at::Scalar &value,
                     at::Tensor &out)
{
    static const Op op(divides ? "addcdiv" : "addcmul");
    const bool is_whole = at::isIntegralType(out.scalar_type(), false);
    if (is_whole && std::abs(value.toDouble()) > 0x1p53) // which float64 would round
        return out.copy_(b.mul(c).mul(value.toLong()).add(a));
    const kn_addcmul_params params = {is_whole ? static_cast<double>(value.toLong()) : value.toDouble()};
    return three(a, b, c, out, [&](Tensors &&operands) { compute_elements(op, operands, &params, out); });
}

at::Tensor &lerp_out(const at::Tensor &a, const at::Tensor &b, const at::Tensor &weight, at::Tensor &out)
{
    static const Op op("lerp");
    return three(a, b, weight, out, [&](Tensors &&operands) { compute_elements(op, operands, nullptr, out); });
}

at::Tensor &lerp_number_out(const at::Tensor &a, const at::Tensor &b, const at::Scalar &weight, at::Tensor &out)
{
    static const Op op("lerp_scalar");
    const kn_scalar_args args = {{kn_scalar_real(weight.toDouble())}};
    compute_elements(op, Tensors(a, b), &args, out);
    return out;
}

at::Tensor &where_out(const at::Tensor &condition, const at::Tensor &a, const at::Tensor &b, at::Tensor &out)
{
    static const Op op("where");
    for (const at::Tensor *x : {&condition, &a, &b})
        at::assert_no_partial_overlap(out, *x);
    const at::ScalarType common = at::result_type(a, b);
    const c10::Device device = out.device();
    compute_elements(op, Tensors(condition.to(device), a.to(device, common), b.to(device, common)), nullptr, out);
    return out;
}

at::Tensor where(const at::Tensor &condition, const at::Tensor &a, const at::Tensor &b)
{
    const c10::Device device = !condition.is_cpu() ? condition.device() : !a.is_cpu() ? a.device() : b.device();
    at::Tensor out = at::empty({0}, at::TensorOptions().dtype(at::result_type(a, b)).device(device));
    return where_out(condition, a, b, out);
}

// --- bounds ----------------------------------------------------------------------------------------------------------

// Koine refuses NaN, with which PyTorch fills the result.
at::Tensor &clamp_out(const at::Tensor &x, const std::optional<at::Scalar> &min, const std::optional<at::Scalar> &max,
                      at::Tensor &out)
{
    static const Op op("clamp");
    kn_scalar_args args;
    kn_op_params_init(op, &args);
    if (min)
        args.values[0] = scalar_of(*min);
    if (max)
        args.values[1] = scalar_of(*max);
    if ((min && args.values[0].real != args.values[0].real) || (max && args.values[1].real != args.values[1].real))
        return out.fill_(NAN);
    const bool converts = x.scalar_type() != out.scalar_type() && !at::isFloatingType(x.scalar_type());
    compute_elements(op, Tensors(converts ? x.to(out.scalar_type()) : x), &args, out);
    return out;
}

at::Tensor &clamp_min_out(const at::Tensor &x, const at::Scalar &min, at::Tensor &out)
{
    return clamp_out(x, min, std::nullopt, out);
}

at::Tensor &clamp_max_out(const at::Tensor &x, const at::Scalar &max, at::Tensor &out)
{
    return clamp_out(x, std::nullopt, max, out);
}

at::Tensor &clamp_min_tensor_out(const at::Tensor &x, const at::Tensor &min, at::Tensor &out)
{
    return at::maximum_out(out, x, min);
}

at::Tensor &clamp_max_tensor_out(const at::Tensor &x, const at::Tensor &max, at::Tensor &out)
{
    return at::minimum_out(out, x, max);
}

at::Tensor &clamp_tensor_out(const at::Tensor &x, const std::optional<at::Tensor> &min,
                             const std::optional<at::Tensor> &max, at::Tensor &out)
{
    const bool has_min = min && min->defined(), has_max = max && max->defined();
    if (!has_max)
        return clamp_min_tensor_out(x, *min, out);
    return clamp_max_tensor_out(has_min ? at::maximum(x, *min) : x, *max, out);
}

// --- filling ---------------------------------------------------------------------------------------------------------

at::Tensor &fill_(at::Tensor &x, const at::Scalar &value)
{
    check(kn_fill_with_(as_koine(x).get(), scalar_of(value)));
    return x;
}

at::Tensor &fill_tensor_(at::Tensor &x, const at::Tensor &value)
{
    TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
                " dimensions.");
    if (value.is_cpu())
        return fill_(x, value.item());
    return x.copy_(value.expand_as(x));
}

at::Tensor &zero_(at::Tensor &x)
{
    check(kn_zero_(as_koine(x).get()));
    return x;
}

} // namespace

KOINE_KERNELS(m)
{
    m.impl("addcmul.out", addc_out<false>);
    m.impl("addcdiv.out", addc_out<true>);
    m.impl("lerp.Tensor_out", lerp_out);
    m.impl("lerp.Scalar_out", lerp_number_out);
    m.impl("where.self", where);
    m.impl("where.self_out", where_out);

    m.impl("clamp.out", clamp_out);
    m.impl("clamp_min.out", clamp_min_out);
    m.impl("clamp_max.out", clamp_max_out);
    m.impl("clamp.Tensor_out", clamp_tensor_out);
    m.impl("clamp_min.Tensor_out", clamp_min_tensor_out);
    m.impl("clamp_max.Tensor_out", clamp_max_tensor_out);

    m.impl("fill_.Scalar", fill_);
    m.impl("fill_.Tensor", fill_tensor_);
    m.impl("zero_", zero_);
}

} // namespace koine
