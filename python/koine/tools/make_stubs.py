#!/usr/bin/env python3
"""Writes the typed stubs (.pyi) of the functions, methods and classes that are made from the list of operators and from
the tables of the package.

    python3 make_stubs.py PACKAGE_FOLDER        # the folder `koine`, with _cdef.py; KOINE_LIBRARY names the library"""
import importlib
import inspect
import os
import sys

HEAD = '''# Made by tools/make_stubs.py.
from typing import Any, Callable, Iterator, Mapping, MutableMapping, NamedTuple, Sequence

'''
NUMBER, SIZES = 'int | float', 'int | Sequence[int]'


def type_of_default(value):
    if isinstance(value, bool):
        return 'bool'
    return {int: 'int', float: 'float', str: 'str', tuple: 'Sequence[Any]'}.get(type(value), 'Any')


class Stubs:
    def __init__(self, koine):
        self.koine, self.ops, self.lib = koine, koine._operators, koine._c.lib

    # --- operators ---

    def parameter_type(self, one):
        lib = self.lib
        if one.kind == lib.KN_PARAM_ENUM:
            return 'str'
        if one.count > 1:
            return SIZES
        return {lib.KN_PARAM_BOOL: 'bool', lib.KN_PARAM_INT: 'int', lib.KN_PARAM_INT64: 'int',
                lib.KN_PARAM_DOUBLE: 'float', lib.KN_PARAM_SCALAR: NUMBER, lib.KN_PARAM_DTYPE: 'dtype | str',
                lib.KN_PARAM_INTS: SIZES,
                lib.KN_PARAM_GENERATOR: 'Generator'}[one.kind]

    def argument(self, operator, one):
        """NAME: TYPE = DEFAULT"""
        params = {param.name: param for param in operator.params}
        if one.target in operator.input_names:
            is_list = operator.inputs[operator.input_names.index(one.target)].is_list
            kind = 'Sequence[Tensor | None]' if is_list else 'Tensor'
        elif one.target not in params:
            kind = 'dtype | str'
        else:
            kind = self.parameter_type(params[one.target])
            if one.target + 's' in params and params[one.target + 's'].count > 1:
                kind = SIZES + (' | str' if one.target == 'padding' else '')
        if one.default is None:
            kind += ' | None'
        return '%s: %s' % (one.name, kind) + ('' if one.default is self.ops.REQUIRED else ' = ...')

    def operator(self, name, as_method=False):
        described = self.ops.signature(name)
        parts, starred = [], False
        for i, one in enumerate(described.arguments):
            if one.keyword_only and not starred:
                parts, starred = parts + ['*'], True
            parts.append('self' if as_method and i == 0 else self.argument(described.operator, one))
        count = 1 if described.operator.in_place else described.outputs
        result = 'Tensor' if count == 1 else '_'.join(described.operator.outputs[:count])
        return 'def %s(%s) -> %s: ...' % (name, ', '.join(parts), result)

    # --- functions with a table's line, and of Python ---

    def function(self, function, name=None, as_method=False, result='Any', skip=False):
        line = getattr(function, 'line', None)
        if line is not None and line.startswith('*size'):
            parts = ['*size: Any'] + [self.plain(one) for one in self.koine._bind.parse(
                line.replace('*size', '*')).parameters.values()]
        else:
            signature = self.koine._bind.parse(line) if line is not None else inspect.signature(function)
            parts, starred = [], False
            for one in signature.parameters.values():
                if one.kind is one.KEYWORD_ONLY and not starred:
                    parts, starred = parts + ['*'], True
                if one.kind is one.VAR_POSITIONAL:
                    parts, starred = parts + ['*%s: Any' % one.name], True
                elif one.kind is one.VAR_KEYWORD:
                    parts.append('**%s: Any' % one.name)
                else:
                    parts.append(self.plain(one))
        if as_method:
            parts = ['self'] + (parts if skip else parts[1:])
        return 'def %s(%s) -> %s: ...' % (name or function.__name__, ', '.join(parts), result)

    @staticmethod
    def plain(one):
        if one.name == 'self':
            return 'self'
        is_tensor = one.name in ('input', 'tensor') and one.default is one.empty
        kind = 'Tensor' if is_tensor else type_of_default(one.default)
        return '%s: %s' % (one.name, kind) + ('' if one.default is one.empty else ' = ...')

    # --- files ---

    def tensor_class(self):
        made = ['class Tensor:']
        own = {}
        for kind in reversed(self.koine.Tensor.__mro__[:-1]):
            own.update(vars(kind))
        for name, value in own.items():
            if isinstance(value, property):
                made += ['    @property', '    def %s(self) -> Any: ...' % name]
                if value.fset:
                    made += ['    @%s.setter' % name, '    def %s(self, value: Any) -> None: ...' % name]
            elif isinstance(value, bool):
                made.append('    %s: bool' % name)
            elif inspect.isfunction(value) and name != '__getattr__':
                kind = 'Tensor' if name in RETURN_TENSORS or name.startswith('__r') and name != '__repr__' else 'Any'
                kind = {'__repr__': 'str', '__len__': 'int', '__bool__': 'bool', '__float__': 'float', '__int__': 'int',
                        '__index__': 'int', '__iter__': 'Iterator[Tensor]'}.get(name, kind)
                made.append('    ' + self.function(value, name, True, kind, skip=False))
        for name in sorted(self.koine._functions.METHODS - set(own)):
            made.append('    ' + self.function(getattr(self.koine._functions, name), name, True, 'Any'))
        for name in self.operator_names():
            if name not in own and name not in self.koine._functions.METHODS:
                if self.ops.signature(name).arguments[0].name == 'input':
                    made.append('    ' + self.operator(name, True))
        return made

    def operator_names(self):
        listed = set(self.ops.names()) | set(self.ops._lines) | set(self.ops.alias_names()) | {
            name + '_' for name in self.ops.names() if self.lib.kn_op_find((name + '_').encode())}
        hidden = set(self.koine._functions.PUBLIC) | set(self.koine._functions._FORMS)
        return sorted(name for name in listed - hidden if 'index_fill' not in name)

    def result_types(self, names):
        found = {}
        for name in names:
            described = self.ops.signature(name)
            outputs = tuple(described.operator.outputs[:described.outputs])
            if len(outputs) > 1 and not described.operator.in_place:
                found['_'.join(outputs)] = outputs
        for title, outputs in sorted(found.items()):
            yield 'class %s(NamedTuple):' % title
            yield from ('    %s: Tensor' % one for one in outputs)

    def package(self):
        koine, names = self.koine, self.operator_names()
        made = modules_of(koine) + ['from ._compile import compile as compile', 'from ._tensor import Size as Size']
        for module in ('_c', '_device', '_dtypes', '_flags', '_formats', '_vmap', 'amp', 'autograd', 'random',
                       'serialization', 'train'):
            values = vars(importlib.import_module('koine.' + module))
            own = [name for name in vars(koine) if name in values and not name.startswith('_') and name not in
                   ('ffi', 'lib', 'annotations') and getattr(values[name], '__module__', '') == 'koine.' + module]
            made += ['from .%s import %s as %s' % (module, name, name) for name in own]
        made += ['%s: dtype' % name for name in list(koine._dtypes.by_name) + list(koine._dtypes.ALIASES)]
        made += ['inf: float', 'nan: float', 'pi: float', 'e: float', '__version__: str', 'newaxis: None']
        made += list(self.result_types(names)) + self.tensor_class()
        made += ['class %s(Tensor): ...' % name for name in sorted(koine._legacy.TYPES)]
        made += ['def tensor(data: Any, dtype: Any = ..., device: Any = ..., requires_grad: bool = ...) -> Tensor: ...',
                 'def from_numpy(array: Any, device: Any = ...) -> Tensor: ...',
                 'def from_dlpack(source: Any) -> Tensor: ...']
        made += [self.function(getattr(koine._functions, name), name) for name in sorted(koine._functions.PUBLIC)]
        return made + [self.operator(name) for name in names]

    def special(self):
        module = self.koine.special
        made = ['from koine import %s as %s' % (found, name) for name, found in sorted(module.NAMES.items())]
        own = [value for name, value in sorted(vars(module).items())
               if name[0] != '_' and getattr(value, '__module__', '') == module.__name__]
        return ['from koine import Tensor', *made, *(self.function(one, result='Tensor') for one in own)]

    def functional(self):
        names, functions = self.operator_names(), self.koine._functions
        made = ['from koine import Tensor, dtype, Generator'] + list(self.result_types(names))
        made += [self.function(getattr(functions, name), name) for name in sorted(functions.PUBLIC)]
        return made + [self.operator(name) for name in names]

    def classes(self, module, base_of, names, head):
        made = list(head)
        for name in names:
            kind = getattr(module, name)
            made += ['class %s(%s):' % (name, base_of(kind)), '    ' + self.function(
                kind.__init__, '__init__', True, 'None', skip=getattr(kind.__init__, 'line', None) is not None)]
            for own, value in vars(kind).items():
                if isinstance(value, staticmethod):
                    made += ['    @staticmethod', '    ' + self.function(value.__func__, own)]
                elif inspect.isfunction(value) and own[0] != '_':
                    made.append('    ' + self.function(value, own, True))
        return made


