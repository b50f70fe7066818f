"""torch.func: functions that return derivatives of functions, and functional_call. Arguments and results are tensors,
and dicts, lists and tuples of them.

The derivatives are those of koine.autograd.functional. They have gradients themselves with respect to arguments that
require one, and where one of these functions is applied inside another."""
import threading

from . import _functions, _ops, random
from ._c import KoineError
from ._tensor import Tensor
from ._trees import like
from ._vmap import batch, inside, of_each_sample, outside, vmap  # noqa: F401
from .autograd import enable_grad, is_grad_enabled
from .autograd.functional import _Call
from .nn._functional_call import functional_call  # noqa: F401

_calls = threading.local()  # .depth: in how many functions that are differentiated

# --- trees of tensors -------------------------------------------------------------------------------------------------


def _leaves(value, what):
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        raise TypeError('%s must be tensors, or dicts, lists and tuples of them, not %s' % (what, type(value).__name__))
    return [leaf for one in value for leaf in _leaves(one, what)]


# --- calls ------------------------------------------------------------------------------------------------------------


class _Derived:
    """A call of a function, with the inputs that the derivatives are of: `tree` of arguments."""

    def __init__(self, name, func, arguments, keywords, argnums, has_aux, is_nested):
        self.name, self.func, self.keywords, self.has_aux = name, func, keywords, has_aux
        self.arguments, self.aux = arguments, None
        self.argnums = self._numbers(argnums)
        self.tree = tuple(arguments[i] for i in self.argnums)
        leaves = _leaves(self.tree, '%s: the arguments' % name)
        self.create_graph = is_nested or any(one.requires_grad for one in leaves)
        self.call = _Call(name, self._flat, tuple(leaves), self.create_graph, False)

    def _numbers(self, argnums):
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        count = len(self.arguments)
        for one in numbers:
            if not -count <= one < count:
                raise ValueError('%s: argnums has %d; the function is called with %d arguments'
                                 % (self.name, one, count))
        return [one % count for one in numbers]

    def _flat(self, *leaves):
        given = list(self.arguments)
        for i, one in zip(self.argnums, like(self.tree, iter(leaves))):
            given[i] = one
        _calls.depth = getattr(_calls, 'depth', 0) + 1
        try:
            self.output = self.func(*given, **self.keywords)
        finally:
            _calls.depth -= 1
        if self.has_aux:
            if not isinstance(self.output, tuple) or len(self.output) != 2:
                raise RuntimeError('%s: with has_aux=True the function returns (output, aux)' % self.name)
            self.output, self.aux = self.output
        return tuple(_leaves(self.output, '%s: results' % self.name))

    def value(self):
        """What the function returned."""
        return like(self.output, iter(self.call.result(self.call.outputs, True)))

    def again(self, inputs):
        """The outputs for other values of the inputs."""
        before = self.output, self.aux
        outputs = self._flat(*inputs)
        self.output, self.aux = before
        return outputs

    def gradients(self, weights, create_graph=None):
        create_graph = self.create_graph if create_graph is None else create_graph
        return self.call.gradients(self.call.outputs, weights, self.call.inputs, create_graph)

    def of_arguments(self, leaves, argnums):
        """Of each argument, or of the only one."""
        found = like(self.tree, iter(leaves))
        return found[0] if isinstance(argnums, int) else found

    def finished(self, leaves):
        return leaves if self.create_graph else [one.detach() for one in leaves]


def _derived(name, func, arguments, keywords, argnums=0, has_aux=False):
    is_nested = getattr(_calls, 'depth', 0) > 0 and is_grad_enabled()
    with enable_grad():
        return _Derived(name, func, arguments, keywords, argnums, has_aux, is_nested)


def _with_aux(results, call):
    return (*results, call.aux) if call.has_aux else results if len(results) > 1 else results[0]


# --- functions --------------------------------------------------------------------------------------------------------


