"""torch.nn.utils.parametrize: parameters that are computed from others whenever they are used."""
from ..._c import NULL, adopted, callback, check, encoded, ffi, lib
from ..._tensor import borrowed
from .. import _layers
from .._computed import cached  # noqa: F401
from .._life import forget, hand_over
from ..containers import ModuleList
from ..module import Module


class ParametrizationList(ModuleList):
    """The parametrizations of a tensor in their order, and its original, or original0, original1, ..., as parameters;
    its call computes the tensor."""


_layers.OTHER_CLASSES['ParametrizationList'] = ParametrizationList


def type_before_parametrizations(module):
    """The module's class: parametrizations leave it as it is."""
    return type(module)


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Computes the parameter or buffer of that name by parametrization(original), a module. Its right_inverse(value),
    if it has one, gives the original, or several of them, which forward then takes."""
    if not isinstance(parametrization, Module):
        raise TypeError('register_parametrization: a koine.nn.Module is needed, not %s'
                        % type(parametrization).__name__)
    params = ffi.new('kn_register_parametrization_params *', lib.kn_register_parametrization_params_init())
    params.unsafe = unsafe
    if hasattr(parametrization, 'right_inverse'):
        inverse = _right_inverse(parametrization)
        object.__setattr__(parametrization, '_right_inverse', inverse)
        params.right_inverse = inverse
    name = encoded(tensor_name)
    hand_over(parametrization, module._life, lambda pointer: check(
        lib.kn_parametrize_register_parametrization_with(module._h, name, pointer, params)))
    made = module.parametrizations.get(tensor_name)
    made._children[str(len(made) - 1)] = parametrization  # which keeps its Python object alive
    parametrization._life.give(made._life)
    parametrization._life.lose(module._life)
    return module


def _right_inverse(parametrization):
    def called(_, value, originals):
        found = parametrization.right_inverse(borrowed(value))
        found = found if isinstance(found, (tuple, list)) else (found,)
        count = lib.kn_module_input_count(parametrization._h)
        if len(found) != count:
            raise ValueError('%s: right_inverse returned %d tensors; forward takes %d' % (
                type(parametrization).__name__, len(found), count))

        def finish():
            for i, one in enumerate(found):
                originals[i] = adopted(one)
            return lib.KN_OK

        return finish

    return callback('kn_status(kn_module *, kn_tensor *, kn_tensor **)', lib.KN_ERR_STATE, called)


def is_parametrized(module, tensor_name=None):
    """Has that tensor, or any of the module, a parametrization?"""
    return bool(lib.kn_parametrize_is_parametrized(module._h, NULL if tensor_name is None else encoded(tensor_name)))


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """The tensor is a parameter again, with its computed value, or with that of its only original."""
    container = module._child('parametrizations')
    check(lib.kn_parametrize_remove_parametrizations(module._h, encoded(tensor_name), leave_parametrized))
    parent, name = (container, tensor_name) if is_parametrized(module) else (module, 'parametrizations')
    gone = parent._children.pop(name, None)
    if gone is not None:
        forget(gone)
    return module
