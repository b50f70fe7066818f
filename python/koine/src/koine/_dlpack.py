"""DLPack: sharing memory with numpy, PyTorch and others. Memory of host tensors is shared; OpenCL has no address that
another library could use, so tensors on devices are copied to the host, which copy=False refuses."""
import ctypes

import numpy

from ._c import checked, ffi, lib
from ._tensor import Tensor, tensor

_CPU = 1  # kDLCPU


class _Device(ctypes.Structure):
    _fields_ = [('type', ctypes.c_int32), ('id', ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [('code', ctypes.c_uint8), ('bits', ctypes.c_uint8), ('lanes', ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('device', _Device), ('ndim', ctypes.c_int32), ('dtype', _DataType),
                ('shape', ctypes.POINTER(ctypes.c_int64)), ('strides', ctypes.POINTER(ctypes.c_int64)),
                ('byte_offset', ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    """DLManagedTensor."""


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [('tensor', _Tensor), ('context', ctypes.c_void_p), ('deleter', _DELETER)]

_CAPSULE_NAME = b'dltensor'
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]

_exported = {}  # address of the struct: what it points to, until its consumer calls the deleter


@_DELETER
def _delete(managed):
    _exported.pop(ctypes.addressof(managed.contents), None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _drop(capsule):
    """A capsule that nobody consumed; consumers rename it."""
    if _is_valid(capsule, _CAPSULE_NAME):
        _exported.pop(_pointer_of(capsule, _CAPSULE_NAME), None)


def device_of(source):
    """Everything is offered on the host."""
    return _CPU, 0


def _type(dtype):
    if dtype.name == 'bool':
        return _DataType(6, 8, 1)
    code = 4 if dtype.name == 'bfloat16' else 2 if dtype.is_floating_point else 1 if dtype.name[0] == 'u' else 0
    return _DataType(code, 8 * dtype.itemsize, 1)


def export(source, max_version, dl_device, copy):
    """A capsule for Tensor.__dlpack__."""
    if dl_device is not None and tuple(dl_device) != (_CPU, 0):
        raise BufferError('koine offers memory of the host only: device (1, 0), not %r' % (tuple(dl_device),))
    if source.requires_grad:
        raise BufferError('the tensor requires a gradient: x.detach()')
    is_shared = source.device.type == 'host'
    if copy is False and not is_shared:
        raise BufferError('memory of the device %s cannot be shared: leave copy=False out' % source.device)
    host = source.to('host', copy=bool(copy)) if not is_shared or copy else source
    ndim = host.ndim
    shape, strides = (ctypes.c_int64 * max(ndim, 1))(*host.shape), (ctypes.c_int64 * max(ndim, 1))(*host.stride())
    managed = _Managed()
    address = int(ffi.cast('uintptr_t', checked(lib.kn_data(host._h)))) if host.numel() else None
    managed.tensor = _Tensor(address, _Device(_CPU, 0), ndim, _type(host.dtype), shape, strides, 0)
    managed.deleter = _delete
    _exported[ctypes.addressof(managed)] = managed, host, shape, strides
    return _new_capsule(ctypes.addressof(managed), _CAPSULE_NAME, ctypes.cast(_drop, ctypes.c_void_p))


def from_dlpack(source, device=None):
    """A tensor with the elements of an array or tensor of another library, by way of the host's memory: a copy on
    `device` (default: the current one). Its dtype may be bfloat16."""
    if isinstance(source, Tensor):
        return tensor(source, device=device)
    kind, _ = source.__dlpack_device__()
    if kind != _CPU:
        raise BufferError('from_dlpack reads memory of the CPU, not of DLPack device %d: copy it there first' % kind)
    capsule = source.__dlpack__()
    pointer = _pointer_of(id(capsule), _CAPSULE_NAME)
    described = ctypes.cast(pointer, ctypes.POINTER(_Managed)).contents.tensor
    return _copied(described, device)


class _Memory:
    """For numpy: an array at an address."""

    def __init__(self, **interface):
        self.__array_interface__ = interface


def _copied(described, device):
    names = {(0, 64): 'int64', (0, 32): 'int32', (0, 16): 'int16', (0, 8): 'int8', (1, 8): 'uint8',
             (2, 64): 'float64', (2, 32): 'float32', (2, 16): 'float16', (4, 16): 'bfloat16', (6, 8): 'bool',
             (1, 1): 'bool'}
    name = names.get((described.dtype.code, described.dtype.bits))
    if name is None or described.dtype.lanes != 1:
        raise TypeError('koine has no dtype for DLPack code %d with %d bits' % (described.dtype.code,
                                                                                described.dtype.bits))
    shape = [described.shape[i] for i in range(described.ndim)]
    stored = numpy.dtype('int16' if name == 'bfloat16' else name)
    strides = [described.strides[i] * stored.itemsize for i in range(described.ndim)] if described.strides else None
    found = numpy.empty(shape, stored) if 0 in shape else numpy.asarray(_Memory(
        version=3, shape=tuple(shape), strides=tuple(strides) if strides else None, typestr=stored.str,
        data=(described.data + described.byte_offset, True)))
    made = tensor(found, device=device)
    return made.view('bfloat16') if name == 'bfloat16' else made
