// norm.cpp - normalisation by batch, layer and group.
#include "compute.h"
#include "kernels.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <koine/norm.h>

namespace koine
{
namespace
{

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

bool is_given(const std::optional<at::Tensor> &tensor) { return tensor && tensor->defined(); }

// Results that are not wanted are not computed.
void want(Tensors &results, at::ArrayRef<bool> wanted)
{
    for (bool one : wanted)
        one ? results.add(Tensor()) : results.skip();
}

// The first of the results has the shape of x. Images whose channels are next to each other in memory yield such.
at::Tensor want(Tensors &results, at::ArrayRef<bool> wanted, const at::Tensor &x)
{
    const at::MemoryFormat format = x.suggest_memory_format();
    if (C10_LIKELY(format == at::MemoryFormat::Contiguous) || !wanted[0]) {
        want(results, wanted);
        return {};
    }
    at::Tensor given = at::empty_like(x, format);
    results.add(given);
    want(results, wanted.slice(1));
    return given;
}

at::Tensor take(Tensors &results, int index, bool wanted, const at::Tensor &given = {})
{
    return given.defined() ? given : wanted ? from_koine(results.take(index)) : at::Tensor();
}

// --- by batch --------------------------------------------------------------------------------------------------------

kn_batch_norm_args batch_norm_args(const kn_op *op, bool training, double momentum, double eps)
{
    kn_batch_norm_args args = defaults<kn_batch_norm_args>(op);
    args.training = training;
    args.momentum = momentum;
    args.eps = eps;
    return args;
}

// PyTorch evaluates with empty statistics.
Three batch_norm(const at::Tensor &x, const std::optional<at::Tensor> &weight, const std::optional<at::Tensor> &bias,
                 const std::optional<at::Tensor> &mean, const std::optional<at::Tensor> &var, bool training,
                 double momentum, double eps)
{
    static const Op op("batch_norm");
    const bool uses_batch = training || !is_given(mean);
    const kn_batch_norm_args args = batch_norm_args(op, uses_batch, momentum, eps);
    Tensors results;
    at::Tensor y = want(results, {true, uses_batch, uses_batch}, x);
    call(op, Tensors(x, weight, bias, mean, var), &args, results);
    const auto statistic = [&](int i) {
        return uses_batch ? from_koine(results.take(i)) : empty({0}, x.scalar_type(), x.device());
    };
    y = take(results, 0, true, y);
    return {std::move(y), statistic(1), statistic(2)};
}

Three batch_norm_legit(const at::Tensor &x, const std::optional<at::Tensor> &weight,
                       const std::optional<at::Tensor> &bias, at::Tensor &mean, at::Tensor &var, bool training,
                       double momentum, double eps)
{
    return batch_norm(x, weight, bias, mean, var, training, momentum, eps);
}

Three batch_norm_without_running(const at::Tensor &x, const std::optional<at::Tensor> &weight,
                                 const std::optional<at::Tensor> &bias, bool training, double momentum, double eps)
{
    return batch_norm(x, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

Three batch_norm_backward(const at::Tensor &grad, const at::Tensor &x, const std::optional<at::Tensor> &weight,
                          const std::optional<at::Tensor> &mean, const std::optional<at::Tensor> &var,
                          const std::optional<at::Tensor> &saved_mean, const std::optional<at::Tensor> &saved_rstd,
                          bool training, double eps, std::array<bool, 3> wanted)
{
    static const Op op("batch_norm_backward");
    const bool uses_batch = training || !is_given(mean);
    const kn_batch_norm_args args = batch_norm_args(op, uses_batch, 0.1, eps);
    const at::IntArrayRef channels(x.sizes().data() + 1, 1);
    const auto parameter = [&](bool one) {
        return is_given(weight) ? *weight : one ? empty(channels, x.scalar_type(), x.device()) : at::Tensor();
    };
    Tensors results;
    const at::Tensor of_x = want(results, wanted, x);
    at::Tensor scale = is_given(weight) ? *weight : at::Tensor();
    // Running estimates are for evaluation; in training the forward pass has updated them.
    const std::optional<at::Tensor> none;
    const bool has_saved = uses_batch && is_given(saved_mean) && is_given(saved_rstd);
    call(op,
         Tensors(grad, x, scale, parameter(wanted[2]), uses_batch ? none : mean, uses_batch ? none : var,
                 has_saved ? saved_mean : none, has_saved ? saved_rstd : none),
         &args, results);
    return {take(results, 0, wanted[0], of_x), take(results, 1, wanted[1] && scale.defined()),
            take(results, 2, wanted[2])};
}

// --- by layer --------------------------------------------------------------------------------------------------------

kn_layer_norm_args layer_norm_args(const kn_op *op, at::IntArrayRef shape, double eps)
{
    kn_layer_norm_args args = defaults<kn_layer_norm_args>(op);
    args.shape = ints_of(shape);
    args.eps = eps;
    return args;
}

// Statistics have the shape of x, with 1 for the dimensions of `shape`.
at::Tensor as_statistic(at::Tensor statistic, const at::Tensor &x, at::IntArrayRef shape)
{
    at::DimVector sizes(x.sizes());
    for (size_t i = sizes.size() - shape.size(); i < sizes.size(); i++)
        sizes[i] = 1;
    return statistic.view(sizes);
}

Three layer_norm(const at::Tensor &x, at::IntArrayRef shape, const std::optional<at::Tensor> &weight,
                 const std::optional<at::Tensor> &bias, double eps)
{
    static const Op op("layer_norm");
    const kn_layer_norm_args args = layer_norm_args(op, shape, eps);
    Tensors results;
    want(results, {true, true, true});
    call(op, Tensors(x, weight, bias), &args, results);
    at::Tensor y = from_koine(results.take(0));
    return {std::move(y), as_statistic(from_koine(results.take(1)), x, shape),
            as_statistic(from_koine(results.take(2)), x, shape)};
}

Three layer_norm_backward(const at::Tensor &grad, const at::Tensor &x, at::IntArrayRef shape, const at::Tensor &mean,
                          const at::Tensor &rstd, const std::optional<at::Tensor> &weight,
                          const std::optional<at::Tensor> &bias, std::array<bool, 3> wanted)
{
    static const Op op("layer_norm_backward");
    const kn_layer_norm_args args = layer_norm_args(op, shape, 0); // rstd is given
    Tensors results;
    want(results, wanted);
    call(op, Tensors(grad, x, weight, bias, mean, rstd), &args, results);
    return {take(results, 0, wanted[0]), take(results, 1, wanted[1]), take(results, 2, wanted[2])};
}

// --- by group --------------------------------------------------------------------------------------------------------

kn_group_norm_args group_norm_args(const kn_op *op, int64_t groups, double eps)
{
    kn_group_norm_args args = defaults<kn_group_norm_args>(op);
    args.num_groups = groups;
    args.eps = eps;
    return args;
}

Three group_norm(const at::Tensor &x, const std::optional<at::Tensor> &weight, const std::optional<at::Tensor> &bias,
                 int64_t, int64_t, int64_t, int64_t groups, double eps)
{
    static const Op op("group_norm");
    const kn_group_norm_args args = group_norm_args(op, groups, eps);
    Tensors results;
    at::Tensor y = want(results, {true, true, true}, x);
    call(op, Tensors(x, weight, bias), &args, results);
    y = take(results, 0, true, y);
    at::Tensor mean = from_koine(results.take(1));
    return {std::move(y), std::move(mean), from_koine(results.take(2))};
}

Three group_norm_backward(const at::Tensor &grad, const at::Tensor &x, const at::Tensor &mean, const at::Tensor &rstd,
                          const std::optional<at::Tensor> &weight, int64_t, int64_t channels, int64_t, int64_t groups,
                          std::array<bool, 3> wanted)
{
    static const Op op("group_norm_backward");
    const kn_group_norm_args args = group_norm_args(op, groups, 0); // rstd is given
    // Of the bias the pass needs only the shape.
    const at::Tensor bias = wanted[2] ? empty({channels}, x.scalar_type(), x.device()) : at::Tensor();
    Tensors results;
    const at::Tensor of_x = want(results, wanted, x);
    call(op, Tensors(grad, x, weight, bias, mean, rstd), &args, results);
    return {take(results, 0, wanted[0], of_x), take(results, 1, wanted[1]), take(results, 2, wanted[2])};
}

} // namespace

KOINE_KERNELS(m)
{
    m.impl("native_batch_norm", batch_norm);
    m.impl("_native_batch_norm_legit", batch_norm_legit);
    m.impl("_native_batch_norm_legit.no_stats", batch_norm_without_running);
    m.impl("native_batch_norm_backward", batch_norm_backward);
    m.impl("native_layer_norm", layer_norm);
    m.impl("native_layer_norm_backward", layer_norm_backward);
    m.impl("native_group_norm", group_norm);
    m.impl("native_group_norm_backward", group_norm_backward);
}

} // namespace koine
