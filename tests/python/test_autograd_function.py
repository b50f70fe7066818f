"""Functions with a backward of their own: koine.autograd.Function."""
import gc
import threading

import numpy
import pytest

import koine
from koine.autograd import Function, function, gradcheck, gradgradcheck
from koine.autograd.function import once_differentiable


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        y, = ctx.saved_tensors
        return gradient * y


class Scaled(Function):
    """(x * factor, y * factor, their signs) with an argument that is no tensor in between."""

    seen = None

    @staticmethod
    def forward(ctx, x, factor, y):
        signs = x.sign().long()
        ctx.factor, Scaled.seen = factor, ctx.needs_input_grad
        ctx.save_for_backward(x, None, y)
        ctx.mark_non_differentiable(signs)
        return x * factor, y * factor, signs

    @staticmethod
    def backward(ctx, first, second, third):
        x, nothing, y = ctx.saved_tensors
        assert nothing is None and third.tolist() == [0, 0] and x.shape == y.shape
        assert not koine.is_grad_enabled() and not first.requires_grad
        return first * ctx.factor if ctx.needs_input_grad[0] else None, None, second * ctx.factor


def leaf(*values, dtype='float32'):
    return koine.tensor(list(values), requires_grad=True, dtype=dtype)


def test_one_input():
    x = leaf(1, 2)
    y = Exp.apply(x)
    assert y.requires_grad and not y.is_leaf
    (y * koine.tensor([1.0, 3.0])).sum().backward()
    numpy.testing.assert_allclose(x.grad.numpy(), numpy.exp([1, 2]) * [1, 3], rtol=1e-5)
    with koine.no_grad():
        assert not Exp.apply(x).requires_grad
    assert not Exp.apply(koine.ones(2)).requires_grad
    inputs = koine.randn(2, 3, dtype='float64', requires_grad=True)
    assert gradcheck(Exp.apply, inputs) and gradgradcheck(Exp.apply, inputs)


def test_many_inputs_and_outputs():
    x, y = leaf(1, -2), leaf(3, 4)
    first, second, signs = Scaled.apply(x, 2, y)
    assert Scaled.seen == (True, False, True) and signs.tolist() == [1, -1] and not signs.requires_grad
    (first.sum() + second.sum() * 5).backward()
    assert x.grad.tolist() == [2, 2] and y.grad.tolist() == [10, 10]
    x.grad = y.grad = None
    first, second, _ = Scaled.apply(x.detach(), 3, y)
    assert Scaled.seen == (False, False, True) and first.requires_grad
    second.sum().backward()
    assert y.grad.tolist() == [3, 3] and x.grad is None


def test_setup_context():
    class Power(Function):
        @staticmethod
        def forward(x, exponent):
            return x ** exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.exponent = inputs
            assert output.shape == x.shape
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, gradient):
            x, = ctx.saved_tensors
            return gradient * ctx.exponent * x ** (ctx.exponent - 1), None

    inputs = leaf(1, 2, dtype='float64')
    assert gradcheck(lambda x: Power.apply(x, 3), inputs) and gradgradcheck(lambda x: Power.apply(x, 3), inputs)


def test_outputs_that_are_inputs():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x, x.view(-1)

        @staticmethod
        def backward(ctx, first, second):
            return first * 10 + second.view(2, 1)

    x = koine.ones(2, 1, requires_grad=True)
    first, second = Same.apply(x)
    (first.sum() + second.sum()).backward()
    assert x.grad.tolist() == [[11], [11]] and x.is_leaf


def test_gradients_that_are_not_there():
    class Parts(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, first, second):
            assert second is None
            return first, None  # more than one for each argument are None

    x = leaf(1, 2)
    Parts.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_gradients_get_the_dtype_of_the_input():
    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x.float()

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    x = koine.ones(2, dtype='float16', requires_grad=True)
    Half.apply(x).sum().backward()
    assert x.grad.dtype is koine.float16


def test_once_differentiable():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0] * 2

    x = leaf(3)
    Square.apply(x).backward()
    assert x.grad.tolist() == [6]
    with pytest.raises(RuntimeError, match='Square'):
        koine.autograd.grad(Square.apply(x), x, create_graph=True)


