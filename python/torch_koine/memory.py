"""torch.koine: memory, with torch.cuda's names; sizes in bytes."""
import json
import os
import tempfile

import torch
from torch._utils import _get_device_index

_ops = torch.ops.koine


def _index(device):
    return _get_device_index(device, optional=True)


def memory_stats(device=None):
    """torch.cuda.memory_stats's dictionary, with its keys."""
    return dict(sorted(_ops.memory_stats(_index(device)).items()))


def host_memory_stats():
    """The figures of pinned memory: torch.cuda.host_memory_stats."""
    return dict(sorted(_ops.host_memory_stats().items()))


def memory_allocated(device=None):
    return memory_stats(device)['allocated_bytes.all.current']


def max_memory_allocated(device=None):
    return memory_stats(device)['allocated_bytes.all.peak']


def memory_reserved(device=None):
    return memory_stats(device)['reserved_bytes.all.current']


def max_memory_reserved(device=None):
    return memory_stats(device)['reserved_bytes.all.peak']


def reset_peak_memory_stats(device=None):
    torch.accelerator.reset_peak_memory_stats(_index(device))


def reset_accumulated_memory_stats(device=None):
    torch.accelerator.reset_accumulated_memory_stats(_index(device))


def memory_summary(device=None, abbreviated=False):
    """The figures as PyTorch's table."""
    return _ops.memory_summary(_index(device), abbreviated)


def mem_get_info(device=None):
    """(free, total)."""
    return torch.accelerator.get_memory_info(_index(device))


def empty_cache():
    """Returns cached memory that no tensor uses to the drivers."""
    torch.accelerator.empty_cache()


_fractions = {}


def set_per_process_memory_fraction(fraction, device=None):
    """Limits what this process may reserve to a part of the device's memory."""
    _ops.set_memory_fraction(_index(device), fraction)
    _fractions[_index(device)] = fraction


def get_per_process_memory_fraction(device=None):
    return _fractions.get(_index(device), 1.0)


def record_memory_history(max_entries=100000, device=None):
    """Records allocations for memory_snapshot; 0 ends it."""
    _ops.memory_record_history(_index(device), max_entries)


def memory_snapshot(path=None, device=None):
    """The pool's segments, as torch.cuda.memory_snapshot gives them. With a path its state and its history are written
    there as JSON, in the format of torch.cuda.memory._snapshot, and nothing is returned."""
    if path is not None:
        return _ops.memory_snapshot(_index(device), path)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'snapshot.json')
        _ops.memory_snapshot(_index(device), path)
        with open(path, encoding='utf-8') as file:
            return json.load(file)['segments']
