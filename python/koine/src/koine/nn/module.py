"""Module: the library's modules, and those written in Python. Both are one tree, which the library walks: parameters,
files, devices and modes are its own, and a module of Python works inside a Sequential or a trainer."""
import inspect

from .. import _device
from .._c import NULL, adopted, callback, check, checked, error, ffi, lib, text
from .._tensor import Tensor, borrowed, new_object, owned, release, wrap
from ._arguments import arguments_of
from ._copy import deep_copy
from ._hooks import Hooked, around
from ._life import Life, address, hand_over, wrappers
from ._state import State


class Parameter(Tensor):
    """A tensor that a module registers when it becomes an attribute."""

    __slots__ = ()

    def __init__(self, data, requires_grad=True):
        self._h = data.detach()._h if isinstance(data, Tensor) else Tensor(data)._h
        if requires_grad:
            self.requires_grad_()


def _forward(pointer, inputs, outputs):
    """Called by the library for modules of Python."""
    module = wrappers.get(address(pointer))
    if module is None:
        raise RuntimeError('the Python object of this module does not exist any more')
    count = lib.kn_module_input_count(pointer)
    given = [borrowed(inputs[i]) for i in range(count)]
    while given and given[-1] is None:
        given.pop()
    results = around(module, given, {})
    results = results if isinstance(results, (tuple, list)) else [results]
    expected = lib.kn_module_output_count(pointer)
    if len(results) != expected:
        raise ValueError('%s: forward returned %d tensors; the class attribute num_outputs says %d' % (
            type(module).__name__, len(results), expected))

    def finish():
        for i, one in enumerate(results):
            outputs[i] = adopted(one)
        return lib.KN_OK

    return finish


_forward_callback = callback('kn_status(kn_module *, kn_tensor *const *, kn_tensor **)', lib.KN_ERR_STATE, _forward)


