"""Functions of the operators, made when they are first used: the text of each is written and compiled."""
import collections
import inspect
import struct

from ._bind import alone, dimensions
from ._c import NULL, error, ffi, lib
from ._operators import REQUIRED, Operator, alias_names, names, signature  # noqa: F401

# --- what the functions use -------------------------------------------------------------------------------------------

_results = {}


def _result_type(outputs):
    """The named tuple of several outputs."""
    if outputs not in _results:
        _results[outputs] = collections.namedtuple('_'.join(outputs), outputs, module=__name__)
    return _results[outputs]


def one_or_each(value, default, name, dims):
    """(n, (0, 0, 0)) for a number, (default, (n, m, ...)) for several: the two forms of a size."""
    if isinstance(value, str):
        if value not in ('same', 'valid'):
            raise ValueError("padding is 'same', 'valid', a number or a tuple, not %r" % value)
        return (lib_padding_same if value == 'same' else 0), (0, 0, 0)
    if isinstance(value, (int, float)):
        if value < 0:  # which says 'same' in C
            raise ValueError('padding, and sizes and strides of windows, must be at least 0, not %d' % value)
        return value, (0, 0, 0)
    value = tuple(value)
    if alone(name, value, dims):
        return one_or_each(value[0], default, name, dims)
    return default, value + (0,) * (3 - len(value))


lib_padding_same = -1  # KN_PADDING_SAME, a macro


def _not_tensors(name, ones, lists):
    """What to raise where an argument has no handle: a TypeError if it is no tensor."""
    from ._tensor import Tensor
    values = list(ones.items()) + [(argument, one) for argument, many in lists.items() for one in many]
    for argument, value in values:
        if value is not None and not isinstance(value, Tensor):
            return TypeError('%s: %s must be a koine.Tensor, not %s' % (name, argument, type(value).__name__))
    return None


def _changing(name):
    """What inplace=True calls; its parameters have the operator's own names."""
    def change(input, **params):
        return function(name + '_')(input, **params)
    return change


# Of these kinds equal values are packed alike, but for 1 and True, which mean the same.
_REMEMBERED = {lib.KN_PARAM_BOOL, lib.KN_PARAM_INT, lib.KN_PARAM_INT64, lib.KN_PARAM_INTS, lib.KN_PARAM_ENUM}
_MOST_REMEMBERED = 64


def _remember(known, key, params):
    """Keeps the packed parameters for the next call with equal ones, if those cannot change."""
    if len(known) < _MOST_REMEMBERED and all(
            type(one) in (int, bool, str, type(None)) or type(one) is tuple and {*map(type, one)} <= {int}
            for one in key):
        known[key] = params


# --- their text -------------------------------------------------------------------------------------------------------


def _parameters_code(operator, arguments, names):
    """Lines that set v_NAME for each given parameter, and the arguments of pack()."""
    lines, packed = [], []
    given = {one.target: one for one in arguments}
    arrays = {one.name: one for one in operator.params if one.count > 1}
    for one in operator.params:
        argument, several = given.get(one.name), arrays.get(one.name + 's')
        if argument is None:
            if not (one.name in arrays and one.name[:-1] in given):  # else set with its single form
                names['d_' + one.name] = one.numbers
                packed.append('*d_' + one.name)
            else:
                packed.append('*a_' + one.name)
            continue
        names['d_' + one.name], names['c_' + one.name] = one.numbers, one.convert
        simple = one.count == 1 and one.kind in (lib.KN_PARAM_BOOL, lib.KN_PARAM_INT, lib.KN_PARAM_INT64,
                                                 lib.KN_PARAM_DOUBLE)
        value = argument.name
        if several:
            names['d_' + several.name] = several.numbers
            lines.append('v_{0}, a_{0}s = (d_{0}[0], d_{0}s) if {1} is None else '
                         'one_or_each({1}, d_{0}[0], {1!r}, {2})'.format(one.name, value, dimensions(operator.name)))
            packed.append('v_' + one.name)
        elif simple and argument.default is not None:
            packed.append(value)
        else:
            lines.append('v_{0} = d_{0} if {1} is None else c_{0}({1})'.format(one.name, value))
            packed.append('*v_' + one.name)
    return lines, packed


