"""Divergences of distributions of two classes: the cross-entropy, minus the expectation of q.log_prob, less the entropy
of p: what a class of q needs of p are expectations, and that p has no probability where q has none."""
import math

import numpy

from .. import _functions, _ops
from .continuous_bernoulli import ContinuousBernoulli
from .counts import Bernoulli, Binomial, Poisson
from .gamma import Beta, Gamma
from .kl import register_kl
from .location_scale import EULER, Exponential, Gumbel, Laplace, Normal, Uniform
from .odds import log_of_one_plus_exp
from .powers import Pareto

op = _ops.function


def _register(kinds, q_kind):
    """Decorates cross_entropy(p, q) for all `kinds` of p."""
    def register(cross_entropy):
        for kind in kinds:
            register_kl(kind, q_kind)(lambda p, q: cross_entropy(p, q) - p.entropy())
        return cross_entropy

    return register


# --- p has probability where q has none, whatever the parameters ------------------------------------------------------


def _infinite(p, q):
    return p.mean.new_full(numpy.broadcast_shapes(p.batch_shape, q.batch_shape), math.inf)


_on_all, _on_positive, _on_unit = (Normal, Laplace, Gumbel), (Exponential, Gamma), (Beta, ContinuousBernoulli)
for _pair in ([(p, q) for p in _on_all for q in _on_positive + _on_unit + (Pareto, Uniform)]
              + [(p, q) for p in _on_positive for q in _on_unit + (Pareto, Uniform)]
              + [(p, Pareto) for p in _on_unit] + [(Pareto, q) for q in _on_unit + (Uniform,)]
              + [(Poisson, Bernoulli), (Poisson, Binomial)]):
    register_kl(*_pair)(_infinite)


# --- by the class of q ------------------------------------------------------------------------------------------------


@_register((Laplace, Gumbel, Exponential, Gamma, Beta, ContinuousBernoulli, Pareto, Uniform), Normal)
def _normal(p, q):
    squares = (p.variance + (p.mean - q.loc) ** 2) / q.scale ** 2
    squares = _functions.where(p.variance == math.inf, math.inf, squares)  # also where infinities were subtracted
    return 0.5 * squares + q.scale.log() + 0.5 * math.log(2 * math.pi)


@_register((Normal,), Laplace)
def _laplace(p, q):
    distance = (p.loc - q.loc) / p.scale
    absolute = p.scale * (math.sqrt(2 / math.pi) * (-0.5 * distance ** 2).exp()
                          + distance * (distance / math.sqrt(2)).erf())
    return (2 * q.scale).log() + absolute / q.scale


@_register((Normal, Exponential, Gamma, Uniform), Gumbel)
def _gumbel(p, q):
    slope = 1 / q.scale  # the expectation is that of exp(-slope (x - loc))
    if isinstance(p, Normal):
        mean_exp = (slope * (q.loc - p.loc) + 0.5 * (slope * p.scale) ** 2).exp()
    elif isinstance(p, Uniform):
        mean_exp = ((slope * (q.loc - p.low)).exp() - (slope * (q.loc - p.high)).exp()) / (slope * (p.high - p.low))
    else:
        power = 1 if isinstance(p, Exponential) else p.concentration
        mean_exp = (slope * q.loc).exp() * (p.rate / (p.rate + slope)) ** power
    return q.scale.log() + slope * (p.mean - q.loc) + mean_exp


@_register((Gamma, Beta, ContinuousBernoulli, Pareto, Uniform), Exponential)
def _exponential(p, q):
    return _unless_outside(p, 0, math.inf, q.rate * p.mean - q.rate.log())


@_register((Exponential, Beta, Pareto, Uniform), Gamma)
def _gamma(p, q):
    a = q.concentration
    return _unless_outside(p, 0, math.inf, q.rate * p.mean - (a - 1) * _mean_log(p) + a.lgamma() - a * q.rate.log())


@_register((Uniform,), Beta)
def _beta(p, q):
    a, b = q.concentration1, q.concentration0
    mirrored = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    logs = (a - 1) * _mean_log(p) + (b - 1) * _mean_log(mirrored)
    return _unless_outside(p, 0, 1, a.lgamma() + b.lgamma() - (a + b).lgamma() - logs)


@_register((Beta, Uniform), ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    return _unless_outside(p, 0, 1, log_of_one_plus_exp(q.logits) - q._log_norm() - q.logits * p.mean)


@_register((Beta, ContinuousBernoulli), Uniform)
def _uniform(p, q):
    inside = (q.low <= 0) & (q.high >= 1)
    return _functions.where(inside, (q.high - q.low).log(), math.inf)


@_register((Uniform,), Pareto)
def _pareto(p, q):
    return _unless_outside(p, q.scale, math.inf, (q.alpha + 1) * _mean_log(p) - q.alpha * q.scale.log() - q.alpha.log())


@register_kl(Bernoulli, Poisson)
def _poisson(p, q):
    return q.rate - p.probs * q.rate.log() - p.entropy()


def _unless_outside(p, low, high, value):
    """Infinite where a uniform p has samples that q has not; the other classes have none."""
    if not isinstance(p, Uniform):
        return value
    return _functions.where(((p.low < low) | (p.high > high)).expand(value.shape), math.inf, value)


def _mean_log(p):
    """The expectation of log x."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -p.rate.log() - EULER
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    return (op('xlogy')(p.high, p.high) - op('xlogy')(p.low, p.low)) / (p.high - p.low) - 1  # Uniform