def _new(module):
    """The kn_module of a class written in Python."""
    named = [one for one in inspect.signature(module.forward).parameters.values()
             if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    params = ffi.new('kn_module_new_many_params *', lib.kn_module_new_many_params_init())
    params.num_inputs = max(len(named), 1)
    params.num_optional = min(sum(1 for one in named if one.default is not one.empty), params.num_inputs - 1)
    params.num_outputs = module.num_outputs
    return checked(lib.kn_module_new_many_with(type(module).__name__.encode(), _forward_callback, params))


class Module(Hooked, State):
    """As torch.nn.Module. A subclass calls super().__init__(), assigns layers and parameters to attributes, and has
    forward(self, x). If that returns several tensors and the module is used inside one of the library's, the class
    attribute num_outputs says how many."""

    num_outputs = 1
    _places = {}  # names that may be None, and what they are else: 'parameter', 'buffer', 'child'

    def __init__(self):
        self._start(_new(self))

    def _make_bare(self, made, _memo):
        """Makes the copy a module without parameters, buffers and children."""
        made._start(_new(made))

    __deepcopy__ = deep_copy

    def _start(self, pointer, life=None):
        """Becomes the Python side of a module: of a root, or of a descendant, which has the life of its parent."""
        set_ = super().__setattr__
        set_('_h', pointer)
        set_('_life', Life(pointer) if life is None else life)
        set_('_children', {})
        set_('_places', dict(type(self)._places))
        wrappers[address(pointer)] = self

    # --- applying ---

    def forward(self, *inputs):
        """Of a layer of the library."""
        raise NotImplementedError('%s has no forward' % type(self).__name__)

    def _apply(self, inputs):
        count = lib.kn_module_output_count(self._h)
        outputs = ffi.new('kn_tensor *[]', count)
        handles = [NULL if one is None else _handle(self, one) for one in inputs]
        check(lib.kn_forward_many(self._h, handles, len(handles), outputs, count))
        return tuple(wrap(one) for one in outputs)

    # --- attributes ---

    def __setattr__(self, name, value):
        if isinstance(value, Module):
            self.register_module(name, value)
        elif isinstance(value, Parameter):
            self.register_parameter(name, value)
        elif isinstance(value, Tensor) and self._is_buffer(name):
            self.register_buffer(name, value)
        else:
            if '_h' not in self.__dict__ and not name.startswith('__'):
                raise AttributeError('%s: call super().__init__() before setting attributes' % type(self).__name__)
            if name not in self.__dict__ and '_h' in self.__dict__:
                self._check_plain(name, value)
            super().__setattr__(name, value)

    def __getattr__(self, name):
        if name == '_h':
            raise AttributeError('this %s is not there: super().__init__() was not called, or the module was freed '
                                 'when it could not become a part of another' % type(self).__name__)
        if name in ('_children', '_life', '_places') or name.startswith('__'):
            raise AttributeError(name)
        child = self._child(name)
        if child is not None:
            return child
        handle = self._tensor(name)
        if handle:
            return _parameter(handle)
        if name in self._places:
            return None
        raise AttributeError('%s has no attribute %r' % (type(self).__name__, name))

    def _check_plain(self, name, value):
        """A plain attribute must not hide what the library goes on using."""
        what = 'child' if self._child(name) is not None else self._places.get(name, 'parameter or buffer')
        if what == 'child' or self._tensor(name):
            raise TypeError('%s: %s is a %s, which another one can replace, but not %s' % (
                type(self).__name__, name, what, 'None' if value is None else 'an object of type %s' %
                type(value).__name__))
        if value is not None and name in self._places:
            raise TypeError('%s: %s is a %s that is None; it cannot become an object of type %s' % (
                type(self).__name__, name, what, type(value).__name__))

    def _child(self, name):
        """The child of that name, the same object each time."""
        children = self._children
        if name in children:
            return children[name]
        for i in range(lib.kn_module_child_count(self._h)):
            if text(lib.kn_module_child_name(self._h, i)) == name:
                children[name] = _wrapped(lib.kn_module_child(self._h, i), self._life)
                return children[name]
        return None

    def _parameters(self):
        return _named(lib.kn_module_parameters(self._h))

    def _buffers(self):
        return _named(lib.kn_module_buffers(self._h))

    @staticmethod
    def _own(named):
        return {name: tensor for name, tensor in named if '.' not in name}

    def _tensor(self, name):
        """The handle of a parameter or buffer of its own, or NULL."""
        handle = NULL if '.' in name else lib.kn_module_get(self._h, name.encode())
        if not handle:
            lib.kn_error_clear()
        return handle

    def _is_buffer(self, name):
        return self._places.get(name) == 'buffer' or name in self._own(self._buffers())

    def _own_tensors(self):
        """(name, kind, tensor), also of one that has several names here."""
        kinds = dict(self._places)
        kinds.update((name, 'parameter') for name in self._own(self._parameters()))
        kinds.update((name, 'buffer') for name in self._own(self._buffers()))
        return [(name, kind, _parameter(self._tensor(name))) for name, kind in kinds.items() if self._tensor(name)]

    def register_parameter(self, name, parameter):
        """None: the attribute is None until a parameter takes its place."""
        self._register(name, parameter, 'parameter')

    def register_buffer(self, name, tensor):
        """None: the attribute is None until a tensor is assigned to it."""
        self._register(name, tensor, 'buffer')

    def _register(self, name, tensor, kind):
        present = self._tensor(name)
        if tensor is None:
            self._check_plain(name, None)
        elif present:
            checked(lib.kn_module_replace_tensor(self._h, name.encode(), tensor._h))
        else:
            self._check_useful(name)
            register = lib.kn_module_register_buffer if kind == 'buffer' else lib.kn_module_register_parameter
            checked(register(self._h, name.encode(), tensor._h))
        self._places[name] = kind
        self.__dict__.pop(name, None)  # a plain attribute of that name would hide it

    def _check_useful(self, name):
        if name in type(self)._places:
            raise ValueError('%s: it was made without %s, and has no use for one' % (type(self).__name__, name))

    def register_module(self, name, module):
        """Adds a child, or puts it in the place of the one of that name, which is then a module of its own again."""
        former = self._child(name)
        if former is None:
            self._check_useful(name)
            hand_over(module, self._life,
                      lambda pointer: checked(lib.kn_module_register_module(self._h, name.encode(), pointer)))
        elif former is not module:
            pointer = checked(lib.kn_module_replace_module(self._h, name.encode(), module._h))
            module._life.give(self._life)
            former._life.take(pointer)
        self._children[name] = module
        self.__dict__.pop(name, None)

    add_module = register_module

    # --- the tree ---

    def named_children(self):
        for i in range(lib.kn_module_child_count(self._h)):
            name = text(lib.kn_module_child_name(self._h, i))
            yield name, self._child(name)

    def children(self):
        return (child for _, child in self.named_children())

    def named_modules(self, prefix=''):
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(prefix + ('.' if prefix else '') + name)

    def modules(self):
        return (module for _, module in self.named_modules())

    def named_parameters(self):
        return iter(self._parameters())

    def parameters(self):
        return (tensor for _, tensor in self._parameters())

    def named_buffers(self):
        return iter(self._buffers())

    def buffers(self):
        return (tensor for _, tensor in self._buffers())

    def get_parameter(self, name):
        return borrowed(checked(lib.kn_module_get(self._h, name.encode())))

    def get_submodule(self, name):
        module = self
        for one in name.split('.') if name else []:
            module = getattr(module, one)
        return module

    def apply(self, function):
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    # --- modes, devices, gradients ---

    @property
    def training(self):
        return bool(lib.kn_module_is_training(self._h))

    def train(self, mode=True):
        lib.kn_module_train(self._h, mode)
        return self

    def eval(self):
        return self.train(False)

    def to(self, *arguments, device=None, dtype=None):
        """Moves and converts parameters and buffers, which stay the same objects."""
        for one in arguments:
            if isinstance(one, _device.device) or isinstance(one, str) and one not in _by_name():
                device = one
            else:
                dtype = one
        if device is not None:
            check(lib.kn_module_to(self._h, _device.handle(device)))
        if dtype is not None:
            from .._dtypes import code_of
            check(lib.kn_module_to_dtype(self._h, code_of(dtype)))
        return self

    def float(self):
        return self.to(dtype='float32')

    def double(self):
        return self.to(dtype='float64')

    def half(self):
        return self.to(dtype='float16')

    def bfloat16(self):
        return self.to(dtype='bfloat16')

    def zero_grad(self):
        lib.kn_module_zero_grad(self._h)

    def requires_grad_(self, requires_grad=True):
        checked(lib.kn_module_requires_grad_(self._h, requires_grad))
        return self

    def __repr__(self):
        return self.summary().rstrip('\n')


def _by_name():
    from .._dtypes import ALIASES, by_name
    return {**by_name, **ALIASES}


def _named(found):
    return [(text(found.names[i]), _parameter(found.tensors[i])) for i in range(found.count)]


def _parameter(handle):
    """A registered tensor."""
    made = new_object(Parameter if lib.kn_is_leaf(handle) else Tensor)
    made._h = owned(lib.kn_retain(handle), release)
    return made


def _wrapped(pointer, life):
    """The Python object of a module that the library made, below a root with that life."""
    known = wrappers.get(address(pointer))
    if known is not None:
        return known
    from . import _layers
    name = text(lib.kn_module_type_name(pointer))
    kind = _layers.CLASSES.get(_layers.OTHER_NAMES.get(name, name), Layer)
    module = kind.__new__(kind)
    descendant = Life.__new__(Life)
    descendant.handle, descendant.parent = None, life
    module._start(pointer, descendant)
    module.__dict__['_is_part'] = True
    return module


def root(pointer):
    """The Python object of a module that the library made, and that the caller owns."""
    life = Life(checked(pointer))
    module = _wrapped(pointer, life)
    object.__setattr__(module, '_life', life)
    return module


class Layer(Module):
    """A module of the library."""

    def __init_subclass__(cls, **keywords):
        super().__init_subclass__(**keywords)
        if 'forward' in cls.__dict__ and not cls.__module__.startswith('koine.'):
            raise TypeError('%s: the library applies its own layers, not a subclass\'s forward: derive from '
                            'koine.nn.Module and hold the layer' % cls.__name__)

    _library_applies = True

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            found = {} if name.startswith('_') else arguments_of(self)
            if name not in found:
                raise
            return found[name]

    def _adopt(self, pointer):
        self._start(checked(pointer))

    def forward(self, *inputs):
        pointer = self._h
        if len(inputs) == 1 and lib.kn_module_output_count(pointer) == 1:
            handle = lib.kn_forward(pointer, _handle(self, inputs[0]))
            if not handle:
                raise error()
            result = new_object(Tensor)
            result._h = owned(handle, release)
            return result
        outputs = self._apply(inputs)
        return outputs[0] if len(outputs) == 1 else outputs


def _handle(module, value):
    if not isinstance(value, Tensor):
        raise TypeError('%s: its inputs are koine.Tensors, not %s' % (type(module).__name__, type(value).__name__))
    return value._h
