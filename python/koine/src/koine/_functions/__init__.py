"""Functions of koine.* that are more than one operator of the list: PyTorch's overloads, functions that create tensors,
and functions of the C interface that are not operators."""
from . import aliases, calls, creation, names, overloads, pooling, reductions, shapes, windows
from .._bind import in_place_function, tensor_function

_FRACTIONAL_INDICES = 'input, kernel_size, output_size=None, output_ratio=None, _random_samples: samples=None'
_FRACTIONAL_POOL = _FRACTIONAL_INDICES.replace('_random', 'return_indices=False, _random')

# Functions of the C interface that are called as they stand.
C_FUNCTIONS = {
    'affine_grid': ('kn_affine_grid', 'theta, size, align_corners=False'),
    'argwhere': ('kn_argwhere', 'input'),
    'atleast_1d': ('kn_atleast_1d', 'input'),
    'atleast_2d': ('kn_atleast_2d', 'input'),
    'atleast_3d': ('kn_atleast_3d', 'input'),
    'bernoulli': ('kn_bernoulli_with', 'input, *, generator=None'),
    'bilinear': ('kn_bilinear', 'input1, input2, weight, bias=None'),
    'bernoulli_': ('kn_bernoulli_with_', 'input, p=0.5, *, generator=None'),
    'binomial': ('kn_binomial_with', 'count, prob, *, generator=None'),
    'cauchy_': ('kn_cauchy_with_', 'input, median=0.0, sigma=1.0, *, generator=None'),
    'channel_shuffle': ('kn_channel_shuffle', 'input, groups'),
    'cholesky_solve': ('kn_cholesky_solve', 'B, L, upper=False'),
    'column_stack': ('kn_column_stack', 'tensors'),
    'cumulative_trapezoid': ('kn_cumulative_trapezoid_with', 'y, x=None, *, dx=None, dim=-1'),
    'det': ('kn_linalg_det', 'input'),
    'diag': ('kn_diag', 'input, diagonal=0'),
    'diag_embed': ('kn_diag_embed_with', 'input, offset=0, dim1=-2, dim2=-1'),
    'diagflat': ('kn_diagflat', 'input, offset=0'),
    'diff': ('kn_diff_with', 'input, n=1, dim=-1, prepend=None, append=None'),
    'dist': ('kn_dist', 'input, other, p=2'),
    'dstack': ('kn_dstack', 'tensors'),
    'embedding_bag': ('kn_embedding_bag_with', 'input, weight, offsets=None, max_norm=None, norm_type=2.0, '
                      'scale_grad_by_freq=False, mode="mean", sparse: _=False, per_sample_weights=None, '
                      'include_last_offset=False, '
                      'padding_idx=None'),
    'exponential_': ('kn_exponential_with_', 'input, lambd=1.0, *, generator=None'),
    'fill_diagonal_': ('kn_fill_diagonal_with_', 'input, fill_value, wrap=False'),
    'frexp': ('kn_frexp', 'input'),
    'fractional_max_pool2d': ('kn_fractional_max_pool2d_with', _FRACTIONAL_POOL),
    'fractional_max_pool3d': ('kn_fractional_max_pool3d_with', _FRACTIONAL_POOL),
    'fractional_max_pool2d_with_indices': ('kn_fractional_max_pool2d_with_indices_with', _FRACTIONAL_INDICES),
    'fractional_max_pool3d_with_indices': ('kn_fractional_max_pool3d_with_indices_with', _FRACTIONAL_INDICES),
    'geometric_': ('kn_geometric_with_', 'input, p, *, generator=None'),
    'inverse': ('kn_linalg_inv', 'input'),
    'kron': ('kn_kron', 'input, other'),
    'log_normal_': ('kn_log_normal_with_', 'input, mean=1.0, std=2.0, *, generator=None'),
    'logdet': ('kn_logdet', 'input'),
    'lp_pool1d': ('kn_lp_pool1d_with', 'input, norm_type, kernel_size, stride=None, ceil_mode=False'),
    'lp_pool2d': ('kn_lp_pool2d_with', 'input, norm_type, kernel_size, stride=None, ceil_mode=False'),
    'lp_pool3d': ('kn_lp_pool3d_with', 'input, norm_type, kernel_size, stride=None, ceil_mode=False'),
    'lu_unpack': ('kn_lu_unpack', 'LU_data, LU_pivots'),
    'masked_scatter': ('kn_masked_scatter', 'input, mask, source'),
    'masked_scatter_': ('kn_masked_scatter_', 'input, mask, source'),
    'masked_select': ('kn_masked_select', 'input, mask'),
    'matrix_exp': ('kn_linalg_matrix_exp', 'input'),
    'matrix_power': ('kn_matrix_power', 'input, n'),
    'msort': ('kn_msort', 'input'),
    'multinomial': ('kn_multinomial_with', 'input, num_samples, replacement=False, *, generator=None'),
    'nonzero_static': ('kn_nonzero_static', 'input, *, size, fill_value=-1'),
    'normal_': ('kn_normal_with_', 'input, mean=0.0, std=1.0, *, generator=None'),
    'one_hot': ('kn_one_hot', 'input, num_classes=-1'),
    'pixel_shuffle': ('kn_pixel_shuffle', 'input, upscale_factor'),
    'pixel_unshuffle': ('kn_pixel_unshuffle', 'input, downscale_factor'),
    'poisson': ('kn_poisson_with', 'input, *, generator=None'),
    'positive': ('kn_positive', 'input'),
    'ravel': ('kn_ravel', 'input'),
    'renorm': ('kn_renorm', 'input, p, dim, maxnorm'),
    'renorm_': ('kn_renorm_', 'input, p, dim, maxnorm'),
    'slogdet': ('kn_linalg_slogdet', 'input'),
    'take_along_dim': ('kn_take_along_dim', 'input, indices, dim'),
    'trace': ('kn_trace', 'input'),
    'trapezoid': ('kn_trapezoid_with', 'y, x=None, *, dx=None, dim=-1'),
    'triplet_margin_with_distance_loss': ('kn_triplet_margin_with_distance_loss_with', 'anchor, positive, negative, *, '
                                          'distance_function=None, margin=1.0, swap=False, reduction="mean"'),
    'uniform_': ('kn_uniform_with_', 'input, low=0.0, high=1.0, *, generator=None'),
}
_RESULTS = {'frexp': 'mantissa exponent', 'lu_unpack': 'P L U', 'slogdet': 'sign logabsdet'}


