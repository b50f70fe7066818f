"""torch.nn.utils: clipping of gradients, parameters as one vector, norms of weights, layers without their batch
normalisation."""
from ... import random
from ..._bind import tensor_function
from ..._c import check, ffi, lib
from ..._tensor import wrap
from ..module import Module
from . import fusion, parametrizations, parametrize, rnn, stateless  # noqa: F401
from .fusion import (fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval,  # noqa: F401
                     fuse_linear_bn_weights)
from ._norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm  # noqa: F401

get_total_norm = tensor_function('get_total_norm', 'kn_get_total_norm_with', 'tensors, norm_type=2.0')


def parameter_list(tensors):
    """A kn_parameter_list, and what it points to."""
    tensors = list(tensors)
    handles = ffi.new('kn_tensor *[]', [one._h for one in tensors] or [ffi.NULL])
    made = ffi.new('kn_parameter_list *')
    made.tensors, made.count = handles, len(tensors)
    return made[0], (handles, made, tensors)


def _given(parameters):
    return parameter_list([parameters] if hasattr(parameters, '_h') else parameters)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """Scales gradients so that their norm is at most max_norm; returns the norm before. error_if_nonfinite waits, and a
    norm that is infinite or NaN is an error."""
    found, _keep = _given(parameters)
    params = ffi.new('kn_clip_grad_params *', lib.kn_clip_grad_params_init())
    params.norm_type, params.error_if_nonfinite = norm_type, error_if_nonfinite
    return wrap(lib.kn_clip_grad_norm_with_(found, max_norm, params))


def clip_grad_value_(parameters, clip_value):
    found, _keep = _given(parameters)
    check(lib.kn_clip_grad_value_(found, clip_value))


def clip_grads_with_norm_(parameters, max_norm, total_norm):
    """The same as clip_grad_norm_ with a norm from get_total_norm."""
    found, _keep = _given(parameters)
    check(lib.kn_clip_grads_with_norm_(found, max_norm, total_norm._h))


def parameters_to_vector(parameters):
    """All elements, one parameter after the other."""
    found, _keep = _given(parameters)
    return wrap(lib.kn_parameters_to_vector(found))


def vector_to_parameters(vec, parameters):
    """Copies the parts of the vector back."""
    found, _keep = _given(parameters)
    check(lib.kn_vector_to_parameters(vec._h, found))


def skip_init(module_cls, *args, **kwargs):
    """module_cls(*args, **kwargs), whose parameters have any values; the random numbers of the program stay as they
    are."""
    if not isinstance(module_cls, type) or not issubclass(module_cls, Module):
        raise TypeError('skip_init: a class of modules is needed, not %r' % (module_cls,))
    state = random.get_rng_state()
    try:
        return module_cls(*args, **kwargs)
    finally:
        random.set_rng_state(state)
