#!/usr/bin/env python3
"""Elementwise operators, reductions, copies and products in every dtype and layout, against PyTorch on the CPU: finds
what the benchmarks of usual sizes, which are float32 and contiguous, do not see.

    python3 bench/sweep.py                       # all, in twenty minutes; the slowest by ratio come last
    python3 bench/sweep.py --dtype float64 --layout transposed --only add,exp --all
    python3 bench/sweep.py --rows 30000 --columns 8

Times are the shortest of three rounds, the peers one after the other; a ratio above 1 means that PyTorch is faster. On
a busy machine ratios are worth nothing. Needs PyTorch and the package koine (sh tests/run.sh --python builds it)."""
import argparse
import collections
import math
import sys
import time

import koine
import numpy as np
import torch

DTYPES = ('float32', 'float64', 'float16', 'bfloat16', 'int64', 'int32', 'uint8', 'bool')
LAYOUTS = ('contiguous', 'transposed', 'stepped', 'broadcast')
ROUND = 0.06  # seconds


def operations():
    """Name: a function of the module (koine or torch), its functional module and the operands."""
    table = {}
    for name in ('neg abs sign square sqrt rsqrt reciprocal exp log sin tanh sigmoid relu floor round clone tril '
                 'nonzero unique').split():
        table[name] = lambda m, F, o, name=name: getattr(m, name)(o.x)
    for name in 'gelu silu softplus elu leaky_relu hardswish'.split():
        table[name] = lambda m, F, o, name=name: getattr(F, name)(o.x)
    for name in ('add sub mul div maximum pow eq lt atan2 fmod remainder floor_divide bitwise_and bitwise_xor').split():
        table[name] = lambda m, F, o, name=name: getattr(m, name)(o.x, o.y)
    for name in 'sum mean prod std argmax cumsum logsumexp softmax sort all any median amax'.split():
        table[name] = lambda m, F, o, name=name: getattr(m, name)(o.x, 1)
        table[name + '/0'] = lambda m, F, o, name=name: getattr(m, name)(o.x, 0)
    table.update({
        'norm': lambda m, F, o: m.linalg.vector_norm(o.x),
        'topk': lambda m, F, o: m.topk(o.x, min(10, o.x.shape[1]), 1),
        'where': lambda m, F, o: m.where(o.mask, o.x, o.y),
        'masked_fill': lambda m, F, o: o.x.masked_fill(o.mask, 0),
        'masked_select': lambda m, F, o: m.masked_select(o.x, o.mask),
        'cat': lambda m, F, o: m.cat([o.x, o.y], 1),
        'stack': lambda m, F, o: m.stack([o.x, o.y], 0),
        'transpose': lambda m, F, o: o.x.t().contiguous(),
        'flip': lambda m, F, o: m.flip(o.x, (0, 1)),
        'roll': lambda m, F, o: m.roll(o.x, 3, 1),
        'repeat': lambda m, F, o: o.x.repeat(2, 2),
        'pad': lambda m, F, o: F.pad(o.x, (1, 1, 1, 1)),
        'index_select': lambda m, F, o: m.index_select(o.x, 0, o.rows),
        'index_add': lambda m, F, o: o.x.index_add(0, o.rows, o.y),
        'gather': lambda m, F, o: m.gather(o.x, 1, o.places),
        'scatter_add': lambda m, F, o: o.x.scatter_add(1, o.places, o.y),
        'add/one_transposed': lambda m, F, o: m.add(o.x, o.z.t()),
        'mm': lambda m, F, o: m.mm(o.x, o.z),
        'mv': lambda m, F, o: m.mv(o.x, o.y[0]),
    })
    for dtype in DTYPES:
        table['to/' + dtype] = lambda m, F, o, dtype=dtype: o.x.to(getattr(m, dtype))
    return table


