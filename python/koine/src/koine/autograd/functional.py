"""Products with derivatives of functions, and the derivatives: torch.autograd.functional.

A function takes tensors and returns a tensor or a tuple of tensors. Arguments and results that are tuples have tuples
of derivatives. With `strict` a result that does not depend on an input is an error, else its derivative is zero."""
from .. import _functions, _ops
from .._c import lib
from .._tensor import Tensor
from .._vmap import of_each_sample
from ._gradients import grad

# --- arguments and results --------------------------------------------------------------------------------------------


def _tuple(values, what):
    """(was it a tuple?, the tuple of tensors)."""
    is_tuple = isinstance(values, (tuple, list))
    values = tuple(values) if is_tuple else (values,)
    for one in values:
        if not isinstance(one, Tensor):
            raise TypeError('%s must be a tensor or a tuple of tensors, not %s%s'
                            % (what, 'a tuple with ' if is_tuple else '', type(one).__name__))
    return is_tuple, values


class _Call:
    """A call of the user's function with inputs whose gradients are not those of the user's tensors."""

    def __init__(self, name, func, inputs, create_graph, strict, of='output'):
        self.name, self.create_graph, self.strict, self.of = name, create_graph, strict, of
        self.is_tuple, given = _tuple(inputs, name + ': inputs')
        self.inputs = tuple(one.clone() if create_graph and one.requires_grad else one.detach().requires_grad_()
                            for one in map(of_each_sample, given))
        self.several_outputs, self.outputs = _tuple(func(*self.inputs), name + ': the result of the function')
        for i, one in enumerate(self.outputs):
            if strict and not one.requires_grad:
                raise RuntimeError('%s: %s %d of the function depends on no input, which strict=True does not allow'
                                   % (name, of, i))

    def single(self):
        """The output, for functions whose gradient has the shape of the inputs."""
        if self.several_outputs or self.outputs[0].numel() != 1:
            raise RuntimeError('%s: the function must return a tensor of one element' % self.name)
        return self.outputs[0]

    def weights(self, v, like, of):
        """The tensors to multiply with; ones if none are given for a single element."""
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise RuntimeError('%s: v is needed, unless the %s is a tensor of one element' % (self.name, of))
            return (_functions.ones_like(like[0]),)
        _, v = _tuple(v, self.name + ': v')
        if [one.shape for one in v] != [one.shape for one in like]:
            raise RuntimeError('%s: v has the shapes %s, but the %ss have %s'
                               % (self.name, [one.shape for one in v], of, [one.shape for one in like]))
        return v

    def gradients(self, outputs, weights, inputs, create_graph=True, of=None):
        """With zeros, or an error if strict, where there are none."""
        pairs = [(one, weight) for one, weight in zip(outputs, weights) if one is not None and one.requires_grad]
        found = (None,) * len(inputs)
        if pairs:
            found = grad([one for one, _ in pairs], inputs, [weight for _, weight in pairs], retain_graph=True,
                         create_graph=create_graph, allow_unused=True)
        for i, one in enumerate(found):
            if one is None and self.strict:
                raise RuntimeError('%s: the %s of the function does not depend on input %d, which strict=True does '
                                   'not allow' % (self.name, of or self.of, i))
        return tuple(_functions.zeros_like(like) if one is None else one for one, like in zip(found, inputs))

    def result(self, values, is_tuple):
        values = values if self.create_graph else tuple(one.detach() for one in values)
        return values if is_tuple else values[0]

    def derivative(self, values, is_tuple):
        for i, one in enumerate(values):
            if self.strict and self.create_graph and not one.requires_grad:
                raise RuntimeError('%s: derivative %d is constant, which strict=True does not allow with '
                                   'create_graph=True' % (self.name, i))
        return self.result(values, is_tuple)

    def results(self, values, is_tuple):
        """(what the function returned, the derivative)."""
        return self.result(self.outputs, self.several_outputs), self.derivative(values, is_tuple)


