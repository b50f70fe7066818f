"""States of optimizers as dictionaries."""
import collections.abc

from .._tensor import Tensor
from ..nn._life import address


class ParameterStates(collections.abc.Mapping):
    """{parameter: {'step': ..., 'exp_avg': ...}} of those that had a step. Of a parameter any object will do."""

    def __init__(self, parameters, states):
        self._parameters = {address(one._h): one for one in parameters}
        self._states = {address(parameters[index]._h): state for index, state in states.items()}

    def __getitem__(self, parameter):
        """{} before the parameter's first step."""
        if not isinstance(parameter, Tensor) or address(parameter._h) not in self._parameters:
            raise KeyError('the optimizer has no such parameter')
        return self._states.get(address(parameter._h), {})

    def __contains__(self, parameter):
        return isinstance(parameter, Tensor) and address(parameter._h) in self._states

    def __iter__(self):
        return (self._parameters[key] for key in self._states)

    def __len__(self):
        return len(self._states)
