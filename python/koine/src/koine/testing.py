"""torch.testing: assert_close."""
import collections.abc
import numbers

import numpy

from ._dtypes import bfloat16, float16, float32, float64
from ._tensor import Tensor, tensor

# (rtol, atol); 0 for other dtypes.
_TOLERANCES = {float16: (1e-3, 1e-5), bfloat16: (1.6e-2, 1e-5), float32: (1.3e-6, 1e-5), float64: (1e-7, 1e-7)}


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True,
                 check_dtype=True, check_layout=True, check_stride=False, msg=None):
    """Raises AssertionError unless |actual - expected| <= atol + rtol |expected| for all elements: of tensors, numbers,
    and sequences and mappings of them. Without tolerances PyTorch's for the dtype, the larger ones of two dtypes. msg
    is the error's text, or makes it of the text that it would have."""
    if (rtol is None) != (atol is None):
        raise ValueError('assert_close: rtol and atol are given both or not at all')
    compare = _Comparison(None if rtol is None else (rtol, atol), equal_nan, check_device, check_dtype, check_stride)
    compare.any(actual, expected, '')
    if compare.problem:
        raise AssertionError(msg(compare.problem) if callable(msg) else msg or compare.problem)


class _Comparison:
    """`problem` is the first difference that was found, or None."""

    def __init__(self, tolerances, equal_nan, check_device, check_dtype, check_stride):
        self.tolerances, self.equal_nan, self.problem = tolerances, equal_nan, None
        self.checks = [(name, get) for is_wanted, name, get in (
            (True, 'shape', lambda one: tuple(one.shape)), (check_device, 'device', lambda one: one.device),
            (check_dtype, 'dtype', lambda one: one.dtype), (check_stride, 'stride', lambda one: one.stride()))
            if is_wanted]

    def any(self, actual, expected, place):
        """`place` is the index or key that leads to the values: '[0]'."""
        if self.problem is not None:
            return
        if isinstance(actual, collections.abc.Mapping) and isinstance(expected, collections.abc.Mapping):
            self.parts(actual, expected, sorted(actual, key=str), set(actual) == set(expected), 'keys', place)
        elif _is_sequence(actual) and _is_sequence(expected):
            self.parts(actual, expected, range(len(actual)), len(actual) == len(expected), 'lengths', place)
        elif isinstance(actual, Tensor) and isinstance(expected, Tensor):
            self.tensors(actual, expected, 'Tensor-likes', place)
        elif _is_number(actual) and _is_number(expected):
            kinds = [float64 if isinstance(one, float) else None for one in (actual, expected)]
            self.tensors(*[tensor(one, dtype=kind, device='host') for one, kind in zip((actual, expected), kinds)],
                         'Scalars', place, checks=())
        elif isinstance(actual, numpy.ndarray) and isinstance(expected, numpy.ndarray):
            self.tensors(tensor(actual, device='host'), tensor(expected, device='host'), 'Tensor-likes', place)
        else:
            raise TypeError('assert_close: %s and %s cannot be compared%s' % (
                type(actual).__name__, type(expected).__name__, place and ', at ' + place))

    def parts(self, actual, expected, keys, are_there, what, place):
        if not are_there:
            found = [list(one) if what == 'keys' else len(one) for one in (actual, expected)]
            self.fail('The %s do not match: %s != %s' % (what, *found), place)
            return
        for key in keys:
            self.any(actual[key], expected[key], '%s[%r]' % (place, key))

    def tensors(self, actual, expected, what, place, checks=None):
        for name, get in self.checks if checks is None else checks:
            if get(actual) != get(expected):
                self.fail('The values for attribute %r do not match: %s != %s.' % (name, get(actual), get(expected)),
                          place)
                return
        rtol, atol = self.tolerances or [max(of) for of in zip(*(
            _TOLERANCES.get(one.dtype, (0.0, 0.0)) for one in (actual, expected)))]
        actual, expected = (_numbers(one) for one in (actual, expected))
        with numpy.errstate(all='ignore'):
            far = actual != expected  # of whole numbers, which isclose would make floats
            if rtol or atol or far.any() and 'f' in actual.dtype.kind + expected.dtype.kind:
                far = ~numpy.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
            if far.any():
                self.fail(_difference(what, numpy.atleast_1d(actual), numpy.atleast_1d(expected),
                                      numpy.atleast_1d(far), rtol, atol), place)

    def fail(self, text, place):
        self.problem = text + (place and '\n\nThe failure occurred for item %s' % place)


def _is_number(value):
    return isinstance(value, numbers.Number) and not isinstance(value, complex)


def _is_sequence(value):
    return isinstance(value, collections.abc.Sequence) and not isinstance(value, str)


def _numbers(one):
    """Integers stay whole."""
    array = numpy.asarray(one.detach())
    return array.astype('float64') if array.dtype.kind == 'f' else array.astype('int64')


def _difference(what, actual, expected, far, rtol, atol):
    """PyTorch's description."""
    absolute = numpy.abs(actual - expected)
    relative = absolute / numpy.abs(expected)
    lines = ['%s are not %s!' % (what, 'close' if rtol or atol else 'equal'), '']
    of_one = what == 'Scalars'
    if of_one:
        lines.append('Expected %s but got %s.' % (expected[0], actual[0]))
    else:
        lines.append('Mismatched elements: %d / %d (%.1f%%)' % (far.sum(), far.size, 100 * far.mean()))
    for name, of, allowed in (('absolute', absolute, atol), ('relative', relative, rtol)):
        most = numpy.unravel_index(numpy.where(far, numpy.nan_to_num(of, nan=numpy.inf), -1).argmax(), of.shape)
        lines.append('%s difference: %s%s%s' % (
            name.capitalize() if of_one else 'Greatest ' + name, of[most],
            '' if of_one else ' at index %s' % (tuple(int(i) for i in most),),
            ' (up to %s allowed)' % allowed if rtol or atol else ''))
    return '\n'.join(lines)
