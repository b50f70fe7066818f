"""koine.testing."""
import collections

import numpy
import pytest

import koine
from koine.testing import assert_close


def test_close_values():
    x = koine.randn(3, 4)
    assert_close(x, x + 1e-6)
    assert_close(x.half(), x.half() * (1 + 4e-4))
    assert_close(x.double(), x, check_dtype=False)
    assert_close({'a': [x, (1, 2.0)]}, collections.OrderedDict(a=[x.clone(), [1, 2.0]]))
    assert_close(koine.tensor([float('nan')]), koine.tensor([float('nan')]), equal_nan=True)
    assert_close(numpy.ones(2), numpy.ones(2))
    assert_close(x, x.host(), check_device=False)
    assert_close(koine.tensor(2**60 + 1), koine.tensor(2**60 + 1))
    assert_close(koine.ones(0, 2), koine.ones(0, 2))
    assert_close(1.0, 1.5, rtol=0, atol=0.5)


def said(actual, expected, **keywords):
    with pytest.raises(AssertionError) as raised:
        assert_close(actual, expected, **keywords)
    return str(raised.value)


def test_what_differs():
    found = said(koine.tensor([1.0, 2, 3]), koine.tensor([1.0, 2, 4]))
    assert found == ('Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\n'
                     'Greatest absolute difference: 1.0 at index (2,) (up to 1e-05 allowed)\n'
                     'Greatest relative difference: 0.25 at index (2,) (up to 1.3e-06 allowed)')
    found = said([koine.tensor(2**60)], [koine.tensor(2**60 + 1)])
    assert 'Tensor-likes are not equal!' in found and 'difference: 1 at index (0,)' in found
    assert found.endswith('The failure occurred for item [0]')
    assert said({'a': 1.0}, {'a': 2.0}) == (
        'Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-07 allowed)\n'
        "Relative difference: 0.5 (up to 1e-07 allowed)\n\nThe failure occurred for item ['a']")
    nan = koine.tensor([float('nan')])
    assert 'Mismatched elements: 1 / 1' in said(nan, nan)
    assert 'relative difference: inf' in said(koine.ones(1), koine.zeros(1))
    x = koine.ones(2)
    assert said(x, koine.ones(3)) == "The values for attribute 'shape' do not match: (2,) != (3,)."
    assert said(x, x.double()) == "The values for attribute 'dtype' do not match: koine.float32 != koine.float64."
    assert "attribute 'device'" in said(x, x.host())
    assert "attribute 'stride'" in said(koine.ones(2, 2), koine.ones(2, 2).T, check_stride=True)
    assert said([x], [x, x]) == 'The lengths do not match: 1 != 2'
    assert said({'a': x}, {'b': x}) == "The keys do not match: ['a'] != ['b']"
    assert said(x, x + 1, msg='no') == 'no' and said(x, x + 1, msg=lambda text: 'X' + text).startswith('XTensor')


def test_what_cannot_be_compared():
    with pytest.raises(TypeError, match=r'Tensor and int cannot be compared, at \[0\]'):
        assert_close([koine.ones(1)], [1])
    with pytest.raises(ValueError, match='both or not at all'):
        assert_close(1.0, 1.0, rtol=1)
