#!/usr/bin/env python3
"""A module with two inputs and two outputs, and batches of three fields, with ctypes only: many.py LIBRARY"""
import ctypes
import sys
from ctypes import CFUNCTYPE, POINTER, c_bool, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_void_p

TENSORS = POINTER(c_void_p)
FORWARD = CFUNCTYPE(c_int, c_void_p, TENSORS, TENSORS)


class ModuleNewManyParams(ctypes.Structure):
    _fields_ = [("self_size", c_size_t), ("destroy", c_void_p), ("num_inputs", c_int), ("num_optional", c_int),
                ("num_outputs", c_int)]


class TensorOptions(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("device", c_void_p), ("requires_grad", c_bool), ("pin_memory", c_bool),
                ("generator", c_void_p)]


class Batch(ctypes.Structure):
    _fields_ = [("fields", TENSORS), ("num_fields", c_int), ("size", c_int64), ("input", c_void_p),
                ("target", c_void_p), ("names", POINTER(c_char_p)), ("random", ctypes.c_uint64)]


class LoaderParams(ctypes.Structure):
    _fields_ = [("batch_size", c_int64), ("shuffle", c_bool), ("sampler", c_void_p), ("drop_last", c_bool),
                ("num_workers", c_int), ("prefetch_factor", c_int), ("seed", ctypes.c_uint64), ("device", c_void_p),
                ("pin_memory", c_bool), ("collate", c_void_p), ("collate_user", c_void_p)]


FUNCTIONS = {  # name: (result, arguments)
    "kn_error_message": (c_char_p, []),
    "kn_device_host": (c_void_p, []),
    "kn_scope_begin": (c_int, []),
    "kn_scope_end": (None, [c_int]),
    "kn_tensor_options_init": (TensorOptions, []),
    "kn_from_data_with": (c_void_p, [c_void_p, c_int, POINTER(c_int64), POINTER(TensorOptions)]),
    "kn_add": (c_void_p, [c_void_p, c_void_p]),
    "kn_mul": (c_void_p, [c_void_p, c_void_p]),
    "kn_sum": (c_void_p, [c_void_p]),
    "kn_item": (c_int, [c_void_p, POINTER(c_double)]),
    "kn_module_new_many_params_init": (ModuleNewManyParams, []),
    "kn_module_new_many_with": (c_void_p, [c_char_p, FORWARD, POINTER(ModuleNewManyParams)]),
    "kn_module_free": (None, [c_void_p]),
    "kn_forward_many": (c_int, [c_void_p, TENSORS, c_int, TENSORS, c_int]),
    "kn_tensor_dataset_of": (c_void_p, [TENSORS, c_int, POINTER(c_char_p)]),
    "kn_dataset_free": (None, [c_void_p]),
    "kn_loader_params_init": (LoaderParams, []),
    "kn_loader_new_with": (c_void_p, [c_void_p, POINTER(LoaderParams)]),
    "kn_loader_start": (c_int, [c_void_p, c_int64]),
    "kn_loader_next": (c_int, [c_void_p, POINTER(POINTER(Batch))]),
    "kn_batch_field": (c_void_p, [POINTER(Batch), c_char_p]),
    "kn_loader_free": (None, [c_void_p]),
}

library = ctypes.CDLL(sys.argv[1])
for name, (result, arguments) in FUNCTIONS.items():
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments


def check(status):
    if status != 0:
        sys.exit(f"many.py: {library.kn_error_message().decode()}")


def tensors(*values):
    return (c_void_p * len(values))(*values)


@FORWARD
def forward(module, inputs, outputs):
    """x * y + x * y, or x * x if y is omitted; and x + x."""
    x, y = inputs[0], inputs[1]
    product = library.kn_mul(x, y if y else x)
    outputs[0] = library.kn_add(product, product)
    outputs[1] = library.kn_add(x, x)
    return 0


def item(tensor):
    value = c_double()
    check(library.kn_item(tensor, value))
    return value.value


def main():
    params = library.kn_module_new_many_params_init()
    params.num_inputs, params.num_optional, params.num_outputs = 2, 1, 2
    module = library.kn_module_new_many_with(b"Doubled", forward, params)
    scope = library.kn_scope_begin()
    on_host = library.kn_tensor_options_init()
    on_host.device = library.kn_device_host()
    column = [library.kn_from_data_with((c_float * 6)(*[float(i + k) for i in range(6)]), 1, (c_int64 * 1)(6), on_host)
              for k in range(3)]
    batch = POINTER(Batch)()
    dataset = library.kn_tensor_dataset_of(tensors(*column), 3, (c_char_p * 4)(b"input", b"factor", b"target"))
    options = library.kn_loader_params_init()
    options.batch_size = 4
    loader = library.kn_loader_new_with(dataset, options)
    check(library.kn_loader_start(loader, 0))
    found = []
    while check(library.kn_loader_next(loader, batch)) or batch:
        b, outputs = batch.contents, tensors(None, None)
        assert (b.num_fields, b.names[1], b.target) == (3, b"factor", b.fields[2])
        both = tensors(b.input, library.kn_batch_field(batch, b"factor"))
        check(library.kn_forward_many(module, both, 2, outputs, 2))
        found.append((b.size, item(library.kn_sum(outputs[0])), item(library.kn_sum(outputs[1]))))
        check(library.kn_forward_many(module, tensors(b.input), 1, outputs, 2))
        found.append(item(library.kn_sum(outputs[0])))
    assert found == [(4, 40.0, 12.0), 28.0, (2, 100.0, 18.0), 82.0], found
    assert library.kn_forward_many(module, tensors(), 0, tensors(None, None), 2) != 0
    assert "Doubled: takes 1 or 2 inputs, not 0" in library.kn_error_message().decode()
    library.kn_scope_end(scope)
    library.kn_loader_free(loader)
    library.kn_dataset_free(dataset)
    library.kn_module_free(module)


if __name__ == "__main__":
    main()
