"""Distributions of absolute values."""
import math

from .. import _functions
from . import constraints
from .distribution import Distribution, broadcast
from .location_scale import Cauchy, Normal


class _Half(Distribution):
    """Of the absolute values of the class `_whole` about 0."""
    has_rsample = True
    arg_constraints = {'scale': constraints.positive}
    support = constraints.nonnegative

    def __init__(self, scale, validate_args=None):
        self.scale, = broadcast(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def _both_sides(self):
        return self._whole(_functions.zeros_like(self.scale), self.scale, validate_args=False)

    @property
    def mode(self):
        return _functions.zeros_like(self.scale)

    def rsample(self, sample_shape=()):
        return self._both_sides.rsample(sample_shape).abs()

    def log_prob(self, value):
        self._validate_sample(value)
        logs = self._both_sides.log_prob(value) + math.log(2)
        return _functions.where((value >= 0).expand(logs.shape), logs, -math.inf)

    def cdf(self, value):
        self._validate_sample(value)
        return self._standard_cdf(value / self.scale)

    def icdf(self, value):
        return self.scale * self._standard_icdf(value)

    def entropy(self):
        return self._both_sides.entropy() - math.log(2)


class HalfNormal(_Half):
    _whole = Normal

    @property
    def mean(self):
        return math.sqrt(2 / math.pi) * self.scale

    @property
    def variance(self):
        return (1 - 2 / math.pi) * self.scale ** 2

    @staticmethod
    def _standard_cdf(z):
        return (z / math.sqrt(2)).erf()

    @staticmethod
    def _standard_icdf(value):
        return math.sqrt(2) * value.erfinv()


class HalfCauchy(_Half):
    _whole = Cauchy

    @property
    def mean(self):
        return _functions.full_like(self.scale, math.inf)

    @property
    def variance(self):
        return _functions.full_like(self.scale, math.inf)

    @staticmethod
    def _standard_cdf(z):
        return 2 / math.pi * z.atan()

    @staticmethod
    def _standard_icdf(value):
        return (math.pi / 2 * value).tan()
