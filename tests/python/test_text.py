"""How tensors are printed, and the default dtype. The texts are PyTorch's."""
import math

import pytest

import koine


@pytest.fixture(autouse=True)
def default_options():
    yield
    koine.set_printoptions(profile='default')


def text(values, **options):
    koine.set_printoptions(**options)
    return repr(koine.tensor(values, device='host'))


def test_print_options():
    values = [1.5, -2.25, 1000.125]
    assert text(values) == 'tensor([   1.5000,   -2.2500, 1000.1250])'
    assert text(values, precision=2) == 'tensor([   1.50,   -2.25, 1000.12])'
    assert text(values, sci_mode=True) == 'tensor([ 1.50e+00, -2.25e+00,  1.00e+03])'
    assert text([0.0, 0.0], sci_mode=True) == 'tensor([0., 0.])'
    assert text([1e-9, 1.5, math.nan], sci_mode=False, profile='default') == 'tensor([0.0000, 1.5000,    nan])'
    assert text([3e9, 1.0]) == 'tensor([3.0000e+09, 1.0000e+00])'
    numbers = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert text(numbers, threshold=5, edgeitems=1) == (
        'tensor([[ 0,  ...,  3],\n        ...,\n        [ 8,  ..., 11]])')
    assert text([i / 7 for i in range(1200)], profile='short') == (
        'tensor([0.00e+00, 1.43e-01,  ..., 1.71e+02, 1.71e+02])')
    assert text([float(i) for i in range(12)], profile='full', linewidth=30) == (
        'tensor([ 0.,  1.,  2.,  3.,\n         4.,  5.,  6.,  7.,\n         8.,  9., 10., 11.])')
    assert '...' not in text([0] * 2000) and '...' in text([0] * 2000, threshold=1999)
    assert '...' not in text([0] * 2000, threshold=math.inf)


def test_parameters():
    assert repr(koine.nn.Parameter(koine.ones(2))).startswith('Parameter containing:\ntensor([1., 1.]')


def test_wrong_options():
    koine.set_printoptions(precision=3)
    for wrong, words in (({'profile': 'long'}, "'default', 'short' or 'full', not 'long'"),
                         ({'edgeitems': 0}, 'at least 1'), ({'precision': 51}, 'from 0 to 50, not 51'),
                         ({'linewidth': 0}, 'line_width')):
        with pytest.raises(ValueError, match=words):
            koine.set_printoptions(**wrong)
    assert repr(koine.tensor(0.5, device='host')) == 'tensor(0.500)'


def test_the_default_dtype():
    koine.set_default_dtype(koine.float32)
    assert koine.get_default_dtype() is koine.tensor(1.0).dtype is koine.float32
    with pytest.raises(ValueError, match="the default is float32; where float64 is wanted, .* dtype='float64'"):
        koine.set_default_dtype(koine.float64)
    assert koine.is_tensor(koine.ones(1)) and not koine.is_tensor(1) and koine.numel(koine.ones(2, 3)) == 6
    assert koine.is_floating_point(koine.ones(1)) and koine.finfo(koine.float16).max == 65504
    assert koine.iinfo('int8').min == -128
