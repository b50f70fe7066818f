"""Dimensions of the batch as dimensions of the event."""
from . import constraints
from .distribution import Distribution
from .transforms import sum_rightmost


class Independent(Distribution):
    """The same samples, of which the last `reinterpreted_batch_ndims` dimensions of the batch belong to the event: its
    probability is their product."""

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        batch = base_distribution.batch_shape
        if not 0 <= reinterpreted_batch_ndims <= len(batch):
            raise ValueError('Independent: reinterpreted_batch_ndims must be from 0 to %d, the number of dimensions of '
                             'the batch, not %d' % (len(batch), reinterpreted_batch_ndims))
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        kept = len(batch) - reinterpreted_batch_ndims
        super().__init__(batch[:kept], batch[kept:] + base_distribution.event_shape, validate_args)

    def expand(self, batch_shape):
        batch_shape = tuple(batch_shape)
        inner = self._event_shape[:self.reinterpreted_batch_ndims]
        return Independent(self.base_dist.expand(batch_shape + inner), self.reinterpreted_batch_ndims,
                           self._validate_args)

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self):
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @property
    def support(self):
        return constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def mode(self):
        return self.base_dist.mode

    @property
    def variance(self):
        return self.base_dist.variance

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError('Independent: enumerate_support: the values of several dimensions together are '
                                      'too many: use that of base_dist')
        return self.base_dist.enumerate_support(expand)

    def __repr__(self):
        return 'Independent(%r, %d)' % (self.base_dist, self.reinterpreted_batch_ndims)
