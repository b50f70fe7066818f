"""Functions of koine.* that are more than one operator of the list: PyTorch's overloads, functions that create tensors,
and functions of the C interface that are not operators."""
import builtins

from . import _ops
from ._bind import tensor_function
from ._c import NULL, check, checked, ffi, lib, scalar, shape_of, sizes
from ._tensor import Tensor, options, wrap

op = _ops.function

# --- creation ---------------------------------------------------------------------------------------------------------


def _creator(name):
    function = getattr(lib, 'kn_%s_with' % name)

    def create(*size, dtype=None, device=None, requires_grad=False, generator=None):
        return wrap(function(*sizes(shape_of(size)), options(dtype, device, requires_grad, generator)))

    create.__name__ = create.__qualname__ = name
    create.line = '*size, dtype=None, device=None, requires_grad=False'
    return create


empty, zeros, ones, rand, randn = (_creator(name) for name in ('empty', 'zeros', 'ones', 'rand', 'randn'))


def full(size, fill_value, *, dtype=None, device=None, requires_grad=False):
    if dtype is None and isinstance(fill_value, int):
        dtype = 'bool' if isinstance(fill_value, builtins.bool) else 'int64'
    return wrap(lib.kn_full_with(*sizes(size), scalar(fill_value), options(dtype, device, requires_grad)))


def arange(start, end=None, step=1, *, dtype=None, device=None, requires_grad=False):
    start, end = (0, start) if end is None else (start, end)
    if dtype is None and all(isinstance(one, int) for one in (start, end, step)):
        dtype = 'int64'
    return wrap(lib.kn_arange_with(start, end, step, options(dtype, device, requires_grad)))


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


def randint(low, high=None, size=None, *, dtype=None, device=None, generator=None):
    """randint(high, size) or randint(low, high, size): integers from low to high - 1."""
    if size is None:
        low, high, size = 0, low, high
    return wrap(lib.kn_randint_with(low, high, *sizes(size), options(dtype or 'int64', device, False, generator)))


def randperm(n, *, dtype=None, device=None, generator=None):
    return wrap(lib.kn_randperm_with(n, options(dtype or 'int64', device, False, generator)))


def _like(create):
    def like(input, *arguments, dtype=None, device=None, requires_grad=False):
        """A new tensor with the input's shape, and its dtype and device unless others are given."""
        return create(input.shape, *arguments, dtype=dtype or input.dtype, device=device or input.device,
                      requires_grad=requires_grad)

    like.__name__ = like.__qualname__ = create.__name__ + '_like'
    value = 'fill_value, ' if create is full else ''
    like.line = 'input, ' + value + '*, dtype=None, device=None, requires_grad=False'
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


new_empty, new_zeros, new_ones, new_full = (_new(create) for create in (empty, zeros, ones, full))

# --- one of two operators ---------------------------------------------------------------------------------------------


def _with_scalars(name, in_place=False):
    """f(tensor, tensor) and f(tensor, number)."""
    end = '_' if in_place else ''

    def function(input, other):
        if isinstance(other, Tensor):
            return op(name + end)(input, other)
        return op('%s_scalar%s' % (name, end))(input, other)

    function.__name__ = function.__qualname__ = name + end
    function.line = 'input, other'
    return function


def _with_alpha(name, in_place=False):
    """The same with input + alpha other."""
    plain = _with_scalars(name, in_place)

    def function(input, other, *, alpha=1):
        return plain(input, other if alpha == 1 else other * alpha)

    function.__name__ = function.__qualname__ = plain.__name__
    function.line = 'input, other, *, alpha=1'
    return function


def _rounded(in_place=False):
    end = '_' if in_place else ''

    def function(input, other, *, rounding_mode=None):
        if rounding_mode is None:
            return _with_scalars('div', in_place)(input, other)
        other = other if isinstance(other, Tensor) else full((), other, device=input.device)
        return op('div_mode' + end)(input, other, rounding_mode)

    function.__name__ = function.__qualname__ = 'div' + end
    function.line = 'input, other, *, rounding_mode=None'
    return function


