"""Parameters that are None, and deep copies of tensors and modules."""
import copy

import numpy
import pytest

import koine
from koine import nn
import test_modules
from test_modules import ARGUMENTS, LAYERS, inputs_of


class Block(test_modules.Block):
    def __init__(self, size):
        super().__init__(size)
        self.register_buffer('mask', None)
        self.names = ['a', self.fc]


# --- None -------------------------------------------------------------------------------------------------------------


def test_parameters_that_are_none():
    for layer in (nn.Linear(4, 3, bias=False), nn.Bilinear(2, 2, 2, bias=False), nn.Conv1d(1, 1, 1, bias=False),
                  nn.ConvTranspose3d(1, 1, 1, bias=False), nn.LayerNorm(4, bias=False)):
        assert layer.bias is None and layer.weight is not None
        with pytest.raises(AttributeError, match='running_mean'):
            layer.running_mean
    for layer in (nn.BatchNorm2d(3, affine=False), nn.LayerNorm(3, elementwise_affine=False),
                  nn.GroupNorm(1, 3, affine=False), nn.InstanceNorm1d(3)):
        assert layer.weight is None and layer.bias is None
    norm = nn.BatchNorm1d(3, track_running_stats=False)
    assert norm.running_mean is norm.running_var is norm.num_batches_tracked is None and norm.bias is not None
    assert nn.LSTMCell(2, 2, bias=False).bias_ih is None and nn.RMSNorm(2, elementwise_affine=False).weight is None
    attention = nn.MultiheadAttention(4, 2, bias=False, kdim=3)
    assert attention.in_proj_bias is attention.bias_k is attention.in_proj_weight is attention.out_proj.bias is None
    assert attention.q_proj_weight.shape == (4, 4)
    assert nn.CrossEntropyLoss().weight is None
    assert nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 4), 1).norm is None
    body = koine.models.resnet18(num_classes=2)
    assert body.conv1.bias is None and body.bn1.bias is not None
    assert list(nn.Linear(4, 3, bias=False).state_dict()) == ['weight']


def test_none_in_modules_of_python():
    block = Block(2)
    assert block.mask is None and 'mask' not in block.state_dict()
    block.mask = koine.ones(2)
    assert dict(block.named_buffers())['mask'].tolist() == [1, 1] and block.mask.tolist() == [1, 1]
    block.register_parameter('bias', None)
    block.later = None
    assert block.bias is None and block.later is None
    with pytest.raises(TypeError, match='bias is a parameter that is None; it cannot become an object of type Tensor'):
        block.bias = koine.ones(2)
    block.bias, block.later = nn.Parameter(koine.ones(2)), nn.Linear(2, 1)
    assert block.bias.requires_grad and 'later.weight' in dict(block.named_parameters())
    block._private = nn.Parameter(koine.ones(1))
    assert block._private.item() == 1
    block.again = block.bias
    assert koine.equal(block.again, block.bias) and len(list(block.parameters())) == 7


def test_what_cannot_become_none():
    block, layer = Block(2), nn.Linear(2, 2, bias=False)
    for wrong in (lambda: setattr(block, 'scale', 3), lambda: setattr(block, 'fc', koine.ones(2)),
                  lambda: setattr(layer, 'weight', 3)):
        with pytest.raises(TypeError, match='another one can replace'):
            wrong()
    for wrong in (lambda: setattr(layer, 'weight', None), lambda: layer.register_parameter('weight', None)):
        with pytest.raises(ValueError, match='computes with "weight", which can be replaced but not removed'):
            wrong()
    layer.bias = None
    with pytest.raises(ValueError, match='made without bias'):
        layer.bias = nn.Parameter(koine.ones(2))
    with pytest.raises(ValueError, match='made without norm'):
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 4), 1).norm = nn.LayerNorm(4)


# --- copies -----------------------------------------------------------------------------------------------------------


