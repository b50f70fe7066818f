"""Golden dtypes: promotion, conversions between all pairs, and arithmetic in bfloat16, int16 and int8."""
import os

import numpy as np
import torch

from golden_file import save_safetensors

DTYPES = ('float64', 'float32', 'float16', 'bfloat16', 'int64', 'int32', 'int16', 'int8', 'uint8', 'bool')


def dtype(name):
    return getattr(torch, name)


def name(dtype):
    return str(dtype).replace('torch.', '')


def promotion(folder):
    """Tables of dtype names: row by row, in the order of DTYPES."""
    dtypes = [dtype(d) for d in DTYPES]
    some = {d: torch.ones(2, dtype=d) for d in dtypes}
    one = {d: torch.ones((), dtype=d) for d in dtypes}
    pairs = [(a, b) for a in dtypes for b in dtypes]
    tables = {
        'promote_types': [torch.promote_types(a, b) for a, b in pairs],
        'result_type_zero_dim': [torch.result_type(some[a], one[b]) for a, b in pairs],
        'result_type_zero_dims': [torch.result_type(one[a], one[b]) for a, b in pairs],
        'result_type_whole': [torch.result_type(some[a], 2) for a in dtypes],
        'result_type_fraction': [torch.result_type(some[a], 2.5) for a in dtypes],
        'result_type_zero_dim_whole': [torch.result_type(one[a], 2) for a in dtypes],
        'result_type_zero_dim_fraction': [torch.result_type(one[a], 2.5) for a in dtypes],
        'div': [(some[a] / some[b]).dtype for a, b in pairs],
        'eq': [(some[a] == some[b]).dtype for a, b in pairs],
        'sum': [some[a].sum().dtype for a in dtypes],
        'logsumexp': [some[a].logsumexp(0).dtype for a in dtypes],
    }
    for a, b in pairs:
        assert (some[a] * one[b]).dtype == torch.result_type(some[a], one[b])
    metadata = {'torch': torch.__version__, 'dtypes': ' '.join(DTYPES)}
    metadata.update((key, ' '.join(name(d) for d in table)) for key, table in tables.items())
    save_safetensors(os.path.join(folder, 'promotion.safetensors'), {}, metadata)


NAN, INF = float('nan'), float('inf')
# Ties, and values beside them, of float32, float16 and bfloat16; the largest that each does not round to infinity.
FLOATS = [0.0, -0.0, 0.5, 1.5, -1.5, 2.5, 3.999, -0.999, NAN, INF, -INF,
          1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 2**-8, 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-24,
          1 + 3 * 2**-24, 2049.0, 65504.0, 65519.0, 65520.0, 3.3895313892515355e38, 3.3961775292304957e38, 3.396e38,
          3.4028234663852886e38, 3.5e38, -1e300, 1e-8, 2**-24 + 0.0, 2**-25 + 0.0, 2**-126 + 0.0, 127.0, 128.0,
          -129.0, 255.5, 256.0, 300.7, 32768.0, -40000.0, 2**31 + 0.0, -2**31 - 1024.0, 2**40 + 3.0, 2**53 - 1.0,
          2**63 - 1024.0, 2**63 + 0.0, -2**63 + 0.0, 1e20]
WHOLES = [0, 1, 2, -1, 127, 128, -128, -129, 200, 255, 256, 257, 259, 300, 32767, 32768, -32769, 65519, 65520,
          65535, 16777217, 16777219, 2**31 - 1, 2**31, -2**31 - 1, 2**53 + 1, 2**62 + 2**38 + 1, 2**63 - 1, -2**63]


def wrapped(value, to):
    """What Koine says of whole dtypes: towards zero, int64's bounds beyond them, NaN as 0; then it wraps around."""
    whole = 0 if value != value else max(-2**63, min(2**63 - 1, value if abs(value) == INF else int(value)))
    bits = torch.iinfo(to).bits
    whole %= 2**bits
    return whole - 2**bits if to.is_signed and whole >= 2**(bits - 1) else whole


def converted(values, to):
    made = values.to(to)
    if not values.is_floating_point() or to.is_floating_point or to == torch.bool:
        return made
    bounds = torch.iinfo(to)
    said = torch.tensor([wrapped(x, to) for x in values.tolist()], dtype=to)
    for x, ours, theirs in zip(values.tolist(), said.tolist(), made.tolist()):
        assert not bounds.min <= x < bounds.max or ours == theirs, (x, to, ours, theirs)  # beyond that C says nothing
    return said


