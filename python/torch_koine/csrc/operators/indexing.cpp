// indexing.cpp - elements by index or mask. Operators with one index along one dimension are in table.inc.
#include "compute.h"
#include "kernels.h"
#include "order.h"

#include <ATen/TensorUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <koine/index.h>

namespace koine
{
namespace
{

using Indices = c10::List<std::optional<at::Tensor>>;

// x[a, :, b]: an index that is not given takes all of its dimension. Indices may be on the CPU. Are there any?
bool add_indices(Tensors &given, const Indices &indices, c10::Device device)
{
    bool any = false;
    for (const std::optional<at::Tensor> &index : indices) {
        const bool is_given = index && index->defined();
        is_given ? given.add(index->to(device)) : given.add(Tensor());
        any |= is_given;
    }
    return any;
}

bool is_mask(const at::Tensor &index) { return index.scalar_type() == at::kBool; }

// Of an index whose dimensions are `count` of the result's, from `place` on: as PyTorch expands and reshapes it, which
// matters to dimensions of size 1. A mask stands for a column of as many as it has dimensions.
at::DimVector strides_of_index(const at::Tensor &index, at::IntArrayRef sizes, int64_t place, int64_t count)
{
    const at::DimVector own(is_mask(index) ? at::DimVector{index.dim()} : at::DimVector(index.strides()));
    at::DimVector expanded(count, 0), shape(sizes.size(), 1);
    const int64_t missing = count - static_cast<int64_t>(own.size());
    for (int64_t d = 0; d < count; d++) {
        shape[place + d] = sizes[place + d];
        if (d >= missing && (is_mask(index) || index.size(d - missing) == sizes[place + d]))
            expanded[d] = own[d - missing];
    }
    at::DimVector strides = *at::detail::computeStride(sizes.slice(place, count), expanded, shape);
    for (size_t d = 0; d < sizes.size(); d++)
        strides[d] = shape[d] == sizes[d] ? strides[d] : 0;
    return strides;
}

// The strides that PyTorch gives x[indices], of these sizes: its operands are x, with strides of 0 for the indices'
// dimensions, and the indices. Those take the place of the dimensions of x that they choose from, or come first where
// these are not next to each other. A mask chooses from as many as it has, and counts as an index of one.
at::DimVector strides_of_indexed(const at::Tensor &x, const Indices &indices, at::IntArrayRef sizes)
{
    c10::SmallVector<at::Tensor, 4> given;
    at::DimVector of_x;
    int64_t dim = 0, first = -1, last = -1, chosen = 0;
    for (const std::optional<at::Tensor> &index : indices) {
        if (index && index->defined()) {
            const int64_t width = is_mask(*index) ? index->dim() : 1;
            given.push_back(*index);
            first = first < 0 ? dim : first;
            dim += width;
            chosen += width;
            last = dim;
        } else {
            of_x.push_back(x.stride(dim++));
        }
    }
    of_x.append(x.strides().begin() + dim, x.strides().end());
    const int64_t place = last - first == chosen ? first : 0, added = sizes.size() - of_x.size();
    of_x.insert(of_x.begin() + place, added, 0);
    Strides strides{of_x};
    for (const at::Tensor &index : given)
        strides.push_back(strides_of_index(index, sizes, place, added));
    return strides_of_result(sizes, strides);
}

bool are_contiguous(const Indices &indices)
{
    for (const std::optional<at::Tensor> index : indices)
        if (index && index->defined() && !index->is_contiguous())
            return false;
    return true;
}

at::Tensor index(const at::Tensor &x, const Indices &indices)
{
    Tensors given;
    if (!add_indices(given, indices, x.device()))
        return x.clone();
    at::Tensor result = from_koine(kn_index(as_koine(x).get(), given.data(), given.size()));
    if (C10_LIKELY(x.is_contiguous() && are_contiguous(indices)))
        return result;
    const at::DimVector strides = strides_of_indexed(x, indices, result.sizes());
    return result.strides() == at::IntArrayRef(strides)
               ? result
               : empty_strided(result.sizes(), strides, result.scalar_type(), result.device()).copy_(result);
}

at::Tensor &index_out(const at::Tensor &x, const Indices &indices, at::Tensor &out)
{
    const at::Tensor result = index(x, indices);
    return out.resize_(result.sizes()).copy_(result);
}

at::Tensor &index_put_(at::Tensor &x, const Indices &indices, const at::Tensor &values, bool accumulate, bool)
{
    Tensors given;
    add_indices(given, indices, x.device());
    const kn_put_params params = {accumulate};
    const Tensor source = as_koine(values.to(x.device(), x.scalar_type()));
    check(kn_index_put_with_(as_koine(x).get(), given.data(), given.size(), source.get(), &params));
    return x;
}

// A tensor without dimensions has one slice.
at::Tensor index_select(const at::Tensor &x, int64_t dim, const at::Tensor &index)
{
    static const Op op("index_select");
    if (x.dim() == 0)
        return x.clone();
    const kn_dim_args args = {static_cast<int>(dim)};
    return call(op, Tensors(x, index), &args);
}

at::Tensor &index_select_out(const at::Tensor &x, int64_t dim, const at::Tensor &index, at::Tensor &out)
{
    const at::Tensor result = index_select(x, dim, index);
    return out.resize_(result.sizes()).copy_(result);
}

at::Tensor &put_(at::Tensor &x, const at::Tensor &index, const at::Tensor &source, bool accumulate)
{
    const kn_put_params params = {accumulate};
    check(kn_put_with_(as_koine(x).get(), as_koine(index).get(), as_koine(source).get(), &params));
    return x;
}

at::Tensor &index_fill_tensor_(at::Tensor &x, int64_t dim, const at::Tensor &index, const at::Tensor &value)
{
    TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                value.dim(), " dimension(s).");
    return x.index_fill_(dim, index, value.item());
}

// --- embeddings ------------------------------------------------------------------------------------------------------

// The rows' gradients in order, without atomics; the padding's is 0.
at::Tensor embedding_backward(const at::Tensor &grad, const at::Tensor &indices, int64_t count, int64_t padding,
                              bool by_frequency)
{
    const at::Tensor places = indices.reshape(-1);
    at::Tensor rows = grad.reshape({places.numel(), grad.numel() / std::max<int64_t>(places.numel(), 1)});
    if (places.numel() == 0)
        rows = grad.reshape({0, grad.size(-1)});
    if (by_frequency)
        rows = rows.div(at::bincount(places, {}, count).index_select(0, places).unsqueeze(1));
    at::Tensor result = empty({count, rows.size(1)}, grad.scalar_type(), grad.device()).zero_();
    result.index_add_(0, places, rows);
    if (padding >= 0)
        result.select(0, padding).zero_();
    return result;
}

// --- masks -----------------------------------------------------------------------------------------------------------

at::Tensor &masked_fill_tensor_(at::Tensor &x, const at::Tensor &mask, const at::Tensor &value)
{
    TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                value.dim(), " dimension(s).");
    if (value.is_cpu())
        return x.masked_fill_(mask, value.item());
    return x.copy_(at::where(mask, value.to(x.scalar_type()), x));
}

