"""Matrices with orthonormal columns, or rows, from any matrices: torch.nn.utils.parametrizations.orthogonal."""
import numpy

from ... import _functions, _ops, linalg
from ..._tensor import tensor
from ..module import Module

MAPS = 'matrix_exp', 'cayley', 'householder'


class _Orthogonal(Module):
    """The weight as Q, of a matrix with at least as many rows as columns, else as the transpose of such a Q.

    The first two maps take a skew-symmetric matrix to a rotation, the third takes vectors below the diagonal to the
    product of their reflections. With a base, a Q that was assigned, the result is the base times that Q: the original
    is then -1 on the diagonal and 0 elsewhere at first, which every map takes to the identity."""

    def __init__(self, orthogonal_map, use_trivialization):
        super().__init__()
        self.orthogonal_map, self._has_base, self._is_used = orthogonal_map, use_trivialization, False
        if use_trivialization:
            self.register_buffer('base', None)

    def forward(self, x):
        is_wide = x.size(-2) < x.size(-1)
        x = x.mT if is_wide else x
        q = _reflections(x) if self.orthogonal_map == 'householder' else self._rotation(x)
        q = self.base @ q if self._has_base else q
        return q.mT if is_wide else q

    def _rotation(self, x):
        rows, columns = x.shape[-2:]
        below = x.tril()
        if rows > columns:
            below = _ops.function('cat')([below, _zeros(x, rows, rows - columns)], -1)
        skew = below - below.mT
        if self.orthogonal_map == 'matrix_exp':
            q = linalg.matrix_exp(skew)
        else:
            one = _functions.eye(rows, dtype=x.dtype, device=x.device).expand(skew.shape)
            q = linalg.solve(one - skew / 2, one + skew / 2)
        return q.narrow(-1, 0, columns)

    def right_inverse(self, value):
        is_wide = value.size(-2) < value.size(-1)
        q = value.mT if is_wide else value
        if self._has_base:
            original = self._set_base(q)
        elif self.orthogonal_map == 'householder':
            original = _vectors(q)
        elif self._is_used:
            raise NotImplementedError('orthogonal: nothing can be assigned to a weight of orthogonal_map=%r with '
                                      'use_trivialization=False' % self.orthogonal_map)
        else:  # the first time: the weight itself is the original
            return value.clone()
        return original.mT if is_wide else original

    def _set_base(self, q):
        rows, columns = q.shape[-2:]
        if rows > columns:
            others = _functions.randn(*q.shape[:-1], rows - columns, dtype=q.dtype, device=q.device)
            q = _ops.function('cat')([q, others], -1)
        self.base = _with_positive_diagonal(q)
        minus_one = -_functions.eye(rows, columns, dtype=q.dtype, device=q.device)
        return minus_one.repeat(*q.shape[:-2], 1, 1)


def _zeros(like, rows, columns):
    return _functions.zeros(*like.shape[:-2], rows, columns, dtype=like.dtype, device=like.device)


def _reflections(x):
    below = x.tril(-1)
    q = linalg.householder_product(below, 2 / (1 + (below * below).sum(-2)))
    return q * x.diagonal(0, -2, -1).detach().trunc().unsqueeze(-2)


def _with_positive_diagonal(x):
    """Q of the decomposition Q R whose R has a positive diagonal: x itself if its columns are orthonormal."""
    q, r = linalg.qr(x)
    return q * r.diagonal(0, -2, -1).sign().unsqueeze(-2)


def _vectors(q):
    """Those whose reflections make q, with the signs of the columns on the diagonal. LAPACK has them below the diagonal
    of the factor R, in numpy's transposed form."""
    found, taus = numpy.linalg.qr(q.detach().numpy(), mode='raw')
    found = numpy.array(found.swapaxes(-1, -2))
    at = numpy.arange(found.shape[-1])
    signs = numpy.sign(found[..., at, at])
    found[..., at, at] = numpy.where(taus == 0, -signs, signs)
    return tensor(found, q.dtype, q.device)
