"""grad and backward."""
import warnings

from .._c import NULL, check, ffi, lib
from .._functions import zeros_like
from .._ops import function
from .._tensor import Tensor, wrap


def _list(values):
    """Of a tensor, or of several, also those of module.parameters()."""
    return [] if values is None else [values] if isinstance(values, Tensor) else list(values)


def _weights(function, given, outputs):
    """What the outputs' gradients are multiplied by: None, where none is given, is 1."""
    weights = _list(given) or [None] * len(outputs)
    if len(weights) != len(outputs):
        raise ValueError('%s: there are %d gradients for %d outputs: give one, or None, for each'
                         % (function, len(weights), len(outputs)))
    return weights


def _gradients(outputs, inputs, weights, retain_graph, create_graph, allow_unused):
    found = ffi.new('kn_tensor *[]', max(len(inputs), 1))
    params = ffi.new('kn_autograd_grad_params *', lib.kn_autograd_grad_params_init())
    weight_list = ffi.new('kn_tensor *[]', [NULL if one is None else one._h for one in weights] or [NULL])
    params.grad_outputs = weight_list
    params.retain_graph = create_graph if retain_graph is None else retain_graph
    params.create_graph, params.allow_unused = create_graph, allow_unused
    check(lib.kn_autograd_grad_with([one._h for one in outputs], len(outputs), [one._h for one in inputs], len(inputs),
                                    found, params))
    return tuple(wrap(one) if one else None for one in found[0:len(inputs)])


def _batch_size(weights):
    sizes = {len(one) for one in weights if one is not None}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError('grad: with is_grads_batched grad_outputs has batches of one size, at least 1, not %s'
                         % (sorted(sizes) or None))
    return sizes.pop()


def _of_batch(outputs, inputs, weights, retain_graph, create_graph, allow_unused):
    """A backward pass for each row of the weights."""
    size, keeps = _batch_size(weights), create_graph if retain_graph is None else retain_graph
    rows = [_gradients(outputs, inputs, [None if one is None else one[i] for one in weights],
                       keeps or i < size - 1, create_graph, allow_unused) for i in range(size)]
    return tuple(None if parts[0] is None else function('stack')(list(parts)) for parts in zip(*rows))


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """The gradients of outputs with respect to inputs, a tuple; changes no `grad`. An input that the outputs do not
    depend on is an error, with allow_unused None, with materialize_grads zeros. is_grads_batched: grad_outputs has a
    further dimension 0, and so have the gradients: one for each of its slices."""
    if not only_inputs:
        warnings.warn('grad: only_inputs=False has no effect: koine.autograd.backward adds the gradients of all leaves',
                      FutureWarning, stacklevel=2)
    if materialize_grads and allow_unused is not None and not allow_unused:
        raise ValueError('grad: materialize_grads=True allows unused inputs: leave out allow_unused=False')
    outputs, inputs = _list(outputs), _list(inputs)
    weights = _weights('grad', grad_outputs, outputs)
    found = (_of_batch if is_grads_batched else _gradients)(
        outputs, inputs, weights, retain_graph, create_graph,
        bool(materialize_grads if allow_unused is None else allow_unused))
    if materialize_grads:
        rows = (_batch_size(weights),) if is_grads_batched else ()
        found = tuple(zeros_like(one).expand(*rows, *one.shape) if gradient is None else gradient
                      for one, gradient in zip(inputs, found))
    return found


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, *, inputs=None):
    """Adds the gradients of all of them to the `grad` of the leaves, or only of `inputs`, whose hooks after
    accumulation do not run. With create_graph, which needs `inputs`, the sums have gradients themselves."""
    tensors = _list(tensors)
    weights = _weights('backward', grad_tensors, tensors)
    if inputs is not None:
        _add(tensors, _list(inputs), weights, retain_graph, create_graph)
        return
    if create_graph:
        raise NotImplementedError('backward: create_graph needs inputs=..., the leaves whose grad is wanted')
    for i, one in enumerate(tensors):  # what they have in common is kept until the last
        one.backward(weights[i], retain_graph or i + 1 < len(tensors))


def _add(tensors, inputs, weights, retain_graph, create_graph):
    if not inputs:
        raise ValueError('backward: inputs is empty: leave it out for all leaves')
    found = _gradients(tensors, inputs, weights, retain_graph, create_graph, True)
    recording = lib.kn_set_grad_enabled(create_graph)
    try:
        for one, gradient in zip(inputs, found):
            one.retain_grad()
            if gradient is None:
                continue
            if one.grad is None:
                one.grad = gradient.clone()  # several inputs may have got the same tensor
            elif create_graph:
                one.grad = one.grad + gradient
            else:
                one.grad += gradient
    finally:
        lib.kn_set_grad_enabled(recording)
