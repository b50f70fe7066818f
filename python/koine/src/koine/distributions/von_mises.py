"""The normal distribution of angles."""
import math

from .. import _functions, _ops
from . import constraints
from .distribution import Symmetric, broadcast
from .rejection import accepted

op = _ops.function


class VonMises(Symmetric):
    """Angles from -pi to pi with a density proportional to exp(concentration cos(x - loc))."""
    arg_constraints = {'loc': constraints.real, 'concentration': constraints.positive}
    support = constraints.real

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def variance(self):
        """The circular one, 1 less the length of the mean of points on the circle."""
        return 1 - op('i1e')(self.concentration) / op('i0e')(self.concentration)

    def sample(self, sample_shape=()):
        loc, k = [one.detach().expand(self._extended_shape(sample_shape)) for one in (self.loc, self.concentration)]
        return (loc + math.pi + _angles(k)) % (2 * math.pi) - math.pi

    def log_prob(self, value):
        self._validate_sample(value)
        k = self.concentration
        # I0(k) = exp(k) i0e(k); cos(x) - 1 = -2 sin(x / 2)**2 keeps its digits near loc.
        return -2 * k * ((value - self.loc) / 2).sin() ** 2 - (2 * math.pi * op('i0e')(k)).log()


def _angles(k):
    """By the method of Best and Fisher (1979), whose envelope is a wrapped Cauchy distribution. Its r is
    (1 + sqrt(1 + 4 k**2)) / (2 k); what is computed are r - 1 and 1 - f, which are small where k is large."""
    r_less_1 = (1 + 1 / ((1 + 4 * k ** 2).sqrt() + 2 * k)) / (2 * k)

    def propose():
        half = math.pi / 2 * _functions.rand_like(k)
        below_1 = r_less_1 * 2 * half.sin() ** 2 / (r_less_1 + 2 * half.cos() ** 2)  # 1 - f
        c = k * (r_less_1 + below_1)
        u = 1 - _functions.rand_like(k)
        angles = 2 * (below_1 / 2).clamp(max=1).sqrt().asin()
        return angles, (c * (2 - c) <= u) & ((c / u).log() + 1 - c < 0)

    angles = accepted(propose)
    return _functions.where(_functions.rand_like(k) < 0.5, -angles, angles)
