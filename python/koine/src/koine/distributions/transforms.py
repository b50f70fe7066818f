"""Invertible functions of samples, for TransformedDistribution: t(x), t.inv(y), and the logarithm of the derivative."""
import math

import numpy

from .. import _ops
from .._tensor import Tensor
from . import constraints

op = _ops.function


class Transform:
    """A subclass has _call(x), _inverse(y), log_abs_det_jacobian(x, y), the constraint `codomain` of its results, and
    `sign`, that of its derivative. With cache_size=1 the inverse of the last result is its argument itself, where
    computing it would lose digits."""

    codomain = constraints.real
    sign = 1
    event_dim = 0  # of how many last dimensions together it is a function
    shape = ()     # that of its parameters

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError('%s: cache_size is 0 or 1, not %s' % (type(self).__name__, cache_size))
        self._cache_size, self._last = cache_size, (None, None)

    def __call__(self, x):
        y = self._call(x)
        if self._cache_size:
            self._last = x, y
        return y

    def inv(self, y):
        x, last = self._last
        return x if y is last else self._inverse(y)

    def log_abs_det_jacobian(self, x, y):
        """log |dy / dx|, where y = self(x)."""
        raise NotImplementedError('%s has no log_abs_det_jacobian' % type(self).__name__)

    def __repr__(self):
        return type(self).__name__ + '()'


class ExpTransform(Transform):
    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class SigmoidTransform(Transform):
    codomain = constraints.unit_interval

    def _call(self, x):
        return x.sigmoid()

    def _inverse(self, y):
        return y.logit()

    def log_abs_det_jacobian(self, x, y):
        return op('logsigmoid')(x) + op('logsigmoid')(-x)


class TanhTransform(Transform):
    codomain = constraints.interval(-1, 1)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        # Of 1 - tanh(x)**2 = 4 s(2 x) s(-2 x), s the sigmoid, which does not round to 0.
        return 2 * math.log(2) + op('logsigmoid')(2 * x) + op('logsigmoid')(-2 * x)


class AffineTransform(Transform):
    """loc + scale x."""

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim
        self.shape = numpy.broadcast_shapes(*[one.shape for one in (loc, scale) if isinstance(one, Tensor)])

    @property
    def sign(self):
        return self.scale.sign() if isinstance(self.scale, Tensor) else math.copysign(1, self.scale)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale if isinstance(self.scale, Tensor) else x.new_full((), self.scale)
        return sum_rightmost(scale.abs().log().expand(x.shape), self.event_dim)


def sum_rightmost(values, count):
    """Over the last `count` dimensions."""
    return values.flatten(values.ndim - count).sum(-1) if count else values
