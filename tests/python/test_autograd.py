"""Gradients: backward, grad, hooks, modes."""
import math

import numpy
import pytest

import koine


def test_grad_fn():
    x = koine.ones(2, requires_grad=True)
    assert x.grad_fn is None and koine.ones(1).grad_fn is None and (x * 2).detach().grad_fn is None
    assert (x * x).grad_fn.name() == 'mul' and repr((x * x).grad_fn) == '<mul>' and 'grad_fn=<mul>' in repr(x * x)


def test_backward():
    x = koine.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x * x).sum()
    assert not y.is_leaf and y.requires_grad and x.is_leaf and x.grad is None
    y.backward()
    assert x.grad.tolist() == [2, 4, 6]
    (x * x).backward(koine.tensor([1.0, 0.0, 1.0]))
    assert x.grad.tolist() == [4, 4, 12]
    x.grad = None
    assert x.grad is None
    with pytest.raises(RuntimeError):
        y.backward()


def test_grad():
    x = koine.tensor([1.0, 2.0], requires_grad=True, dtype='float64')
    slope, = koine.autograd.grad((x ** 3).sum(), x, create_graph=True)
    curvature, = koine.autograd.grad(slope.sum(), x)
    assert slope.tolist() == [3, 12] and curvature.tolist() == [6, 12] and x.grad is None
    z = koine.zeros(1, requires_grad=True)
    assert koine.autograd.grad(x.sum(), [x, z], allow_unused=True)[1] is None
    with pytest.raises(RuntimeError):
        koine.autograd.grad(x.sum(), z)


def test_grad_of_parameters():
    net = koine.nn.Linear(2, 1)
    weight, bias = koine.autograd.grad(net(koine.ones(3, 2)).sum(), net.parameters())
    assert weight.tolist() == [[3, 3]] and bias.tolist() == [3]
    koine.autograd.backward(net(koine.ones(3, 2)).sum(), inputs=net.parameters())
    assert koine.equal(net.weight.grad, weight)


def test_grad_of_unused_inputs():
    x, z = koine.ones(2, requires_grad=True), koine.zeros(3, requires_grad=True)
    found = koine.autograd.grad((x * x).sum(), [x, z], materialize_grads=True)
    assert [one.tolist() for one in found] == [[2, 2], [0, 0, 0]]
    with pytest.raises(ValueError, match='leave out allow_unused=False'):
        koine.autograd.grad((x * x).sum(), [x, z], allow_unused=False, materialize_grads=True)


def test_the_other_arguments_of_grad():
    x = koine.ones(2, requires_grad=True)
    slope, = koine.autograd.grad(outputs=(x ** 3), inputs=x, grad_outputs=koine.ones(2), create_graph=True,
                                 retain_graph=True, only_inputs=True)
    ((slope.norm(2, dim=0) - 1) ** 2).backward()  # as the penalty of a WGAN
    numpy.testing.assert_allclose(x.grad.numpy(), [6 * 2 * (3 * 2 ** 0.5 - 1) / 2 ** 0.5] * 2, rtol=1e-5)
    with pytest.warns(FutureWarning, match='only_inputs=False has no effect'):
        koine.autograd.grad(x.sum(), x, only_inputs=False)
    with pytest.raises(ValueError, match='grad: there are 1 gradients for 2 outputs'):
        koine.autograd.grad([x.sum(), x.sum()], x, [koine.ones(())])
    with pytest.raises(ValueError, match='backward: there are 1 gradients for 2 outputs'):
        koine.autograd.backward([x.sum(), x.sum()], [koine.ones(())])