def _inputs_code(operator, arguments):
    """The expressions of the inputs' tuple."""
    given = {one.target: one for one in arguments}
    for one, name in zip(operator.inputs, operator.input_names):
        argument = given.get(name)
        if argument is None:
            yield 'NULL'
        elif one.is_list:
            yield '*[NULL if one is None else one._h for one in %s]' % argument.name
        elif one.is_optional or argument.default is None:
            yield 'NULL if {0} is None else {0}._h'.format(argument.name)
        else:
            yield argument.name + '._h'


def _numpy_names(arguments):
    """(numpy's name, PyTorch's) of those that may be given by both: those after which none is required."""
    last = max((i for i, one in enumerate(arguments) if one.default is REQUIRED), default=0)
    return [(other, one.name) for other, name in (('axis', 'dim'), ('keepdims', 'keepdim'))
            for i, one in enumerate(arguments) if one.name == name and i >= last]


def _head(arguments):
    parts, starred, doubled = [], False, dict(_numpy_names(arguments))
    for one in arguments:
        if one.keyword_only and not starred:
            parts.append('*')
            starred = True
        if one.default is REQUIRED:
            parts.append(one.name + '=None' * (one.name in doubled.values()))
        else:
            parts.append('%s=%s' % (one.name, _literal(one.default)))
    others = [other + '=None' for other in doubled]
    return ', '.join(parts + ['*'] * (bool(others) and not starred) + others)


def _literal(value):
    if isinstance(value, float) and (value != value or value in (float('inf'), float('-inf'))):
        return "float('%r')" % value
    return repr(value)


def _direct(operator, outputs):
    """The operator's C function, if it takes one or two tensors and nothing else: its call takes less time. With more
    tensors, or optional ones, the function may have them in another order."""
    made = getattr(lib, 'kn_' + operator.name, None)
    if (made is None or operator.params or outputs != 1 or len(operator.inputs) > 2
            or any(one.is_list or one.is_optional for one in operator.inputs)):
        return None
    kind, tensor = ffi.typeof(made), ffi.typeof('kn_tensor *')
    return made if (*kind.args, kind.result) == (tensor,) * (len(operator.inputs) + 1) else None


def _params_code(operator, arguments, lines, packed, names, name):
    """Lines that set `params`, of which `lines` set what is packed."""
    pack = [*lines, 'try: params = from_buffer(pack(%s))' % ', '.join(packed),
            'except StructError as problem: raise TypeError(%r + str(problem)) from None' % (name + ': ')]
    given = [one.name for one in arguments if one.target in [param.name for param in operator.params]]
    if not given or not {one.kind for one in operator.params} <= _REMEMBERED:
        return pack
    key = '(%s,)' % ', '.join(given)
    names.update(known={}, remember=_remember)
    return ['try: params = known[%s]' % key, 'except (KeyError, TypeError): params = None', 'if params is None:',
            *['    ' + line for line in pack], '    remember(known, %s, params)' % key]


def _call_code(operator, outputs):
    """Lines that call the operator with `inputs`."""
    params = 'params' if operator.params else 'NULL'
    if operator.in_place:
        return ['if call(op, inputs, len(inputs), %s, NULL, 0): raise error()' % params]
    return ['out = new(out_type)', 'if call(op, inputs, len(inputs), %s, out, %d): raise error()' % (params, outputs)]


