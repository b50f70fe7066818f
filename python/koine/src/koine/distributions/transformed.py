"""Distributions of functions of samples."""
import copy

from ..autograd import no_grad
from . import constraints
from .distribution import Distribution, expanded
from .independent import Independent
from .location_scale import Normal
from .transforms import ComposeTransform, StickBreakingTransform, Transform, sum_rightmost
from .transforms.base import widened


class TransformedDistribution(Distribution):
    """Samples of a distribution, each of which a transform, or several in their order, is applied to."""

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for one in self.transforms:
            if not isinstance(one, Transform):
                raise TypeError('TransformedDistribution: transforms must be a Transform or a list of them, not %s'
                                % type(one).__name__)
        whole, inner = ComposeTransform(self.transforms), len(base_distribution.event_shape)
        shape = whole.forward_shape(base_distribution.batch_shape + base_distribution.event_shape)
        before = whole.inverse_shape(shape)  # with what parameters of transforms are broadcast to
        base = expanded(base_distribution, before[:len(before) - inner])
        more = whole.domain.event_dim - inner
        self.base_dist = Independent(base, more) if more > 0 else base
        outer = inner + max(more, 0) + whole.codomain.event_dim - whole.domain.event_dim
        cut = len(shape) - outer
        super().__init__(shape[:cut], shape[cut:], validate_args)

    def expand(self, batch_shape):
        made = copy.copy(self)
        batch_shape = tuple(batch_shape)
        # Dimensions of the base's batch that the transforms make ones of the event stay as they are.
        before = ComposeTransform(self.transforms).inverse_shape(batch_shape + self._event_shape)
        made.base_dist = self.base_dist.expand(before[:len(before) - len(self.base_dist.event_shape)])
        made._batch_shape = batch_shape
        return made

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    @property
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        return widened(self.transforms[-1].codomain, len(self._event_shape))

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
        logs, dims = 0, len(self._event_shape)
        for one in reversed(self.transforms):
            before = one.inv(value)
            dims += one.domain.event_dim - one.codomain.event_dim
            logs = logs + sum_rightmost(one.log_abs_det_jacobian(before, value), dims - one.domain.event_dim)
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
        return '%s(%r, %s)' % (type(self).__name__, self.base_dist, self.transforms)


class LogisticNormal(TransformedDistribution):
    """Vectors of probabilities of normal deviates, one fewer, by StickBreakingTransform."""
    arg_constraints = {'loc': constraints.real, 'scale': constraints.positive}

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base if base.batch_shape else base.expand((1,)), StickBreakingTransform(), validate_args)

    @property
    def loc(self):
        return self.base_dist.base_dist.loc

    @property
    def scale(self):
        return self.base_dist.base_dist.scale
