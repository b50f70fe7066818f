"""torch.cuda, where the device 'cuda' is a GPU of any vendor: 'cuda:1' is 'gpu:1'. Streams are the library's own."""
from ._device import (device, devices, empty_cache, max_memory_allocated, memory_allocated,  # noqa: F401
                      memory_reserved, memory_summary, set_device, synchronize)
from .random import manual_seed

manual_seed_all = manual_seed


def _gpus():
    return [one for one in devices() if one.type == 'gpu']


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
