"""Tensors that a module registers when they become attributes."""
from .._tensor import Tensor, tensor


class Parameter(Tensor):
    """A tensor that is trained."""

    __slots__ = ()

    def __init__(self, data, requires_grad=True):
        self._h = data.detach()._h if isinstance(data, Tensor) else tensor(data)._h
        if requires_grad:
            self.requires_grad_()

    def __repr__(self):
        return 'Parameter containing:\n' + super().__repr__()


class Buffer(Tensor):
    """A tensor that is saved, but not trained. persistent=False: not in state_dict and files."""

    __slots__ = ('persistent',)

    def __init__(self, data, *, persistent=True):
        self._h = data.detach()._h if isinstance(data, Tensor) else tensor(data)._h
        self.persistent = persistent