def source(described):
    """The text of the function, and the names that it uses."""
    name, operator, arguments, outputs = described
    names = {'op': operator.op, 'call': lib.kn_op_call, 'pack': operator.pack, 'NULL': NULL, 'new': ffi.new,
             'error': error, 'one_or_each': one_or_each, 'from_buffer': ffi.from_buffer, 'not_tensors': _not_tensors,
             'out_type': ffi.typeof('kn_tensor *[%d]' % outputs), 'StructError': struct.error}
    inputs = [one for one in arguments if one.target in operator.input_names]
    lists = [name for name, one in zip(operator.input_names, operator.inputs) if one.is_list]
    converts = any(one.target == 'dtype' for one in arguments) and 'dtype' not in [one.name for one in operator.params]
    lines = ['if dtype is not None: input = input.to(dtype)'] * converts
    if operator.params:
        lines += _params_code(operator, arguments, *_parameters_code(operator, arguments, names), names, name)
    direct = names['direct'] = _direct(operator, outputs)
    handles = ', '.join(_inputs_code(operator, arguments))
    lines += ['try:', '    handle = direct(%s)' % handles if direct else '    inputs = (%s,)' % handles,
              'except AttributeError as problem:',
              '    raise not_tensors(%r, dict(%s), dict(%s)) or problem from None' % (
                  name, ', '.join('{0}={0}'.format(one.name) for one in inputs if one.target not in lists),
                  ', '.join('{0}={0}'.format(one.name) for one in inputs if one.target in lists))]
    if any(one.target == 'inplace' for one in arguments):
        names['change'] = _changing(name)
        own = [one.name for one in operator.params]
        lines.insert(0, 'if inplace: return change(input, %s)' % ', '.join(
            '{0}={1}'.format(one.target, one.name) for one in arguments if one.target in own))
    lines += ['if not handle: raise error()'] if direct else _call_code(operator, outputs)
    if operator.in_place:
        lines.append('return ' + inputs[0].name)
    elif outputs == 1:  # sums of int32 are int64
        lines += ['result = new_object(tensor_class)', 'result._h = owned(%s, release)' % (
            'handle' if direct else 'out[0]'), 'return result' + ' if dtype is None else result.to(dtype)' * converts]
    else:
        names['result'] = _result_type(tuple(operator.outputs[:outputs]))
        lines.append('return result(%s)' % ', '.join('wrap(out[%d])' % i for i in range(outputs)))
    doubled = dict(_numpy_names(arguments))
    lines[:0] = ['if {0} is not None: {1} = {0}'.format(*pair) for pair in doubled.items()] + [
        'if {0} is None: raise TypeError("{1}() missing 1 required argument: {0!r}")'.format(one.name, name)
        for one in arguments if one.default is REQUIRED and one.name in doubled.values()]
    return 'def %s(%s):\n    %s\n' % (name, _head(arguments), '\n    '.join(lines)), names


# --- functions --------------------------------------------------------------------------------------------------------

_functions = {}


def function(name):
    """koine.NAME; AttributeError if the list has no such operator."""
    made = _functions.get(name)
    if made is None:
        from ._tensor import handles
        described = signature(name)
        text, names_used = source(described)
        for used in ('new_object', 'owned', 'release', 'tensor_class', 'wrap'):
            names_used[used] = getattr(handles, used)
        exec(compile(text, '<koine.%s>' % name, 'exec'), names_used)
        made = names_used[name]
        made.__module__, made.operator = 'koine', described.operator
        made.__signature__ = _without_numpy_names(made, described.arguments)
        made.__doc__ = 'The operator %s of docs/operators.md.' % described.operator.name
        _functions[name] = made
    return made


def _without_numpy_names(function, arguments):
    """The signature as PyTorch's documentation has it."""
    described = inspect.signature(function)
    required = {one.name for one in arguments if one.default is REQUIRED}
    return described.replace(parameters=[
        one.replace(default=one.empty) if name in required else one
        for name, one in described.parameters.items() if name not in ('axis', 'keepdims')])


def call(name, *inputs, outputs=None, **params):
    """Applies an operator of the list as it stands: inputs and parameters by its own names, all of its outputs."""
    operator = Operator(name)
    unknown = set(params) - {one.name for one in operator.params}
    if unknown:
        raise TypeError('%s has no parameter %s; it has: %s' % (
            name, ', '.join(sorted(unknown)), ', '.join(one.name for one in operator.params) or 'none'))
    from ._tensor import wrap
    packed = [number for one in operator.params
              for number in (one.convert(params[one.name]) if one.name in params else one.numbers)]
    buffer = ffi.from_buffer(operator.pack(*packed)) if operator.params else NULL
    handles = [NULL if one is None else one._h for one in inputs]
    if operator.in_place:
        if lib.kn_op_call(operator.op, handles, len(handles), buffer, NULL, 0):
            raise error()
        return inputs[0]
    count = len(operator.outputs) if outputs is None else outputs
    out = ffi.new('kn_tensor *[]', count)
    if lib.kn_op_call(operator.op, handles, len(handles), buffer, out, count):
        raise error()
    return wrap(out[0]) if count == 1 else tuple(wrap(one) for one in out)
