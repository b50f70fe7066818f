"""torch.accelerator: the GPUs, of whichever vendor. Their numbers are those of 'gpu:0', 'gpu:1', ..."""
from . import _device
from ._gpus import Gpus

_gpus = Gpus(lambda i: 'gpu:%d' % i)
globals().update(_gpus.functions())
get_memory_info = mem_get_info  # noqa: F821


def device_count():
    return len(_gpus.all())


def is_available():
    """Is there a GPU?"""
    return _device.exists('gpu')


def current_accelerator(check_available=False):
    """device('gpu'), or None where there is no GPU."""
    return _device.device('gpu') if is_available() else None


def current_device_index():
    """The number of the current device; 0 where that is no GPU."""
    return _gpus.current_index() or 0


def set_device_index(device):
    _device.set_device(_gpus.one(device))


def device_index(device):
    """As a context manager: that GPU is the current device; with None nothing changes."""
    return _gpus.one(device)
