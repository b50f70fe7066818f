"""Hooks of modules, by the library and by Python."""
import copy
import gc
import weakref

import pytest

import koine
from koine import nn


class Double(nn.Module):
    def forward(self, x):
        return x * 2


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x, factor=None):
        y = self.fc(x)
        return y if factor is None else y * factor


def kinds():
    return [nn.Tanh(), nn.Linear(3, 3), nn.Sequential(nn.ReLU(), nn.Tanh()), Double(), nn.Sequential(Double())]


@pytest.mark.parametrize('i', range(5))
@pytest.mark.parametrize('inside', [False, True])
def test_order_and_number(i, inside):
    """Once per call, whether Python or the library calls, in the order of registration."""
    module, seen = kinds()[i], []
    module.register_forward_hook(lambda *given: seen.append(('after', given)))
    first = module.register_forward_pre_hook(lambda *given: seen.append(('before', given)))
    module.register_forward_pre_hook(lambda *given: seen.append(('first', given)), prepend=True)
    module.register_full_backward_hook(lambda *given: seen.append(('backward', given)))
    module.register_full_backward_pre_hook(lambda *given: seen.append(('backward pre', given)))
    net = nn.Sequential(nn.Identity(), module) if inside else module
    x = koine.randn(2, 3, requires_grad=True)
    y = net(x)
    assert [name for name, _ in seen] == ['first', 'before', 'after']
    assert all(given[0] is module and type(given[1]) is tuple for _, given in seen)
    assert koine.equal(seen[1][1][1][0], x) and koine.equal(seen[2][1][1][0], x) and koine.equal(seen[2][1][2], y)
    y.sum().backward()
    assert [name for name, _ in seen[3:]] == ['backward pre', 'backward']
    (_, grads), (_, inputs, outputs) = (given for _, given in seen[3:])
    assert koine.equal(grads[0], koine.ones(2, 3)) and koine.equal(outputs[0], koine.ones(2, 3))
    assert koine.equal(inputs[0], x.grad)
    first.remove()
    first.remove()
    del seen[:]
    with koine.no_grad():
        net(x)
    assert [name for name, _ in seen] == ['first', 'after']


@pytest.mark.parametrize('make', [nn.Identity, lambda: nn.Sequential(nn.Identity()), Double])
@pytest.mark.parametrize('inside', [False, True])
def test_replacing(make, inside):
    module = make()
    factor = 2 if isinstance(module, Double) else 1
    net = nn.Sequential(module) if inside else module
    x = koine.ones(2, requires_grad=True)
    with module.register_forward_pre_hook(lambda _, inputs: inputs[0] + 1):
        assert net(x).tolist() == [2 * factor] * 2
    with module.register_forward_pre_hook(lambda _, inputs: (inputs[0] + 1,)), \
            module.register_forward_hook(lambda _, inputs, output: output * 10 + inputs[0]):
        assert net(x).tolist() == [20 * factor + 2] * 2
    assert net(x).tolist() == [factor] * 2
    with module.register_full_backward_pre_hook(lambda _, grads: (grads[0] * 3,)), \
            module.register_full_backward_hook(lambda _, inputs, outputs: (inputs[0] + outputs[0] * 10,)):
        net(x).sum().backward()
    assert x.grad.tolist() == [3 * factor + 30] * 2
    assert module._hooks is None


def test_errors():
    def fails(*_):
        raise KeyError('inside')

    x = koine.ones(2, 3, requires_grad=True)
    for module in kinds():
        for net in (module, nn.Sequential(module)):
            for register in (module.register_forward_pre_hook, module.register_forward_hook):
                with register(fails), pytest.raises(KeyError, match='inside'):
                    net(x)
            with module.register_full_backward_hook(fails), pytest.raises(KeyError, match='inside'):
                net(x).sum().backward()
            net(x).sum().backward()
    tanh = nn.Tanh()
    net = nn.Sequential(tanh)
    with tanh.register_forward_hook(lambda *_: 3), pytest.raises(TypeError, match='int instead of 1 koine.Tensors'):
        net(x)
    with tanh.register_forward_hook(lambda *_: (x, x)), pytest.raises(TypeError, match='2 instead of 1'):
        net(x)
    with pytest.raises(TypeError, match='a hook is a function, not int'):
        tanh.register_forward_hook(3)


