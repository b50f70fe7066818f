// convolution.cpp - convolutions in one to three dimensions.
#include "compute.h"
#include "kernels.h"

#include <koine/conv.h>

namespace koine
{
namespace
{

// By dimensions 1 to 3, transposed or not.
const kn_op *conv_op(const at::Tensor &x, bool transposed, bool backward)
{
    static const Op ops[2][2][3] = {
        {{Op("conv1d"), Op("conv2d"), Op("conv3d")},
         {Op("conv_transpose1d"), Op("conv_transpose2d"), Op("conv_transpose3d")}},
        {{Op("conv1d_backward"), Op("conv2d_backward"), Op("conv3d_backward")},
         {Op("conv_transpose1d_backward"), Op("conv_transpose2d_backward"), Op("conv_transpose3d_backward")}}};
    const int64_t dims = x.dim() - 2;
    TORCH_CHECK(dims >= 1 && dims <= 3, "the device koine convolves in 1 to 3 dimensions, not ", dims);
    return ops[backward][transposed][dims - 1];
}

// One number stands for all dimensions.
void set(int64_t *all, at::IntArrayRef values)
{
    for (size_t i = 0; i < 3 && !values.empty(); i++)
        all[i] = values.size() == 1 ? values[0] : i < values.size() ? values[i] : 0;
}

kn_conv_params params_of(const kn_op *op, at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                         at::IntArrayRef output_padding, int64_t groups)
{
    kn_conv_params params = defaults<kn_conv_params>(op);
    set(params.strides, stride);
    set(params.paddings, padding);
    set(params.dilations, dilation);
    set(params.output_paddings, output_padding);
    params.groups = groups;
    return params;
}

at::Tensor convolution(const at::Tensor &x, const at::Tensor &weight, const std::optional<at::Tensor> &bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups)
{
    const kn_op *const op = conv_op(x, transposed, false);
    const kn_conv_params params =
        params_of(op, stride, padding, dilation, transposed ? output_padding : at::IntArrayRef(), groups);
    return call(op, Tensors(x, weight, bias), &params);
}

// Of the bias the pass needs only the shape.
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor &grad, const at::Tensor &x,
                                                                    const at::Tensor &weight, at::IntArrayRef stride,
                                                                    at::IntArrayRef padding, at::IntArrayRef dilation,
                                                                    bool transposed, at::IntArrayRef output_padding,
                                                                    int64_t groups, std::array<bool, 3> wanted)
{
    const kn_op *const op = conv_op(x, transposed, true);
    const kn_conv_params params =
        params_of(op, stride, padding, dilation, transposed ? output_padding : at::IntArrayRef(), groups);
    Tensors arguments(grad, x, weight), results;
    if (wanted[2])
        arguments.add(empty({grad.size(1)}, grad.scalar_type(), grad.device()));
    for (bool one : wanted)
        one ? results.add(Tensor()) : results.skip();
    call(op, std::move(arguments), &params, results);
    const auto take = [&](int i) { return wanted[i] ? from_koine(results.take(i)) : at::Tensor(); };
    return {take(0), take(1), take(2)};
}

} // namespace

KOINE_KERNELS(m)
{
    m.impl("convolution_overrideable", convolution);
    m.impl("convolution_backward_overrideable", convolution_backward);
}

} // namespace koine
