"""Tensors that a module registers when they become attributes."""
from .._c import lib
from .._tensor import Tensor, borrowed, new_object, owned, release, tensor
from ._life import address, tensors


def _shared(data):
    """The handle of a tensor's memory without its history, or of a new one of what is no tensor."""
    return (data.detach() if isinstance(data, Tensor) else tensor(data))._h


class Parameter(Tensor):
    """A tensor that is trained."""

    __slots__ = ()

    def __init__(self, data, requires_grad=True):
        self._h = _shared(data)
        if requires_grad:
            self.requires_grad_()

    def __repr__(self):
        return 'Parameter containing:\n' + super().__repr__()


class Buffer(Tensor):
    """A tensor that is saved, but not trained. persistent=False: not in state_dict and files."""

    __slots__ = ('persistent',)

    def __init__(self, data, *, persistent=True):
        self._h = _shared(data)
        self.persistent = persistent


def object_of(handle, is_buffer):
    """Of a registered tensor, the same each time; a new one of a tensor that is computed from others, for a call."""
    if not lib.kn_is_leaf(handle):
        return borrowed(handle)
    known = tensors.get(address(handle))
    if known is None or known._h != handle or isinstance(known, Parameter) == is_buffer:
        known = new_object(Tensor if is_buffer else Parameter)
        known._h = owned(lib.kn_retain(handle), release)
        tensors[address(handle)] = known
    return known
