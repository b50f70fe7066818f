"""Functions that are computed again in the backward pass."""
import gc

import numpy
import pytest

import koine
from koine import nn
from koine.utils.checkpoint import checkpoint, checkpoint_sequential


def block():
    koine.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.GELU(), nn.Linear(8, 4))


def gradients(module, x, apply):
    module.zero_grad()
    x.grad = None
    koine.manual_seed(2)
    result = apply(module, x)
    koine.rand(3)  # the random numbers have gone on when it is computed again
    (result * result).sum().backward()
    after = koine.rand(3).tolist()
    found = [*module.parameters(), *([x] if x.requires_grad else [])]
    return [result.tolist(), after, *(one.grad.tolist() for one in found)]


def test_the_same_numbers():
    module, x = block(), koine.randn(5, 4, requires_grad=True)
    plain = gradients(module, x, lambda module, x: module(x))
    assert gradients(module, x, checkpoint) == plain
    assert gradients(module, x, lambda module, x: checkpoint(lambda y: module(y), x)) == plain
    assert gradients(module, x, lambda module, x: checkpoint(module, x, use_reentrant=False)) == plain
    assert gradients(module, x, lambda module, x: checkpoint(module, x, preserve_rng_state=False)) != plain
    nested = gradients(module, x, lambda module, x: checkpoint(lambda y: checkpoint(module, y), x))
    assert nested == plain
    frozen = x.detach()  # only parameters need gradients
    assert gradients(module, frozen, checkpoint) == plain[:-1]


def test_arguments_and_results():
    def function(x, factor, *, y=None, names=('a',)):
        calls.append(names)
        return x * factor, (x + y).exp() if y is not None else x.exp()

    calls, x, y = [], koine.ones(2, requires_grad=True), koine.zeros(2, requires_grad=True)
    first, second = checkpoint(function, x, 3.0, y=y, names='b')
    second.sum().backward()
    assert calls == ['b', 'b'] and x.grad.tolist() == y.grad.tolist() == pytest.approx([numpy.e] * 2)
    first, second = checkpoint(function, x, 3.0)
    koine.autograd.backward([first.sum(), second.sum()])
    assert x.grad.tolist() == pytest.approx([2 * numpy.e + 3] * 2)
    assert koine.autograd.grad(checkpoint(function, x, 2.0)[0].sum(), x)[0].tolist() == [2, 2]
    with koine.no_grad():
        count = len(calls)
        assert not checkpoint(function, x, 3.0)[0].requires_grad and len(calls) == count + 1
    labels = koine.tensor([0, 1])
    checkpoint(lambda x, i: x[i], x, labels).sum().backward()
    assert labels.grad is None
    with pytest.raises(TypeError, match='returned int; it returns a tensor'):
        checkpoint(lambda x: 3, x)

    def fails(x):
        calls.append(x.shape)
        if len(calls) > count + 1:
            raise KeyError('the second time')
        return x * 2

    count = len(calls)
    result = checkpoint(fails, x)
    with pytest.raises(KeyError, match='the second time'):
        result.sum().backward()


def test_autocast():
    seen, layer = [], nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    with koine.autocast('cpu', koine.bfloat16):
        result = checkpoint(layer, koine.ones(1, 2))
    result.float().sum().backward()
    assert seen == [koine.bfloat16] * 2 and layer.weight.grad.dtype is koine.float32


def test_memory():
    module = nn.Sequential(*[nn.Tanh() for _ in range(16)])
    x = koine.randn(256, 256, requires_grad=True)

    def held(apply):
        gc.collect()
        koine.synchronize()
        before = koine.memory_allocated()
        result = apply(x)
        koine.synchronize()
        found = koine.memory_allocated() - before
        result.sum().backward()
        x.grad = None
        del result
        gc.collect()
        koine.synchronize()
        assert koine.memory_allocated() == before
        return found

    held(module)
    assert held(lambda x: checkpoint(module, x)) < held(module) / 4


def test_backward_of_results_with_a_common_part():
    x = koine.ones(2, requires_grad=True)
    y = x.exp()
    koine.autograd.backward([y.sum(), (y * y).sum()])
    assert x.grad.tolist() == pytest.approx([numpy.e + 2 * numpy.e ** 2] * 2)
    with pytest.raises(RuntimeError):
        y.sum().backward()


def test_sequences_in_segments():
    net = nn.Sequential(*[nn.Linear(3, 3) for _ in range(7)])
    x = koine.randn(2, 3, requires_grad=True)
    net(x).sum().backward()
    expected, x.grad = x.grad, None
    for segments in (1, 2, 3, 7):
        for functions in (net, list(net)):
            checkpoint_sequential(functions, segments, x, use_reentrant=False).sum().backward()
            assert koine.allclose(x.grad, expected)
            x.grad = None
    with pytest.raises(ValueError, match='segments is 8; with 7 functions it may be 1 to 7'):
        checkpoint_sequential(net, 8, x)
