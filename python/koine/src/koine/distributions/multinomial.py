"""How often each category was drawn."""
import math

from .. import _functions, _ops
from . import constraints
from .categorical import OfCategories
from .counts import Binomial

op = _ops.function


class Multinomial(OfCategories):
    """The counts of `total_count` draws, a number, from the categories with these `probs` or `logits`."""

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError('Multinomial: total_count must be an int, not %s' % type(total_count).__name__)
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @property
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        drawn = self._categorical.sample(tuple(sample_shape) + (self.total_count,)).movedim(len(sample_shape), -1)
        like = self._categorical._given
        counts = _functions.zeros(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)
        return op('scatter_add')(counts, -1, drawn, _functions.ones(drawn.shape, dtype=like.dtype, device=like.device))

    def log_prob(self, value):
        self._validate_sample(value)
        logits, value = _functions.broadcast_tensors(self.logits, value)
        logits = _functions.where((value == 0) & (logits == -math.inf), 0.0, logits)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (value * logits).sum(-1)

    def entropy(self):
        """That of the ordered draws, less the expected logarithm of their orders, of which each count's part is an
        expectation of its binomial distribution."""
        n = self.total_count
        counts = Binomial(n, self.probs, validate_args=False)
        values = counts.enumerate_support(False)
        orders = (counts.log_prob(values).exp() * (values + 1).lgamma()).sum(0).sum(-1)
        return n * self._categorical.entropy() - math.lgamma(n + 1) + orders
