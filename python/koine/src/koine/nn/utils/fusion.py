"""torch.nn.utils.fusion: layers and weights that do the work of the batch normalisation behind them."""
from ..._c import lib
from ..._functions import zeros_like
from .._parameter import Parameter
from ..module import root


def fuse_conv_bn_eval(conv, bn):
    """A convolution that gives bn(conv(x)); both are in evaluation mode."""
    return root(lib.kn_fuse_conv_bn_eval(conv._h, bn._h))


def fuse_linear_bn_eval(linear, bn):
    """A linear layer that gives bn(linear(x)); both are in evaluation mode."""
    return root(lib.kn_fuse_linear_bn_eval(linear._h, bn._h))


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """(weight, bias) of a convolution that does the normalisation, too; transpose: of a transposed one. Of the layer's
    bias, and of the normalisation's weight and bias, None stands for none."""
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """The same of a linear layer."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fused(weight, bias, mean, variance, eps, bn_weight, bn_bias, dim):
    before = zeros_like(mean) if bias is None else bias
    scale = (variance + eps).rsqrt()
    scale = scale if bn_weight is None else scale * bn_weight
    after = (before - mean) * scale
    after = after if bn_bias is None else after + bn_bias
    by_channel = [-1 if i == dim else 1 for i in range(weight.ndim)]
    return (Parameter((weight * scale.reshape(by_channel)).to(dtype=weight.dtype), weight.requires_grad),
            Parameter(after.to(dtype=before.dtype), before.requires_grad if bias is not None else weight.requires_grad))