def _recorded(function):
    """Runs with recording on, also inside no_grad."""
    def call(*arguments):
        before = lib.kn_set_grad_enabled(True)
        try:
            return function(*arguments)
        finally:
            lib.kn_set_grad_enabled(before)

    return call


# --- products ---------------------------------------------------------------------------------------------------------


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the product of v and the Jacobian). v has the shapes of the outputs."""
    return _vjp(func, inputs, v, create_graph, strict)


@_recorded
def _vjp(func, inputs, v, create_graph, strict):
    call = _Call('vjp', func, inputs, create_graph, strict)
    weights = call.weights(v, call.outputs, 'output')
    return call.results(call.gradients(call.outputs, weights, call.inputs, create_graph=create_graph), call.is_tuple)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the product of the Jacobian and v). v has the shapes of the inputs. Every operation of the
    function must be twice differentiable."""
    return _jvp(func, inputs, v, create_graph, strict)


@_recorded
def _jvp(func, inputs, v, create_graph, strict):
    call = _Call('jvp', func, inputs, create_graph, strict)
    v = call.weights(v, call.inputs, 'input')
    # The gradient u J is linear in u, whatever u is, and its derivative with respect to u in the direction v is J v.
    u = tuple(_functions.zeros_like(one, requires_grad=True) for one in call.outputs)
    products = call.gradients(call.outputs, u, call.inputs)
    return call.results(call.gradients(products, v, u, create_graph=create_graph), call.several_outputs)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the product of v and the Hessian) of a function that returns one element. v has the shapes of
    the inputs."""
    return _hessian_product('vhp', func, inputs, v, create_graph, strict)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The product of the Hessian and v, which is that of v and the Hessian: it is symmetric."""
    return _hessian_product('hvp', func, inputs, v, create_graph, strict)


@_recorded
def _hessian_product(name, func, inputs, v, create_graph, strict):
    call = _Call(name, func, inputs, create_graph, strict)
    v = call.weights(v, call.inputs, 'input')
    slopes = call.gradients([call.single()], [_functions.ones_like(call.outputs[0])], call.inputs)
    return call.results(call.gradients(slopes, v, call.inputs, create_graph, 'gradient'), call.is_tuple)


# --- whole matrices ---------------------------------------------------------------------------------------------------


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy='reverse-mode'):
    """The derivative of each element of each output with respect to each input: of the shape of the output followed by
    that of the input; for tuples a tuple for the outputs of tuples for the inputs. `vectorize` and `strategy`, which
    change no result, are accepted and have no effect."""
    return _jacobian('jacobian', func, inputs, create_graph, strict, 'output')


@_recorded
def _jacobian(name, func, inputs, create_graph, strict, of):
    call = _Call(name, func, inputs, create_graph, strict, of)
    of_outputs = []
    for output in call.outputs:
        rows = [call.gradients([output], [one], call.inputs, create_graph=create_graph) for one in _units(output)]
        parts = tuple(_stacked([row[i] for row in rows], output, one) for i, one in enumerate(call.inputs))
        of_outputs.append(call.derivative(parts, call.is_tuple))
    return tuple(of_outputs) if call.several_outputs else of_outputs[0]


def _units(like):
    """Tensors of which one element is 1."""
    count = like.numel()
    units = _functions.eye(count, dtype=like.dtype, device=like.device)
    return units.reshape(count, *like.shape).unbind(0)


def _stacked(rows, output, input):
    shape = output.shape + input.shape
    if not rows:
        return _functions.zeros(shape, dtype=input.dtype, device=input.device)
    return _ops.function('stack')(rows).reshape(shape)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy='reverse-mode'):
    """The second derivatives of a function that returns one element: the Jacobian of its gradient. `vectorize` and the
    strategy have no effect."""
    def slopes(*values):
        call = _Call('hessian', func, values, True, strict)
        found = call.gradients([call.single()], [_functions.ones_like(call.outputs[0])], call.inputs)
        return found if is_tuple else found[0]

    is_tuple, _ = _tuple(inputs, 'hessian: inputs')
    return _jacobian('hessian', slopes, inputs, create_graph, strict, 'gradient')
