"""Distributions of the numbers of categories, and of these as vectors with a one."""
import math

from .. import _functions, _ops
from .._dtypes import finfo
from . import constraints
from .distribution import Distribution, clamped, exactly_one, lazy, require_dims

op = _ops.function


class Categorical(Distribution):
    """Whole numbers from 0 to K - 1. `probs`, which need not sum to 1, or `logits`, logarithms of such, have K elements
    in the last dimension."""
    has_enumerate_support = True
    arg_constraints = {'probs': constraints.simplex, 'logits': constraints.real_vector}

    def __init__(self, probs=None, logits=None, validate_args=None):
        name, given = exactly_one('Categorical', probs=probs, logits=logits)
        require_dims('Categorical', name, given, 1)
        if probs is None:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @lazy
    def logits(self):
        return clamped(self.probs).log()

    @lazy
    def probs(self):
        return _functions.softmax(self.logits, -1)

    @property
    def param_shape(self):
        return self._batch_shape + (self._num_events,)

    @property
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self):
        return self.mode * math.nan  # the numbers are names

    @property
    def mode(self):
        return _functions.argmax(self._given, -1)

    @property
    def variance(self):
        return self.mean

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        count = math.prod(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        if count == 0 or rows.shape[0] == 0:
            return _functions.zeros(shape, dtype='int64', device=rows.device)
        return _functions.multinomial(rows, count, True).T.reshape(shape)

    def log_prob(self, value):
        self._validate_sample(value)
        index, logits = _functions.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return op('gather')(logits, -1, index[..., :1]).squeeze(-1)

    def entropy(self):
        # Where the logarithm is infinite, the probability is 0, and so is the product.
        return -(self.probs * self.logits.clamp(min=finfo(self.logits.dtype).min)).sum(-1)

    def enumerate_support(self, expand=True):
        values = _functions.arange(self._num_events, device=self._given.device)
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    @property
    def _given(self):
        return self.__dict__['probs' if 'probs' in self.__dict__ else 'logits']


class OfCategories(Distribution):
    """Vectors with an element for each category, by the parameters of Categorical."""
    arg_constraints = Categorical.arg_constraints

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape):
        made = super().expand(batch_shape)
        made._categorical = self._categorical.expand(batch_shape)
        return made

    @property
    def probs(self):
        return self._categorical.probs

    @property
    def logits(self):
        return self._categorical.logits

    @property
    def param_shape(self):
        return self._categorical.param_shape


class OneHotCategorical(OfCategories):
    """The same as vectors of zeros with a one."""
    has_enumerate_support = True
    support = constraints.one_hot

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return self._one_hot(self._categorical.mode)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def _one_hot(self, numbers):
        return _functions.one_hot(numbers, self._event_shape[0]).to(dtype=self._categorical._given.dtype)

    def sample(self, sample_shape=()):
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        return self._categorical.log_prob(_functions.argmax(value, -1))

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        return self._one_hot(self._categorical.enumerate_support(expand))


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Whose samples pass their gradient on to the probabilities."""
    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
