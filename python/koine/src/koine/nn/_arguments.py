"""What layers were made with, as attributes: net.fc.in_features, net.conv1.stride."""
import ast
import functools
import re

from .._bind import parse

_LINE = re.compile(r'\w+\((.*)\)')


def printed_arguments(layer):
    """Of a layer, as the library writes them; of one with parts ''."""
    printed = _LINE.match(layer.summary())
    return printed.group(1) if printed else ''


def arguments_of(layer):
    """{name: value}, but for where and in which dtype. Of a layer that the library made, those that it prints."""
    line = getattr(type(layer).__init__, 'line', None)
    if line is None:
        return {}
    signature = parse(line)
    made_with = layer.__dict__.get('_made_with')
    if made_with is not None:
        given = signature.bind(*made_with[1], **made_with[2])
        given.apply_defaults()
        return {name: value for name, value in given.arguments.items() if name not in ('device', 'dtype')}
    call = ast.parse('f(%s)' % printed_arguments(layer)).body[0].value
    try:
        found = dict(zip(signature.parameters, map(ast.literal_eval, call.args)))
        found.update((one.arg, ast.literal_eval(one.value)) for one in call.keywords)
    except (AttributeError, ValueError):  # it prints something else
        return {}
    return found


@functools.lru_cache(maxsize=None)
def _with_effect(kind):
    line = getattr(kind.__init__, 'line', None)
    return frozenset(name for name, one in parse(line).parameters.items() if one.annotation != '_') if line else ()


def check_not_argument(layer, name):
    """The library has its own copy of an argument, which a new value of the attribute would not change."""
    if name in _with_effect(type(layer)) and name not in layer._places and layer._kind_of(name) is None:
        raise AttributeError('%s: %s is fixed when the layer is made: make another layer with the new value' % (
            type(layer).__name__, name))
