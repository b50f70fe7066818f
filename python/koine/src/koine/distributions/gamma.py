"""Distributions whose samples are made of gamma deviates."""
import math

from .. import _functions, _ops
from . import constraints
from .distribution import Distribution, broadcast, positive_values, require_dims
from .exponential_family import ExponentialFamily
from .gamma_deviates import log_gamma_deviates

op = _ops.function


class Gamma(ExponentialFamily):
    """With a density proportional to x**(concentration - 1) exp(-rate x)."""
    has_rsample = True
    _mean_carrier_measure = 0
    arg_constraints = {'concentration': constraints.positive, 'rate': constraints.positive}
    support = constraints.positive

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate ** 2

    def rsample(self, sample_shape=()):
        logs = log_gamma_deviates(self.concentration.expand(self._extended_shape(sample_shape)))
        return positive_values(logs.exp() / self.rate)

    def log_prob(self, value):
        self._validate_sample(value)
        a = self.concentration
        return a * self.rate.log() + times_log(a - 1, value) - self.rate * value - a.lgamma()

    def cdf(self, value):
        """Without a gradient of the concentration."""
        self._validate_sample(value)
        return op('igamma')(*_functions.broadcast_tensors(self.concentration, self.rate * value))

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    @property
    def _natural_params(self):
        """Of log x and x."""
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, log, one):
        return (log + 1).lgamma() - (log + 1) * (-one).log()


class Chi2(Gamma):
    """The sum of `df` squares of standard normal deviates, where df is a whole number."""
    arg_constraints = {'df': constraints.positive}

    def __init__(self, df, validate_args=None):
        self.df, = broadcast(df)
        Distribution.__init__(self, self.df.shape, validate_args=validate_args)

    @property
    def concentration(self):
        return 0.5 * self.df

    @property
    def rate(self):
        return _functions.full_like(self.df, 0.5)


class InverseGamma(Distribution):
    """The inverse of a gamma deviate with these parameters."""
    has_rsample = True
    arg_constraints = Gamma.arg_constraints
    support = constraints.positive

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self):
        a = self.concentration
        return _functions.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        a = self.concentration
        return _functions.where(a > 2, self.rate ** 2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def rsample(self, sample_shape=()):
        logs = log_gamma_deviates(self.concentration.expand(self._extended_shape(sample_shape)))
        return positive_values(self.rate * (-logs).exp())

    def log_prob(self, value):
        self._validate_sample(value)
        a = self.concentration
        return a * self.rate.log() - (a + 1) * value.log() - self.rate / value - a.lgamma()

    def cdf(self, value):
        """Without a gradient of the concentration."""
        self._validate_sample(value)
        return op('igammac')(*_functions.broadcast_tensors(self.concentration, self.rate / value))

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Dirichlet(ExponentialFamily):
    """Vectors of probabilities, with a density proportional to the product of x**(concentration - 1)."""
    has_rsample = True
    _mean_carrier_measure = 0
    arg_constraints = {'concentration': constraints.independent(constraints.positive, 1)}
    support = constraints.simplex

    def __init__(self, concentration, validate_args=None):
        require_dims('Dirichlet', 'concentration', concentration, 1)
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self):
        """Where all concentrations are below 1, the corner of the largest."""
        above = (self.concentration - 1).clamp(min=0)
        corner = _functions.one_hot(_functions.argmax(self.concentration, -1), self._event_shape[0])
        all_below = (self.concentration < 1).all(-1, keepdim=True)
        return _functions.where(all_below, corner.to(dtype=above.dtype), above / above.sum(-1, keepdim=True))

    @property
    def variance(self):
        a, total = self.concentration, self.concentration.sum(-1, keepdim=True)
        return a * (total - a) / (total ** 2 * (total + 1))

    def rsample(self, sample_shape=()):
        logs = log_gamma_deviates(self.concentration.expand(self._extended_shape(sample_shape)))
        return _functions.softmax(logs, -1)

    def log_prob(self, value):
        self._validate_sample(value)
        a = self.concentration
        return times_log(a - 1, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self):
        a, total = self.concentration, self.concentration.sum(-1)
        return (a.lgamma().sum(-1) - total.lgamma() + (total - self._event_shape[0]) * total.digamma()
                - ((a - 1) * a.digamma()).sum(-1))

    @property
    def _natural_params(self):
        """Of the logarithms."""
        return self.concentration - 1,

    def _log_normalizer(self, logs):
        return (logs + 1).lgamma().sum(-1) - (logs + 1).sum(-1).lgamma()


class Beta(ExponentialFamily):
    """From 0 to 1, with a density proportional to x**(concentration1 - 1) (1 - x)**(concentration0 - 1)."""
    has_rsample = True
    _mean_carrier_measure = 0
    arg_constraints = {'concentration1': constraints.positive, 'concentration0': constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast(concentration1, concentration0)
        super().__init__(self.concentration0.shape, validate_args=validate_args)

    @property
    def _dirichlet(self):
        """Of x and 1 - x."""
        return Dirichlet(op('stack')([self.concentration1, self.concentration0], -1), validate_args=False)

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self):
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total ** 2 * (total + 1))

    def rsample(self, sample_shape=()):
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value):
        self._validate_sample(value)
        return self._dirichlet.log_prob(op('stack')([value, 1 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()

    @property
    def _natural_params(self):
        """Of log x and log(1 - x)."""
        return self.concentration1 - 1, self.concentration0 - 1

    def _log_normalizer(self, first, second):
        return (first + 1).lgamma() + (second + 1).lgamma() - (first + second + 2).lgamma()


def times_log(factor, value):
    """factor log(value), 0 where the factor is 0, of a factor and a value that are broadcast."""
    return op('xlogy')(*_functions.broadcast_tensors(factor, value))
