"""Lazy layers."""
import copy

import pytest

import koine
from koine import nn

# name: (arguments without the number of features, shape of an input, number of features)
LAYERS = {
    'Linear': ((3,), (2, 4, 5), 5),
    **{'Conv%dd' % n: ((4, 3, 1, 1), (2, 3, *(5,) * n), 3) for n in (1, 2, 3)},
    **{'ConvTranspose%dd' % n: ((4, 3), (2, 3, *(5,) * n), 3) for n in (1, 2, 3)},
    **{'BatchNorm%dd' % n: ((1e-3,), (2, 3, *(4,) * n), 3) for n in (1, 2, 3)},
    **{'InstanceNorm%dd' % n: ((1e-3,), (2, 3, *(4,) * n), 3) for n in (1, 2, 3)},
}
AFFINE = {'affine': True, 'track_running_stats': True}  # which lazy instance normalisation is


def made(name):
    """(a lazy layer, the plain one with the same values, an input)."""
    arguments, shape, features = LAYERS[name]
    plain = getattr(nn, name)(features, *arguments, **(AFFINE if name.startswith('Instance') else {}))
    return getattr(nn, 'Lazy' + name)(*arguments), plain, koine.randn(shape)


@pytest.mark.parametrize('name', LAYERS)
def test_first_call(name):
    koine.manual_seed(1)
    _, plain, x = made(name)
    lazy, kind = made(name)[0], getattr(nn, name)
    assert type(lazy) is getattr(nn, 'Lazy' + name) and isinstance(lazy, kind) and lazy.has_uninitialized_params()
    koine.manual_seed(1)
    result = lazy(x)
    assert type(lazy) is kind and repr(lazy) == repr(plain) and not hasattr(lazy, 'has_uninitialized_params')
    assert result.tolist() == plain(x).tolist() and lazy(x).tolist() == plain(x).tolist()
    assert [(name, one.shape) for name, one in lazy.named_parameters()] == [
        (name, one.shape) for name, one in plain.named_parameters()]
    copied = copy.deepcopy(lazy)
    assert type(copied) is kind and copied(x).tolist() == lazy(x).tolist()


@pytest.mark.parametrize('name', LAYERS)
def test_states(name):
    lazy, plain, x = made(name)
    plain(x)
    state = plain.state_dict()
    assert dict(lazy.state_dict()) == {} and lazy.load_state_dict(state).missing_keys == []
    assert type(lazy) is type(plain) and lazy.eval()(x).tolist() == plain.eval()(x).tolist()


def test_before_the_first_call(tmp_path):
    layer = nn.LazyLinear(3, bias=False)
    assert layer.in_features == 0 and layer.out_features == 3 and 'in_features=0, out_features=3' in repr(layer)
    assert [name for name, _ in layer.named_parameters()] == ['weight'] and layer.bias is None
    assert isinstance(layer.weight, nn.UninitializedParameter) and nn.parameter.is_lazy(layer.weight)
    assert isinstance(nn.LazyBatchNorm1d().running_mean, nn.UninitializedBuffer) and layer.weight.grad is None
    assert [name for name, _ in nn.LazyBatchNorm2d(affine=False).named_parameters()] == []
    for early in (lambda: layer.weight.shape, lambda: layer.weight + 1, lambda: nn.init.zeros_(layer.weight),
                  lambda: koine.optim.SGD(layer.parameters(), lr=1.0)):
        with pytest.raises(RuntimeError, match='LazyLinear: weight has no shape before the first call of the layer'):
            early()
    with pytest.raises(RuntimeError, match='call it with a sample before weight is replaced'):
        layer.weight = nn.Parameter(koine.ones(3, 2))
    with pytest.raises(ValueError, match='LazyConv2d: its input has 3 or 4 dimensions, not 2'):
        nn.LazyConv2d(2, 3)(koine.ones(2, 2))
    with pytest.raises(TypeError, match='its input is a koine.Tensor, not list'):
        layer([1.0])
    with pytest.raises(RuntimeError, match='some layers have no parameters yet'):
        nn.parallel.DistributedDataParallel(nn.Sequential(layer))
    with pytest.raises(TypeError, match='out_features'):
        nn.LazyLinear()
    held = layer.weight
    layer(koine.ones(2, 4))
    assert type(held) is nn.Parameter and held is layer.weight


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Flatten())
        self.head = nn.LazyLinear(2)

    def forward(self, x):
        return self.head(self.features(x))


