// order.cpp - see order.h.
#include "order.h"

#include "../storage.h"

#include <algorithm>
#include <numeric>

namespace koine
{
namespace
{

// An operand with as many dimensions as the result.
struct Layout {
    at::DimVector sizes, strides;
};
using Layouts = c10::SmallVector<Layout, 4>;

bool are_contiguous(Tensors &operands)
{
    return std::all_of(operands.data(), operands.data() + operands.size(),
                       [](const kn_tensor *x) { return !x || kn_is_contiguous(x); });
}

Layout layout_of(const kn_tensor *x, int ndim)
{
    Layout layout{at::DimVector(ndim, 1), at::DimVector(ndim, 0)};
    const int missing = ndim - kn_ndim(x);
    for (int d = missing; d < ndim; d++) {
        layout.sizes[d] = kn_size(x, d - missing);
        layout.strides[d] = kn_stride(x, d - missing);
    }
    return layout;
}

// Empty where the sizes do not fit: the operator says so.
at::DimVector broadcast(Layouts &layouts)
{
    at::DimVector sizes(layouts[0].sizes);
    for (const Layout &layout : layouts)
        for (size_t d = 0; d < sizes.size(); d++)
            if (sizes[d] == 1)
                sizes[d] = layout.sizes[d];
            else if (layout.sizes[d] != 1 && layout.sizes[d] != sizes[d])
                return {};
    for (Layout &layout : layouts)
        for (size_t d = 0; d < sizes.size(); d++)
            if (layout.sizes[d] != sizes[d])
                layout.strides[d] = 0;
    return sizes;
}

// Below 0: dimension `a` belongs inside `b`; above: outside; 0: no operand tells. The first that can decides.
int compare(const Strides &operands, at::IntArrayRef sizes, int64_t a, int64_t b)
{
    for (const at::DimVector &strides : operands) {
        const int64_t stride_a = strides[a], stride_b = strides[b];
        if (stride_a == 0 || stride_b == 0)
            continue;
        if (stride_a != stride_b)
            return stride_a < stride_b ? -1 : 1;
        if (sizes[a] > sizes[b])
            return 1;
    }
    return 0;
}

// TensorIterator's sort by insertion, from the innermost dimension to the outermost; as `compare` is no order, another
// algorithm would give other results. Returned from the outermost.
at::DimVector sorted(const Strides &operands, at::IntArrayRef sizes)
{
    at::DimVector dims(sizes.size());
    std::iota(dims.rbegin(), dims.rend(), 0);
    for (size_t i = 1; i < dims.size(); i++)
        for (size_t at = i, other = i; other-- > 0;) {
            const int order = compare(operands, sizes, dims[other], dims[at]);
            if (order < 0)
                break;
            if (order > 0) {
                std::swap(dims[other], dims[at]);
                at = other;
            }
        }
    std::reverse(dims.begin(), dims.end());
    return dims;
}

Tensor permuted(kn_tensor *x, const Layout &layout, const at::DimVector &dims)
{
    at::DimVector sizes, strides;
    for (const int64_t d : dims) {
        sizes.push_back(layout.sizes[d]);
        strides.push_back(layout.strides[d]);
    }
    const Memory memory(check(kn_storage_of(x)));
    return Tensor(check(kn_tensor_from_storage(memory.get(), kn_dtype_of(x), static_cast<int>(dims.size()),
                                               sizes.data(), strides.data(), kn_storage_offset(x))));
}

} // namespace

at::DimVector strides_of_result(at::IntArrayRef sizes, const Strides &operands)
{
    const at::DimVector dims = sorted(operands, sizes);
    at::DimVector strides(sizes.size());
    int64_t stride = 1;
    for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
        strides[*d] = stride;
        stride *= sizes[*d];
    }
    return strides;
}

Order::Order(Tensors &operands)
{
    if (C10_LIKELY(are_contiguous(operands)))
        return;
    int ndim = 0;
    for (int i = 0; i < operands.size(); i++)
        ndim = operands.data()[i] ? std::max(ndim, kn_ndim(operands.data()[i])) : ndim;
    Layouts layouts;
    for (int i = 0; i < operands.size(); i++)
        if (operands.data()[i])
            layouts.push_back(layout_of(operands.data()[i], ndim));
    const at::DimVector sizes = broadcast(layouts);
    Strides strides;
    for (const Layout &layout : layouts)
        strides.push_back(layout.strides);
    at::DimVector found = sorted(strides, sizes);
    if (std::is_sorted(found.begin(), found.end()))
        return;
    dims = std::move(found);
    auto layout = layouts.begin();
    for (int i = 0; i < operands.size(); i++)
        if (operands.data()[i])
            operands.replace(i, permuted(operands.data()[i], *layout++, dims));
}

at::Tensor Order::restore(at::Tensor result) const
{
    if (C10_LIKELY(dims.empty()) || result.dim() != static_cast<int64_t>(dims.size()))
        return result;
    at::DimVector sizes(dims.size()), strides(dims.size());
    for (size_t i = 0; i < dims.size(); i++) {
        sizes[dims[i]] = result.size(i);
        strides[dims[i]] = result.stride(i);
    }
    result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, result.storage_offset());
    return result;
}

} // namespace koine
