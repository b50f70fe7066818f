"""torch.optim. A step updates all parameters in few launches; formulas, defaults and names are PyTorch's."""
import collections.abc
import copy
import json
import math

from .. import safetensors
from .._bind import parse
from .._c import NULL, KoineError, callback, check, checked, encoded, error, ffi, lib, path
from .._files import temporary_file
from .._tensor import Tensor, tensor, wrap
from ..autograd import enable_grad
from ..nn._life import address
from ..nn._modes import zero_gradients
from ..nn.utils import parameter_list
from ._own import Optimizer, listed_tensors
from ._state import ParameterStates

# PyTorch's choices among its kernels, which have no effect.
_KERNELS = ('foreach', 'capturable', 'differentiable', 'fused')
_WRITTEN = (*_KERNELS, 'decoupled_weight_decay', 'params')  # also of optimizers without them
_ALL = 'maximize=False, master_weights=False, ' + ', '.join(name + '=None' for name in _KERNELS)
_ADAM = 'params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, '
SIGNATURES = {
    'SGD': 'params, lr=0.001, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, ' + _ALL,
    'Adam': _ADAM + 'amsgrad=False, *, decoupled_weight_decay=False, ' + _ALL,
    'AdamW': _ADAM.replace('weight_decay=0', 'weight_decay=0.01') + 'amsgrad=False, *, ' + _ALL,
    'RMSprop': 'params, lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0, momentum=0, centered=False, *, ' + _ALL,
    'Adagrad': 'params, lr=0.01, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, *, ' + _ALL,
    'Adadelta': 'params, lr=1.0, rho=0.9, eps=1e-06, weight_decay=0, *, ' + _ALL,
    'NAdam': _ADAM.replace('lr=0.001', 'lr=0.002') + 'momentum_decay=0.004, decoupled_weight_decay=False, *, ' + _ALL,
    'RAdam': _ADAM + 'decoupled_weight_decay=False, *, ' + _ALL,
    'Adamax': _ADAM.replace('lr=0.001', 'lr=0.002') + '*, ' + _ALL,
    'ASGD': 'params, lr=0.01, lambd=0.0001, alpha=0.75, t0=1000000.0, weight_decay=0, *, ' + _ALL,
    'Rprop': 'params, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-06, 50), *, ' + _ALL,
    'LAMB': _ADAM.replace('1e-08', '1e-06') + 'bias_correction=True, *, ' + _ALL,
    'Lion': 'params, lr=0.0001, betas=(0.9, 0.99), weight_decay=0, *, ' + _ALL,
    'Adafactor': 'params, lr=0.01, beta2_decay=-0.8, eps=(None, 0.001), d=1.0, weight_decay=0.0, *, ' + _ALL,
    'Muon': 'params, lr=0.001, weight_decay=0.1, momentum=0.95, nesterov=True, '
            'ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-07, ns_steps=5, adjust_lr_fn=None, *, ' + _ALL,
    'LBFGS': 'params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-07, tolerance_change=1e-09, '
             'history_size=100, line_search_fn=None, *, maximize=False',
}
# Tuples of PyTorch, and the C interface's names of their parts.
_PARTS = {'betas': ('beta1', 'beta2'), 'etas': ('etaminus', 'etaplus'),
          'step_sizes': ('step_size_min', 'step_size_max'),
          'ns_coefficients': ('ns_a', 'ns_b', 'ns_c')}
# Options by name, whose numbers are the C interface's.
_CHOICES = {'line_search_fn': (None, 'strong_wolfe'),
            'adjust_lr_fn': (None, 'original', 'match_rms_adamw', 'spectral_unclamped')}


def _parts(name, value):
    return _PARTS.get(name) or (('eps1', 'eps2') if name == 'eps' and isinstance(value, (list, tuple)) else (name,))


def _choice(name, value):
    if value not in _CHOICES[name]:
        raise ValueError('%s is %r; it may be %s' % (name, value, ', '.join(map(repr, _CHOICES[name]))))
    return _CHOICES[name].index(value)


def _flat(options):
    """{'beta1': 0.9, ...}; None is left out, but of a tuple -1, which is the library's None."""
    for name, value in options.items():
        parts = _parts(name, value)
        if name in _CHOICES:
            value = _choice(name, value)
        for part, number in zip(parts, value if len(parts) > 1 else (value,)):
            if number is None and len(parts) > 1:
                number = -1
            if number is not None:
                yield part, float(number)


