"""torch.nn.utils.parametrizations: norms of weights."""
from ..._c import check, encoded, ffi, lib


def weight_norm(module, name='weight', dim=0):
    """The weight as g v / |v|, where g has one number for each slice of `dim`, or one in all (None)."""
    params = ffi.new('kn_weight_norm_params *', (-1 if dim is None else dim,))
    check(lib.kn_parametrizations_weight_norm_with(module._h, encoded(name), params))
    return module


def spectral_norm(module, name='weight', n_power_iterations=1, eps=1e-12, dim=None):
    """The weight divided by its largest singular value, which each forward pass in training mode estimates better."""
    params = ffi.new('kn_spectral_norm_params *', lib.kn_spectral_norm_params_init())
    params.n_power_iterations, params.eps = n_power_iterations, eps
    if dim is not None:
        params.dim = dim
    check(lib.kn_parametrizations_spectral_norm_with(module._h, encoded(name), params))
    return module
