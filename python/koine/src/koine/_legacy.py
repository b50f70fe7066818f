"""Older ways to make tensors and to name their types: koine.FloatTensor, koine.LongTensor and so on."""
from . import _dtypes
from ._functions import empty
from ._tensor import Tensor, tensor


class _TypeOfTensors(type):
    """Of classes of which tensors of a dtype are instances: FloatTensor([1, 2]), FloatTensor(2, 3) of any values."""

    def __call__(cls, *arguments, device=None):
        if not arguments or all(isinstance(one, int) for one in arguments):
            return empty(arguments or (0,), dtype=cls.dtype, device=device)
        if len(arguments) > 1:
            raise TypeError('%s: expected sizes, or numbers in a list, a tuple or an array' % cls.__name__)
        return tensor(arguments[0], dtype=cls.dtype, device=device)

    def __instancecheck__(cls, value):
        return isinstance(value, Tensor) and value.dtype is cls.dtype


TYPES = {name + 'Tensor': _TypeOfTensors(name + 'Tensor', (), {'dtype': dtype, '__module__': 'koine'})
         for name, dtype in (('Float', _dtypes.float32), ('Double', _dtypes.float64), ('Half', _dtypes.float16),
                             ('BFloat16', _dtypes.bfloat16), ('Long', _dtypes.int64), ('Int', _dtypes.int32),
                             ('Short', _dtypes.int16), ('Char', _dtypes.int8), ('Byte', _dtypes.uint8),
                             ('Bool', _dtypes.bool_))}
