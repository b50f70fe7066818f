"""Datasets: samples by index, or one after the other."""
import bisect
import itertools
import numbers

import numpy

from .._c import NULL, callback, check, checked, encoded, ffi, lib, path, text
from .._dtypes import as_dtype, bfloat16, by_code
from .._tensor import Tensor, tensor


class Dataset:
    """Samples by index. A subclass has __len__ and __getitem__, which returns a sample. Numbers, arrays and tuples of
    them, always with the same shapes and dtypes, are what the library makes batches of; of other samples, such as dicts
    and texts, Python makes them. Worker threads call it; Python runs one of them at a time."""

    _handle = None
    _kinds = None  # (numpy's dtype, shape, varies) of each field, once samples were read
    _first = None  # the arrays of sample 0, between the look at it and the making of the kn_dataset

    @property
    def _h(self):
        if self._handle is None:
            self._handle = self._make()
        return self._handle

    def _make(self):
        """The kn_dataset, when it is first needed."""
        return _from_python(self)

    def _fits_library(self):
        """Whether the library can hold the samples, by the first one."""
        if self._handle is not None or type(self)._make is not Dataset._make:
            return True
        return _fits_by_sample(self)

    def _adopt(self, pointer, *keep):
        self._handle = ffi.gc(checked(pointer), lib.kn_dataset_free)
        self._keep = keep

    def __len__(self):
        return lib.kn_dataset_length(self._h)

    def __getitem__(self, index):
        """A sample as numpy arrays."""
        length = len(self)
        if not -length <= index < length:
            raise IndexError('sample %d is out of range: there are %d' % (index, length))
        if self._kinds is None:
            self._kinds = [(as_dtype(dtype).numpy, shape, varies) for _, dtype, shape, varies in self.fields]
        lengths = ffi.new('int64_t[]', max(len(self._kinds), 1))
        index %= length
        check(lib.kn_dataset_lengths(self._h, index, lengths))
        arrays = [numpy.empty((lengths[i], *shape[1:]) if varies else shape, kind)
                  for i, (kind, shape, varies) in enumerate(self._kinds)]
        pointers = ffi.new('void *[]', [ffi.from_buffer(one) if one.size else NULL for one in arrays])
        check(lib.kn_dataset_get(self._h, index, pointers))
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def __add__(self, other):
        return ConcatDataset([self, other])

    @property
    def fields(self):
        """[(name, dtype, shape of a sample, does the first size vary?)]"""
        found = [lib.kn_dataset_field(self._h, i) for i in range(lib.kn_dataset_field_count(self._h))]
        return [(text(one.name), by_code[one.dtype], tuple(one.shape[0:one.ndim]), one.varies) for one in found]

    @property
    def classes(self):
        found, names = lib.kn_dataset_classes(self._h), []
        while found and found[len(names)]:
            names.append(text(found[len(names)]))
        return names


def _fits_by_sample(dataset):
    if len(dataset) == 0:
        return False
    sample = dataset[0]
    if not _is_plain(sample):
        return False
    dataset._first = _sample(sample)
    return True


def _is_plain(sample):
    """Is it a number or an array, or a tuple of them? Lists and named tuples become lists and named tuples of batches.
    """
    return all(_is_array(one) for one in (sample if type(sample) is tuple else (sample,)))


def _is_array(value):
    if isinstance(value, Tensor):
        return value.dtype is not bfloat16  # which numpy has not
    return isinstance(value, (numbers.Real, numpy.ndarray, numpy.generic)) and not isinstance(value, (str, bytes))


def _sample(value):
    parts = value if isinstance(value, tuple) else (value,)
    arrays = []
    for one in parts:
        one = one.numpy() if isinstance(one, Tensor) else numpy.asarray(one)
        arrays.append(one.astype(as_dtype(one.dtype).numpy, copy=False))
    return arrays


def _from_python(dataset):
    """The kn_dataset of a subclass."""
    first, dataset._first = dataset._first or _sample(dataset[0]), None
    fields = ffi.new('kn_field[]', len(first))
    for field, array in zip(fields, first):
        field.dtype, field.ndim = as_dtype(array.dtype).code, array.ndim
        field.shape = list(array.shape)

    def get(_, index, pointers):
        arrays = _sample(dataset[index])
        for i, (array, like) in enumerate(zip(arrays, first)):
            if array.shape != like.shape:
                raise ValueError('sample %d: field %d has shape %s, that of sample 0 %s' % (index, i, array.shape,
                                                                                        like.shape))
            array = numpy.ascontiguousarray(array, dtype=like.dtype)
            ffi.memmove(pointers[i], ffi.from_buffer(array) if array.size else b'', array.nbytes)
        return lib.KN_OK

    functions = ffi.new('kn_dataset_functions *')
    keep = (callback('int64_t(void *)', 0, lambda _: len(dataset)),
            callback('kn_status(void *, int64_t, void *const *)', lib.KN_ERR_STATE, get))
    functions.length, functions.get = keep
    made = ffi.gc(checked(lib.kn_dataset_new(functions, NULL, fields, len(first))), lib.kn_dataset_free)
    dataset._callbacks = keep
    return made


