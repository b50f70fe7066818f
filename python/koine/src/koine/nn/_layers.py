"""The layers and losses of koine.nn: PyTorch's constructors, and the C function that each calls."""
from .. import _device
from .._bind import Binding
from . import _forwards, _reset
from .module import Layer

_CONV = ('in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, '
         'padding_mode="zeros"')
_CONV_TRANSPOSE = ('in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, '
                   'bias=True, dilation=1')
_MAX_POOL = 'kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False'
_FRACTIONAL_POOL = ('kernel_size, output_size=None, output_ratio=None, return_indices=False, '
                    '_random_samples: samples=None')
_AVG_POOL = 'kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None'
_BATCH_NORM = 'num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True'
_INSTANCE_NORM = 'num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False'
_RNN = ('input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False')
_TRANSFORMER_LAYER = ('d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-05, '
                      'batch_first=False, norm_first=False, bias=True')

TABLE = {
    'AdaptiveLogSoftmaxWithLoss': ('kn_nn_adaptive_log_softmax_with_loss_with',
                                   'in_features, n_classes, cutoffs, div_value=4.0, head_bias=False'),
    'AlphaDropout': ('kn_nn_alpha_dropout_with', 'p=0.5, inplace: _=False'),
    'AvgPool1d': ('kn_nn_avg_pool1d_with', _AVG_POOL.rsplit(',', 1)[0]),
    'AvgPool2d': ('kn_nn_avg_pool2d_with', _AVG_POOL),
    'AvgPool3d': ('kn_nn_avg_pool3d_with', _AVG_POOL),
    'BCELoss': ('kn_nn_bce_loss_with', 'weight=None, reduction="mean"'),
    'BCEWithLogitsLoss': ('kn_nn_bce_with_logits_loss_with', 'weight=None, reduction="mean", pos_weight=None'),
    'BatchNorm1d': ('kn_nn_batch_norm1d_with', _BATCH_NORM),
    'BatchNorm2d': ('kn_nn_batch_norm2d_with', _BATCH_NORM),
    'BatchNorm3d': ('kn_nn_batch_norm3d_with', _BATCH_NORM),
    'Bilinear': ('kn_nn_bilinear_with', 'in1_features, in2_features, out_features, bias=True'),
    'CELU': ('kn_nn_celu_with', 'alpha=1.0, inplace: _=False'),
    'CTCLoss': ('kn_nn_ctc_loss_with', 'blank=0, reduction="mean", zero_infinity=False'),
    'ChannelShuffle': ('kn_nn_channel_shuffle', 'groups'),
    'Conv1d': ('kn_nn_conv1d_with', _CONV),
    'Conv2d': ('kn_nn_conv2d_with', _CONV),
    'Conv3d': ('kn_nn_conv3d_with', _CONV),
    'ConvTranspose1d': ('kn_nn_conv_transpose1d_with', _CONV_TRANSPOSE),
    'ConvTranspose2d': ('kn_nn_conv_transpose2d_with', _CONV_TRANSPOSE),
    'ConvTranspose3d': ('kn_nn_conv_transpose3d_with', _CONV_TRANSPOSE),
    'CosineEmbeddingLoss': ('kn_nn_cosine_embedding_loss_with', 'margin=0.0, reduction="mean"'),
    'CosineSimilarity': ('kn_nn_cosine_similarity_with', 'dim=1, eps=1e-08'),
    'CrossEntropyLoss': ('kn_nn_cross_entropy_loss_with',
                         'weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0'),
    'Dropout': ('kn_nn_dropout_with', 'p=0.5, inplace: _=False'),
    'Dropout1d': ('kn_nn_dropout1d_with', 'p=0.5, inplace: _=False'),
    'Dropout2d': ('kn_nn_dropout2d_with', 'p=0.5, inplace: _=False'),
    'Dropout3d': ('kn_nn_dropout3d_with', 'p=0.5, inplace: _=False'),
    'ELU': ('kn_nn_elu_with', 'alpha=1.0, inplace: _=False'),
    'Embedding': ('kn_nn_embedding_with', 'num_embeddings, embedding_dim, padding_idx=None, max_norm=None, '
                  'norm_type=2.0, scale_grad_by_freq=False, sparse: _=False'),
    'EmbeddingBag': ('kn_nn_embedding_bag_with', 'num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, '
                     'scale_grad_by_freq=False, mode="mean", sparse: _=False, include_last_offset=False, '
                     'padding_idx=None'),
    'FeatureAlphaDropout': ('kn_nn_feature_alpha_dropout_with', 'p=0.5, inplace: _=False'),
    'Flatten': ('kn_nn_flatten_with', 'start_dim=1, end_dim=-1'),
    'Fold': ('kn_nn_fold_with', 'output_size, kernel_size, dilation=1, padding=0, stride=1'),
    'FractionalMaxPool2d': ('kn_nn_fractional_max_pool2d_with', _FRACTIONAL_POOL),
    'FractionalMaxPool3d': ('kn_nn_fractional_max_pool3d_with', _FRACTIONAL_POOL),
    'GELU': ('kn_nn_gelu_with', 'approximate="none"'),
    'GLU': ('kn_nn_glu', 'dim=-1'),
    'GRUCell': ('kn_nn_gru_cell_with', 'input_size, hidden_size, bias=True'),
    'GaussianNLLLoss': ('kn_nn_gaussian_nll_loss_with', '*, full=False, eps=1e-06, reduction="mean"'),
    'GroupNorm': ('kn_nn_group_norm_with', 'num_groups, num_channels, eps=1e-05, affine=True'),
    'Hardshrink': ('kn_nn_hardshrink_with', 'lambd=0.5'),
    'Hardsigmoid': ('kn_nn_hardsigmoid', 'inplace: _=False'),
    'Hardswish': ('kn_nn_hardswish', 'inplace: _=False'),
    'Hardtanh': ('kn_nn_hardtanh', 'min_val=-1.0, max_val=1.0, inplace: _=False'),
    'HingeEmbeddingLoss': ('kn_nn_hinge_embedding_loss_with', 'margin=1.0, reduction="mean"'),
    'HuberLoss': ('kn_nn_huber_loss_with', 'reduction="mean", delta=1.0'),
    'Identity': ('kn_nn_identity', ''),
    'InstanceNorm1d': ('kn_nn_instance_norm1d_with', _INSTANCE_NORM),
    'InstanceNorm2d': ('kn_nn_instance_norm2d_with', _INSTANCE_NORM),
    'InstanceNorm3d': ('kn_nn_instance_norm3d_with', _INSTANCE_NORM),
    'KLDivLoss': ('kn_nn_kl_div_loss_with', 'reduction="mean", log_target=False'),
    'L1Loss': ('kn_nn_l1_loss', 'reduction="mean"'),
    'LPPool1d': ('kn_nn_lp_pool1d_with', 'norm_type, kernel_size, stride=None, ceil_mode=False'),
    'LPPool2d': ('kn_nn_lp_pool2d_with', 'norm_type, kernel_size, stride=None, ceil_mode=False'),
    'LPPool3d': ('kn_nn_lp_pool3d_with', 'norm_type, kernel_size, stride=None, ceil_mode=False'),
    'LSTMCell': ('kn_nn_lstm_cell_with', 'input_size, hidden_size, bias=True'),
    'LayerNorm': ('kn_nn_layer_norm_with', 'normalized_shape, eps=1e-05, elementwise_affine=True, bias=True'),
    'LeakyReLU': ('kn_nn_leaky_relu_with', 'negative_slope=0.01, inplace: _=False'),
    'Linear': ('kn_nn_linear_with', 'in_features, out_features, bias=True'),
    'LocalResponseNorm': ('kn_nn_local_response_norm_with', 'size, alpha=0.0001, beta=0.75, k=1.0'),
    'LogSigmoid': ('kn_nn_log_sigmoid', ''),
    'LogSoftmax': ('kn_nn_log_softmax', 'dim=-1'),
    'MSELoss': ('kn_nn_mse_loss', 'reduction="mean"'),
    'MarginRankingLoss': ('kn_nn_margin_ranking_loss_with', 'margin=0.0, reduction="mean"'),
    'MaxPool1d': ('kn_nn_max_pool1d_with', _MAX_POOL),
    'MaxPool2d': ('kn_nn_max_pool2d_with', _MAX_POOL),
    'MaxPool3d': ('kn_nn_max_pool3d_with', _MAX_POOL),
    'MaxUnpool1d': ('kn_nn_max_unpool1d_with', 'kernel_size, stride=None, padding=0'),
    'MaxUnpool2d': ('kn_nn_max_unpool2d_with', 'kernel_size, stride=None, padding=0'),
    'MaxUnpool3d': ('kn_nn_max_unpool3d_with', 'kernel_size, stride=None, padding=0'),
    'Mish': ('kn_nn_mish', 'inplace: _=False'),
    'MultiLabelMarginLoss': ('kn_nn_multilabel_margin_loss', 'reduction="mean"'),
    'MultiLabelSoftMarginLoss': ('kn_nn_multilabel_soft_margin_loss_with', 'weight=None, reduction="mean"'),
    'MultiMarginLoss': ('kn_nn_multi_margin_loss_with', 'p=1, margin=1.0, weight=None, reduction="mean"'),
    'MultiheadAttention': ('kn_nn_multihead_attention_with', 'embed_dim, num_heads, dropout=0.0, bias=True, '
                           'add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None, batch_first=False'),
    'NLLLoss': ('kn_nn_nll_loss_with', 'weight=None, ignore_index=-100, reduction="mean"'),
    'PReLU': ('kn_nn_prelu_with', 'num_parameters=1, init=0.25'),
    'PairwiseDistance': ('kn_nn_pairwise_distance_with', 'p=2.0, eps=1e-06, keepdim=False'),
    'PixelShuffle': ('kn_nn_pixel_shuffle', 'upscale_factor'),
    'PixelUnshuffle': ('kn_nn_pixel_unshuffle', 'downscale_factor'),
    'PoissonNLLLoss': ('kn_nn_poisson_nll_loss_with', 'log_input=True, full=False, eps=1e-08, reduction="mean"'),
    'GRU': ('kn_nn_gru_with', _RNN),
    'LSTM': ('kn_nn_lstm_with', _RNN + ', proj_size=0'),
    'RNN': ('kn_nn_rnn_with', _RNN.replace('num_layers=1, ', 'num_layers=1, nonlinearity="tanh", ')),
    'RMSNorm': ('kn_nn_rms_norm_with', 'normalized_shape, eps=None, elementwise_affine=True'),
    'RNNCell': ('kn_nn_rnn_cell_with', 'input_size, hidden_size, bias=True, nonlinearity="tanh"'),
    'RReLU': ('kn_nn_rrelu_with', 'lower=0.125, upper=0.3333333333333333, inplace: _=False'),
    'ReLU': ('kn_nn_relu', 'inplace: _=False'),
    'ReLU6': ('kn_nn_relu6', 'inplace: _=False'),
    'SELU': ('kn_nn_selu', 'inplace: _=False'),
    'SiLU': ('kn_nn_silu', 'inplace: _=False'),
    'Sigmoid': ('kn_nn_sigmoid', ''),
    'SmoothL1Loss': ('kn_nn_smooth_l1_loss_with', 'reduction="mean", beta=1.0'),
    'SoftMarginLoss': ('kn_nn_soft_margin_loss', 'reduction="mean"'),
    'Softmax': ('kn_nn_softmax', 'dim=-1'),
    'Softmax2d': ('kn_nn_softmax2d', ''),
    'Softmin': ('kn_nn_softmin', 'dim=-1'),
    'Softplus': ('kn_nn_softplus_with', 'beta=1.0, threshold=20.0'),
    'Softshrink': ('kn_nn_softshrink_with', 'lambd=0.5'),
    'Softsign': ('kn_nn_softsign', ''),
    'Tanh': ('kn_nn_tanh', ''),
    'Tanhshrink': ('kn_nn_tanhshrink', ''),
    'Threshold': ('kn_nn_threshold', 'threshold, value, inplace: _=False'),
    'Transformer': ('kn_nn_transformer_with', 'd_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, '
                    + _TRANSFORMER_LAYER.split(', ', 2)[2]),
    'TransformerDecoderLayer': ('kn_nn_transformer_decoder_layer_with', _TRANSFORMER_LAYER),
    'TransformerEncoderLayer': ('kn_nn_transformer_encoder_layer_with', _TRANSFORMER_LAYER),
    'TripletMarginLoss': ('kn_nn_triplet_margin_loss_with',
                          'margin=1.0, p=2.0, eps=1e-06, swap=False, reduction="mean"'),
    'TripletMarginWithDistanceLoss': ('kn_nn_triplet_margin_with_distance_loss_with', '*, distance_function=None, '
                                      'margin=1.0, swap=False, reduction="mean"'),
    'Unflatten': ('kn_nn_unflatten', 'dim, unflattened_size'),
    'Unfold': ('kn_nn_unfold_with', 'kernel_size, dilation=1, padding=0, stride=1'),
    'Upsample': ('kn_nn_upsample_with', 'size=None, scale_factor=None, mode="nearest", align_corners=None, '
                 'recompute_scale_factor=None'),
    'UpsamplingBilinear2d': ('kn_nn_upsampling_bilinear2d_with', 'size=None, scale_factor=None'),
    'UpsamplingNearest2d': ('kn_nn_upsampling_nearest2d_with', 'size=None, scale_factor=None'),
}
for _n in (1, 2, 3):
    TABLE['AdaptiveAvgPool%dd' % _n] = ('kn_nn_adaptive_avg_pool%dd' % _n, 'output_size')
    TABLE['AdaptiveMaxPool%dd' % _n] = ('kn_nn_adaptive_max_pool%dd' % _n, 'output_size, return_indices=False')
