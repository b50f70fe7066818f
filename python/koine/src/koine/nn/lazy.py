"""Lazy layers: they learn the number of features at their first call, and are the plain layers from then on.

Until then a lazy layer is a module of Python without parameters. The first call makes the plain layer, puts it in the
lazy one's place in all parents, and gives the lazy one's Python object its class and its contents."""
from .._bind import parse
from .._device import device as Device
from .._dtypes import as_dtype
from .._tensor import Tensor
from .._tensor.base import TensorBase
from ._hooks import move_hooks, running_hooks
from ._layers import CLASSES as PLAIN
from ._life import address, uninitialized, wrappers
from ._parameter import Parameter
from .module import Module, _new

# --- parameters without a shape ---------------------------------------------------------------------------------------

_settings = TensorBase.__dict__['_h']  # where other tensors have their handle: {'name', 'requires_grad'}


class _Uninitialized:
    """A tensor of a lazy layer, which becomes the layer's when that gets one."""

    __slots__ = ()

    @property
    def _h(self):
        raise RuntimeError('%s has no shape before the first call of the layer, or load_state_dict: call it with a '
                           'sample first' % _settings.__get__(self)['name'])

    @property
    def requires_grad(self):
        return _settings.__get__(self)['requires_grad']

    @requires_grad.setter
    def requires_grad(self, value):
        _settings.__get__(self)['requires_grad'] = bool(value)

    def requires_grad_(self, requires_grad=True):
        self.requires_grad = requires_grad
        return self

    @property
    def grad(self):
        return None

    def __repr__(self):
        return '<%s>' % type(self).__name__

    def __deepcopy__(self, memo):
        made = memo[id(self)] = _without_shape(type(self), **_settings.__get__(self))
        return made

    def _become(self, tensor):
        _settings.__set__(self, tensor._h)
        self.__class__ = type(tensor)


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter of a lazy layer before its first call."""

    __slots__ = ()

    def __init__(self, requires_grad=True):
        _settings.__set__(self, {'name': 'an uninitialized parameter', 'requires_grad': requires_grad})


class UninitializedBuffer(_Uninitialized, Tensor):
    """A buffer of a lazy layer before its first call."""

    __slots__ = ()

    def __init__(self, requires_grad=False):
        _settings.__set__(self, {'name': 'an uninitialized buffer', 'requires_grad': requires_grad})


def _without_shape(kind, **settings):
    made = object.__new__(kind)
    _settings.__set__(made, settings)
    return made


def is_lazy(param):
    """Has it no shape yet?"""
    return isinstance(param, _Uninitialized)


# --- layers -----------------------------------------------------------------------------------------------------------


class LazyModuleMixin:
    """What lazy layers have before their plain class, whose first argument they leave out."""

    _library_applies = False
    _lazy_tensors = {}

    def __init__(self, *arguments, device=None, dtype=None, **keywords):
        bound = parse(type(self).__init__.line).bind(*arguments, **keywords)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if name not in ('device', 'dtype')}
        self._start(_new(self))
        self.__dict__.update(_given=given, _where=(), _lazy_tensors=self._uninitialized_tensors(given))
        self._move(device, dtype)
        uninitialized.add(self)

    def _uninitialized_tensors(self, given):
        kinds = {'weight': UninitializedParameter, 'bias': UninitializedParameter}
        if not given.get('bias', True):
            del kinds['bias']
        if not given.get('affine', True):
            kinds = {}
        if given.get('track_running_stats'):
            kinds.update(dict.fromkeys(('running_mean', 'running_var'), UninitializedBuffer))
        return {name: _without_shape(kind, name='%s: %s' % (type(self).__name__, name),
                                     requires_grad=kind is UninitializedParameter) for name, kind in kinds.items()}

    def _move(self, device, dtype):
        """What to(device, dtype) of a module does to one without parameters."""
        before = dict(self._where)
        if device is not None:
            before['device'] = str(Device(device))
        if dtype is not None:
            before['dtype'] = as_dtype(dtype).name
        self.__dict__['_where'] = tuple(before.items())

    def _set_requires_grad(self, requires_grad):
        for tensor in self._lazy_tensors.values():
            if isinstance(tensor, Parameter):
                tensor.requires_grad = requires_grad

    def has_uninitialized_params(self):
        return True

    def _make_bare(self, made, memo):
        super()._make_bare(made, memo)
        uninitialized.add(made)

    def __getattr__(self, name):
        if name in self._lazy_tensors:
            return self._lazy_tensors[name]
        if name in type(self)._places:  # which it is made without, or gets at the first call
            return None
        known = {self._counted: 0, **self.__dict__.get('_given', {})}
        return known[name] if name in known else super().__getattr__(name)

    def _put_in(self, name, value):
        raise RuntimeError('%s: call it with a sample before %s is replaced' % (type(self).__name__, name))

    _describe = Module._describe

    def extra_repr(self):
        fixed = parse(type(self).__init__.line).parameters
        shown = ['%s=%r' % (name, value) for name, value in self._given.items() if value != fixed[name].default]
        return ', '.join(['%s=0' % self._counted, *shown])

    def forward(self, input):
        if not isinstance(input, Tensor):
            raise TypeError('%s: its input is a koine.Tensor, not %s' % (type(self).__name__, type(input).__name__))
        if input.ndim not in self._ndims:
            raise ValueError('%s: its input has %s dimensions, not %d' % (
                type(self).__name__, ' or '.join(map(str, self._ndims)), input.ndim))
        self._initialize(self._features(input.shape), input.device)
        with running_hooks(self):  # in the call that came here
            return self.forward(input)

    def _initialize(self, features, device):
        where = {'device': device, **dict(self._where)}
        made = self.cls_to_become(features, **self._given, **where)
        made.train(self.training)
        tensors = self._lazy_tensors
        for name, tensor in tensors.items():
            getattr(made, name).requires_grad_(tensor.requires_grad)
        _take_over(self, made)
        for name, tensor in tensors.items():
            tensor._become(getattr(self, name))
            self._note_object(name, tensor)

    def _initialize_from(self, state, prefix):
        """With the shapes of the tensors whose names begin so."""
        names = [prefix + name for name in self._lazy_tensors if name != 'bias']
        found = next((state[name] for name in names if name in state), None)
        if found is not None:
            self._initialize(self._features_of_state(found.shape), dict(self._where).get('device'))


def _take_over(lazy, made):
    """The object of the lazy layer becomes that of the plain one, which takes its place in the tree."""
    parents = [(parent, name) for parent in list(wrappers.values()) for name, child in list(parent._children.items())
               if child is lazy]
    for parent, name in parents:
        parent.register_module(name, made)
    former = lazy._life  # of a module whose forward may be running
    own = {name: value for name, value in lazy.__dict__.items()
           if name not in made.__dict__ and name not in ('_given', '_where', '_lazy_tensors')}
    wrappers.pop(address(lazy._h))
    uninitialized.discard(lazy)
    lazy.__dict__.clear()
    lazy.__dict__.update(own, **made.__dict__)
    lazy._life.former = former
    object.__setattr__(lazy, '__class__', type(made))
    wrappers[address(lazy._h)] = lazy
    for parent, name in parents:
        parent._children[name] = lazy
    move_hooks(lazy)


# --- the kinds --------------------------------------------------------------------------------------------------------


def _channels(n):
    """Of inputs [N, C, ...] or [C, ...] with n further dimensions."""
    return {'_ndims': (n + 1, n + 2), '_features': lambda self, shape: shape[-n - 1]}


def _batches(n):
    """Of inputs [N, C, ...] alone; in one dimension also [N, C]."""
    return {'_ndims': (2, 3) if n == 1 else (n + 2,), '_features': lambda self, shape: shape[1]}


def _first(self, shape):
    return shape[0]


def _lazy(name, **attributes):
    plain = PLAIN[name]
    counted, _, line = plain.__init__.line.partition(', ')
    if name.startswith('InstanceNorm'):
        line = line.replace('False', 'True')

    def __init__(self, *arguments, **keywords):
        LazyModuleMixin.__init__(self, *arguments, **keywords)

    __init__.line = line
    return type('Lazy' + name, (LazyModuleMixin, plain), {
        '__init__': __init__, '__module__': 'koine.nn', 'cls_to_become': plain, '_counted': counted,
        '_features_of_state': _first,
        '__doc__': 'torch.nn.Lazy%s: %s with the %s of its first input.' % (name, name, counted), **attributes})


CLASSES = {'LazyLinear': _lazy('Linear', _ndims=range(1, 9), _features=lambda self, shape: shape[-1],
                               _features_of_state=lambda self, shape: shape[1])}
for _n in (1, 2, 3):
    for _made in (
            _lazy('Conv%dd' % _n, **_channels(_n), _features_of_state=lambda self, shape: shape[1] * self.groups),
            _lazy('ConvTranspose%dd' % _n, **_channels(_n)), _lazy('InstanceNorm%dd' % _n, **_channels(_n)),
            _lazy('BatchNorm%dd' % _n, **_batches(_n))):
        CLASSES[_made.__name__] = _made
