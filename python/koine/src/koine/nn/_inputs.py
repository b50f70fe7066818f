"""The names of the layers' inputs, for calls with keywords."""

_DEFAULT = 'input', 'target'
_NAMES = {
    'AdaptiveLogSoftmaxWithLoss': ('input_', 'target_'),
    'Bilinear': ('input1', 'input2'),
    'CTCLoss': ('log_probs', 'targets', 'input_lengths', 'target_lengths'),
    'CosineEmbeddingLoss': ('input1', 'input2', 'target'),
    'CosineSimilarity': ('x1', 'x2'),
    'GRU': ('input', 'hx'),
    'GRUCell': ('input', 'hx'),
    'GaussianNLLLoss': ('input', 'target', 'var'),
    'MarginRankingLoss': ('input1', 'input2', 'target'),
    'MaxUnpool1d': ('input', 'indices'),
    'MaxUnpool2d': ('input', 'indices'),
    'MaxUnpool3d': ('input', 'indices'),
    'MultiheadAttention': ('query', 'key', 'value'),
    'PairwiseDistance': ('x1', 'x2'),
    'PoissonNLLLoss': ('log_input', 'target'),
    'RMSNorm': ('x',),
    'RNN': ('input', 'hx'),
    'RNNCell': ('input', 'hx'),
    'Transformer': ('src', 'tgt'),
    'TransformerDecoder': ('tgt', 'memory'),
    'TransformerDecoderLayer': ('tgt', 'memory'),
    'TransformerEncoder': ('src',),
    'TransformerEncoderLayer': ('src',),
    'TripletMarginLoss': ('anchor', 'positive', 'negative'),
}


def in_order(module, inputs, keywords):
    """Those given by position, and after them those by name."""
    names = next((_NAMES[kind.__name__] for kind in type(module).__mro__ if kind.__name__ in _NAMES), _DEFAULT)
    left = dict(keywords)
    ordered = [*inputs, *(left.pop(name) for name in names[len(inputs):len(inputs) + len(keywords)] if name in left)]
    if left:
        raise TypeError('%s: there is no further input called %s; its inputs are %s' % (
            type(module).__name__, ', '.join(left), ', '.join(names)))
    return ordered
