"""torch.amp: autocast, a region that computes products in float16 or bfloat16, and GradScaler, which scales the loss so
that gradients of float16 do not underflow."""
import contextlib
import functools
import warnings

from . import safetensors
from ._c import check, checked, error, ffi, lib, path
from ._device import device, handle, is_there
from ._dtypes import bfloat16, by_code, code_of, float16, float64
from ._files import temporary_file
from ._region import Region
from ._tensor import Tensor, tensor, wrap
from .optim import LibraryOptimizer


def _is_there(name, device):
    """Of 'cuda' where there is no GPU it only warns, as PyTorch."""
    if str(device).split(':')[0] != 'cuda' or is_there('cuda'):
        return True
    warnings.warn("%s: it is disabled, because there is no GPU for 'cuda'" % name, stacklevel=3)
    return False


def _default_dtype(device_type):
    """Also of 'cuda' where there is no GPU."""
    is_gpu = str(device_type).split(':')[0] == 'cuda' or device(device_type).type == 'gpu'
    return float16 if is_gpu else bfloat16


class autocast(Region):
    """with koine.autocast('gpu', dtype=koine.float16): ...; also a decorator. Operators inside convert their inputs by
    PyTorch's lists, on all devices: the type of the device only decides which dtype is the default, float16 on GPUs and
    bfloat16 elsewhere. enabled=False turns it off inside another region; cache_enabled has no effect. Per
    thread."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, (str, device)):
            raise TypeError("autocast takes the type of a device first, as in autocast('cpu', dtype=koine.float16), "
                            'not %r' % (device_type,))
        super().__init__()
        self.device_type, self.dtype, self.enabled = device_type, dtype, enabled and _is_there('autocast', device_type)

    def _code(self):
        if not self.enabled:
            return lib.KN_DTYPE_DEFAULT
        if self.dtype is not None:
            return code_of(self.dtype)
        return code_of(_default_dtype(self.device_type))

    def _begin(self):
        before = lib.kn_autocast_enter(self._code())
        if lib.kn_error_status():  # the only thing that tells that the dtype was refused
            lib.kn_autocast_leave(before)
            raise error()
        return before

    def _end(self, before):
        lib.kn_autocast_leave(before)

    def _again(self):
        return autocast(self.device_type, self.dtype, self.enabled)


def is_autocast_enabled(device_type=None):
    """Is the thread in a region? Regions hold for all devices."""
    return lib.kn_autocast_dtype() != lib.KN_DTYPE_DEFAULT


def get_autocast_dtype(device_type):
    """What regions of that type of device compute products in: that of the thread's region, else the default."""
    code = lib.kn_autocast_dtype()
    return _default_dtype(device_type) if code == lib.KN_DTYPE_DEFAULT else by_code[code]


def is_autocast_available(device_type):
    """Is there such a device?"""
    return is_there(device_type)


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorates forward of an autograd.Function. With cast_inputs, inside a region floating inputs are converted to
    that dtype, and forward runs without autocast. Its backward is decorated with custom_bwd. The type of the device has
    no effect."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx, *arguments, **keywords):
        ctx._autocast = code = lib.kn_autocast_dtype()
        if cast_inputs is None or code == lib.KN_DTYPE_DEFAULT:
            return fwd(ctx, *arguments, **keywords)
        ctx._autocast = lib.KN_DTYPE_DEFAULT
        with _computing_in(ctx._autocast):
            return fwd(ctx, *_converted(arguments, cast_inputs), **_converted(keywords, cast_inputs))

    return forward