RETURN_TENSORS = set((
    '__add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ __eq__ __ne__ __lt__ __le__\n'
    '__gt__ __ge__ __and__ __or__ __xor__ __lshift__ __rshift__ __matmul__ __neg__ __pos__ __abs__ __invert__ '
    '__getitem__\n'
    '__iadd__ __isub__ __imul__ __itruediv__ reshape view view_as reshape_as expand permute repeat tile flip '
    'contiguous new_tensor\n'
    'unfold detach to host cpu type_as double float half bfloat16 long int bool pin_memory copy_ '
    'requires_grad_').split())


def modules_of(package):
    names = sorted(name for name, value in vars(package).items() if inspect.ismodule(value) and name[0] != '_' and
                   value.__name__ == '%s.%s' % (package.__name__, name))
    return ['from . import %s as %s' % (name, name) for name in names]


def main():
    folder = os.path.abspath(sys.argv[1])
    sys.path.insert(0, os.path.dirname(folder))
    koine = importlib.import_module('koine')
    stubs = Stubs(koine)
    layers = sorted(set(koine.nn._layers.CLASSES) - set(koine.nn.containers.CLASSES))
    base = koine.optim.lr_scheduler.LRScheduler
    schedules = [name for name, value in vars(koine.optim.lr_scheduler).items()
                 if inspect.isclass(value) and issubclass(value, base) and value is not base and name[0] != '_']
    files = {
        '__init__.pyi': stubs.package(),
        'nn/__init__.pyi': stubs.classes(koine.nn, plain_class, layers + sorted(koine.nn.lazy.CLASSES), [
            *modules_of(koine.nn),
            *['from .containers import %s as %s' % (name, name) for name in sorted(koine.nn.containers.CLASSES)],
            'from .lazy import UninitializedBuffer as UninitializedBuffer',
            'from .lazy import UninitializedParameter as UninitializedParameter',
            'from ._parameter import Buffer as Buffer, Parameter as Parameter',
            *['from .linear_loss import %s as %s' % (name, name)
              for name in ('LinearCrossEntropyLoss', 'LinearCrossEntropyOptions')],
            'from .module import Layer as Layer, Module as Module']),
        'nn/functional.pyi': stubs.functional(),
        'special.pyi': stubs.special(),
        'optim/__init__.pyi': optimizer_head() + stubs.classes(
            koine.optim, lambda kind: 'Optimizer', sorted(koine.optim.SIGNATURES), []),
        'optim/lr_scheduler.pyi': stubs.classes(koine.optim.lr_scheduler, lambda kind: 'LRScheduler', schedules,
                                                 scheduler_head()),
    }
    for name, lines in files.items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(HEAD + '\n'.join(lines) + '\n')


