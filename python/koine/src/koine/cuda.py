"""torch.cuda, for GPUs of any vendor: 'cuda:1' is NVIDIA's second one or, where there is none of NVIDIA's, 'gpu:1'.
Streams are the library's own."""
import itertools

from ._device import (device, empty_cache, exists, max_memory_allocated, memory_allocated,  # noqa: F401
                      memory_reserved, memory_summary, name_of_cuda, set_device, synchronize)
from .random import manual_seed

manual_seed_all = manual_seed


def _gpus():
    """cuda:0, cuda:1, ..."""
    names = (name_of_cuda('cuda:%d' % i) for i in itertools.count())
    return [device(one) for one in itertools.takewhile(exists, names)]


def device_count():
    """The number of GPUs."""
    return len(_gpus())


def is_available():
    """Is there a GPU?"""
    return device_count() > 0


def current_device():
    """The number i of the current device, if that is 'cuda:i'."""
    from ._device import current_device as current
    gpus = _gpus()
    if current() not in gpus:
        raise RuntimeError('cuda.current_device: the current device, %s, is no GPU' % current())
    return gpus.index(current())


def get_device_name(index=None):
    return _gpu(index).name


def get_device_properties(index=None):
    """What koine.device(...).properties holds."""
    return _gpu(index).properties


def _gpu(index):
    """Of a number, a name or a device."""
    if index is None:
        index = 0
    return device('cuda:%d' % index) if isinstance(index, int) else device(index)
