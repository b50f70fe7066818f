"""What a module holds, as dictionaries, files and text."""
import collections

from .. import safetensors
from .._c import NULL, KoineValueError, check, encoded, ffi, lib, owned_text, path
from .._tensor import Tensor, tensor as as_tensor
from ..autograd import no_grad
from ._life import address, uninitialized
from ._parameter import Parameter
from ._tree import dotted

IncompatibleKeys = collections.namedtuple('IncompatibleKeys', ('missing_keys', 'unexpected_keys'), module='koine.nn')


class State:
    """The part of Module about its parameters and buffers as a whole."""

    def state_dict(self, *, prefix='', keep_vars=False):
        """Parameters and buffers by name, without copies; keep_vars=True: with their gradients."""
        return collections.OrderedDict(
            (prefix + dotted(place, name), tensor if keep_vars else tensor.detach())
            for place, module in self._named_modules('') for name, kind, tensor in module._own_tensors()
            if kind != 'buffer' or name not in module._transient)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies tensors or arrays by name into parameters and buffers; (missing names, unexpected names). Of the names
        of a tied parameter one is enough. assign=True: the tensors themselves take their places, with their dtypes and
        devices."""
        for place, module in list(self.named_modules()) if uninitialized else ():
            if module in uninitialized:
                module._initialize_from(state_dict, dotted(place, ''))
        own, state = self.state_dict(keep_vars=True), state_dict
        given = {address(tensor._h) for name, tensor in own.items() if name in state}
        missing = [name for name, tensor in own.items() if address(tensor._h) not in given]
        unexpected = [name for name in state if name not in own]
        if strict and (missing or unexpected):
            raise RuntimeError('%s: missing: %s; unexpected: %s' % (type(self).__name__, ', '.join(missing) or 'none',
                                                                   ', '.join(unexpected) or 'none'))
        for name, tensor in own.items():
            if name in state and tuple(state[name].shape) != tensor.shape:
                raise KoineValueError('%s has shape %s here, %s in the state' % (name, tensor.shape,
                                                                                tuple(state[name].shape)))
        if assign:
            self._assign(state)
        else:
            with no_grad():
                for name, tensor in own.items():
                    if name in state:
                        tensor.copy_(state[name])
        return IncompatibleKeys(missing, unexpected)

    def _assign(self, state):
        for place, module in list(self._named_modules('')):
            for name, kind, tensor in list(module._own_tensors()):
                given = state.get(dotted(place, name))
                if given is not None:
                    given = given.detach() if isinstance(given, Tensor) else as_tensor(given)
                    module._register(name, given if kind == 'buffer' else Parameter(given, tensor.requires_grad), kind)

    def save(self, file):
        """As a safetensors file with PyTorch's names."""
        if self._has_transient():
            safetensors.save_file(self.state_dict(), file)
        else:
            check(lib.kn_module_save(self._h, path(file)))

    def load(self, file, strict=True, prefix=None):
        """From a safetensors file: see kn_module_load."""
        if self._has_transient() or self._lazy_layers():
            start, tensors = prefix or '', safetensors.load_file(file, 'host')
            self.load_state_dict({name[len(start):]: one for name, one in tensors.items() if name.startswith(start)},
                                 strict)
            return self
        params = ffi.new('kn_module_load_params *', lib.kn_module_load_params_init())
        start = ffi.new('char[]', encoded(prefix or ''))
        params.strict, params.prefix = strict, start
        check(lib.kn_module_load_with(self._h, path(file), params))
        return self

    def _has_transient(self):
        """Are there buffers that are not saved, of which the library does not know?"""
        return any(module._transient for module in self.modules())

    def summary(self, *inputs, width=-1):
        """The tree with the numbers of parameters; with sample inputs also shapes and multiply-adds."""
        for module in self.modules():
            module._describe()
        params = ffi.new('kn_module_summary_params *', lib.kn_module_summary_params_init())
        handles = ffi.new('kn_tensor *[]', [one._h for one in inputs] or [NULL])
        if inputs:
            params.inputs, params.num_inputs = handles, len(inputs)
        params.width = width
        return owned_text(lib.kn_module_summary_with(self._h, params))
