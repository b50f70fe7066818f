"""koine.save and koine.load: tensors, and what lists, tuples and dicts of them hold besides, in safetensors files."""
import json
import shutil

from . import safetensors
from ._device import device as Device
from ._files import temporary_file
from ._tensor import Tensor

_KEY = 'koine.structure'  # of the metadata: JSON, in which {'tensor': name} stands for a tensor
_PLAIN = (str, int, float, bool, type(None))


def save(obj, f):
    """Writes a dict of tensors by name, such as a module's state_dict(), to the safetensors file `f`: a path, or an
    open binary file, such as io.BytesIO. Dicts, lists and tuples may hold others of these, numbers, texts and None,
    too, as checkpoints do."""
    if hasattr(f, 'write'):
        with temporary_file() as file:
            save(obj, file)
            with open(file, 'rb') as written:
                shutil.copyfileobj(written, f)
        return
    if not isinstance(obj, (dict, list, tuple, Tensor)):
        raise TypeError('koine.save writes tensors, and dicts, lists and tuples of them, not %s%s' % (
            type(obj).__name__, _hint(obj)))
    if isinstance(obj, dict) and all(isinstance(key, str) and isinstance(value, Tensor) for key, value in obj.items()):
        safetensors.save_file(obj, f)
        return
    tensors = {}
    structure = json.dumps(_described(obj, '', tensors))
    safetensors.save_file(tensors, f, {_KEY: structure})


def load(f, map_location=None, *, weights_only=True):
    """What save wrote, tensors on the device `map_location`: the current one. Of any other safetensors file
    {name: tensor}. There is no code in such files, whatever weights_only says."""
    if hasattr(f, 'read'):
        with temporary_file() as file:
            with open(file, 'wb') as made:
                shutil.copyfileobj(f, made)
            return load(file, map_location)
    if map_location is not None and not isinstance(map_location, (str, Device)):
        raise TypeError('koine.load: map_location is a device or its name, not %s' % type(map_location).__name__)
    tensors, structure = safetensors.load_both(f, _KEY, map_location)
    if structure is None:
        return tensors
    try:
        return _made(json.loads(structure), tensors)
    except (KeyError, RecursionError, TypeError, ValueError) as problem:
        raise ValueError('%s: its metadata "%s" is damaged: %s' % (f, _KEY, problem)) from problem


def _hint(value):
    return ': save its state_dict()' if hasattr(value, 'state_dict') else ''


def _described(value, place, tensors):
    """What JSON can say of it; its tensors go to `tensors`, by their places."""
    if isinstance(value, Tensor):
        name = place or 'tensor'
        while name in tensors:
            name += "'"
        tensors[name] = value
        return {'tensor': name}
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, _PLAIN):
                raise TypeError('koine.save: a key of "%s" is %s, not a text or number' % (place, type(key).__name__))
        return {'dict': [[key, _described(one, _inside(place, key), tensors)] for key, one in value.items()]}
    if isinstance(value, (list, tuple)):
        parts = [_described(one, _inside(place, i), tensors) for i, one in enumerate(value)]
        return parts if isinstance(value, list) else {'tuple': parts}
    raise TypeError('koine.save writes tensors, numbers, texts, lists, tuples and dicts, and "%s" is %s%s' % (
        place, type(value).__name__, _hint(value)))


def _inside(place, key):
    return '%s.%s' % (place, key) if place else str(key)


def _made(described, tensors):
    if isinstance(described, list):
        return [_made(one, tensors) for one in described]
    if not isinstance(described, dict):
        return described
    if 'tensor' in described:
        return tensors[described['tensor']]
    if 'tuple' in described:
        return tuple(_made(one, tensors) for one in described['tuple'])
    return {key: _made(one, tensors) for key, one in described['dict']}