def _own(module):
    """The functions of a module, without those that it imports."""
    return {name: value for name, value in vars(module).items()
            if not name.startswith('_') and getattr(value, '__module__', '') == module.__name__}


_made = {}
for _module in (creation, overloads, pooling, reductions, shapes, calls, names, aliases, windows):
    _made.update(_own(_module))
for _name, (_c_name, _line) in C_FUNCTIONS.items():
    _made[_name] = (in_place_function(_name, _c_name, _line) if _name.endswith('_') else
                    tensor_function(_name, _c_name, _line, _RESULTS.get(_name)))
globals().update(_made)
PUBLIC = list(_made)

# Functions here that are also methods: those whose first argument is the tensor.
METHODS = frozenset('''
add add_ addcdiv_ addcmul_ adjoint allclose aminmax argmax argmin argwhere atleast_1d atleast_2d atleast_3d
bernoulli bernoulli_ bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_or bitwise_or_
bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ broadcast_to cauchy_ cholesky cholesky_solve chunk
clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ clone conj conj_physical copysign copysign_ cross
cumulative_trapezoid det diag diag_embed diagflat diff dist div div_ divide divide_ dsplit eq eq_ equal expand_as
exponential_ fill_ fill_diagonal_ fliplr flipud float_power float_power_ floor_divide floor_divide_ fmod fmod_ frexp
ge ge_ geometric_ ger gradient greater greater_ greater_equal greater_equal_ gt gt_ histogram hsplit index_fill
index_fill_ inverse is_complex is_conj is_neg is_nonzero is_same_size is_signed isreal kron le le_ lerp lerp_ less
less_ less_equal less_equal_ log_normal_ log_softmax logdet lt lt_ lu_solve masked_fill masked_fill_ masked_scatter
masked_scatter_ masked_select matrix_exp matrix_power max median min moveaxis movedim msort mul mul_ multinomial
multiply multiply_ nanmedian nanquantile narrow_copy ne ne_ new_empty new_empty_strided new_full new_ones new_zeros
nonzero nonzero_static norm normal_ not_equal not_equal_ outer pinverse positive pow pow_ qr quantile random_ ravel
remainder remainder_ renorm renorm_ repeat_interleave resolve_conj resolve_neg rot90 rsub scatter scatter_ slogdet
softmax softmin split split_with_sizes squeeze std sub sub_ subtract subtract_ sum_to_size svd take_along_dim
tensor_split tile trace true_divide true_divide_ unbind unflatten uniform_ unique unique_consecutive unsafe_chunk
unsafe_split unsafe_split_with_sizes var vsplit where xlogy xlogy_ zero_'''.split())

# Forms of operators that only these modules use.
_FORMS = frozenset(('lerp_tensor where_tensors masked_fill_scalar masked_fill_scalar_ scatter_tensor scatter_tensor_ '
                    'scatter_value scatter_value_ std_dims var_dims unique_all unique_inverse unique_values '
                    'unique_consecutive_all unique_consecutive_inverse unique_consecutive_values squeeze_dim '
                    'reshape_sizes tensor_unfold').split())


def is_internal(name):
    return name in _FORMS
