"""torch.nn.utils: clipping of gradients."""
from .._c import check, ffi, lib
from .._tensor import wrap


def parameter_list(tensors):
    """A kn_parameter_list, and what it points to."""
    tensors = list(tensors)
    handles = ffi.new('kn_tensor *[]', [one._h for one in tensors] or [ffi.NULL])
    made = ffi.new('kn_parameter_list *')
    made.tensors, made.count = handles, len(tensors)
    return made[0], (handles, made, tensors)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0):
    """Scales gradients so that their norm is at most max_norm; returns the norm before."""
    found, _keep = parameter_list([parameters] if hasattr(parameters, '_h') else parameters)
    params = ffi.new('kn_clip_grad_params *', lib.kn_clip_grad_params_init())
    params.norm_type = norm_type
    return wrap(lib.kn_clip_grad_norm_with_(found, max_norm, params))


def clip_grad_value_(parameters, clip_value):
    found, _keep = parameter_list([parameters] if hasattr(parameters, '_h') else parameters)
    check(lib.kn_clip_grad_value_(found, clip_value))
