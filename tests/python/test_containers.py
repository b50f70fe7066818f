"""Parts of modules that are taken out, and what containers can do with theirs."""
import copy
import gc

import pytest

import koine
from koine import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(2, 3), nn.Linear(3, 1)
        self.scale = nn.Parameter(koine.ones(3))
        self.register_buffer('mask', koine.ones(3))

    def forward(self, x):
        return self.body(x)


def names(module):
    return [name for name, _ in module.named_children()]


# --- taking out -------------------------------------------------------------------------------------------------------


def test_parts_are_deleted():
    net = Net()
    head = net.head
    del net.head
    assert names(net) == ['body'] and not hasattr(net, 'head') and head(koine.ones(1, 3)).shape == (1, 1)
    assert list(net.state_dict()) == ['scale', 'mask', 'body.weight', 'body.bias']
    del net.scale, net.mask
    assert list(net.state_dict()) == ['body.weight', 'body.bias'] and not hasattr(net, 'mask')
    for name in ('head', 'scale', 'nothing'):
        with pytest.raises(AttributeError, match="Net has no attribute '%s'" % name):
            delattr(net, name)
    net.head, net.scale, net.plain = nn.Sequential(head), nn.Parameter(koine.zeros(1)), 3
    assert names(net) == ['body', 'head'] and net.head[0] is head and net.scale.tolist() == [0]
    del net.plain
    assert not hasattr(net, 'plain')
    net.register_buffer('mask', None)
    del net.mask
    net.mask = 'plain'
    assert net.mask == 'plain' and not list(net.buffers())


def test_parts_become_none():
    net = Net()
    head = net.head
    net.head = net.scale = net.mask = None
    assert net.head is net.scale is net.mask is None and list(net.state_dict()) == ['body.weight', 'body.bias']
    with pytest.raises(TypeError, match='head is a child that is None'):
        net.head = 3
    net.head, net.mask = head, koine.zeros(2)
    net.register_parameter('scale', nn.Parameter(koine.ones(1)))
    assert net.head is head and len(list(net.parameters())) == 5 and net.mask.tolist() == [0, 0]
    assert [name for name, _ in net.named_buffers()] == ['mask']


def test_parts_become_others():
    net = Net()
    net.mask = nn.Parameter(koine.zeros(2))
    net.scale, layer = nn.ReLU(), nn.Linear(2, 2)
    net.head = nn.Parameter(koine.ones(1))
    assert names(net) == ['body', 'scale'] and list(net.buffers()) == [] and net.mask.requires_grad
    assert [name for name, _ in net.named_parameters()] == ['mask', 'head', 'body.weight', 'body.bias']
    for wrong, words in ((lambda: net.register_buffer('mask', koine.ones(2)), 'mask is a parameter, and no buffer'),
                         (lambda: net.register_parameter('body', None), 'body is a child, and no parameter'),
                         (lambda: net.register_buffer('body', koine.ones(1)), 'body is a child, and no buffer')):
        with pytest.raises(KeyError, match=words):
            wrong()
    with pytest.raises(ValueError, match='computes with "weight"'):
        layer.weight = nn.ReLU()
    net.scale = None
    net.register_parameter('later', None)
    net.later, net.scale = nn.Tanh(), nn.Sequential()
    assert isinstance(net.later, nn.Tanh) and names(net) == ['body', 'later', 'scale']
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 4), 1, nn.LayerNorm(4))
    with pytest.raises(ValueError, match='computes with "norm"'):
        stack.norm = None
    assert net.mask.tolist() == [0, 0] and layer.weight.shape == (2, 2)


def test_layers_keep_their_parts():
    for module, name in ((nn.Linear(2, 2), 'bias'), (koine.models.resnet18(num_classes=2), 'fc'),
                         (nn.MultiheadAttention(4, 2), 'out_proj')):
        with pytest.raises(ValueError, match='computes with "%s", which can be replaced but not removed' % name):
            delattr(module, name)
        assert getattr(module, name) is not None


def test_deleted_parts_are_freed():
    def change():
        net = nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)])
        part = net.pop(1)
        del net[0]
        net(koine.zeros(1, 64)).sum().backward()
        return part

    change()
    gc.collect()
    koine.synchronize()
    before = koine.memory_allocated()
    for _ in range(5):
        change()
    gc.collect()
    koine.synchronize()
    assert koine.memory_allocated() == before


