"""Forward functions of layers whose results or arguments are not simply the library's outputs and inputs."""
import collections

from .._c import NULL, ffi, lib
from .._functions.names import _lengths
from .._tensor import composed, wrap
from ..autograd import no_grad
from ._packed import PackedSequence, apply_packed


def recurrent(self, input, hx=None, lengths=None):
    """(output, h_n), of an LSTM (output, (h_n, c_n)). `lengths` [N], int64, are those of padded sequences; of a
    PackedSequence the output is one, too."""
    if isinstance(input, PackedSequence):
        if lengths is not None:
            raise ValueError('%s: a PackedSequence has its lengths: leave out lengths' % type(self).__name__)
        return apply_packed(self, input, hx)
    states = hx if isinstance(hx, tuple) else (hx,)
    missing = lib.kn_module_input_count(self._h) - 2 - len(states)
    output, *state = self._apply((input, *states, *(None,) * missing, lengths))
    return output, tuple(state) if len(state) > 1 else state[0]


def flatten_parameters(self):
    """Nothing: the library needs no other layout."""


def cell(self, input, hx=None):
    states = hx if isinstance(hx, tuple) else (hx,)
    found = self._apply((input, *states))
    return found if len(found) > 1 else found[0]


def attention(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
              average_attn_weights=True, is_causal=False):
    """(output, weights); weights are None unless needed."""
    params = ffi.new('kn_multihead_attention_params *', lib.kn_multihead_attention_params_init())
    params.key_padding_mask = handle(key_padding_mask)
    params.attn_mask = handle(attn_mask)
    params.is_causal, params.average_attn_weights = is_causal, average_attn_weights
    weights = ffi.new('kn_tensor *[1]')
    if need_weights:
        params.weights = weights
    output = wrap(lib.kn_multihead_attention_with(self._h, query._h, key._h, value._h, params))
    return output, wrap(weights[0]) if need_weights else None


def handle(tensor):
    return NULL if tensor is None else tensor._h


def ctc(self, log_probs, targets, input_lengths, target_lengths):
    return self._apply((log_probs, targets, *_lengths(log_probs.device, input_lengths, target_lengths)))[0]


# --- AdaptiveLogSoftmaxWithLoss ---------------------------------------------------------------------------------------

AdaptiveOutput = collections.namedtuple('AdaptiveOutput', ('output', 'loss'), module='koine.nn')


def adaptive(self, input_, target_):
    """(output, loss): the logarithms of the targets' probabilities, and their negative mean."""
    return AdaptiveOutput(*self._apply((input_, target_)))


def adaptive_log_prob(self, input):
    """The logarithms of the probabilities of all classes."""
    return composed(lib.kn_adaptive_log_softmax_log_prob, self._h, input._h)


def adaptive_predict(self, input):
    """The most probable class of each sample."""
    return composed(lib.kn_adaptive_log_softmax_predict, self._h, input._h)


# --- Transformer ------------------------------------------------------------------------------------------------------


def encode(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
    """`is_causal` says that the mask is the causal one, which need not be given then."""
    if is_causal:
        return wrap(lib.kn_transformer_encode_causal(self._h, src._h, handle(src_key_padding_mask)))
    return self._apply((src, src_mask, src_key_padding_mask))[0]


def encode_all(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
    """As of a layer."""
    return encode(self, src, mask, src_key_padding_mask, is_causal)


def decode(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
           memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):
    """`tgt_is_causal` says that tgt_mask is the causal one, which need not be given then; `memory_is_causal` the same
    of memory_mask, which is needed."""
    if memory_is_causal and memory_mask is None:
        raise ValueError('%s: memory_is_causal is about memory_mask, which is missing' % type(self).__name__)
    if tgt_is_causal and memory_mask is None:
        return wrap(lib.kn_transformer_decode_causal(self._h, tgt._h, memory._h, handle(tgt_key_padding_mask),
                                                     handle(memory_key_padding_mask)))
    if tgt_is_causal and tgt_mask is None:
        tgt_mask = square_subsequent_mask(memory_mask.shape[-2], tgt.device, tgt.dtype)
    return self._apply((tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask))[0]


def transform(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
              tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None,
              memory_is_causal=False):
    """The decoder's result for tgt and what the encoder makes of src."""
    if src_is_causal or tgt_is_causal or memory_is_causal:
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                            tgt_is_causal, memory_is_causal)
    return self._apply((src, tgt, src_mask, tgt_mask, memory_mask, src_key_padding_mask, tgt_key_padding_mask,
                        memory_key_padding_mask))[0]


def square_subsequent_mask(sz, device=None, dtype=None):
    """[sz, sz]: -infinity above the diagonal, else 0, so that position i sees those up to i."""
    from .._tensor import options
    return wrap(lib.kn_nn_square_subsequent_mask_with(sz, options(dtype, device)))


# --- Embedding --------------------------------------------------------------------------------------------------------


def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0,
                    scale_grad_by_freq=False, sparse=False):
    """With copies of the vectors [num_embeddings, embedding_dim], which training leaves alone unless freeze=False."""
    if len(embeddings.shape) != 2:
        raise ValueError('Embedding.from_pretrained: embeddings have 2 dimensions, not %d' % len(embeddings.shape))
    layer = cls(*embeddings.shape, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
                scale_grad_by_freq=scale_grad_by_freq, device=embeddings.device, dtype=embeddings.dtype)
    with no_grad():
        layer.weight.copy_(embeddings)
    layer.weight.requires_grad = not freeze
    return layer


# What the classes of the table have besides their constructor.
METHODS = {
    'CTCLoss': {'forward': ctc},
    'Embedding': {'from_pretrained': classmethod(from_pretrained)},
    **{name: {'forward': recurrent, 'flatten_parameters': flatten_parameters} for name in ('RNN', 'LSTM', 'GRU')},
    **{name: {'forward': cell} for name in ('RNNCell', 'LSTMCell', 'GRUCell')},
    'MultiheadAttention': {'forward': attention, '_gradients_pass': False},
    'AdaptiveLogSoftmaxWithLoss': {'forward': adaptive, 'log_prob': adaptive_log_prob, 'predict': adaptive_predict},
    'TransformerEncoderLayer': {'forward': encode},
    'TransformerDecoderLayer': {'forward': decode},
    'Transformer': {'forward': transform, 'generate_square_subsequent_mask': staticmethod(square_subsequent_mask)},
}
