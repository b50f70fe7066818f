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


# Layers of which PyTorch shows sizes as tuples, one number for each dimension, or for each end of one.
_BY_DIMENSION = re.compile(r'(?:Conv|ConvTranspose|MaxUnpool|FractionalMaxPool)(\d)d|AvgPool(1)d')
_BY_END = re.compile(r'(?:Constant|Zero|Reflection|Replication|Circular)Pad(\d)d')
_SIZES = 'kernel_size', 'stride', 'padding', 'output_padding', 'dilation', 'output_size', 'output_ratio'


def attributes_of(layer):
    """arguments_of(layer) as PyTorch shows them: a number that stands for several as a tuple, and for None what it
    stands for."""
    found = arguments_of(layer)
    if found.get('stride', 0) is None and 'norm_type' not in found:  # LPPool keeps it
        found['stride'] = found['kernel_size']
    for name in ('kdim', 'vdim'):
        if found.get(name, 0) is None:
            found[name] = found['embed_dim']
    if (found.get('padding_idx') or 0) < 0:
        found['padding_idx'] += found['num_embeddings']
    if 'normalized_shape' in found:
        found['normalized_shape'] = _tuple(found['normalized_shape'], 1)
    kinds = [one.__name__ for one in type(layer).__mro__]
    for pattern, factor in ((_BY_DIMENSION, 1), (_BY_END, 2)):
        match = next(filter(None, map(pattern.fullmatch, kinds)), None)
        if match:
            count = factor * int(match[match.lastindex])
            found.update((name, _tuple(found[name], count)) for name in _SIZES if name in found)
    return found


def _tuple(value, count):
    """Of a number, or of several; None and names such as 'same' are what they are."""
    if value is None or isinstance(value, str):
        return value
    return tuple(value) if hasattr(value, '__iter__') else (value,) * count


@functools.lru_cache(maxsize=None)
def _with_effect(kind):
    line = getattr(kind.__init__, 'line', None)
    return frozenset(name for name, one in parse(line).parameters.items() if one.annotation != '_') if line else ()


def check_not_argument(layer, name):
    """The library has its own copy of an argument, which a new value of the attribute would not change."""
    if name in _with_effect(type(layer)) and name not in layer._places and layer._kind_of(name) is None:
        raise AttributeError('%s: %s is fixed when the layer is made: make another layer with the new value' % (
            type(layer).__name__, name))
