"""PyTorch's device `koine`: any OpenCL device, through libkoine.

`import torch` is enough once the package is installed: PyTorch loads it by its entry point, unless
TORCH_DEVICE_BACKEND_AUTOLOAD=0 is set. torch.koine has what torch.cuda has for CUDA.
"""


def _autoload():
    """Called at the end of `import torch`, which must succeed even where the device cannot be used."""
    from . import _register
    try:
        _register.register()
    except (ImportError, RuntimeError) as error:
        import warnings
        warnings.warn('the device koine is not available: %s' % error, stacklevel=2)


def coverage():
    """Text: the operators that ran on the CPU so far, their calls and what these cost (torch.koine.fallbacks())."""
    from . import fallback
    return fallback.coverage()


import torch  # noqa: E402 (calls _autoload, which therefore comes first)

if not getattr(torch.__spec__, '_initializing', False):  # not called by the end of `import torch`
    from . import _register
    _register.register()
