"""Functions of the C interface as Python functions, from one line of text each:

    bind('kn_nn_linear_with', 'in_features, out_features, bias=True', wrap)

The C function's own types say how an argument is passed: an argument with the name of a field of the parameter struct
is stored there (of "stride" and "strides" the one that fits), the others fill the remaining C arguments in order. A
shape is the two arguments `int, const int64_t *`, a list of tensors `kn_tensor *const *, int`, dimensions
`const int *, int`; each `kn_tensor **` is a further result. None leaves a field at its default."""
import ast
import inspect

from ._c import NULL, checked, error, ffi, lib, scalar
from ._dtypes import code_of

# Of enumerators whose names are not PyTorch's.
_SYNONYMS = {'zeros': 'constant'}


def enumerator(kind, value):
    """The number of 'mean' in the enum kn_reduction: the enumerator that ends with it."""
    if isinstance(value, int):
        return int(value)
    named = {name: number for number, name in kind.elements.items()}
    words = [str(value).upper(), _SYNONYMS.get(value, str(value)).upper()]
    for word in words:
        found = [name for name in named if name == word or name.endswith('_' + word)]
        if found:
            return named[min(found, key=len)]
    named = sorted(named, key=named.get)
    start = len(_common(named))
    raise ValueError("%r is not one of %s" % (value, ', '.join("'%s'" % name[start:].lower() for name in named)))


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
    item = kind.item
    if _name(item) == 'kn_device':
        from ._device import handle
        return handle(value)
    if item.kind == 'struct':
        return value._h
    if item.cname.startswith('char'):
        made = ffi.new('char[]', value.encode())
    elif item.kind == 'pointer':  # names or tensors, with NULL at the end
        parts = [ffi.new('char[]', one.encode()) if isinstance(one, str) else one._h for one in value]
        keep.extend(parts)
        made = ffi.new('%s[]' % item.cname, parts + [NULL])
    else:
        made = ffi.new(item.cname + '[]', list(value))
    keep.append(made)
    return made


class Struct:
    """A parameter struct, filled from keyword arguments."""

    def __init__(self, pointer_type):
        self.name = _name(pointer_type.item)
        self.pointer = ffi.typeof(self.name + ' *')
        self.fields = {name: field.type for name, field in pointer_type.item.fields}
        self.init = getattr(lib, self.name + '_init')

    def takes(self, name):
        return name in self.fields or name + 's' in self.fields

    def fill(self, values, keep):
        made = ffi.new(self.pointer, self.init())
        for name, value in values.items():
            if value is None:
                continue
            several = self.fields.get(name + 's')
            if several is not None and several.kind == 'array' and not isinstance(value, (int, float, str)):
                setattr(made, name + 's', list(value))
            elif name not in self.fields:  # only the form with several numbers
                setattr(made, name + 's', [value] * self.fields[name + 's'].length)
            elif name == 'padding' and isinstance(value, str):
                if value not in ('same', 'valid'):
                    raise ValueError("padding is 'same', 'valid', a number or a tuple, not %r" % value)
                made.padding = -1 if value == 'same' else 0  # KN_PADDING_SAME
            else:
                setattr(made, name, convert(self.fields[name], value, keep))
        return made


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
            made.append(inspect.Parameter(one.arg, kind, default=value))
    return inspect.Signature(made)


class Binding:
    """A C function and the Python signature it is called with."""

    def __init__(self, c_name, line):
        self.function = getattr(lib, c_name)
        self.signature = parse(line)
        self.kinds = ffi.typeof(self.function).args
        self.struct = next((Struct(kind) for kind in self.kinds if _is_params(kind)), None)
        names = list(self.signature.parameters)
        self.fields = [name for name in names if self.struct is not None and self.struct.takes(name)]
        self.positional = [name for name in names if name not in self.fields]

    def __call__(self, arguments, keywords):
        """(the C function's result, further results, what must stay alive)."""
        bound = self.signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        values, keep, passed, further = bound.arguments, [], [], []
        rest = [values[name] for name in self.positional]
        kinds, place = self.kinds, 0
        while place < len(kinds):
            kind = kinds[place]
            after = kinds[place + 1].cname if place + 1 < len(kinds) else ''
            if _is_params(kind):
                passed.append(self.struct.fill({name: values[name] for name in self.fields}, keep))
            elif _name(kind) == 'kn_tensor * *' and after != 'int':
                further.append(ffi.new('kn_tensor *[1]'))
                passed.append(further[-1])
            elif kind.cname == 'int' and after.startswith('int64_t'):
                shape = rest.pop(0)
                shape = [shape] if isinstance(shape, int) else list(shape)
                passed += [len(shape), ffi.new('int64_t[]', shape)]
                place += 1
            elif _name(kind) in ('int *', 'int64_t *', 'kn_tensor * *', 'kn_module * *') and after == 'int':
                many = rest.pop(0)
                many = [many] if isinstance(many, int) else list(many or [])
                passed += [ffi.new(kind.item.cname + '[]', [one if isinstance(one, int) else one._h for one in many]),
                           len(many)]
                place += 1
            else:
                passed.append(convert(kind, rest.pop(0), keep))
            place += 1
        return self.function(*passed), further, keep


def tensor_function(name, c_name, line, swap=False):
    """A function that returns a tensor, or with `kn_tensor **` arguments several."""
    made = []

    def call(*arguments, **keywords):
        from ._tensor import wrap
        if not made:
            made.append(Binding(c_name, line))
        try:
            handle, further, _ = made[0](arguments, keywords)
        except AttributeError as problem:
            if '_h' in str(problem):
                raise TypeError('%s: %s' % (name, str(problem).replace("object has no attribute '_h'",
                                                                        'is no koine.Tensor'))) from None
            raise
        if not handle:
            raise error()
        first = wrap(handle)
        return (first, *[wrap(one[0]) for one in further]) if further else first

    call.__name__ = call.__qualname__ = name
    call.line = line
    return call


def in_place_function(name, c_name, line):
    """A function that changes its first argument and returns it: the C function does so without a new reference."""
    made = []

    def call(input, *arguments, **keywords):
        if not made:
            made.append(Binding(c_name, line))
        checked(made[0]((input, *arguments), keywords)[0])
        return input

    call.__name__ = call.__qualname__ = name
    call.line = line
    return call
