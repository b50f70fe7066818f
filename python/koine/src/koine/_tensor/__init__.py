"""Tensors."""
import math

import numpy

from .. import _indexing, _ops
from .._c import NULL, KoineError, check, checked, ffi, lib, owned_text, shape_of, sizes
from .._device import device as Device
from .._device import handle as device_handle
from .._dtypes import code_of, is_name
from .._formats import to_format
from .base import Size, TensorBase  # noqa: F401
from .casts import Casts
from .handles import (borrowed, composed, from_numpy, is_tensor_class, new_object, options, owned,  # noqa: F401
                      release, tensor, wrap)
from .operators import in_place, operator, reflected, reflected_full


@is_tensor_class
class Tensor(TensorBase, Casts):
    """A strided array of numbers on a device. Methods are those of torch.Tensor: besides the ones below every operator
    of the list whose first argument is a tensor, also in place ("sin_")."""

    __slots__ = ()
    __array_ufunc__ = None  # numpy leaves array + tensor to __radd__, which says what to do

    # --- other devices and dtypes ---

    def to(self, *arguments, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None):
        """to(device), to(dtype), to(device, dtype), to(other tensor); itself if nothing changes."""
        if memory_format is not None:
            moved = self.to(*arguments, device=device, dtype=dtype, non_blocking=non_blocking, copy=copy)
            return to_format(moved, memory_format)
        for one in arguments:
            if isinstance(one, Tensor):
                device, dtype = one.device, one.dtype
            elif isinstance(one, Device) or isinstance(one, str) and not is_name(one):
                device = one
            elif isinstance(one, bool):
                non_blocking = one
            elif one is not None:
                dtype = one
        params = ffi.new('kn_to_params *', (device_handle(device), code_of(dtype), non_blocking, copy))
        handle = checked(lib.kn_to_with(self._h, params))
        if handle == self._h:
            lib.kn_release(handle)
            return self
        return wrap(handle)

    def host(self):
        """A copy in the host's memory."""
        return self.to('host')

    def cpu(self):
        """On the OpenCL CPU device."""
        return self.to('cpu')

    def cuda(self, device=None, non_blocking=False):
        """On a GPU, of a number or a name."""
        name = 'cuda' if device is None else 'cuda:%d' % device if isinstance(device, int) else device
        return self.to(name, non_blocking=non_blocking)

    def type_as(self, other):
        return self.to(dtype=other.dtype)

    def type(self, dtype=None):
        return repr(self.dtype) if dtype is None else self.to(dtype=dtype)

    def pin_memory(self):
        return wrap(lib.kn_pin_memory(self._h))

    def copy_(self, source, non_blocking=False):
        """Writes the elements of a tensor, an array or a number, converted and broadcast."""
        if not isinstance(source, Tensor):
            source = tensor(source, dtype=self.dtype)
        if lib.kn_grad_enabled() and (source.requires_grad or self.requires_grad):
            self[...] = source.to(self.device, self.dtype)  # which is recorded
            return self
        params = ffi.new('kn_copy_params *', (non_blocking,))
        check(lib.kn_copy_with(self._h, source._h, params))
        return self

    # --- to Python and numpy ---

    def numpy(self):
        """A copy as a numpy array; of a host tensor the memory itself."""
        kind = self.dtype
        if kind.numpy is None:
            raise TypeError('numpy has no bfloat16: x.float().numpy()')
        if self.requires_grad:
            raise KoineError('numpy: the tensor requires a gradient: x.detach().numpy()')
        if lib.kn_device_get_type(lib.kn_device_of(self._h)) == lib.KN_DEVICE_HOST and self.numel() > 0:
            return numpy.asarray(_HostMemory(self, kind))
        array = numpy.empty(self.shape, dtype=kind.numpy)
        check(lib.kn_read(self._h, ffi.from_buffer(array) if array.size else NULL, array.nbytes))
        return array

    def __array__(self, dtype=None, copy=None):
        array = (self.float() if self.dtype.numpy is None else self).detach().numpy()
        return array.astype(dtype) if dtype is not None else array.copy() if copy else array

    def apply_(self, function):
        """Each element of a host tensor becomes function(element)."""
        return self._each('apply_', function)

    def map_(self, other, function):
        """Each element of a host tensor becomes function(element, element of the other one)."""
        return self._each('map_', function, other)

    def _each(self, name, function, *others):
        for one in (self, *others):
            if one.device.type != 'host':
                raise TypeError('%s: Python computes on the host only, not on %s: x.host()' % (name, one.device))
        array = self.numpy()
        values = [numpy.broadcast_to(one.detach().numpy(), array.shape) for one in others]
        for place in numpy.ndindex(array.shape):
            array[place] = function(array[place].item(), *[one[place].item() for one in values])
        return self

    def item(self):
        if self.is_floating_point():
            value = ffi.new('double *')
            check(lib.kn_item(self._h, value))
            return value[0]
        value = ffi.new('int64_t *')
        check(lib.kn_item_i64(self._h, value))
        return value[0] != 0 if lib.kn_dtype_of(self._h) == lib.KN_BOOL else value[0]

    def tolist(self):
        if lib.kn_ndim(self._h) == 0:
            return self.item()
        return (self.float() if self.dtype.numpy is None else self).detach().numpy().tolist()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self.is_floating_point():
            raise TypeError('a %s tensor is no index' % self.dtype.name)
        return int(self.item())

    def __bool__(self):
        if self.numel() != 1:
            raise ValueError('a tensor of %d elements is neither true nor false: use any() or all()' % self.numel())
        return bool(self.item())

    def __len__(self):
        if self.ndim == 0:
            raise TypeError('a tensor without dimensions has no length')
        return lib.kn_size(self._h, 0)

    def __iter__(self):
        return iter(self.unbind(0))

    def __contains__(self, value):
        return bool((self == value).any())

    def __repr__(self):
        return owned_text(lib.kn_to_string(self._h))

    def __format__(self, form):
        """A number is formatted as one, so that f'{loss}' is short."""
        return format(self.item(), form) if self.ndim == 0 or form and self.numel() == 1 else str(self)

    def __hash__(self):
        return id(self)

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError('deepcopy: the tensor is the result of recorded operations, not a leaf: x.detach()')
        # The memo keeps the tensor, so that its address stays its own.
        key = self._deepcopy_key()
        if key not in memo:
            copied = new_object(type(self))
            copied._h = self.detach().clone().requires_grad_(self.requires_grad)._h
            if self.grad is not None:
                copied.grad = self.grad.detach().clone()
            memo[key] = copied, self
        return memo[key][0]

    def _deepcopy_key(self):
        """Of a memo, where several objects may stand for one tensor."""
        return 'tensor', int(ffi.cast('uintptr_t', self._h))

    def __reduce__(self):
        return _restored, (self.detach().float().numpy() if self.dtype.numpy is None else self.detach().numpy(),
                           self.dtype, str(self.device), self.requires_grad)

    # --- operators of Python ---

    __add__ = __radd__ = operator('add')
    __sub__, __rsub__ = operator('sub'), reflected('rsub')
    __mul__ = __rmul__ = operator('mul')
    __truediv__, __rtruediv__ = operator('div'), reflected('rdiv')
    __floordiv__, __rfloordiv__ = operator('floor_divide'), reflected_full('floor_divide')
    __mod__, __rmod__ = operator('remainder'), reflected_full('remainder')
    __pow__, __rpow__ = operator('pow'), reflected('rpow')
    __eq__, __ne__, __lt__ = operator('eq'), operator('ne'), operator('lt')
    __le__, __gt__, __ge__ = operator('le'), operator('gt'), operator('ge')
    __and__ = __rand__ = operator('bitwise_and')
    __or__ = __ror__ = operator('bitwise_or')
    __xor__ = __rxor__ = operator('bitwise_xor')
    __lshift__, __rshift__ = operator('bitwise_left_shift'), operator('bitwise_right_shift')
    __iadd__, __isub__, __imul__, __itruediv__ = (in_place(name) for name in ('add', 'sub', 'mul', 'div'))
    __ifloordiv__, __imod__, __ipow__ = in_place('floor_divide'), in_place('remainder'), in_place('pow')
    __iand__, __ior__, __ixor__ = (in_place('bitwise_' + name) for name in ('and', 'or', 'xor'))

    def __matmul__(self, other):
        return wrap(lib.kn_matmul(self._h, other._h)) if isinstance(other, Tensor) else NotImplemented

    def __neg__(self):
        return wrap(lib.kn_neg(self._h))

    def __pos__(self):
        return self

    def __abs__(self):
        return wrap(lib.kn_abs(self._h))

    def __invert__(self):
        return wrap(lib.kn_bitwise_not(self._h))

    def __getitem__(self, key):
        return _indexing.get(self, key)

    def __setitem__(self, key, value):
        _indexing.put(self, key, value)

    # --- shapes ---

    def reshape(self, *shape):
        return wrap(lib.kn_reshape(self._h, *sizes(shape_of(shape))))

    def view(self, *shape):
        """reshape without a copy, or view(dtype): the same bytes."""
        if len(shape) == 1 and not isinstance(shape[0], (tuple, list)) and not hasattr(shape[0], '__index__'):
            return wrap(lib.kn_view_dtype(self._h, code_of(shape[0])))
        seen = self.reshape(*shape)
        if (not lib.kn_is_contiguous(self._h) and lib.kn_tensor_address(seen._h) != lib.kn_tensor_address(self._h)
                and self.numel() > 0):
            raise KoineError('view: no strides show %s as %s: use reshape' % (self.shape, seen.shape))
        return seen

    def view_as(self, other):
        return self.view(*other.shape)

    def reshape_as(self, other):
        return self.reshape(*other.shape)

    def expand(self, *shape):
        return wrap(lib.kn_expand(self._h, *sizes(shape_of(shape))))

    def permute(self, *dims):
        dims = shape_of(dims)
        if len(dims) != lib.kn_ndim(self._h):
            raise ValueError('permute: %d dimensions given for a tensor of %d' % (len(dims), self.ndim))
        return wrap(lib.kn_permute(self._h, ffi.new('int[]', dims)))

    def repeat(self, *repeats):
        return wrap(lib.kn_repeat(self._h, *sizes(shape_of(repeats))))

    def tile(self, *dims):
        return wrap(lib.kn_tile(self._h, *sizes(shape_of(dims))))

    def flip(self, *dims):
        return _ops.function('flip')(self, shape_of(dims))

    def squeeze_(self, dim=None):
        """The tensor itself becomes the view, as with the other changes of shape in place."""
        return self._become(self.squeeze() if dim is None else self.squeeze(dim))

    def unsqueeze_(self, dim):
        return self._become(self.unsqueeze(dim))

    def transpose_(self, dim0, dim1):
        return self._become(self.transpose(dim0, dim1))

    swapaxes_ = swapdims_ = transpose_

    def t_(self):
        return self._become(self.t())

    def as_strided_(self, size, stride, storage_offset=None):
        return self._become(self.as_strided(size, stride, storage_offset))

    def resize_(self, *shape):
        """Another shape with the same first elements, whose memory it shares unless there are more of them: those have
        any values."""
        shape = shape_of(shape)
        if self.requires_grad:
            raise RuntimeError('resize_: the tensor requires a gradient: only the shape of a detached one changes')
        if min(shape, default=0) < 0:
            raise ValueError('resize_: sizes must be at least 0, not %s' % (tuple(shape),))
        count, flat = math.prod(shape), self.detach().reshape(-1)
        if count > flat.numel():
            longer = flat.new_empty(count)
            longer[:flat.numel()] = flat
            flat = longer
        return self._become(flat[:count].reshape(shape))

    def resize_as_(self, other):
        return self.resize_(other.shape)

    def _become(self, other):
        if self.is_leaf and self.requires_grad:
            raise RuntimeError('a leaf that requires a gradient does not change its shape in place')
        self._h = other._h
        return self

    def polygamma(self, n):
        return _ops.function('polygamma')(n, self)

    def new(self, *data):
        """Tensor(...), with the dtype and on the device of this one."""
        return Tensor(*data, dtype=self.dtype, device=self.device)

    def contiguous(self, memory_format=None):
        """Without gaps, in the order of the dimensions or in that of a format: koine.channels_last."""
        return to_format(self, memory_format) if memory_format else wrap(lib.kn_contiguous(self._h))

    def new_tensor(self, data, dtype=None, device=None):
        return tensor(data, dtype or self.dtype, device or self.device)

    def unfold(self, dimension, size, step):
        return _ops.function('tensor_unfold')(self, dimension, size, step)

    # --- DLPack ---

    def __dlpack_device__(self):
        from .._dlpack import device_of
        return device_of(self)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from .._dlpack import export
        return export(self, max_version, dl_device, copy)

    def __getattr__(self, name):
        method = _method(name)
        if method is None:
            raise AttributeError('a koine.Tensor has no attribute %r' % name)
        setattr(Tensor, name, method)
        return getattr(self, name)

    def __dir__(self):
        from .. import _functions
        return sorted({*super().__dir__(), *_functions.METHODS, *filter(_method, _ops.names())})


def _method(name):
    """A function of the package, or an operator of the list, whose first argument is a tensor."""
    from .. import _functions
    if name in _functions.METHODS:
        return getattr(_functions, name)
    if name.startswith('__') or _functions.is_internal(name):
        return None
    try:
        made = _ops.function(name)
    except AttributeError:
        return None
    return made if made.__code__.co_varnames[0] == 'input' else None


class _HostMemory:
    """The memory of a host tensor, for numpy, which keeps this object alive."""

    def __init__(self, host, kind):
        self.host = host
        self.__array_interface__ = {
            'version': 3, 'shape': host.shape, 'strides': tuple(one * kind.itemsize for one in host.stride()),
            'typestr': kind.numpy.str, 'data': (int(ffi.cast('uintptr_t', checked(lib.kn_data(host._h)))), False)}


def _restored(array, dtype, device, requires_grad):
    """Of a pickle; on the current device if that one is missing."""
    try:
        return tensor(array, dtype, device, requires_grad)
    except RuntimeError:
        return tensor(array, dtype, None, requires_grad)