def apart(made, module):
    """Equal, and nothing shared."""
    state, other = made.state_dict(), module.state_dict()
    assert type(made) is type(module) and list(state) == list(other)
    for name in state:
        assert koine.equal(state[name], other[name]) and state[name].data_ptr() != other[name].data_ptr()
    assert [type(one) for one in made.modules()] == [type(one) for one in module.modules()]
    return made


def test_tensors():
    x = koine.tensor([1.0, 2.0], requires_grad=True)
    (x * 3).sum().backward()
    made, again = copy.deepcopy([x, x])
    assert made is again and made.requires_grad and made.grad.tolist() == [3, 3] and made.tolist() == [1, 2]
    made.grad.zero_()
    assert x.grad.tolist() == [3, 3]
    frozen = copy.deepcopy(nn.Parameter(koine.ones(2, dtype='float64'), requires_grad=False))
    assert type(frozen) is nn.Parameter and not frozen.requires_grad and frozen.dtype is koine.float64
    with pytest.raises(RuntimeError, match='not a leaf'):
        copy.deepcopy(x * 2)


@pytest.mark.parametrize('name', LAYERS)
def test_layers(name):
    """The same results, and the random numbers of the program as if nothing had been copied."""
    arguments = ARGUMENTS.get(name, ())
    layer = getattr(nn, name)(*(arguments() if callable(arguments) else arguments))
    koine.manual_seed(1)
    made = apart(copy.deepcopy(layer), layer)
    inputs = inputs_of(name)
    results = []
    for one in (layer, made):
        koine.manual_seed(2)
        result = one(*inputs)
        results.append(result[0] if isinstance(result, tuple) else result)
    numpy.testing.assert_array_equal(results[0].detach().numpy(), results[1].detach().numpy())


def test_a_copy_draws_nothing():
    layer = nn.Linear(3, 3)
    koine.manual_seed(1)
    expected = koine.rand(4).tolist()
    koine.manual_seed(1)
    copy.deepcopy(layer)
    assert koine.rand(4).tolist() == expected


def test_subclasses_of_layers():
    class Named(nn.Linear):
        def __init__(self):
            super().__init__(2, 3)
            self.names = ['a']

    layer = Named()
    made = apart(copy.deepcopy(layer), layer)
    assert made.names == ['a'] and made.names is not layer.names
    layer = nn.Linear(2, 2).double().eval()
    layer.bias.requires_grad = False
    made = apart(copy.deepcopy(layer), layer)
    assert not made.training and not made.bias.requires_grad and made.weight.requires_grad
    weighted = nn.CrossEntropyLoss(weight=koine.tensor([1.0, 2.0]), label_smoothing=0.1)
    inputs = koine.randn(3, 2), koine.tensor([0, 1, 1])
    assert copy.deepcopy(weighted)(*inputs).item() == weighted(*inputs).item()


def test_networks():
    class Net(nn.Sequential):
        pass

    net = Net(nn.Linear(4, 8), Block(8), nn.ModuleDict({'a': nn.ModuleList([nn.ReLU(), Block(2)]), 'b': nn.Tanh()}),
              nn.ParameterDict({'x': koine.ones(2)}), nn.ParameterList([koine.zeros(2), koine.ones(1)]),
              nn.Sequential(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 4), 2, nn.LayerNorm(4))))
    net[1].eval()
    net[1].fc.train()
    net[1].fc.weight.requires_grad = False
    net[1].mask = koine.ones(3)
    net.note = {'block': net[1]}
    made = apart(copy.deepcopy(net), net)
    assert [one.training for one in made.modules()] == [one.training for one in net.modules()]
    assert [one.requires_grad for one in made.parameters()] == [one.requires_grad for one in net.parameters()]
    assert made.note['block'] is made[1] and made[1].names[1] is made[1].fc and made[1].names is not net[1].names
    assert made[2]['a'][1].mask is None
    x = koine.randn(3, 4)
    assert koine.equal(made[:2][1](made[0](x)), net[1](net[0](x)))
    apart(copy.deepcopy(made[5][0].layers[1]), net[5][0].layers[1])
    assert apart(copy.deepcopy(made), net)[3]['x'].requires_grad


