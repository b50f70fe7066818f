"""Distributions of the numbers of successes and events: Bernoulli, Binomial, Poisson."""
import math

from .. import _functions, _ops
from . import constraints
from .distribution import broadcast
from .exponential_family import ExponentialFamily
from .odds import Odds, log_of_one_plus_exp

op = _ops.function


class Bernoulli(Odds, ExponentialFamily):
    """1 with the probability `probs`, or with the log-odds `logits`, else 0."""
    has_enumerate_support = True
    _mean_carrier_measure = 0
    support = constraints.boolean

    def __init__(self, probs=None, logits=None, validate_args=None):
        given = self._take('Bernoulli', probs, logits)
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        """NaN where both are equally likely."""
        probs = self.probs
        return _functions.where(probs == 0.5, math.nan, (probs > 0.5).to(dtype=probs.dtype))

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        return _functions.bernoulli(self.probs.detach().expand(self._extended_shape(sample_shape)).contiguous())

    def log_prob(self, value):
        self._validate_sample(value)
        return value * self.logits - log_of_one_plus_exp(self.logits)

    def entropy(self):
        return log_of_one_plus_exp(self.logits) - self.probs * self.logits

    @property
    def _natural_params(self):
        return self.logits,

    def _log_normalizer(self, one):
        return log_of_one_plus_exp(one)

    def enumerate_support(self, expand=True):
        return self._values_to(1, expand)


class Binomial(Odds):
    """The successes of `total_count` trials with the probability `probs`, or with the log-odds `logits`."""
    has_enumerate_support = True
    arg_constraints = {'total_count': constraints.nonnegative_integer, **Odds.arg_constraints}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        given = self._take('Binomial', probs, logits, total_count)
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def support(self):
        return constraints.integer_interval(0, self.total_count, (0, 'total_count'))

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return op('minimum')(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return _functions.binomial(self.total_count.expand(shape).contiguous(),
                                   self.probs.detach().expand(shape).contiguous())

    def log_prob(self, value):
        self._validate_sample(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * log_of_one_plus_exp(self.logits)

    def entropy(self):
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand=True):
        count = int(self.total_count.max().item())
        if self.total_count.min().item() != count:
            raise NotImplementedError('Binomial: its values cannot be enumerated where total_count differs')
        return self._values_to(count, expand)


class Poisson(ExponentialFamily):
    """Events of which there are `rate` on average."""
    arg_constraints = {'rate': constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        self.rate, = broadcast(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.rate

    @property
    def mode(self):
        return self.rate.floor()

    @property
    def variance(self):
        return self.rate

    def sample(self, sample_shape=()):
        return _functions.poisson(self.rate.detach().expand(self._extended_shape(sample_shape)).contiguous())

    def log_prob(self, value):
        self._validate_sample(value)
        rate, value = _functions.broadcast_tensors(self.rate, value)
        return op('xlogy')(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return self.rate.log(),

    def _log_normalizer(self, one):
        return one.exp()
