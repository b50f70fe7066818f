"""Gradients: no_grad, enable_grad, set_grad_enabled, grad, backward, functions with a backward of their own, and
detect_anomaly."""
import threading

from .._c import NULL, callback, check, ffi, lib
from .._region import Region
from .._tensor import borrowed
from . import functional  # noqa: F401
from ._gradients import backward, grad  # noqa: F401
from .function import Function  # noqa: F401

# --- recording --------------------------------------------------------------------------------------------------------


class set_grad_enabled:
    """Turns the recording of operations on or off, per thread; as a context manager until its end, as a decorator
    during the function."""

    def __init__(self, mode):
        self.mode = mode
        self.before = [bool(lib.kn_set_grad_enabled(mode))]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        lib.kn_set_grad_enabled(self.before.pop())


class _Recording(Region):
    mode = False

    def _begin(self):
        return bool(lib.kn_set_grad_enabled(self.mode))

    def _end(self, before):
        lib.kn_set_grad_enabled(before)

    def _again(self):
        return type(self)()


class no_grad(_Recording):
    """Operations inside are not recorded. A context manager, and a decorator: @koine.no_grad()."""


class enable_grad(_Recording):
    """Operations inside are recorded."""
    mode = True


class inference_mode(Region):
    """no_grad, unless mode is False. A context manager, and a decorator: @koine.inference_mode()."""

    def __init__(self, mode=True):
        super().__init__()
        self.mode = mode

    def __new__(cls, mode=True):
        made = super().__new__(cls)
        if not callable(mode):
            return made
        made.__init__()  # @koine.inference_mode
        return made(mode)

    def _begin(self):
        before = is_inference_mode_enabled(), bool(lib.kn_grad_enabled())
        _modes.inference = self.mode
        lib.kn_set_grad_enabled(before[1] and not self.mode)
        return before

    def _end(self, before):
        _modes.inference, recording = before
        lib.kn_set_grad_enabled(recording)

    def _again(self):
        return type(self)(self.mode)


_modes = threading.local()


def is_inference_mode_enabled():
    return getattr(_modes, 'inference', False)


def is_grad_enabled():
    return bool(lib.kn_grad_enabled())


class set_detect_anomaly:
    """While on, a backward pass ends with an error at the first operation that makes a gradient with NaN in it, which
    it names; each operation waits for the device. Without check_nan nothing is looked at. A context manager, too."""

    def __init__(self, mode, check_nan=True):
        self.before = is_anomaly_enabled()
        lib.kn_set_detect_anomaly(mode and check_nan)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        lib.kn_set_detect_anomaly(self.before)


class detect_anomaly(Region):
    """set_detect_anomaly(True) inside. A context manager, and a decorator: @koine.autograd.detect_anomaly()."""

    def __init__(self, check_nan=True):
        super().__init__()
        self.check_nan = check_nan

    def _begin(self):
        before = is_anomaly_enabled()
        lib.kn_set_detect_anomaly(self.check_nan)
        return before

    def _end(self, before):
        lib.kn_set_detect_anomaly(before)

    def _again(self):
        return type(self)(self.check_nan)


def is_anomaly_enabled():
    return bool(lib.kn_is_anomaly_enabled())


is_anomaly_check_nan_enabled = is_anomaly_enabled


def Variable(data, requires_grad=False):
    """The tensor itself, as in PyTorch, where tensors have had gradients since variables are gone."""
    return data.requires_grad_() if requires_grad else data


# --- hooks ------------------------------------------------------------------------------------------------------------

_hooks = {}


@ffi.callback('void(void *)')
def _forget(user):
    _hooks.pop(int(ffi.cast('uintptr_t', user)), None)


class RemovableHandle:
    """Of a hook of a tensor: remove() it, or leave the handle's with block."""

    def __init__(self):
        self.is_removed = False

    def remove(self):
        self.is_removed = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def register_hook(tensor, hook):
    handle = RemovableHandle()

    def called(gradient, _):
        result = None if handle.is_removed else hook(borrowed(gradient))
        return gradient if result is None else result

    _register(lib.kn_register_hook_with, tensor, callback('kn_tensor *(kn_tensor *, void *)', NULL, called))
    return handle


def register_post_accumulate_grad_hook(tensor, hook):
    handle = RemovableHandle()

    def called(leaf, _):
        if not handle.is_removed:
            hook(borrowed(leaf))
        return lib.KN_OK

    _register(lib.kn_register_post_accumulate_grad_hook, tensor,
              callback('kn_status(kn_tensor *, void *)', lib.KN_ERR_STATE, called))
    return handle


def _register(register, tensor, function):
    key = id(function)
    _hooks[key] = function
    check(register(tensor._h, function, ffi.cast('void *', key), _forget))


# --- checks -----------------------------------------------------------------------------------------------------------


def gradcheck(func, inputs, *, eps=1e-06, atol=1e-05, rtol=0.001, fast_mode=False):
    """True if the gradients of func(*inputs) are those that differences give; else an error names the first that is
    not. Inputs are float64."""
    return _checked(lib.kn_gradcheck, func, inputs, eps, atol, rtol, fast_mode)


def gradgradcheck(func, inputs, *, eps=1e-06, atol=1e-05, rtol=0.001, fast_mode=False):
    """The same of second derivatives."""
    return _checked(lib.kn_gradgradcheck, func, inputs, eps, atol, rtol, fast_mode)


def _checked(check_, func, inputs, *settings):
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    params = ffi.new('kn_gradcheck_params *', settings)

    def called(tensors, _):
        return func(*[borrowed(tensors[i]) for i in range(len(inputs))])

    function = callback('kn_tensor *(kn_tensor *const *, void *)', NULL, called)
    check(check_(function, NULL, [one._h for one in inputs], len(inputs), params))
    return True
