"""libkoine.so through ctypes: float64 tensors and the operations of tests/compare_graphs.py."""

import ctypes
import os

import numpy

DTYPES = {name: i + 1 for i, name in enumerate(("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16",
                                                "int8", "uint8", "bool"))}
F64, I64 = DTYPES["float64"], DTYPES["int64"]
REDUCTIONS = {"mean": 0, "sum": 1, "none": 2}
VOID, INT, I64T, DOUBLE, BOOL = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_double, ctypes.c_bool


class Refused(Exception):
    """An error of either library, with its message."""


class TensorOptions(ctypes.Structure):
    _fields_ = [("dtype", INT), ("device", VOID), ("requires_grad", BOOL), ("pin_memory", BOOL), ("generator", VOID)]


class Scalar(ctypes.Structure):
    _fields_ = [("is_whole", BOOL), ("whole", I64T), ("real", DOUBLE)]


class ClampParams(ctypes.Structure):
    _fields_ = [("min", DOUBLE), ("max", DOUBLE)]


class BatchNormParams(ctypes.Structure):
    _fields_ = [("running_mean", VOID), ("running_var", VOID), ("weight", VOID), ("bias", VOID), ("training", BOOL),
                ("momentum", DOUBLE), ("eps", DOUBLE), ("activation", INT), ("mean", VOID), ("rstd", VOID)]


class LayerNormParams(ctypes.Structure):
    _fields_ = [("weight", VOID), ("bias", VOID), ("eps", DOUBLE), ("mean", VOID), ("rstd", VOID)]


class ConvParams(ctypes.Structure):
    _fields_ = [("stride", I64T), ("padding", I64T), ("dilation", I64T), ("output_padding", I64T),
                ("strides", I64T * 3), ("paddings", I64T * 3), ("dilations", I64T * 3), ("output_paddings", I64T * 3),
                ("paddings_after", I64T * 3), ("groups", I64T), ("activation", INT)]


class PoolParams(ctypes.Structure):
    _fields_ = [("kernel_size", I64T), ("stride", I64T), ("padding", I64T), ("dilation", I64T),
                ("kernel_sizes", I64T * 3), ("strides", I64T * 3), ("paddings", I64T * 3), ("dilations", I64T * 3),
                ("paddings_after", I64T * 3), ("ceil_mode", BOOL), ("count_include_pad", BOOL),
                ("divisor_override", I64T), ("activation", INT)]


class DropoutParams(ctypes.Structure):
    _fields_ = [("p", DOUBLE), ("training", BOOL), ("generator", VOID)]


def sizes(shape):
    return (I64T * max(len(shape), 1))(*shape)


def dims(numbers):
    return (INT * max(len(numbers), 1))(*numbers)


class Koine:
    """A loaded library. Tensors are addresses, owned by the scope between `begin` and `end`."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        for name in ("kn_scope_end", "kn_error_clear"):
            getattr(self.lib, name).restype = None
        self.lib.kn_error_message.restype = ctypes.c_char_p
        self.lib.kn_shape.restype = ctypes.POINTER(I64T)
        for name in ("kn_requires_grad", "kn_is_leaf", "kn_set_grad_enabled"):
            getattr(self.lib, name).restype = BOOL
        self.scope = 0

    def begin(self):
        self.scope = self.lib.kn_scope_begin()

    def end(self):
        self.lib.kn_scope_end(self.scope)
        self.lib.kn_error_clear()

    def refuse(self):
        message = self.lib.kn_error_message().decode()
        self.lib.kn_error_clear()
        raise Refused(message)

    def call(self, name, *arguments):
        """A tensor expression; addresses are given as Python numbers wrapped by `t`."""
        function = getattr(self.lib, name)
        function.restype = VOID
        result = function(*arguments)
        if not result:
            self.refuse()
        return result

    def do(self, name, *arguments):
        function = getattr(self.lib, name)
        function.restype = INT
        if function(*arguments) != 0:
            self.refuse()

    def tensor(self, array, requires_grad=False):
        array = numpy.array(array, order="C")
        options = TensorOptions(dtype=I64 if array.dtype == numpy.int64 else F64, requires_grad=requires_grad)
        return self.call("kn_from_data_with", VOID(array.ctypes.data), len(array.shape), sizes(array.shape),
                         ctypes.byref(options))

    def array(self, tensor):
        ndim = self.lib.kn_ndim(VOID(tensor))
        shape = self.lib.kn_shape(VOID(tensor))
        result = numpy.empty([shape[i] for i in range(ndim)], dtype=numpy.float64)
        self.do("kn_read", VOID(tensor), VOID(result.ctypes.data), ctypes.c_size_t(result.nbytes))
        return result

    def requires_grad(self, tensor):
        return self.lib.kn_requires_grad(VOID(tensor))

    def is_leaf(self, tensor):
        return self.lib.kn_is_leaf(VOID(tensor))

    def gradient(self, tensor):
        self.lib.kn_grad.restype = VOID
        found = self.lib.kn_grad(VOID(tensor))
        return self.array(found) if found else None

    def backward(self, tensor):
        self.do("kn_backward", VOID(tensor))

    def set_grad_enabled(self, enabled):
        return self.lib.kn_set_grad_enabled(BOOL(enabled))


def library_path():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(root, "build", "lib", "libkoine.so")
