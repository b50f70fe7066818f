"""Sequential, lists and dictionaries of modules, and of parameters."""
from .._c import NULL, check, lib
from .._tensor import Tensor
from ._life import hand_over
from .module import Layer, Module, Parameter


class _Made(Layer):
    """Of which a copy begins as one without modules and parameters."""

    def _make_bare(self, made, _memo):
        made._adopt(self._new())


class _List:
    """What lists of modules and of parameters have: _put(name, value) puts one in."""

    def append(self, value):
        self._put(str(len(self)), value)
        return self

    def extend(self, values):
        for one in values:
            self.append(one)
        return self

    def __setitem__(self, index, value):
        self._put(str(range(len(self))[index]), value)


class _Container(_Made):
    def _put(self, name, module):
        self.register_module(name, module)

    def _fill(self, named):
        for name, module in named:
            if not isinstance(module, Module):
                raise TypeError('%s: a koine.nn.Module is needed, not %s' % (type(self).__name__,
                                                                             type(module).__name__))
            self.register_module(name, module)

    def __len__(self):
        return lib.kn_module_child_count(self._h)

    def __iter__(self):
        return self.children()


class Sequential(_Container):
    """Applies its modules in order, each to the outputs of the one before."""

    @staticmethod
    def _new():
        return lib.kn_nn_sequential_of(NULL, 0)

    def __init__(self, *modules):
        self._adopt(self._new())
        named = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        self._fill((str(name), module) for name, module in named)

    def register_module(self, name, module):
        if self._child(name) is not None:
            super().register_module(name, module)
            return
        hand_over(module, self._life, lambda pointer: check(lib.kn_nn_add_module(self._h, name.encode(), pointer)))
        self._children[name] = module
        self.__dict__.pop(name, None)

    add_module = register_module

    def append(self, module):
        self.register_module(str(len(self)), module)
        return self

    def __getitem__(self, index):
        return list(self.children())[index]

    def __setitem__(self, index, module):
        name = list(self.named_children())[index][0]
        self.register_module(name, module)


class ModuleList(_List, _Container):
    """Modules in a list, which has no forward."""

    @staticmethod
    def _new():
        return lib.kn_nn_module_list_of(NULL, 0)

    def __init__(self, modules=()):
        self._adopt(self._new())
        self._fill((str(i), module) for i, module in enumerate(modules))

    def __getitem__(self, index):
        return list(self.children())[index]


class ModuleDict(_Container):
    """Modules by name."""

    @staticmethod
    def _new():
        return lib.kn_nn_module_dict_of(NULL, NULL, 0)

    def __init__(self, modules=None):
        self._adopt(self._new())
        self._fill((modules or {}).items())

    def __getitem__(self, name):
        found = self._child(name)
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name, module):
        self.register_module(name, module)

    def __contains__(self, name):
        return self._child(name) is not None

    def keys(self):
        return [name for name, _ in self.named_children()]

    def values(self):
        return list(self.children())

    def items(self):
        return list(self.named_children())


class _Parameters(_Made):
    """Tensors become parameters when they are put in."""

    def _put(self, name, value):
        if not isinstance(value, Tensor):
            raise TypeError('%s: a koine.Tensor is needed, not %s' % (type(self).__name__, type(value).__name__))
        self.register_parameter(name, value if isinstance(value, Parameter) else Parameter(value))

    def __len__(self):
        return len(self._parameters())


class ParameterList(_List, _Parameters):
    """Parameters in a list."""

    @staticmethod
    def _new():
        return lib.kn_nn_parameter_list_of(NULL, 0)

    def __init__(self, values=None):
        self._adopt(self._new())
        self.extend(values or ())

    def __iter__(self):
        return self.parameters()

    def __getitem__(self, index):
        found = list(self.parameters())[index]
        return ParameterList(found) if isinstance(index, slice) else found


class ParameterDict(_Parameters):
    """Parameters by name; none can be taken out."""

    @staticmethod
    def _new():
        return lib.kn_nn_parameter_dict_of(NULL, NULL, 0)

    def __init__(self, parameters=None):
        self._adopt(self._new())
        self.update(parameters or {})

    def update(self, parameters):
        """With another dictionary, or pairs of names and tensors."""
        for name, value in parameters.items() if hasattr(parameters, 'items') else parameters:
            self._put(name, value)

    def __getitem__(self, name):
        return dict(self._parameters())[name]

    def __setitem__(self, name, value):
        self._put(name, value)

    def __contains__(self, name):
        return name in self.keys()

    def __iter__(self):
        return iter(self.keys())

    def get(self, name, default=None):
        return dict(self._parameters()).get(name, default)

    def keys(self):
        return [name for name, _ in self._parameters()]

    def values(self):
        return [tensor for _, tensor in self._parameters()]

    def items(self):
        return self._parameters()


CLASSES = {one.__name__: one for one in (Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict)}
