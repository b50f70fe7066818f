"""Tensors of a module that parametrizations compute, as attributes."""
from .._c import check, checked, encoded, lib
from .._tensor import Tensor, borrowed


def computed(module, name):
    """The value, computed anew, or that of the running forward pass, which belongs to a scope of the library."""
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
    check(lib.kn_parametrize_assign(module._h, encoded(name), value._h))
