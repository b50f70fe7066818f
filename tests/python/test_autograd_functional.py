"""koine.autograd.functional: the numbers are PyTorch's."""
import numpy
import pytest

import koine
from koine.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp


def tensor(values, **options):
    return koine.tensor(values, dtype='float64', **options)


X, Y = [[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0]
V, W = [[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0]


def two(x, y):
    return (x.exp() * y).sum(1), x @ y


def one(x, y):
    return (x.exp() @ y).prod()


def close(found, expected):
    """Also the nesting must be the same; lists are tensors."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for a, b in zip(found, expected):
            close(a, b)
    else:
        assert not found.requires_grad
        numpy.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_jacobian():
    close(jacobian(two, (tensor(X), tensor(Y))), (
        ([[[1.1051709180756477, 2.4428055163203397], [0, 0]], [[0, 0], [1.3498588075760032, 2.9836493952825407]]],
         [[1.1051709180756477, 1.2214027581601699], [1.3498588075760032, 1.4918246976412703]]),
        ([[[1, 2], [0, 0]], [[0, 0], [1, 2]]], [[0.1, 0.2], [0.3, 0.4]])))
    y = tensor(Y)
    close(jacobian(lambda y: y ** 2, y), [[2, 0], [0, 4]])
    close(jacobian(lambda y: (y ** 2,), (y,)), (([[2, 0], [0, 4]],),))
    close(jacobian(lambda y: (y ** 2,), y), ([[2, 0], [0, 4]],))
    close(jacobian(lambda y: y ** 2, (y,), vectorize=True), ([[2, 0], [0, 4]],))
    close(jacobian(koine.sum, y), [1, 1])
    assert jacobian(lambda y: y[:0], y).shape == (0, 2)


def test_products_with_the_jacobian():
    x, y = tensor(X), tensor(Y)
    outputs = [3.5479764343959874, 4.333508202858544], [0.5, 1.1]
    close(vjp(two, (x, y), (tensor([1.0, 2.0]), tensor([3.0, 4.0]))), (outputs, (
        [[4.105170918075648, 8.44280551632034], [6.699717615152006, 13.967298790565081]],
        [5.304888533227654, 6.4050521534427105])))
    close(jvp(two, (x, y), (tensor(V), tensor(W))), (outputs, (
        [18.845053090055586, 31.68441622758581], [6.7, 14.9])))
    close(vjp(koine.sum, y), (3, [1, 1]))
    close(jvp(lambda x: x * y, tensor(3.0)), ([3, 6], [1, 2]))


def test_second_derivatives():
    x, y = tensor(X), tensor(Y)
    found = hessian(one, (x, y))
    assert [[part.shape for part in row] for row in found] == [[(2, 2, 2, 2), (2, 2, 2)], [(2, 2, 2), (2, 2)]]
    close(found[1], (
        [[[6.281091936682799, 3.2974425414002564], [6.281091936682797, 3.2974425414002555]],
         [[1.6487212707001284, 8.937196472262166], [1.6487212707001278, 8.937196472262164]]],
        [[2.9836493952825407, 3.297442541400256], [3.297442541400256, 3.6442376007810173]]))
    for product in (hvp, vhp):
        close(product(one, (x, y), (tensor(V), tensor(W))), (15.375184982003821, (
            [[63.75229880518114, 130.32845545694778], [63.75229880518113, 130.32845545694778]],
            [79.61192521994698, 98.57070222806091])))
    cubes = lambda y: (y ** 3).sum()  # noqa: E731
    close(hessian(cubes, y), [[6, 0], [0, 12]])
    close(hessian(cubes, (y,)), (([[6, 0], [0, 12]],),))
    close(hvp(lambda x: x ** 3, tensor([2.0])), ([8], [12]))


def test_what_does_not_depend_on_the_inputs_is_zero():
    y = tensor(Y)
    zeros = [[0, 0], [0, 0]]
    close(jacobian(lambda y: tensor([1.0, 2.0]), y), zeros)
    close(jacobian(lambda x, y: x, (y, y)), ([[1, 0], [0, 1]], zeros))
    close(hessian(koine.sum, y), zeros)
    close(jvp(lambda y: tensor([1.0]), y, y), ([1], [0]))
    close(vhp(koine.sum, y, y), (3, [0, 0]))
    with koine.no_grad():
        close(jacobian(lambda y: y ** 2, y), [[2, 0], [0, 4]])


def test_create_graph():
    x = tensor(Y, requires_grad=True)
    jacobian(lambda x: x ** 3, x, create_graph=True).sum().backward()
    assert x.grad.tolist() == [6, 12]
    hessian(lambda x: (x ** 4).sum(), x, create_graph=True).sum().backward()
    assert x.grad.tolist() == [6 + 24, 12 + 48]
    output, product = jvp(lambda x: x ** 2, x, tensor([1.0, 1.0]), create_graph=True)
    slope, = koine.autograd.grad(product.sum(), x, retain_graph=True)
    assert slope.tolist() == [2, 2] and koine.autograd.grad(output.sum(), x)[0].tolist() == [2, 4]
    _, product = hvp(lambda x: (x ** 3).sum(), x, tensor([1.0, 2.0]), create_graph=True)
    assert koine.autograd.grad(product.sum(), x)[0].tolist() == [6, 12]
    x.grad = None
    jacobian(lambda x: x ** 2, x)
    assert x.grad is None


def test_strict():
    y = tensor(Y)
    for call, words in (
            (lambda: jacobian(lambda y: tensor([1.0]), y, strict=True), 'output 0 of the function depends on no input'),
            (lambda: jacobian(lambda x, y: x, (y, y), strict=True), 'does not depend on input 1'),
            (lambda: jacobian(lambda y: y * 2, y, create_graph=True, strict=True), 'derivative 0 is constant'),
            (lambda: vjp(lambda y: y * 2, y, y, create_graph=True, strict=True), 'derivative 0 is constant'),
            (lambda: hessian(koine.sum, y, strict=True), 'gradient 0 of the function depends on no input'),
            (lambda: vhp(koine.sum, y, y, strict=True), 'the gradient of the function does not depend on input 0')):
        with pytest.raises(RuntimeError, match=words):
            call()
    close(jacobian(lambda y: y ** 2, y, strict=True), [[2, 0], [0, 4]])


def test_wrong_arguments():
    y = tensor(Y)
    for call, words in ((lambda: vjp(koine.exp, y), 'vjp: v is needed, unless the output'),
                        (lambda: jvp(koine.exp, y), 'jvp: v is needed, unless the input'),
                        (lambda: vjp(koine.exp, y, tensor([1.0])), r'v has the shapes \[\(1,\)\], but the outputs'),
                        (lambda: hvp(koine.exp, y, y), 'must return a tensor of one element'),
                        (lambda: hessian(lambda y: (y.sum(),), y), 'must return a tensor of one element')):
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(TypeError, match='the result of the function must be a tensor or a tuple of tensors, not int'):
        jacobian(lambda y: 3, y)
    with pytest.raises(TypeError, match='inputs must be a tensor or a tuple of tensors, not a tuple with float'):
        jacobian(koine.exp, (1.0,))
