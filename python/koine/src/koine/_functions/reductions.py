"""Reductions of all elements or along a dimension; softmax, quantiles, distinct elements."""
import collections
import functools

from .. import _ops
from .._tensor import Tensor, tensor

op = _ops.function


def _numpy_names(function):
    """Takes also axis and keepdims, numpy's words for dim and keepdim."""

    @functools.wraps(function)
    def called(*arguments, axis=None, keepdims=None, **keywords):
        if axis is not None:
            keywords['dim'] = axis
        if keepdims is not None:
            keywords['keepdim'] = keepdims
        return function(*arguments, **keywords)

    return called


def _extreme(name):
    def function(input, dim=None, keepdim=False, *, other=None):
        """The extreme of all elements; along `dim` (values, indices); of two tensors, elementwise."""
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            return op('maximum' if name == 'max' else 'minimum')(input, other)
        return op(name)(input) if dim is None else op(name + '_dim')(input, dim, keepdim)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, dim=None, keepdim=False, *, other=None'
    return _numpy_names(function)


max, min = _extreme('max'), _extreme('min')


def _median(name):
    def function(input, dim=None, keepdim=False):
        return op(name)(input) if dim is None else op(name + '_dim')(input, dim, keepdim)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, dim=None, keepdim=False'
    return _numpy_names(function)


median, nanmedian = _median('median'), _median('nanmedian')


def _position(name):
    def function(input, dim=None, keepdim=False):
        if dim is None:
            found = op(name)(input.reshape(-1), 0, False)
            return found.reshape((1,) * input.ndim) if keepdim else found
        return op(name)(input, dim, keepdim)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, dim=None, keepdim=False'
    return _numpy_names(function)


argmax, argmin = _position('argmax'), _position('argmin')


def _spread(name):
    def function(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
        if isinstance(dim, bool):  # var(unbiased)
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        return op(name + '_dims')(input, dim, keepdim, correction)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, dim=None, unbiased=None, keepdim=False, *, correction=None'
    return _numpy_names(function)


std, var = _spread('std'), _spread('var')


def _spread_and_mean(name):
    spread = _spread(name)

    def function(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
        found = spread(input, dim, unbiased, keepdim, correction=correction)
        return found, op('mean')(input, None if isinstance(dim, bool) else dim, keepdim)

    function.__name__ = function.__qualname__ = name + '_mean'
    function.line = 'input, dim=None, unbiased=None, keepdim=False, *, correction=None'
    return _numpy_names(function)


std_mean, var_mean = _spread_and_mean('std'), _spread_and_mean('var')


_Aminmax = collections.namedtuple('aminmax', 'min max', module='koine')


def aminmax(input, *, dim=None, keepdim=False):
    return _Aminmax(op('amin')(input, dim, keepdim), op('amax')(input, dim, keepdim))


def _softmax_dim(input, dim, axis):
    """PyTorch's choice where none is given."""
    dim = axis if dim is None else dim
    return (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim


def softmax(input, dim=None, *, dtype=None, axis=None):
    return op('softmax')(input, _softmax_dim(input, dim, axis), dtype=dtype)


def log_softmax(input, dim=None, *, dtype=None, axis=None):
    return op('log_softmax')(input, _softmax_dim(input, dim, axis), dtype=dtype)


def softmin(input, dim=None, *, dtype=None, axis=None):
    return op('softmin')(input if dtype is None else input.to(dtype), _softmax_dim(input, dim, axis))


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """A tuple: the derivative along each dimension, or along `dim`. `spacing` is a distance, for all dimensions or for
    each, or a list of tensors: the places along each."""
    dims = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    each = spacing if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(each) != len(dims):
        raise ValueError('gradient: %d spacings for %d dimensions' % (len(each), len(dims)))
    return tuple(op('gradient')(input, one, d, edge_order=edge_order) if isinstance(one, Tensor)
                 else op('gradient')(input, None, d, one, edge_order) for one, d in zip(each, dims))


def quantile(input, q, dim=None, keepdim=False, *, interpolation='linear'):
    q = q if isinstance(q, Tensor) else _numbers(q, input)
    return _ops.call('quantile', input, q, dim=() if dim is None else dim, keepdim=keepdim, interpolation=interpolation)


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation='linear'):
    q = q if isinstance(q, Tensor) else _numbers(q, input)
    return _ops.call('nanquantile', input, q, dim=() if dim is None else dim, keepdim=keepdim,
                     interpolation=interpolation)


def _numbers(values, like):
    return tensor(values, like.dtype, like.device)


def _distinct(name):
    def function(input, return_inverse=False, return_counts=False, dim=None):
        """The distinct elements, with what was asked for."""
        if not return_counts:
            results = op(name + ('_inverse' if return_inverse else '_values'))(input, dim)
            return tuple(results) if return_inverse else results
        values, inverse, counts = op(name + '_all')(input, dim)
        return (values, inverse, counts) if return_inverse else (values, counts)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, return_inverse=False, return_counts=False, dim=None'
    return function


_unique, unique_consecutive = _distinct('unique'), _distinct('unique_consecutive')


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    return _unique(input, return_inverse, return_counts, dim)
