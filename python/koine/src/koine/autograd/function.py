"""Functions with a backward of their own: torch.autograd.Function.

The library wants to know the number of outputs before it calls forward. So forward runs first, unrecorded, and the
library's function, which is recorded, only hands out what it returned."""
import functools
import itertools

from .._c import NULL, adopted, callback, check, checked, ffi, lib
from .._tensor import Tensor, borrowed, wrap

_contexts = {}  # those of functions whose backward may still run, by the number that the library knows them by


class FunctionCtx:
    """What forward leaves for backward; any other attribute may be set, too."""

    def __init__(self, kind, arguments):
        self._kind = kind
        self._places = [i for i, one in enumerate(arguments) if isinstance(one, Tensor)]  # of the library's inputs
        self._dtypes = [arguments[i].dtype for i in self._places]
        self._count, self._materialize = len(arguments), True
        self._save, self._saved, self._constant = (), None, ()
        recording = lib.kn_grad_enabled()
        self.needs_input_grad = tuple(bool(recording and isinstance(one, Tensor) and one.requires_grad)
                                      for one in arguments)

    def save_for_backward(self, *tensors):
        """Keeps inputs, outputs or other tensors, or None, for backward."""
        for one in tensors:
            if one is not None and not isinstance(one, Tensor):
                raise TypeError('save_for_backward takes tensors, not %s: set an attribute of ctx instead'
                                % type(one).__name__)
        self._save = tensors

    @property
    def saved_tensors(self):
        if self._saved is None:
            raise RuntimeError('saved_tensors are there in backward')
        return self._saved

    def mark_non_differentiable(self, *tensors):
        """These outputs get no gradient."""
        self._constant = tensors

    def mark_dirty(self, *tensors):
        raise NotImplementedError('mark_dirty: forward must not change its inputs in place')

    def set_materialize_grads(self, value):
        """Whether backward gets zeros or None for an output without a gradient."""
        self._materialize = bool(value)

    def _forward(self, context, outputs):
        """For the library, inside its forward."""
        lib.kn_function_set_materialize_grads(context, self._materialize)
        for one in self._save:
            if one is not None:
                check(lib.kn_function_save(context, one._h))
        for i, one in enumerate(outputs):
            if any(one is other for other in self._constant):
                check(lib.kn_function_mark_non_differentiable(context, i))

    def _backward(self, context, gradients):
        """The gradients of the library's inputs, for its backward."""
        self._saved = _saved(context, self._save)
        try:
            found = self._kind.backward(self, *gradients)
        finally:
            self._saved = None
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        if len(found) < self._count or any(one is not None for one in found[self._count:]):
            raise RuntimeError('%s.backward returned %d gradients for %d arguments of forward'
                               % (self._kind.__name__, len(found), self._count))
        for i, one in enumerate(found):
            if one is not None and not isinstance(one, Tensor):
                raise TypeError('%s.backward returned %s for argument %d; a gradient is a tensor or None'
                                % (self._kind.__name__, type(one).__name__, i))
            if one is not None and i not in self._places:
                raise RuntimeError('%s.backward returned a gradient for argument %d, which is no tensor'
                                   % (self._kind.__name__, i))
        return [None if found[i] is None else found[i].to(dtype=dtype)
                for i, dtype in zip(self._places, self._dtypes)]


def _saved(context, places):
    """The saved tensors, with None where `places` is true. Those with a history belong to a scope."""
    scope, numbers = lib.kn_scope_begin(), itertools.count()
    try:
        return tuple(None if one else borrowed(checked(lib.kn_function_saved(context, next(numbers))))
                     for one in places)
    finally:
        lib.kn_scope_end(scope)


def _context(pointer):
    return _contexts[int(ffi.cast('uintptr_t', lib.kn_function_params(pointer)))]


def _forward(pointer, inputs, outputs):
    ctx, made = _context(pointer)
    ctx._forward(pointer, made)
    for i, one in enumerate(made):
        outputs[i] = one._h
    return lib.KN_OK