def matrix(m, dtype, layout, rows, columns, seed):
    random = np.random.default_rng(seed)
    shape = {'transposed': (columns, rows), 'stepped': (rows, 2 * columns), 'broadcast': (rows, 1)}.get(
        layout, (rows, columns))
    if dtype in ('int64', 'int32', 'uint8'):
        values = random.integers(1, 100, shape)
    elif dtype == 'bool':
        values = random.random(shape) > 0.5
    else:
        values = random.uniform(0.05, 0.95, shape).astype('float32')
    x = m.tensor(values).to(getattr(m, dtype))
    views = {'transposed': lambda: x.t(), 'stepped': lambda: x[:, ::2], 'broadcast': lambda: x.expand(rows, columns)}
    return views.get(layout, lambda: x)()


class Operands:
    def __init__(self, m, dtype, layout, rows, columns):
        random = np.random.default_rng(0)
        self.x, self.y = (matrix(m, dtype, layout, rows, columns, seed) for seed in (1, 2))
        self.z = matrix(m, dtype, layout, columns, rows, 3)
        self.mask = m.tensor(random.random((rows, columns)) > 0.5)
        self.rows = m.tensor(random.integers(0, rows, rows))
        self.places = m.tensor(random.integers(0, columns, (rows, columns)))


def shortest(run, finish):
    run()
    finish()
    begin = time.perf_counter()
    run()
    finish()
    count = max(1, min(1000, int(ROUND / max(time.perf_counter() - begin, 1e-6))))
    best = math.inf
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(count):
            run()
        finish()
        best = min(best, (time.perf_counter() - begin) / count)
    return best


def compare(name, call, dtype, layout, args):
    """Seconds of koine and of PyTorch; None where PyTorch has no such operation, a text where koine has none."""
    mine, theirs = (Operands(m, dtype, layout, args.rows, args.columns) for m in (koine, torch))
    try:
        call(torch, torch.nn.functional, theirs)
    except (RuntimeError, TypeError, NotImplementedError, IndexError):
        return None
    try:
        call(koine, koine.nn.functional, mine)
        koine.accelerator.synchronize()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return str(error)
    return (shortest(lambda: call(koine, koine.nn.functional, mine), koine.accelerator.synchronize),
            shortest(lambda: call(torch, torch.nn.functional, theirs), lambda: None))


def listed(text, known, what):
    names = text.split(',') if text else list(known)
    for name in names:
        if name not in known:
            sys.exit(f'sweep.py: no {what} {name}; there are {", ".join(known)}')
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--dtype', help='some of ' + ', '.join(DTYPES))
    parser.add_argument('--layout', help='some of ' + ', '.join(LAYOUTS))
    parser.add_argument('--only', help='some of the operations')
    parser.add_argument('--rows', type=int, default=1024)
    parser.add_argument('--columns', type=int, default=1024)
    parser.add_argument('--above', type=float, default=1.1, help='the ratio from which on an operation is listed')
    parser.add_argument('--all', action='store_true', help='list all')
    args = parser.parse_args()
    table = operations()

    found, missing, logarithms = [], [], collections.defaultdict(list)
    for dtype in listed(args.dtype, DTYPES, 'dtype'):
        for layout in listed(args.layout, LAYOUTS, 'layout'):
            for name in listed(args.only, table, 'operation'):
                result = compare(name, table[name], dtype, layout, args)
                if isinstance(result, str):
                    missing.append(f'{name} of {layout} {dtype}: {result}')
                elif result:
                    ratio = result[0] / result[1]
                    logarithms[dtype, layout].append(math.log(ratio))
                    found.append((ratio, dtype, layout, name, *result))

    for line in missing:
        print('only PyTorch has', line)
    for (dtype, layout), values in logarithms.items():
        mean, slower = math.exp(sum(values) / len(values)), sum(value > 0 for value in values)
        print(f'{dtype:9} {layout:11} {len(values):3} operations, geometric mean {mean:.2f}, {slower} above 1')
    print(f'{"ratio":>6}  {"dtype":9} {"layout":11} {"operation":20} {"koine ms":>9} {"torch ms":>9}')
    for ratio, dtype, layout, name, mine, theirs in sorted(found):
        if args.all or ratio > args.above:
            print(f'{ratio:6.2f}  {dtype:9} {layout:11} {name:20} {mine * 1e3:9.4f} {theirs * 1e3:9.4f}')


if __name__ == '__main__':
    main()
