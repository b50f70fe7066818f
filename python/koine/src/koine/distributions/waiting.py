"""Distributions of the number of trials until something happens: Geometric, NegativeBinomial."""
from .. import _functions, _ops
from . import constraints
from .gamma_deviates import log_gamma_deviates
from .location_scale import exponential_deviates
from .odds import Odds, log_of_one_plus_exp

op = _ops.function


class Geometric(Odds):
    """The failures before the first success, of trials with the probability `probs`, or with the log-odds `logits`."""
    arg_constraints = {**Odds.arg_constraints, 'probs': constraints.Constraint(
        'greater than 0 and at most 1', lambda value: (value > 0) & (value <= 1))}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        given = self._take('Geometric', probs, logits)
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def mean(self):
        return 1 / self.probs - 1

    @property
    def mode(self):
        return _functions.zeros_like(self.probs)

    @property
    def variance(self):
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape=()):
        # An exponential deviate in units of the time that a trial takes, rounded down.
        shape = self._extended_shape(sample_shape)
        return (exponential_deviates(shape, self._given) / -(-self.probs.detach()).log1p()).floor()

    def log_prob(self, value):
        self._validate_sample(value)
        return -value * log_of_one_plus_exp(self.logits) - log_of_one_plus_exp(-self.logits)

    def entropy(self):
        return (log_of_one_plus_exp(self.logits) - self.probs * self.logits) / self.probs


class NegativeBinomial(Odds):
    """The successes before `total_count` failures, of trials with the probability `probs` of success, or with the
    log-odds `logits`."""
    arg_constraints = {'total_count': constraints.nonnegative, 'probs': constraints.half_open_interval(0, 1),
                       'logits': constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        given = self._take('NegativeBinomial', probs, logits, total_count)
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.total_count * self.logits.exp()

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self):
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape=()):
        # Of the Poisson distribution whose rate is a gamma deviate; without failures, 0.
        shape = self._extended_shape(sample_shape)
        count, logits = self.total_count.detach().expand(shape), self.logits.detach()
        rate = (log_gamma_deviates(count) + logits).exp()
        return _functions.poisson(_functions.where(count == 0, 0.0, rate))

    def log_prob(self, value):
        self._validate_sample(value)
        n = self.total_count
        n, value = _functions.broadcast_tensors(n, value)
        ways = (n + value).lgamma() - (value + 1).lgamma() - n.lgamma()
        ways = _functions.where(n + value == 0, 0.0, ways)
        return ways + n * op('logsigmoid')(-self.logits) + op('xlogy')(value, self.logits.sigmoid())
