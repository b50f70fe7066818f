"""The loader: what is to be loaded, and how. _batches.py makes the batches."""
from .._device import current_device
from .._device import device as Device
from ._batches import InLibrary, InPython
from ._datasets import IterableDataset, as_dataset
from ._samplers import RandomSampler, checked_count


class DataLoader:
    """Batches of a dataset on a device. Each loop over it is an epoch; seed and epoch determine the order of
    shuffle=True, a generator that with which it was made. A batch is a tuple of tensors, one for each field.

    The library makes the batches, in `num_workers` threads, also in the order of a sampler: any list or iterable of
    indices with a length. With a batch_sampler (an iterable of lists of indices), a collate_fn, an IterableDataset or
    batch_size=None (the samples themselves) Python makes them, in as many threads; collate_fn gets a list of samples,
    and its result is the batch. So does default_collate where samples are dicts, lists or texts, or hold some. Workers
    are threads of this process: timeout, worker_init_fn, multiprocessing_context, persistent_workers and
    pin_memory_device have no effect."""

    def __init__(self, dataset, batch_size=1, shuffle=False, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False,
                 pin_memory_device='', seed=0, device=None):
        self.dataset, self.batch_size, self.num_workers = dataset, batch_size, num_workers
        source, shuffle, prefetch_factor = as_dataset(dataset), bool(shuffle), prefetch_factor or 2
        self.batch_sampler, self.collate_fn, self.drop_last = batch_sampler, collate_fn, drop_last
        self.sampler, self.shuffle, self.seed, self.epoch = sampler, shuffle, seed, 0
        self.pin_memory, self.prefetch_factor = pin_memory, prefetch_factor
        self.device = current_device() if device is None else Device(device)
        self._check()
        if shuffle and generator is not None:
            self.sampler, self.shuffle = RandomSampler(dataset, generator=generator), False
        is_sized = self.sampler is None or hasattr(self.sampler, '__len__')
        self._source = source
        in_library = (is_sized and batch_sampler is None and collate_fn is None and batch_size is not None
                      and not isinstance(dataset, IterableDataset) and source._fits_library())
        self._batches = (InLibrary if in_library else InPython)(self)

    def _check(self):
        """What excludes each other."""
        given = [name for name, is_given in (
            ('shuffle', self.shuffle), ('sampler', self.sampler is not None),
            ('batch_sampler', self.batch_sampler is not None), ('drop_last', self.drop_last),
            ('batch_size', self.batch_size != 1)) if is_given]
        others = [name for name in given if name != 'batch_sampler']
        if isinstance(self.dataset, IterableDataset) and set(given) & {'shuffle', 'sampler', 'batch_sampler'}:
            raise ValueError('DataLoader: an IterableDataset has an order of its own: leave out %s' % given[0])
        if self.batch_sampler is not None and others:
            raise ValueError('DataLoader: the batches are those of batch_sampler: leave out %s' % ', '.join(others))
        if self.sampler is not None and self.shuffle:
            raise ValueError('DataLoader: the order is that of sampler: leave out shuffle')
        if self.batch_size is not None:
            checked_count('DataLoader', self.batch_size, 'batch_size')
        elif self.drop_last:
            raise ValueError('DataLoader: batch_size=None makes no batches: leave out drop_last')

    @property
    def _h(self):
        """The library's, for the trainer and update_bn."""
        if isinstance(self._batches, InPython):
            raise TypeError('the trainer and update_bn take loaders whose batches the library makes: without '
                            'batch_sampler, collate_fn and IterableDataset, with a batch_size, and of samples that '
                            'are arrays, numbers, or tuples of them')
        return self._batches.handle

    def __len__(self):
        return len(self._batches)

    def __iter__(self):
        epoch = self.epoch
        self.epoch += 1
        return self._batches.of_epoch(epoch)


def get_worker_info():
    """None, as in PyTorch's own process: one thread asks an IterableDataset for all of its samples."""
    return None
