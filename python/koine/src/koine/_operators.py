"""The operators of the library's list, and how the functions of them are called: see _signatures.py."""
import ast
import collections
import re
import struct

from . import _signatures
from ._c import NULL, encoded, ffi, lib, plain_number
from ._dtypes import as_dtype, by_code

# --- what the list says ---------------------------------------------------------------------------------------------

# kind: (struct format of a value, numbers that it consists of)
_FORMATS = {lib.KN_PARAM_BOOL: ('?', 1), lib.KN_PARAM_INT: ('i', 1), lib.KN_PARAM_INT64: ('q', 1),
            lib.KN_PARAM_DOUBLE: ('d', 1), lib.KN_PARAM_SCALAR: ('?7xqd', 3), lib.KN_PARAM_DTYPE: ('i', 1),
            lib.KN_PARAM_ENUM: ('i', 1), lib.KN_PARAM_INTS: ('i4x8q', 9), lib.KN_PARAM_GENERATOR: ('Q', 1)}


class Parameter:
    """A field of an operator's struct: its place, its default, and how a Python value becomes its numbers."""

    def __init__(self, described, defaults):
        self.name = ffi.string(described.name).decode()
        self.kind, self.offset = described.kind, described.offset
        fields, numbers = _FORMATS[self.kind]
        self.count = described.size // struct.calcsize('=' + fields)
        self.format = fields * self.count
        self.numbers = struct.unpack_from('=' + self.format, defaults, self.offset)
        self.names = []  # of an enum
        while self.kind == lib.KN_PARAM_ENUM and described.values[len(self.names)] != NULL:
            self.names.append(ffi.string(described.values[len(self.names)]).decode())

    @property
    def default(self):
        """As Python writes it."""
        first = self.numbers[0]
        if self.count > 1:
            return tuple(self.numbers)
        if self.kind == lib.KN_PARAM_SCALAR:
            return self.numbers[1] if first else self.numbers[2]
        if self.kind == lib.KN_PARAM_DTYPE:
            return by_code.get(first)
        if self.kind == lib.KN_PARAM_INTS:
            return tuple(self.numbers[1:1 + first])
        return {lib.KN_PARAM_ENUM: lambda: self.names[first], lib.KN_PARAM_GENERATOR: lambda: None}.get(
            self.kind, lambda: first)()

    def convert(self, value):
        """The numbers of a value."""
        if self.kind == lib.KN_PARAM_SCALAR:
            value = value if isinstance(value, (int, float)) else plain_number(value)
            whole = not isinstance(value, float)
            return whole, int(value) if whole else 0, value
        if self.kind == lib.KN_PARAM_INTS:
            values = [value.__index__()] if hasattr(value, '__index__') else [size.__index__() for size in value]
            if len(values) > 8:  # KN_MAX_DIMS
                raise ValueError('%s has %d numbers; the most is 8' % (self.name, len(values)))
            return (len(values), *values, *(0,) * (8 - len(values)))
        if self.kind == lib.KN_PARAM_ENUM:
            return (self.choice(value),)
        if self.kind == lib.KN_PARAM_DTYPE:
            return (as_dtype(value).code,)
        if self.kind == lib.KN_PARAM_GENERATOR:
            return (int(ffi.cast('uintptr_t', value._h)),)
        if self.count > 1:
            return (*value, *(0,) * (self.count - len(value)))
        return (value,)

    def choice(self, value):
        if value in self.names:
            return self.names.index(value)
        if isinstance(value, int) and 0 <= value < len(self.names):
            return int(value)
        raise ValueError("%s is one of '%s', not %r" % (self.name, "', '".join(self.names), value))


