"""reset_parameters of layers, and reset_running_stats."""
from .. import _device
from ..autograd import no_grad
from ._arguments import arguments_of


def reset_parameters(self):
    """Gives parameters and buffers the first values of a new layer, which are drawn from the device's generator."""
    state = self.state_dict()
    if not state:  # a norm without any
        return
    initialise, arguments, keywords = self.__dict__.get('_made_with') or (type(self).__init__, (), arguments_of(self))
    fresh = object.__new__(type(self))
    with _device.device(next(iter(state.values())).device):
        initialise(fresh, *arguments, **keywords)
    self.load_state_dict(fresh.state_dict(), strict=False)


def reset_running_stats(self):
    """Forgets the batches that were seen."""
    if self.running_mean is not None:
        with no_grad():
            self.running_mean.zero_()
            self.running_var.fill_(1.0)
            self.num_batches_tracked.zero_()


_NAMES = ('PReLU AdaptiveLogSoftmaxWithLoss Linear Bilinear LayerNorm GroupNorm RMSNorm RNN LSTM GRU RNNCell LSTMCell '
          'GRUCell Embedding EmbeddingBag').split()
_BY_DIMENSION = 'Conv%dd', 'ConvTranspose%dd', 'BatchNorm%dd', 'InstanceNorm%dd'

# The classes that have them, as in PyTorch.
METHODS = {name: {'reset_parameters': reset_parameters}
           for name in _NAMES + [kind % n for kind in _BY_DIMENSION for n in (1, 2, 3)]}
for _name, _methods in METHODS.items():
    if _name.startswith(('BatchNorm', 'InstanceNorm')):
        _methods['reset_running_stats'] = reset_running_stats
