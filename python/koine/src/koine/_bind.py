"""Functions of the C interface as Python functions, from one line of text each:

    bind('kn_nn_linear_with', 'in_features, out_features, bias=True', wrap)

The C function's own types say how an argument is passed: an argument with the name of a field of the parameter struct
is stored there (of "stride" and "strides" the one that fits), the others fill the remaining C arguments in order. A
shape is the two arguments `int, const int64_t *`, a list of tensors `kn_tensor *const *, int`, dimensions
`const int *, int`; each `kn_tensor **` is a further result. None leaves a field at its default; `name: field` gives a
field another name, and `name: _` is an argument without an effect. `output_size` may fill several int64_t, of which
None is -1; a function is passed as one of C that takes and returns tensors; `return_indices=True` calls the form
..._with_indices."""
import ast
import collections
import inspect
import re

from ._c import NULL, callback, checked, encoded, error, ffi, lib, run_in_scope, scalar
from ._dtypes import code_of

# Of enumerators whose names are not PyTorch's.
_SYNONYMS = {'zeros': 'constant'}


def enumerator(kind, value):
    """The number of 'mean' in the enum kn_reduction: the enumerator that ends with it, of -1 that with MINUS_1. Where
    none ends with a digit, a number is an enumerator's. A function such as nn.functional.gelu stands for its name."""
    value = getattr(value, '__name__', value)
    named = {name: number for number, name in kind.elements.items()}
    words = [_word(value), _word(_SYNONYMS.get(value, value))]
    for word in words:
        found = [name for name in named if name == word or name.endswith('_' + word)]
        if found:
            return named[min(found, key=len)]
    if isinstance(value, int) and not any(name[-1].isdigit() for name in named):
        return int(value)
    named = sorted(named, key=named.get)
    start = len(_common(named))
    choices = [name[start:].lower().replace('minus_', '-') for name in named]
    raise ValueError("%r is not one of %s" % (value, ', '.join("'%s'" % one for one in choices)))


def _word(value):
    return ('%g' % value).upper().replace('-', 'MINUS_') if isinstance(value, (int, float)) else str(value).upper()


def _common(names):
    return next((names[0][:i] for i in range(len(names[0]), 0, -1)
                 if names[0][i - 1] == '_' and all(name.startswith(names[0][:i]) for name in names)), '')


def _name(kind):
    return kind.cname.replace('struct ', '').replace('enum ', '')


def convert(kind, value, keep):
    """A Python value as that C type; `keep` holds what the result points to."""
    if kind.kind == 'enum':
        return code_of(value) if _name(kind) == 'kn_dtype' else enumerator(kind, value)
    if kind.kind == 'primitive':
        return value
    if kind.kind == 'struct' and _name(kind) == 'kn_scalar':
        return scalar(value)
    if value is None:
        return NULL
    if kind.kind == 'array':
        return [int(one) for one in value]
    if kind.kind == 'function':
        keep.append(_of_tensors(kind, value))
        return keep[-1]
    item = kind.item
    if _name(item) == 'kn_device':
        from ._device import handle
        return handle(value)
    if item.kind == 'struct':
        return value._h
    if item.cname.startswith('char'):
        made = ffi.new('char[]', encoded(value))
    elif item.kind == 'pointer':  # names or tensors, with NULL at the end
        parts = [ffi.new('char[]', encoded(one)) if isinstance(one, str) else one._h for one in value]
        keep.extend(parts)
        made = ffi.new('%s[]' % item.cname, parts + [NULL])
    else:
        made = ffi.new(item.cname + '[]', list(value))
    keep.append(made)
    return made


def _of_tensors(kind, function):
    """A C function of that type: its tensors are the arguments of the Python function, whose tensor it returns."""
    if not callable(function):
        raise TypeError('expected a function, not %s' % type(function).__name__)

    def called(*arguments):
        from ._tensor import Tensor, borrowed
        result = function(*[borrowed(one) for one, type_ in zip(arguments, kind.args)
                            if _name(type_) == 'kn_tensor *'])
        if not isinstance(result, Tensor):
            raise TypeError('the function must return a koine.Tensor, not %s' % type(result).__name__)
        return result

    return callback(kind, NULL, called)