def _options(values):
    """A kn_optim_option array that ends with NULL, and what it points to."""
    names = [(ffi.new('char[]', encoded(name)), value) for name, value in _flat(values)]
    return ffi.new('kn_optim_option[]', names + [(NULL, 0)]), names


class ParamGroup(collections.abc.MutableMapping):
    """The parameters and hyperparameters of a group: group['lr'] reads, group['lr'] = 0.1 sets. What the optimizer does
    not know, such as a name, is the program's own."""

    def __init__(self, optimizer, index):
        self._optimizer, self._index = optimizer, index

    def __getitem__(self, name):
        if name == 'params':
            found = lib.kn_optim_group_parameters(self._optimizer._h, self._index)
            return [self._optimizer._objects[address(found.tensors[i])] for i in range(found.count)]
        if name in self._others:
            return self._others[name]
        default = self._optimizer.defaults.get(name)
        if isinstance(default, tuple):
            values = [self._get(part) for part in _parts(name, default)]
            return tuple(None if name == 'eps' and value < 0 else value for value in values)
        value = self._get(name)
        if name in _CHOICES:
            return _CHOICES[name][int(value)]
        return type(default)(value) if isinstance(default, bool) else value

    def _get(self, name):
        value = ffi.new('double *')
        if lib.kn_optim_get(self._optimizer._h, self._index, encoded(name), value):
            raise KeyError(str(error()))
        if math.isnan(value[0]):  # "initial_lr" before there is a schedule
            raise KeyError(name)
        return value[0]

    @property
    def _others(self):
        return self._optimizer._others[self._index]

    def knows(self, name, value):
        """Is it one of the library's?"""
        number = ffi.new('double *')
        refused = [lib.kn_optim_get(self._optimizer._h, self._index, encoded(part), number)
                   for part in _parts(name, value)]
        lib.kn_error_clear()
        return not any(refused)

    def __setitem__(self, name, value):
        self.update({name: value})

    def __delitem__(self, name):
        del self._others[name]

    def update(self, values=(), **named):
        """Sets several. What one of them needs of another, as nesterov of momentum, may come later."""
        values = {**dict(values), **named}
        if 'params' in values:
            raise ValueError('the parameters of a group are fixed: add_param_group adds others')
        own = {name: value for name, value in values.items() if self.knows(name, value)}
        self._others.update((name, value) for name, value in values.items() if name not in own)
        left = list(_flat(own))
        while left:
            refused = []
            for part, number in left:
                try:
                    check(lib.kn_optim_set(self._optimizer._h, self._index, encoded(part), number))
                except KoineError:
                    if len(refused) == len(left) - 1:
                        raise
                    refused.append((part, number))
            left = refused

    def __iter__(self):
        yield 'params'
        yield from (name for name in self._optimizer.defaults if name != 'master_weights')  # which all groups share
        yield from self._others

    def __len__(self):
        return sum(1 for _ in self)


