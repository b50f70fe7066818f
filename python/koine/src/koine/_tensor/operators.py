"""Python's operators as methods: of two tensors, and of a tensor and a number. They do what wrap does themselves, which
saves a call each."""
import numbers

import numpy

from . import handles
from .._c import error, lib, scalar
from .handles import new_object, owned, release, tensor, wrap


def _operand(value, name):
    """Of an operator of Python: a number, else NotImplemented."""
    if isinstance(value, (numbers.Real, numpy.generic)):
        return scalar(value)
    if isinstance(value, numpy.ndarray):
        raise TypeError('%s: an operand is a numpy array; koine.tensor(array) makes it a tensor' % name)
    return NotImplemented


def operator(name, scalar_name=None):
    with_tensor = getattr(lib, 'kn_' + name)
    with_scalar = getattr(lib, 'kn_%s_scalar_with' % (scalar_name or name))

    def method(self, other):
        if isinstance(other, handles.tensor_class):
            handle = with_tensor(self._h, other._h)
        else:
            operand = _operand(other, name)
            if operand is NotImplemented:
                return NotImplemented
            handle = with_scalar(self._h, operand)
        if not handle:
            raise error()
        result = new_object(handles.tensor_class)
        result._h = owned(handle, release)
        return result

    return method


def reflected(name):
    """number - tensor and the like."""
    with_scalar = getattr(lib, 'kn_%s_scalar_with' % name, None)

    def method(self, other):
        operand = _operand(other, name)
        if operand is NotImplemented:
            return NotImplemented
        return wrap(with_scalar(self._h, operand))

    return method


def reflected_full(name):
    """The same for operators without a form for that: the number becomes a tensor."""
    with_tensor = getattr(lib, 'kn_' + name)

    def method(self, other):
        operand = _operand(other, name)
        if operand is NotImplemented:
            return NotImplemented
        return wrap(with_tensor(tensor(other, self.dtype if isinstance(other, int) else None, self.device)._h, self._h))

    return method


def in_place(name):
    with_tensor = getattr(lib, 'kn_%s_' % name)
    with_scalar = getattr(lib, 'kn_%s_scalar_with_' % name)

    def method(self, other):
        if isinstance(other, handles.tensor_class):
            done = with_tensor(self._h, other._h)
        else:
            operand = _operand(other, name)
            if operand is NotImplemented:
                return NotImplemented
            done = with_scalar(self._h, operand)
        if not done:
            raise error()
        return self

    return method
