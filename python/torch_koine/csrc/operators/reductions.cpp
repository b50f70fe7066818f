// reductions.cpp - reductions with several results, or over all elements. Others are in table.inc.
#include "compute.h"
#include "kernels.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/result_type.h>
#include <koine/reduce.h>
#include <koine/sort.h>

namespace koine
{
namespace
{

using Two = std::tuple<at::Tensor, at::Tensor>;

template <bool greatest>
at::Tensor &arg_out(const at::Tensor &x, std::optional<int64_t> dim, bool keepdim, at::Tensor &out)
{
    static const Op op(greatest ? "argmax" : "argmin");
    const kn_along_args args = {dim ? static_cast<int>(*dim) : 0, dim ? keepdim : false};
    if (dim) {
        compute(op, Tensors(x), &args, out);
        return out;
    }
    const at::Tensor flat = result_of(op, Tensors(x.reshape(-1)), &args);
    return out.copy_(keepdim ? flat.reshape(out.sizes()) : flat);
}

// No dimensions, unlike None, are none to reduce along: is each element true?
template <bool every>
at::Tensor &logical_out(const at::Tensor &x, at::OptionalIntArrayRef dim, bool keepdim, at::Tensor &out)
{
    static const Op op(every ? "all" : "any");
    if (dim && dim->empty())
        return at::ne_out(out, x, 0);
    const kn_reduce_args args = {dim ? ints_of(*dim) : kn_ints{}, keepdim};
    compute(op, Tensors(x), &args, out);
    return out;
}

// --- variance and mean -----------------------------------------------------------------------------------------------

template <bool root>
Two var_mean(const at::Tensor &x, at::OptionalIntArrayRef dim, const std::optional<at::Scalar> &correction,
             bool keepdim)
{
    static const Op var(root ? "std" : "var"), mean("mean");
    const kn_ints dims = dim ? ints_of(*dim) : kn_ints{};
    const kn_var_args args = {dims, keepdim, correction ? correction->toDouble() : 1};
    const kn_reduce_args mean_args = {dims, keepdim};
    return {result_of(var, Tensors(x), &args), result_of(mean, Tensors(x), &mean_args)};
}

// --- extremes --------------------------------------------------------------------------------------------------------

std::tuple<at::Tensor &, at::Tensor &> aminmax_out(const at::Tensor &x, std::optional<int64_t> dim, bool keepdim,
                                                   at::Tensor &least, at::Tensor &greatest)
{
    const int64_t all[] = {dim.value_or(0)};
    const at::IntArrayRef dims(all, dim && x.dim() > 0 ? 1 : 0);
    at::amin_out(least, x, dims, keepdim);
    at::amax_out(greatest, x, dims, keepdim);
    return {least, greatest};
}

template <bool greatest> void running_extreme(const at::Tensor &x, at::Tensor &values, at::Tensor &indices, int64_t dim)
{
    static const Op op(greatest ? "cummax" : "cummin");
    const kn_dim_args args = {static_cast<int>(dim)};
    compute(op, Tensors(x), &args, {values, indices});
}

Two mode(const at::Tensor &x, int64_t dim, bool keepdim)
{
    static const Op op("mode");
    const kn_along_args args = {static_cast<int>(dim), keepdim};
    Tensors results;
    results.add(Tensor());
    results.add(Tensor());
    call(op, Tensors(x), &args, results);
    at::Tensor values = from_koine(results.take(0));
    return {values, from_koine(results.take(1))};
}

std::tuple<at::Tensor &, at::Tensor &> mode_out(const at::Tensor &x, int64_t dim, bool keepdim, at::Tensor &values,
                                                at::Tensor &indices)
{
    const auto [made, places] = mode(x, dim, keepdim);
    values.resize_(made.sizes()).copy_(made);
    indices.resize_(places.sizes()).copy_(places);
    return {values, indices};
}

bool equal(const at::Tensor &a, const at::Tensor &b)
{
    if (a.sizes() != b.sizes())
        return false;
    return a.numel() == 0 || a.eq(b).all().item<bool>();
}

at::Tensor trace(const at::Tensor &x)
{
    TORCH_CHECK(x.dim() == 2, "trace: expected a matrix");
    return x.diagonal().sum();
}

// --- distinct elements -----------------------------------------------------------------------------------------------

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// PyTorch's results that were not asked for are empty.
template <class Function> Three distinct(const at::Tensor &x, bool inverse, bool counts, Function function)
{
    kn_tensor *places = nullptr, *numbers = nullptr;
    const Tensor input = as_koine(x);
    at::Tensor values = from_koine(function(input.get(), inverse ? &places : nullptr, counts ? &numbers : nullptr));
    const auto given = [&](kn_tensor *made) { return made ? from_koine(made) : empty({0}, at::kLong, x.device()); };
    return {values, given(places), given(numbers)};
}

Three unique(const at::Tensor &x, bool, bool inverse, bool counts) { return distinct(x, inverse, counts, kn_unique); }

Two unique_two(const at::Tensor &x, bool, bool inverse)
{
    auto [values, places, counts] = distinct(x, inverse, false, kn_unique);
    return {values, places};
}

Three unique_dim(const at::Tensor &x, int64_t dim, bool, bool inverse, bool counts)
{
    return distinct(x, inverse, counts, [&](kn_tensor *t, kn_tensor **places, kn_tensor **numbers) {
        return kn_unique_dim(t, static_cast<int>(dim), places, numbers);
    });
}

Three unique_runs_dim(const at::Tensor &x, int64_t dim, bool inverse, bool counts)
{
    return distinct(x, inverse, counts, [&](kn_tensor *t, kn_tensor **places, kn_tensor **numbers) {
        return kn_unique_consecutive_dim(t, static_cast<int>(dim), places, numbers);
    });
}

Three unique_runs(const at::Tensor &x, bool inverse, bool counts, std::optional<int64_t> dim)
{
    return dim ? unique_runs_dim(x, *dim, inverse, counts) : distinct(x, inverse, counts, kn_unique_consecutive);
}

// --- searching -------------------------------------------------------------------------------------------------------

// Values of several dtypes are compared in the one that holds them.
at::Tensor searchsorted(const at::Tensor &sorted, const at::Tensor &x, bool out_int32, bool right,
                        std::optional<std::string_view> side, const std::optional<at::Tensor> &sorter)
{
    static const Op op("searchsorted");
    const kn_search_args args = {out_int32, right || (side && *side == "right")};
    const at::ScalarType type = at::result_type(sorted, x);
    Tensors arguments(sorted.to(type));
    arguments.add(operand(x.to(type), sorted.device()));
    arguments.add(sorter);
    return call(op, std::move(arguments), &args);
}

at::Tensor &searchsorted_out(const at::Tensor &sorted, const at::Tensor &x, bool out_int32, bool right,
                             std::optional<std::string_view> side, const std::optional<at::Tensor> &sorter,
                             at::Tensor &out)
{
    const at::Tensor result = searchsorted(sorted, x, out_int32, right, side, sorter);
    return out.resize_(result.sizes()).copy_(result);
}

at::Tensor searchsorted_number(const at::Tensor &sorted, const at::Scalar &x, bool out_int32, bool right,
                               std::optional<std::string_view> side, const std::optional<at::Tensor> &sorter)
{
    const at::Tensor number = empty({}, sorted.scalar_type(), sorted.device()).fill_(x);
    return searchsorted(sorted, number, out_int32, right, side, sorter);
}

at::Tensor bucketize(const at::Tensor &x, const at::Tensor &boundaries, bool out_int32, bool right)
{
    return searchsorted(boundaries, x, out_int32, right, std::nullopt, std::nullopt);
}

at::Tensor &bucketize_out(const at::Tensor &x, const at::Tensor &boundaries, bool out_int32, bool right,
                          at::Tensor &out)
{
    return searchsorted_out(boundaries, x, out_int32, right, std::nullopt, std::nullopt, out);
}

at::Tensor bucketize_number(const at::Scalar &x, const at::Tensor &boundaries, bool out_int32, bool right)
{
    return searchsorted_number(boundaries, x, out_int32, right, std::nullopt, std::nullopt);
}

at::Tensor &isin_number_out(const at::Tensor &x, const at::Scalar &tested, bool, bool invert, at::Tensor &out)
{
    return invert ? at::ne_out(out, x, tested) : at::eq_out(out, x, tested);
}

} // namespace

KOINE_KERNELS(m)
{
    m.impl("argmax.out", arg_out<true>);
    m.impl("argmin.out", arg_out<false>);
    m.impl("all.dims_out", logical_out<true>);
    m.impl("any.dims_out", logical_out<false>);
    m.impl("var_mean.correction", var_mean<false>);
    m.impl("std_mean.correction", var_mean<true>);
    m.impl("aminmax.out", aminmax_out);
    m.impl("_cummax_helper", running_extreme<true>);
    m.impl("_cummin_helper", running_extreme<false>);
    m.impl("mode", mode);
    m.impl("mode.values", mode_out);
    m.impl("equal", equal);
    m.impl("trace", trace);
    m.impl("_unique", unique_two);
    m.impl("_unique2", unique);
    m.impl("unique_dim", unique_dim);
    m.impl("unique_consecutive", unique_runs);
    m.impl("unique_dim_consecutive", unique_runs_dim);
    m.impl("searchsorted.Tensor", searchsorted);
    m.impl("searchsorted.Tensor_out", searchsorted_out);
    m.impl("searchsorted.Scalar", searchsorted_number);
    m.impl("bucketize.Tensor", bucketize);
    m.impl("bucketize.Tensor_out", bucketize_out);
    m.impl("bucketize.Scalar", bucketize_number);
    m.impl("isin.Tensor_Scalar_out", isin_number_out);
}

} // namespace koine
