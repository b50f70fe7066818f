"""torch.nn.utils.weight_norm and spectral_norm, the older names of those in parametrizations."""
from ..._c import lib, text
from . import parametrizations, parametrize


def weight_norm(module, name='weight', dim=0):
    """As parametrizations.weight_norm, which also names the parameters that the weight is computed from."""
    return parametrizations.weight_norm(module, name, dim)


def remove_weight_norm(module, name='weight'):
    """The weight is a parameter again, with its present value."""
    return _remove(module, name, 'weight_norm', '_WeightNorm')


def spectral_norm(module, name='weight', n_power_iterations=1, eps=1e-12, dim=None):
    """As parametrizations.spectral_norm, which also names what the weight is computed from."""
    return parametrizations.spectral_norm(module, name, n_power_iterations, eps, dim)


def remove_spectral_norm(module, name='weight'):
    """The weight is a parameter again, with its present value."""
    return _remove(module, name, 'spectral_norm', '_SpectralNorm')


def _remove(module, name, function, kind):
    steps = list(module.parametrizations.get(name)) if parametrize.is_parametrized(module, name) else []
    if [text(lib.kn_module_type_name(one._h)) for one in steps] != [kind]:
        raise ValueError('remove_%s: %s of %s is not what %s made of it' % (
            function, name, type(module).__name__, function))
    return parametrize.remove_parametrizations(module, name)