class Struct:
    """A parameter struct, filled from keyword arguments; `dims` numbers are a size by dimension."""

    def __init__(self, pointer_type, dims=None):
        self.dims = dims
        self.name = _name(pointer_type.item)
        self.pointer = ffi.typeof(self.name + ' *')
        self.fields = {name: field.type for name, field in pointer_type.item.fields}
        self.plain = {name: self._plain_kind(name) for name in self.fields}
        self.init = getattr(lib, self.name + '_init')

    def _plain_kind(self, name):
        """What its values are, where any of them is stored as it stands: 'number' or 'tensor'."""
        kind = self.fields[name]
        if name in ('momentum', 'padding') or {name + 's', 'num_' + name} & self.fields.keys():
            return None
        return 'number' if kind.kind == 'primitive' else 'tensor' if _name(kind) == 'kn_tensor *' else None

    def takes(self, name):
        several = self.fields.get(name + 's')
        return name in self.fields or several is not None and several.kind == 'array'

    def takes_each(self, name, value):
        """Is it a list of numbers, for a field such as "max_lrs" in place of max_lr?"""
        several = self.fields.get(name + 's')
        return several is not None and several.kind == 'pointer' and isinstance(value, (list, tuple))

    def fill(self, values, keep):
        made = ffi.new(self.pointer, self.init())
        for name, value in values.items():
            kind = self.plain.get(name)
            if kind is None:
                self._store(made, name, value, keep)
            elif value is not None:
                setattr(made, name, value if kind == 'number' else value._h)
        return made

    def _store(self, made, name, value, keep):
        if value is None and name == 'momentum':  # of batch and instance normalisation
            name, value = ('cumulative_average', True) if 'cumulative_average' in self.fields else (name, 0.0)
        if value is None:
            return
        several = self.fields.get(name + 's')
        by_dimension = several is not None and several.kind == 'array'
        if by_dimension and isinstance(value, (list, tuple)) and alone(name, value, self.dims):
            value = value[0]
        if self.takes_each(name, value):
            setattr(made, name + 's', convert(several, value, keep))
        elif by_dimension and not isinstance(value, (int, float, str)):
            setattr(made, name + 's', list(value))
        elif name not in self.fields:  # only the form with several numbers
            setattr(made, name + 's', [value] * self.fields[name + 's'].length)
        elif name == 'padding' and isinstance(value, str):
            if value not in ('same', 'valid'):
                raise ValueError("padding is 'same', 'valid', a number or a tuple, not %r" % value)
            made.padding = -1 if value == 'same' else 0  # KN_PADDING_SAME
        elif name == 'padding' and isinstance(value, int) and value < 0:
            raise ValueError('padding must be at least 0, not %d' % value)
        else:
            setattr(made, name, convert(self.fields[name], value, keep))
            if 'num_' + name in self.fields:
                setattr(made, 'num_' + name, len(value))


def alone(name, value, dims):
    """Is it one number in a list, for every dimension as in PyTorch, and not one for each of `dims`?"""
    if len(value) not in (1, dims or len(value)):
        raise ValueError('%s has %d numbers; it needs %d' % (name, len(value), dims))
    return len(value) == 1


def dimensions(name):
    """2 of conv2d; None where the name does not tell."""
    found = re.search('([123])d(?![a-z0-9])', name)
    return int(found[1]) if found else None


def _is_params(kind):
    return kind.kind == 'pointer' and kind.item.kind == 'struct' and _name(kind.item).endswith(('_params', '_options'))


def parse(line):
    """inspect.Parameters of 'a, b=1, *, c=None'."""
    arguments = ast.parse('def f(%s): pass' % line).body[0].args
    made = []
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + arguments.defaults
    for kind, named, values in ((inspect.Parameter.POSITIONAL_OR_KEYWORD, arguments.args, defaults),
                                (inspect.Parameter.KEYWORD_ONLY, arguments.kwonlyargs, arguments.kw_defaults)):
        for one, default in zip(named, values):
            value = inspect.Parameter.empty if default is None else ast.literal_eval(default)
            field = one.annotation.id if one.annotation else one.arg
            made.append(inspect.Parameter(one.arg, kind, default=value, annotation=field))
    return inspect.Signature(made)


# What an argument of a C function is made of.
_TENSOR, _NUMBER, _FIELDS, _RESULT, _SHAPE, _LIST, _SIZES, _OTHER = range(8)


def _with_indices(c_name):
    return c_name[:-len('_with')] + '_with_indices_with' if c_name.endswith('_with') else c_name + '_with_indices'


def _several_sizes(name, value, count):
    value = [value] * count if value is None or isinstance(value, int) else list(value)
    if len(value) != count:
        raise ValueError('%s has %d numbers; it needs %d' % (name, len(value), count))
    return [-1 if one is None else one for one in value]


def _reader(name, signature):
    """A function with that signature that returns its arguments as a dict: Python binds them."""
    parts, starred = [], False
    for one in signature.parameters.values():
        if one.kind == one.KEYWORD_ONLY and not starred:
            parts.append('*')
            starred = True
        parts.append(one.name + ('' if one.default is one.empty else '=%r' % (one.default,)))
    text = 'def %s(%s):\n    return {%s}\n' % (
        name, ', '.join(parts), ', '.join('{0!r}: {0}'.format(one) for one in signature.parameters))
    made = {}
    exec(compile(text, '<koine.%s>' % name, 'exec'), made)
    return made[name]


