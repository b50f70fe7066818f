"""The tree of a module by name: parts, states, what is not saved; and what is set for all of it."""
import pytest

import koine
from koine import nn
from test_modules import ARGUMENTS


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        self.scale = nn.Parameter(koine.ones(3))
        self.register_buffer('mask', koine.ones(3))
        self.register_buffer('cache', koine.zeros(2), persistent=False)

    def forward(self, x):
        return self.body(x) * self.scale


def tied():
    net = nn.ModuleDict({'embedding': nn.Embedding(5, 3), 'head': nn.Linear(3, 5, bias=False)})
    net['head'].weight = net['embedding'].weight
    return net


# --- by name ----------------------------------------------------------------------------------------------------------


def test_parts_by_name():
    net = Net()
    assert net.get_submodule('') is net and net.get_submodule('body.0') is net.body[0]
    assert net.get_parameter('body.0.weight').shape == (3, 2) and net.get_parameter('scale').shape == (3,)
    assert net.get_buffer('body.1.running_var').tolist() == [1, 1, 1] and net.get_buffer('mask').shape == (3,)
    for wrong, words in ((lambda: net.get_submodule('body.7'), "Sequential has no child '7', for the module 'body.7'"),
                         (lambda: net.get_submodule('scale'), "Net has no child 'scale'"),
                         (lambda: net.get_parameter('mask'), "Net has no parameter 'mask'"),
                         (lambda: net.get_buffer('body.0.weight'), "Linear has no buffer 'weight'"),
                         (lambda: net.get_buffer('nothing'), "Net has no buffer 'nothing'")):
        with pytest.raises(AttributeError, match=words):
            wrong()
    assert [name for name, _ in net.named_parameters('net')][:2] == ['net.scale', 'net.body.0.weight']
    assert [name for name, _ in net.named_parameters(recurse=False)] == ['scale']
    assert [name for name, _ in net.named_buffers(recurse=False)] == ['mask', 'cache']
    assert len(list(net.parameters(recurse=False))) == 1 and len(list(net.buffers())) == 5
    assert [name for name, _ in tied().named_parameters()] == ['embedding.weight']
    assert [name for name, _ in tied().named_parameters(remove_duplicate=False)] == ['embedding.weight', 'head.weight']
    assert type(net.mask) is type(net.body[1].running_mean) is type(next(net.buffers())) is koine.Tensor
    assert type(net.scale) is nn.Parameter


# --- states -----------------------------------------------------------------------------------------------------------


def test_states_of_tied_parameters(tmp_path):
    net, other = tied(), tied()
    state = net.state_dict()
    assert list(state) == ['embedding.weight', 'head.weight']
    net.save(tmp_path / 'net.safetensors')
    for given in (state, koine.load(tmp_path / 'net.safetensors'), {'head.weight': state['head.weight']}):
        with koine.no_grad():
            other['head'].weight.zero_()
        assert other.load_state_dict(given) == ([], []) and koine.equal(other['embedding'].weight, state['head.weight'])
    with pytest.raises(RuntimeError, match='missing: embedding.weight, head.weight'):
        other.load_state_dict({})


def test_states():
    net = Net()
    assert list(net.state_dict(prefix='net.'))[:3] == ['net.scale', 'net.mask', 'net.body.0.weight']
    assert net.state_dict(keep_vars=True)['scale'].requires_grad and not net.state_dict()['scale'].requires_grad
    found = net.load_state_dict({'scale': koine.zeros(3), 'more': 1}, strict=False)
    assert found.unexpected_keys == ['more'] and found.missing_keys[0] == 'mask' and net.scale.tolist() == [0, 0, 0]


def test_buffers_that_are_not_saved(tmp_path):
    net, file = Net(), tmp_path / 'net.safetensors'
    assert 'cache' not in net.state_dict() and 'mask' in net.state_dict()
    net.save(file)
    assert sorted(koine.load(file)) == sorted(net.state_dict())
    other = nn.Sequential(Net())
    other.load_state_dict({'0.' + name: one for name, one in net.state_dict().items()})
    other[0].cache = koine.ones(2)
    with koine.no_grad():
        net.scale.fill_(3.0)
    net.save(file)
    assert other[0].load(file) is other[0] and other[0].scale.tolist() == [3, 3, 3]
    assert other[0].cache.tolist() == [1, 1]
    other.save(file)
    assert list(koine.load(file))[0].startswith('0.') and net.load(file, prefix='0.').scale.tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match='missing: scale'):
        net.load(file)
    net.register_buffer('cache', koine.zeros(1))
    assert 'cache' in net.state_dict()


