"""What a tensor says about itself, and its gradient."""
import math
import numbers

from .._c import NULL, check, checked, ffi, lib, sizes, text
from .._device import device as Device
from .._dtypes import by_code, float32
from .._formats import is_in
from .handles import borrowed, options, tensor, wrap


class Size(tuple):
    """A shape: a tuple that knows its number of elements."""

    __slots__ = ()

    def numel(self):
        return math.prod(self)


class GradFn:
    """The operator that recorded a tensor."""

    __slots__ = ('_name',)

    def __init__(self, name):
        self._name = name

    def name(self):
        return self._name

    def __repr__(self):
        return '<%s>' % self._name


class TensorBase:
    """The part of Tensor without operations on its elements."""

    __slots__ = ('_h', '__weakref__')

    def __init__(self, *data, dtype=None, device=None, requires_grad=False):
        """Tensor(data), float32 unless dtype says otherwise; Tensor(2, 3): of that shape, with any values."""
        if all(isinstance(one, numbers.Integral) for one in data):
            made = lib.kn_empty_with(*sizes(data or (0,)), options(dtype, device, requires_grad))
            self._h = wrap(made)._h
        elif len(data) > 1:
            raise TypeError('Tensor: expected sizes, or numbers in a list, a tuple or an array')
        else:
            self._h = tensor(data[0], dtype or float32, device, requires_grad)._h

    # --- properties ---

    @property
    def shape(self):
        handle = self._h
        ndim = lib.kn_ndim(handle)
        return Size(ffi.unpack(lib.kn_shape(handle), ndim)) if ndim else Size()

    @property
    def ndim(self):
        return lib.kn_ndim(self._h)

    @property
    def dtype(self):
        return by_code[lib.kn_dtype_of(self._h)]

    @property
    def device(self):
        return Device._of(lib.kn_device_of(self._h))

    @property
    def is_cuda(self):
        return self.device.type == 'gpu'

    @property
    def is_cpu(self):
        """Is it on OpenCL's CPU device, or the host?"""
        return self.device.type in ('cpu', 'host')

    is_sparse = is_quantized = is_meta = is_nested = is_mkldnn = is_mps = is_xpu = False

    def get_device(self):
        """The number of the device, as koine.device(number) takes it; -1 for the host."""
        return self.device.index

    @property
    def itemsize(self):
        return self.dtype.itemsize

    @property
    def nbytes(self):
        return self.numel() * self.itemsize

    @property
    def T(self):
        ndim = lib.kn_ndim(self._h)
        return self.transpose(0, 1) if ndim == 2 else self.permute(*range(ndim - 1, -1, -1))

    @property
    def mT(self):
        return self.transpose(-2, -1)

    H, mH = T, mT  # of real numbers

    @property
    def _version(self):
        storage = lib.kn_storage_of(self._h)
        version = lib.kn_storage_version(storage)
        lib.kn_storage_release(storage)
        return version

    def dim(self):
        return lib.kn_ndim(self._h)

    def size(self, dim=None):
        return self.shape if dim is None else lib.kn_size(self._h, self._dim(dim))

    def _dim(self, dim):
        ndim = lib.kn_ndim(self._h)
        if not -ndim <= dim < ndim:
            raise IndexError('dimension %d is out of range for a tensor of %d dimensions' % (dim, ndim))
        return dim

    def stride(self, dim=None):
        if dim is not None:
            return lib.kn_stride(self._h, self._dim(dim))
        return tuple(lib.kn_stride(self._h, i) for i in range(self.ndim))

    def storage_offset(self):
        return lib.kn_storage_offset(self._h)

    def data_ptr(self):
        """The address of the first element; of device memory only a number (koine/storage.h)."""
        return lib.kn_tensor_address(self._h)

    def numel(self):
        return lib.kn_numel(self._h)

    nelement = numel

    def ndimension(self):
        return lib.kn_ndim(self._h)

    def element_size(self):
        return self.itemsize

    def is_contiguous(self, memory_format=None):
        return is_in(self, memory_format) if memory_format else bool(lib.kn_is_contiguous(self._h))

    def is_floating_point(self):
        return self.dtype.is_floating_point

    def is_inference(self):
        return False

    def is_pinned(self):
        return bool(lib.kn_is_pinned(self._h))

    # --- gradients ---

    @property
    def requires_grad(self):
        return bool(lib.kn_requires_grad(self._h))

    @requires_grad.setter
    def requires_grad(self, value):
        check(lib.kn_set_requires_grad(self._h, value))

    def requires_grad_(self, requires_grad=True):
        check(lib.kn_set_requires_grad(self._h, requires_grad))
        return self

    def detach_(self):
        """The tensor itself is no longer a result of others, and requires no gradient."""
        if self.is_leaf:
            return self.requires_grad_(False)
        self._h = self.detach()._h
        return self

    @property
    def is_leaf(self):
        return bool(lib.kn_is_leaf(self._h))

    @property
    def grad_fn(self):
        """What recorded the tensor, whose name() is that of the operator; None for leaves."""
        return None if self.is_leaf else GradFn(text(checked(lib.kn_grad_fn_name(self._h))))

    @property
    def grad(self):
        return borrowed(lib.kn_grad(self._h))

    @grad.setter
    def grad(self, value):
        check(lib.kn_set_grad(self._h, NULL if value is None else value._h))

    @property
    def data(self):
        return self.detach()

    @data.setter
    def data(self, value):
        self.detach().copy_(value.detach())

    def detach(self):
        return wrap(lib.kn_detach(self._h))

    def retain_grad(self):
        check(lib.kn_retain_grad(self._h))

    @property
    def retains_grad(self):
        return bool(lib.kn_retains_grad(self._h))

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Adds the gradients with respect to all leaves, or only to `inputs`, to their `grad`: see
        koine.autograd.backward."""
        if create_graph or inputs is not None:
            from ..autograd import backward
            backward(self, gradient, retain_graph, create_graph, inputs=inputs)
            return
        check(lib.kn_backward_with(self._h, NULL if gradient is None else gradient._h, bool(retain_graph)))

    def register_hook(self, hook):
        """hook(gradient) is called with each gradient that reaches the tensor; what it returns, unless None, takes its
        place. Returns a handle, whose remove() takes the hook away."""
        from ..autograd import register_hook
        return register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook):
        """hook(tensor) is called when a backward pass has added to the gradient of a leaf."""
        from ..autograd import register_post_accumulate_grad_hook
        return register_post_accumulate_grad_hook(self, hook)
