"""How batches are made: by the library with its worker threads, or in Python."""
import atexit
import collections
import concurrent.futures
import itertools
import weakref

from .._c import NULL, callback, check, checked, ffi, lib
from .._tensor import Tensor, wrap
from ._collate import default_collate, default_convert
from ._datasets import IterableDataset
from ._samplers import in_groups, number_of_groups

# --- by the library ---------------------------------------------------------------------------------------------------


class InLibrary:
    """The library's loader, which asks a sampler of Python for the order of each epoch."""

    def __init__(self, loader):
        params = ffi.new('kn_loader_params *', lib.kn_loader_params_init())
        params.batch_size, params.shuffle, params.drop_last = loader.batch_size, loader.shuffle, loader.drop_last
        params.num_workers, params.prefetch_factor = loader.num_workers, loader.prefetch_factor
        params.seed, params.device, params.pin_memory = loader.seed, loader.device._h, loader.pin_memory
        keep = [loader._source]
        if loader.sampler is not None:
            params.sampler = _sampler(loader.sampler, keep)
        self.handle = ffi.gc(checked(lib.kn_loader_new_with(loader._source._h, params)), _free_loader(keep))
        _made.add(self)

    def __len__(self):
        return lib.kn_loader_batches(self.handle)

    def of_epoch(self, epoch):
        check(lib.kn_loader_start(self.handle, epoch))
        batch = ffi.new('kn_batch **')
        while True:
            check(lib.kn_loader_next(self.handle, batch))
            if batch[0] == NULL:
                return
            yield tuple(wrap(batch[0].fields[i]) for i in range(batch[0].num_fields))


def _sampler(sampler, keep):
    """The kn_sampler of one of Python; `keep` holds what must outlive the loader."""
    length = len(sampler)

    def order(_, seed, epoch, indices):
        found = [int(index) for index in itertools.islice(sampler, length + 1)]
        if len(found) != length:
            raise ValueError('%s: its length is %d, but it gave %s indices' % (
                type(sampler).__name__, length, 'more' if len(found) > length else len(found)))
        indices[0:length] = found
        return lib.KN_OK

    functions = ffi.new('kn_sampler_functions *')
    called = (callback('int64_t(void *)', -1, lambda _: length),
              callback('kn_status(void *, uint64_t, int64_t, int64_t *)', lib.KN_ERR_STATE, order))
    functions.length, functions.order = called
    made = ffi.gc(checked(lib.kn_sampler_new(functions, NULL)), lib.kn_sampler_free)
    keep += [made, called]
    return made


def _free_loader(keep):
    """Frees a loader, and then drops what must outlive it."""

    def free(pointer):
        lib.kn_loader_free(pointer)
        keep.clear()

    return free


_made = weakref.WeakSet()


@atexit.register
def _stop_workers():
    """Before the interpreter ends: workers may be inside a dataset that is written in Python."""
    for one in list(_made):
        ffi.release(one.handle)


# --- in Python --------------------------------------------------------------------------------------------------------


class InPython:
    """Samples by index, and a function that makes a batch of them."""

    def __init__(self, loader):
        self.loader, self.is_iterable = loader, isinstance(loader.dataset, IterableDataset)
        if not isinstance(loader.num_workers, int) or loader.num_workers < 0:
            raise ValueError('DataLoader: num_workers is a number of 0 or more, not %r' % (loader.num_workers,))
        self.collate = loader.collate_fn or (default_convert if loader.batch_size is None else _fields)

    def __len__(self):
        loader = self.loader
        if loader.batch_sampler is not None:
            return len(loader.batch_sampler)
        count = len(loader.dataset if loader.sampler is None else loader.sampler)
        return count if loader.batch_size is None else number_of_groups(count, loader.batch_size, loader.drop_last)

    def of_epoch(self, epoch):
        loader = self.loader
        if loader.batch_sampler is not None:
            groups = iter(loader.batch_sampler)
        else:
            order = loader.dataset if self.is_iterable else self._order(epoch)
            groups = iter(order) if loader.batch_size is None else in_groups(order, loader.batch_size, loader.drop_last)
        return self._ahead(groups) if loader.num_workers > 0 else map(self._batch, groups)

    def _order(self, epoch):
        loader = self.loader
        if loader.sampler is not None:
            return loader.sampler
        count = len(loader.dataset)
        return _shuffled(count, loader.seed, epoch) if loader.shuffle else range(count)

    def _batch(self, group):
        """Of a list of indices, or of samples; of one if there are no batches."""
        with self.loader.device:
            if self.is_iterable:
                return self.collate(group)
            dataset = self.loader.dataset
            is_one = self.loader.batch_size is None and self.loader.batch_sampler is None
            return self.collate(dataset[group] if is_one else [dataset[index] for index in group])

    def _ahead(self, groups):
        """The batches, of which threads prepare the next ones."""
        pool = concurrent.futures.ThreadPoolExecutor(self.loader.num_workers)
        begun = collections.deque()
        try:
            for group in groups:
                begun.append(pool.submit(self._batch, group))
                if len(begun) > self.loader.num_workers * self.loader.prefetch_factor:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _fields(samples):
    """A tuple, as the library's batches are."""
    batch = default_collate(samples)
    return (batch,) if isinstance(batch, Tensor) else batch


def _shuffled(count, seed, epoch):
    """A permutation that seed and epoch determine."""
    indices = ffi.new('int64_t[]', list(range(count)) or [0])
    sampler = ffi.gc(checked(lib.kn_subset_random_sampler(indices, count)), lib.kn_sampler_free)
    check(lib.kn_sampler_order(sampler, seed, epoch, indices))
    return ffi.unpack(indices, count)
