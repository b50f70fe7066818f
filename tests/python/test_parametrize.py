"""Parameters that are computed from others."""
import copy
import gc

import numpy
import pytest

import koine
from koine import nn
from koine.nn.utils import parametrize
from koine.nn.utils.parametrizations import spectral_norm, weight_norm


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


class Exponential(nn.Module):
    def forward(self, x):
        return x.exp()

    def right_inverse(self, value):
        return value.log()


class Difference(nn.Module):
    def forward(self, a, b):
        return a - b

    def right_inverse(self, value):
        return value * 3, value * 2


def test_weight_norm():
    layer = nn.Linear(2, 3)
    before, x = layer.weight.detach().clone(), koine.randn(4, 2)
    assert weight_norm(layer) is layer and parametrize.is_parametrized(layer) and repr(layer).count('_WeightNorm') == 1
    names = ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    assert list(layer.state_dict()) == [name for name, _ in layer.named_parameters()] == names
    assert koine.allclose(layer.weight, before) and layer.weight.requires_grad and type(layer.weight) is koine.Tensor
    norms = layer.parametrizations.weight.original0
    numpy.testing.assert_allclose(norms.detach().numpy()[:, 0], numpy.linalg.norm(before.numpy(), axis=1), rtol=1e-6)
    with koine.no_grad():
        norms.fill_(2.0)
    numpy.testing.assert_allclose(layer.weight.norm(dim=1).detach().numpy(), [2] * 3, rtol=1e-6)
    layer(x).sum().backward()
    assert norms.grad is not None and koine.allclose(layer(x), x @ layer.weight.T + layer.bias)
    layer.weight = before * 5
    assert koine.allclose(layer.weight, before * 5)
    assert weight_norm(nn.Linear(2, 3), dim=None).parametrizations.weight.original0.shape == ()
    for wrong, words in ((lambda: setattr(layer, 'weight', None), 'weight is computed by a parametrization'),
                         (lambda: delattr(layer, 'weight'), 'remove the parametrization first'),
                         (lambda: copy.deepcopy(layer), 'cannot be copied')):
        with pytest.raises((TypeError, AttributeError), match=words):
            wrong()


def test_spectral_norm():
    layer = spectral_norm(nn.Linear(4, 3), n_power_iterations=20)
    assert list(layer.state_dict()) == ['bias', 'parametrizations.weight.original', 'parametrizations.weight.0._u',
                                        'parametrizations.weight.0._v']
    layer(koine.randn(2, 4))
    layer.eval()
    assert numpy.linalg.norm(layer.weight.detach().numpy(), 2) == pytest.approx(1, rel=1e-4)
    with pytest.raises(ValueError, match='no parameter or buffer "nothing"'):
        spectral_norm(nn.Linear(2, 2), 'nothing')


def test_older_names():
    utils = nn.utils
    layer, other = nn.Conv1d(2, 4, 3), nn.Conv1d(2, 4, 3)
    weight = layer.weight.detach().clone()
    assert utils.weight_norm(layer, name='weight', dim=2) is layer
    assert layer.parametrizations.weight.original0.shape == (1, 1, 3)
    layer.parametrizations.weight.original0.detach().mul_(2)
    assert koine.allclose(layer.weight, 2 * weight, atol=1e-6)
    with pytest.raises(ValueError, match='remove_spectral_norm: weight of Conv1d is not what spectral_norm made of it'):
        utils.remove_spectral_norm(layer)
    assert utils.remove_weight_norm(layer) is layer and not parametrize.is_parametrized(layer)
    assert koine.allclose(layer.weight, 2 * weight, atol=1e-6) and layer.weight.requires_grad
    with pytest.raises(ValueError, match='remove_weight_norm: weight of Conv1d'):
        utils.remove_weight_norm(layer)
    utils.spectral_norm(other, n_power_iterations=30).eval()
    norm = numpy.linalg.norm(other.weight.detach().numpy().reshape(4, 6), 2)
    assert norm == pytest.approx(1, rel=1e-3)
    assert utils.remove_spectral_norm(other) is other and type(other.weight) is nn.Parameter
    assert numpy.linalg.norm(other.weight.detach().numpy().reshape(4, 6), 2) == pytest.approx(norm)
    parametrize.register_parametrization(other, 'bias', Exponential())
    with pytest.raises(ValueError, match='remove_weight_norm: bias'):
        utils.remove_weight_norm(other, 'bias')


