"""Each rank's part of a dataset."""
import numpy

from .._groups import get_rank, get_world_size
from ._samplers import Sampler


class DistributedSampler(Sampler):
    """Of a permutation that is the same on all ranks, every num_replicas-th sample from number `rank` on; without
    drop_last the first ones again at the end, so that all ranks have the same number. set_epoch(epoch) before each
    epoch, or all have one order."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = dataset, shuffle, seed, drop_last, 0
        self.num_replicas = get_world_size() if num_replicas is None else num_replicas
        self.rank = get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError('DistributedSampler: rank is %d; it must be from 0 to %d' % (
                self.rank, self.num_replicas - 1))
        count = len(dataset)
        self.num_samples = count // self.num_replicas if drop_last else -(-count // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = list(range(len(self.dataset)))
        if self.shuffle:
            order = numpy.random.default_rng((self.seed, self.epoch)).permutation(len(order)).tolist()
        while 0 < len(order) < self.total_size:
            order += order[:self.total_size - len(order)]
        return iter(order[self.rank:self.total_size:self.num_replicas])

    def __len__(self):
        return self.num_samples
