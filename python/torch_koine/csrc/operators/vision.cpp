// vision.cpp - resizing, sampling at places, padding, patches.
#include "compute.h"
#include "kernels.h"

#include <ATen/ops/empty.h>
#include <koine/pad.h>
#include <koine/vision.h>

#include <algorithm>
#include <cmath>

namespace koine
{
namespace
{

// --- resizing --------------------------------------------------------------------------------------------------------

using Scale = std::optional<double>;

struct Resizing {
    kn_interpolate_mode mode;
    bool align_corners, antialias;
};

// Factors that the caller gave replace the ratios of the sizes, and have to give those sizes.
kn_interpolate_params params_of(const kn_op *op, Resizing how, at::IntArrayRef input, at::IntArrayRef output,
                                std::initializer_list<Scale> scales)
{
    kn_interpolate_params params = defaults<kn_interpolate_params>(op);
    params.mode = how.mode;
    params.align_corners = how.align_corners;
    params.antialias = how.antialias;
    const bool by_factor = !how.align_corners && std::any_of(scales.begin(), scales.end(),
                                                             [](const Scale &scale) { return scale && *scale > 0; });
    size_t i = 0;
    for (const Scale &scale : scales) {
        const int64_t size = input[input.size() - output.size() + i];
        const double factor = scale.value_or(static_cast<double>(output[i]) / static_cast<double>(size));
        TORCH_CHECK_NOT_IMPLEMENTED(!by_factor || static_cast<int64_t>(std::floor(size * factor)) == output[i],
                                    "the device koine resizes by a factor, or to a size, but not by ", factor, " from ",
                                    size, " to ", output[i], " elements");
        params.scale_factors[i] = by_factor ? factor : 0;
        params.sizes[i] = by_factor ? 0 : output[i];
        i++;
    }
    return params;
}

at::Tensor &resize(const at::Tensor &x, Resizing how, at::IntArrayRef output, std::initializer_list<Scale> scales,
                   at::Tensor &out)
{
    static const Op op("interpolate");
    const kn_interpolate_params params = params_of(op, how, x.sizes(), output, scales);
    compute(op, Tensors(x), &params, out);
    return out;
}

// Of the input only the shape matters.
at::Tensor &resize_backward(const at::Tensor &grad, Resizing how, at::IntArrayRef output, at::IntArrayRef input,
                            std::initializer_list<Scale> scales, at::Tensor &out)
{
    static const Op op("interpolate_backward");
    const kn_interpolate_params params = params_of(op, how, input, output, scales);
    compute(op, Tensors(grad, empty(input, grad.scalar_type(), grad.device())), &params, out);
    return out;
}

template <kn_interpolate_mode mode> struct Nearest {
    static constexpr Resizing how = {mode, false, false};
    static at::Tensor &signal(const at::Tensor &x, at::IntArrayRef size, Scale l, at::Tensor &out)
    {
        return resize(x, how, size, {l}, out);
    }
    static at::Tensor &image(const at::Tensor &x, at::IntArrayRef size, Scale h, Scale w, at::Tensor &out)
    {
        return resize(x, how, size, {h, w}, out);
    }
    static at::Tensor &volume(const at::Tensor &x, at::IntArrayRef size, Scale d, Scale h, Scale w, at::Tensor &out)
    {
        return resize(x, how, size, {d, h, w}, out);
    }
    static at::Tensor &signal_backward(const at::Tensor &g, at::IntArrayRef size, at::IntArrayRef input, Scale l,
                                       at::Tensor &out)
    {
        return resize_backward(g, how, size, input, {l}, out);
    }
    static at::Tensor &image_backward(const at::Tensor &g, at::IntArrayRef size, at::IntArrayRef input, Scale h,
                                      Scale w, at::Tensor &out)
    {
        return resize_backward(g, how, size, input, {h, w}, out);
    }
    static at::Tensor &volume_backward(const at::Tensor &g, at::IntArrayRef size, at::IntArrayRef input, Scale d,
                                       Scale h, Scale w, at::Tensor &out)
    {
        return resize_backward(g, how, size, input, {d, h, w}, out);
    }
};

template <kn_interpolate_mode mode, bool antialias = false> struct Smooth {
    static at::Tensor &signal(const at::Tensor &x, at::IntArrayRef size, bool corners, Scale l, at::Tensor &out)
    {
        return resize(x, {mode, corners, antialias}, size, {l}, out);
    }
    static at::Tensor &image(const at::Tensor &x, at::IntArrayRef size, bool corners, Scale h, Scale w, at::Tensor &out)
    {
        return resize(x, {mode, corners, antialias}, size, {h, w}, out);
    }
    static at::Tensor &volume(const at::Tensor &x, at::IntArrayRef size, bool corners, Scale d, Scale h, Scale w,
                              at::Tensor &out)
    {
        return resize(x, {mode, corners, antialias}, size, {d, h, w}, out);
    }
    static at::Tensor &signal_backward(const at::Tensor &g, at::IntArrayRef size, at::IntArrayRef input, bool corners,
                                       Scale l, at::Tensor &out)
    {
        return resize_backward(g, {mode, corners, antialias}, size, input, {l}, out);
    }
    static at::Tensor &image_backward(const at::Tensor &g, at::IntArrayRef size, at::IntArrayRef input, bool corners,
                                      Scale h, Scale w, at::Tensor &out)
    {
        return resize_backward(g, {mode, corners, antialias}, size, input, {h, w}, out);
    }
    static at::Tensor &volume_backward(const at::Tensor &g, at::IntArrayRef size, at::IntArrayRef input, bool corners,
                                       Scale d, Scale h, Scale w, at::Tensor &out)
    {
        return resize_backward(g, {mode, corners, antialias}, size, input, {d, h, w}, out);
    }
};

// --- sampling --------------------------------------------------------------------------------------------------------

// The enums have PyTorch's order. Koine has no cubic polynomials of volumes.
kn_grid_sample_params grid_params(const at::Tensor &x, int64_t mode, int64_t padding, bool align_corners)
{
    if (x.dim() == 5 && mode == KN_GRID_BICUBIC)
        raise_unsupported("grid_sample: mode bicubic is for images only on the device koine");
    return {static_cast<kn_grid_mode>(mode), static_cast<kn_grid_padding>(padding), align_corners};
}

at::Tensor grid_sample(const at::Tensor &x, const at::Tensor &grid, int64_t mode, int64_t padding, bool align_corners)
{
    static const Op op("grid_sample");
    const kn_grid_sample_params params = grid_params(x, mode, padding, align_corners);
    return call(op, Tensors(x, grid), &params);
}

std::tuple<at::Tensor, at::Tensor> grid_sample_backward(const at::Tensor &grad, const at::Tensor &x,
                                                        const at::Tensor &grid, int64_t mode, int64_t padding,
                                                        bool align_corners, std::array<bool, 2> wanted)
{
    static const Op op("grid_sample_backward");
    const kn_grid_sample_params params = grid_params(x, mode, padding, align_corners);
    Tensors results;
    for (bool one : wanted)
        one ? results.add(Tensor()) : results.skip();
    call(op, Tensors(grad, x, grid), &params, results);
    const auto take = [&](int i) { return wanted[i] ? from_koine(results.take(i)) : at::Tensor(); };
    return {take(0), take(1)};
}

// --- padding ---------------------------------------------------------------------------------------------------------

kn_pad_args pad_args(const kn_op *op, at::IntArrayRef pad, kn_padding_mode mode)
{
    kn_pad_args args = defaults<kn_pad_args>(op);
    args.pad = ints_of(pad);
    args.mode = mode;
    return args;
}

template <kn_padding_mode mode> at::Tensor &pad_out(const at::Tensor &x, at::IntArrayRef pad, at::Tensor &out)
{
    static const Op op("pad");
    const kn_pad_args args = pad_args(op, pad, mode);
    compute(op, Tensors(x), &args, out);
    return out;
}

template <kn_padding_mode mode> at::Tensor pad_new(const at::Tensor &x, at::IntArrayRef pad)
{
    static const Op op("pad");
    const kn_pad_args args = pad_args(op, pad, mode);
    return call(op, Tensors(x), &args);
}

template <kn_padding_mode mode>
at::Tensor pad_backward(const at::Tensor &grad, const at::Tensor &x, at::IntArrayRef pad)
{
    static const Op op("pad_backward");
    const kn_pad_args args = pad_args(op, pad, mode);
    return call(op, Tensors(grad, x), &args);
}

template <kn_padding_mode mode>
at::Tensor &pad_backward_out(const at::Tensor &grad, const at::Tensor &x, at::IntArrayRef pad, at::Tensor &out)
{
    static const Op op("pad_backward");
    const kn_pad_args args = pad_args(op, pad, mode);
    compute(op, Tensors(grad, x), &args, out);
    return out;
}

// --- patches ---------------------------------------------------------------------------------------------------------

kn_fold_args fold_args(at::IntArrayRef size, at::IntArrayRef kernel, at::IntArrayRef dilation, at::IntArrayRef padding,
                       at::IntArrayRef stride)
{
    return {ints_of(size), ints_of(kernel), ints_of(dilation), ints_of(padding), ints_of(stride)};
}

at::Tensor im2col(const at::Tensor &x, at::IntArrayRef kernel, at::IntArrayRef dilation, at::IntArrayRef padding,
                  at::IntArrayRef stride)
{
    static const Op op("unfold");
    const kn_fold_args args = fold_args({}, kernel, dilation, padding, stride);
    return call(op, Tensors(x), &args);
}

at::Tensor col2im(const at::Tensor &x, at::IntArrayRef size, at::IntArrayRef kernel, at::IntArrayRef dilation,
                  at::IntArrayRef padding, at::IntArrayRef stride)
{
    static const Op op("fold");
    const kn_fold_args args = fold_args(size, kernel, dilation, padding, stride);
    return call(op, Tensors(x), &args);
}

// The gradient of Tensor.unfold: windows of a view, which overlap, added where they came from.
at::Tensor unfold_backward(const at::Tensor &grad, at::IntArrayRef sizes, int64_t dim, int64_t size, int64_t step)
{
    at::Tensor result = empty(sizes, grad.scalar_type(), grad.device()).zero_();
    if (sizes.empty())
        return result.copy_(grad.reshape({}));
    const int64_t along = dim < 0 ? dim + static_cast<int64_t>(sizes.size()) : dim;
    for (int64_t i = 0; i < size; i++) {
        const int64_t windows = grad.size(along);
        result.slice(along, i, i + (windows - 1) * step + 1, step).add_(grad.select(-1, i));
    }
    return result;
}

} // namespace

KOINE_KERNELS(m)
{
    using Floor = Nearest<KN_INTERPOLATE_NEAREST>;
    m.impl("upsample_nearest1d.out", Floor::signal);
    m.impl("upsample_nearest2d.out", Floor::image);
    m.impl("upsample_nearest3d.out", Floor::volume);
    m.impl("upsample_nearest1d_backward.grad_input", Floor::signal_backward);
    m.impl("upsample_nearest2d_backward.grad_input", Floor::image_backward);
    m.impl("upsample_nearest3d_backward.grad_input", Floor::volume_backward);
    using Exact = Nearest<KN_INTERPOLATE_NEAREST_EXACT>;
    m.impl("_upsample_nearest_exact1d.out", Exact::signal);
    m.impl("_upsample_nearest_exact2d.out", Exact::image);
    m.impl("_upsample_nearest_exact3d.out", Exact::volume);
    m.impl("_upsample_nearest_exact1d_backward.grad_input", Exact::signal_backward);
    m.impl("_upsample_nearest_exact2d_backward.grad_input", Exact::image_backward);
    m.impl("_upsample_nearest_exact3d_backward.grad_input", Exact::volume_backward);
    m.impl("upsample_linear1d.out", Smooth<KN_INTERPOLATE_LINEAR>::signal);
    m.impl("upsample_linear1d_backward.grad_input", Smooth<KN_INTERPOLATE_LINEAR>::signal_backward);
    m.impl("upsample_bilinear2d.out", Smooth<KN_INTERPOLATE_BILINEAR>::image);
    m.impl("upsample_bilinear2d_backward.grad_input", Smooth<KN_INTERPOLATE_BILINEAR>::image_backward);
    m.impl("_upsample_bilinear2d_aa.out", Smooth<KN_INTERPOLATE_BILINEAR, true>::image);
    m.impl("_upsample_bilinear2d_aa_backward.grad_input", Smooth<KN_INTERPOLATE_BILINEAR, true>::image_backward);
    m.impl("upsample_bicubic2d.out", Smooth<KN_INTERPOLATE_BICUBIC>::image);
    m.impl("upsample_bicubic2d_backward.grad_input", Smooth<KN_INTERPOLATE_BICUBIC>::image_backward);
    m.impl("_upsample_bicubic2d_aa.out", Smooth<KN_INTERPOLATE_BICUBIC, true>::image);
    m.impl("_upsample_bicubic2d_aa_backward.grad_input", Smooth<KN_INTERPOLATE_BICUBIC, true>::image_backward);
    m.impl("upsample_trilinear3d.out", Smooth<KN_INTERPOLATE_TRILINEAR>::volume);
    m.impl("upsample_trilinear3d_backward.grad_input", Smooth<KN_INTERPOLATE_TRILINEAR>::volume_backward);

    m.impl("grid_sampler_2d", grid_sample);
    m.impl("grid_sampler_2d_backward", grid_sample_backward);
    m.impl("grid_sampler_3d", grid_sample);
    m.impl("grid_sampler_3d_backward", grid_sample_backward);

    m.impl("reflection_pad1d.out", pad_out<KN_PAD_REFLECT>);
    m.impl("reflection_pad1d_backward.grad_input", pad_backward_out<KN_PAD_REFLECT>);
    m.impl("reflection_pad2d", pad_new<KN_PAD_REFLECT>);
    m.impl("reflection_pad2d.out", pad_out<KN_PAD_REFLECT>);
    m.impl("reflection_pad2d_backward", pad_backward<KN_PAD_REFLECT>);
    m.impl("reflection_pad2d_backward.grad_input", pad_backward_out<KN_PAD_REFLECT>);
    m.impl("reflection_pad3d.out", pad_out<KN_PAD_REFLECT>);
    m.impl("reflection_pad3d_backward.grad_input", pad_backward_out<KN_PAD_REFLECT>);
    m.impl("replication_pad1d.out", pad_out<KN_PAD_REPLICATE>);
    m.impl("replication_pad1d_backward.grad_input", pad_backward_out<KN_PAD_REPLICATE>);
    m.impl("replication_pad2d.out", pad_out<KN_PAD_REPLICATE>);
    m.impl("replication_pad2d_backward", pad_backward<KN_PAD_REPLICATE>);
    m.impl("replication_pad2d_backward.grad_input", pad_backward_out<KN_PAD_REPLICATE>);
    m.impl("replication_pad3d.out", pad_out<KN_PAD_REPLICATE>);
    m.impl("replication_pad3d_backward", pad_backward<KN_PAD_REPLICATE>);
    m.impl("replication_pad3d_backward.grad_input", pad_backward_out<KN_PAD_REPLICATE>);

    m.impl("im2col", im2col);
    m.impl("col2im", col2im);
    m.impl("unfold_backward", unfold_backward);
}

} // namespace koine
