"""GPUs by their numbers, for koine.cuda and koine.accelerator."""
import itertools

from . import _device


class Gpus:
    """Number i is the device of the name named(i)."""

    def __init__(self, named):
        self._named = named

    def all(self):
        names = (self._named(i) for i in itertools.count())
        return [_device.device(one) for one in itertools.takewhile(_device.exists, names)]

    def one(self, value):
        """Of a number, a name or a device; the current device for None."""
        if value is None:
            return _device.current_device()
        return _device.device(self._named(value) if isinstance(value, int) else value)

    def current_index(self):
        """None where the current device is no GPU."""
        gpus, current = self.all(), _device.current_device()
        return gpus.index(current) if current in gpus else None

    def functions(self):
        """Those of koine that take a device, here also by its number."""
        return {name: self._numbered(getattr(_device, name)) for name in _device.OF_DEVICES}

    def _numbered(self, function):
        def numbered(device=None):
            return function(self.one(device))

        numbered.__name__, numbered.__doc__ = function.__name__, function.__doc__
        return numbered
