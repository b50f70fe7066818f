"""torch.utils.checkpoint: functions that are computed again in the backward pass, instead of keeping what they need
for it."""
from .. import random
from .._c import check, checked, lib
from .._device import current_device
from .._functions import empty
from .._tensor import Tensor
from ..autograd import backward, enable_grad, is_grad_enabled
from ..autograd.function import Function, once_differentiable
from ..nn.module import Module


def checkpoint(function, *args, use_reentrant=False, preserve_rng_state=True, **kwargs):
    """function(*args, **kwargs), a tensor or a tuple of tensors, of which only the arguments are kept. The backward
    pass calls it again, with the same random numbers (preserve_rng_state) and in the same autocast region, and adds the
    gradients of parameters that it uses to their `grad`; koine.autograd.grad returns those of its arguments alone.
    use_reentrant has no effect: what holds is what False means in PyTorch."""
    if not is_grad_enabled():
        return function(*args, **kwargs)
    call = _Call(function, args, kwargs, preserve_rng_state)
    is_needed = any(one.requires_grad for one in call.tensors)
    # Parameters may need gradients where no argument does.
    anchor = None if is_needed else empty((), requires_grad=True)
    return _Recomputed.apply(call, anchor, *call.tensors)


def checkpoint_sequential(functions, segments, input, use_reentrant=False, preserve_rng_state=True):
    """The functions, or the layers of a Sequential, one after another, in `segments` parts of which all but the last
    are called by `checkpoint`."""
    functions = list(functions.children() if isinstance(functions, Module) else functions)
    if not 1 <= segments <= len(functions):
        raise ValueError('checkpoint_sequential: segments is %d; with %d functions it may be 1 to %d' % (
            segments, len(functions), len(functions)))

    def run(first, end):
        def called(value):
            for function in functions[first:end]:
                value = function(value)
            return value

        return called

    size = len(functions) // segments
    last = size * (segments - 1)
    for first in range(0, last, size):
        input = checkpoint(run(first, first + size), input, preserve_rng_state=preserve_rng_state)
    return run(last, len(functions))(input)


class _Call:
    """A function with its arguments, of which the tensors are apart."""

    def __init__(self, function, args, kwargs, preserve_rng_state):
        self.function, self.preserve = function, preserve_rng_state
        self.args, self.kwargs = list(args), dict(kwargs)
        self.places = [(values, key) for values, keys in ((self.args, range(len(args))), (self.kwargs, list(kwargs)))
                       for key in keys if isinstance(values[key], Tensor)]
        self.tensors = [values[key] for values, key in self.places]

    def first(self):
        """Notes what the second call needs."""
        tensors, self.tensors = self.tensors, None  # what stays here would keep the tape alive
        self.autocast = lib.kn_autocast_dtype()
        devices = {current_device(), *(one.device for one in tensors)} if self.preserve else ()
        self.states = [(one, random.get_rng_state(one)) for one in devices if one.type != 'host']
        return self._with(tensors)

    def again(self, tensors):
        """With a record; afterwards the random numbers of the program go on as before."""
        fork = checked(lib.kn_fork_rng_begin()) if self.preserve else None
        region = lib.kn_autocast_enter(self.autocast)
        try:
            for device, state in self.states:
                random.set_rng_state(state, device)
            with enable_grad():
                return self._with(tensors)
        finally:
            lib.kn_autocast_leave(region)
            if fork is not None:
                check(lib.kn_fork_rng_end(fork))

    def _with(self, tensors):
        for (values, key), tensor in zip(self.places, tensors):
            values[key] = tensor
        try:
            return self.function(*self.args, **self.kwargs)
        finally:
            for values, key in self.places:
                values[key] = None


class _Recomputed(Function):
    @staticmethod
    def forward(ctx, call, anchor, *tensors):
        ctx.call = call
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        return call.first()

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients):
        needed = ctx.needs_input_grad[2:]
        inputs = [one.detach().requires_grad_(is_needed) for one, is_needed in zip(ctx.saved_tensors, needed)]
        outputs = ctx.call.again(inputs)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        pairs = [(one, gradient) for one, gradient in zip(outputs, gradients)
                 if gradient is not None and one.requires_grad]
        backward([one for one, _ in pairs], [gradient for _, gradient in pairs])
        return (None, None, *(one.grad for one in inputs))
