"""vmap: a function of samples, applied to batches of them."""
import functools

from . import _ops, random
from ._tensor import Tensor
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


def _joined(results, dims):
    """The results of all samples as one, by out_dims."""
    first = results[0]
    if isinstance(first, (dict, list, tuple)):
        keys = list(first) if isinstance(first, dict) else range(len(first))
        many = isinstance(dims, (dict, list, tuple))
        if many and len(dims) != len(first):
            raise ValueError('vmap: out_dims has %d entries for %d results' % (len(dims), len(first)))
        parts = [_joined([one[key] for one in results], dims[key] if many else dims) for key in keys]
        return rebuilt(first, parts)
    if not isinstance(first, Tensor):
        raise ValueError('vmap: the function must return tensors, not %s' % type(first).__name__)
    return first if dims is None else _ops.function('stack')(results, dims)


def _batch_size(leaves):
    sizes = {tensor.size(dim) for tensor, dim in leaves if dim is not None}
    if len(sizes) != 1:
        raise ValueError('vmap: the dimensions that in_dims names have the sizes %s' % sorted(sizes) if sizes else
                         'vmap: in_dims names no dimension of any argument')
    size = sizes.pop()
    if size == 0:
        raise ValueError('vmap: the batch has no samples, so that nothing tells the shape of the results')
    return size


def vmap(func, in_dims=0, out_dims=0, randomness='error', *, chunk_size=None):
    """A function that applies func to each sample of its arguments, which stand along the dimensions in_dims (None: all
    samples get the same), and stacks the results along out_dims. Positional arguments and results may be trees of
    tensors; keywords go to func as they are. func is called once per sample. randomness: 'different' or 'same' random
    numbers for all samples; 'error' refuses to draw any. chunk_size has no effect."""
    if randomness not in ('error', 'different', 'same'):
        raise RuntimeError("vmap: randomness is 'error', 'different' or 'same', not %r" % (randomness,))

    @functools.wraps(func, updated=())
    def mapped(*arguments, **keywords):
        dims = in_dims if isinstance(in_dims, (list, tuple)) else (in_dims,) * len(arguments)
        if len(dims) != len(arguments):
            raise ValueError('vmap: in_dims has %d entries for %d arguments' % (len(dims), len(arguments)))
        leaves = [leaf for i, one in enumerate(arguments) for leaf in _bound(dims[i], one, 'argument %d' % i)]
        results, start = [], random.get_rng_state()
        for i in range(_batch_size(leaves)):
            if randomness == 'same':
                random.set_rng_state(start)
            chosen = (value if dim is None else value.select(dim, i) for value, dim in leaves)
            results.append(func(*like(arguments, chosen), **keywords))
            if randomness == 'error' and random.get_rng_state().tolist() != start.tolist():
                raise RuntimeError("vmap: the function draws random numbers; randomness='different' or 'same' says "
                                   'which the samples get')
        return _joined(results, out_dims)

    return mapped
