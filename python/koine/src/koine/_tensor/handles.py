"""Tensors around the library's handles, and tensors of numbers and arrays."""
import numpy

from .._c import NULL, error, ffi, lib, run_in_scope, sizes
from .._device import handle as device_handle
from .._dtypes import as_dtype, code_of

new_object = object.__new__
owned, release = ffi.gc, lib.kn_release

tensor_class = None  # Tensor, which tells: its methods need what is here


def is_tensor_class(kind):
    """Decorates the class of what is made here."""
    global tensor_class
    tensor_class = kind
    return kind


def wrap(handle):
    """A Tensor that owns a reference. The handle itself drops it when nothing refers to it any more."""
    if not handle:
        raise error()
    tensor = new_object(tensor_class)
    tensor._h = owned(handle, release)
    return tensor


def composed(function, *arguments):
    """The result of a C function that leaves its temporaries to the innermost scope."""
    return wrap(run_in_scope(function, arguments, True))


def borrowed(handle):
    """A Tensor for a borrowed reference; None for NULL."""
    return wrap(lib.kn_retain(handle)) if handle else None


_known_options = {}  # of the current device


def options(dtype=None, device=None, requires_grad=False, generator=None):
    """const kn_tensor_options *"""
    if device is not None or generator is not None:
        return ffi.new('kn_tensor_options *', (code_of(dtype), device_handle(device), requires_grad, False,
                                               generator._h if generator is not None else NULL))
    key = code_of(dtype), bool(requires_grad)
    made = _known_options.get(key)
    if made is None:
        made = _known_options[key] = ffi.new('kn_tensor_options *', (key[0], NULL, key[1], False, NULL))
    return made


def tensor(data, dtype=None, device=None, requires_grad=False):
    """A copy of numbers, lists of numbers, or an array, on `device` (default: the current one). Python's floats become
    float32, as in PyTorch; arrays keep their dtype."""
    if isinstance(data, tensor_class):
        copied = data.detach().to(device, dtype, copy=True)
        return copied.requires_grad_() if requires_grad else copied
    array = numpy.asarray(data)
    if not hasattr(data, 'dtype') and array.dtype == numpy.float64:
        array = array.astype(numpy.float32) if dtype is None else array
    kind = as_dtype(array.dtype) if dtype is None else as_dtype(dtype)
    if kind.numpy is None:  # bfloat16: numpy has none
        made = tensor(array.astype(numpy.float32), device=device).to(dtype=kind)
        return made.requires_grad_() if requires_grad else made
    array = numpy.ascontiguousarray(array, dtype=kind.numpy).reshape(array.shape)
    count, shape = sizes(array.shape)
    return wrap(lib.kn_from_data_with(ffi.from_buffer(array), count, shape, options(kind, device, requires_grad)))


def from_numpy(array, device=None):
    """A copy of an array on a device, with its dtype."""
    if not isinstance(array, numpy.ndarray):
        raise TypeError('from_numpy: expected a numpy array, not %s' % type(array).__name__)
    return tensor(array, device=device)