def plain_class(kind):
    """What a layer derives from: a lazy one from what it becomes."""
    return kind.cls_to_become.__name__ if hasattr(kind, 'cls_to_become') else 'Layer'


def optimizer_head():
    return ['from . import lr_scheduler as lr_scheduler, swa_utils as swa_utils',
            'class ParamGroup(MutableMapping[str, Any]): ...', 'class Optimizer:',
            '    lr: float', '    param_groups: Sequence[ParamGroup]', '    defaults: Mapping[str, Any]',
            '    state: Mapping[Any, Mapping[str, Any]]',
            '    def state_dict(self) -> dict[str, Any]: ...',
            '    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None: ...',
            '    def step(self, closure: Callable[[], Any] | None = ...) -> Any: ...',
            '    def zero_grad(self, set_to_none: bool = ...) -> None: ...',
            '    def add_param_group(self, group: Mapping[str, Any]) -> None: ...',
            '    def save(self, file: Any) -> None: ...', '    def load(self, file: Any) -> None: ...']


def scheduler_head():
    return ['class LRScheduler:', '    last_epoch: int', '    base_lrs: list[float]', '    optimizer: Any',
            '    def __init__(self, optimizer: Any, last_epoch: int = ...) -> None: ...',
            '    def get_lr(self) -> list[float]: ...',
            '    def step(self, metrics: float | None = ..., epoch: float | None = ...) -> None: ...',
            '    def state_dict(self) -> dict[str, Any]: ...',
            '    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None: ...',
            '    def get_last_lr(self) -> list[float]: ...', '    def save(self, file: Any) -> None: ...',
            '    def load(self, file: Any) -> None: ...']


if __name__ == '__main__':
    main()
