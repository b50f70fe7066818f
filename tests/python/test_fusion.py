"""Batch normalisation in the weights of the layer before it, and layers without first values."""
import pytest

import koine
from koine import nn
from koine.nn import utils


def seen(bn, x):
    """A normalisation that has seen batches, in evaluation mode."""
    with koine.no_grad():
        for one in (bn.weight, bn.bias):
            if one is not None:
                one.uniform_(0.5, 1.5)
    bn(x * 2 + 1)
    return bn.eval()


@pytest.mark.parametrize('make, transpose', [
    (lambda bias: nn.Conv2d(2, 4, 3, bias=bias), False), (lambda bias: nn.ConvTranspose2d(2, 4, 3, bias=bias), True),
    (lambda bias: nn.Linear(2, 4, bias=bias), None)])
@pytest.mark.parametrize('bias', [True, False])
@pytest.mark.parametrize('affine', [True, False])
def test_weights(make, transpose, bias, affine):
    layer = make(bias)
    x = koine.randn(5, 2, *(() if transpose is None else (6, 6)))
    bn = seen((nn.BatchNorm1d if transpose is None else nn.BatchNorm2d)(4, affine=affine), layer(x).detach())
    given = layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    weight, new_bias = (utils.fuse_linear_bn_weights(*given) if transpose is None else
                        utils.fuse_conv_bn_weights(*given, transpose=transpose))
    assert isinstance(weight, nn.Parameter) and weight.requires_grad and new_bias.requires_grad
    fused = make(True)
    fused.weight, fused.bias = weight, new_bias
    assert koine.allclose(fused(x), bn(layer(x)), atol=1e-5)
    frozen = utils.fuse_conv_bn_weights(layer.weight.detach(), *given[1:], transpose=bool(transpose))
    assert not frozen[0].requires_grad


def test_layers():
    conv, x = nn.Conv2d(2, 4, 3).eval(), koine.randn(2, 2, 5, 5)
    bn = seen(nn.BatchNorm2d(4), conv(x).detach())
    assert koine.allclose(utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-5)
    assert utils.fusion.fuse_linear_bn_eval is utils.fuse_linear_bn_eval


def test_layers_without_first_values():
    koine.manual_seed(3)
    layer = utils.skip_init(nn.Linear, 2, out_features=3, dtype='float64')
    after = koine.rand(1).item()
    koine.manual_seed(3)
    assert koine.rand(1).item() == after
    assert type(layer) is nn.Linear and layer.weight.shape == (3, 2) and layer.weight.dtype is koine.float64
    with pytest.raises(TypeError, match='skip_init: a class of modules is needed, not'):
        utils.skip_init(len)