def test_batches_of_gradients():
    x, other = koine.tensor([1., 2.], requires_grad=True), koine.ones(3, requires_grad=True)
    y, weights = x * x, koine.tensor([[1., 0.], [0., 1.], [1., 1.]])
    first, unused = koine.autograd.grad(y, (x, other), weights, is_grads_batched=True, materialize_grads=True,
                                        retain_graph=True)
    assert first.tolist() == [[2, 0], [0, 4], [2, 4]] and unused.tolist() == [[0] * 3] * 3
    assert koine.autograd.grad(y, (x, other), weights, is_grads_batched=True, allow_unused=True)[1] is None
    with pytest.raises(koine.KoineError, match='freed'):
        koine.autograd.grad(y, x, weights[0])
    for wrong in (None, koine.ones(0, 2)):
        with pytest.raises(ValueError, match='batches of one size, at least 1'):
            koine.autograd.grad(x * x, x, wrong, is_grads_batched=True)


def test_backward_to_inputs():
    x, other = koine.tensor([1.0, 2.0], requires_grad=True), koine.tensor([3.0], requires_grad=True)
    y = x * 2
    z = (y ** 2).sum() + other.sum()
    z.backward(inputs=[y], retain_graph=True)
    z.backward(inputs=y, retain_graph=True)
    assert y.grad.tolist() == [8, 16] and x.grad is None and other.grad is None
    z.backward(retain_graph=True)  # y keeps its gradient now, as after retain_grad
    assert y.grad.tolist() == [12, 24] and x.grad.tolist() == [8, 16] and other.grad.tolist() == [1]
    before = x.grad
    koine.autograd.backward([z, y], [None, koine.ones(2)], inputs=[x])
    assert x.grad.tolist() == [18, 34] == before.tolist()  # in place
    with pytest.raises(RuntimeError):
        z.backward(inputs=[x])  # freed
    unused = koine.ones(1, requires_grad=True)
    x.sum().backward(inputs=[unused])
    assert unused.grad is None
    with pytest.raises(ValueError, match='inputs is empty'):
        x.sum().backward(inputs=[])
    with pytest.raises(RuntimeError, match='does not require'):
        x.sum().backward(inputs=[koine.ones(2)])


def test_gradients_of_inputs_are_their_own():
    a, b = koine.ones(2, requires_grad=True), koine.ones(2, requires_grad=True)
    weight = koine.ones(2)
    (a + b).backward(weight, inputs=[a, b])
    a.grad += 1
    assert a.grad.tolist() == [2, 2] and b.grad.tolist() == [1, 1] == weight.tolist()


def test_backward_with_a_graph():
    x = koine.tensor([1.0, 2.0], requires_grad=True)
    (x ** 3).sum().backward(inputs=[x], create_graph=True)
    (x ** 2).sum().backward(inputs=[x], create_graph=True)
    assert x.grad.tolist() == [5, 16] and x.grad.requires_grad
    curvature, = koine.autograd.grad(x.grad.sum(), x)
    assert curvature.tolist() == [8, 14]
    with pytest.raises(NotImplementedError, match='create_graph needs inputs'):
        (x ** 3).sum().backward(create_graph=True)


def test_modes():
    x = koine.ones(2, requires_grad=True)
    with koine.no_grad():
        assert not (x * 2).requires_grad
        with koine.enable_grad():
            assert (x * 2).requires_grad
    with koine.set_grad_enabled(False):
        assert not koine.is_grad_enabled()

    @koine.no_grad()
    def double(x):
        return x * 2

    assert not double(x).requires_grad and koine.is_grad_enabled()
    with pytest.raises(ZeroDivisionError):
        with koine.no_grad():
            raise ZeroDivisionError
    assert koine.is_grad_enabled()


def test_hooks():
    x = koine.ones(2, requires_grad=True)
    seen = []
    y = x * 3
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.sum().backward()
    assert seen == [[1, 1]] and x.grad.tolist() == [30, 30] and y.grad is not None


def test_hooks_that_are_removed():
    x, seen = koine.ones(2, requires_grad=True), []
    handle = x.register_hook(lambda gradient: gradient * 2)
    after = x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    (x * 3).sum().backward()
    handle.remove()
    after.remove()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [9, 9] and seen == [[6, 6]]
    with x.register_hook(lambda gradient: gradient * 0):
        x.sum().backward()
    x.sum().backward()
    assert x.grad.tolist() == [10, 10]


