"""torch.koine: devices. Memory, streams, random numbers and fallbacks are in the modules imported below."""
import atexit
import os

import torch
from torch._utils import _get_device_index as _index_of

from . import amp  # noqa: F401
from .fallback import fallbacks, reset_fallbacks, set_fallback_mode  # noqa: F401
from .callables import make_graphed_callables  # noqa: F401
from .graphs import graph, graph_pool_handle, is_current_stream_capturing, KoineGraph  # noqa: F401
from .memory import (empty_cache, get_per_process_memory_fraction, host_memory_stats,  # noqa: F401
                     max_memory_allocated, max_memory_reserved, mem_get_info, memory_allocated, memory_reserved,
                     memory_snapshot, memory_stats, memory_summary, record_memory_history,
                     reset_accumulated_memory_stats, reset_peak_memory_stats, set_per_process_memory_fraction)
from .random import (default_generators, get_rng_state, get_rng_state_all, initial_seed, manual_seed,  # noqa: F401
                     manual_seed_all, seed, seed_all, set_rng_state, set_rng_state_all)
from .streams import Event, Stream, current_stream, default_stream, set_stream, stream, StreamContext  # noqa: F401

_ops = torch.ops.koine

# --- fork -------------------------------------------------------------------------------------------------------------

_is_forked = False


def _after_fork():
    global _is_forked
    _is_forked = is_initialized()


os.register_at_fork(after_in_child=_after_fork)


def _is_in_bad_fork():
    """Is this a child forked after the devices were opened? It cannot use them; the library's errors say so."""
    return _is_forked


def _finish():
    """The interpreter may end right after a backward pass, while PyTorch's threads still hold its Python objects."""
    if is_initialized() and not _is_forked:
        _ops.finish_backward_passes()


atexit.register(_finish)

# --- devices ----------------------------------------------------------------------------------------------------------


def init():
    """Finds the devices now rather than at first use; an error says why there is none."""
    _ops.init()


def is_initialized():
    return _ops.is_initialized()


def __getattr__(name):
    """_initialized, a variable of torch.cuda's: torch.utils.checkpoint keeps the generators' states if it is true."""
    if name == '_initialized':
        return is_initialized()
    raise AttributeError('module %r has no attribute %r' % (__name__, name))


def is_available():
    return not _is_forked and device_count() > 0


def device_count():
    """koine:0 is the device that KOINE_DEVICE names, else the best GPU, else a CPU device; other GPUs, then the other
    devices follow."""
    return _ops.device_count()


def index_of(device=None):
    """The number of a device: 1, 'koine:1', torch.device('koine:1'); None and 'koine': the current one."""
    return _index_of(device, optional=True)


def current_device():
    return torch.accelerator.current_device_index()


def set_device(device):
    index = index_of(device)
    if index >= 0:
        torch.accelerator.set_device_index(index)


class device:
    """`with torch.koine.device(1):` makes a device the current one of this thread. None or -1: no change."""

    def __init__(self, device):
        self.index = -1 if device is None else index_of(device)

    def __enter__(self):
        self.before = current_device()
        if self.index >= 0:
            torch.accelerator.set_device_index(self.index)

    def __exit__(self, *exception):
        torch.accelerator.set_device_index(self.before)
        return False


class device_of(device):
    """`with torch.koine.device_of(tensor):`, no change for a tensor elsewhere."""

    def __init__(self, tensor):
        super().__init__(tensor.get_device() if tensor.device.type == 'koine' else None)


def synchronize(device=None):
    """Waits for the work of all streams of a device, and reports errors that kernels have found."""
    torch.accelerator.synchronize(index_of(device))


# --- properties -------------------------------------------------------------------------------------------------------


class DeviceProperties:
    """name, vendor, platform, driver_version, opencl_version, pci_address, uuid; type ('cpu', 'gpu', 'accelerator'),
    koine_name ('gpu:0', for Koine's own programs), total_memory, max_allocation, local_memory (bytes),
    multi_processor_count, clock_mhz, max_work_group_size, warp_size, major, minor, has_f64, has_f16, unified_memory."""

    def __init__(self, index):
        vars(self).update(_ops.device_texts(index))
        vars(self).update(_ops.device_figures(index))
        self.type = ('host', 'cpu', 'gpu', 'accelerator')[self.type]
        self.koine_name = _ops.device_string(index)
        for name in ('has_f64', 'has_f16', 'unified_memory'):
            setattr(self, name, bool(getattr(self, name)))

    def __repr__(self):
        return 'DeviceProperties(%s)' % ', '.join('%s=%r' % item for item in vars(self).items())


def get_device_properties(device=None):
    return DeviceProperties(index_of(device))


def get_device_name(device=None):
    return get_device_properties(device).name


def get_device_capability(device=None):
    """The compute capability of NVIDIA's devices, the version of OpenCL C of others."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device, peer):
    return _ops.can_access_peer(index_of(device), index_of(peer))


def is_bf16_supported():
    return True


def get_amp_supported_dtype():
    return [torch.float16, torch.bfloat16]
