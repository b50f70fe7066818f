"""PyTorch's second names of functions and methods, questions about tensors and modes, functions of Python on the host.
"""
import math

import numpy
import pytest

import koine
from koine import amp


@pytest.mark.parametrize('name, other', [
    ('arccos', 'acos'), ('arcsin', 'asin'), ('arctan', 'atan'), ('arccosh', 'acosh'), ('arcsinh', 'asinh'),
    ('arctanh', 'atanh'), ('absolute', 'abs'), ('negative', 'neg'), ('fix', 'trunc')])
def test_other_names_in_place(name, other):
    numbers = [1.25, 2.5] if name == 'arccosh' else [-0.75, 0.5]
    expected = getattr(koine.tensor(numbers), other)().tolist()
    x, y = koine.tensor(numbers), koine.tensor(numbers)
    assert getattr(x, name + '_')() is x and x.tolist() == expected
    assert getattr(koine, name + '_')(y) is y and y.tolist() == expected


def test_names_in_place_of_two_tensors():
    x = koine.tensor([1.0, -2.0, 3.0])
    for name, expected in (('less_', [1, 1, 0]), ('less_equal_', [1, 1, 0]), ('greater_', [0, 0, 1]),
                           ('greater_equal_', [0, 0, 1]), ('not_equal_', [1, 1, 1])):
        assert getattr(x.clone(), name)(2).tolist() == expected
        assert getattr(x.clone(), name)(koine.full((3,), 2.0)).tolist() == expected
    assert x.arctan2_(koine.ones(3)) is x
    numpy.testing.assert_allclose(x.numpy(), numpy.arctan([1, -2, 3]), rtol=1e-6)


def test_shapes_in_place():
    x = koine.arange(6.0).reshape(2, 3)
    assert x.swapaxes_(0, 1).shape == (3, 2) and x.swapdims_(0, 1).shape == (2, 3)
    assert x.as_strided_((2, 2), (1, 2), 1).tolist() == [[1, 3], [2, 4]]
    y = koine.arange(6.0)
    before = y[:4]
    assert y.resize_(2, 2) is y and y.tolist() == [[0, 1], [2, 3]]
    y.zero_()
    assert before.tolist() == [0] * 4
    assert y.resize_((3, 2)).shape == (3, 2) and y[:2].tolist() == [[0, 0], [0, 0]]
    assert y.resize_as_(koine.ones(1, 2)).tolist() == [[0, 0]]
    with pytest.raises(ValueError, match='resize_: sizes must be at least 0, not \\(2, -1\\)'):
        y.resize_(2, -1)
    with pytest.raises(RuntimeError, match='resize_: the tensor requires a gradient'):
        koine.ones(2, requires_grad=True).resize_(1)


def test_parts():
    x = koine.arange(24).reshape(2, 4, 3)
    for name, dim in (('vsplit', 0), ('hsplit', 1), ('dsplit', 2)):
        for sections in (x.shape[dim], [1]):
            ours, theirs = getattr(x, name)(sections), getattr(numpy, name)(x.numpy(), sections)
            assert [one.tolist() for one in ours] == [one.tolist() for one in theirs]
    assert [one.tolist() for one in koine.hsplit(koine.arange(4), 2)] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match='hsplit: 4 elements along dimension 1 make no 3 equal parts'):
        x.hsplit(3)
    with pytest.raises(ValueError, match='dsplit: a tensor of 3 dimensions or more is needed, not of 2'):
        koine.ones(2, 2).dsplit(1)
    assert [one.shape for one in x.unsafe_chunk(2, 1)] == [(2, 2, 3)] * 2
    assert [one.shape for one in koine.unsafe_split(x, 3, 1)] == [(2, 3, 3), (2, 1, 3)]
    part = x.narrow_copy(1, 1, 2)
    assert part.tolist() == x[:, 1:3].tolist() and part.data_ptr() != x[:, 1:].data_ptr()


def test_names_for_complex_numbers():
    x = koine.tensor([[1.0, -2.0], [math.nan, 0.0]], requires_grad=True)
    assert koine.real(x) is x and x.conj() is x and not x.is_conj() and x.isreal().all()
    assert x.H.shape == (2, 2) and x.mH[0, 1].isnan() and x.adjoint()[1, 0].item() == -2
    angles = koine.angle(x)
    numpy.testing.assert_allclose(angles.detach().numpy(), [[0, numpy.pi], [numpy.nan, 0]], rtol=1e-6)
    angles[0].sum().backward()
    assert x.grad[0].tolist() == [0, 0] and koine.angle(koine.tensor([-1])).dtype is koine.float32


def test_questions():
    x = koine.ones(2, dtype='uint8', device='cpu')
    assert not x.is_signed() and koine.is_signed(x.long()) and koine.int8.is_signed and not koine.bool.is_signed
    assert x.is_same_size(koine.ones(2)) and not koine.is_same_size(x, koine.ones(3))
    assert x.is_cpu and x.host().is_cpu and not x.is_sparse and not x.is_meta and not x.is_inference()
    assert koine.get_device(x) == x.get_device() == x.device.index


