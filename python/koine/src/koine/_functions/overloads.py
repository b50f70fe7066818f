"""Functions that are one of several operators, as PyTorch's overloads are: the arguments decide, most often whether the
other operand is a tensor or a number."""
from .. import _ops
from .._bind import in_place_function, tensor_function
from .._c import checked, lib, scalar
from .._formats import preserve_format, to_format
from .._tensor import Tensor
from .creation import empty, full
from .shapes import nonzero

op = _ops.function


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
not_equal_, less_, less_equal_, greater_, greater_equal_ = ne_, lt_, le_, gt_, ge_
bitwise_and, bitwise_or, bitwise_xor = (_with_scalars('bitwise_' + name) for name in ('and', 'or', 'xor'))
bitwise_left_shift, bitwise_right_shift = _with_scalars('bitwise_left_shift'), _with_scalars('bitwise_right_shift')


def _with_numbers(name):
    """f(tensor, tensor), of which one may be a number."""

    def function(input, other):
        if not isinstance(other, Tensor):
            other = _scalar_beside(other, input)
        return op(name)(input if isinstance(input, Tensor) else _scalar_beside(input, other), other)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, other'
    return function


xlogy, xlog1py, copysign = (_with_numbers(name) for name in ('xlogy', 'xlog1py', 'copysign'))
xlogy_, copysign_, float_power_ = (_with_numbers(name) for name in ('xlogy_', 'copysign_', 'float_power_'))
bitwise_and_, bitwise_or_, bitwise_xor_ = (_with_numbers('bitwise_%s_' % name) for name in ('and', 'or', 'xor'))
bitwise_left_shift_, bitwise_right_shift_ = (_with_numbers('bitwise_%s_shift_' % name) for name in ('left', 'right'))


def chain_matmul(*matrices):
    """The product of all, in the order that takes the fewest multiplications."""
    return _chain_matmul(matrices[0] if len(matrices) == 1 and not isinstance(matrices[0], Tensor) else matrices)


_chain_matmul = tensor_function('chain_matmul', 'kn_chain_matmul', 'matrices')


def pow(input, exponent):
    """Of which one may be a number."""
    if not isinstance(input, Tensor):
        return op('rpow_scalar')(exponent, input)
    return op('pow')(input, exponent) if isinstance(exponent, Tensor) else op('pow_scalar')(input, exponent)


def float_power(input, exponent):
    """pow in float64."""
    return pow(*(one.double() if isinstance(one, Tensor) else one for one in (input, exponent)))


def rsub(input, other, *, alpha=1):
    return sub(other, input, alpha=alpha) if isinstance(other, Tensor) else op('rsub_scalar')(input * alpha, other)


def lerp(input, end, weight):
    return op('lerp_tensor' if isinstance(weight, Tensor) else 'lerp_scalar')(input, end, weight)


def lerp_(input, end, weight):
    call = lib.kn_lerp_ if isinstance(weight, Tensor) else lib.kn_lerp_scalar_
    checked(call(input._h, end._h, weight._h if isinstance(weight, Tensor) else weight))
    return input


def normal(mean, std=1.0, size=None, *, generator=None, dtype=None, device=None):
    """Of tensors, which are broadcast; of numbers if `size` is given."""
    if size is not None:
        return _normal_(empty(size, dtype=dtype, device=device), mean, std, generator=generator)
    like = mean if isinstance(mean, Tensor) else std
    if not isinstance(like, Tensor):
        raise ValueError('normal: size is needed where mean and std are numbers')
    return _normal(_as_tensor(mean, like), _as_tensor(std, like), generator=generator)


_normal = tensor_function('normal', 'kn_normal_with', 'mean, std, *, generator=None')
_normal_ = in_place_function('normal_', 'kn_normal_with_', 'input, mean, std, *, generator=None')
_random_ = in_place_function('random_', 'kn_random_with_', 'input, low, high, *, generator=None')


def random_(input, from_=0, to=None, *, generator=None):
    """Whole numbers: random_(to) from 0, random_(from, to), without `to` itself."""
    low, high = (0, from_) if to is None else (from_, to)
    return _random_(input, low, high, generator=generator)


def clone(input, *, memory_format=preserve_format):
    made = to_format(input, memory_format)
    return op('clone')(input) if made is input else made


def clamp(input, min=None, max=None):
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        input = input if min is None else op('maximum')(input, _as_tensor(min, input))
        return input if max is None else op('minimum')(input, _as_tensor(max, input))
    if min is None and max is None:
        raise ValueError('clamp: at least one of min and max is needed')
    return op('clip')(input, min, max)


def clamp_(input, min=None, max=None):
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return input.copy_(clamp(input.clone(), min, max))  # the backward pass needs what was there
    return op('clamp_')(input, min, max)


def clamp_min(input, min):
    return clamp(input, min)


def clamp_max(input, max):
    return clamp(input, None, max)


def clamp_min_(input, min):
    return clamp_(input, min)


def clamp_max_(input, max):
    return clamp_(input, None, max)


clip, clip_ = clamp, clamp_


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
    if isinstance(value, Tensor) and value.requires_grad:
        return op('where_tensors')(mask, value.to(input.dtype), input)
    return op('masked_fill_scalar')(input, mask, value)


def masked_fill_(input, mask, value):
    if isinstance(value, Tensor) and value.requires_grad:
        return input.copy_(masked_fill(input, mask, value))
    return op('masked_fill_scalar_')(input, mask, value)


def _scatter(suffix, input, dim, index, src, reduce):
    if reduce is not None:
        if reduce not in ('add', 'multiply'):
            raise ValueError("scatter: reduce must be 'add' or 'multiply', not %r; scatter_reduce has more" % (reduce,))
        if not isinstance(src, Tensor):
            src = full(tuple(index.shape), src, dtype=input.dtype, device=input.device)
        return op('scatter_reduce' + suffix)(input, dim, index, src, 'sum' if reduce == 'add' else 'prod')
    return op(('scatter_tensor' if isinstance(src, Tensor) else 'scatter_value') + suffix)(input, dim, index, src)


def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    return _scatter('', input, dim, index, src if value is None else value, reduce)


def scatter_(input, dim, index, src=None, *, value=None, reduce=None):
    return _scatter('_', input, dim, index, src if value is None else value, reduce)


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


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction='mean',
                         ignore_index=None, label_smoothing=0.0, options=None):
    """cross_entropy(linear(input, linear_weight, linear_bias), target, ...); with nn.LinearCrossEntropyOptions in
    chunks of rows."""
    return op('linear_cross_entropy')(
        input, linear_weight, target, linear_bias, weight, ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing, reduction=reduction,
        chunk_size=0 if options is None else options.rows(input, linear_weight))