def _backward(pointer, gradients, found):
    ctx, _ = _context(pointer)
    count = lib.kn_function_num_outputs(pointer)
    results = ctx._backward(pointer, [borrowed(gradients[i]) for i in range(count)])

    def finish():
        for i, one in enumerate(results):
            if one is not None:
                found[i] = adopted(one)
        return lib.KN_OK

    return finish


@ffi.callback('void(void *)')
def _destroy(params):
    _contexts.pop(int(ffi.cast('uintptr_t', params)), None)


_KIND = 'kn_status(kn_function_context *, kn_tensor *const *, kn_tensor **)'
_forward_callback = callback(_KIND, lib.KN_ERR_STATE, _forward)
_backward_callback = callback(_KIND, lib.KN_ERR_STATE, _backward)


class Function:
    """A subclass has the static methods forward(ctx, *arguments), which returns a tensor or a tuple of tensors, and
    backward(ctx, *gradients), which returns a gradient, or None, for each argument of forward. Or forward(*arguments)
    and setup_context(ctx, arguments, outputs). It is called by `apply`.

    Both run unrecorded; backward is recorded if the gradients are to have gradients (create_graph), unless it is
    decorated with once_differentiable."""

    @staticmethod
    def forward(*arguments):
        raise NotImplementedError('a Function needs the static method forward')

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError('a Function needs the static method backward')

    setup_context = None

    @classmethod
    def apply(cls, *arguments):
        ctx = FunctionCtx(cls, arguments)
        outputs, is_tuple = _run(cls, ctx, arguments)
        inputs = [arguments[i]._h for i in ctx._places]
        key = id(ctx)
        _contexts[key] = ctx, outputs
        function = ffi.new('kn_function *')
        name = ffi.new('char[]', cls.__name__.encode())
        function.name, function.destroy = name, _destroy
        function.forward, function.backward = _forward_callback, _backward_callback
        function.twice_differentiable = not getattr(cls.backward, 'once_differentiable', False)
        found = ffi.new('kn_tensor *[]', len(outputs))
        check(lib.kn_function_apply_many(function, inputs or NULL, len(inputs), ffi.cast('void *', key), found,
                                         len(outputs)))
        # From here on the library holds the tensors: what is kept beside them would keep the tape alive.
        ctx._save, ctx._constant = [one is None for one in ctx._save], ()
        if key in _contexts:
            _contexts[key] = ctx, None
        made = tuple(wrap(one) for one in found)
        return made if is_tuple else made[0]


def _run(cls, ctx, arguments):
    """Calls forward: (outputs, did it return a tuple?)."""
    before = [one._version if needed else None for one, needed in zip(arguments, ctx.needs_input_grad)]
    recording = lib.kn_set_grad_enabled(False)
    try:
        if cls.setup_context is None:
            outputs = cls.forward(ctx, *arguments)
        else:
            outputs = cls.forward(*arguments)
            cls.setup_context(ctx, arguments, outputs)
    finally:
        lib.kn_set_grad_enabled(recording)
    is_tuple = isinstance(outputs, (tuple, list))
    outputs = tuple(outputs) if is_tuple else (outputs,)
    if not outputs or not all(isinstance(one, Tensor) for one in outputs):
        wrong = [type(one).__name__ for one in outputs if not isinstance(one, Tensor)]
        raise TypeError('%s.forward returned %s; it returns a tensor or a tuple of tensors'
                        % (cls.__name__, wrong[0] if wrong else 'an empty tuple'))
    for i, (one, version) in enumerate(zip(arguments, before)):
        if version is not None and one._version != version:
            raise RuntimeError('%s.forward changed argument %d in place, which needs a gradient: clone it first'
                               % (cls.__name__, i))
    return outputs, is_tuple


def once_differentiable(function):
    """Decorates a backward that is not to be recorded: with create_graph it is an error."""
    @functools.wraps(function)
    def backward(*arguments):
        return function(*arguments)

    backward.once_differentiable = True
    return backward
