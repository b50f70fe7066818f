"""koine.func: derivatives of functions, and calls of modules with other tensors."""
import collections

import numpy
import pytest

import koine
from koine import func, nn


def close(ours, theirs, rtol=1e-5):
    numpy.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=rtol, atol=1e-6)


# --- derivatives ------------------------------------------------------------------------------------------------------


def test_grad():
    x = koine.tensor([0.0, 1.0])
    found = func.grad(lambda x: x.sin().sum())(x)
    close(found, numpy.cos([0, 1]))
    assert not found.requires_grad and not x.requires_grad and x.grad is None
    both = func.grad(lambda a, b, scale=1: (a * b * scale).sum(), argnums=(0, -1))(x, x + 2, scale=3)
    close(both[0], [6, 9])
    close(both[1], [0, 3])
    gradient, (value, aux) = func.grad_and_value(lambda x: ((x * x).sum(), 'aux'), has_aux=True)(x)
    assert (gradient.tolist(), value.item(), aux) == ([0, 2], 1, 'aux')
    assert func.grad(lambda x: (x.sum(), 7), has_aux=True)(x)[1] == 7
    with koine.no_grad():
        close(func.grad(lambda x: (x ** 3).sum())(x), [0, 3])


def test_trees():
    Pair = collections.namedtuple('Pair', 'left right')
    given = {'a': koine.tensor([1.0, 2.0]), 'b': [Pair(koine.tensor(3.0), koine.tensor(4.0))]}
    found = func.grad(lambda p: (p['a'] * p['b'][0].left).sum() + p['b'][0].right)(given)
    assert list(found) == ['a', 'b'] and isinstance(found['b'][0], Pair)
    assert found['a'].tolist() == [3, 3] and [one.item() for one in found['b'][0]] == [3, 1]
    assert func.grad(lambda a, b: a.sum())(given['a'], 5).tolist() == [1, 1]


def test_derivatives_of_derivatives():
    x = koine.tensor(0.5, requires_grad=True)
    close(func.grad(func.grad(func.grad(lambda x: x.exp())))(koine.tensor(1.0)), numpy.e)
    slope = func.grad(lambda x: x ** 3)(x)
    slope.backward()
    assert x.grad.item() == 3
    # the inner function's own argument requires no gradient
    close(func.grad(lambda x: func.grad(lambda y: x * y * y)(koine.tensor(3.0)))(koine.tensor(2.0)), 6)


def test_vjp_and_jvp():
    a, b = koine.tensor([1.0, 2.0]), koine.tensor([3.0, 4.0])
    value, product = func.vjp(lambda a, b: {'product': a * b}, a, b)
    assert value['product'].tolist() == [3, 8]
    for _ in range(2):
        first, second = product({'product': koine.tensor([1.0, 10.0])})
        assert first.tolist() == [3, 40] and second.tolist() == [1, 20]
    assert func.vjp(lambda a: (a, 'aux'), a, has_aux=True)[2] == 'aux'
    value, tangent = func.jvp(lambda a, b: a * b, (a, b), (koine.tensor([1.0, 0.5]), koine.ones(2)))
    assert value.tolist() == [3, 8] and tangent.tolist() == [4, 4]
    assert func.jvp(lambda a: (a * a, 'aux'), (a,), (b,), has_aux=True)[2] == 'aux'
    for wrong in (lambda: product(koine.ones(3)), lambda: func.jvp(lambda a: a, (a,), (koine.ones(3),))):
        with pytest.raises(RuntimeError, match='have the shapes'):
            wrong()


def test_jacobians():
    x, y = koine.tensor([1.0, 2.0]), koine.tensor([3.0])
    for jacobian in (func.jacrev, func.jacfwd):
        found = jacobian(lambda x, y: (x * y, x.sum()), argnums=(0, 1))(x, y)
        close(found[0][0], [[3, 0], [0, 3]])
        close(found[0][1], [[1], [2]])
        close(found[1][0], [1, 1])
        close(found[1][1], [0])
    close(func.hessian(lambda x: (x ** 3).sum() + x[0] * x[1])(x), [[6, 1], [1, 12]])
    mixed = func.hessian(lambda x, y: (x * x * y).sum(), argnums=(0, 1))(x, y)
    close(mixed[0][1], [[2], [4]])
    close(mixed[1][0], [[2, 4]])


