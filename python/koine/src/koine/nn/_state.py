"""What a module holds, as dictionaries, files and text."""
import collections

from .._c import NULL, check, ffi, lib, owned_text, path
from ..autograd import no_grad


class State:
    """The part of Module about its parameters and buffers as a whole."""

    def state_dict(self):
        """Parameters and buffers by name, without copies."""
        return collections.OrderedDict((name, tensor.detach()) for name, tensor in self._parameters() + self._buffers())

    def load_state_dict(self, state, strict=True):
        """Copies tensors or arrays by name into parameters and buffers; (missing names, unexpected names)."""
        own = self.state_dict()
        missing = [name for name in own if name not in state]
        unexpected = [name for name in state if name not in own]
        if strict and (missing or unexpected):
            raise KeyError('%s: missing: %s; unexpected: %s' % (type(self).__name__, ', '.join(missing) or 'none',
                                                               ', '.join(unexpected) or 'none'))
        for name, tensor in own.items():
            if name in state and tuple(state[name].shape) != tensor.shape:
                raise ValueError('%s has shape %s here, %s in the state' % (name, tensor.shape,
                                                                           tuple(state[name].shape)))
        with no_grad():
            for name, tensor in own.items():
                if name in state:
                    tensor.copy_(state[name])
        return missing, unexpected

    def save(self, file):
        """As a safetensors file with PyTorch's names."""
        check(lib.kn_module_save(self._h, path(file)))

    def load(self, file, strict=True, prefix=None):
        """From a safetensors file: see kn_module_load."""
        params = ffi.new('kn_module_load_params *', lib.kn_module_load_params_init())
        start = ffi.new('char[]', (prefix or '').encode())
        params.strict, params.prefix = strict, start
        check(lib.kn_module_load_with(self._h, path(file), params))
        return self

    def summary(self, *inputs, width=-1):
        """The tree with the numbers of parameters; with sample inputs also shapes and multiply-adds."""
        params = ffi.new('kn_module_summary_params *', lib.kn_module_summary_params_init())
        handles = ffi.new('kn_tensor *[]', [one._h for one in inputs] or [NULL])
        if inputs:
            params.inputs, params.num_inputs = handles, len(inputs)
        params.width = width
        return owned_text(lib.kn_module_summary_with(self._h, params))
