"""Names for what others do: PyTorch's second names, and those for complex numbers and layouts, of which there are
none."""
import math

from .. import _ops, linalg
from .creation import ones_like

op = _ops.function

# --- of complex numbers, for real ones --------------------------------------------------------------------------------


def real(input):
    """The tensor itself."""
    return input


conj = conj_physical = resolve_conj = resolve_neg = real


def adjoint(input):
    """The transposed matrices."""
    return input.mT


def isreal(input):
    """True everywhere."""
    return ones_like(input, dtype='bool')


def is_conj(input):
    return False


is_neg = is_conj

# --- questions --------------------------------------------------------------------------------------------------------


def is_signed(input):
    """Has the dtype negative numbers?"""
    return input.dtype.is_signed


def is_same_size(input, other):
    return input.shape == other.shape


def get_device(input):
    return input.get_device()


# --- others -----------------------------------------------------------------------------------------------------------


def detach_(input):
    return input.detach_()


def narrow_copy(input, dim, start, length):
    return input.narrow(dim, start, length).clone()


def lu_solve(b, LU_data, LU_pivots):
    """linalg.lu_solve in the older order."""
    return linalg.lu_solve(LU_data, LU_pivots, b)


def trapz(y, x=None, *, dx=None, dim=-1):
    from . import trapezoid
    return trapezoid(y, x, dx=dx, dim=dim)


def _dropping(name):
    """A dropout that changes its input."""

    def function(input, p, train):
        return input.copy_(op(name)(input, p, train))

    function.__name__ = function.__qualname__ = name + '_'
    function.line = 'input, p, train'
    return function


dropout_, alpha_dropout_, feature_alpha_dropout_ = (
    _dropping(name) for name in ('dropout', 'alpha_dropout', 'feature_alpha_dropout'))
