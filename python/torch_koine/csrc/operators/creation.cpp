// creation.cpp - sequences, identity matrices, indices of triangles, joining.
#include "compute.h"
#include "kernels.h"

#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/logspace.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/tril_indices.h>
#include <ATen/ops/triu_indices.h>
#include <koine/create.h>

#include <cmath>

namespace koine
{
namespace
{

kn_tensor_options options_of(const at::Tensor &out)
{
    kn_tensor_options options = kn_tensor_options_init();
    options.dtype = dtype_of(out.scalar_type());
    options.device = device_of(out.device());
    return options;
}

// Whole numbers that float64 would round: the places 0, 1, ... times the step.
at::Tensor &arange_of_large(int64_t start, int64_t end, int64_t step, at::Tensor &out)
{
    const auto a = static_cast<uint64_t>(start), b = static_cast<uint64_t>(end), by = static_cast<uint64_t>(step);
    const uint64_t distance = step > 0 ? b - a : a - b, stride = step > 0 ? by : 0 - by;
    const uint64_t count = distance / stride + (distance % stride != 0);
    const kn_tensor_options options = options_of(out);
    const at::Tensor places = from_koine(kn_arange_with(0, static_cast<double>(count), 1, &options));
    return set(out, places.mul(step).add(start));
}

at::Tensor &arange_out(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step, at::Tensor &out)
{
    const double from = start.toDouble(), to = end.toDouble(), by = step.toDouble();
    TORCH_CHECK(by != 0, "step must be nonzero");
    TORCH_CHECK(std::isfinite(from) && std::isfinite(to), "unsupported range: ", from, " -> ", to);
    TORCH_CHECK((by > 0) == (to >= from) || to == from, "upper bound and lower bound inconsistent with step sign");
    const bool are_whole =
        out.scalar_type() == at::kLong && start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true);
    if (are_whole && (std::abs(from) >= 0x1p53 || std::abs(to) >= 0x1p53))
        return arange_of_large(start.toLong(), end.toLong(), step.toLong(), out);
    const kn_tensor_options options = options_of(out);
    return set(out, kn_arange_with(from, to, by, &options));
}

at::Tensor &range_out(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step, at::Tensor &out)
{
    const double by = step.toDouble();
    const int64_t count = static_cast<int64_t>(std::floor((end.toDouble() - start.toDouble()) / by)) + 1;
    const kn_tensor_options options = options_of(out);
    return set(out, kn_arange_with(start.toDouble(), start.toDouble() + by * (count - 0.5), by, &options));
}

at::TensorOptions on_cpu(const at::Tensor &out) { return out.options().device(at::kCPU); }

// Whole numbers by PyTorch's code on the host, copied once: it converts the bounds first, and has powers in float32.
at::Tensor &linspace_out(const at::Scalar &start, const at::Scalar &end, int64_t steps, at::Tensor &out)
{
    if (at::isIntegralType(out.scalar_type(), true))
        return set(out, at::linspace(start, end, steps, on_cpu(out)));
    const kn_tensor_options options = options_of(out);
    return set(out, kn_linspace_with(start.toDouble(), end.toDouble(), steps, &options));
}

at::Tensor &logspace_out(const at::Scalar &start, const at::Scalar &end, int64_t steps, double base, at::Tensor &out)
{
    if (at::isIntegralType(out.scalar_type(), true))
        return set(out, at::logspace(start, end, steps, base, on_cpu(out)));
    const kn_tensor_options options = options_of(out);
    return set(out, kn_logspace_with(start.toDouble(), end.toDouble(), steps, base, &options));
}

at::Tensor &eye_out(int64_t n, int64_t m, at::Tensor &out)
{
    at::native::resize_output(out, {n, m});
    out.zero_();
    if (n > 0 && m > 0)
        out.diagonal().fill_(1);
    return out;
}

// Computed on the host: their number of elements is small, and copied once.
template <at::Tensor (*function)(int64_t, int64_t, int64_t, at::TensorOptions)>
at::Tensor indices(int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype,
                   std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>)
{
    const at::TensorOptions options = at::TensorOptions().dtype(dtype.value_or(at::kLong)).device(at::kCPU);
    return function(row, col, offset, options).to(device.value_or(at::Device(at::kPrivateUse1)));
}

at::Tensor &cat_out(const at::ITensorListRef &tensors, int64_t dim, at::Tensor &out)
{
    static const Op op("cat");
    const at::ScalarType common = at::native::result_type(tensors);
    Tensors parts;
    for (const at::Tensor &tensor : tensors) {
        const bool is_legacy_empty = tensor.dim() == 1 && tensor.size(0) == 0;
        if (!is_legacy_empty)
            parts.add(tensor.scalar_type() == common ? as_koine(tensor) : as_koine(tensor.to(common)));
    }
    if (parts.size() == 0)
        return at::native::resize_output(out, {0}), out;
    const kn_dim_args args = {static_cast<int>(dim)};
    compute(op, parts, &args, out);
    return out;
}

} // namespace

KOINE_KERNELS(m)
{
    m.impl("arange.start_out", arange_out);
    m.impl("range.out", range_out);
    m.impl("linspace.out", linspace_out);
    m.impl("logspace.out", logspace_out);
    m.impl("eye.m_out", eye_out);
    m.impl("tril_indices", indices<at::tril_indices>);
    m.impl("triu_indices", indices<at::triu_indices>);
    m.impl("cat.out", cat_out);
}

} // namespace koine