add, add_, sub, sub_ = _with_alpha('add'), _with_alpha('add', True), _with_alpha('sub'), _with_alpha('sub', True)
subtract, subtract_ = sub, sub_
mul, mul_, div, div_ = _with_scalars('mul'), _with_scalars('mul', True), _rounded(), _rounded(True)
multiply, multiply_, true_divide, true_divide_, divide, divide_ = mul, mul_, div, div_, div, div_
pow_ = _with_scalars('pow', True)
floor_divide, floor_divide_ = _with_scalars('floor_divide'), _with_scalars('floor_divide', True)
remainder, remainder_ = _with_scalars('remainder'), _with_scalars('remainder', True)
fmod, fmod_ = _with_scalars('fmod'), _with_scalars('fmod', True)
eq, ne, lt, le, gt, ge = (_with_scalars(name) for name in ('eq', 'ne', 'lt', 'le', 'gt', 'ge'))
eq_, ne_, lt_, le_, gt_, ge_ = (_with_scalars(name, True) for name in ('eq', 'ne', 'lt', 'le', 'gt', 'ge'))
not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge
bitwise_and, bitwise_or, bitwise_xor = (_with_scalars('bitwise_' + name) for name in ('and', 'or', 'xor'))
bitwise_left_shift, bitwise_right_shift = _with_scalars('bitwise_left_shift'), _with_scalars('bitwise_right_shift')


def pow(input, exponent):
    """Of which one may be a number."""
    if not isinstance(input, Tensor):
        return op('rpow_scalar')(exponent, input)
    return op('pow')(input, exponent) if isinstance(exponent, Tensor) else op('pow_scalar')(input, exponent)


def rsub(input, other, *, alpha=1):
    return sub(other, input, alpha=alpha) if isinstance(other, Tensor) else op('rsub_scalar')(input * alpha, other)


def lerp(input, end, weight):
    return op('lerp_tensor' if isinstance(weight, Tensor) else 'lerp_scalar')(input, end, weight)


def clamp(input, min=None, max=None):
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        input = input if min is None else op('maximum')(input, _as_tensor(min, input))
        return input if max is None else op('minimum')(input, _as_tensor(max, input))
    if min is None and max is None:
        raise ValueError('clamp: at least one of min and max is needed')
    return op('clip')(input, min, max)


clip = clamp


def _as_tensor(value, like):
    return value if isinstance(value, Tensor) else full((), value, dtype=like.dtype, device=like.device)


def where(condition, input=None, other=None):
    """Elements of input where the condition holds, of other elsewhere; the condition alone: where it holds."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        input = full((), input, dtype='float32' if isinstance(input, float) or isinstance(other, float) else None,
                     device=condition.device)
    input = input if isinstance(input, Tensor) else _scalar_beside(input, other)
    other = other if isinstance(other, Tensor) else _scalar_beside(other, input)
    return op('where_tensors')(condition, input, other)


def _scalar_beside(value, tensor):
    """A number as a tensor that does not change the other's dtype, unless it is of a higher kind."""
    keeps = tensor.dtype.is_floating_point or not isinstance(value, float)
    return full((), value, dtype=tensor.dtype if keeps else 'float32', device=tensor.device)


def masked_fill(input, mask, value):
    return op('masked_fill_scalar')(input, mask, value)


def masked_fill_(input, mask, value):
    return op('masked_fill_scalar_')(input, mask, value)


def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    if reduce is not None:
        raise NotImplementedError("scatter: reduce: use scatter_reduce, whose 'sum' and 'prod' are add and multiply")
    if isinstance(src, Tensor):
        return op('scatter_tensor')(input, dim, index, src)
    return op('scatter_value')(input, dim, index, src if value is None else value)


def scatter_(input, dim, index, src=None, *, value=None):
    if isinstance(src, Tensor):
        return op('scatter_tensor_')(input, dim, index, src)
    return op('scatter_value_')(input, dim, index, src if value is None else value)


def fill_(input, value):
    checked(lib.kn_fill_with_(input._h, scalar(value)))
    return input