def test_a_hook_that_raises():
    x = koine.ones(2, requires_grad=True)

    def fails(gradient):
        raise KeyError('from the hook')

    x.register_hook(fails)
    with pytest.raises(KeyError, match='from the hook'):
        (x * 2).sum().backward()
    assert (x * 2).sum().item() == 4


def test_in_place_and_views():
    x = koine.ones(2, 3, requires_grad=True)
    y = x * 2
    y[0] = koine.zeros(3)
    y[1, 1:] *= 5
    y.sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [2, 10, 10]]
    value = koine.ones(3, requires_grad=True)
    z = koine.zeros(2, 3)
    z[1] = value * 4
    z[0, 0] = value.sum()
    z.sum().backward()
    assert value.grad.tolist() == [5, 5, 5]
    with pytest.raises(RuntimeError):
        x[0] = 0
    with koine.no_grad():
        x[0] = 0
    assert x.tolist()[0] == [0, 0, 0]


def test_indexing_has_gradients():
    x = koine.ones(3, 4, requires_grad=True)
    (x[1:, 0].sum() + x[[0, 0]].sum() + x[x > 5].sum() + x[2, 3]).backward()
    expected = numpy.zeros((3, 4))
    expected[1:, 0] += 1
    expected[0] += 2
    expected[2, 3] += 1
    assert x.grad.tolist() == expected.tolist()


def test_descent():
    x = koine.tensor([5.0, -3.0], requires_grad=True)
    for _ in range(100):
        loss = ((x - 1) ** 2).sum()
        loss.backward()
        with koine.no_grad():
            x -= 0.1 * x.grad
        x.grad = None
    numpy.testing.assert_allclose(x.detach().numpy(), [1, 1], atol=1e-4)


def test_post_accumulate_hooks():
    x, seen = koine.ones(2, requires_grad=True), []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    for _ in range(2):
        (x * 3).sum().backward()
    assert seen == [[3, 3], [6, 6]]

    def fails(leaf):
        raise KeyError('inside')

    x.register_post_accumulate_grad_hook(fails)
    with pytest.raises(KeyError, match='inside'):
        x.sum().backward()


def test_gradcheck():
    x = koine.randn(3, dtype='float64', requires_grad=True)
    y = koine.randn(3, dtype='float64', requires_grad=True)
    for check in (koine.autograd.gradcheck, koine.autograd.gradgradcheck):
        assert check(lambda a, b: (a * b).sin(), (x, y)) and check(koine.exp, x, fast_mode=True)
        with pytest.raises(KeyError, match='inside'):
            check(lambda a: {}['inside'], x)
    with pytest.raises(ArithmeticError):
        koine.autograd.gradcheck(lambda a: a * a.detach(), x)


def test_detect_anomaly():
    def backward():
        x = koine.tensor([0.0, 1.0], requires_grad=True)
        (x.sqrt() * 0).sum().backward()
        return x.grad.tolist()

    def is_found():
        with pytest.raises(RuntimeError, match=r'backward of sqrt: NaN in the gradient of its input 0 \(float32 \[2\]'):
            backward()
        return True

    assert not koine.is_anomaly_enabled() and math.isnan(backward()[0])
    with koine.autograd.detect_anomaly():
        assert koine.is_anomaly_enabled() and is_found()
    assert not koine.is_anomaly_enabled()
    with koine.autograd.set_detect_anomaly(True):
        with koine.autograd.set_detect_anomaly(False):
            assert math.isnan(backward()[0])
        assert is_found()
    koine.autograd.set_detect_anomaly(True)
    assert is_found()
    koine.autograd.set_detect_anomaly(True, check_nan=False)
    assert math.isnan(backward()[0]) and not koine.is_anomaly_enabled()
    assert koine.autograd.detect_anomaly()(is_found)()
