"""Distributions of functions of samples."""
import numpy

from ..autograd import no_grad
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import Transform, sum_rightmost


class TransformedDistribution(Distribution):
    """Samples of a distribution, each of which a transform, or several in their order, is applied to."""

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for one in self.transforms:
            if not isinstance(one, Transform):
                raise TypeError('TransformedDistribution: transforms must be a Transform or a list of them, not %s'
                                % type(one).__name__)
        inner = len(base_distribution.event_shape)
        shape = numpy.broadcast_shapes(base_distribution.batch_shape + base_distribution.event_shape,
                                       *[one.shape for one in self.transforms])
        base = base_distribution.expand(shape[:len(shape) - inner])
        more = max([one.event_dim for one in self.transforms], default=0) - inner
        self.base_dist = Independent(base, more) if more > 0 else base
        super().__init__(self.base_dist.batch_shape, self.base_dist.event_shape, validate_args)

    def expand(self, batch_shape):
        return TransformedDistribution(self.base_dist.expand(batch_shape), self.transforms, self._validate_args)

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    @property
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        return constraints.independent(self.transforms[-1].codomain, len(self._event_shape))

    def _transformed(self, value):
        for one in self.transforms:
            value = one(value)
        return value

    def sample(self, sample_shape=()):
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        logs = 0
        for one in reversed(self.transforms):
            before = one.inv(value)
            log = one.log_abs_det_jacobian(before, value)
            logs = logs + sum_rightmost(log, len(self._event_shape) - one.event_dim)
            value = before
        return self.base_dist.log_prob(value) - logs

    def cdf(self, value):
        self._validate_sample(value)
        sign = 1
        for one in reversed(self.transforms):
            value, sign = one.inv(value), sign * one.sign
        return (self.base_dist.cdf(value) - 0.5) * sign + 0.5

    def icdf(self, value):
        sign = 1
        for one in self.transforms:
            sign = sign * one.sign
        return self._transformed(self.base_dist.icdf((value - 0.5) * sign + 0.5))

    def __repr__(self):
        return 'TransformedDistribution(%r, %s)' % (self.base_dist, self.transforms)
