"""What is set for a whole module: its mode, device and dtype, and which gradients it has."""
from .. import _device
from .._c import check, checked, lib
from .._dtypes import code_of, is_name
from .._tensor import Tensor
from ._life import uninitialized


class Modes:
    """The part of Module about its parameters and buffers, which stay the same objects when they are moved."""

    @property
    def training(self):
        return bool(lib.kn_module_is_training(self._h))

    def train(self, mode=True):
        lib.kn_module_train(self._h, mode)
        return self

    def eval(self):
        return self.train(False)

    def to(self, *arguments, device=None, dtype=None, non_blocking=False, memory_format=None):
        """to(device), to(dtype), to(device, dtype), to(tensor): moves all, and converts what is floating. Weights have
        no memory_format: layers lay them out as they need."""
        for one in arguments:
            if isinstance(one, Tensor):
                device, dtype = one.device, one.dtype
            elif isinstance(one, _device.device) or isinstance(one, str) and not is_name(one):
                device = one
            elif not isinstance(one, bool):
                dtype = one
        if device is not None:
            check(lib.kn_module_to(self._h, _device.handle(device)))
        if dtype is not None:
            check(lib.kn_module_to_dtype(self._h, code_of(dtype)))
        for one in self._lazy_layers():
            one._move(device, dtype)
        return self

    def cpu(self):
        """To the OpenCL CPU device."""
        return self.to(device='cpu')

    def cuda(self, device=None):
        """To a GPU, of a number or a name."""
        return self.to(device='cuda' if device is None else 'cuda:%d' % device if isinstance(device, int) else device)

    def type(self, dst_type):
        return self.to(dtype=dst_type)

    def float(self):
        return self.to(dtype='float32')

    def double(self):
        return self.to(dtype='float64')

    def half(self):
        return self.to(dtype='float16')

    def bfloat16(self):
        return self.to(dtype='bfloat16')

    def zero_grad(self, set_to_none=True):
        """Drops the gradients; set_to_none=False makes them zeros."""
        if set_to_none:
            lib.kn_module_zero_grad(self._h)
        else:
            zero_gradients(self.parameters())

    def requires_grad_(self, requires_grad=True):
        checked(lib.kn_module_requires_grad_(self._h, requires_grad))
        for one in self._lazy_layers():
            one._set_requires_grad(requires_grad)
        return self

    def _lazy_layers(self):
        """Those below that had no call yet."""
        return [one for one in self.modules() if one in uninitialized] if uninitialized else []


def zero_gradients(parameters):
    """Those that have one get zeros."""
    for one in parameters:
        grad = one.grad
        if grad is not None:
            (grad.detach() if grad.requires_grad else grad).zero_()
