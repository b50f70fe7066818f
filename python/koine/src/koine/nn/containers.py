"""Sequential, lists and dictionaries of modules, and of parameters."""
from .._c import NULL, check, encoded, lib
from .._tensor import Tensor
from ._life import address, hand_over, wrappers
from ._parameter import Parameter
from .module import Layer, Module


class _Made(Layer):
    """Of which a copy begins as one without modules and parameters."""

    def _make_bare(self, made, _memo):
        made._adopt(self._new())


# --- lists and dictionaries, whose kinds have _put(name, value) and _named_values() -----------------------------------


class _List:
    """What lists have in common, of modules and of parameters."""

    def _values(self):
        return [value for _, value in self._named_values()]

    def _hold(self, values):
        """Holds these of its values, in this order, with new numbers."""
        for name, _ in self._named_values():
            self._take_out(name)
        for i, one in enumerate(values):
            self._put(str(i), one)

    def __iter__(self):
        return iter(self._values())

    def append(self, value):
        self._put(str(len(self)), value)
        return self

    def extend(self, values):
        for one in list(values):
            self.append(one)
        return self

    __iadd__ = extend

    def insert(self, index, value):
        size = len(self)
        if not -size <= index <= size:
            raise IndexError('%s: there is no place %d among %d' % (type(self).__name__, index, size))
        self.append(value)  # first, since a value may be refused
        values = self._values()
        values.insert(index + size if index < 0 else index, values.pop())
        self._hold(values)
        return self

    def pop(self, key):
        """Takes one out, or the list of those of a slice; what remains is numbered anew."""
        found = self[key]
        del self[key]
        return found

    def __delitem__(self, key):
        values = self._values()
        del values[key]
        self._hold(values)

    def __getitem__(self, key):
        return self._values()[key]

    def __setitem__(self, index, value):
        self._put(self._named_values()[index][0], value)


class _Dict:
    """What dictionaries have in common, of modules and of parameters."""

    def update(self, values):
        """With another dictionary, or pairs of names and values."""
        for name, value in values.items() if hasattr(values, 'items') else values:
            self._put(name, value)

    def clear(self):
        for name in self.keys():
            self._take_out(name)

    def pop(self, key):
        found = self[key]
        del self[key]
        return found

    def __getitem__(self, name):
        return dict(self._named_values())[name]

    def __setitem__(self, name, value):
        self._put(name, value)

    def __delitem__(self, name):
        if name not in self:
            raise KeyError(name)
        self._take_out(name)

    def __contains__(self, name):
        return name in self.keys()

    def __iter__(self):
        return iter(self.keys())

    def get(self, name, default=None):
        return dict(self._named_values()).get(name, default)

    def keys(self):
        return [name for name, _ in self._named_values()]

    def values(self):
        return [value for _, value in self._named_values()]

    def items(self):
        return self._named_values()


# --- of modules -------------------------------------------------------------------------------------------------------


class _Modules(_Made):
    def _put(self, name, module):
        if not isinstance(module, Module):
            raise TypeError('%s: a koine.nn.Module is needed, not %s' % (type(self).__name__, type(module).__name__))
        self.register_module(name, module)

    def _named_values(self):
        return list(self._named_places())

    def __len__(self):
        return lib.kn_module_child_count(self._h)

    def _known_at(self, key):
        """The module at an index that has a Python object; else None."""
        count = lib.kn_module_child_count(self._h)
        if type(key) is not int or not -count <= key < count:
            return None
        return wrappers.get(address(lib.kn_module_child(self._h, key % count)))


class Sequential(_List, _Modules):
    """Applies its modules in order, each to the outputs of the one before."""

    @staticmethod
    def _new():
        return lib.kn_nn_sequential_of(NULL, 0)

    def __init__(self, *modules):
        self._adopt(self._new())
        named = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        for name, module in named:
            self._put(str(name), module)

    def register_module(self, name, module):
        if self._child(name) is not None:
            super().register_module(name, module)
            return
        hand_over(module, self._life, lambda pointer: check(lib.kn_nn_add_module(self._h, encoded(name), pointer)))
        self._note_child(name, module)

    add_module = register_module

    def __getitem__(self, key):
        """Of a slice a Sequential, which shares these modules."""
        if isinstance(key, slice):
            return Sequential(dict(self._named_values()[key]))
        known = self._known_at(key)
        return super().__getitem__(key) if known is None else known

    def __add__(self, other):
        """A new one, which shares the modules of both."""
        return Sequential().extend(self).extend(other) if isinstance(other, Sequential) else NotImplemented


class ModuleList(_List, _Modules):
    """Modules in a list, which has no forward."""

    @staticmethod
    def _new():
        return lib.kn_nn_module_list_of(NULL, 0)

    def __init__(self, modules=()):
        self._adopt(self._new())
        self.extend(modules)

    def __getitem__(self, key):
        """Of a slice a ModuleList, which shares these modules."""
        known = self._known_at(key)
        found = super().__getitem__(key) if known is None else known
        return ModuleList(found) if isinstance(key, slice) else found


class ModuleDict(_Dict, _Modules):
    """Modules by name."""

    @staticmethod
    def _new():
        return lib.kn_nn_module_dict_of(NULL, NULL, 0)

    def __init__(self, modules=None):
        self._adopt(self._new())
        self.update(modules or {})


# --- of parameters ----------------------------------------------------------------------------------------------------


class _Parameters(_Made):
    """Tensors become parameters when they are put in."""

    def _put(self, name, value):
        if not isinstance(value, Tensor):
            raise TypeError('%s: a koine.Tensor is needed, not %s' % (type(self).__name__, type(value).__name__))
        self.register_parameter(name, value if isinstance(value, Parameter) else Parameter(value))

    def _named_values(self):
        return [(name, tensor) for name, _, tensor in self._own_tensors()]

    def __len__(self):
        return len(self._named_values())


class ParameterList(_List, _Parameters):
    """Parameters in a list."""

    @staticmethod
    def _new():
        return lib.kn_nn_parameter_list_of(NULL, 0)

    def __init__(self, values=None):
        self._adopt(self._new())
        self.extend(values or ())

    def __getitem__(self, index):
        found = super().__getitem__(index)
        return ParameterList(found) if isinstance(index, slice) else found


class ParameterDict(_Dict, _Parameters):
    """Parameters by name."""

    @staticmethod
    def _new():
        return lib.kn_nn_parameter_dict_of(NULL, NULL, 0)

    def __init__(self, parameters=None):
        self._adopt(self._new())
        self.update(parameters or {})


CLASSES = {one.__name__: one for one in (Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict)}
