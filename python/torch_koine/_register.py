"""Loading the library and telling PyTorch of the device."""
import os

import torch

_is_registered = False


def _folder():
    """Where libtorch_koine.so and libkoine.so are; TORCH_KOINE_LIBRARY_DIR names another folder."""
    here = os.path.dirname(os.path.abspath(__file__))
    return os.environ.get('TORCH_KOINE_LIBRARY_DIR') or os.path.join(here, 'lib')


def _built_for():
    """The version of PyTorch that the library was compiled for."""
    try:
        with open(os.path.join(_folder(), 'torch_version.txt')) as file:
            return file.read().strip()
    except OSError as error:
        raise ImportError('torch_koine has no library: %s; build the wheel, or set TORCH_KOINE_LIBRARY_DIR' % error)


def _check_version():
    """PyTorch's C++ interface changes with each release, and a library made for another one ends the process."""
    built_for = _built_for()
    if built_for.split('.')[:2] != torch.__version__.split('.')[:2]:
        raise ImportError('torch_koine was compiled for PyTorch %s, and this is %s: install the torch-koine for it, or '
                          'build it again' % (built_for, torch.__version__))


def _load():
    try:
        torch.ops.load_library(os.path.join(_folder(), 'libtorch_koine.so'))
    except OSError as error:
        if 'libOpenCL' in str(error):
            raise ImportError('torch_koine needs the OpenCL loader: install ocl-icd-libopencl1 (Debian, Ubuntu) or '
                              'ocl-icd (Fedora, Arch); without a GPU also pocl-opencl-icd') from error
        raise ImportError('torch_koine cannot open its library: %s' % error) from error


def register():
    """Does nothing the second time."""
    global _is_registered
    if _is_registered:
        return
    _check_version()
    torch.utils.rename_privateuse1_backend('koine')  # RuntimeError if another back end has taken the place
    _load()
    from . import _device, optim
    torch._register_device_module('koine', _device)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    optim.register()
    _is_registered = True