def test_a_frozen_parameter_stays_frozen():
    net = Net()
    net.table = nn.Parameter(koine.ones(2), requires_grad=False)
    assert not net.table.requires_grad and net.scale.requires_grad
    net.scale = nn.Parameter(koine.ones(2), requires_grad=False)
    assert not net.scale.requires_grad
    assert not nn.ParameterList([nn.Parameter(koine.ones(1), requires_grad=False)])[0].requires_grad


# --- lists ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('make', [lambda modules: nn.Sequential(*modules), nn.ModuleList])
def test_lists_of_modules(make):
    a, b, c, d = modules = [nn.Linear(2, 2) for _ in range(4)]
    held = make(modules[:2])
    assert held.insert(1, c) is held and list(held) == [a, c, b] and names(held) == ['0', '1', '2']
    held.insert(-3, d)
    assert list(held) == [d, a, c, b] and held.pop(-1) is b and list(held) == [d, a, c]
    held += [b] if isinstance(held, nn.ModuleList) else nn.Sequential()
    held.extend([nn.ReLU(), nn.Tanh()])
    relu = held[-2]
    del held[1:-2]
    assert list(held)[:2] == [d, relu] and names(held) == ['0', '1', '2']
    assert list(held.pop(slice(0, 2))) == [d, relu] and names(held) == ['0']
    assert [name for name, _ in d.named_parameters()] == ['weight', 'bias'] and a(koine.ones(1, 2)).shape == (1, 2)
    for wrong in (lambda: held.insert(3, nn.ReLU()), lambda: held.pop(1), lambda: held.__delitem__(-2)):
        with pytest.raises(IndexError):
            wrong()
    with pytest.raises(TypeError, match='koine.nn.Module is needed, not int'):
        held.insert(0, 3)
    assert names(held) == ['0'] and isinstance(held[0], nn.Tanh)


def test_sequentials_compute_what_they_hold():
    first, last = nn.Linear(2, 3), nn.Linear(3, 1)
    net = nn.Sequential({'first': first, 'act': nn.ReLU(), 'last': last})
    x = koine.randn(4, 2)
    assert koine.equal(net(x), last(first(x).relu()))
    del net[1]
    assert koine.equal(net(x), last(first(x))) and names(net) == ['0', '1']
    net.insert(1, nn.Tanh())
    assert koine.equal(net(x), last(first(x).tanh()))
    net.train().eval()
    optimizer = koine.optim.SGD(net.parameters(), lr=0.1)
    before = first.weight.tolist()
    net(x).sum().backward()
    optimizer.step()
    assert first.weight.tolist() != before


def test_sums_of_sequentials():
    one, other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), nn.Sequential(nn.Linear(3, 1))
    one[0].bias.requires_grad = False
    both = one + other
    x = koine.randn(4, 2)
    assert type(both) is nn.Sequential and len(both) == 3 and len(one) == 2
    assert koine.equal(both.eval()(x), other(one.eval()(x)))
    both.train()(x).sum().backward()
    assert one[0].weight.grad is not None and one[1].running_mean.tolist() == both[1].running_mean.tolist() != [0] * 3
    assert not both[0].bias.requires_grad and not one[0].bias.requires_grad and both[0].weight.requires_grad
    one += other
    assert len(one) == 3 and one[2] is other[0] is both[2]
    held = nn.ModuleList([nn.ReLU()]).extend(other)
    assert len(held) == 2 and len(other) == 1 and held[1] is other[0]
    for wrong in (lambda: one + [nn.ReLU()], lambda: nn.ModuleList() + other):
        with pytest.raises(TypeError, match='unsupported operand'):
            wrong()


# --- modules with several parents -------------------------------------------------------------------------------------


def test_a_part_of_a_network():
    net = koine.models.resnet18(num_classes=10, small_images=True).eval()
    features = nn.Sequential(*list(net.children())[:-1], nn.Flatten())
    x = koine.randn(2, 3, 8, 8)
    assert features(x).shape == (2, 512) and features[0] is next(net.children())
    assert koine.allclose(net.fc(features(x)), net(x), atol=1e-5)
    names_of_net = [name for name, _ in net.named_parameters()]
    features(x).sum().backward()
    assert net.fc.weight.grad is None and all(one.grad is not None for one in features.parameters())
    del net
    gc.collect()
    assert features(x).shape == (2, 512) and len(list(features.parameters())) == len(names_of_net) - 2


