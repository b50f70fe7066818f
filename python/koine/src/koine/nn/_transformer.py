"""TransformerEncoder and TransformerDecoder: copies of a layer, one after the other."""
import copy

from .._c import NULL, lib
from . import _forwards
from ._layers import CLASSES
from .module import Layer, Module


class _Stack(Layer):
    _places = {'norm': 'child'}

    def _fill(self, layer, num_layers, norm):
        """Owns copies of the layer, and the norm itself."""
        name = self._kind
        kind = CLASSES[name + 'Layer']
        if not isinstance(layer, kind):
            raise TypeError('%s: a koine.nn.%s is needed, not %s' % (name, kind.__name__, type(layer).__name__))
        if norm is not None and not isinstance(norm, Module):
            raise TypeError('%s: norm must be a koine.nn.Module, not %s' % (name, type(norm).__name__))
        if num_layers < 0:
            raise ValueError('%s: num_layers must be at least 0, not %d' % (name, num_layers))
        self._own_parts([copy.deepcopy(layer) for _ in range(num_layers)], norm)

    def _own_parts(self, layers, norm):
        parts = layers + [norm] * (norm is not None)
        pointers = [one._h for one in parts]
        self._adopt(self._make(pointers[:len(layers)], len(layers), NULL if norm is None else pointers[-1]))
        for one in parts:
            one._life.give(self._life)
        if norm is not None:
            self._children['norm'] = norm
        self.layers._children.update((str(i), one) for i, one in enumerate(layers))

    def _make_bare(self, made, memo):
        made._own_parts([copy.deepcopy(one, memo) for one in self.layers], copy.deepcopy(self.norm, memo))


class TransformerEncoder(_Stack):
    """torch.nn.TransformerEncoder: docs/torch-nn.md. The last two arguments choose between ways to compute in PyTorch;
    here they have no effect."""

    _kind, _make = 'TransformerEncoder', lib.kn_nn_transformer_encoder_of

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        self._fill(encoder_layer, num_layers, norm)

    forward = _forwards.encode_all


class TransformerDecoder(_Stack):
    """torch.nn.TransformerDecoder: docs/torch-nn.md."""

    _kind, _make = 'TransformerDecoder', lib.kn_nn_transformer_decoder_of

    def __init__(self, decoder_layer, num_layers, norm=None):
        self._fill(decoder_layer, num_layers, norm)

    forward = _forwards.decode


CLASSES.update({'TransformerEncoder': TransformerEncoder, 'TransformerDecoder': TransformerDecoder})
