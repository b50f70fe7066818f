"""Hooks of modules: functions that run before and after forward, and in the backward pass.

A call from Python runs the forward hooks here, so that they see the arguments and results that the caller sees. For
modules that the library applies itself, such as the layers of a Sequential, it has one hook of each kind, which runs
those of the module. Gradients are the library's business, and so backward hooks always come from there. The functions
are kept by the module's Python object alone: one that refers to its module keeps nothing alive for ever."""
import contextlib
import inspect
import itertools
import threading
import typing
import warnings
import weakref

from .._c import NULL, adopted, callback, check, checked, ffi, lib
from .._tensor import Tensor, borrowed
from ._life import address, wrappers

_keys = itertools.count()
_calls = threading.local()  # .modules: the layers whose forward hooks the call from Python runs


class RemovableHandle:
    """Of a hook: remove() it, or leave the handle's with block."""

    def __init__(self, module, kind, key):
        self._module, self._kind, self._key = weakref.ref(module), kind, key

    def remove(self):
        module = self._module()
        if module is not None:
            _remove(module, self._kind, self._key)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class Hooked:
    """The part of Module that calls it and its hooks."""

    _hooks = None  # kind: _Hooks
    _library_applies = False  # without a call of Python
    _gradients_pass = True  # through hooks of its own

    def __call__(self, *inputs, **keywords):
        if self._hooks is None:
            return self.forward(*inputs, **keywords)
        return _call(self, inputs, keywords)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """hook(module, inputs) runs before forward; what it returns, unless None, takes the place of the inputs. With
        with_kwargs=True: hook(module, inputs, keywords), which returns None or both."""
        return _add(self, 'forward_pre', hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """hook(module, inputs, output), or hook(module, inputs, keywords, output), runs after forward; what it returns,
        unless None, takes the place of the output. With always_call=True it also runs, with None for the output, when a
        forward in Python has raised an exception."""
        return _add(self, 'forward', hook, prepend, with_kwargs=with_kwargs, always_call=always_call)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """hook(module, grad_output) runs before the gradients pass through the module, and may return others."""
        return _add(self, 'full_backward_pre', hook, prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """hook(module, grad_input, grad_output) runs when the gradients of the inputs are known, and may return
        others for those that are not None."""
        return _add(self, 'full_backward', hook, prepend)


class _Hook(typing.NamedTuple):
    key: int
    function: typing.Callable
    options: dict  # with_kwargs, always_call

    def __call__(self, module, inputs, keywords, *output):
        if self.options['with_kwargs']:
            return self.function(module, inputs, keywords, *output)
        return self.function(module, inputs, *output)


class _Hooks:
    """Those of one kind."""

    def __init__(self):
        self.items, self.handle = [], None  # and the library's hook if it has one


def _add(module, kind, hook, prepend, **options):
    if not callable(hook):
        raise TypeError('%s: a hook is a function, not %s' % (type(module).__name__, type(hook).__name__))
    if 'backward' in kind and not module._gradients_pass:
        raise TypeError('%s: its gradients do not pass through hooks of its own: register the hook with a part of it'
                        % type(module).__name__)
    hooks = (module._hooks or {}).get(kind) or _Hooks()
    if hooks.handle is None:
        hooks.handle = _library_hook(module, kind)
    key = next(_keys)
    hooks.items.insert(0 if prepend else len(hooks.items), _Hook(key, hook, options))
    module.__dict__['_hooks'] = {**(module._hooks or {}), kind: hooks}
    return RemovableHandle(module, kind, key)


def _library_hook(module, kind):
    """The handle of a new one, which runs those of the module; None where none is needed."""
    if not module._library_applies and 'backward' not in kind:
        return None
    params = ffi.new('kn_module_hook_params *', lib.kn_module_hook_params_init())
    params.user = ffi.cast('void *', address(module._h))
    return checked(getattr(lib, 'kn_module_register_%s_hook_with' % kind)(module._h, _CALLBACKS[kind], params))


def move_hooks(module):
    """The module's kn_module is another one than when they were registered."""
    for kind, hooks in (module._hooks or {}).items():
        hooks.handle = _library_hook(module, kind)


def _remove(module, kind, key):
    """With the last one the library's hook goes, too: a module without hooks is applied together with its activation.
    """
    hooks = (module._hooks or {}).get(kind)
    if hooks is None:
        return
    hooks.items = [one for one in hooks.items if one.key != key]
    if not hooks.items:
        if hooks.handle is not None and '_h' in module.__dict__:
            check(lib.kn_module_remove_hook(module._h, hooks.handle))
        left = {name: one for name, one in module._hooks.items() if name != kind}
        module.__dict__['_hooks'] = left or None


def copy_hooks(module, made, copied):
    """Gives `made` the hooks of the other one, each as copied(hook)."""
    for kind, hooks in (module._hooks or {}).items():
        for hook in hooks.items:
            _add(made, kind, copied(hook.function), False, **hook.options)


# --- running ----------------------------------------------------------------------------------------------------------


def _hooks_of(module, kind):
    hooks = (module._hooks or {}).get(kind)
    return [] if hooks is None else list(hooks.items)


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def _run_forward_pre(module, inputs, keywords):
    for hook in _hooks_of(module, 'forward_pre'):
        found = hook(module, inputs, keywords)
        if found is None:
            continue
        if not hook.options['with_kwargs']:
            inputs = _tuple(found)
        elif isinstance(found, tuple) and len(found) == 2:
            inputs, keywords = found
        else:
            raise RuntimeError('%s: a hook with keywords returns None, or inputs and keywords, not %r' % (
                type(module).__name__, found))
    return inputs, keywords


def _run_forward(module, inputs, keywords, output, hooks):
    """Takes those that have run out of the list."""
    while hooks:
        found = hooks.pop(0)(module, inputs, keywords, output)
        output = output if found is None else found
    return output


def _run_always(module, inputs, keywords, hooks):
    """Those left that run after an exception, which is the one to be raised."""
    output = None
    for hook in hooks:
        if hook.options['always_call']:
            try:
                output = _run_forward(module, inputs, keywords, output, [hook])
            except Exception as exception:
                warnings.warn('%s: a hook that is always called raised %s: %s' % (
                    type(module).__name__, type(exception).__name__, exception))


def around(module, inputs, keywords):
    """forward, with the forward hooks."""
    inputs, hooks = tuple(inputs), _hooks_of(module, 'forward')
    try:
        inputs, keywords = _run_forward_pre(module, inputs, keywords)
        return _run_forward(module, inputs, keywords, module.forward(*inputs, **keywords), hooks)
    except Exception:
        _run_always(module, inputs, keywords, hooks)
        raise


def _call(module, inputs, keywords):
    """A call from Python of a module with hooks."""
    if not module._library_applies:
        if lib.kn_grad_enabled() and any('backward' in kind for kind in module._hooks):
            return through_library(module, module.forward, inputs, keywords)
        return around(module, inputs, keywords)
    with running_hooks(module):
        return around(module, inputs, keywords)


@contextlib.contextmanager
def running_hooks(module):
    """While Python runs the module's forward hooks, which the library leaves alone then."""
    before = getattr(_calls, 'modules', ())
    _calls.modules = (*before, module)
    try:
        yield
    finally:
        _calls.modules = before


def through_library(module, forward, inputs, keywords):
    """The outputs of a module that the library applies, whose arguments are those of a function of Python: of one of
    Python whose gradients the library shows to hooks, and of one around another."""
    bound = inspect.signature(forward).bind(*inputs, **keywords)
    if bound.kwargs:
        bound.apply_defaults()
    given = list(bound.args)
    while given and given[-1] is None:
        given.pop()
    outputs = module._apply(given)
    return outputs[0] if len(outputs) == 1 else outputs


# --- called by the library --------------------------------------------------------------------------------------------


def _hooked(user, kind):
    """The module, unless its hooks run elsewhere or are gone with its Python object."""
    module = wrappers.get(int(ffi.cast('uintptr_t', user)))
    calls = () if 'backward' in kind else getattr(_calls, 'modules', ())
    return None if module is None or any(one is module for one in calls) else module


def _all(handles, count):
    return tuple(borrowed(handles[i]) for i in range(count))


def _given(handles, count):
    """Without omitted inputs at the end."""
    while count > 1 and not handles[count - 1]:
        count -= 1
    return _all(handles, count)


def _replaced(module, handles, before, after):
    """Stores what the hooks returned instead."""
    if after is before:
        return lib.KN_OK
    wrong = [type(one).__name__ for one, old in zip(after, before)
             if not isinstance(one, Tensor) and not (one is None and old is None)]
    if wrong or len(after) != len(before):
        raise TypeError('%s: a hook returned %s instead of %d koine.Tensors' % (
            type(module).__name__, wrong[0] if wrong else len(after), len(before)))

    def finish():
        for i, one in enumerate(after):
            handles[i] = NULL if one is None else adopted(one)
        return lib.KN_OK

    return finish


def _on_forward_pre(_, inputs, count, user):
    module = _hooked(user, 'forward_pre')
    if module is None:
        return lib.KN_OK
    given = _given(inputs, count)
    after, keywords = _run_forward_pre(module, given, {})
    if keywords:
        raise TypeError('%s: a hook returned the keyword %s, but the library gives tensors only' % (
            type(module).__name__, ', '.join(keywords)))
    return _replaced(module, inputs, given, after)


def _on_forward(_, inputs, count, outputs, output_count, user):
    module = _hooked(user, 'forward')
    if module is None:
        return lib.KN_OK
    before = _all(outputs, output_count)
    shown = before if output_count > 1 else before[0]
    after = _run_forward(module, _given(inputs, count), {}, shown, _hooks_of(module, 'forward'))
    if after is shown:
        return lib.KN_OK
    return _replaced(module, outputs, before, tuple(after) if isinstance(after, (tuple, list)) else (after,))


def _on_full_backward_pre(_, grad_outputs, count, user):
    module = _hooked(user, 'full_backward_pre')
    given = before = _all(grad_outputs, count)
    for hook in () if module is None else _hooks_of(module, 'full_backward_pre'):
        found = hook.function(module, given)
        given = given if found is None else _tuple(found)
    return _replaced(module, grad_outputs, before, given)


def _on_full_backward(_, grad_inputs, count, grad_outputs, output_count, user):
    module = _hooked(user, 'full_backward')
    given = before = _all(grad_inputs, count)
    shown = _all(grad_outputs, output_count)
    for hook in () if module is None else _hooks_of(module, 'full_backward'):
        found = hook.function(module, given, shown)
        given = given if found is None else _tuple(found)
    return _replaced(module, grad_inputs, before, given)


_CALLBACKS = {
    'forward_pre': callback('kn_status(kn_module *, kn_tensor **, int, void *)', lib.KN_ERR_STATE, _on_forward_pre),
    'forward': callback('kn_status(kn_module *, kn_tensor *const *, int, kn_tensor **, int, void *)', lib.KN_ERR_STATE,
                        _on_forward),
    'full_backward_pre': callback('kn_status(kn_module *, kn_tensor **, int, void *)', lib.KN_ERR_STATE,
                                  _on_full_backward_pre),
    'full_backward': callback('kn_status(kn_module *, kn_tensor **, int, kn_tensor *const *, int, void *)',
                              lib.KN_ERR_STATE, _on_full_backward),
}
