"""Continuous distributions near Bernoulli and OneHotCategorical, whose samples have gradients: Maddison, Mnih and Teh
(2017); Jang, Gu and Poole (2017). The lower the temperature, the nearer."""
import math

from .. import _functions
from .._tensor import Tensor
from . import constraints
from .categorical import Categorical, OfCategories
from .distribution import clamped
from .odds import Odds, log_of_one_plus_exp
from .transformed import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform


def _uniform(shape, like):
    """Without 0 and 1."""
    return clamped(_functions.rand(shape, dtype=like.dtype, device=like.device))


def _as_tensor(temperature, like):
    return temperature if isinstance(temperature, Tensor) else like.new_full((), temperature)


class LogitRelaxedBernoulli(Odds):
    """The log-odds of the samples of RelaxedBernoulli."""
    has_rsample = True
    support = constraints.real

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        given = self._take('RelaxedBernoulli', probs, logits)
        self.temperature = _as_tensor(temperature, given)
        super().__init__(given.shape, validate_args=validate_args)

    def rsample(self, sample_shape=()):
        uniform = _uniform(self._extended_shape(sample_shape), self._given)
        return (uniform.log() - (-uniform).log1p() + self.logits) / self.temperature

    def log_prob(self, value):
        self._validate_sample(value)
        difference = self.logits - value * self.temperature
        return self.temperature.log() + difference - 2 * log_of_one_plus_exp(difference)


class ExpRelaxedCategorical(OfCategories):
    """The logarithms of the samples of RelaxedOneHotCategorical."""
    has_rsample = True
    support = constraints.real_vector  # of which only those matter that are logarithms of probabilities

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(probs, logits, validate_args)
        self.temperature = _as_tensor(temperature, self._categorical._given)

    def rsample(self, sample_shape=()):
        gumbel = -(-_uniform(self._extended_shape(sample_shape), self._categorical._given).log()).log()
        scores = (self.logits + gumbel) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value):
        self._validate_sample(value)
        more = self._event_shape[0] - 1
        scores = self.logits - value * self.temperature
        scores = (scores - scores.logsumexp(-1, keepdim=True)).sum(-1)
        return scores + more * self.temperature.log() + math.lgamma(more + 1)


class _Relaxed(TransformedDistribution):
    @property
    def temperature(self):
        return self.base_dist.temperature

    @property
    def probs(self):
        return self.base_dist.probs

    @property
    def logits(self):
        return self.base_dist.logits


class RelaxedBernoulli(_Relaxed):
    """From 0 to 1."""
    arg_constraints = Odds.arg_constraints

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)


class RelaxedOneHotCategorical(_Relaxed):
    """Vectors of probabilities."""
    arg_constraints = Categorical.arg_constraints
    support = constraints.simplex

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
