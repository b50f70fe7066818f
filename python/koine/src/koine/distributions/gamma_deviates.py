"""Logarithms of gamma deviates, and their gradients."""
import math

import numpy

from .. import _functions
from ..autograd import Function
from .rejection import accepted


def log_gamma_deviates(concentration):
    """Logarithms, as deviates of small concentrations are too small for the dtype."""
    return _LogDeviates.apply(concentration)


class _LogDeviates(Function):
    @staticmethod
    def forward(ctx, concentration):
        logs = _drawn(concentration)
        ctx.save_for_backward(concentration, logs)
        return logs

    @staticmethod
    def backward(ctx, grad):
        concentration, logs = ctx.saved_tensors
        if grad.dtype.itemsize < 4:
            concentration, logs = concentration.float(), logs.float()
        return grad * log_slope(concentration.detach(), logs.detach()).to(dtype=grad.dtype)


def _drawn(concentration):
    """By the method of Marsaglia and Tsang (2000): a cube of a normal deviate is accepted with a probability above
    0.95. It is for concentrations from 1: where they are below, one more is taken, and the deviate multiplied by
    u**(1 / concentration), whose logarithm does not underflow."""
    below = concentration < 1
    d = concentration + below.to(dtype=concentration.dtype) - 1 / 3
    scale = (9 * d).rsqrt()

    def propose():
        normal = _functions.randn_like(d)
        cube = (1 + scale * normal) ** 3
        log_cube = cube.log()  # NaN below 0, where the deviate is rejected
        accepted_above = 0.5 * normal ** 2 + d - d * cube + d * log_cube
        return d.log() + log_cube, (cube <= 0) | (_functions.rand_like(d).log() >= accepted_above)

    logs = accepted(propose)
    boost = _functions.rand_like(d)
    boost = (1 - boost).log() / concentration  # of (0, 1]
    return _functions.where(below, logs + boost, logs)


_NODES, _WEIGHTS = numpy.polynomial.legendre.leggauss(32)  # on -1 to 1
_DROP = 40.0  # exp(-40) is below float64's digits


def log_slope(a, logs):
    """The derivative of log z by the concentration a where the probability of smaller deviates stays the same: minus
    that of the cdf over the density and z (Figurnov, Mohamed and Mnih, 2018), which is the integral over t of

        (t - digamma(a) + log z) exp(a t - z (exp(t) - 1))

    from 0 to minus infinity or, as that to both ends together is 0, to infinity: where z is below a and above, so that
    the exponent only falls. It is taken to where it has fallen by _DROP, by Gauss's formula."""
    z, mean = logs.exp(), a.digamma() - logs
    end = _end(a, z)
    total = _functions.zeros_like(z)
    for node, weight in zip((_NODES + 1) / 2, _WEIGHTS / 2):
        t = end * float(node)
        total = total + float(weight) * (t - mean) * (a * t - z * t.expm1()).exp()
    return end * total


def _end(a, z):
    """The root of z (exp(t) - 1) - a t = _DROP on the side where z falls short of a or exceeds it: Newton's steps from
    bounds beyond it, from where they do not cross it."""
    near = (3 * _DROP / z).sqrt()  # of the first terms of the series, for t from -1
    below = _functions.where(near <= 1, near, math.inf).minimum((_DROP + z) / a)
    above = _functions.where(z < 20, (2 * _DROP / z).log1p(), (2 * _DROP / z).sqrt())
    end = _functions.where(z < a, -below, above)
    for _ in range(4):
        end = end - (z * end.expm1() - a * end - _DROP) / (z * end.exp() - a)
    return end