# --- what is set ------------------------------------------------------------------------------------------------------


def test_dtypes_and_devices():
    net = Net()
    scale = net.scale
    assert net.type(koine.float64) is net and net.scale.dtype is net.cache.dtype is scale.dtype is koine.float64
    assert net.to(koine.zeros(1, dtype='float32')).scale.dtype is koine.float32
    assert net.half().mask.dtype is koine.float16 and net.to('float', True).mask.dtype is koine.float32
    assert net.body[1].num_batches_tracked.dtype is koine.int64
    assert net.cpu().scale.device == koine.device('cpu')
    assert koine.ones(1).to('double').dtype is koine.tensor(1, dtype='double').dtype is koine.float64


def test_gradients_are_dropped():
    net = Net()
    net(koine.randn(4, 2)).sum().backward()
    gradient = net.scale.grad
    net.zero_grad(set_to_none=False)
    assert gradient.tolist() == net.scale.grad.tolist() == [0, 0, 0]
    net.zero_grad()
    assert net.scale.grad is None


# --- first values and text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', sorted(nn._reset.METHODS))
def test_first_values_again(name):
    make = getattr(nn, name)
    koine.manual_seed(3)
    expected = make(*ARGUMENTS.get(name, ())).state_dict()
    layer = make(*ARGUMENTS.get(name, ()))
    for tensor in layer.state_dict().values():
        tensor.fill_(7)
    held = list(layer.parameters())
    koine.manual_seed(3)
    layer.reset_parameters()
    state = layer.state_dict()
    assert list(state) == list(expected) and all(koine.equal(state[key], expected[key]) for key in state)
    assert all(one.requires_grad and koine.equal(one, other) for one, other in zip(held, layer.parameters()))


def test_which_layers_have_first_values():
    body = koine.models.resnet18(num_classes=3, small_images=True)
    with koine.no_grad():
        for tensor in body.state_dict().values():
            tensor.fill_(7)
    for module in body.modules():
        if hasattr(module, 'reset_parameters'):
            module.reset_parameters()
    assert body.bn1.weight.tolist() == [1] * 64 and body.layer1[0].bn1.running_var.tolist() == [1] * 64
    assert 0 < body.layer4[1].conv2.weight.abs().max().item() < 0.1 and body.bn1.num_batches_tracked.item() == 0
    assert not hasattr(nn.ReLU(), 'reset_parameters') and not hasattr(nn.Sequential(), 'reset_parameters')
    nn.LayerNorm(3, elementwise_affine=False).reset_parameters()
    table = nn.Embedding(3, 2, padding_idx=1, dtype='float64')
    table.reset_parameters()
    assert table.weight.dtype is koine.float64 and table.weight[1].tolist() == [0, 0]


def test_running_stats_again():
    norm = nn.BatchNorm1d(2)
    norm(koine.randn(4, 2) + 3)
    with koine.no_grad():
        norm.weight.fill_(5.0)
    norm.reset_running_stats()
    assert norm.running_mean.tolist() == [0, 0] and norm.running_var.tolist() == [1, 1]
    assert norm.num_batches_tracked.item() == 0 and norm.weight.tolist() == [5, 5]
    nn.InstanceNorm2d(2).reset_running_stats()


def test_text_of_ones_own():
    class Scale(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def extra_repr(self):
            return 'factor=%s,\nkept' % self.factor

    class Both(Scale):
        def __init__(self):
            super().__init__(1)
            self.part = nn.Sequential(Scale(2), nn.Linear(2, 3))

    net = Both()
    assert 'Both(\n  factor=1, kept\n' in repr(net) and '(0): Scale(factor=2, kept)\n' in repr(net)
    net.part[0].factor = 5
    assert 'Scale(factor=5, kept)' in net.summary() and repr(Scale(3)).startswith('Scale(factor=3, kept)')
    assert net.part[1].extra_repr() == 'in_features=2, out_features=3, bias=True'
    assert Net().extra_repr() == nn.Sequential(nn.ReLU()).extra_repr() == nn.ReLU().extra_repr() == ''
