// norm.cpp - normalisation by batch, layer and group.
#include "compute.h"

#include <ATen/ops/empty.h>
#include <koine/norm.h>
#include <torch/library.h>

#include <mutex>
#include <unordered_map>

namespace koine
{
namespace
{

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

bool is_given(const std::optional<at::Tensor> &tensor) { return tensor && tensor->defined(); }

// Gradients that are not wanted are not computed.
void want(Tensors &results, at::ArrayRef<bool> wanted)
{
    for (bool one : wanted)
        one ? results.add(Tensor()) : results.skip();
}

at::Tensor take(Tensors &results, int index, bool wanted)
{
    return wanted ? from_koine(results.take(index)) : at::Tensor();
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
    results.add(Tensor());
    for (int i = 0; i < 2; i++)
        uses_batch ? results.add(Tensor()) : results.skip();
    call(op, Tensors(x, weight, bias, mean, var), &args, results);
    const auto statistic = [&](int i) {
        return uses_batch ? from_koine(results.take(i)) : empty({0}, x.scalar_type(), x.device());
    };
    at::Tensor y = from_koine(results.take(0));
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

// The pass computes the statistics again, as it needs them in more than float32's precision.
Three batch_norm_backward(const at::Tensor &grad, const at::Tensor &x, const std::optional<at::Tensor> &weight,
                          const std::optional<at::Tensor> &mean, const std::optional<at::Tensor> &var,
                          const std::optional<at::Tensor> &, const std::optional<at::Tensor> &, bool training,
                          double eps, std::array<bool, 3> wanted)
{
    static const Op op("batch_norm_backward");
    const kn_batch_norm_args args = batch_norm_args(op, training || !is_given(mean), 0.1, eps);
    const at::IntArrayRef channels(x.sizes().data() + 1, 1);
    const auto parameter = [&](bool one) {
        return is_given(weight) ? *weight : one ? empty(channels, x.scalar_type(), x.device()) : at::Tensor();
    };
    Tensors results;
    want(results, wanted);
    at::Tensor scale = is_given(weight) ? *weight : at::Tensor();
    // In training the operator would move the running estimates once more.
    const std::optional<at::Tensor> none;
    call(op, Tensors(grad, x, scale, parameter(wanted[2]), training ? none : mean, training ? none : var), &args,
         results);
    return {take(results, 0, wanted[0]), take(results, 1, wanted[1] && scale.defined()), take(results, 2, wanted[2])};
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

// PyTorch's backward is given mean and rstd, but not eps, with which Koine's computes them again. So forward notes it
// for the memory of rstd, as long as that exists.
class KnownEps
{
  public:
    void remember(const at::Tensor &rstd, double eps)
    {
        const std::lock_guard<std::mutex> hold(lock);
        if (values.size() >= limit)
            forget();
        c10::StorageImpl *const memory = rstd.storage().unsafeGetStorageImpl();
        values.insert_or_assign(memory, std::make_pair(weak(rstd), eps));
    }

    std::optional<double> find(const at::Tensor &rstd)
    {
        const std::lock_guard<std::mutex> hold(lock);
        const auto at = rstd.defined() ? values.find(rstd.storage().unsafeGetStorageImpl()) : values.end();
        return at != values.end() && !at->second.first.expired() ? std::optional<double>(at->second.second)
                                                                 : std::nullopt;
    }

  private:
    using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
    static Weak weak(const at::Tensor &tensor) { return Weak(tensor.storage().getWeakStorageImpl()); }

    void forget()
    {
        for (auto at = values.begin(); at != values.end();)
            at = at->second.first.expired() ? values.erase(at) : std::next(at);
        limit = std::max<size_t>(64, 2 * values.size());
    }

    std::mutex lock;
    std::unordered_map<c10::StorageImpl *, std::pair<Weak, double>> values;
    size_t limit = 64;
};

KnownEps &known_eps()
{
    static KnownEps *const known = new KnownEps; // tensors may outlive static objects
    return *known;
}

// With c = (x - mean) rstd and d = grad weight, over `dims`: rstd (d - mean d - c mean d c).
at::Tensor by_statistics(const at::Tensor &d, const at::Tensor &c, const at::Tensor &rstd, at::IntArrayRef dims)
{
    return d.sub(d.mean(dims, true)).sub(c.mul(d.mul(c).mean(dims, true))).mul(rstd);
}

Three layer_norm(const at::Tensor &x, at::IntArrayRef shape, const std::optional<at::Tensor> &weight,
                 const std::optional<at::Tensor> &bias, double eps)
{
    static const Op op("layer_norm");
    const kn_layer_norm_args args = layer_norm_args(op, shape, eps);
    Tensors results;
    for (int i = 0; i < 3; i++)
        results.add(Tensor());
    call(op, Tensors(x, weight, bias), &args, results);
    at::Tensor y = from_koine(results.take(0)), rstd = from_koine(results.take(2));
    known_eps().remember(rstd, eps);
    return {std::move(y), as_statistic(from_koine(results.take(1)), x, shape), as_statistic(rstd, x, shape)};
}

// The formula, for statistics of another origin.
Three layer_norm_backward_by_statistics(const at::Tensor &grad, const at::Tensor &x, at::IntArrayRef shape,
                                        const at::Tensor &mean, const at::Tensor &rstd,
                                        const std::optional<at::Tensor> &weight, std::array<bool, 3> wanted)
{
    const at::ScalarType type = mean.scalar_type();
    const int64_t first = x.dim() - static_cast<int64_t>(shape.size());
    at::DimVector inner, outer;
    for (int64_t i = 0; i < x.dim(); i++)
        (i < first ? outer : inner).push_back(i);
    const at::Tensor g = grad.to(type), c = x.to(type).sub(mean).mul(rstd);
    const auto over_rows = [&](const at::Tensor &t) { return (outer.empty() ? t : t.sum(outer)).to(x.scalar_type()); };
    at::Tensor of_x;
    if (wanted[0])
        of_x = by_statistics(is_given(weight) ? g.mul(*weight) : g, c, rstd, inner).to(x.scalar_type());
    return {of_x, wanted[1] ? over_rows(g.mul(c)) : at::Tensor(), wanted[2] ? over_rows(g) : at::Tensor()};
}

Three layer_norm_backward(const at::Tensor &grad, const at::Tensor &x, at::IntArrayRef shape, const at::Tensor &mean,
                          const at::Tensor &rstd, const std::optional<at::Tensor> &weight,
                          const std::optional<at::Tensor> &bias, std::array<bool, 3> wanted)
{
    static const Op op("layer_norm_backward");
    const std::optional<double> eps = known_eps().find(rstd);
    if (!eps)
        return layer_norm_backward_by_statistics(grad, x, shape, mean, rstd, weight, wanted);
    const kn_layer_norm_args args = layer_norm_args(op, shape, *eps);
    Tensors results;
    want(results, wanted);
    call(op, Tensors(grad, x, weight, bias), &args, results);
    return {take(results, 0, wanted[0]), take(results, 1, wanted[1]), take(results, 2, wanted[2])};
}

// --- by group --------------------------------------------------------------------------------------------------------

// Forward is PyTorch's, by native_batch_norm.
Three group_norm_backward(const at::Tensor &grad, const at::Tensor &x, const at::Tensor &mean, const at::Tensor &rstd,
                          const std::optional<at::Tensor> &weight, int64_t n, int64_t channels, int64_t places,
                          int64_t groups, std::array<bool, 3> wanted)
{
    const at::ScalarType type = mean.scalar_type();
    const std::array<int64_t, 4> grouped = {n, groups, channels / groups, places};
    const at::Tensor g = grad.to(type).reshape(grouped), m = mean.reshape({n, groups, 1, 1}),
                     r = rstd.reshape({n, groups, 1, 1}), c = x.to(type).reshape(grouped).sub(m).mul(r);
    const auto by_channel = [&](const at::Tensor &t) { return t.sum({0, 3}).reshape({channels}).to(x.scalar_type()); };
    at::Tensor of_x;
    if (wanted[0]) {
        const at::Tensor d = is_given(weight) ? g.mul(weight->reshape({1, groups, channels / groups, 1})) : g;
        of_x = by_statistics(d, c, r, {2, 3}).reshape(x.sizes()).to(x.scalar_type());
    }
    return {of_x, wanted[1] ? by_channel(g.mul(c)) : at::Tensor(), wanted[2] ? by_channel(g) : at::Tensor()};
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("native_batch_norm", batch_norm);
    m.impl("_native_batch_norm_legit", batch_norm_legit);
    m.impl("_native_batch_norm_legit.no_stats", batch_norm_without_running);
    m.impl("native_batch_norm_backward", batch_norm_backward);
    m.impl("native_layer_norm", layer_norm);
    m.impl("native_layer_norm_backward", layer_norm_backward);
    m.impl("native_group_norm_backward", group_norm_backward);
}

} // namespace koine
