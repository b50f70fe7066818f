"""Module: the library's modules, and those written in Python. Both are one tree, which the library walks: parameters,
files, devices and modes are its own, and a module of Python works inside a Sequential or a trainer."""
import inspect

from .._c import NULL, adopted, callback, check, checked, encoded, error, ffi, lib, text
from .._tensor import Tensor, borrowed, new_object, owned, release, wrap
from ._arguments import attributes_of, check_not_argument, printed_arguments
from ._computed import assign, computed
from ._copy import deep_copy
from ._hooks import Hooked, around
from ._inputs import in_order
from ._life import Life, address, hand_over, tensors, wrappers
from ._modes import Modes
from ._parameter import Buffer, Parameter, object_of
from ._state import State
from ._tree import Tree


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


class Module(Hooked, State, Tree, Modes):
    """As torch.nn.Module. A subclass calls super().__init__(), assigns layers and parameters to attributes, and has
    forward(self, x). If that returns several tensors and the module is used inside one of the library's, the class
    attribute num_outputs says how many."""

    num_outputs = 1
    _places = {}  # names that may be None, and what they are else: 'parameter', 'buffer', 'child'
    _transient = frozenset()  # names of buffers that are not saved

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
        set_('_objects', {})  # which programs may know by their id: tensors by name, and those of the last two lists
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
        if isinstance(value, (Module, Parameter)):
            self._put_in(name, value)
        elif isinstance(value, Buffer) and '_h' in self.__dict__:
            self.register_buffer(name, value, value.persistent)
        elif isinstance(value, Tensor) and self._is_buffer(name):
            self._register(name, value, 'buffer')
        else:
            if '_h' not in self.__dict__ and not name.startswith('__'):
                raise AttributeError('%s: call super().__init__() before setting attributes' % type(self).__name__)
            if name in self.__dict__ or '_h' not in self.__dict__ or not self._set_place(name, value):
                super().__setattr__(name, value)

    def _put_in(self, name, value):
        """A module or a parameter, also in the place of what was something else."""
        if '_h' in self.__dict__ and self._is_computed(name):
            assign(self, name, value)
            return
        kind, register = ('child', self.register_module) if isinstance(value, Module) else (
            'parameter', self.register_parameter)
        if self._kind_of(name) not in (None, kind):
            self._take_out(name)
        register(name, value)

    def __getattr__(self, name):
        if name == '_h':
            raise AttributeError('this %s is not there: super().__init__() was not called, or the module was freed '
                                 'when it could not become a part of another' % type(self).__name__)
        if name in ('_children', '_life', '_objects', '_places') or name.startswith('__'):
            raise AttributeError(name)
        if self._places.get(name, 'child') == 'child':
            child = self._child(name)
            if child is not None:
                return child
        handle = self._tensor(name)
        if handle:
            is_buffer = self._is_buffer(name)
            self._places.setdefault(name, 'buffer' if is_buffer else 'parameter')  # to know it the next time
            return self._registered(name, handle, is_buffer)
        if self._is_computed(name):
            return computed(self, name)
        if name in self._places:
            return None
        raise AttributeError('%s has no attribute %r' % (type(self).__name__, name))

    def __delattr__(self, name):
        if name in self.__dict__:
            super().__delattr__(name)
            return
        if self._is_computed(name):
            assign(self, name, None)
        elif self._kind_of(name) is not None:
            self._take_out(name)
        elif self._places.pop(name, None) is None:
            raise AttributeError('%s has no attribute %r' % (type(self).__name__, name))

    def _kind_of(self, name):
        """'child', 'parameter' or 'buffer'; None where there is none of that name."""
        if self._child(name) is not None:
            return 'child'
        return ('buffer' if self._is_buffer(name) else 'parameter') if self._tensor(name) else None

    def _set_place(self, name, value):
        """Whether the name is that of a child, parameter or buffer, or of one that is None. None takes it out; another
        object is an error: as a plain attribute it would hide what the library goes on using."""
        if self._is_computed(name):
            assign(self, name, value)
            return True
        kind = self._kind_of(name)
        if value is None and kind is not None:
            self._take_out(name)
            self._places[name] = kind
        elif kind is not None:
            raise TypeError('%s: %s is a %s, which another one can replace, but not an object of type %s' % (
                type(self).__name__, name, kind, type(value).__name__))
        elif name in self._places and value is not None:
            raise TypeError('%s: %s is a %s that is None; it cannot become an object of type %s' % (
                type(self).__name__, name, self._places[name], type(value).__name__))
        return kind is not None or name in self._places

    def _take_out(self, name):
        """A child is a module of its own then."""
        child = self._child(name)
        if child is None:
            check(lib.kn_module_remove_tensor(self._h, encoded(name)))
            self._objects.pop(name, None)
        else:
            child._life.take(checked(lib.kn_module_remove_module(self._h, encoded(name))), self._life)
            del self._children[name]
        self._places.pop(name, None)

    def _child(self, name):
        """The child of that name, the same object each time."""
        children = self._children
        if name in children:
            return children[name]
        for i, one in enumerate(self._child_names()):
            if one == name:
                children[name] = _wrapped(lib.kn_module_child(self._h, i), self._life)
                return children[name]
        return None

    def _child_names(self):
        return [text(lib.kn_module_child_name(self._h, i)) for i in range(lib.kn_module_child_count(self._h))]

    def _parameters(self):
        return self._listed(lib.kn_module_parameters(self._h), False)

    def _buffers(self):
        return self._listed(lib.kn_module_buffers(self._h), True)

    def _listed(self, found, are_buffers):
        made = [(text(found.names[i]), object_of(found.tensors[i], are_buffers)) for i in range(found.count)]
        self._objects[are_buffers] = made
        return list(made)

    def _registered(self, name, handle, is_buffer):
        known = self._objects.get(name)
        if type(known) is Parameter and not is_buffer and known._h == handle:
            return known
        made = self._objects[name] = object_of(handle, is_buffer)
        return made

    def _tensor(self, name):
        """The handle of a parameter or buffer of its own, or NULL."""
        handle = NULL if '.' in name or self._is_computed(name) else lib.kn_module_get(self._h, encoded(name))
        if not handle:
            lib.kn_error_clear()
        return handle

    def _is_computed(self, name):
        """By a parametrization."""
        return lib.kn_parametrize_is_parametrized(self._h, encoded(name))

    def _is_buffer(self, name):
        kind = self._places.get(name)
        return kind == 'buffer' if kind else any(one == name for one, _ in _own(lib.kn_module_buffers(self._h)))

    def _own_tensors(self):
        """(name, kind, tensor), also of one that has several names here."""
        found = {name: ('parameter', handle) for name, handle in _own(lib.kn_module_parameters(self._h))}
        found.update((name, ('buffer', handle)) for name, handle in _own(lib.kn_module_buffers(self._h)))
        found.update((name, (kind, self._tensor(name))) for name, kind in self._places.items() if name not in found)
        return [(name, kind, self._registered(name, handle, kind == 'buffer'))
                for name, (kind, handle) in found.items() if handle]

    def register_parameter(self, name, param):
        """None: the attribute is None until a parameter takes its place."""
        self._register(name, param, 'parameter')

    def register_buffer(self, name, tensor, persistent=True):
        """None: the attribute is None until a tensor is assigned to it. persistent=False: not in state_dict and
        files."""
        self._register(name, tensor, 'buffer')
        others = self._transient - {name}
        self.__dict__['_transient'] = others if persistent else others | {name}

    def _register(self, name, tensor, kind):
        present = self._kind_of(name)
        if present not in (None, kind):
            raise KeyError('%s: %s is a %s, and no %s' % (type(self).__name__, name, present, kind))
        self.__dict__.pop(name, None)  # a plain attribute of that name would hide it
        if tensor is None:
            self._set_place(name, None)
        else:
            needed = tensor.requires_grad
            if present:
                checked(lib.kn_module_replace_tensor(self._h, encoded(name), tensor._h))
            else:
                self._check_useful(name)
                register = lib.kn_module_register_buffer if kind == 'buffer' else lib.kn_module_register_parameter
                checked(register(self._h, encoded(name), tensor._h))
            if isinstance(tensor, Parameter) and not needed:  # frozen: the library registers those that are trained
                tensor.requires_grad = False
            if isinstance(tensor, Parameter) == (kind == 'parameter'):
                self._note_object(name, tensor)
        self._places[name] = kind

    def _note_object(self, name, tensor):
        """Of a tensor of its own, which the attribute returns from now on."""
        tensors[address(tensor._h)] = self._objects[name] = tensor

    def _check_useful(self, name):
        if name in type(self)._places:
            raise ValueError('%s: it was made without %s, and has no use for one' % (type(self).__name__, name))

    def register_module(self, name, module):
        """Adds a child, or puts it in the place of the one of that name, which is then a module of its own again."""
        former = self._child(name)
        if former is None:
            self._check_useful(name)
            hand_over(module, self._life,
                      lambda pointer: checked(lib.kn_module_register_module(self._h, encoded(name), pointer)))
        elif former is not module:
            pointer = checked(lib.kn_module_replace_module(self._h, encoded(name), module._h))
            module._life.give(self._life)
            former._life.take(pointer, self._life)
        self._note_child(name, module)

    add_module = register_module

    def _note_child(self, name, module):
        self._children[name] = module
        self.__dict__.pop(name, None)
        self._places.pop(name, None)  # of a parameter or buffer that was None

    # --- as text ---

    def extra_repr(self):
        """What print(module) shows as its arguments: '' unless a subclass says more."""
        return ''

    def _describe(self):
        """For the library's summary."""
        if type(self).extra_repr is not Module.extra_repr:
            check(lib.kn_module_set_extra_repr(self._h, ' '.join(self.extra_repr().split('\n')).encode()))

    def __repr__(self):
        return self.summary().rstrip('\n')


def _own(found):
    """(name, handle) of a module's own in its list, where they come first."""
    for i in range(found.count):
        name = text(found.names[i])
        if '.' in name:
            return
        yield name, found.tensors[i]


def _wrapped(pointer, life):
    """The Python object of a module that the library made, below a root with that life."""
    known = wrappers.get(address(pointer))
    if known is not None:
        return known
    from . import _layers
    name = text(lib.kn_module_type_name(pointer))
    kind = _layers.CLASSES.get(name) or _layers.OTHER_CLASSES.get(name, Layer)
    module = kind.__new__(kind)
    module._start(pointer, Life(pointer, life))
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
            found = {} if name.startswith('_') else attributes_of(self)
            if name not in found:
                raise
            return found[name]

    def __setattr__(self, name, value):
        check_not_argument(self, name)
        super().__setattr__(name, value)

    def _adopt(self, pointer):
        self._start(checked(pointer))

    def _describe(self):
        """Layers do so themselves."""

    def extra_repr(self):
        return printed_arguments(self)

    def forward(self, *inputs, **keywords):
        if keywords:
            inputs = in_order(self, inputs, keywords)
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