def test_networks(tmp_path):
    net, x = Net(), koine.randn(3, 2, 6, 6)
    assert len(list(net.parameters())) == 6 and len(list(net.buffers())) == 2
    first = copy.deepcopy(net).eval()
    net(x)
    assert [type(one) for one in net.features][:2] == [nn.Conv2d, nn.BatchNorm2d] and type(net.head) is nn.Linear
    optimizer = koine.optim.SGD(net.parameters(), lr=0.1)
    before = net.head.weight.detach().clone()
    net(x).pow(2).sum().backward()
    optimizer.step()
    assert net.features[0].weight.grad is not None and not koine.equal(before, net.head.weight)
    file = tmp_path / 'net.safetensors'
    net.eval().save(file)
    assert first.load(file)(x).tolist() == net(x).tolist() and type(first.head) is nn.Linear
    again = Net()
    again.load_state_dict(net.state_dict())
    assert again.eval()(x).tolist() == net(x).tolist()
    with pytest.raises(RuntimeError, match='missing: head.weight, head.bias'):
        net.load_state_dict(nn.ModuleDict({'features': net.features}).state_dict())


def test_several_parents():
    shared = nn.LazyLinear(4)
    one, other = nn.Sequential(shared, nn.Tanh()), nn.ModuleDict({'layer': shared})
    one(koine.ones(2, 4))
    assert one[0] is shared is other['layer'] and type(shared) is nn.Linear
    assert {name for name, _ in other.named_parameters()} == {'layer.weight', 'layer.bias'}
    del one
    assert other['layer'](koine.ones(1, 4)).shape == (1, 4)


def test_what_was_set_before():
    net = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()).to(koine.float64).eval().requires_grad_(False)
    assert not net[0].weight.requires_grad
    net[0].note = 'mine'
    assert net(koine.ones(2, 3, dtype='float64')).dtype is koine.float64
    assert net[0].weight.dtype is koine.float64 and net[0].note == 'mine'
    assert not any(one.requires_grad for one in net.parameters()) and not any(one.training for one in net.modules())
    layer = nn.LazyLinear(4, device='cpu', dtype='float64')
    layer.weight.requires_grad = False
    layer(koine.ones(1, 2, dtype='float64'))
    assert not layer.weight.requires_grad and layer.bias.requires_grad and layer.bias.dtype is koine.float64


@pytest.mark.parametrize('inside', [False, True])
def test_hooks(inside):
    layer, calls = nn.LazyLinear(2), []
    handles = [layer.register_forward_pre_hook(lambda module, inputs: calls.append('pre')),
               layer.register_forward_hook(lambda module, inputs, output: calls.append(type(module).__name__)),
               layer.register_full_backward_hook(lambda module, before, after: calls.append('backward'))]
    called = nn.Sequential(layer, nn.ReLU()) if inside else layer
    x = koine.ones(1, 3, requires_grad=True)
    for _ in range(2):
        calls.clear()
        called(x).sum().backward()
        assert calls == ['pre', 'Linear', 'backward']
    for one in handles:
        one.remove()
    calls.clear()
    called(x).sum().backward()
    assert calls == []


def test_initialisation_by_apply():
    net = nn.Sequential(nn.LazyLinear(2), nn.LazyLinear(1))
    net(koine.ones(1, 3))

    def ones(module):
        if isinstance(module, nn.Linear):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)

    assert net.apply(ones)(koine.ones(1, 3)).item() == 6
