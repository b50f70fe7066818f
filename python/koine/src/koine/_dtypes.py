"""Dtypes: objects as PyTorch's, koine.float32 and so on."""
import numpy

from ._c import lib, text


class dtype:
    """An element type. `numpy` is numpy's counterpart, None for bfloat16."""

    __slots__ = ('code', 'name', 'numpy', 'itemsize', 'is_floating_point', 'is_signed')

    def __init__(self, code):
        self.code = code
        self.name = text(lib.kn_dtype_name(code))
        self.numpy = None if self.name == 'bfloat16' else numpy.dtype(self.name)
        self.itemsize = lib.kn_dtype_size(code)
        self.is_floating_point = bool(lib.kn_dtype_is_floating(code))
        self.is_signed = self.name not in ('uint8', 'bool')

    def __repr__(self):
        return 'koine.' + self.name

    def __reduce__(self):
        return self.name  # a global of this module: copies and pickles are the same object


by_code = {code: dtype(code) for code in range(lib.KN_F64, lib.KN_BOOL + 1)}
by_name = {kind.name: kind for kind in by_code.values()}
globals().update(by_name)
float64, float32, float16, bfloat16 = (by_name[name] for name in ('float64', 'float32', 'float16', 'bfloat16'))
int64, int32, int16, int8, uint8 = (by_name[name] for name in ('int64', 'int32', 'int16', 'int8', 'uint8'))
bool_ = by_name['bool']
by_numpy = {kind.numpy: kind for kind in by_code.values() if kind.numpy is not None}
ALIASES = {'double': float64, 'float': float32, 'half': float16, 'long': int64, 'int': int32, 'short': int16}

_PYTHON = {float: float32, int: int64, bool: bool_}

# Unsigned integers and extended floats that numpy has and Koine has not.
_WIDER = {'uint16': int32, 'uint32': int64, 'uint64': int64, 'longdouble': float64, 'float128': float64}


def _named(name):
    name = name.replace('koine.', '')
    return by_name.get(name) or ALIASES.get(name)


def is_name(value):
    """Is it the name of a dtype, and not that of a device?"""
    return isinstance(value, str) and _named(value) is not None


def as_dtype(value):
    """A dtype from one of ours, numpy's, a name, or Python's float, int and bool."""
    if isinstance(value, dtype):
        return value
    if isinstance(value, numpy.dtype) and value in by_numpy:
        return by_numpy[value]
    if isinstance(value, type) and value in _PYTHON:
        return _PYTHON[value]
    if isinstance(value, type) and isinstance(getattr(value, 'dtype', None), dtype):  # koine.FloatTensor
        return value.dtype
    name = value if isinstance(value, str) else numpy.dtype(value).name
    found = _named(name) or _WIDER.get(name)
    if found is None:
        raise TypeError('koine has no dtype %s; it has %s' % (name, ', '.join(by_name)))
    return found


def code_of(value):
    """The kn_dtype; KN_DTYPE_DEFAULT for None."""
    return 0 if value is None else as_dtype(value).code


# --- limits -----------------------------------------------------------------------------------------------------------


class finfo:
    """The limits of a floating dtype: koine.finfo(koine.float16).max."""

    def __init__(self, type=float32):
        kind = as_dtype(type)
        if not kind.is_floating_point:
            raise TypeError('finfo is for floating dtypes, not %s' % kind.name)
        # bfloat16: float32's exponents with 7 bits of the mantissa.
        known = numpy.finfo(kind.numpy or numpy.float32)
        self.dtype, self.bits = kind.name, 8 * kind.itemsize
        self.eps = float(known.eps) if kind.numpy else 2.0 ** -7
        self.max = float(known.max) if kind.numpy else (2 - 2.0 ** -7) * 2.0 ** 127
        self.resolution = float(known.resolution) if kind.numpy else 0.01
        self.tiny = self.smallest_normal = float(known.tiny)
        self.min = -self.max


class iinfo:
    """The limits of an integer dtype."""

    def __init__(self, type):
        kind = as_dtype(type)
        if kind.is_floating_point or kind is bool_:
            raise TypeError('iinfo is for integer dtypes, not %s' % kind.name)
        known = numpy.iinfo(kind.numpy)
        self.dtype, self.bits, self.min, self.max = kind.name, 8 * kind.itemsize, int(known.min), int(known.max)