at::Tensor masked_select(const at::Tensor &x, const at::Tensor &mask)
{
    return from_koine(kn_masked_select(as_koine(x).get(), as_koine(mask).get()));
}

at::Tensor &masked_select_out(const at::Tensor &x, const at::Tensor &mask, at::Tensor &out)
{
    const at::Tensor result = masked_select(x, mask);
    return out.resize_(result.sizes()).copy_(result);
}

at::Tensor &masked_scatter_(at::Tensor &x, const at::Tensor &mask, const at::Tensor &source)
{
    TORCH_CHECK(x.scalar_type() == source.scalar_type(),
                "masked_scatter: expected self and source to have same dtypes");
    return x.copy_(from_koine(kn_masked_scatter(as_koine(x).get(), as_koine(mask).get(), as_koine(source).get())));
}

at::Tensor nonzero(const at::Tensor &x) { return from_koine(kn_nonzero(as_koine(x).get())); }

at::Tensor &nonzero_out(const at::Tensor &x, at::Tensor &out)
{
    const at::Tensor result = nonzero(x);
    return out.resize_(result.sizes()).copy_(result);
}

// --- scatter with a reduction ----------------------------------------------------------------------------------------

at::Tensor &scatter_reduce_out(const at::Tensor &x, int64_t dim, const at::Tensor &index, const at::Tensor &source,
                               std::string_view reduce, at::Tensor &out)
{
    static const Op op("scatter_reduce");
    TORCH_CHECK(reduce == "add" || reduce == "multiply", "reduce argument must be either add or multiply.");
    kn_scatter_reduce_args args = defaults<kn_scatter_reduce_args>(op);
    args.dim = static_cast<int>(dim);
    args.reduce = reduce == "add" ? KN_SCATTER_SUM : KN_SCATTER_PROD;
    compute(op, Tensors(x, index, source), &args, out);
    return out;
}

at::Tensor &scatter_value_reduce_out(const at::Tensor &x, int64_t dim, const at::Tensor &index, const at::Scalar &value,
                                     std::string_view reduce, at::Tensor &out)
{
    const at::Tensor source = empty(index.sizes(), x.scalar_type(), x.device()).fill_(value);
    return scatter_reduce_out(x, dim, index, source, reduce, out);
}

at::Tensor repeat_interleave(const at::Tensor &repeats, std::optional<int64_t> size)
{
    const at::Tensor ends = repeats.cumsum(0, at::kLong);
    const int64_t count = size ? *size : ends.numel() > 0 ? ends[-1].item<int64_t>() : 0;
    const at::Tensor places = at::arange(count, ends.options());
    return at::searchsorted(ends, places, false, true);
}

} // namespace

KOINE_KERNELS(m)
{
    m.impl("index.Tensor", index);
    m.impl("index.Tensor_out", index_out);
    m.impl("_index_put_impl_", index_put_);
    m.impl("index_select", index_select);
    m.impl("index_select.out", index_select_out);
    m.impl("put_", put_);
    m.impl("index_fill_.int_Tensor", index_fill_tensor_);
    m.impl("embedding_dense_backward", embedding_backward);
    m.impl("masked_fill_.Tensor", masked_fill_tensor_);
    m.impl("masked_select", masked_select);
    m.impl("masked_select.out", masked_select_out);
    m.impl("masked_scatter_", masked_scatter_);
    m.impl("nonzero", nonzero);
    m.impl("nonzero.out", nonzero_out);
    m.impl("scatter.reduce_out", scatter_reduce_out);
    m.impl("scatter.value_reduce_out", scatter_value_reduce_out);
    m.impl("repeat_interleave.Tensor", repeat_interleave);
}

} // namespace koine