def test_no_call_of_init():
    class Counted(nn.Module):
        made = 0

        def __init__(self, size):
            super().__init__()
            Counted.made += 1
            self.size = size
            self.owner = None
            self.register_parameter('bias', None)

        def forward(self, x):
            return x * self.size

    net = Counted(3)
    net.part = Counted(4)
    net.part.owner = [net]
    made = copy.deepcopy(net)
    assert Counted.made == 2 and made.part.size == 4 and made.part.owner[0] is made and made.bias is None
    part = copy.deepcopy(net.part)
    assert part.owner[0].part is part and part.owner[0] is not net
    assert nn.Sequential(made)(koine.ones(1)).item() == 3


def test_tied_parameters():
    net = nn.ModuleDict({'embedding': nn.Embedding(5, 3), 'block': Block(3), 'head': nn.Linear(3, 5, bias=False)})
    net['head'].weight = net['embedding'].weight
    net['block'].twice = net['block'].scale
    made = copy.deepcopy(net)
    assert len(list(made.parameters())) == len(list(net.parameters())) == 4
    with koine.no_grad():
        made['embedding'].weight.fill_(2.0)
        made['block'].twice.fill_(3.0)
    assert made['head'](koine.ones(1, 3)).tolist() == [[6] * 5] and made['block'].scale.tolist() == [3] * 3
    assert net['block'].scale.tolist() == [1] * 3 and not koine.equal(net['head'].weight, made['head'].weight)
    optimizer = koine.optim.SGD(made.parameters(), lr=0.1)
    made['head'](made['embedding'](koine.tensor([1]))).sum().backward()
    optimizer.step()
    assert net['embedding'].weight.grad is None


def test_models():
    net = koine.models.resnet18(num_classes=10, small_images=True).eval()
    net.fc = nn.Linear(512, 2)
    made = apart(copy.deepcopy(net), net)
    x = koine.randn(1, 3, 8, 8)
    assert koine.equal(made(x), net(x)) and made.fc.weight.shape == (2, 512)
    holder = nn.Sequential(koine.models.mlp(4, 8, 3), nn.Tanh())
    apart(copy.deepcopy(holder), holder)
    apart(copy.deepcopy(net.fc), net.fc)
    with pytest.raises(TypeError, match='made by calling their class'):
        copy.deepcopy(net.layer1)


def test_hooks():
    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.seen = nn.Linear(2, 2), []
            self.fc.register_forward_hook(self.see)

        def see(self, *given):
            self.seen.append(given)

        def forward(self, x):
            return self.fc(x)

    net = Watched()
    made = copy.deepcopy(net)
    made(koine.ones(1, 2))
    assert len(made.seen) == 1 and made.seen[0][0] is made.fc and not net.seen


# --- optimizers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('make', [
    lambda net: koine.optim.SGD([{'params': [net.weight], 'lr': 0.5}, {'params': [net.bias]}], 0.1, momentum=0.9),
    lambda net: koine.optim.AdamW(net.parameters(), lr=0.1, betas=(0.8, 0.9), amsgrad=True),
    lambda net: koine.optim.LBFGS(net.parameters(), line_search_fn='strong_wolfe', max_iter=3)])
def test_optimizers(make):
    net, x = nn.Linear(3, 2), koine.randn(4, 3)

    def steps(net, optimizer):
        for _ in range(2):
            def closure():
                optimizer.zero_grad()
                loss = net(x).square().sum()
                loss.backward()
                return loss
            optimizer.step(closure)

    optimizer = make(net)
    steps(net, optimizer)
    other_net, other = copy.deepcopy((net, optimizer))
    assert type(other) is type(optimizer) and other.defaults == optimizer.defaults
    assert [one['lr'] for one in other.param_groups] == [one['lr'] for one in optimizer.param_groups]
    before = net.weight.detach().clone()
    steps(other_net, other)
    assert koine.equal(net.weight, before) and not koine.equal(other_net.weight, before)
    steps(net, optimizer)
    assert koine.equal(net.weight, other_net.weight) and koine.equal(net.bias, other_net.bias)
