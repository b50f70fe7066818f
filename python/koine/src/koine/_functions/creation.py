"""Functions that create tensors."""
import math

import numpy

from .. import _ops
from .._c import lib, plain_number, scalar, shape_of, sizes
from .._dtypes import as_dtype
from .._formats import create_like, preserve_format, to_format
from .._tensor import options, tensor, wrap


def _creator(name):
    function = getattr(lib, 'kn_%s_with' % name)

    def create(*shape, size=None, dtype=None, device=None, requires_grad=False, generator=None, memory_format=None):
        shape = shape_of(shape) if size is None else size
        if memory_format is not None:
            made = wrap(function(*sizes(shape), options(dtype, device, False, generator)))
            return to_format(made, memory_format).requires_grad_(requires_grad)
        return wrap(function(*sizes(shape), options(dtype, device, requires_grad, generator)))

    create.__name__ = create.__qualname__ = name
    create.line = '*size, dtype=None, device=None, requires_grad=False, memory_format: _=None'
    return create


empty, zeros, ones, rand, randn = (_creator(name) for name in ('empty', 'zeros', 'ones', 'rand', 'randn'))


def full(size, fill_value, *, dtype=None, device=None, requires_grad=False):
    if dtype is None and isinstance(fill_value, int):
        dtype = 'bool' if isinstance(fill_value, bool) else 'int64'
    return wrap(lib.kn_full_with(*sizes(size), scalar(fill_value), options(dtype, device, requires_grad)))


def arange(start, end=None, step=1, *, dtype=None, device=None, requires_grad=False):
    start, end = (0, start) if end is None else (start, end)
    start, end, step = (one if isinstance(one, (int, float)) else plain_number(one) for one in (start, end, step))
    if dtype is None:
        dtype = 'int64' if all(isinstance(one, int) for one in (start, end, step)) else 'float32'
    return wrap(lib.kn_arange_with(start, end, step, options(dtype, device, requires_grad)))


def range(start=0, end=None, step=1, *, dtype=None, device=None, requires_grad=False):
    """arange with `end` itself, of float32 unless dtype says otherwise."""
    if end is None:
        raise TypeError('range: both start and end are needed; arange(end) begins at 0')
    start, end, step = (one if isinstance(one, (int, float)) else plain_number(one) for one in (start, end, step))
    if step == 0 or (end - start) / step < 0:
        raise ValueError('range: %r is not reached from %r in steps of %r' % (end, start, step))
    count = math.floor((end - start) / step) + 1
    return arange(start, start + step * (count - 0.5), step, dtype=dtype or 'float32', device=device,
                  requires_grad=requires_grad)


def linspace(start, end, steps, *, dtype=None, device=None, requires_grad=False):
    return wrap(lib.kn_linspace_with(start, end, steps, options(dtype, device, requires_grad)))


def logspace(start, end, steps, base=10.0, *, dtype=None, device=None, requires_grad=False):
    return wrap(lib.kn_logspace_with(start, end, steps, base, options(dtype, device, requires_grad)))


def eye(n, m=None, *, dtype=None, device=None, requires_grad=False):
    return wrap(lib.kn_eye_with(n, n if m is None else m, options(dtype, device, requires_grad)))


def tril_indices(row, col, offset=0, *, dtype=None, device=None):
    return wrap(lib.kn_tril_indices_with(row, col, offset, options(dtype or 'int64', device)))


def triu_indices(row, col, offset=0, *, dtype=None, device=None):
    return wrap(lib.kn_triu_indices_with(row, col, offset, options(dtype or 'int64', device)))


def randint(low=0, high=None, size=None, *, dtype=None, device=None, generator=None):
    """randint(high, size) or randint(low, high, size): integers from low to high - 1."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    return wrap(lib.kn_randint_with(low, high, *sizes(size), options(dtype or 'int64', device, False, generator)))


def randperm(n, *, dtype=None, device=None, generator=None):
    return wrap(lib.kn_randperm_with(n, options(dtype or 'int64', device, False, generator)))


def fill(input, value):
    """A tensor like the input that is `value` everywhere: a number, or a tensor of one."""
    if hasattr(value, '_h'):
        return value.to(input.device, input.dtype).expand(input.shape).clone()
    return full_like(input, value)


def empty_strided(size, stride, *, dtype=None, device=None, requires_grad=False):
    """Of any values, with these steps between the elements of each dimension."""
    size, stride = list(size), list(stride)
    if len(size) != len(stride) or min(stride, default=0) < 0:
        raise ValueError('empty_strided: a stride of 0 or more is needed for each of %d sizes, not %s'
                         % (len(size), tuple(stride)))
    count = 0 if 0 in size else 1 + sum((one - 1) * step for one, step in zip(size, stride))
    made = _ops.function('as_strided')(empty(count, dtype=dtype, device=device), size, stride)
    return made.requires_grad_(requires_grad)


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False, device=None):
    """A copy of the numbers in an object with a buffer, such as bytes and arrays."""
    kind = as_dtype(dtype)
    size = memoryview(buffer).nbytes
    if not 0 <= offset < max(size, 1):
        raise ValueError('frombuffer: offset is %d; the buffer has %d bytes' % (offset, size))
    available = size - offset
    if count < 0 and available % kind.itemsize or count * kind.itemsize > available:
        raise ValueError('frombuffer: %d bytes of the buffer are not %s numbers of %s'
                         % (available, 'whole' if count < 0 else count, kind.name))
    numbers = numpy.frombuffer(buffer, kind.numpy or 'int16', count, offset)
    made = tensor(numbers, device=device)
    return (made if kind.numpy else made.view(kind)).requires_grad_(requires_grad)


def _like(create):
    plain = getattr(lib, 'kn_%s_like' % create.__name__, None)

    def like(input, *arguments, dtype=None, device=None, requires_grad=False, memory_format=preserve_format):
        """A new tensor with the input's shape, and its dtype, device and order in memory unless others are given."""
        if plain and dtype is None and device is None and not requires_grad and not arguments and (
                memory_format is preserve_format and input.is_contiguous()):
            return wrap(plain(input._h))
        return create_like(input, memory_format or preserve_format, lambda shape: create(
            shape, *arguments, dtype=dtype or input.dtype, device=device or input.device)).requires_grad_(requires_grad)

    like.__name__ = like.__qualname__ = create.__name__ + '_like'
    value = 'fill_value, ' if create is full else ''
    like.line = 'input, ' + value + '*, dtype=None, device=None, requires_grad=False, memory_format: _=None'
    return like


empty_like, zeros_like, ones_like, rand_like, randn_like, full_like = (
    _like(create) for create in (empty, zeros, ones, rand, randn, full))


def randint_like(input, low, high=None, *, dtype=None):
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input.shape, dtype=dtype or input.dtype, device=input.device)


def _new(create):
    def new(self, *arguments, dtype=None, device=None, requires_grad=False):
        return create(*arguments, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)

    new.__name__ = new.__qualname__ = 'new_' + create.__name__
    new.line = 'input, *size, dtype=None, device=None, requires_grad=False'
    return new


new_empty, new_zeros, new_ones, new_full, new_empty_strided = (
    _new(create) for create in (empty, zeros, ones, full, empty_strided))