def custom_bwd(bwd=None, *, device_type):
    """Decorates backward, which then runs in the region in which forward ran."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx, *gradients):
        with _computing_in(ctx._autocast):
            return bwd(ctx, *gradients)

    return backward


@contextlib.contextmanager
def _computing_in(code):
    """A region of that dtype; of KN_DTYPE_DEFAULT none."""
    before = lib.kn_autocast_enter(code)
    try:
        yield
    finally:
        lib.kn_autocast_leave(before)


def _converted(value, dtype):
    """With the floating tensors in it, but for float64, in that dtype."""
    if isinstance(value, Tensor):
        return value.to(dtype=dtype) if value.is_floating_point() and value.dtype is not float64 else value
    if isinstance(value, dict):
        return {name: _converted(one, dtype) for name, one in value.items()}
    return type(value)(_converted(one, dtype) for one in value) if type(value) in (list, tuple) else value


class GradScaler:
    """The factor lives on the device, and nothing waits for it. `device` is accepted as in PyTorch; the factor goes to
    the device of the loss."""

    def __init__(self, device=None, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                 enabled=True):
        self._enabled = bool(enabled) and _is_there('GradScaler', device)
        if self._enabled:
            handle(device)  # names of devices that there are
        self._make(init_scale, growth_factor, backoff_factor, growth_interval)

    def _make(self, scale, *settings):
        params = ffi.new('kn_grad_scaler_params *', (scale, *settings, not self._enabled))
        self._h = ffi.gc(checked(lib.kn_grad_scaler_new_with(params)), lib.kn_grad_scaler_free)
        self._settings = dict(zip(_SETTINGS, settings))

    def scale(self, outputs):
        """The loss times the factor; a list or a tuple of losses likewise."""
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(one) for one in outputs])
        if not isinstance(outputs, Tensor):
            raise TypeError('GradScaler.scale takes tensors, not %s' % type(outputs).__name__)
        scaled = lib.kn_grad_scaler_scale(self._h, outputs._h)
        return outputs if scaled == outputs._h else wrap(scaled)  # a disabled scaler returns what it was given

    def unscale_(self, optimizer):
        """Divides the gradients of the optimizer's parameters, to look at them or to clip them before step."""
        check(lib.kn_grad_scaler_unscale_(self._h, _optimizer(optimizer)))

    def step(self, optimizer):
        """The optimizer's step, unless a gradient is infinite or NaN."""
        check(lib.kn_grad_scaler_step(self._h, _optimizer(optimizer)))

    def update(self, new_scale=None):
        """Once after the steps of all optimizers: the factor shrinks after a gradient that was not finite, and grows
        after growth_interval good steps. With new_scale it becomes that number, or tensor of one."""
        if new_scale is None:
            check(lib.kn_grad_scaler_update(self._h))
        else:
            self._change(scale=float(new_scale))

    def _change(self, **settings):
        if self._enabled:
            self.load_state_dict({**self.state_dict(), **settings})

    def get_scale(self):
        """The factor; waits for the device."""
        value = ffi.new('double *')
        check(lib.kn_grad_scaler_get_scale(self._h, value))
        return value[0]

    def is_enabled(self):
        return self._enabled

    def save(self, file):
        """The state, as a safetensors file."""
        check(lib.kn_grad_scaler_save(self._h, path(file)))

    def load(self, file):
        check(lib.kn_grad_scaler_load(self._h, path(file)))

    def state_dict(self):
        """PyTorch's, of numbers; {} if disabled. Waits for the device."""
        if not self._enabled:
            return {}
        with temporary_file('state_dict') as file:
            self.save(file)
            found = safetensors.load_file(file, 'host')
        return {'scale': found['scale'].item(), **self._settings, '_growth_tracker': int(found['_growth_tracker'])}

    def load_state_dict(self, state_dict):
        """What state_dict() returned, also PyTorch's."""
        if not self._enabled:
            return
        missing = [name for name in ('scale', *_SETTINGS, '_growth_tracker') if name not in state_dict]
        if missing:
            raise KeyError('GradScaler.load_state_dict: the state has no %s' % ', '.join(missing))
        self._make(state_dict['scale'], *[state_dict[name] for name in _SETTINGS])
        with temporary_file('state_dict') as file:
            safetensors.save_file({name: tensor(float(state_dict[name]), dtype=float64, device='host')
                                   for name in ('scale', '_growth_tracker')}, file)
            self.load(file)


_SETTINGS = 'growth_factor', 'backoff_factor', 'growth_interval'


def _accessors(name):
    def get(self):
        return self._settings[name]

    def set(self, value):
        self._settings[name] = value
        self._change(**{name: value})

    for function in (get, set):
        function.__name__ = '%s_%s' % (function.__name__, name)
        function.__qualname__ = 'GradScaler.' + function.__name__
        setattr(GradScaler, function.__name__, function)


for _name in _SETTINGS:
    _accessors(_name)


def _optimizer(optimizer):
    if not isinstance(optimizer, LibraryOptimizer):
        raise TypeError("GradScaler takes one of the library's optimizers, not %s" % type(optimizer).__name__)
    return optimizer._h
