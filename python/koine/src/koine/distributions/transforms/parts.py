"""Transforms of parts, and of shapes."""
import math

from ... import _functions, _ops
from .. import constraints
from .base import Transform, sum_rightmost, widened

op = _ops.function


class IndependentTransform(Transform):
    """A transform whose last `reinterpreted_batch_ndims` dimensions, too, are those of what it is a function of."""
    _parameters = ('base_transform', 'reinterpreted_batch_ndims')

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims
        self.domain = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain = constraints.independent(base_transform.codomain, reinterpreted_batch_ndims)
        self.bijective = base_transform.bijective
        self.forward_shape, self.inverse_shape = base_transform.forward_shape, base_transform.inverse_shape

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        return self.base_transform(x)

    def _inverse(self, y):
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return 'IndependentTransform(%r, %d)' % (self.base_transform, self.reinterpreted_batch_ndims)


class ReshapeTransform(Transform):
    """The last dimensions, of the shape `in_shape`, as ones of the shape `out_shape`."""
    _parameters = ('in_shape', 'out_shape')

    def __init__(self, in_shape, out_shape, cache_size=0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError('ReshapeTransform: the shapes %s and %s have different numbers of elements'
                             % (self.in_shape, self.out_shape))
        self.domain = widened(constraints.real, len(self.in_shape))
        self.codomain = widened(constraints.real, len(self.out_shape))

    def _call(self, x):
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y):
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[:x.ndim - len(self.in_shape)])

    def forward_shape(self, shape):
        return _with_end(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return _with_end(shape, self.out_shape, self.in_shape)


def _with_end(shape, end, other):
    kept = len(shape) - len(end)
    if kept < 0 or tuple(shape[kept:]) != end:
        raise ValueError('ReshapeTransform: the shape %s does not end with %s' % (tuple(shape), end))
    return tuple(shape[:kept]) + other


class _PartsTransform(Transform):
    """One of `transforms` for each of the parts that _parted(values) gives and _joined(parts) puts together again."""

    def __init__(self, transforms, dim, cache_size):
        super().__init__(cache_size)
        self.transforms, self.dim = list(transforms), dim
        self.bijective = all(one.bijective for one in self.transforms)

    def _mapped(self, functions, *values):
        parts = zip(*[self._parted(one) for one in values])
        return [function(*some) for function, some in zip(functions, parts)]

    def _call(self, x):
        return self._joined(self._mapped(self.transforms, x))

    def _inverse(self, y):
        return self._joined(self._mapped([one.inv for one in self.transforms], y))


class StackTransform(_PartsTransform):
    """Of the elements of the dimension `dim`."""
    _parameters = ('transforms', 'dim')

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.domain = constraints.stack([one.domain for one in self.transforms], dim)
        self.codomain = constraints.stack([one.codomain for one in self.transforms], dim)

    def _parted(self, values):
        return _functions.unbind(values, self.dim)

    def _joined(self, parts):
        return op('stack')(parts, self.dim)

    def log_abs_det_jacobian(self, x, y):
        return self._joined(self._mapped([one.log_abs_det_jacobian for one in self.transforms], x, y))


class CatTransform(_PartsTransform):
    """Of parts with `lengths` elements each, or one, of the dimension `dim`."""
    _parameters = ('transforms', 'dim', 'lengths')

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        self.domain = constraints.cat([one.domain for one in self.transforms], dim, self.lengths)
        self.codomain = constraints.cat([one.codomain for one in self.transforms], dim, self.lengths)

    @property
    def length(self):
        return sum(self.lengths)

    def _parted(self, values):
        return _functions.split(values, self.lengths, self.dim)

    def _joined(self, parts):
        return op('cat')(parts, self.dim)

    def log_abs_det_jacobian(self, x, y):
        """Of parts whose transforms are functions of fewer dimensions, the sums over the others; of all parts together
        the sum, if the dimension is one of these."""
        dims = self.domain.event_dim
        logs = self._mapped([one.log_abs_det_jacobian for one in self.transforms], x, y)
        logs = [sum_rightmost(log, dims - one.domain.event_dim) for log, one in zip(logs, self.transforms)]
        from_end = (self.dim if self.dim < 0 else self.dim - x.ndim) + dims
        return op('cat')(logs, from_end) if from_end < 0 else sum(logs)