for _kind in ('Constant', 'Zero', 'Reflection', 'Replication', 'Circular'):
    for _n in (1, 2, 3):
        _name = '%sPad%dd' % (_kind, _n)
        TABLE[_name] = ('kn_nn_%s_pad%dd' % (_kind.lower(), _n), 'padding, value' if _kind == 'Constant' else 'padding')


# --- constructors -----------------------------------------------------------------------------------------------------


def _constructor(c_name, line):
    made = []

    def __init__(self, *arguments, device=None, dtype=None, **keywords):
        if not made:
            made.append(Binding(c_name, line))
        if device is None:
            handle, _, keep = made[0](arguments, keywords)
        else:
            with _device.device(device):
                handle, _, keep = made[0](arguments, keywords)
        self._adopt(handle)
        # _keep: a function that the layer calls
        self.__dict__.update(_made_with=(__init__, arguments, keywords), _keep=keep)
        if dtype is not None:
            self.to(dtype=dtype)

    extra = 'device=None, dtype=None'
    __init__.line = ', '.join(part for part in (line, extra if '*, ' in line else '*, ' + extra) if part)
    return __init__


# Of which PyTorch has None where a layer is made without them.
_BIAS, _SCALE = ('bias',), ('weight', 'bias')
_ESTIMATES = ('running_mean', 'running_var', 'num_batches_tracked')
_LOSSES = ('BCELoss', 'CrossEntropyLoss', 'MultiLabelSoftMarginLoss', 'MultiMarginLoss', 'NLLLoss')
PARAMETERS = {
    'Linear': _BIAS, 'Bilinear': _BIAS, 'LayerNorm': _SCALE, 'GroupNorm': _SCALE, 'RMSNorm': ('weight',),
    'MultiheadAttention': ('in_proj_weight', 'in_proj_bias', 'q_proj_weight', 'k_proj_weight', 'v_proj_weight',
                           'bias_k', 'bias_v'),
    **{name: ('bias_ih', 'bias_hh') for name in ('RNNCell', 'LSTMCell', 'GRUCell')},
    **{kind % n: names for kind, names in (('Conv%dd', _BIAS), ('ConvTranspose%dd', _BIAS), ('BatchNorm%dd', _SCALE),
                                           ('InstanceNorm%dd', _SCALE)) for n in (1, 2, 3)},
}
BUFFERS = {
    **{kind % n: _ESTIMATES for kind in ('BatchNorm%dd', 'InstanceNorm%dd') for n in (1, 2, 3)},
    **{name: ('weight',) for name in _LOSSES}, 'BCEWithLogitsLoss': ('weight', 'pos_weight'),
}

CLASSES = {}
for _name, (_c_name, _line) in TABLE.items():
    CLASSES[_name] = type(_name, (Layer,), {
        '__init__': _constructor(_c_name, _line), '__module__': 'koine.nn',
        '_places': {**dict.fromkeys(PARAMETERS.get(_name, ()), 'parameter'),
                    **dict.fromkeys(BUFFERS.get(_name, ()), 'buffer')},
        '__doc__': 'torch.nn.%s: docs/torch-nn.md.' % _name, **_forwards.METHODS.get(_name, {}),
        **_reset.METHODS.get(_name, {})})

# Of further names that the library, like PyTorch, gives modules.
OTHER_CLASSES = {'NonDynamicallyQuantizableLinear': CLASSES['Linear']}