def test_a_part_does_not_keep_the_rest():
    def rest():
        net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 100000))
        return net[:1]

    gc.collect()
    koine.synchronize()
    before = koine.memory_allocated()
    part = rest()
    gc.collect()
    koine.synchronize()
    assert koine.memory_allocated() - before < 100000 and part(koine.ones(1, 4)).shape == (1, 4)


def test_one_module_twice():
    act, layer = nn.Tanh(), nn.Linear(3, 3)
    net = nn.Sequential(layer, act, layer, act)
    x = koine.randn(2, 3)
    assert koine.equal(net(x), act(layer(act(layer(x))))) and net[0] is net[2] is layer
    assert len(net) == 4 and names(net) == ['0', '1']
    assert [name for name, _ in net.named_modules()] == ['', '0', '1']
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ['', '0', '1', '2', '3']
    assert [name for name, _ in net.named_parameters()] == ['0.weight', '0.bias']
    assert list(net.state_dict()) == ['0.weight', '0.bias', '2.weight', '2.bias']
    twin = copy.deepcopy(net)
    assert twin[0] is twin[2] is not layer and koine.equal(twin(x), net(x))
    del net[0]
    assert list(net) == [act, layer, act] and koine.equal(net(x), act(layer(act(x))))
    del net[:]
    assert len(net) == 0 and koine.equal(layer(x), twin[2](x))


def test_slices():
    net = nn.Sequential({'first': nn.Linear(2, 3), 'act': nn.ReLU(), 'last': nn.Linear(3, 1)})
    head, listed = net[1:], nn.ModuleList(net)[::2]
    assert type(head) is nn.Sequential and names(head) == ['act', 'last'] and head[1] is net.last
    assert type(listed) is nn.ModuleList and names(listed) == ['0', '1'] and listed[1] is net.last
    x = koine.randn(4, 2)
    assert koine.equal(head(net.first(x)), net(x))


def test_an_attribute_of_two_modules():
    net, other = Net(), Net()
    other.body = net.body
    net.body = nn.ReLU()
    assert other.body(koine.ones(1, 2)).shape == other.body(koine.zeros(1, 2)).shape
    with pytest.raises(ValueError, match='contain itself'):
        inner = nn.Sequential(nn.ReLU())
        outer = nn.Sequential(inner)
        inner.append(outer)


def test_lists_of_parameters():
    held = nn.ParameterList([koine.full((1,), float(i)) for i in range(4)])
    held[2].requires_grad = False
    assert held.pop(0).item() == 0 and [one.item() for one in held] == [1, 2, 3]
    assert [one.requires_grad for one in held] == [True, False, True]
    held.insert(1, koine.ones(2))
    assert [one.shape for one in held] == [(1,), (2,), (1,), (1,)] and held[1].requires_grad
    held += [koine.zeros(3)]
    del held[-1], held[0]
    assert list(held.state_dict()) == ['0', '1', '2'] and held[0].tolist() == [1, 1]


def test_dictionaries():
    table = nn.ModuleDict([('a', nn.ReLU()), ('b', nn.Tanh())])
    table.update({'c': nn.Sigmoid(), 'a': nn.GELU()})
    assert list(table) == table.keys() == ['a', 'b', 'c'] and isinstance(table['a'], nn.GELU)
    assert isinstance(table.pop('b'), nn.Tanh) and list(table) == ['a', 'c'] and not hasattr(table, 'b')
    del table['a']
    table.clear()
    assert len(table) == 0 and table.items() == []
    numbers = nn.ParameterDict({'x': koine.ones(1), 'y': koine.zeros(1)})
    assert numbers.pop('x').item() == 1 and list(numbers) == ['y'] and list(numbers.state_dict()) == ['y']
    numbers.clear()
    assert len(numbers) == 0
    for held in (table, numbers):
        for wrong in (lambda: held.pop('a'), lambda: held['a'], lambda: held.__delitem__('a')):
            with pytest.raises(KeyError, match='a'):
                wrong()
    with pytest.raises(TypeError, match='koine.nn.Module is needed, not int'):
        table['a'] = 1
