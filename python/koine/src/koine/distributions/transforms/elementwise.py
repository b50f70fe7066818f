"""Transforms of each element."""
import math

import numpy

from ... import _ops
from ..._tensor import Tensor
from .. import constraints
from .base import Transform, sum_rightmost

op = _ops.function


class _Rising(Transform):
    sign = 1


class ExpTransform(_Rising):
    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class SigmoidTransform(_Rising):
    codomain = constraints.unit_interval

    def _call(self, x):
        return x.sigmoid()

    def _inverse(self, y):
        return y.logit()

    def log_abs_det_jacobian(self, x, y):
        return op('logsigmoid')(x) + op('logsigmoid')(-x)


class TanhTransform(_Rising):
    codomain = constraints.interval(-1, 1)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        # Of 1 - tanh(x)**2 = 4 s(2 x) s(-2 x), s the sigmoid, which does not round to 0.
        return 2 * math.log(2) + op('logsigmoid')(2 * x) + op('logsigmoid')(-2 * x)


class SoftplusTransform(_Rising):
    """log(1 + exp(x))."""
    codomain = constraints.positive

    def _call(self, x):
        return op('softplus')(x, threshold=40)

    def _inverse(self, y):
        return y + (-(-y).expm1()).log()

    def log_abs_det_jacobian(self, x, y):
        return op('logsigmoid')(x)


class AbsTransform(Transform):
    """Whose inverse is the argument that is not negative."""
    codomain = constraints.positive
    bijective = False

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class PowerTransform(Transform):
    """x**exponent."""
    domain = codomain = constraints.positive
    _parameters = ('exponent',)

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self):
        return _sign(self.exponent)

    def _call(self, x):
        return x ** self.exponent

    def _inverse(self, y):
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return _broadcast(shape, self.exponent)

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """loc + scale x."""
    _parameters = ('loc', 'scale')

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        if event_dim:
            self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    @property
    def sign(self):
        return _sign(self.scale)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale if isinstance(self.scale, Tensor) else x.new_full((), self.scale)
        return sum_rightmost(scale.abs().log().expand(x.shape), self.event_dim)

    def forward_shape(self, shape):
        return _broadcast(shape, self.loc, self.scale)

    inverse_shape = forward_shape


class CumulativeDistributionTransform(_Rising):
    """The cdf of a distribution, of which it makes a uniform one."""
    codomain = constraints.unit_interval
    _parameters = ('distribution',)

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)


def _sign(value):
    return value.sign() if isinstance(value, Tensor) else math.copysign(1, value)


def _broadcast(shape, *values):
    return tuple(numpy.broadcast_shapes(shape, *[one.shape for one in values if isinstance(one, Tensor)]))
