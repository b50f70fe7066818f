"""Optimizers written in Python."""
import collections.abc
import copy

from .._tensor import Tensor
from ..nn._modes import zero_gradients


class Optimizer:
    """All optimizers. One of Python derives from this class, calls super().__init__(params, defaults), and has
    step(self, closure=None), which goes over self.param_groups, dicts with 'params', and keeps what it needs in
    self.state[parameter], a dict. Schedules, GradScaler and the trainer take only the library's."""

    def __init__(self, params, defaults):
        self.defaults, self.state, self.param_groups = dict(defaults), collections.defaultdict(dict), []
        params = list(params)
        if not params:
            raise ValueError('%s: there are no parameters to optimize' % type(self).__name__)
        for group in params if isinstance(params[0], collections.abc.Mapping) else [{'params': params}]:
            self.add_param_group(group)

    @property
    def _h(self):
        raise TypeError('%s: it is written in Python, and the library needs one of its own optimizers here'
                        % type(self).__name__)

    def add_param_group(self, group):
        """{'params': parameters, ...}; what it does not say is as in the defaults."""
        group = {**self.defaults, **group, 'params': listed_tensors(group['params'])}
        known = {id(one) for other in self.param_groups for one in other['params']}
        if any(id(one) in known for one in group['params']):
            raise ValueError('%s: a parameter is in several groups' % type(self).__name__)
        self.param_groups.append(group)

    def __repr__(self):
        """As PyTorch prints it."""
        groups = ('Parameter Group %d\n' % i + ''.join(
            '    %s: %s\n' % (name, group[name]) for name in sorted(group) if name != 'params')
            for i, group in enumerate(self.param_groups))
        return '%s (\n%s)' % (type(self).__name__, '\n'.join(groups))

    def step(self, closure=None):
        raise NotImplementedError('%s: an optimizer needs step' % type(self).__name__)

    def zero_grad(self, set_to_none=True):
        """Drops the gradients; set_to_none=False makes them zeros."""
        if not set_to_none:
            zero_gradients(self._parameters())
            return
        for one in self._parameters():
            one.grad = None

    def _parameters(self):
        return [one for group in self.param_groups for one in group['params']]

    def state_dict(self):
        """{'state': {0: {...}, ...}, 'param_groups': [{..., 'params': [0, ...]}, ...]}, without copies."""
        places = {id(one): i for i, one in enumerate(self._parameters())}
        groups = [{**group, 'params': [places[id(one)] for one in group['params']]} for group in self.param_groups]
        return {'state': {places[id(one)]: state for one, state in self.state.items()}, 'param_groups': groups}

    def load_state_dict(self, state_dict):
        """Copies what state_dict() returned, of an optimizer with groups of the same sizes."""
        groups = state_dict['param_groups']
        if [len(one['params']) for one in groups] != [len(one['params']) for one in self.param_groups]:
            raise ValueError('%s: the state has other groups of parameters' % type(self).__name__)
        for group, given in zip(self.param_groups, groups):
            group.update((name, value) for name, value in given.items() if name != 'params')
        parameters = self._parameters()
        self.state.clear()
        for index, state in state_dict['state'].items():
            self.state[parameters[int(index)]] = copy.deepcopy(state)


def listed_tensors(params):
    """A list of one tensor, of several, or of those of named_parameters()."""
    if isinstance(params, Tensor):
        return [params]
    params = [one[1] if isinstance(one, tuple) and len(one) == 2 else one for one in params]
    for one in params:
        if not isinstance(one, Tensor):
            raise TypeError('an optimizer takes tensors or dicts with "params", not %s' % type(one).__name__)
    return params
