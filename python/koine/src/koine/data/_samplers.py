"""Which samples an epoch has, in which order. Random ones draw from their generator, or as manual_seed says."""
import itertools

from .._functions import multinomial, randint, randperm
from .._tensor import Tensor, tensor


class Sampler:
    """A subclass has __iter__, which gives the indices of an epoch, and __len__ if their number is known."""

    def __iter__(self):
        raise NotImplementedError('%s: a Sampler needs __iter__' % type(self).__name__)


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """A permutation of the samples, or num_samples of several of them; or num_samples draws with replacement."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = None if num_samples is None else checked_count('RandomSampler', num_samples)

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        count, left = len(self.data_source), self.num_samples
        if self.replacement and count > 0:
            yield from randint(count, (left,), generator=self.generator).tolist()
            return
        while left > 0 and count > 0:
            yield from randperm(count, generator=self.generator).tolist()[:left]
            left -= count

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """A permutation of these indices."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        return (self.indices[i] for i in randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """num_samples draws of sample i with a probability in proportion to weights[i]; without replacement each is drawn
    once at most."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        self.weights = weights if isinstance(weights, Tensor) else tensor(weights, dtype='float64')
        self.num_samples = checked_count('WeightedRandomSampler', num_samples)
        self.replacement, self.generator = replacement, generator
        if self.weights.ndim != 1:
            raise ValueError('WeightedRandomSampler: weights have 1 dimension, not %d' % self.weights.ndim)

    def __iter__(self):
        drawn = multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of batch_size indices of another sampler; the last may be shorter, unless drop_last."""

    def __init__(self, sampler, batch_size, drop_last):
        self.sampler, self.drop_last = sampler, drop_last
        self.batch_size = checked_count('BatchSampler', batch_size, 'batch_size')

    def __iter__(self):
        return in_groups(self.sampler, self.batch_size, self.drop_last)

    def __len__(self):
        return number_of_groups(len(self.sampler), self.batch_size, self.drop_last)


def in_groups(values, size, drop_last):
    """Lists of so many values."""
    values = iter(values)
    while True:
        group = list(itertools.islice(values, size))
        if not group or drop_last and len(group) < size:
            return
        yield group


def number_of_groups(count, size, drop_last):
    return count // size if drop_last else -(-count // size)


def checked_count(kind, value, name='num_samples'):
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError('%s: %s is a number of 1 or more, not %r' % (kind, name, value))
    return value