def grad(func, argnums=0, has_aux=False):
    """A function that returns the gradient of func, which returns one element, with respect to its arguments of these
    numbers; with has_aux func returns (output, aux), and the new one (gradient, aux)."""
    def gradient(*arguments, **keywords):
        found, value = both(*arguments, **keywords)
        return (found, value[1]) if has_aux else found

    both = _grad_and_value('grad', func, argnums, has_aux)
    return gradient


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that returns (gradient, func's output); with has_aux (gradient, (output, aux))."""
    return _grad_and_value('grad_and_value', func, argnums, has_aux)


def _grad_and_value(name, func, argnums, has_aux):
    def gradient(*arguments, **keywords):
        call = _derived(name, func, arguments, keywords, argnums, has_aux)
        if not isinstance(call.output, Tensor) or call.output.numel() != 1:
            raise RuntimeError('%s: the function must return a tensor of one element' % name)
        with enable_grad():
            leaves = call.finished(call.gradients([_functions.ones_like(call.output)]))
        value = call.value()
        return call.of_arguments(leaves, argnums), (value, call.aux) if has_aux else value

    return gradient


def vjp(func, *primals, has_aux=False):
    """(func(*primals), a function of what the output's elements are weighted with, which returns the gradients of all
    primals); with has_aux aux is the third."""
    def product(cotangents):
        weights = _leaves(cotangents, 'vjp: the weights')
        if [one.shape for one in weights] != [one.shape for one in call.call.outputs]:
            raise RuntimeError('vjp: the weights have the shapes %s, but the outputs have %s' % (
                [one.shape for one in weights], [one.shape for one in call.call.outputs]))
        nested = getattr(_calls, 'depth', 0) > 0 or any(one.requires_grad for one in weights)
        create_graph = call.create_graph or nested
        with enable_grad():
            leaves = call.gradients(weights, create_graph)
        leaves = leaves if create_graph else [one.detach() for one in leaves]
        return like(call.tree, iter(leaves))

    call = _derived('vjp', func, primals, {}, tuple(range(len(primals))), has_aux)
    return _with_aux((call.value(), product), call)


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(func(*primals), the derivative in the direction of the tangents), by two backward passes."""
    call = _derived('jvp', func, tuple(primals), {}, tuple(range(len(primals))), has_aux)
    directions = _leaves(tuple(tangents), 'jvp: tangents')
    if [one.shape for one in directions] != [one.shape for one in call.call.inputs]:
        raise RuntimeError('jvp: tangents have the shapes %s, but the primals have %s' % (
            [one.shape for one in directions], [one.shape for one in call.call.inputs]))
    with enable_grad():
        # As in autograd.functional: the gradient is linear in the weights u.
        u = tuple(_functions.zeros_like(one, requires_grad=True) for one in call.call.outputs)
        products = call.gradients(u, True)
        leaves = call.finished(call.call.gradients(products, directions, u, call.create_graph))
    return _with_aux((call.value(), like(call.output, iter(leaves))), call)


def _rows_at_once(call, number, units):
    """The gradients of elements of an output, each weighted with one of the units [rows, sizes of the output...]: the
    function is called again for as many samples, which have the same values and gradients of their own."""
    place = random.Place()
    with batch(units.size(0)):
        inputs = [of_each_sample(one if one.requires_grad and call.create_graph else one.detach().requires_grad_())
                  for one in call.call.inputs]
        output = call.again(inputs)[number]
        rows = call.call.gradients([output], [inside(units)], inputs, call.create_graph)
        rows = [outside(row) for row in rows]
    if place.has_passed():  # other values than before
        place.go_back()
        return None
    return rows


def _rows_one_by_one(call, number, units):
    output, inputs = call.call.outputs[number], call.call.inputs
    rows = [call.call.gradients([output], [one], inputs, call.create_graph) for one in units.unbind(0)]
    return [_ops.function('stack')([row[i] for row in rows]) for i in range(len(inputs))]


def _rows(call, number, chunk_size):
    """The derivatives of an output with respect to each input."""
    output, parts = call.call.outputs[number], []
    units = _functions.eye(output.numel(), dtype=output.dtype, device=output.device).reshape(-1, *output.shape)
    for some in units.split(chunk_size or max(output.numel(), 1)):
        try:
            parts.append(_rows_at_once(call, number, some) or _rows_one_by_one(call, number, some))
        except KoineError:  # the function needs values
            parts.append(_rows_one_by_one(call, number, some))
    return [_ops.function('cat')(rows).reshape(*output.shape, *one.shape) for rows, one in zip(zip(*parts),
                                                                                               call.call.inputs)]


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """A function that returns the derivative of each element of func's output with respect to each of the arguments: of
    the shape of the output followed by that of the argument. func is called twice, the second time by vmap for all
    elements at once, or for chunk_size of them, which takes less memory."""
    def jacobian(*arguments, **keywords):
        call = _derived('jacrev', func, arguments, keywords, argnums, has_aux)
        with enable_grad():
            found = [call.of_arguments(call.finished(_rows(call, i, chunk_size)), argnums)
                     for i in range(len(call.call.outputs))]
        return _with_aux((like(call.output, iter(found)),), call)

    return jacobian


def jacfwd(func, argnums=0, has_aux=False, *, randomness='error'):
    """The same as jacrev, also in how it computes."""
    return jacrev(func, argnums, has_aux=has_aux)


def hessian(func, argnums=0):
    """A function that returns the second derivatives: the Jacobian of the Jacobian."""
    return jacrev(jacrev(func, argnums), argnums)


def stack_module_state(models):
    """(parameters, buffers) of modules of one architecture, by name, each stacked along a new dimension 0: what
    vmap over functional_call takes. The parameters are leaves."""
    models = list(models)
    if not models:
        raise RuntimeError('stack_module_state: there are no modules')
    if any(type(one) is not type(models[0]) for one in models):
        raise RuntimeError('stack_module_state: the modules are of different classes')
    if len({one.training for one in models}) > 1:
        raise RuntimeError('stack_module_state: some modules are in training mode, others not')

    def stacked(states, requires_grad):
        return {name: _ops.function('stack')([one[name].detach() for one in states]).requires_grad_(
            requires_grad and states[0][name].requires_grad) for name in states[0]}

    return (stacked([dict(one.named_parameters()) for one in models], True),
            stacked([dict(one.named_buffers()) for one in models], False))
