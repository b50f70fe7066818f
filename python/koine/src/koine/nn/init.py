"""torch.nn.init: fills tensors in place, unrecorded."""
from .. import _bind
from .._c import encoded, lib

C_FUNCTIONS = {
    'uniform_': ('kn_init_uniform_with_', 'tensor, a=0.0, b=1.0, generator=None'),
    'normal_': ('kn_init_normal_with_', 'tensor, mean=0.0, std=1.0, generator=None'),
    'constant_': ('kn_init_constant_', 'tensor, val'),
    'zeros_': ('kn_init_zeros_', 'tensor'),
    'ones_': ('kn_init_ones_', 'tensor'),
    'eye_': ('kn_init_eye_', 'tensor'),
    'dirac_': ('kn_init_dirac_', 'tensor, groups=1'),
    'kaiming_uniform_': ('kn_init_kaiming_uniform_with_',
                         'tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None'),
    'kaiming_normal_': ('kn_init_kaiming_normal_with_',
                        'tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None'),
    'xavier_uniform_': ('kn_init_xavier_uniform_with_', 'tensor, gain=1.0, generator=None'),
    'xavier_normal_': ('kn_init_xavier_normal_with_', 'tensor, gain=1.0, generator=None'),
    'trunc_normal_': ('kn_init_trunc_normal_with_', 'tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None'),
    'orthogonal_': ('kn_init_orthogonal_with_', 'tensor, gain=1, generator=None'),
    'sparse_': ('kn_init_sparse_with_', 'tensor, sparsity, std=0.01, generator=None'),
}
for _name, (_c_name, _line) in C_FUNCTIONS.items():
    globals()[_name] = _bind.in_place_function(_name, _c_name, _line)


def calculate_gain(nonlinearity, param=None):
    return lib.kn_init_calculate_gain(encoded(nonlinearity), 0.01 if param is None else param)


def _calculate_fan_in_and_fan_out(tensor):
    """The numbers of inputs and of outputs of each unit of a weight."""
    if tensor.ndim < 2:
        raise ValueError('fans are those of a weight with 2 dimensions or more, not %d' % tensor.ndim)
    taps = tensor[0, 0].numel() if tensor.ndim > 2 else 1
    return tensor.shape[1] * taps, tensor.shape[0] * taps