def held(values, to):
    """Those that the dtype holds, rounded to it where it is floating."""
    if to.is_floating_point or to == torch.bool:
        return torch.tensor(values, dtype=torch.float64).to(to)
    bounds = torch.iinfo(to)
    return torch.tensor([x for x in values if bounds.min <= x <= bounds.max], dtype=to)


def conversions(folder):
    tensors = {}
    for source in DTYPES:
        values = held(FLOATS if dtype(source).is_floating_point else WHOLES, dtype(source))
        tensors[source] = values
        for target in DTYPES:
            if target != source:
                tensors['%s_to_%s' % (source, target)] = converted(values, dtype(target))
    save_safetensors(os.path.join(folder, 'conversions.safetensors'), tensors, {'torch': torch.__version__})


BINARY = {'add': torch.add, 'sub': torch.sub, 'mul': torch.mul, 'div': torch.div, 'maximum': torch.maximum}
UNARY = {'exp': torch.exp, 'log': lambda x: torch.log(torch.abs(x)), 'sqrt': lambda x: torch.sqrt(torch.abs(x)),
         'sigmoid': torch.sigmoid, 'tanh': torch.tanh, 'relu': torch.relu, 'neg': torch.neg,
         'add_scalar': lambda x: x + 0.1, 'mul_scalar': lambda x: x * 0.1, 'sum': torch.sum, 'mean': torch.mean,
         'cumsum': lambda x: torch.cumsum(x, 0), 'softmax': lambda x: torch.softmax(x, 0)}
WHOLE = {'add': torch.add, 'sub': torch.sub, 'mul': torch.mul, 'div': torch.div, 'maximum': torch.maximum,
         'lt': torch.lt}
WHOLE_UNARY = {'neg': torch.neg, 'abs': torch.abs, 'sum': torch.sum, 'prod': torch.prod, 'max': torch.max,
               'argmax': torch.argmax, 'cumsum': lambda x: torch.cumsum(x, 0),
               'exp': torch.exp, 'mul_scalar': lambda x: x * 3}


def arithmetic(folder):
    """NAME of a and b, with gradients NAME/a and NAME/b of the result's sum; mul_with_DTYPE: b is of another one."""
    random = np.random.RandomState(17)
    tensors = {}

    def bfloat(values):
        return torch.from_numpy(values).to(torch.bfloat16)

    a, b = bfloat(random.uniform(-4, 4, 61)), bfloat(random.uniform(0.25, 4, 61))
    tensors.update({'a': a, 'b': b})
    for key, function in {**BINARY, **UNARY}.items():
        operands = [a.clone().requires_grad_()] + ([b.clone().requires_grad_()] if key in BINARY else [])
        result = function(*operands)
        tensors[key] = result.detach()
        result.sum().backward()
        for operand, letter in zip(operands, '' if key == 'softmax' else 'ab'):  # its sum is 1
            tensors['%s/%s' % (key, letter)] = operand.grad
    for other in ('float32', 'float16', 'int64', 'int8', 'bool'):
        tensors['b_' + other] = (b * 100.3).to(dtype(other))
        tensors['mul_with_' + other] = a * tensors['b_' + other]
    for other in ('int16', 'int8'):
        bounds = torch.iinfo(dtype(other))
        x, y = (torch.from_numpy(random.randint(bounds.min, bounds.max + 1, 37)).to(dtype(other)) for _ in range(2))
        x[:3] = torch.tensor([bounds.min, bounds.max, bounds.min])
        y[:3] = torch.tensor([bounds.min, 1, -1])
        y[y == 0] = 3
        tensors.update({other + '_x': x, other + '_y': y})
        for key, function in WHOLE.items():
            tensors['%s_%s' % (other, key)] = function(x, y)
        for key, function in WHOLE_UNARY.items():
            tensors['%s_%s' % (other, key)] = function(x)
    save_safetensors(os.path.join(folder, 'arithmetic.safetensors'), tensors, {'torch': torch.__version__})


def make(folder):
    promotion(folder)
    conversions(folder)
    arithmetic(folder)
