"""vmap: a function of samples, applied to batches of them."""
import contextlib
import functools

from . import _ops, random
from ._c import KoineError, error, lib
from ._tensor import Tensor, wrap
from ._trees import like, rebuilt


def _bound(dims, value, given):
    """(tensor, dim) of each leaf of an argument, in order; dim None: not mapped over. `dims` is a number or None for
    all of them, or a tree like the argument. `given` names it for errors."""
    if dims is None or isinstance(dims, int):
        if isinstance(value, dict):
            return [one for part in value.values() for one in _bound(dims, part, given)]
        if isinstance(value, (list, tuple)):
            return [one for part in value for one in _bound(dims, part, given)]
        if dims is not None and not isinstance(value, Tensor):
            raise ValueError('vmap: in_dims has %d for %s, which is no tensor but %s: None leaves it as it is'
                             % (dims, given, type(value).__name__))
        return [(value, dims)]
    if type(dims) is not type(value) or len(dims) != len(value):
        raise ValueError('vmap: in_dims for %s does not have its structure' % given)
    pairs = [(dims[key], value[key]) for key in value] if isinstance(value, dict) else zip(dims, value)
    return [one for dim, part in pairs for one in _bound(dim, part, given)]


def _parts(result, dims):
    """(part, its out_dims) of a tree's node."""
    keys = list(result) if isinstance(result, dict) else range(len(result))
    many = isinstance(dims, (dict, list, tuple))
    if many and len(dims) != len(result):
        raise ValueError('vmap: out_dims has %d entries for %d results' % (len(dims), len(result)))
    return [(result[key], dims[key] if many else dims) for key in keys]


def _check_result(result):
    if not isinstance(result, Tensor):
        raise ValueError('vmap: the function must return tensors, not %s' % type(result).__name__)


def _joined(results, dims, how='stack'):
    """Several results as one, by out_dims: those of samples stacked, those of batches behind each other ('cat')."""
    first = results[0]
    if isinstance(first, (dict, list, tuple)):
        parts = zip(*([part for part, _ in _parts(one, dims)] for one in results))
        return rebuilt(first, [_joined(list(part), dim, how) for part, (_, dim) in zip(parts, _parts(first, dims))])
    _check_result(first)
    return first if dims is None else _ops.function(how)(results, dims)


def _batch_size(leaves):
    sizes = {tensor.size(dim) for tensor, dim in leaves if dim is not None}
    if len(sizes) != 1:
        raise ValueError('vmap: the dimensions that in_dims names have the sizes %s' % sorted(sizes) if sizes else
                         'vmap: in_dims names no dimension of any argument')
    size = sizes.pop()
    if size == 0:
        raise ValueError('vmap: the batch has no samples, so that nothing tells the shape of the results')
    return size


# --- all samples at once ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def batch(size):
    """Tensors inside can stand for `size` samples."""
    level = lib.kn_vmap_begin(size)
    if not level:
        raise error()
    try:
        yield
    finally:
        lib.kn_vmap_end(level)


def inside(tensor, dim=0):
    """Stands for the slices along dim."""
    return wrap(lib.kn_vmap_in(tensor._h, dim))


def outside(tensor, dim=0):
    """The whole batch."""
    return wrap(lib.kn_vmap_out(tensor._h, dim))


def of_each_sample(tensor):
    """Inside vmap the tensor as each sample's own, which has a gradient of its own."""
    return wrap(lib.kn_vmap_expand(tensor._h)) if lib.kn_vmap_level() else tensor


def _finished(result, dims):
    """The results of the batch, by out_dims."""
    if isinstance(result, (dict, list, tuple)):
        return rebuilt(result, [_finished(part, dim) for part, dim in _parts(result, dims)])
    _check_result(result)
    if dims is not None:
        return outside(result, dims)
    if lib.kn_vmap_level_of(result._h) == lib.kn_vmap_level():
        raise ValueError('vmap: out_dims is None for a result that differs between the samples')
    return result


def _at_once(func, leaves, arguments, keywords, size, out_dims):
    with batch(size):
        given = (value if dim is None else inside(value, dim) for value, dim in leaves)
        return _finished(func(*like(arguments, given), **keywords), out_dims)


# --- sample by sample -------------------------------------------------------------------------------------------------


def _one_by_one(func, leaves, arguments, keywords, size, out_dims, randomness):
    results, place = [], random.Place()
    for i in range(size):
        if randomness == 'same':
            place.go_back()
        chosen = (value if dim is None else value.select(dim, i) for value, dim in leaves)
        results.append(func(*like(arguments, chosen), **keywords))
        if randomness == 'error':
            _check_undrawn(place)
    return _joined(results, out_dims)


def _check_undrawn(place):
    if place.has_passed():
        raise RuntimeError("vmap: the function draws random numbers; randomness='different' or 'same' says which the "
                           'samples get')


def _mapped(func, leaves, arguments, keywords, out_dims, randomness):
    size, place = _batch_size(leaves), random.Place()
    try:
        results = _at_once(func, leaves, arguments, keywords, size, out_dims)
    except (KoineError, TypeError):  # a value is needed, as of a number, or a dimension too many; others come again
        results = None
    if results is not None:
        if randomness == 'error':
            _check_undrawn(place)
        if not place.has_passed():
            return results
    place.go_back()
    return _one_by_one(func, leaves, arguments, keywords, size, out_dims, randomness)


# --- vmap -------------------------------------------------------------------------------------------------------------


def _in_chunks(func, leaves, arguments, keywords, out_dims, randomness, chunk_size):
    results = []
    for start in range(0, _batch_size(leaves), chunk_size):
        some = [(value if dim is None else value.narrow(dim, start, min(chunk_size, value.size(dim) - start)), dim)
                for value, dim in leaves]
        results.append(_mapped(func, some, arguments, keywords, out_dims, randomness))
    return _joined(results, out_dims, 'cat')


def vmap(func, in_dims=0, out_dims=0, randomness='error', *, chunk_size=None):
    """A function that applies func to each sample of its arguments, which stand along the dimensions in_dims (None: all
    samples get the same), and stacks the results along out_dims. Positional arguments and results may be trees of
    tensors; keywords go to func as they are.

    func is called once, with tensors that stand for all samples, or where it needs their values, as of an if, or draws
    random numbers, once for each. randomness: 'different' or 'same' random numbers for all samples; 'error' refuses to
    draw any. chunk_size: so many samples at a time, which takes less memory."""
    if randomness not in ('error', 'different', 'same'):
        raise RuntimeError("vmap: randomness is 'error', 'different' or 'same', not %r" % (randomness,))
    if chunk_size is not None and chunk_size < 1:
        raise ValueError('vmap: chunk_size must be at least 1, not %r' % (chunk_size,))

    @functools.wraps(func, updated=())
    def mapped(*arguments, **keywords):
        dims = in_dims if isinstance(in_dims, (list, tuple)) else (in_dims,) * len(arguments)
        if len(dims) != len(arguments):
            raise ValueError('vmap: in_dims has %d entries for %d arguments' % (len(dims), len(arguments)))
        leaves = [leaf for i, one in enumerate(arguments) for leaf in _bound(dims[i], one, 'argument %d' % i)]
        given = (func, leaves, arguments, keywords, out_dims, randomness)
        return _mapped(*given) if chunk_size is None else _in_chunks(*given, chunk_size)

    return mapped