def test_parametrizations_of_ones_own():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, 'weight', Symmetric())
    gc.collect()
    assert isinstance(layer.parametrizations.weight[0], Symmetric)
    assert koine.equal(layer.weight, layer.weight.T)
    assert koine.allclose(layer(koine.eye(3)), layer.weight.T + layer.bias, atol=1e-6)
    layer(koine.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad[2, 0].item() == 0
    parametrize.register_parametrization(layer, 'bias', Exponential())
    layer.bias = koine.full((3,), 2.0)
    assert layer.bias.tolist() == pytest.approx([2] * 3)
    assert layer.parametrizations.bias.original.tolist() == pytest.approx([numpy.log(2)] * 3)
    held = layer.parametrizations.weight
    weight = layer.weight.detach().clone()
    assert parametrize.remove_parametrizations(layer, 'weight') is layer
    assert koine.equal(layer.weight, weight) and type(layer.weight) is nn.Parameter
    assert parametrize.is_parametrized(layer, 'bias') and not parametrize.is_parametrized(layer, 'weight')
    parametrize.remove_parametrizations(layer, 'bias', leave_parametrized=False)
    assert layer.bias.tolist() == pytest.approx([numpy.log(2)] * 3) and not parametrize.is_parametrized(layer)
    assert not hasattr(layer, 'parametrizations') and len(list(layer.parameters())) == 2
    with pytest.raises(AttributeError, match='was freed'):
        len(held)


def test_parametrizations_of_several_originals():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(koine.tensor([1.0, 2.0]))

        def forward(self, x):
            return x * self.scale

    net = Net()
    parametrize.register_parametrization(net, 'scale', Difference())
    assert net.parametrizations.scale.original0.tolist() == [3, 6] and net(koine.ones(2)).tolist() == [1, 2]
    assert nn.Sequential(net)(koine.ones(2)).tolist() == [1, 2]  # the library calls forward
    net(koine.ones(2)).sum().backward()
    assert net.parametrizations.scale.original1.grad.tolist() == [-1, -1]
    net.scale = koine.tensor([4.0, 4.0])
    assert net.scale.tolist() == [4, 4]

    class Wrong(Difference):
        def right_inverse(self, value):
            return value

    with pytest.raises(ValueError, match='right_inverse returned 1 tensors; forward takes 2'):
        parametrize.register_parametrization(nn.Linear(2, 2), 'bias', Wrong())
    with pytest.raises(TypeError, match='koine.nn.Module is needed, not function'):
        parametrize.register_parametrization(nn.Linear(2, 2), 'bias', lambda x: x)
    with pytest.raises(ValueError):
        parametrize.remove_parametrizations(nn.Linear(2, 2), 'weight')


def test_computed_tensors_are_freed():
    layer = weight_norm(nn.Linear(64, 64))
    inside = nn.Sequential(layer)

    def use():
        for _ in range(3):
            layer.weight.sum().backward()
            inside(koine.ones(1, 64)).sum().backward()

    use()
    gc.collect()
    koine.synchronize()
    before = koine.memory_allocated()
    use()
    gc.collect()
    koine.synchronize()
    assert koine.memory_allocated() == before


def test_names_of_parametrizations():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, 'weight', Symmetric())
    found = layer.parametrizations.weight
    assert isinstance(found, parametrize.ParametrizationList) and isinstance(found, nn.ModuleList)
    assert koine.equal(found(), layer.weight) and len(found) == 1
    assert parametrize.type_before_parametrizations(layer) is nn.Linear


def test_cached_values():
    calls = []

    class Counted(Symmetric):
        def forward(self, x):
            calls.append(1)
            return super().forward(x)

    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, 'weight', Counted())
    calls.clear()
    with parametrize.cached():
        first = layer.weight
        with parametrize.cached():
            assert layer.weight is first
        assert layer.weight is first and len(calls) == 1
        (layer.weight + layer.weight).sum().backward()
        assert layer.parametrizations.weight.original.grad[0, 2].item() == 4
        layer.weight = koine.eye(3)
        assert koine.equal(layer.weight, koine.eye(3))
    calls.clear()
    assert koine.equal(layer.weight, layer.weight) and len(calls) == 2