class IterableDataset(Dataset):
    """Samples one after the other: a subclass has __iter__, and may have __len__. They are not shuffled, and one thread
    asks for them."""

    def __iter__(self):
        raise NotImplementedError('%s: an IterableDataset needs __iter__' % type(self).__name__)

    def __len__(self):
        raise TypeError('%s has no length' % type(self).__name__)

    def __getitem__(self, index):
        raise TypeError('%s: an IterableDataset has no samples by index' % type(self).__name__)


class ChainDataset(IterableDataset):
    """The samples of one IterableDataset after those of the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        for one in self.datasets:
            if not isinstance(one, IterableDataset):
                raise TypeError('ChainDataset is for IterableDatasets, not %s: ConcatDataset is for others'
                                % type(one).__name__)

    def __iter__(self):
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self):
        return sum(len(one) for one in self.datasets)


class TensorDataset(Dataset):
    """Samples are the rows of tensors or arrays, which are copied to the host."""

    def __init__(self, *tensors, names=None):
        hosts = [one.to('host') if isinstance(one, Tensor) else tensor(one, device='host') for one in tensors]
        keep = [ffi.new('char[]', encoded(name)) for name in names or ()]
        array = ffi.new('char *[]', keep + [NULL]) if names else NULL
        self._adopt(lib.kn_tensor_dataset_of([one._h for one in hosts], len(hosts), array), hosts)

    @property
    def tensors(self):
        """The copies on the host."""
        return tuple(self._keep[0])


class Subset(Dataset):
    """Sample i is sample indices[i] of `dataset`."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices, self._source = dataset, indices, as_dataset(dataset)

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]

    def _changes_samples(self):
        return type(self).__getitem__ is not Subset.__getitem__

    def _fits_library(self):
        return _fits_by_sample(self) if self._changes_samples() else self._source._fits_library()

    def _make(self):
        if self._changes_samples():
            return super()._make()
        indices = ffi.new('int64_t[]', [int(i) for i in self.indices])
        return ffi.gc(checked(lib.kn_subset(self._source._h, indices, len(self.indices))), lib.kn_dataset_free)


class ConcatDataset(Dataset):
    """The samples of one dataset after those of the other; also one + other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        self._sources = [as_dataset(one) for one in self.datasets]
        if not self.datasets:
            raise ValueError('ConcatDataset needs at least one dataset')
        self.cumulative_sizes = list(itertools.accumulate(len(one) for one in self.datasets))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError('sample %d is out of range: there are %d' % (index, len(self)))
        index %= len(self)
        at = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[at][index - (self.cumulative_sizes[at - 1] if at else 0)]

    def _changes_samples(self):
        return type(self).__getitem__ is not ConcatDataset.__getitem__

    def _fits_library(self):
        if self._changes_samples():
            return _fits_by_sample(self)
        return all(one._fits_library() for one in self._sources)

    def _make(self):
        if self._changes_samples():
            return super()._make()
        handles = [one._h for one in self._sources]
        return ffi.gc(checked(lib.kn_concat_dataset(handles, len(handles))), lib.kn_dataset_free)


class StackDataset(Dataset):
    """Samples are tuples of one sample of each dataset, or of named ones dicts."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError('StackDataset needs datasets, either by position or by name')
        self.datasets = args or kwargs
        lengths = {len(one) for one in args or kwargs.values()}
        if len(lengths) > 1:
            raise ValueError('StackDataset: the datasets have %s samples' % ' and '.join(map(str, sorted(lengths))))
        self._length = lengths.pop()

    def __len__(self):
        return self._length

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: one[index] for name, one in self.datasets.items()}
        return tuple(one[index] for one in self.datasets)


class _Indexed(Dataset):
    """Of a list of samples, or another object that has a length and samples by index."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def as_dataset(value):
    if isinstance(value, Dataset):
        return value
    if not hasattr(value, '__getitem__') or not hasattr(value, '__len__'):
        raise TypeError('expected a koine.data.Dataset, or what has __len__ and __getitem__, not %s'
                        % type(value).__name__)
    return _Indexed(value)


class MNIST(Dataset):
    """MNIST or Fashion-MNIST from the original files in a directory."""

    def __init__(self, directory, train=True):
        self._adopt(lib.kn_mnist_dataset(path(directory), train))
