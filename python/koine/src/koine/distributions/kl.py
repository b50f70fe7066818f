"""Kullback-Leibler divergences of distributions of one class; those of two are in kl_pairs.py."""
import math

import numpy

from .. import _functions
from .categorical import Categorical, OneHotCategorical
from .continuous_bernoulli import ContinuousBernoulli
from .counts import Bernoulli, Binomial, Poisson
from .exponential_family import ExponentialFamily, divergence
from .gamma import Beta, Dirichlet, Gamma, InverseGamma
from .half import HalfCauchy, HalfNormal
from .independent import Independent
from .location_scale import EULER, Cauchy, Exponential, Gumbel, Laplace, LogNormal, Normal, Uniform
from .multivariate_normal import LowRankMultivariateNormal, MultivariateNormal
from .odds import log_of_one_plus_exp
from .powers import Pareto
from .transformed import TransformedDistribution
from .transforms import sum_rightmost
from .waiting import Geometric

_formulas = {}


def register_kl(type_p, type_q):
    """Decorates the function of (p, q) that kl_divergence calls for these classes and their subclasses."""
    def register(function):
        _formulas[type_p, type_q] = function
        return function

    return register


def kl_divergence(p, q):
    """The expectation of log p(x) - log q(x) where x is distributed as p says."""
    orders = type(p).__mro__, type(q).__mro__
    found = [pair for pair in _formulas if pair[0] in orders[0] and pair[1] in orders[1]]
    if not found:
        raise _no_formula(p, q)
    nearest = min(found, key=lambda pair: (orders[0].index(pair[0]), orders[1].index(pair[1])))
    return _formulas[nearest](p, q)


def _no_formula(p, q):
    return NotImplementedError('kl_divergence: there is no formula for %s and %s: register_kl adds one'
                               % (type(p).__name__, type(q).__name__))


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    if type(p) is not type(q):
        raise _no_formula(p, q)
    return divergence(p, q)


@register_kl(Normal, Normal)
@register_kl(LogNormal, LogNormal)
def _normal(p, q):
    ratio = p.scale / q.scale
    return 0.5 * (ratio ** 2 + ((p.loc - q.loc) / q.scale) ** 2 - 1) - ratio.log()


@register_kl(HalfNormal, HalfNormal)
@register_kl(HalfCauchy, HalfCauchy)
def _half(p, q):
    return kl_divergence(p._both_sides, q._both_sides)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    """Chyzak and Nielsen (2019)."""
    return (((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale)).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -ratio.log() + distance + (ratio - 1) * EULER + ((1 + ratio).lgamma() - distance).exp() - 1


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    distance = (p.loc - q.loc).abs()
    return (q.scale / p.scale).log() + (p.scale * (-distance / p.scale).exp() + distance) / q.scale - 1


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    inside = (q.low <= p.low) & (p.high <= q.high)
    return _functions.where(inside, ((q.high - q.low) / (p.high - p.low)).log(), math.inf)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    return p.probs * (p.logits - q.logits) + log_of_one_plus_exp(q.logits) - log_of_one_plus_exp(p.logits)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    return (p.mean * (p.logits - q.logits) + p._log_norm() - q._log_norm()
            + log_of_one_plus_exp(q.logits) - log_of_one_plus_exp(p.logits))


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    """That of one trial, of which there are 1 / probs on average."""
    return _bernoulli(p, q) / p.probs


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    """Infinite where p has more trials; where it has fewer, there is no formula."""
    if (p.total_count < q.total_count).any():
        raise NotImplementedError('kl_divergence: there is no formula for Binomials where the first has fewer trials')
    return _functions.where(p.total_count > q.total_count, math.inf, p.total_count * _bernoulli(p, q))


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate / q.rate).log() - p.rate + q.rate


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _categorical(p, q):
    """Infinite where q has no probability, 0 where p has none, whose logarithms may be infinite."""
    terms = p.probs * (p.logits - q.logits)
    terms = _functions.where((q.probs == 0).expand(terms.shape), math.inf, terms)
    return _functions.where((p.probs == 0).expand(terms.shape), 0.0, terms).sum(-1)


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    divergence = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _functions.where((p.scale < q.scale).expand(divergence.shape), math.inf, divergence)


@register_kl(Gamma, Gamma)
@register_kl(InverseGamma, InverseGamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    return ((a - b) * a.digamma() + b.lgamma() - a.lgamma() + b * (p.rate / q.rate).log()
            + a * (q.rate / p.rate - 1))


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1, keepdim=True)
    return (total.squeeze(-1).lgamma() - b.sum(-1).lgamma() + (b.lgamma() - a.lgamma()).sum(-1)
            + ((a - b) * (a.digamma() - total.digamma())).sum(-1))


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal(p, q):
    size, = p.event_shape
    if q.event_shape != (size,):
        raise ValueError('kl_divergence: the vectors have %d and %d elements' % (size, q.event_shape[0]))
    p = p.expand(numpy.broadcast_shapes(p.batch_shape, q.batch_shape))
    trace = q._squared(p._factor().movedim(-1, 0)).sum(0)  # of the product of q's inverse and p's covariance
    return q._log_det() - p._log_det() + 0.5 * (trace + q._squared(q.loc - p.loc) - size)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    """That of the bases, which functions that are one to one do not change."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError('kl_divergence: there is no formula for different transforms')
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError('kl_divergence: the distributions make %d and %d dimensions those of the event'
                                  % (p.reinterpreted_batch_ndims, q.reinterpreted_batch_ndims))
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