class Binding:
    """A C function and the Python signature it is called with. `scoped`: it makes or changes tensors."""

    def __init__(self, c_name, line, scoped=False, makes_tensors=False, name=None):
        self.scoped, self.makes_tensors = scoped, makes_tensors
        self.signature = parse(line)
        self.read = _reader(name or re.sub('^kn_|_with(?=_?$)', '', c_name), self.signature)
        parameters = self.signature.parameters
        names = [name for name, one in parameters.items() if name != 'return_indices' and one.annotation != '_']
        c_names = [c_name, _with_indices(c_name)] if 'return_indices' in parameters else [c_name]
        forms = [(getattr(lib, one), ffi.typeof(getattr(lib, one)).args) for one in c_names]
        dims = dimensions(c_name)
        self.struct = next((Struct(kind, dims) for kind in forms[0][1] if _is_params(kind)), None)
        fields = {name: parameters[name].annotation for name in names}
        self.fields = {name: field for name, field in fields.items()
                       if self.struct is not None and self.struct.takes(field)}
        self.positional = [name for name in names if name not in self.fields]
        self.forms = [(function, list(self._steps(kinds))) for function, kinds in forms]
        self.several = [name for name in self.positional if self.struct is not None and
                        getattr(self.struct.fields.get(name + 's'), 'kind', None) == 'pointer']

    def _steps(self, kinds):
        """How the C function's arguments are made of those by name: (what, name, C type)."""
        rest = list(self.positional)
        place = 0
        while place < len(kinds):
            kind = kinds[place]
            after = kinds[place + 1].cname if place + 1 < len(kinds) else ''
            if _is_params(kind):
                yield _FIELDS, None, kind
            elif _name(kind) == 'kn_tensor * *' and after != 'int':
                yield _RESULT, None, kind
            elif kind.cname == 'int' and after.startswith('int64_t'):
                yield _SHAPE, rest.pop(0), kind
                place += 1
            elif _name(kind) in ('int *', 'int64_t *', 'kn_tensor * *', 'kn_module * *') and after == 'int':
                yield _LIST, rest.pop(0), ffi.typeof(kind.item.cname + '[]')
                place += 1
            elif kind.cname == 'int64_t' and rest[0] == 'output_size':
                count = next(i for i in range(1, 4) if kinds[place + i:place + i + 1] != (kind,))
                yield _SIZES, rest.pop(0), count
                place += count - 1
            else:
                name = rest.pop(0)
                yield (_TENSOR if _name(kind) == 'kn_tensor *' else
                       _NUMBER if kind.kind == 'primitive' else _OTHER), name, kind
            place += 1

    def __call__(self, arguments, keywords):
        """(the C function's result, further results, what must stay alive)."""
        values, keep, passed, further = self.read(*arguments, **keywords), [], [], []
        function, steps = self.forms[bool(values.get('return_indices')) if len(self.forms) > 1 else 0]
        given = {field: values[name] for name, field in self.fields.items()}
        for name in self.several:
            if self.struct.takes_each(name, values[name]):
                given[name + 's'], values[name] = values[name], values[name][0]
        for what, name, kind in steps:
            value = values[name] if name else None
            if what == _TENSOR:
                passed.append(NULL if value is None else value._h)
            elif what == _NUMBER:
                passed.append(value)
            elif what == _FIELDS:
                passed.append(self.struct.fill(given, keep))
            elif what == _RESULT:
                further.append(ffi.new('kn_tensor *[1]'))
                passed.append(further[-1])
            elif what == _SHAPE:
                shape = [value] if isinstance(value, int) else list(value)
                passed += [len(shape), ffi.new('int64_t[]', shape)]
            elif what == _LIST:
                many = [value] if isinstance(value, int) else list(value or [])
                passed += [ffi.new(kind, [one if isinstance(one, int) else one._h for one in many]), len(many)]
            elif what == _SIZES:
                passed += _several_sizes(name, value, kind)
            else:
                passed.append(convert(kind, value, keep))
        result = run_in_scope(function, passed, self.makes_tensors, further) if self.scoped else function(*passed)
        return result, further, keep


def tensor_function(name, c_name, line, results=None):
    """A function that returns a tensor, or with `kn_tensor **` arguments several: a tuple with the names `results`."""
    several = results and collections.namedtuple(name, results, module='koine')._make
    binding = wrap = None

    def call(*arguments, **keywords):
        nonlocal binding, wrap
        if binding is None:
            from ._tensor import wrap
            binding = Binding(c_name, line, scoped=True, makes_tensors=True, name=name)
        try:
            handle, further, _ = binding(arguments, keywords)
        except AttributeError as problem:
            if '_h' in str(problem):
                raise TypeError('%s: %s' % (name, str(problem).replace("object has no attribute '_h'",
                                                                        'is no koine.Tensor'))) from None
            raise
        if not handle:
            raise error()
        first = wrap(handle)
        return (several or tuple)([first, *[wrap(one[0]) for one in further]]) if further else first

    call.__name__ = call.__qualname__ = name
    call.line = line
    return call


def in_place_function(name, c_name, line):
    """A function that changes its first argument and returns it: the C function does so without a new reference."""
    binding = None

    def call(input, *arguments, **keywords):
        nonlocal binding
        if binding is None:
            binding = Binding(c_name, line, scoped=True, name=name)
        checked(binding((input, *arguments), keywords)[0])
        return input

    call.__name__ = call.__qualname__ = name
    call.line = line
    return call