def zero_(input):
    checked(lib.kn_zero_(input._h))
    return input


def index_fill(input, dim, index, value):
    if isinstance(value, Tensor):
        return _ops.call('index_fill', input, index, value, dim=dim)
    return _ops.call('index_fill', input, index, dim=dim, value=value)


def index_fill_(input, dim, index, value):
    if isinstance(value, Tensor):
        return _ops.call('index_fill_', input, index, value, dim=dim)
    return _ops.call('index_fill_', input, index, dim=dim, value=value)


# --- reductions -------------------------------------------------------------------------------------------------------


def _extreme(name):
    def function(input, dim=None, keepdim=False, *, other=None):
        """The extreme of all elements; along `dim` (values, indices); of two tensors, elementwise."""
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            return op('maximum' if name == 'max' else 'minimum')(input, other)
        return op(name)(input) if dim is None else op(name + '_dim')(input, dim, keepdim)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, dim=None, keepdim=False, *, other=None'
    return function


max, min = _extreme('max'), _extreme('min')


def _median(name):
    def function(input, dim=None, keepdim=False):
        return op(name)(input) if dim is None else op(name + '_dim')(input, dim, keepdim)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, dim=None, keepdim=False'
    return function


median, nanmedian = _median('median'), _median('nanmedian')


def _position(name):
    def function(input, dim=None, keepdim=False):
        if dim is None:
            found = op(name)(input.reshape(-1), 0, False)
            return found.reshape((1,) * input.ndim) if keepdim else found
        return op(name)(input, dim, keepdim)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, dim=None, keepdim=False'
    return function


argmax, argmin = _position('argmax'), _position('argmin')


def _spread(name):
    def function(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
        if isinstance(dim, builtins.bool):  # var(unbiased)
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        return op(name + '_dims')(input, dim, keepdim, correction)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, dim=None, unbiased=None, keepdim=False, *, correction=None'
    return function


std, var = _spread('std'), _spread('var')


def var_mean(input, dim=None, keepdim=False, *, correction=1):
    return var(input, dim, keepdim=keepdim, correction=correction), op('mean')(input, dim, keepdim)


def std_mean(input, dim=None, keepdim=False, *, correction=1):
    return std(input, dim, keepdim=keepdim, correction=correction), op('mean')(input, dim, keepdim)


def aminmax(input, *, dim=None, keepdim=False):
    return op('amin')(input, dim, keepdim), op('amax')(input, dim, keepdim)


def softmax(input, dim=None, *, dtype=None):
    return op('softmax')(input, -1 if dim is None else dim, dtype=dtype)


def log_softmax(input, dim=None, *, dtype=None):
    return op('log_softmax')(input, -1 if dim is None else dim, dtype=dtype)


def quantile(input, q, dim=None, keepdim=False, *, interpolation='linear'):
    q = q if isinstance(q, Tensor) else _numbers(q, input)
    return _ops.call('quantile', input, q, dim=() if dim is None else dim, keepdim=keepdim, interpolation=interpolation)


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation='linear'):
    q = q if isinstance(q, Tensor) else _numbers(q, input)
    return _ops.call('nanquantile', input, q, dim=() if dim is None else dim, keepdim=keepdim,
                     interpolation=interpolation)


def _numbers(values, like):
    from ._tensor import tensor
    return tensor(values, like.dtype, like.device)


def _distinct(name):
    def function(input, return_inverse=False, return_counts=False, dim=None):
        """The distinct elements, with what was asked for."""
        values, inverse, counts = op(name + '_all')(input, dim)
        results = [values] + [inverse] * return_inverse + [counts] * return_counts
        return results[0] if len(results) == 1 else tuple(results)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, return_inverse=False, return_counts=False, dim=None'
    return function


_unique, unique_consecutive = _distinct('unique'), _distinct('unique_consecutive')


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    return _unique(input, return_inverse, return_counts, dim)


# --- into several -----------------------------------------------------------------------------------------------------


