"""Transforms to matrices: Cholesky factors, also of correlations, and positive definite matrices."""
import math

import numpy

from ... import _functions, _ops, linalg
from ..._dtypes import finfo
from .. import constraints
from .base import Transform

op = _ops.function


class LowerCholeskyTransform(Transform):
    """Of a matrix, whose upper triangle is not used: exp of the diagonal."""
    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky
    bijective = False

    def _call(self, x):
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """The product of such a factor and its transpose."""
    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite
    bijective = False

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Of the D (D - 1) / 2 numbers below the diagonal of a D x D matrix, row by row: the factor of a correlation matrix
    (the partial correlations of Lewandowski, Kurowicka and Joe, 2009, are their tanh)."""
    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    def _call(self, x):
        eps = finfo(x.dtype).eps
        partial = _to_lower(x.tanh().clamp(-1 + eps, 1 - eps))
        # Along a row each takes its part of what the ones before it have left of the length 1.
        left = op('pad')((1 - partial ** 2).sqrt().cumprod(-1)[..., :-1], (1, 0), value=1.0)
        return (partial + _functions.eye(_size(x.shape[-1]), dtype=x.dtype, device=x.device)) * left

    def _inverse(self, y):
        left = 1 - (y ** 2).cumsum(-1)
        left = op('pad')(left[..., :-1], (1, 0), value=1.0)
        return (_below_diagonal(y) / _below_diagonal(left).sqrt()).atanh()

    def log_abs_det_jacobian(self, x, y):
        left = _below_diagonal(1 - (y ** 2).cumsum(-1), 2)
        of_tanh = 2 * math.log(2) + op('logsigmoid')(2 * x) + op('logsigmoid')(-2 * x)
        return 0.5 * left.log().sum(-1) + of_tanh.sum(-1)

    def forward_shape(self, shape):
        size = _size(shape[-1])
        return tuple(shape[:-1]) + (size, size)

    def inverse_shape(self, shape):
        if shape[-1] != shape[-2]:
            raise ValueError('CorrCholeskyTransform: the matrices must be square, not of the shape %s' % (shape,))
        return tuple(shape[:-2]) + (shape[-1] * (shape[-1] - 1) // 2,)


def _size(count):
    """That of a matrix with so many numbers below its diagonal."""
    size = round((0.25 + 2 * count) ** 0.5 + 0.5)
    if size * (size - 1) // 2 != count:
        raise ValueError('CorrCholeskyTransform: no matrix has %d numbers below its diagonal' % count)
    return size


def _to_lower(vector):
    """The matrix with these numbers below its diagonal: by an index of them, whose last is a zero."""
    size = _size(vector.shape[-1])
    index = numpy.full((size, size), vector.shape[-1])
    index[numpy.tril_indices(size, -1)] = numpy.arange(vector.shape[-1])
    return _taken(op('pad')(vector, (0, 1)), index.reshape(-1)).reshape(vector.shape[:-1] + (size, size))


def _below_diagonal(matrix, below=1):
    size = matrix.shape[-1]
    rows, columns = numpy.tril_indices(size, -below)
    return _taken(matrix.flatten(-2), rows * size + columns)


def _taken(values, index):
    return op('index_select')(values, -1, _functions.asarray(index, device=values.device))