class LibraryOptimizer(Optimizer):
    """The library's optimizers."""

    _h = None

    def _make(self, params, options):
        params = list(params)
        self.defaults = {name: tuple(value) if isinstance(value, list) else value
                         for name, value in options.items() if name not in _KERNELS}
        groups = params if params and isinstance(params[0], collections.abc.Mapping) else [{'params': params}]
        self._objects = {}  # address of a parameter: the object that was given
        self._others = collections.defaultdict(dict)  # number of a group: what the library does not know
        found, keep = parameter_list(self._listed(groups[0]))
        # Those of the first group are set afterwards: given here, they would be the defaults of all groups.
        array, names = _options(self.defaults)
        pointer = checked(lib.kn_optim_named_with(type(self).__name__.encode(), found, array))
        self._h = ffi.gc(pointer, lib.kn_optim_free)
        self.param_groups[0].update({name: value for name, value in groups[0].items() if name != 'params'})
        for group in groups[1:]:
            self.add_param_group(group)
        del keep, names

    def __deepcopy__(self, memo):
        """For copies of the parameters: those of the modules that the same copy.deepcopy copies."""
        made = memo[id(self)] = object.__new__(type(self))
        groups = [{**group, 'params': copy.deepcopy(group['params'], memo)} for group in self.param_groups]
        made._make(groups, self.defaults)
        made.load_state_dict(self.state_dict())
        return made

    def _listed(self, group):
        """The parameters of a group that is given."""
        listed = listed_tensors(group['params'])
        self._objects.update((address(one._h), one) for one in listed)
        return listed

    def add_param_group(self, group):
        found, keep = parameter_list(self._listed(group))
        first = self.param_groups[0]
        own = {name: value for name, value in group.items() if name != 'params' and first.knows(name, value)}
        array, names = _options(own)
        check(lib.kn_optim_add_group_with(self._h, found, array))
        self.param_groups[-1].update({name: value for name, value in group.items() if name not in ('params', *own)})
        del keep, names

    @property
    def param_groups(self):
        return [ParamGroup(self, i) for i in range(lib.kn_optim_num_groups(self._h))]

    @property
    def lr(self):
        """Of the first group; setting it sets all."""
        return lib.kn_optim_lr(self._h)

    @lr.setter
    def lr(self, value):
        check(lib.kn_optim_set_lr(self._h, value))

    def step(self, closure=None):
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        check(lib.kn_optim_step(self._h))
        return loss

    def zero_grad(self, set_to_none=True):
        """Drops the gradients; set_to_none=False makes them zeros."""
        if set_to_none:
            lib.kn_optim_zero_grad(self._h)
        else:
            zero_gradients(self._parameters())

    @property
    def state(self):
        """The tensors of each parameter's state, by PyTorch's names: copies, made by each use of `state`."""
        return ParameterStates(self._parameters(), self.state_dict()['state'])

    def save(self, file):
        """State and hyperparameters, as a safetensors file."""
        check(lib.kn_optim_save(self._h, path(file)))

    def load(self, file):
        check(lib.kn_optim_load(self._h, path(file)))

    def state_dict(self):
        """PyTorch's: {'state': {0: {'step': ..., 'exp_avg': ...}, ...}, 'param_groups': [{'lr': ..., ...}, ...]}."""
        with temporary_file('state_dict') as file:
            self.save(file)
            tensors, groups = safetensors.load_both(file, 'param_groups')
        state = {}
        for name, tensor in tensors.items():
            _, index, key = name.split('.', 2)
            state.setdefault(int(index), {})[key] = tensor
        return {'state': state, 'param_groups': [{**group, **self._others[i]} for i, group in
                                                 enumerate(json.loads(groups))]}

    def load_state_dict(self, state_dict):
        """What state_dict() returned, of an optimizer of the same kind with groups of the same sizes."""
        tensors = {'state.%d.%s' % (index, key): tensor for index, of_one in state_dict['state'].items()
                   for key, tensor in of_one.items()}
        first, others = self.param_groups[0], []
        for group in state_dict['param_groups']:
            others.append({name: value for name, value in group.items()
                           if name not in _WRITTEN and not first.knows(name, value)})
        groups = [{name: value for name, value in group.items() if name not in theirs}
                  for group, theirs in zip(state_dict['param_groups'], others)]
        with temporary_file('state_dict') as file:
            safetensors.save_file(tensors, file, {'param_groups': json.dumps(groups)})
            self.load(file)
        self._others.update(enumerate(others))


def _optimizer(name, line):
    signature = parse(line)

    def __init__(self, *arguments, **keywords):
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        values = dict(bound.arguments)
        self._make(values.pop('params'), values)

    __init__.line = line
    return type(name, (LibraryOptimizer,), {'__init__': __init__, '__module__': 'koine.optim',
                                     '__doc__': 'torch.optim.%s: docs/optim.md.' % name})


def _step_of_lbfgs(self, closure):
    """Calls the closure several times; returns what it returned first."""
    losses = []

    def called(_):
        with enable_grad():
            loss = closure()
        if not losses:
            losses.append(loss)
        return loss if isinstance(loss, Tensor) else tensor(float(loss))

    function = callback('kn_tensor *(void *)', NULL, called)
    wrap(lib.kn_optim_step_closure(self._h, function, NULL))
    return losses[0]


globals().update({_name: _optimizer(_name, _line) for _name, _line in SIGNATURES.items()})
globals()['LBFGS'].step = _step_of_lbfgs
from . import lr_scheduler, swa_utils  # noqa: E402, F401
