"""Numbers from 0 to 1 in place of Bernoulli's 0 and 1: Loaiza-Ganem and Cunningham (2019)."""
from .. import _functions
from . import constraints
from .distribution import clamped
from .odds import Odds, log_of_one_plus_exp


class ContinuousBernoulli(Odds):
    """With a density proportional to probs**x (1 - probs)**(1 - x), that is to exp(logits x).

    Where probs is within `lims`, the functions are those of a Taylor series, which lose no digits there."""
    has_rsample = True
    support = constraints.unit_interval

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        given = self._take('ContinuousBernoulli', probs, logits)
        self._lims = lims
        super().__init__(given.shape, validate_args=validate_args)
        if probs is not None:
            self.probs = clamped(given)

    def _slope(self):
        """(where probs is within `lims`, logits that are not there)."""
        near = (self.probs >= self._lims[0]) & (self.probs <= self._lims[1])
        return near, _functions.where(near, 1.0, self.logits)

    def _log_norm(self):
        """log of the factor that makes the integral 1: logits / tanh(logits / 2)."""
        near, slope = self._slope()
        square = self.logits ** 2
        series = (2 * (1 + square / 12 - square ** 2 / 720)).log()
        return _functions.where(near, series, (slope / (slope / 2).tanh()).log())

    @property
    def mean(self):
        """1 / (1 - exp(-logits)) - 1 / logits."""
        near, slope = self._slope()
        series = 0.5 + self.logits / 12 - self.logits ** 3 / 720
        return _functions.where(near, series, -1 / (-slope).expm1() - 1 / slope)

    @property
    def variance(self):
        """1 / logits**2 - 1 / (2 sinh(logits / 2))**2."""
        near, slope = self._slope()
        series = 1 / 12 - self.logits ** 2 / 240
        return _functions.where(near, series, slope ** -2 - 0.25 * (slope / 2).sinh() ** -2)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(_functions.rand(shape, dtype=self._given.dtype, device=self._given.device))

    def log_prob(self, value):
        self._validate_sample(value)
        return value * self.logits - log_of_one_plus_exp(self.logits) + self._log_norm()

    def cdf(self, value):
        # (exp(l x) - 1) / (exp(l) - 1); of l > 0, as seen from 1, so that nothing overflows.
        self._validate_sample(value)
        near, slope = self._slope()
        up, size = slope > 0, slope.abs()
        inside = value.clamp(0, 1)
        distance = _functions.where(up, 1 - inside, inside)
        below = (-size * distance).expm1() / (-size).expm1()
        found = _functions.where(up, 1 - below, below)
        return _functions.where(near.expand(found.shape), inside, found)

    def icdf(self, value):
        near, slope = self._slope()
        up, size = slope > 0, slope.abs()
        below = _functions.where(up, 1 - value, value)
        distance = -(below * (-size).expm1()).log1p() / size
        found = _functions.where(up, 1 - distance, distance)
        return _functions.where(near.expand(found.shape), value, found)

    def entropy(self):
        return log_of_one_plus_exp(self.logits) - self._log_norm() - self.mean * self.logits
