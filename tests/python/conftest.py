"""For all tests of the Python package."""
import os
import re
import sys

import numpy
import pytest

import koine

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


@pytest.fixture(autouse=True)
def seeded():
    koine.manual_seed(0)
    numpy.random.seed(0)
    yield
    assert koine.is_grad_enabled()


def samples():
    """{operator: (words of the inputs or None, parameters)} of src/cli/op_samples.c, which explains the words."""
    found = {}
    with open(os.path.join(ROOT, 'src', 'cli', 'op_samples.c'), encoding='utf-8') as file:
        for name, inputs, params in re.findall(r'\{"(\w+)",\s*("[^"]*"|NULL),\s*("[^"]*"|NULL)\}', file.read()):
            words = None if inputs == 'NULL' else inputs.strip('"').split()
            pairs = [] if params == 'NULL' else [pair.split('=') for pair in params.strip('"').split()]
            found[name] = words, dict(pairs)
    return found


def sample_input(word, dtype='float32'):
    """The tensor of a word; None for one that is left out."""
    if word == '-':
        return None
    kind = re.match(r'(\.|[\d,]+)(.*)', word)
    shape = () if kind.group(1) == '.' else tuple(int(size) for size in kind.group(1).split(','))
    rest = kind.group(2)
    if rest == ':b':
        return koine.randint(0, 2, shape).to(dtype='bool')
    if rest.startswith(':'):
        return koine.randint(0, int(rest[1:]), shape)
    values = koine.rand(shape, dtype=dtype)
    return values * 0.95 if rest == '<' else values + (1.25 if rest == '>' else 0.25)


def sample(name, dtype='float32'):
    """(inputs, parameters) with which the operator computes something."""
    operator = koine._ops.Operator(name)
    words, params = samples().get(name, (None, {}))
    if words is None:
        words = ['2,3'] * sum(1 for one in operator.inputs if not one.is_optional)
    values = {one.name: read_parameter(one, params[one.name]) for one in operator.params if one.name in params}
    return [sample_input(word, dtype) for word in words], values


def read_parameter(described, text):
    if isinstance(described.default, str):
        return text
    if isinstance(described.default, tuple):
        return [int(one) for one in text.split(',')]
    if isinstance(described.default, bool):
        return text not in ('0', 'false')
    if isinstance(described.default, koine.dtype):
        return text
    is_real = isinstance(described.default, float) and described.kind != koine._c.lib.KN_PARAM_SCALAR
    return float(text) if '.' in text or is_real else int(text)
