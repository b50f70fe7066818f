"""torch.koine.make_graphed_callables, as torch.cuda's: the passes of a function or module become graphs, and the
program around them runs operator by operator."""
import torch
from torch.utils import _pytree as pytree

from .graphs import graph, graph_pool_handle, KoineGraph


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """Graphed versions of a function or module, or of a tuple of them in the order in which they will run.

    `sample_args`: tensors with the sizes, dtypes and `requires_grad` of every call's, for a tuple of callables a tuple
    for each. Modules are changed and returned; in the other one of train() and eval() they run as before. Results stay
    valid until the next call, as gradients other than a parameter's .grad; a backward pass must come before it."""
    if torch.is_autocast_enabled('koine') and torch.is_autocast_cache_enabled():
        raise RuntimeError('make_graphed_callables: weights that autocast keeps would be recorded; use '
                           "torch.autocast('koine', cache_enabled=False)")
    is_one = not isinstance(callables, tuple)
    if is_one:
        callables, sample_args = (callables,), (sample_args,)
    passes = []
    for function, arguments in zip(callables, sample_args, strict=True):
        passes.append(_Passes(function, arguments, passes))
    for one in passes:
        one.warm_up(num_warmup_iters, allow_unused_input)
    torch.koine.synchronize()
    pool = pool or graph_pool_handle()  # one memory, so captured in the order in which they run
    for one in passes:
        one.capture_forward(pool)
    for one in reversed(passes):
        one.capture_backward(pool, allow_unused_input)
    graphed = tuple(one.graphed() for one in passes)
    return graphed[0] if is_one else graphed


class _Passes:
    """A callable's two graphs. `inputs`: its arguments' copies, which the graphs read, and its parameters. `group`: all
    that share memory."""

    def __init__(self, function, arguments, group):
        self.function, self.group = function, group
        self.is_module = isinstance(function, torch.nn.Module)
        if self.is_module and (function._forward_hooks or function._forward_pre_hooks or function._backward_hooks):
            raise RuntimeError('make_graphed_callables: register the hooks of a module after it')
        if self.is_module and any(buffer.requires_grad for buffer in function.buffers()):
            raise RuntimeError('make_graphed_callables: only parameters of a module may require gradients, not buffers')
        leaves, self.structure = pytree.tree_flatten(tuple(arguments))
        if not all(isinstance(leaf, torch.Tensor) and leaf.is_koine for leaf in leaves):
            raise RuntimeError('make_graphed_callables: the arguments must be tensors on the device koine')
        self.arguments = [leaf.detach().clone().requires_grad_(leaf.requires_grad) for leaf in leaves]
        self.parameters = tuple(function.parameters()) if self.is_module else ()
        self.inputs = tuple(self.arguments) + self.parameters
        self.differentiated = [one for one in self.inputs if one.requires_grad]
        self.forward, self.backward = KoineGraph(), KoineGraph()
        self.calls = 0
        self.has_given_gradients = False

    # --- recording ----------------------------------------------------------------------------------------------------

    def run(self):
        return pytree.tree_flatten(self.function(*pytree.tree_unflatten(self.arguments, self.structure)))

    def differentiate(self, results, gradients, allow_unused):
        ends = [one for one in results if one.requires_grad]
        if not ends or not self.differentiated:
            return iter(())
        return iter(torch.autograd.grad(ends, self.differentiated, gradients, allow_unused=allow_unused))

    def warm_up(self, times, allow_unused):
        for _ in range(times):
            results, _ = self.run()
            if not all(isinstance(one, torch.Tensor) for one in results):
                raise RuntimeError('make_graphed_callables: the results must be tensors')
            self.differentiate(results, [torch.zeros_like(one) for one in results if one.requires_grad], allow_unused)

    def capture_forward(self, pool):
        with graph(self.forward, pool=pool):
            self.results, self.results_structure = self.run()

    def capture_backward(self, pool, allow_unused):
        self.result_gradients = [torch.zeros_like(one) if one.requires_grad else None for one in self.results]
        given = [one for one in self.result_gradients if one is not None]
        self.has_backward = bool(given and self.differentiated)
        if not self.has_backward:
            self.gradients = [None] * len(self.inputs)
            return
        with graph(self.backward, pool=pool):
            found = self.differentiate(self.results, given, allow_unused)
        self.gradients = [next(found) if one.requires_grad else None for one in self.inputs]
        self.results = [one.detach().requires_grad_(one.requires_grad) for one in self.results]

    # --- replaying ----------------------------------------------------------------------------------------------------

    def replay_forward(self, inputs):
        for own, given in zip(self.arguments, inputs):
            if own.shape != given.shape or own.dtype != given.dtype:
                raise RuntimeError(f'a graphed callable was recorded with {own.dtype} {tuple(own.shape)}, and cannot '
                                   f'take {given.dtype} {tuple(given.shape)}')
        for one in self.group:
            one.move_gradients()
        for own, given in zip(self.arguments, inputs):
            own.copy_(given)
        self.forward.replay()
        self.calls += 1

    def replay_backward(self, call, gradients):
        if call != self.calls:
            raise RuntimeError('a graphed callable was called again before the backward pass of this call, whose saved '
                               'tensors are overwritten')
        for own, given in zip(self.result_gradients, gradients):
            if own is not None:
                own.copy_(given)
        self.backward.replay()
        self.has_given_gradients = True
        own = [one if one is None else one.clone() for one in self.gradients[:len(self.arguments)]]
        return own + [one if one is None else one.detach() for one in self.gradients[len(self.arguments):]]

    def move_gradients(self):
        """Those that autograd has made the parameters' .grad are in the graphs' memory: further ones may be added."""
        if not self.has_given_gradients:
            return
        self.has_given_gradients = False
        for parameter, gradient in zip(self.parameters, self.gradients[len(self.arguments):]):
            if gradient is not None and parameter.grad is not None and parameter.grad.data_ptr() == gradient.data_ptr():
                parameter.grad = parameter.grad.clone()

    # --- the callable -------------------------------------------------------------------------------------------------

    def call(self, *arguments):
        leaves, structure = pytree.tree_flatten(arguments)
        if structure != self.structure:
            raise RuntimeError('a graphed callable takes arguments as it was recorded with')
        return pytree.tree_unflatten(list(_Graphed.apply(self, *leaves, *self.parameters)), self.results_structure)

    def graphed(self):
        if not self.is_module:
            return self.call
        module, ordinary, was_training = self.function, self.function.forward, self.function.training
        module.forward = lambda *arguments, **named: (
            self.call(*arguments) if module.training == was_training and not named else ordinary(*arguments, **named))
        return module


class _Graphed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, passes, *inputs):
        passes.replay_forward(inputs)
        ctx.passes, ctx.call = passes, passes.calls
        results = tuple(one.detach() for one in passes.results)
        ctx.mark_non_differentiable(*(new for new, one in zip(results, passes.results) if not one.requires_grad))
        return results

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        return (None, *ctx.passes.replay_backward(ctx.call, gradients))