def _parts(count, call):
    """The tensors that call(array) writes; it returns a status, or with `count` a capacity how many they are."""
    array = ffi.new('kn_tensor *[]', builtins.max(count, 1))
    status = call(array)
    return status, array


def unbind(input, dim=0):
    count = input.size(dim)
    status, array = _parts(count, lambda parts: lib.kn_unbind(input._h, dim, parts))
    check(status)
    return tuple(wrap(array[i]) for i in range(count))


def split(input, split_size_or_sections, dim=0):
    size = split_size_or_sections
    if isinstance(size, int):
        count = -(-input.size(dim) // builtins.max(size, 1)) or 1
        found, array = _parts(count, lambda parts: lib.kn_split(input._h, size, dim, parts, count))
        if found == 0:
            checked(NULL)
        return tuple(wrap(array[i]) for i in range(found))
    size = list(size)
    status, array = _parts(len(size), lambda parts: lib.kn_split_with_sizes(input._h, size, len(size), dim, parts))
    check(status)
    return tuple(wrap(array[i]) for i in range(len(size)))


def chunk(input, chunks, dim=0):
    found, array = _parts(chunks, lambda parts: lib.kn_chunk(input._h, chunks, dim, parts))
    if found == 0:
        checked(NULL)
    return tuple(wrap(array[i]) for i in range(found))


def tensor_split(input, indices_or_sections, dim=0):
    where_ = indices_or_sections
    if isinstance(where_, int):
        count, call = where_, lambda parts: lib.kn_tensor_split(input._h, where_, dim, parts)
    else:
        where_ = list(where_)
        count = len(where_) + 1
        call = lambda parts: lib.kn_tensor_split_at(input._h, where_, count - 1, dim, parts)  # noqa: E731
    status, array = _parts(count, call)
    check(status)
    return tuple(wrap(array[i]) for i in range(count))


def broadcast_tensors(*tensors):
    status, array = _parts(len(tensors), lambda parts: lib.kn_broadcast_tensors([one._h for one in tensors],
                                                                                 len(tensors), parts))
    check(status)
    return tuple(wrap(array[i]) for i in range(len(tensors)))


def meshgrid(*tensors, indexing='ij'):
    tensors = shape_of(tensors) if not isinstance(tensors[0], Tensor) else tensors
    status, array = _parts(len(tensors), lambda parts: lib.kn_meshgrid([one._h for one in tensors], len(tensors),
                                                                        indexing == 'xy', parts))
    check(status)
    return tuple(wrap(array[i]) for i in range(len(tensors)))


def nonzero(input, *, as_tuple=False):
    if not as_tuple:
        return wrap(lib.kn_nonzero(input._h))
    status, array = _parts(input.ndim, lambda parts: lib.kn_nonzero_as_tuple(input._h, parts))
    check(status)
    return tuple(wrap(array[i]) for i in range(builtins.max(input.ndim, 1)))


# --- shapes -----------------------------------------------------------------------------------------------------------


def reshape(input, shape):
    return input.reshape(shape)


def permute(input, dims):
    return input.permute(dims)


def squeeze(input, dim=None):
    if dim is None:
        dim = [i for i, size in enumerate(input.shape) if size == 1]
    for one in sorted([dim] if isinstance(dim, int) else [i % builtins.max(input.ndim, 1) for i in dim], reverse=True):
        input = op('squeeze_dim')(input, one)
    return input


def movedim(input, source, destination):
    if isinstance(source, int):
        return wrap(lib.kn_movedim(input._h, source, destination))
    source, destination = [one % input.ndim for one in source], [one % input.ndim for one in destination]
    order = [i for i in range(input.ndim) if i not in source]
    for place, one in sorted(zip(destination, source)):
        order.insert(place, one)
    return input.permute(order)


moveaxis = movedim


def flip(input, dims):
    return op('flip')(input, dims)


def fliplr(input):
    return op('flip')(input, 1)


def flipud(input):
    return op('flip')(input, 0)


def rot90(input, k=1, dims=(0, 1)):
    return wrap(lib.kn_rot90(input._h, k, dims[0], dims[1]))


def broadcast_to(input, size):
    return input.expand(size)


def expand_as(input, other):
    return input.expand(other.shape)


def sum_to_size(input, *size):
    return wrap(lib.kn_sum_to_size(input._h, *sizes(shape_of(size))))


def unflatten(input, dim, sizes_):
    return wrap(lib.kn_unflatten(input._h, dim, *sizes(sizes_)))


def repeat_interleave(input, repeats, dim=None):
    if dim is None:
        input, dim = input.reshape(-1), 0
    if isinstance(repeats, Tensor):
        return wrap(lib.kn_repeat_interleave_each(input._h, repeats._h, dim))
    return wrap(lib.kn_repeat_interleave(input._h, repeats, dim))


def tile(input, dims):
    return input.tile(dims)


def hstack(tensors):
    tensors = [op('reshape_sizes')(one, (1,)) if one.ndim == 0 else one for one in tensors]
    return op('cat')(tensors, 0 if tensors[0].ndim == 1 else 1)


def vstack(tensors):
    return op('cat')([wrap(lib.kn_atleast_2d(one._h)) for one in tensors], 0)


# --- comparisons that Python asks -------------------------------------------------------------------------------------


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


# --- products ---------------------------------------------------------------------------------------------------------


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


# --- functions of the C interface that are called as they stand -------------------------------------------------------

C_FUNCTIONS = {
    'argwhere': ('kn_argwhere', 'input'),
    'atleast_1d': ('kn_atleast_1d', 'input'),
    'atleast_2d': ('kn_atleast_2d', 'input'),
    'atleast_3d': ('kn_atleast_3d', 'input'),
    'bernoulli': ('kn_bernoulli_with', 'input, *, generator=None'),
    'bilinear': ('kn_bilinear', 'input1, input2, weight, bias=None'),
    'bernoulli_': ('kn_bernoulli_with_', 'input, p=0.5, *, generator=None'),
    'cauchy_': ('kn_cauchy_with_', 'input, median=0.0, sigma=1.0, *, generator=None'),
    'chain_matmul': ('kn_chain_matmul', 'matrices'),
    'channel_shuffle': ('kn_channel_shuffle', 'input, groups'),
    'cholesky_solve': ('kn_cholesky_solve', 'B, L, upper=False'),
    'cumulative_trapezoid': ('kn_cumulative_trapezoid_with', 'y, x=None, *, dx=None, dim=-1'),
    'diag': ('kn_diag', 'input, diagonal=0'),
    'diag_embed': ('kn_diag_embed_with', 'input, offset=0, dim1=-2, dim2=-1'),
    'diagflat': ('kn_diagflat', 'input, offset=0'),
    'diff': ('kn_diff_with', 'input, n=1, dim=-1, prepend=None, append=None'),
    'dist': ('kn_dist', 'input, other, p=2'),
    'embedding_bag': ('kn_embedding_bag_with', 'input, weight, offsets=None, max_norm=None, norm_type=2.0, '
                      'scale_grad_by_freq=False, mode="mean", per_sample_weights=None, include_last_offset=False, '
                      'padding_idx=None'),
    'exponential_': ('kn_exponential_with_', 'input, lambd=1.0, *, generator=None'),
    'fill_diagonal_': ('kn_fill_diagonal_with_', 'input, fill_value, wrap=False'),
    'geometric_': ('kn_geometric_with_', 'input, p, *, generator=None'),
    'kron': ('kn_kron', 'input, other'),
    'log_normal_': ('kn_log_normal_with_', 'input, mean=1.0, std=2.0, *, generator=None'),
    'logdet': ('kn_logdet', 'input'),
    'lp_pool1d': ('kn_lp_pool1d_with', 'input, norm_type, kernel_size, stride=None, ceil_mode=False'),
    'lp_pool2d': ('kn_lp_pool2d_with', 'input, norm_type, kernel_size, stride=None, ceil_mode=False'),
    'lp_pool3d': ('kn_lp_pool3d_with', 'input, norm_type, kernel_size, stride=None, ceil_mode=False'),
    'masked_scatter': ('kn_masked_scatter', 'input, mask, source'),
    'masked_select': ('kn_masked_select', 'input, mask'),
    'matrix_power': ('kn_matrix_power', 'input, n'),
    'msort': ('kn_msort', 'input'),
    'multinomial': ('kn_multinomial_with', 'input, num_samples, replacement=False, *, generator=None'),
    'normal_': ('kn_normal_with_', 'input, mean=0.0, std=1.0, *, generator=None'),
    'one_hot': ('kn_one_hot', 'input, num_classes=-1'),
    'pixel_shuffle': ('kn_pixel_shuffle', 'input, upscale_factor'),
    'pixel_unshuffle': ('kn_pixel_unshuffle', 'input, downscale_factor'),
    'poisson': ('kn_poisson_with', 'input, *, generator=None'),
    'positive': ('kn_positive', 'input'),
    'ravel': ('kn_ravel', 'input'),
    'renorm': ('kn_renorm', 'input, p, dim, maxnorm'),
    'take_along_dim': ('kn_take_along_dim', 'input, indices, dim'),
    'trace': ('kn_trace', 'input'),
    'trapezoid': ('kn_trapezoid_with', 'y, x=None, *, dx=None, dim=-1'),
    'uniform_': ('kn_uniform_with_', 'input, low=0.0, high=1.0, *, generator=None'),
}
_IN_PLACE = [name for name in C_FUNCTIONS if name.endswith('_')]


def _in_place_function(name, c_name, line):
    """The C function returns its argument without a new reference."""
    from ._bind import Binding
    made = []

    def call(input, *arguments, **keywords):
        if not made:
            made.append(Binding(c_name, line))
        checked(made[0]((input, *arguments), keywords)[0])
        return input

    call.__name__ = call.__qualname__ = name
    call.line = line
    return call


for _name, (_c_name, _line) in C_FUNCTIONS.items():
    globals()[_name] = (_in_place_function if _name in _IN_PLACE else tensor_function)(_name, _c_name, _line)

# --- the namespaces ---------------------------------------------------------------------------------------------------

# Functions here that are also methods: those whose first argument is the tensor.
METHODS = frozenset('''
add add_ allclose aminmax argmax argmin argwhere atleast_1d atleast_2d atleast_3d bernoulli bernoulli_ bitwise_and
bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_to cauchy_ chunk clamp clip cumulative_trapezoid
diag diag_embed diagflat diff dist div div_ divide divide_ eq eq_ equal expand_as exponential_ fill_ fill_diagonal_
fliplr flipud floor_divide floor_divide_ fmod fmod_ ge ge_ geometric_ greater greater_equal gt gt_ index_fill
index_fill_ kron le le_ lerp less less_equal log_normal_ log_softmax logdet lt lt_ masked_fill masked_fill_
masked_scatter masked_select matrix_power max median min moveaxis movedim msort mul mul_ multinomial multiply multiply_
nanmedian nanquantile ne ne_ new_empty new_full new_ones new_zeros nonzero normal_ not_equal pow pow_ quantile ravel
remainder remainder_ renorm repeat_interleave rot90 rsub scatter scatter_ softmax split squeeze std sub sub_ subtract
subtract_ sum_to_size take_along_dim tensor_split tile trace true_divide true_divide_ unbind unflatten uniform_ unique
unique_consecutive var where zero_'''.split())

# Forms of operators that only this module uses.
_FORMS = frozenset(('lerp_tensor where_tensors masked_fill_scalar masked_fill_scalar_ scatter_tensor scatter_tensor_ '
                    'scatter_value scatter_value_ std_dims var_dims unique_all unique_consecutive_all squeeze_dim '
                    'reshape_sizes tensor_unfold').split())


def is_internal(name):
    return name in _FORMS


PUBLIC = [name for name, value in list(globals().items())
          if not name.startswith('_') and callable(value) and getattr(value, '__module__', '').startswith('koine')
          and name not in ('Tensor', 'options', 'wrap', 'op', 'tensor_function', 'check', 'checked', 'scalar',
                           'shape_of', 'sizes', 'is_internal')]
