"""Objects of Python, as bytes of pickle: only what ranks of the same program send each other is unpickled."""
import pickle

import numpy

from .._functions import empty, zeros
from .._groups import group_of
from .._tensor import from_numpy
from ._collectives import all_gather, broadcast, gather


def _packed(value):
    return numpy.frombuffer(pickle.dumps(value), numpy.uint8)


def _unpacked(received, count):
    return pickle.loads(received.numpy()[:count].tobytes())


def _sizes(packed, group):
    """Of all ranks' objects, in bytes."""
    found = [zeros(1, dtype='int64', device='host') for _ in range(group.size())]
    all_gather(found, _on_host(numpy.array([packed.size])), group)
    return [int(one.item()) for one in found]


def _on_host(array, size=None):
    """A tensor of the array, or of so many elements that begin with it."""
    made = numpy.zeros(array.size if size is None else size, array.dtype)
    made[:array.size] = array
    return from_numpy(made, device='host')


def all_gather_object(object_list, obj, group=None):
    """object_list[r] becomes rank r's object."""
    group, packed = group_of(group, 'all_gather_object'), _packed(obj)
    sizes = _sizes(packed, group)
    found = [empty(max(sizes), dtype='uint8', device='host') for _ in sizes]
    all_gather(found, _on_host(packed, max(sizes)), group)
    object_list[:] = [_unpacked(one, size) for one, size in zip(found, sizes)]


def gather_object(obj, object_gather_list=None, dst=0, group=None):
    """The same on rank `dst` only, which alone gives a list."""
    group, packed = group_of(group, 'gather_object'), _packed(obj)
    is_here = group.number_of(dst) == group.rank()
    if is_here and object_gather_list is None:
        raise ValueError('gather_object: rank %d must give object_gather_list' % dst)
    sizes = _sizes(packed, group)
    found = [empty(max(sizes), dtype='uint8', device='host') for _ in sizes] if is_here else None
    gather(_on_host(packed, max(sizes)), found, dst, group)
    if is_here:
        object_gather_list[:] = [_unpacked(one, size) for one, size in zip(found, sizes)]


def broadcast_object_list(object_list, src, group=None):
    """Replaces the objects of the list by rank `src`'s."""
    group = group_of(group, 'broadcast_object_list')
    is_here = group.number_of(src) == group.rank()
    packed = _packed(list(object_list)) if is_here else None
    size = _on_host(numpy.array([packed.size if is_here else 0]))
    broadcast(size, src, group)
    received = _on_host(packed) if is_here else empty(int(size.item()), dtype='uint8', device='host')
    broadcast(received, src, group)
    if not is_here:
        object_list[:] = _unpacked(received, received.numel())
