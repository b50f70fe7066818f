"""Koine: neural networks on any OpenCL device, with PyTorch's names.

    import koine
    x = koine.randn(2, 3, requires_grad=True)          # on the best device there is
    (x @ x.T).sum().backward()
    print(x.grad)"""
from . import _functions, _ops, autograd, linalg, random  # noqa: F401
from ._c import (KoineError, KoineIndexError, KoineIOError, KoineMemoryError, KoineNumericError,  # noqa: F401
                 KoineTypeError, KoineValueError, OutOfMemoryError, version)
from ._compile import compile  # noqa: A004, F401
from ._device import (current_device, device, device_count, devices, empty_cache, get_default_device,  # noqa: F401
                      is_available, max_memory_allocated, memory_allocated, memory_reserved, memory_summary,
                      set_default_device, set_device, synchronize)
from ._dtypes import (bfloat16, bool_, dtype, finfo, float16, float32, float64, iinfo, int8, int16, int32,  # noqa: F401
                      int64, uint8)
from ._dlpack import from_dlpack  # noqa: F401
from ._flags import (are_deterministic_algorithms_enabled, get_default_dtype,  # noqa: F401
                     get_float32_matmul_precision, get_num_threads, is_deterministic_algorithms_warn_only_enabled,
                     set_default_dtype, set_float32_matmul_precision, set_num_threads, set_printoptions,
                     use_deterministic_algorithms)
from ._tensor import Size, Tensor, from_numpy, tensor  # noqa: F401
from .autograd import (enable_grad, inference_mode, is_anomaly_check_nan_enabled, is_anomaly_enabled,  # noqa: F401
                       is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled)
from .random import Generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: F401

globals().update({name: getattr(_functions, name) for name in _functions.PUBLIC})
from . import (accelerator, amp, backends, cuda, data, distributed, distributions, func, graph,  # noqa: E402, F401
               models, nn, optim, profiler, safetensors, special, testing, train, utils)
from ._vmap import vmap  # noqa: E402, F401
from .amp import GradScaler, autocast, get_autocast_dtype, is_autocast_enabled  # noqa: E402, F401
from ._formats import (channels_last, channels_last_3d, contiguous_format, memory_format,  # noqa: E402, F401
                       preserve_format)
from ._legacy import TYPES as _TYPES  # noqa: E402
from .serialization import load, save  # noqa: E402, F401
from .train import Trainer  # noqa: E402, F401

half, float, double, short, int, long, bool = float16, float32, float64, int16, int32, int64, bool_  # noqa: A001
globals().update(_TYPES)
newaxis = None
e = __import__('math').e
inf, nan, pi = __import__('math').inf, __import__('math').nan, __import__('math').pi
__version__ = version()


def __getattr__(name):
    if _functions.is_internal(name) or name.startswith('__'):
        raise AttributeError('koine has no %s' % name)
    function = _ops.function(name)
    globals()[name] = function
    return function


def __dir__():
    return sorted(set(globals()) | {name for name in _ops.names() if not _functions.is_internal(name)})
