"""Distributions with powers in their cdf, whose inverse is a formula: Weibull, Pareto, Kumaraswamy."""
import math

from .. import _functions, _ops
from . import constraints
from .distribution import Distribution, broadcast, positive_values
from .location_scale import EULER, exponential_deviates

op = _ops.function


class _FromExponential(Distribution):
    """Samples are _of_exponential(E), a function that rises, of exponential deviates, whose inverse is
    _to_exponential(x)."""
    has_rsample = True

    def rsample(self, sample_shape=()):
        like = self.__dict__[next(iter(self.arg_constraints))]
        deviates = exponential_deviates(self._extended_shape(sample_shape), like)
        return self._of_exponential(positive_values(deviates))  # the gradients of powers of 0 are NaN

    def cdf(self, value):
        self._validate_sample(value)
        return -(-self._to_exponential(value)).expm1()

    def icdf(self, value):
        return self._of_exponential(-(-value).log1p())


class Weibull(_FromExponential):
    """With the cdf 1 - exp(-(x / scale)**concentration)."""
    arg_constraints = {'scale': constraints.positive, 'concentration': constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def _of_exponential(self, deviate):
        return self.scale * deviate ** (1 / self.concentration)

    def _to_exponential(self, value):
        return (value / self.scale) ** self.concentration

    @property
    def mean(self):
        return self.scale * (1 + 1 / self.concentration).lgamma().exp()

    @property
    def mode(self):
        return self.scale * ((self.concentration - 1).clamp(min=0) / self.concentration) ** (1 / self.concentration)

    @property
    def variance(self):
        k = self.concentration
        return self.scale ** 2 * ((1 + 2 / k).lgamma().exp() - (2 * (1 + 1 / k).lgamma()).exp())

    def log_prob(self, value):
        self._validate_sample(value)
        log_ratio = (value / self.scale).log()
        return (self.concentration / self.scale).log() + (self.concentration - 1) * log_ratio - (
            self._to_exponential(value))

    def entropy(self):
        return EULER * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1


class Pareto(_FromExponential):
    """From `scale` on, with the cdf 1 - (scale / x)**alpha."""
    arg_constraints = {'alpha': constraints.positive, 'scale': constraints.positive}

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def support(self):
        return constraints.greater_than_eq(self.scale, 'scale')

    def _of_exponential(self, deviate):
        return self.scale * (deviate / self.alpha).exp()

    def _to_exponential(self, value):
        return self.alpha * (value / self.scale).log()

    @property
    def mean(self):
        a = self.alpha
        return _functions.where(a > 1, a * self.scale / (a - 1), math.inf)

    @property
    def mode(self):
        return self.scale

    @property
    def variance(self):
        a = self.alpha
        return _functions.where(a > 2, self.scale ** 2 * a / ((a - 1) ** 2 * (a - 2)), math.inf)

    def log_prob(self, value):
        self._validate_sample(value)
        return (self.alpha / value).log() - self._to_exponential(value)

    def entropy(self):
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha


class GeneralizedPareto(_FromExponential):
    """From `loc` on, with the cdf 1 - (1 + concentration (x - loc) / scale)**(-1 / concentration), whose limit is that
    of the exponential distribution where the concentration is 0. A negative one has a largest value."""
    arg_constraints = {'loc': constraints.real, 'scale': constraints.positive, 'concentration': constraints.real}

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def support(self):
        k = self.concentration
        highest = _functions.where(k < 0, self.loc - self.scale / k, math.inf)
        return constraints.interval(self.loc, highest, ('loc', 'loc - scale / concentration, if that is positive'))

    def _of_exponential(self, deviate):
        u = self.concentration * deviate
        return self.loc + self.scale * deviate * _over_argument(op('expm1'), u, (1, 1 / 2, 1 / 6, 1 / 24, 1 / 120))

    def _to_exponential(self, value):
        z = (value - self.loc) / self.scale
        u = self.concentration * z
        return z * _over_argument(op('log1p'), u, (1, -1 / 2, 1 / 3, -1 / 4, 1 / 5))

    @property
    def mean(self):
        k = self.concentration
        return _functions.where(k < 1, self.loc + self.scale / (1 - k), math.inf)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        k = self.concentration
        return _functions.where(k < 0.5, self.scale ** 2 / ((1 - k) ** 2 * (1 - 2 * k)), math.inf)

    def log_prob(self, value):
        self._validate_sample(value)
        return -self.scale.log() - (1 + self.concentration) * self._to_exponential(value)

    def entropy(self):
        return self.scale.log() + self.concentration + 1


class Kumaraswamy(_FromExponential):
    """From 0 to 1, with the cdf 1 - (1 - x**concentration1)**concentration0."""
    arg_constraints = {'concentration1': constraints.positive, 'concentration0': constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def _of_exponential(self, deviate):
        return (-(-deviate / self.concentration0).expm1()) ** (1 / self.concentration1)

    def _to_exponential(self, value):
        return -self.concentration0 * (-value ** self.concentration1).log1p()

    def _moment(self, power):
        """Of the form b B(1 + power / a, b)."""
        first, b = 1 + power / self.concentration1, self.concentration0
        return (first.lgamma() + (b + 1).lgamma() - (first + b).lgamma()).exp()

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        """NaN where a concentration is below 1, so that the density is infinite at 0 or at 1."""
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** (1 / a)
        return _functions.where((a < 1) | (b < 1), math.nan, mode)

    @property
    def variance(self):
        return self._moment(2) - self._moment(1) ** 2

    def log_prob(self, value):
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return (a * b).log() + (a - 1) * value.log() + (b - 1) * (-value ** a).log1p()

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + EULER
        return 1 - 1 / b + (1 - 1 / a) * harmonic - (a * b).log()


def _over_argument(function, u, series):
    """function(u) / u; near 0, where its derivative would lose digits, by the terms of its Taylor series."""
    near = u.abs() < 1e-3
    apart, total = _functions.where(near, 1.0, u), 0
    for factor in reversed(series):
        total = total * u + factor
    return _functions.where(near, total, function(apart) / apart)
