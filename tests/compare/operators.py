"""Koine's list of operators through ctypes: what each takes, and calling one by name (koine/operators.h)."""

import ctypes
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from koine_ctypes import BOOL, DOUBLE, I64T, INT, Koine, Scalar, TensorOptions, VOID, sizes  # noqa: E402

DTYPES = (None, torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
          torch.int8, torch.uint8, torch.bool)  # by kn_dtype
KINDS = ("bool", "int", "int64", "double", "scalar", "dtype", "enum", "ints", "generator")  # by kn_param_kind
MOST_DIMS = 8
SKIP = 1  # KN_SKIP_OUTPUT


class Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("num_inputs", INT), ("num_outputs", INT), ("num_params", INT),
                ("params_size", ctypes.c_size_t), ("is_differentiable", BOOL), ("is_twice_differentiable", BOOL),
                ("is_view", BOOL), ("in_place", BOOL)]


class Input(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("is_optional", BOOL), ("is_list", BOOL), ("dtypes", ctypes.c_uint)]


class Param(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", INT), ("offset", ctypes.c_size_t), ("size", ctypes.c_size_t),
                ("min", DOUBLE), ("max", DOUBLE), ("values", ctypes.POINTER(ctypes.c_char_p)), ("above_min", BOOL)]


class Ints(ctypes.Structure):
    _fields_ = [("count", INT), ("values", I64T * MOST_DIMS)]


class GradParams(ctypes.Structure):
    _fields_ = [("grad_outputs", VOID), ("retain_graph", BOOL), ("create_graph", BOOL), ("allow_unused", BOOL)]


class Operator:
    """A descriptor."""

    def __init__(self, lib, address):
        self.lib, self.address = lib, VOID(address)
        info = lib.kn_op_describe(self.address)
        self.name, self.num_outputs, self.params_size = info.name.decode(), info.num_outputs, info.params_size
        self.is_differentiable, self.in_place = info.is_differentiable, info.in_place
        self.is_twice_differentiable = info.is_twice_differentiable
        self.inputs = [lib.kn_op_input_at(self.address, i) for i in range(info.num_inputs)]
        self.input_names = [i.name.decode() for i in self.inputs]
        self.output_names = [lib.kn_op_output_at(self.address, i).decode() for i in range(info.num_outputs)]
        self.params = {}
        for i in range(info.num_params):
            param = lib.kn_op_param_at(self.address, i).contents
            self.params[param.name.decode()] = param

    def dtypes(self, index=0):
        bits = self.inputs[min(index, len(self.inputs) - 1)].dtypes
        return [dtype for number, dtype in enumerate(DTYPES) if bits >> number & 1]

    def buffer(self, values):
        """The parameters' struct: the defaults, changed by `values`."""
        buffer = ctypes.create_string_buffer(max(self.params_size, 1))
        self.lib.kn_op_params_init(self.address, buffer)
        for name, value in values.items():
            self.write(buffer, self.params[name], value)
        return buffer

    @staticmethod
    def write(buffer, param, value):
        kind = KINDS[param.kind]
        if kind == "enum":
            names = []
            while param.values[len(names)]:
                names.append(param.values[len(names)].decode())
            raw = INT(names.index(value))
        elif kind == "ints":
            raw = Ints(len(value), (I64T * MOST_DIMS)(*value))
        elif kind == "int64":
            values = value if isinstance(value, (tuple, list)) else [value]
            raw = (I64T * len(values))(*values)
        elif kind == "scalar":
            raw = Scalar(isinstance(value, int), int(value) if isinstance(value, int) else 0, float(value))
        elif kind == "dtype":
            raw = INT(DTYPES.index(value))
        elif kind == "double" and isinstance(value, (tuple, list)):
            raw = (DOUBLE * len(value))(*value)
        else:
            raw = {"bool": BOOL, "int": INT, "double": DOUBLE}[kind](value)
        ctypes.memmove(ctypes.addressof(buffer) + param.offset, ctypes.addressof(raw), ctypes.sizeof(raw))


class Library(Koine):
    """The library, with its operators by name, and their forms in place."""

    def __init__(self, path):
        super().__init__(path)
        self.lib.kn_op_at.restype = self.lib.kn_op_find.restype = VOID
        self.lib.kn_op_describe.restype = Info
        self.lib.kn_op_input_at.restype = Input
        self.lib.kn_op_param_at.restype = ctypes.POINTER(Param)
        self.lib.kn_op_params_init.restype = None
        self.lib.kn_op_output_at.restype = ctypes.c_char_p
        self.operators = {}
        for i in range(self.lib.kn_op_count()):
            operator = Operator(self.lib, self.lib.kn_op_at(i))
            self.operators[operator.name] = operator
            form = self.lib.kn_op_find((operator.name + "_").encode())
            if form:
                self.operators[operator.name + "_"] = Operator(self.lib, form)

    def apply(self, name, inputs, params=None, skipped=()):
        """All outputs of an operator but those that are skipped; inputs are addresses or None."""
        operator = self.operators[name]
        outputs = (VOID * operator.num_outputs)(*[SKIP if i in skipped else None for i in range(operator.num_outputs)])
        self.do("kn_op_call", operator.address, (VOID * max(len(inputs), 1))(*inputs), len(inputs),
                operator.buffer(params or {}), outputs, operator.num_outputs)
        return list(outputs)

    def from_torch(self, tensor, requires_grad=False):
        """A tensor with the same dtype, shape, strides and offset, and the leaf that owns its memory."""
        base = torch.as_strided(tensor.detach(), (tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)
        options = TensorOptions(dtype=DTYPES.index(tensor.dtype), requires_grad=requires_grad)
        leaf = self.call("kn_from_data_with", VOID(base.data_ptr()), 1, sizes(base.shape), ctypes.byref(options))
        view = self.apply("as_strided", [leaf], {"shape": tuple(tensor.shape), "strides": tensor.stride(),
                                                 "offset": tensor.storage_offset()})[0]
        return view, leaf

    def to_torch(self, tensor):
        ndim, shape = self.lib.kn_ndim(VOID(tensor)), self.lib.kn_shape(VOID(tensor))
        result = torch.empty([shape[i] for i in range(ndim)], dtype=DTYPES[self.lib.kn_dtype_of(VOID(tensor))])
        self.do("kn_read", VOID(tensor), VOID(result.data_ptr()), ctypes.c_size_t(result.nbytes))
        return result

    def gradient_of(self, leaf):
        self.lib.kn_grad.restype = VOID
        found = self.lib.kn_grad(VOID(leaf))
        return self.to_torch(found) if found else None

    def gradients(self, outputs, inputs, create_graph=False):
        """Of a sum of the outputs; None for an input that it does not depend on."""
        found = (VOID * len(inputs))()
        self.do("kn_autograd_grad_with", (VOID * len(outputs))(*outputs), len(outputs), (VOID * len(inputs))(*inputs),
                len(inputs), found, ctypes.byref(GradParams(None, create_graph, create_graph, True)))
        return list(found)
