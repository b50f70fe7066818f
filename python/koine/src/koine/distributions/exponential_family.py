"""Distributions whose density is exp(t(x) . n - A(n)) h(x), of natural parameters n and statistics t: as A's gradient
is the expectation of t, A is enough for the entropy and for divergences (Nielsen and Nock, 2010)."""
from .. import autograd
from .distribution import Distribution
from .transforms import sum_rightmost


class ExponentialFamily(Distribution):
    """A subclass has the tuple `_natural_params`, the method _log_normalizer(*natural_params), which is A, and, for the
    entropy, `_mean_carrier_measure`, the expectation of log h."""

    @property
    def _natural_params(self):
        raise self._missing('_natural_params')

    def _log_normalizer(self, *natural_params):
        raise self._missing('_log_normalizer')

    @property
    def _mean_carrier_measure(self):
        raise self._missing('entropy')

    def _statistics(self):
        """(natural parameters, their log normalizer, its gradients: the expectations of the statistics)."""
        with autograd.enable_grad():
            params = [one if one.requires_grad else one.detach().requires_grad_() for one in self._natural_params]
            log_norm = self._log_normalizer(*params)
            return params, log_norm, autograd.grad(log_norm.sum(), params, create_graph=True)

    def entropy(self):
        params, entropy, means = self._statistics()
        entropy = entropy - self._mean_carrier_measure
        for one, mean in zip(params, means):
            entropy = entropy - sum_rightmost(one * mean, len(self._event_shape))
        return entropy


def divergence(p, q):
    """Of two of one family."""
    params, log_norm, means = p._statistics()
    result = q._log_normalizer(*q._natural_params) - log_norm
    for one, other, mean in zip(params, q._natural_params, means):
        result = result - sum_rightmost((other - one) * mean, len(q.event_shape))
    return result