def test_errors():
    x = koine.ones(2)
    for wrong, kind, words in (
            (lambda: func.grad(lambda x: x)(x), RuntimeError, 'grad: the function must return a tensor of one element'),
            (lambda: func.grad(lambda x: x.sum(), 1)(x), ValueError, 'argnums has 1; the function is called with 1'),
            (lambda: func.grad(lambda x: x.sum(), has_aux=True)(x), RuntimeError, 'returns \\(output, aux\\)'),
            (lambda: func.jacrev(lambda x: 'a')(x), TypeError, 'jacrev: results must be tensors, or dicts.* not str'),
            (lambda: func.grad(lambda x: x.sum())(3.0), TypeError, 'grad: the arguments must be tensors')):
        with pytest.raises(kind, match=words):
            wrong()


# --- functional_call --------------------------------------------------------------------------------------------------


def made():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 1))


def test_calls_with_other_tensors():
    net, x = made(), koine.randn(5, 2)
    before = {name: one.detach().clone() for name, one in net.named_parameters()}
    other = made()
    state = {name: one.detach().clone() for name, one in other.state_dict().items()}
    expected = other(x)
    for call in (func.functional_call, nn.utils.stateless.functional_call):
        assert call(net, dict(state), (x,)).tolist() == expected.tolist()
    assert func.functional_call(net, state, x, strict=True).tolist() == expected.tolist()
    assert not any(one.requires_grad for one in state.values()) and state['1.num_batches_tracked'].item() == 3
    assert net[1].num_batches_tracked.item() == 0
    for name, one in net.named_parameters():
        assert one.tolist() == before[name].tolist() and one.requires_grad
    parts = [{'0.weight': state['0.weight']}, {'0.bias': state['0.bias']}]
    partly = func.functional_call(net[:1], parts, kwargs={'input': x})
    assert partly.tolist() == other[0](x).tolist()


def test_gradients_through_calls():
    net, x = made().eval(), koine.randn(5, 2)
    params = {name: one.detach() for name, one in net.named_parameters()}
    found = func.grad(lambda p: func.functional_call(net, p, x).pow(2).sum())(params)
    net(x).pow(2).sum().backward()
    for name, one in net.named_parameters():
        assert koine.allclose(found[name], one.grad, atol=1e-6)
    step = koine.tensor(0.5, requires_grad=True)  # through an update of the parameters
    func.functional_call(net, {name: one + step for name, one in params.items()}, x).sum().backward()
    near = [func.functional_call(net, {name: one + 0.5 + d for name, one in params.items()}, x).sum().item()
            for d in (1e-2, -1e-2)]
    assert step.grad.item() == pytest.approx((near[0] - near[1]) / 2e-2, rel=1e-2)
    second = func.hessian(lambda w: func.functional_call(net, {'3.weight': w}, x).pow(2).sum())(params['3.weight'])
    with koine.no_grad():
        hidden = net[:3](x)
    close(second.reshape(3, 3), 2 * (hidden.T @ hidden).numpy())


def test_tied_tensors():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(self.first(x))

    net, x, double = Tied(), koine.ones(1, 2), 2 * koine.eye(2)
    assert func.functional_call(net, {'first.weight': double}, x).tolist() == [[4, 4]]
    untied = func.functional_call(net, {'first.weight': double}, x, tie_weights=False)
    assert koine.allclose(untied, 2 * net.second(x))
    with pytest.raises(ValueError, match='first.weight is tied to others, for which another tensor is given'):
        func.functional_call(net, {'first.weight': double, 'second.weight': koine.eye(2)}, x)
    assert net.second.weight.tolist() == net.first.weight.tolist()


def test_frozen_parameters_stay_so():
    net = nn.Linear(2, 1).requires_grad_(False)
    func.functional_call(net, {'weight': koine.ones(1, 2, requires_grad=True)}, koine.ones(1, 2)).sum().backward()
    assert not any(one.requires_grad for one in net.parameters())


def test_wrong_calls():
    net, x = nn.Linear(2, 1), koine.ones(1, 2)
    weight = koine.ones(1, 2)
    nn.utils.parametrizations.weight_norm(net, 'weight')
    for wrong, kind, words in (
            (lambda: func.functional_call(net, {'bias': 3}, x), TypeError, 'bias must be a koine.Tensor, not int'),
            (lambda: func.functional_call(net, {'bais': weight}, x, strict=True), RuntimeError, 'unexpected: bais'),
            (lambda: func.functional_call(net, {'weight': weight}, x), ValueError,
             'weight is computed by a parametrization: give parametrizations.weight.original'),
            (lambda: func.functional_call(net, [{'bias': weight}, {'bias': weight}], x), ValueError,
             'bias is in several dicts')):
        with pytest.raises(kind, match=words):
            wrong()
    with pytest.raises(ValueError):
        func.functional_call(net, {'bias': koine.ones(7)}, x)
    assert net.bias.shape == (1,)
