"""Datasets and the loader, whose worker threads are the library's: torch.utils.data."""
import atexit
import weakref

import numpy

from ._c import NULL, callback, check, checked, ffi, lib, path, text
from ._device import handle as device_handle
from ._dtypes import as_dtype, by_code
from ._tensor import Tensor, wrap


class Dataset:
    """Samples by index. A subclass has __len__ and __getitem__, which returns a sample: a number, an array, or a tuple
    of them, always with the same shapes and dtypes. Worker threads call it; Python runs one of them at a time."""

    _handle = None

    @property
    def _h(self):
        if self._handle is None:
            self._handle = _from_python(self)
        return self._handle

    def _adopt(self, pointer, *keep):
        self._handle = ffi.gc(checked(pointer), lib.kn_dataset_free)
        self._keep = keep

    def __len__(self):
        return lib.kn_dataset_length(self._h)

    def __getitem__(self, index):
        """A sample as numpy arrays."""
        if not -len(self) <= index < len(self):
            raise IndexError('sample %d is out of range: there are %d' % (index, len(self)))
        lengths = ffi.new('int64_t[]', max(len(self.fields), 1))
        index %= len(self)
        check(lib.kn_dataset_lengths(self._h, index, lengths))
        arrays = []
        for i, (_, dtype, shape, varies) in enumerate(self.fields):
            arrays.append(numpy.empty((lengths[i], *shape[1:]) if varies else shape, as_dtype(dtype).numpy))
        pointers = ffi.new('void *[]', [ffi.cast('void *', one.ctypes.data) for one in arrays])
        check(lib.kn_dataset_get(self._h, index, pointers))
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

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


def _sample(value):
    parts = value if isinstance(value, tuple) else (value,)
    arrays = []
    for one in parts:
        one = one.numpy() if isinstance(one, Tensor) else numpy.asarray(one)
        arrays.append(one.astype(as_dtype(one.dtype).numpy))
    return arrays


def _from_python(dataset):
    """The kn_dataset of a subclass."""
    first = _sample(dataset[0])
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


class TensorDataset(Dataset):
    """Samples are the rows of tensors or arrays, which are copied to the host."""

    def __init__(self, *tensors, names=None):
        hosts = [one.to('host') if isinstance(one, Tensor) else Tensor(one, device='host') for one in tensors]
        keep = [ffi.new('char[]', name.encode()) for name in names or ()]
        array = ffi.new('char *[]', keep + [NULL]) if names else NULL
        self._adopt(lib.kn_tensor_dataset_of([one._h for one in hosts], len(hosts), array), hosts)


class MNIST(Dataset):
    """MNIST or Fashion-MNIST from the original files in a directory."""

    def __init__(self, directory, train=True):
        self._adopt(lib.kn_mnist_dataset(path(directory), train))


class DataLoader:
    """Batches of a dataset, prepared by `num_workers` threads, on a device. Each loop over it is an epoch; seed and
    epoch determine the order. A batch is a tuple of tensors, one for each field."""

    def __init__(self, dataset, batch_size=1, shuffle=False, *, num_workers=0, drop_last=False, prefetch_factor=2,
                 seed=0, device=None, pin_memory=False):
        self.dataset, self.batch_size, self.epoch = dataset, batch_size, 0
        params = ffi.new('kn_loader_params *', lib.kn_loader_params_init())
        params.batch_size, params.shuffle, params.drop_last = batch_size, shuffle, drop_last
        params.num_workers, params.prefetch_factor, params.seed = num_workers, prefetch_factor, seed
        params.device, params.pin_memory = device_handle(device), pin_memory
        self._h = ffi.gc(checked(lib.kn_loader_new_with(dataset._h, params)), _free_loader(dataset))
        _loaders.add(self)

    def __len__(self):
        return lib.kn_loader_batches(self._h)

    def __iter__(self):
        check(lib.kn_loader_start(self._h, self.epoch))
        self.epoch += 1
        batch = ffi.new('kn_batch **')
        while True:
            check(lib.kn_loader_next(self._h, batch))
            if batch[0] == NULL:
                return
            yield tuple(wrap(batch[0].fields[i]) for i in range(batch[0].num_fields))


def _free_loader(dataset):
    """Frees a loader, and then drops the dataset, which must outlive it."""
    keep = [dataset]

    def free(pointer):
        lib.kn_loader_free(pointer)
        keep.clear()

    return free


_loaders = weakref.WeakSet()


@atexit.register
def _stop_workers():
    """Before the interpreter ends: workers may be inside a dataset that is written in Python."""
    for loader in list(_loaders):
        ffi.release(loader._h)
