"""Functions that are a call of the C interface: comparisons that Python asks, products, indexing."""
from .._c import NULL, check, ffi, lib, shape_of
from .._tensor import Tensor, wrap


def equal(input, other):
    """Are shapes and all elements equal? Waits for the device."""
    result = ffi.new('bool *')
    check(lib.kn_equal(input._h, other._h, result))
    return result[0]


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    result = ffi.new('bool *')
    check(lib.kn_allclose_with(input._h, other._h, result, ffi.new('kn_isclose_params *', (rtol, atol, equal_nan))))
    return result[0]


def is_tensor(value):
    return isinstance(value, Tensor)


def numel(input):
    return input.numel()


def einsum(equation, *operands):
    operands = shape_of(operands) if not isinstance(operands[0], Tensor) else operands
    return wrap(lib.kn_einsum(equation.encode(), [one._h for one in operands], len(operands)))


def tensordot(a, b, dims=2):
    if isinstance(dims, int):
        return wrap(lib.kn_tensordot_last(a._h, b._h, dims))
    first, second = ([one] if isinstance(one, int) else list(one) for one in dims)
    return wrap(lib.kn_tensordot(a._h, b._h, first, second, len(first)))


def index(input, indices):
    return wrap(lib.kn_index(input._h, [NULL if one is None else one._h for one in indices], len(indices)))