# --- errors -----------------------------------------------------------------------------------------------------------


def wrong(forward=lambda ctx, x, other: x * 2, backward=lambda ctx, gradient: (gradient, None)):
    made = type('Wrong', (Function,), {'forward': staticmethod(forward), 'backward': staticmethod(backward)})
    return made.apply(leaf(1, 2), 5)


@pytest.mark.parametrize('backward, kind, words', [
    (lambda ctx, gradient: gradient, RuntimeError, 'returned 1 gradients for 2 arguments'),
    (lambda ctx, gradient: (gradient, gradient), RuntimeError, 'argument 1, which is no tensor'),
    (lambda ctx, gradient: (gradient, None, gradient), RuntimeError, 'returned 3 gradients for 2 arguments'),
    (lambda ctx, gradient: (3, None), TypeError, 'returned int for argument 0'),
    (lambda ctx, gradient: (gradient.sum(), None), ValueError, 'Wrong.*gradient'),
    (lambda ctx, gradient: 1 / 0, ZeroDivisionError, 'division'),
])
def test_errors_of_backward(backward, kind, words):
    outputs = wrong(backward=backward).sum()
    with pytest.raises(kind, match=words):
        outputs.backward()
    assert koine.is_grad_enabled()


@pytest.mark.parametrize('forward, kind, words', [
    (lambda ctx, x, other: 3, TypeError, 'Wrong.forward returned int'),
    (lambda ctx, x, other: (), TypeError, 'an empty tuple'),
    (lambda ctx, x, other: x.detach().mul_(2), RuntimeError, 'changed argument 0 in place'),
    (lambda ctx, x, other: 1 / 0, ZeroDivisionError, 'division'),
    (lambda ctx, x, other: ctx.save_for_backward(other), TypeError, 'not int: set an attribute'),
    (lambda ctx, x, other: ctx.saved_tensors, RuntimeError, 'in backward'),
    (lambda ctx, x, other: ctx.mark_dirty(x), NotImplementedError, 'in place'),
])
def test_errors_of_forward(forward, kind, words):
    with pytest.raises(kind, match=words):
        wrong(forward)
    assert koine.is_grad_enabled() and not function._contexts


def test_parts_that_are_missing():
    class Empty(Function):
        pass

    with pytest.raises(NotImplementedError, match='forward'):
        Empty.apply(leaf(1))
    Empty.forward = staticmethod(lambda ctx, x: x * 2)
    with pytest.raises(NotImplementedError, match='backward'):
        Empty.apply(leaf(1)).sum().backward()


def test_a_saved_tensor_that_changes():
    x = leaf(1, 2)
    y = Exp.apply(x)
    with koine.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match='Exp'):
        y.sum().backward()


# --- life and threads -------------------------------------------------------------------------------------------------


def test_nothing_is_left():
    x = koine.ones(1000, requires_grad=True)

    def steps():
        Exp.apply(x).sum().backward()
        Exp.apply(x)
        slope, = koine.autograd.grad(Exp.apply(Exp.apply(x)).sum(), x, create_graph=True)
        koine.autograd.grad(slope.sum(), x)
        x.grad = None

    steps()
    gc.collect()
    before = koine.memory_allocated()
    for _ in range(10):
        steps()
    assert not function._contexts and koine.memory_allocated() == before
    y = Exp.apply(x)
    y.sum().backward(retain_graph=True)
    assert len(function._contexts) == 1
    y.sum().backward()
    del y
    assert not function._contexts


def test_threads():
    found = []

    def work(number):
        for _ in range(20):
            x = leaf(number, number)
            Exp.apply(x).sum().backward()
        found.append((number, x.grad.tolist()[0]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert dict(found) == pytest.approx({number: numpy.exp(number) for number in range(4)}, rel=1e-5)


def test_inside_a_module():
    class Net(koine.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = koine.nn.Linear(2, 2)

        def forward(self, x):
            return Exp.apply(self.fc(x))

    net = koine.nn.Sequential(Net(), koine.nn.Linear(2, 1))
    net(koine.zeros(3, 2)).sum().backward()
    assert all(one.grad is not None for one in net.parameters())
