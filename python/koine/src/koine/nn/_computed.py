"""Tensors of a module that parametrizations compute, as attributes."""
import contextlib
import threading

from .._c import check, checked, encoded, lib
from .._tensor import Tensor, borrowed
from ._life import address

_cache = threading.local()  # .values: by module and name, inside cached()


@contextlib.contextmanager
def cached():
    """Inside, an attribute that a parametrization computes is computed once, when it is first used, whatever becomes of
    its originals. Forward passes of the module itself compute it each time."""
    before = getattr(_cache, 'values', None)
    _cache.values = {} if before is None else before
    try:
        yield
    finally:
        _cache.values = before


def computed(module, name):
    """The value, computed anew, or that of the running forward pass, which belongs to a scope of the library."""
    values = getattr(_cache, 'values', None)
    if values is None:
        return _value(module, name)
    key = address(module._h), name
    if key not in values:
        values[key] = module, _value(module, name)  # the module keeps its address while it is in use
    return values[key][1]


def _value(module, name):
    scope = lib.kn_scope_begin()
    try:
        return borrowed(checked(lib.kn_module_get(module._h, encoded(name))))
    finally:
        lib.kn_scope_end(scope)


def assign(module, name, value):
    """The originals become those from which the value is computed."""
    if not isinstance(value, Tensor):
        raise TypeError('%s: %s is computed by a parametrization: assign a tensor, or remove the parametrization first'
                        % (type(module).__name__, name))
    (getattr(_cache, 'values', None) or {}).pop((address(module._h), name), None)
    check(lib.kn_parametrize_assign(module._h, encoded(name), value._h))
