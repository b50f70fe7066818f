"""Distributions of real numbers whose samples are moved and scaled ones of a standard distribution."""
import math

from .. import _functions, _ops
from . import constraints
from .distribution import Distribution, Symmetric, broadcast, positive_values
from .exponential_family import ExponentialFamily

op = _ops.function
EULER = 0.5772156649015329  # Euler's constant


class _LocationScale(Symmetric):
    """Subclasses have _standard(shape), samples for loc 0 and scale 1, or another rsample; those that are not symmetric
    another mean and mode."""
    has_rsample = True
    arg_constraints = {'loc': constraints.real, 'scale': constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def rsample(self, sample_shape=()):
        return self.loc + self.scale * self._standard(self._extended_shape(sample_shape))

    def _normalized(self, value):
        self._validate_sample(value)
        return (value - self.loc) / self.scale


class Normal(_LocationScale, ExponentialFamily):
    _mean_carrier_measure = 0

    def _standard(self, shape):
        return _functions.randn(shape, dtype=self.loc.dtype, device=self.loc.device)

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale ** 2

    def log_prob(self, value):
        return -0.5 * self._normalized(value) ** 2 - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value):
        return op('ndtr')(self._normalized(value))

    def icdf(self, value):
        return self.loc + self.scale * op('ndtri')(value)

    def entropy(self):
        return self.scale.log() + 0.5 * (1 + math.log(2 * math.pi))

    @property
    def _natural_params(self):
        """Of x and x**2."""
        return self.loc / self.scale ** 2, -0.5 / self.scale ** 2

    def _log_normalizer(self, one, square):
        return -0.25 * one ** 2 / square + 0.5 * (-math.pi / square).log()


class LogNormal(_LocationScale):
    """exp of a normal deviate with these parameters."""
    support = constraints.positive

    @property
    def _normal(self):
        return Normal(self.loc, self.scale, validate_args=False)

    @property
    def mean(self):
        return (self.loc + 0.5 * self.scale ** 2).exp()

    @property
    def mode(self):
        return (self.loc - self.scale ** 2).exp()

    @property
    def variance(self):
        square = self.scale ** 2
        return square.expm1() * (2 * self.loc + square).exp()

    def rsample(self, sample_shape=()):
        return self._normal.rsample(sample_shape).exp()

    def log_prob(self, value):
        self._validate_sample(value)
        return self._normal.log_prob(value.log()) - value.log()

    def cdf(self, value):
        self._validate_sample(value)
        return self._normal.cdf(value.log())

    def icdf(self, value):
        return self._normal.icdf(value).exp()

    def entropy(self):
        return self._normal.entropy() + self.loc


class Laplace(_LocationScale):
    def _standard(self, shape):
        # The difference of two exponential deviates, of which none is infinite.
        return exponential_deviates(shape, self.loc) - exponential_deviates(shape, self.loc)

    @property
    def variance(self):
        return 2 * self.scale ** 2

    @property
    def stddev(self):
        return math.sqrt(2) * self.scale

    def log_prob(self, value):
        return -(2 * self.scale).log() - self._normalized(value).abs()

    def cdf(self, value):
        z = self._normalized(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value):
        side = value - 0.5
        return self.loc - self.scale * side.sign() * (-2 * side.abs()).log1p()

    def entropy(self):
        return 1 + (2 * self.scale).log()


class Cauchy(_LocationScale):
    """Whose tails are too heavy for a mean."""

    def _standard(self, shape):
        return _functions.empty(shape, dtype=self.loc.dtype, device=self.loc.device).cauchy_()

    @property
    def mean(self):
        return _functions.full_like(self.loc, math.nan)

    @property
    def variance(self):
        return _functions.full_like(self.loc, math.inf)

    def log_prob(self, value):
        return -(self._normalized(value) ** 2).log1p() - (math.pi * self.scale).log()

    def cdf(self, value):
        # The angle of (-z, 1) keeps its digits where z is far below 0.
        z = self._normalized(value)
        return op('atan2')(_functions.ones_like(z), -z) / math.pi

    def icdf(self, value):
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self):
        return (4 * math.pi * self.scale).log()


class Gumbel(_LocationScale):
    """The largest of many deviates, with the cdf exp(-exp(-z)), where z is moved and scaled."""

    def _standard(self, shape):
        return -positive_values(exponential_deviates(shape, self.loc)).log()

    @property
    def mean(self):
        return self.loc + EULER * self.scale

    @property
    def variance(self):
        return math.pi ** 2 / 6 * self.scale ** 2

    def log_prob(self, value):
        z = self._normalized(value)
        return -z - (-z).exp() - self.scale.log()

    def cdf(self, value):
        return (-(-self._normalized(value)).exp()).exp()

    def icdf(self, value):
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self):
        return self.scale.log() + 1 + EULER


class Uniform(Distribution):
    """From `low` to `high`, without `high` itself."""
    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = broadcast(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self):
        return {'low': constraints.less_than(self.high, 'high'), 'high': constraints.greater_than(self.low, 'low')}

    @property
    def support(self):
        return constraints.interval(self.low, self.high, ('low', 'high'))

    @property
    def mean(self):
        return (self.low + self.high) / 2

    @property
    def mode(self):
        return self.low * math.nan  # all values are equally likely

    @property
    def variance(self):
        return (self.high - self.low) ** 2 / 12

    @property
    def stddev(self):
        return (self.high - self.low) / math.sqrt(12)

    def rsample(self, sample_shape=()):
        standard = _functions.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + (self.high - self.low) * standard

    def log_prob(self, value):
        self._validate_sample(value)
        inside = (value >= self.low) & (value < self.high)
        return _functions.where(inside, -(self.high - self.low).log(), -math.inf)

    def cdf(self, value):
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return self.low + (self.high - self.low) * value

    def entropy(self):
        return (self.high - self.low).log()


class Exponential(ExponentialFamily):
    """With the density rate exp(-rate x)."""
    _mean_carrier_measure = 0
    has_rsample = True
    arg_constraints = {'rate': constraints.positive}
    support = constraints.nonnegative

    def __init__(self, rate, validate_args=None):
        self.rate, = broadcast(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self):
        return 1 / self.rate

    @property
    def mode(self):
        return _functions.zeros_like(self.rate)

    @property
    def stddev(self):
        return 1 / self.rate

    @property
    def variance(self):
        return self.rate ** -2

    def rsample(self, sample_shape=()):
        return exponential_deviates(self._extended_shape(sample_shape), self.rate) / self.rate

    def log_prob(self, value):
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._validate_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value):
        return -(-value).log1p() / self.rate

    def entropy(self):
        return 1 - self.rate.log()

    @property
    def _natural_params(self):
        return -self.rate,

    def _log_normalizer(self, one):
        return -(-one).log()


def exponential_deviates(shape, like):
    return _functions.exponential_(_functions.empty(shape, dtype=like.dtype, device=like.device))
