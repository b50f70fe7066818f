"""Distributions with the parameter `probs`, probabilities, or `logits`, their log-odds."""
from .. import _functions, _ops
from . import constraints
from .distribution import Distribution, broadcast, clamped, exactly_one, lazy

op = _ops.function


class Odds(Distribution):
    arg_constraints = {'probs': constraints.unit_interval, 'logits': constraints.real}

    def _take(self, kind, probs, logits, *total_count):
        """Keeps the one of both that is given, and a count, if there is to be one; returns the one."""
        name, given = exactly_one(kind, probs=probs, logits=logits)
        given, = broadcast(given)  # alone: its dtype is that of all
        if total_count:
            given, count = broadcast(given, *total_count)
            self.total_count = count.to(dtype=given.dtype)
        setattr(self, name, given)
        return given

    @lazy
    def logits(self):
        probs = clamped(self.probs)
        return probs.log() - (-probs).log1p()

    @lazy
    def probs(self):
        return self.logits.sigmoid()

    @property
    def param_shape(self):
        return self._batch_shape

    @property
    def _given(self):
        return self.__dict__['probs' if 'probs' in self.__dict__ else 'logits']

    def _values_to(self, count, expand):
        values = _functions.arange(count + 1, dtype=self._given.dtype, device=self._given.device)
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values


def log_of_one_plus_exp(logits):
    """softplus, which is the identity only from where float64 shows no difference."""
    return op('softplus')(logits, threshold=40)
