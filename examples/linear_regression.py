#!/usr/bin/env python3
"""Fits y = x w^T + b to noisy points from Python, with nothing but ctypes: linear_regression.py [DEVICE]

A foreign language calls the plain functions behind the macros of koine.h, whose names end in _with. Each takes a struct
of parameters that starts as kn_X_params_init(), which returns the defaults; None (NULL) means the defaults too. The
library is libkoine.so.0.1 where the system finds it, or the file that KOINE_LIBRARY names."""
import ctypes
import os
import sys
from ctypes import c_bool, c_char_p, c_double, c_float, c_int, c_int64, c_uint64, c_void_p

SAMPLES, EPOCHS = 20000, 300
OK, REDUCTION_MEAN = 0, 0

# --- what koine.h declares: the structs, field by field, and the functions used here ---


class Scalar(ctypes.Structure):
    """kn_scalar: a scalar operand."""

    _fields_ = [("is_whole", c_bool), ("whole", c_int64), ("real", c_double)]


class LinearParams(ctypes.Structure):
    _fields_ = [("in_features", c_int64), ("out_features", c_int64), ("bias", c_bool)]


class AdamParams(ctypes.Structure):
    _fields_ = [("lr", c_double), ("beta1", c_double), ("beta2", c_double), ("eps", c_double),
                ("weight_decay", c_double), ("amsgrad", c_bool), ("maximize", c_bool), ("master_weights", c_bool),
                ("decoupled_weight_decay", c_bool)]


class ParameterList(ctypes.Structure):
    _fields_ = [("tensors", c_void_p), ("names", c_void_p), ("count", c_int)]


SHAPE = ctypes.POINTER(c_int64)
FUNCTIONS = {  # name: (result, arguments); tensors, modules, devices and optimizers are opaque pointers
    "kn_error_message": (c_char_p, []),
    "kn_device_open": (c_void_p, [c_char_p]),
    "kn_device_set_current": (c_int, [c_void_p]),
    "kn_device_name": (c_char_p, [c_void_p]),
    "kn_manual_seed": (None, [c_uint64]),
    "kn_scope_begin": (c_int, []),
    "kn_scope_end": (None, [c_int]),
    "kn_retain": (c_void_p, [c_void_p]),
    "kn_release": (None, [c_void_p]),
    "kn_from_data_with": (c_void_p, [c_void_p, c_int, SHAPE, c_void_p]),
    "kn_empty_with": (c_void_p, [c_int, SHAPE, c_void_p]),
    "kn_rand_with": (c_void_p, [c_int, SHAPE, c_void_p]),
    "kn_normal_with_": (c_void_p, [c_void_p, c_double, c_double, c_void_p]),
    "kn_mul_scalar_with": (c_void_p, [c_void_p, Scalar]),
    "kn_add_scalar_with": (c_void_p, [c_void_p, Scalar]),
    "kn_add": (c_void_p, [c_void_p, c_void_p]),
    "kn_matmul": (c_void_p, [c_void_p, c_void_p]),
    "kn_nn_linear_params_init": (LinearParams, []),
    "kn_nn_linear_with": (c_void_p, [ctypes.POINTER(LinearParams)]),
    "kn_module_parameters": (ParameterList, [c_void_p]),
    "kn_module_get": (c_void_p, [c_void_p, c_char_p]),
    "kn_module_free": (None, [c_void_p]),
    "kn_forward": (c_void_p, [c_void_p, c_void_p]),
    "kn_mse_loss": (c_void_p, [c_void_p, c_void_p, c_int]),
    "kn_backward": (c_int, [c_void_p]),
    "kn_adam_params_init": (AdamParams, []),
    "kn_optim_adam_with": (c_void_p, [ParameterList, ctypes.POINTER(AdamParams)]),
    "kn_optim_zero_grad": (None, [c_void_p]),
    "kn_optim_step": (c_int, [c_void_p]),
    "kn_optim_free": (None, [c_void_p]),
    "kn_item": (c_int, [c_void_p, ctypes.POINTER(c_double)]),
    "kn_read": (c_int, [c_void_p, c_void_p, ctypes.c_size_t]),
}

library = ctypes.CDLL(os.environ.get("KOINE_LIBRARY", "libkoine.so.0.1"))
for name, (result, arguments) in FUNCTIONS.items():
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments

# --- helpers for ctypes ---


class KoineError(Exception):
    pass


def check(status):
    if status != OK:
        raise KoineError(library.kn_error_message().decode())


def shape(*sizes):
    """The two arguments that KN_SHAPE expands to in C."""
    return len(sizes), (c_int64 * len(sizes))(*sizes)


def real(value):
    return Scalar(False, 0, value)


def add(tensor, value):
    return library.kn_add_scalar_with(tensor, real(value))


def multiply(tensor, value):
    return library.kn_mul_scalar_with(tensor, real(value))


class Scope:
    """Releases every tensor made inside, as KN_SCOPE does in C."""

    def __enter__(self):
        self.depth = library.kn_scope_begin()

    def __exit__(self, *exception):
        library.kn_scope_end(self.depth)


# --- the data, the model, the training ---


def new_points():
    """y = x (2, -3)^T + 10 + noise; the caller releases it. None: the defaults of kn_tensor_options."""
    with Scope():
        w = library.kn_from_data_with((c_float * 2)(2, -3), *shape(2, 1), None)
        x = add(multiply(library.kn_rand_with(*shape(SAMPLES, 2), None), 10), -5)
        noise = library.kn_normal_with_(library.kn_empty_with(*shape(SAMPLES, 1), None), 0, 2, None)
        y = library.kn_add(add(library.kn_matmul(x, w), 10), noise)
        return library.kn_retain(x), library.kn_retain(y)


def new_model():
    params = library.kn_nn_linear_params_init()
    params.in_features = 2
    params.out_features = 1
    return library.kn_nn_linear_with(params)


def new_optimizer(model):
    params = library.kn_adam_params_init()
    params.lr = 0.1
    return library.kn_optim_adam_with(library.kn_module_parameters(model), params)


def train(model, optim, x, y):
    for epoch in range(EPOCHS):
        with Scope():
            library.kn_optim_zero_grad(optim)
            loss = library.kn_mse_loss(library.kn_forward(model, x), y, REDUCTION_MEAN)
            check(library.kn_backward(loss))  # errors of the whole expression are reported here
            check(library.kn_optim_step(optim))
            if epoch % 50 == 0:
                value = c_double()
                check(library.kn_item(loss, value))
                print(f"epoch: {epoch}, loss: {value.value:.6f}")


def main():
    device = library.kn_device_open(sys.argv[1].encode() if len(sys.argv) > 1 else b"auto")
    if device is None:
        raise KoineError(library.kn_error_message().decode())
    check(library.kn_device_set_current(device))
    print("device:", library.kn_device_name(device).decode())
    library.kn_manual_seed(1)
    model = new_model()
    optim = new_optimizer(model)
    x, y = new_points()
    train(model, optim, x, y)
    w, b = (c_float * 2)(), c_float()
    check(library.kn_read(library.kn_module_get(model, b"weight"), w, ctypes.sizeof(w)))
    check(library.kn_read(library.kn_module_get(model, b"bias"), ctypes.byref(b), ctypes.sizeof(b)))
    print(f"w = ({w[0]:.4f}, {w[1]:.4f}), b = {b.value:.4f}")
    library.kn_optim_free(optim)
    library.kn_module_free(model)
    library.kn_release(x)
    library.kn_release(y)


if __name__ == "__main__":
    try:
        main()
    except KoineError as error:
        sys.exit(f"linear_regression.py: {error}")
