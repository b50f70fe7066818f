"""Functions that are a call of the C interface: comparisons that Python asks, products, indexing, histograms."""
import collections

from .._bind import tensor_function
from .._c import NULL, check, encoded, ffi, lib, shape_of, sizes
from .._dtypes import by_code, code_of
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
    return wrap(lib.kn_einsum(encoded(equation), [one._h for one in operands], len(operands)))


def tensordot(a, b, dims=2):
    if isinstance(dims, int):
        return wrap(lib.kn_tensordot_last(a._h, b._h, dims))
    first, second = ([one] if isinstance(one, int) else list(one) for one in dims)
    return wrap(lib.kn_tensordot(a._h, b._h, first, second, len(first)))


def index(input, indices):
    return wrap(lib.kn_index(input._h, [NULL if one is None else one._h for one in indices], len(indices)))


def unravel_index(indices, shape):
    """The coordinates of indices into a tensor of that shape: a tensor for each dimension."""
    count, shape = sizes([shape] if isinstance(shape, int) else shape)
    array = ffi.new('kn_tensor *[]', max(count, 1))
    check(lib.kn_unravel_index(indices._h, count, shape, array))
    return tuple(wrap(array[i]) for i in range(count))


def cross(input, other, dim=None):
    """Along `dim`, or the first dimension of size 3."""
    if dim is None:
        dim = next((i for i, size in enumerate(input.shape) if size == 3), None)
    if dim is None:
        raise ValueError('cross: no dimension of size 3 in %s' % (input.shape,))
    return wrap(lib.kn_linalg_cross(input._h, other._h, dim))


def is_floating_point(input):
    return input.is_floating_point()


def detach(input):
    return input.detach()


def promote_types(type1, type2):
    """The dtype of a result of tensors of these."""
    return by_code[lib.kn_promote_types(code_of(type1), code_of(type2))]


_Histogram = collections.namedtuple('histogram', ('hist', 'bin_edges'), module='koine')
_histogram = tensor_function('histogram', 'kn_histogram_with',
                             'input, *, bins=None, edges=None, min=None, max=None, weight=None, density=False')


def histogram(input, bins, *, range=None, weight=None, density=False):
    """(hist, bin_edges) of a number of equal bins, or of a tensor of edges."""
    if isinstance(bins, Tensor):
        if range is not None:
            raise ValueError('histogram: range is for a number of bins, not for edges')
        return _Histogram(*_histogram(input, edges=bins, weight=weight, density=density))
    least, most = range or (None, None)
    return _Histogram(*_histogram(input, bins=bins, min=least, max=most, weight=weight, density=density))
