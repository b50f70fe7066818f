// pooling.cpp - gradients of adaptive pooling, whose sizes are the gradient's, and pooling with drawn or given places.
#include "compute.h"
#include "kernels.h"

#include <ATen/ops/empty_like.h>
#include <koine/pool.h>

namespace koine
{
namespace
{

template <int dims> kn_adaptive_pool_args sizes_of(const at::Tensor &grad)
{
    return {ints_of(grad.sizes().slice(grad.dim() - dims))};
}

template <int dims> at::Tensor adaptive_avg_backward(const at::Tensor &grad, const at::Tensor &x)
{
    static const Op op(dims == 2 ? "adaptive_avg_pool2d_backward" : "adaptive_avg_pool3d_backward");
    const kn_adaptive_pool_args args = sizes_of<dims>(grad);
    return call(op, Tensors(grad, x), &args);
}

at::Tensor &adaptive_avg_backward_out(const at::Tensor &grad, const at::Tensor &x, at::Tensor &out)
{
    static const Op op("adaptive_avg_pool3d_backward");
    const kn_adaptive_pool_args args = sizes_of<3>(grad);
    compute(op, Tensors(grad, x), &args, out);
    return out;
}

template <int dims>
at::Tensor &adaptive_max_backward_out(const at::Tensor &grad, const at::Tensor &x, const at::Tensor &indices,
                                      at::Tensor &out)
{
    static const Op op(dims == 2 ? "adaptive_max_pool2d_with_indices_backward"
                                 : "adaptive_max_pool3d_with_indices_backward");
    const kn_adaptive_pool_args args = sizes_of<dims>(grad);
    compute(op, Tensors(grad, x, indices), &args, out);
    return out;
}

// --- fractional ------------------------------------------------------------------------------------------------------

template <int dims>
std::tuple<at::Tensor &, at::Tensor &> fractional_out(const at::Tensor &x, at::IntArrayRef kernel, at::IntArrayRef size,
                                                      const at::Tensor &samples, at::Tensor &out, at::Tensor &indices)
{
    static const Op op(dims == 2 ? "fractional_max_pool2d" : "fractional_max_pool3d");
    const kn_fractional_pool_args args = {ints_of(kernel), ints_of(size)};
    compute(op, Tensors(x, samples), &args, {out, indices});
    return {out, indices};
}

// Each element's gradient goes to its place in the channel.
template <int dims>
at::Tensor fractional_backward(const at::Tensor &grad, const at::Tensor &x, at::IntArrayRef, at::IntArrayRef,
                               const at::Tensor &indices)
{
    const int64_t first = x.dim() - dims;
    at::Tensor result = at::empty_like(x, at::MemoryFormat::Contiguous).zero_();
    result.flatten(first).scatter_add_(-1, indices.flatten(first), grad.flatten(first));
    return result;
}

template <int dims>
at::Tensor &fractional_backward_out(const at::Tensor &grad, const at::Tensor &x, at::IntArrayRef kernel,
                                    at::IntArrayRef size, const at::Tensor &indices, at::Tensor &out)
{
    out.resize_(x.sizes());
    return out.copy_(fractional_backward<dims>(grad, x, kernel, size, indices));
}

// --- max unpooling ---------------------------------------------------------------------------------------------------

at::Tensor unpool(const at::Tensor &x, const at::Tensor &indices, at::IntArrayRef size)
{
    const int64_t dims = static_cast<int64_t>(size.size()), first = x.dim() - dims;
    at::DimVector sizes(x.sizes().slice(0, first));
    sizes.append(size.begin(), size.end());
    at::Tensor result = empty(sizes, x.scalar_type(), x.device()).zero_();
    result.flatten(first).scatter_(-1, indices.flatten(first), x.flatten(first));
    return result;
}

at::Tensor max_unpool2d(const at::Tensor &x, const at::Tensor &indices, at::IntArrayRef size)
{
    return unpool(x, indices, size);
}

at::Tensor &max_unpool2d_out(const at::Tensor &x, const at::Tensor &indices, at::IntArrayRef size, at::Tensor &out)
{
    const at::Tensor result = unpool(x, indices, size);
    return out.resize_(result.sizes()).copy_(result);
}

at::Tensor max_unpool3d(const at::Tensor &x, const at::Tensor &indices, at::IntArrayRef size, at::IntArrayRef,
                        at::IntArrayRef)
{
    return unpool(x, indices, size);
}

at::Tensor &max_unpool3d_out(const at::Tensor &x, const at::Tensor &indices, at::IntArrayRef size, at::IntArrayRef,
                             at::IntArrayRef, at::Tensor &out)
{
    return max_unpool2d_out(x, indices, size, out);
}

} // namespace

KOINE_KERNELS(m)
{
    m.impl("_adaptive_avg_pool2d_backward", adaptive_avg_backward<2>);
    m.impl("_adaptive_avg_pool3d_backward", adaptive_avg_backward<3>);
    m.impl("adaptive_avg_pool3d_backward.grad_input", adaptive_avg_backward_out);
    m.impl("adaptive_max_pool2d_backward.grad_input", adaptive_max_backward_out<2>);
    m.impl("adaptive_max_pool3d_backward.grad_input", adaptive_max_backward_out<3>);
    m.impl("fractional_max_pool2d.output", fractional_out<2>);
    m.impl("fractional_max_pool2d_backward.grad_input", fractional_backward_out<2>);
    m.impl("fractional_max_pool3d_backward", fractional_backward<3>);
    m.impl("fractional_max_pool3d_backward.grad_input", fractional_backward_out<3>);
    m.impl("max_unpool2d", max_unpool2d);
    m.impl("max_unpool2d.out", max_unpool2d_out);
    m.impl("max_unpool3d", max_unpool3d);
    m.impl("max_unpool3d.out", max_unpool3d_out);
}

} // namespace koine
