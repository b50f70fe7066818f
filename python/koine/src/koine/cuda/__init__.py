"""torch.cuda, for GPUs of any vendor: 'cuda:1' is NVIDIA's second one or, where there is none of NVIDIA's, 'gpu:1'.
Streams are the library's own."""
from .. import _device
from .._c import OutOfMemoryError  # noqa: F401
from .._gpus import Gpus
from ..random import manual_seed
from . import amp  # noqa: F401

manual_seed_all = manual_seed
_gpus = Gpus(lambda i: _device.name_of_cuda('cuda:%d' % i))
globals().update(_gpus.functions())


def device_count():
    """The number of GPUs."""
    return len(_gpus.all())


def is_available():
    """Is there a GPU?"""
    return device_count() > 0


def device(device):
    """As a context manager: that GPU is the current device; with None nothing changes."""
    return _gpus.one(device)


def current_device():
    """The number i of the current device, if that is 'cuda:i'."""
    index = _gpus.current_index()
    if index is None:
        raise RuntimeError('cuda.current_device: the current device, %s, is no GPU' % _device.current_device())
    return index


def set_device(device):
    _device.set_device(_gpus.one(device))


def get_device_name(device=0):
    return _gpus.one(0 if device is None else device).name


def get_device_properties(device=0):
    """What koine.device(...).properties holds."""
    return _gpus.one(0 if device is None else device).properties