class Operator:
    """A row of the list."""

    def __init__(self, name):
        self.op = lib.kn_op_find(encoded(name))
        if not self.op:
            raise AttributeError('koine has no operator %s' % name)
        self.name = name
        info = lib.kn_op_describe(self.op)
        self.in_place, self.is_view, self.differentiable = info.in_place, info.is_view, info.is_differentiable
        self.inputs = [lib.kn_op_input_at(self.op, i) for i in range(info.num_inputs)]
        self.input_names = [ffi.string(one.name).decode() for one in self.inputs]
        self.outputs = [ffi.string(lib.kn_op_output_at(self.op, i)).decode() for i in range(info.num_outputs)]
        defaults = ffi.new('char[]', info.params_size or 1)
        lib.kn_op_params_init(self.op, defaults)
        defaults = bytes(ffi.buffer(defaults))
        self.params = [Parameter(lib.kn_op_param_at(self.op, i), defaults) for i in range(info.num_params)]
        self.params.sort(key=lambda one: one.offset)
        self.params_size = info.params_size
        self.pack = self._layout().pack

    def _layout(self):
        fields, place = '=', 0
        for one in self.params:
            fields += '%dx' % (one.offset - place) + one.format
            place = one.offset + struct.calcsize('=' + one.format)
        return struct.Struct(fields + '%dx' % (self.params_size - place))


def names():
    """The names of the list of operators."""
    return [ffi.string(lib.kn_op_describe(lib.kn_op_at(i)).name).decode() for i in range(lib.kn_op_count())]


# --- signatures -------------------------------------------------------------------------------------------------------

REQUIRED = object()
Argument = collections.namedtuple('Argument', 'name target default keyword_only')
Signature = collections.namedtuple('Signature', 'name operator arguments outputs')

_LINE = re.compile(r'(\w+)(?: = (\w+))?(\(.*\))(?: -> (\d))?$')
_lines = {re.match(r'\w+', line).group(): line for line in _signatures.LINES.splitlines() if line}


def _written(line, operator):
    """The arguments of a line of the table."""
    tree = ast.parse('def f%s: pass' % _LINE.match(line).group(3)).body[0].args
    positional = [(one, False) for one in tree.args]
    defaults = [None] * (len(tree.args) - len(tree.defaults)) + tree.defaults + tree.kw_defaults
    for (one, keyword_only), default in zip(positional + [(one, True) for one in tree.kwonlyargs], defaults):
        target = one.annotation.id if one.annotation else _target(one.arg, operator)
        yield Argument(one.arg, target, REQUIRED if default is None else ast.literal_eval(default), keyword_only)


def _target(name, operator):
    own = operator.input_names + [one.name for one in operator.params]
    if name in own:
        return name
    found = {'input': operator.input_names[0], 'other': 'b', 'dim': 'dims', 'dims': 'dim'}.get(name)
    return found if found in own else name if name in ('dtype', 'inplace') else None


def _derived(operator):
    """Inputs, then parameters, as the operator has them."""
    renamed = {'dims': 'dim'}
    if 'input' not in operator.input_names:
        renamed.update({'x': 'input', 'a': 'input', 'b': 'other'} if len(operator.inputs) < 3 else {'x': 'input'})
    pairs = {one.name + 's' for one in operator.params}
    for one in operator.inputs:
        name = ffi.string(one.name).decode()
        yield Argument(renamed.get(name, name), name, None if one.is_optional else REQUIRED, False)
    for one in operator.params:
        if one.name not in pairs and one.name != 'paddings_after':
            default = None if one.kind == lib.KN_PARAM_INTS and one.name in ('dims', 'dim') else one.default
            yield Argument(renamed.get(one.name, one.name), one.name, default, False)


def _line_of(name):
    """(its line of the table or None, the name of the operator): where arccos is acos, arccos_ is acos_."""
    line, end = _lines.get(name), ''
    if line is None and name.endswith('_'):
        line, end = _lines.get(name[:-1]), '_'
    other = line and _LINE.match(line).group(2)
    return (None if end and not other else line), other + end if other else name


def alias_names():
    """Names of the table for operators of other names, and those in place."""
    found = {name: other for name, other in ((name, _line_of(name)[1]) for name in _lines) if name != other}
    return [*found, *(name + '_' for name, other in found.items() if lib.kn_op_find(encoded(other + '_')))]


def signature(name):
    """How koine.NAME is called; AttributeError if there is no such operator."""
    line, operator_name = _line_of(name)
    operator = Operator(operator_name)
    if line is None:
        return Signature(name, operator, list(_derived(operator)), len(operator.outputs))
    outputs = int(_LINE.match(line).group(4) or len(operator.outputs))
    return Signature(name, operator, list(_written(line, operator)), outputs)
