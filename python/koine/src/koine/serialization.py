"""koine.save and koine.load: tensors by name, in safetensors files."""
from ._device import device as Device
from ._tensor import Tensor
from .safetensors import load_file, save_file


def save(obj, f):
    """Writes a dict of tensors by name, such as a module's state_dict(), to the safetensors file `f`."""
    if not isinstance(obj, dict):
        hint = ': save its state_dict()' if hasattr(obj, 'state_dict') else ''
        raise TypeError('koine.save writes a dict of tensors by name, not %s%s' % (type(obj).__name__, hint))
    for name, value in obj.items():
        if not isinstance(name, str):
            raise TypeError('koine.save writes tensors by name, and %r is no name' % (name,))
        if not isinstance(value, Tensor):
            raise TypeError('koine.save writes a flat dict of tensors, and "%s" is %s' % (name, type(value).__name__))
    save_file(obj, f)


def load(f, map_location=None, *, weights_only=True):
    """{name: tensor} of a safetensors file, on the device `map_location`: the current one. There is nothing but tensors
    in such a file, whatever weights_only says."""
    if map_location is not None and not isinstance(map_location, (str, Device)):
        raise TypeError('koine.load: map_location is a device or its name, not %s' % type(map_location).__name__)
    return load_file(f, map_location)