def test_several_tensors():
    """Hooks see what the caller sees."""
    seen = []
    lstm, x = nn.LSTM(3, 4), koine.randn(5, 2, 3, requires_grad=True)
    lstm.register_forward_hook(lambda _, inputs, output: seen.append((len(inputs), output)))
    lstm.register_full_backward_hook(lambda _, inputs, outputs: seen.append((inputs, outputs)))
    output, (h, c) = lstm(x)
    assert seen[0][0] == 1 and seen[0][1][1][1] is c
    (output.sum() + h.sum()).backward()
    inputs, outputs = seen[1]
    assert koine.equal(inputs[0], x.grad) and outputs[0].shape == (5, 2, 4) and outputs[1].shape == h.shape
    attention, query = nn.MultiheadAttention(8, 2), koine.randn(3, 1, 8)
    attention.register_forward_hook(lambda _, inputs, output: seen.append((len(inputs), output)))
    attention(query, query, query)
    assert seen[2][0] == 3 and seen[2][1][1].shape == (1, 3, 3)
    with pytest.raises(TypeError, match='with a part of it'):
        attention.register_full_backward_hook(lambda *_: None)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8), 2)
    for one in (encoder, *encoder.layers):
        one.register_forward_hook(lambda module, *_: seen.append(module))
    encoder(query)
    assert seen[3:] == [encoder.layers[0], encoder.layers[1], encoder]


def test_keywords_of_modules_of_python():
    module, x, seen = Scaled(), koine.randn(4, 3, requires_grad=True), []
    module.register_forward_hook(lambda _, inputs, output: seen.append(inputs))
    assert module(x, factor=2.0).shape == (4, 2) and len(seen[0]) == 1
    module.register_full_backward_hook(lambda _, inputs, outputs: seen.append(inputs))
    module(x, factor=koine.full((2,), 3.0)).sum().backward()
    assert koine.equal(seen[2][0], x.grad)
    with pytest.raises(TypeError, match='koine.Tensors, not float'):
        module(x, factor=2.0)
    with koine.no_grad():
        module(x, factor=2.0)


def test_parts_of_a_network():
    net, shapes = koine.models.resnet18(num_classes=3, small_images=True).eval(), {}
    for name, module in net.named_modules():
        if isinstance(module, (nn.Conv2d, nn.BatchNorm2d)):
            module.register_forward_hook(lambda _, inputs, output, name=name: shapes.update({name: output.shape}))
    x = koine.randn(1, 3, 16, 16)
    expected = koine.models.resnet18(num_classes=3, small_images=True).eval()
    expected.load_state_dict(net.state_dict())
    assert koine.allclose(net(x), expected(x), atol=1e-4)
    assert len(shapes) == 40 and shapes['layer4.1.conv2'] == (1, 512, 2, 2)


def test_hooks_keep_nothing_alive():
    """A hook that refers to its module goes with it."""
    for make in (nn.Tanh, Double):
        module = make()
        module.register_forward_hook(lambda *_, module=module: None)
        module.register_full_backward_hook(lambda *_, module=module: None)
        handle = module.register_forward_pre_hook(lambda *_, module=module: None)
        module(koine.ones(1))
        gone = weakref.ref(module)
        del module
        gc.collect()
        assert gone() is None
        handle.remove()
    part = nn.Tanh()
    net = nn.Sequential(part)
    part.register_forward_hook(lambda *_: net)
    gone = weakref.ref(net)
    del net, part
    gc.collect()
    assert gone() is None


def test_hooks_with_keywords():
    module, x, seen = Scaled(), koine.ones(4, 3), []

    def double(module, inputs, keywords):
        return inputs, {**keywords, 'factor': keywords['factor'] * 2}

    module.register_forward_hook(lambda _, inputs, keywords, output: seen.append(keywords['factor']), with_kwargs=True)
    before = module(x, factor=4.0)
    handle = module.register_forward_pre_hook(double, with_kwargs=True)
    assert koine.equal(module(x, factor=2.0), before) and seen == [4.0, 4.0]
    handle.remove()
    module.register_forward_pre_hook(lambda *_: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match='returns None, or inputs and keywords, not 3'):
        module(x, factor=2.0)
    inner, seen = nn.Linear(3, 3), []
    inner.register_forward_hook(lambda _, inputs, keywords, output: seen.append((len(inputs), keywords)),
                                with_kwargs=True)
    nn.Sequential(inner)(x)
    inner(input=x)
    assert seen == [(1, {}), (0, {'input': x})]
    copied = copy.deepcopy(inner)
    copied(x)
    assert seen[2] == (1, {})


def test_hooks_that_are_always_called():
    class Failing(nn.Module):
        def forward(self, x):
            raise KeyError('forward')

    def raising(*_):
        raise ValueError('of the hook')

    module, seen = Failing(), []
    module.register_forward_hook(lambda *_: seen.append('never'))
    module.register_forward_hook(lambda _, inputs, output: seen.append((inputs, output)), always_call=True)
    module.register_forward_hook(raising, always_call=True)
    with pytest.warns(UserWarning, match='raised ValueError: of the hook'), pytest.raises(KeyError, match='forward'):
        module(3)
    assert seen == [((3,), None)]
