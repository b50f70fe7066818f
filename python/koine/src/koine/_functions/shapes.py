"""Functions that change shapes, and those that split a tensor into several."""
from .. import _ops
from .._c import NULL, check, checked, ffi, lib, shape_of, sizes
from .._tensor import Tensor, composed, wrap

op = _ops.function

# --- into several -----------------------------------------------------------------------------------------------------


def _parts(count, call):
    """The tensors that call(array) writes; it returns a status, or with `count` a capacity how many they are."""
    array = ffi.new('kn_tensor *[]', max(count, 1))
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
        count = -(-input.size(dim) // max(size, 1)) or 1
        found, array = _parts(count, lambda parts: lib.kn_split(input._h, size, dim, parts, count))
        if found == 0:
            checked(NULL)
        return tuple(wrap(array[i]) for i in range(found))
    size = list(size)
    status, array = _parts(len(size), lambda parts: lib.kn_split_with_sizes(input._h, size, len(size), dim, parts))
    check(status)
    return tuple(wrap(array[i]) for i in range(len(size)))


def split_with_sizes(input, split_sizes, dim=0):
    return split(input, list(split_sizes), dim)


def chunk(input, chunks, dim=0):
    found, array = _parts(chunks, lambda parts: lib.kn_chunk(input._h, chunks, dim, parts))
    if found == 0:
        checked(NULL)
    return tuple(wrap(array[i]) for i in range(found))


unsafe_chunk, unsafe_split, unsafe_split_with_sizes = chunk, split, split_with_sizes


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


def _splitting(name, least, dim_of):
    """tensor_split along the dimension dim_of(ndim), of tensors with `least` dimensions or more."""

    def function(input, indices_or_sections):
        if input.ndim < least:
            raise ValueError('%s: a tensor of %d dimensions or more is needed, not of %d' % (name, least, input.ndim))
        dim = dim_of(input.ndim)
        if isinstance(indices_or_sections, int) and input.size(dim) % max(indices_or_sections, 1):
            raise ValueError('%s: %d elements along dimension %d make no %d equal parts'
                             % (name, input.size(dim), dim, indices_or_sections))
        return tensor_split(input, indices_or_sections, dim)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, indices_or_sections'
    return function


hsplit = _splitting('hsplit', 1, lambda ndim: 0 if ndim == 1 else 1)
vsplit, dsplit = _splitting('vsplit', 2, lambda ndim: 0), _splitting('dsplit', 3, lambda ndim: 2)


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
    return tuple(wrap(array[i]) for i in range(max(input.ndim, 1)))


# --- shapes -----------------------------------------------------------------------------------------------------------


def reshape(input, shape):
    return input.reshape(shape)


def permute(input, dims):
    return input.permute(dims)


def squeeze(input, dim=None):
    if dim is None:
        dim = [i for i, size in enumerate(input.shape) if size == 1]
    for one in sorted([dim] if isinstance(dim, int) else [i % max(input.ndim, 1) for i in dim], reverse=True):
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
    return composed(lib.kn_rot90, input._h, k, dims[0], dims[1])


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


row_stack = vstack


def block_diag(*tensors):
    """Matrices along the diagonal of one."""
    return wrap(lib.kn_block_diag([one._h for one in tensors], len(tensors)))


def cartesian_prod(*tensors):
    """All combinations of the elements of vectors, as rows."""
    return wrap(lib.kn_cartesian_prod([one._h for one in tensors], len(tensors)))
