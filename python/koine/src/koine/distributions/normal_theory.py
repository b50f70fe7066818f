"""Distributions of statistics of normal deviates: Student's t and Fisher's F. Chi2 is one of gamma.py."""
import math

from .. import _functions, _ops
from . import constraints
from .distribution import Distribution, broadcast, positive_values
from .gamma_deviates import log_gamma_deviates
from .location_scale import exponential_deviates

op = _ops.function


class StudentT(Distribution):
    """`loc` + `scale` times a normal deviate over the root of a chi-squared one over its degrees of freedom, `df`."""
    has_rsample = True
    arg_constraints = {'df': constraints.positive, 'loc': constraints.real, 'scale': constraints.positive}
    support = constraints.real

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self):
        return _functions.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        df = self.df
        without = _functions.where(df > 1, _functions.full_like(df, math.inf), math.nan)
        return _functions.where(df > 2, self.scale ** 2 * df / (df - 2), without)

    def rsample(self, sample_shape=()):
        # Polar: the radius is a function of one uniform deviate and smooth in df (Bailey, 1994), which costs less than
        # a gamma deviate and its gradient. -2 log u is twice an exponential deviate.
        shape = self._extended_shape(sample_shape)
        power = 2 * positive_values(exponential_deviates(shape, self.df)) / self.df
        radius = (self.df * -(-power).expm1()).sqrt() * (power / 2).exp()  # the root of df (exp(power) - 1)
        angle = 2 * math.pi * _functions.rand(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * (radius * angle.cos())

    def log_prob(self, value):
        self._validate_sample(value)
        z = (value - self.loc) / self.scale / self.df.sqrt()
        log_root = op('hypot')(_functions.ones_like(z), z).log()  # of 1 + z**2, which overflows sooner
        return ((self.df + 1) / 2).lgamma() - (self.df + 1) * log_root - self._log_norm()

    def _log_norm(self):
        return self.scale.log() + 0.5 * (math.pi * self.df).log() + (self.df / 2).lgamma()

    def entropy(self):
        half = (self.df + 1) / 2
        return half * (half.digamma() - (self.df / 2).digamma()) + self._log_norm() - half.lgamma()


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared deviates, each over its degrees of freedom."""
    has_rsample = True
    arg_constraints = {'df1': constraints.positive, 'df2': constraints.positive}
    support = constraints.positive

    def __init__(self, df1, df2, validate_args=None):
        self.df1, self.df2 = broadcast(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self):
        return _functions.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return _functions.where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self):
        a, b = self.df1, self.df2
        variance = 2 * b ** 2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4))
        return _functions.where(b > 4, variance, math.nan)

    def rsample(self, sample_shape=()):
        above, below = [one.expand(self._extended_shape(sample_shape)) for one in (self.df1, self.df2)]
        logs = log_gamma_deviates(above / 2) - log_gamma_deviates(below / 2)
        return positive_values(logs.exp() * below / above)

    def log_prob(self, value):
        self._validate_sample(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        return ((a + b).lgamma() - a.lgamma() - b.lgamma() + a * ratio.log() + (a - 1) * value.log()
                - (a + b) * (ratio * value).log1p())