def test_dropout_in_place():
    x = koine.ones(1000)
    assert koine.dropout_(x, 0.5, True) is x and set(x.tolist()) == {0, 2}
    assert koine.dropout_(x.fill_(1), 0.5, False).tolist() == [1] * 1000
    assert koine.alpha_dropout_(koine.ones(100), 0.5, True).unique().numel() == 2
    y = koine.ones(100, requires_grad=True)
    z = y * 1
    koine.dropout_(z, 0.25, True)
    z.sum().backward()
    assert y.grad.tolist() == z.tolist()


def test_other_orders():
    a = koine.tensor([[4.0, 1.0], [1.0, 3.0]])
    b = koine.tensor([[1.0], [2.0]])
    x = koine.lu_solve(b, *koine.linalg.lu_factor(a))
    numpy.testing.assert_allclose((a @ x).numpy(), b.numpy(), rtol=1e-5)
    numpy.testing.assert_allclose((a @ b.cholesky_solve(koine.cholesky(a))).numpy(), b.numpy(), rtol=1e-5)
    assert koine.trapz(koine.tensor([1.0, 3.0]), dx=2).item() == 4
    assert koine.trapz(koine.tensor([1.0, 3.0]), koine.tensor([0.0, 0.5])).item() == 1
    assert koine.tensor([1.0, 2.0]).histogram(2).hist.tolist() == [1, 1]
    x = koine.ones(2, requires_grad=True)
    assert koine.detach_(x * 2).is_leaf


def test_functions_of_python():
    x = koine.arange(6.0).reshape(2, 3).host()
    assert x.apply_(lambda one: one * one) is x and x.tolist() == [[0, 1, 4], [9, 16, 25]]
    assert x.map_(koine.tensor([1.0, 2.0, 3.0]).host(), lambda one, other: one - other).tolist() == [
        [-1, -1, 1], [8, 14, 22]]
    assert koine.tensor(3, device='host').apply_(lambda one: one + 1).item() == 4
    for wrong in (lambda: koine.ones(1).apply_(abs), lambda: x.map_(koine.ones(1), max)):
        with pytest.raises(TypeError, match='Python computes on the host only'):
            wrong()


def test_inference_mode():
    x = koine.ones(1, requires_grad=True)
    assert not koine.is_inference_mode_enabled()
    with koine.inference_mode():
        assert koine.is_inference_mode_enabled() and not (x * 2).requires_grad
        with koine.inference_mode(False):
            assert not koine.is_inference_mode_enabled()
    with koine.inference_mode(mode=False):
        assert (x * 2).requires_grad
    with koine.no_grad():
        assert not koine.is_inference_mode_enabled()

    @koine.inference_mode
    def bare():
        return koine.is_inference_mode_enabled(), (x * 2).requires_grad

    @koine.inference_mode()
    def called():
        return koine.is_inference_mode_enabled(), (x * 2).requires_grad

    assert bare() == called() == (True, False) and not koine.is_inference_mode_enabled()


def test_default_device():
    before = koine.get_default_device()
    koine.set_default_device('host')
    try:
        assert koine.ones(1).device == 'host' == koine.get_default_device()
    finally:
        koine.set_default_device(None)
    assert koine.get_default_device() == before == koine.device('auto')


def test_anomalies():
    assert not koine.is_anomaly_check_nan_enabled()
    with koine.autograd.detect_anomaly():
        assert koine.is_anomaly_check_nan_enabled() and koine.is_anomaly_enabled()


# --- autocast ---------------------------------------------------------------------------------------------------------


def test_dtypes_of_autocast():
    assert koine.get_autocast_dtype('cpu') is koine.bfloat16 and koine.get_autocast_dtype('cuda') is koine.float16
    with koine.autocast('cpu', dtype=koine.float16):
        assert amp.get_autocast_dtype('cpu') is koine.float16
    assert amp.is_autocast_available('cpu') and not amp.is_autocast_available('no such device')
    assert koine.GradScaler is amp.GradScaler


class Product(koine.autograd.Function):
    @staticmethod
    @amp.custom_fwd(device_type='cpu')
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    @amp.custom_bwd(device_type='cpu')
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        Product.inside = amp.is_autocast_enabled()
        return grad @ b.T, a.T @ grad


class Exact(Product):
    @staticmethod
    @amp.custom_fwd(device_type='cuda', cast_inputs=koine.float32)
    def forward(ctx, a, b):
        Exact.seen = a.dtype, b.dtype, amp.is_autocast_enabled()
        ctx.save_for_backward(a, b)
        return a @ b


def test_functions_in_autocast():
    a = koine.randn(2, 2, requires_grad=True)
    with koine.autocast('cpu', dtype=koine.bfloat16):
        product = Product.apply(a, a)
    assert product.dtype is koine.bfloat16
    product.sum().backward()
    assert Product.inside and a.grad.dtype is koine.float32
    Product.apply(a, a).sum().backward()
    assert not Product.inside
    with koine.autocast('cpu', dtype=koine.bfloat16):
        product = Exact.apply(a.half(), a)
    assert Exact.seen == (koine.float32, koine.float32, False) and product.dtype is koine.float32
    product.sum().backward()
    assert not Product.inside
    Exact.apply(a.double(), a.double())
    assert Exact.seen == (koine.float64, koine.float64, False)
