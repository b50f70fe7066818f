"""torch.nn.utils.parametrizations: norms of weights, and orthogonal ones."""
from ..._c import check, encoded, ffi, lib
from ..._tensor import Tensor
from . import parametrize
from ._orthogonal import MAPS, _Orthogonal


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


def orthogonal(module, name='weight', orthogonal_map=None, *, use_trivialization=True):
    """The weight, or each of a batch of matrices, has orthonormal columns, or rows if there are fewer. orthogonal_map:
    'matrix_exp', the default for square ones, 'cayley' or 'householder', the default for others. use_trivialization:
    the map is applied around the last weight that was assigned, which the other way only 'householder' allows."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError('orthogonal: %s has no parameter or buffer %r' % (type(module).__name__, name))
    if weight.ndim < 2:
        raise ValueError('orthogonal: %s has %d dimensions; a matrix or a batch of them is needed'
                         % (name, weight.ndim))
    if orthogonal_map is None:
        orthogonal_map = 'matrix_exp' if weight.shape[-2] == weight.shape[-1] else 'householder'
    if orthogonal_map not in MAPS:
        raise ValueError("orthogonal: orthogonal_map is one of '%s', not %r" % ("', '".join(MAPS), orthogonal_map))
    step = _Orthogonal(orthogonal_map, use_trivialization)
    parametrize.register_parametrization(module, name, step, unsafe=True)
    step._is_used = True
    return module
