"""torch.koine: streams and events. They are PyTorch's own, torch.Stream and torch.Event, of the device koine."""
import torch
from torch._utils import _get_device_index


def _device(device):
    return torch.device('koine', _get_device_index(device, optional=True))


class _OfKoine(type):
    """isinstance(s, torch.koine.Stream): is it a torch.Stream of the device?"""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.kind) and instance.device.type == 'koine'


class Stream(metaclass=_OfKoine):
    """A torch.Stream, a queue of work; priority -1 runs before 0 where the driver supports it. 32 of each priority are
    made, then used in turn."""
    kind = torch.Stream

    def __new__(cls, device=None, priority=0):
        return torch.Stream(_device(device), priority=priority)


class Event(metaclass=_OfKoine):
    """A torch.Event, a point in a stream's work."""
    kind = torch.Event

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False):
        if interprocess:
            raise NotImplementedError('events of the device koine cannot be shared with other processes')
        return torch.Event(torch.device('koine'), enable_timing=enable_timing, blocking=blocking)


def current_stream(device=None):
    return torch.accelerator.current_stream(_device(device))


def default_stream(device=None):
    return torch.Stream(stream_id=0, device_index=_device(device).index, device_type=_device_type)


def set_stream(stream):
    if stream is not None:
        torch.accelerator.set_stream(stream)


class StreamContext:
    """`with torch.koine.stream(s):` makes a stream the current one of its device; None: no change."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.before = torch.accelerator.current_stream(self.stream.device)
            self.device = torch.accelerator.current_device_index()
            torch.accelerator.set_stream(self.stream)
        return self.stream

    def __exit__(self, *exception):
        if self.stream is not None:
            torch.accelerator.set_stream(self.before)
            torch.accelerator.set_device_index(self.device)
        return False


def stream(stream):
    return StreamContext(stream)


_device_type = 20  # c10::DeviceType::PrivateUse1
