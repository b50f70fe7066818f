#!/usr/bin/env python3
"""What Python programs call besides layers - optimizers, loaders, indices, distributions, derivatives of functions and
batches of them - by koine and by PyTorch on the CPU, with the same code:

    python3 bench/programs.py                  # all, in two minutes
    python3 bench/programs.py optim func/vmap

Times are the shortest of --rounds rounds, the peers in turns; a ratio above 1 means that PyTorch is faster. On a busy
machine ratios are worth nothing. Needs PyTorch and the package koine (sh tests/run.sh --python builds it)."""
import argparse
import math
import os
import sys
import tempfile
import time

import koine
import numpy as np
import torch

ROUND = 0.04  # seconds
REST = 0.05  # before one: PyTorch's threads still wait for work, busily

random = np.random.default_rng(0)


def normal(*shape):
    return random.standard_normal(shape).astype('float32')


MATRIX, ROWS, MASK = normal(512, 512), random.integers(0, 512, 1000), random.random((512, 512)) > 0.7
IMAGES, CLASSES = normal(64, 3, 16, 16), random.integers(0, 10, 64)
SAMPLES, TARGETS = normal(4096, 784), random.integers(0, 10, 4096)

# Name: function of the package t, which prepares and returns what is timed.
programs = {}


def program(name, *arguments, **keywords):
    """Registers a function t, ... -> what is timed."""
    def register(make):
        programs[name] = lambda t: make(t, *arguments, **keywords)
        return make
    return register


# --- optimizers -------------------------------------------------------------------------------------------------------


def parameters(t):
    """12 matrices and 24 vectors with gradients."""
    made = [t.nn.Parameter(t.full(shape, 0.5)) for shape in [(256, 256)] * 12 + [(256,)] * 24]
    for one in made:
        one.grad = t.full(one.shape, 0.01)
    return made


@program('optim/momentum', 'SGD', momentum=0.9, nesterov=True)
@program('optim/adam', 'Adam')
@program('optim/adamw', 'AdamW')
@program('optim/rmsprop', 'RMSprop')
@program('optim/nadam', 'NAdam')
@program('optim/adafactor', 'Adafactor')
def step(t, name, **options):
    return getattr(t.optim, name)(parameters(t), lr=1e-3, **options).step


@program('optim/muon')
def muon(t):
    return t.optim.Muon(parameters(t)[:12], lr=1e-3).step


@program('optim/clip_grad_norm_')
def clip(t):
    made = parameters(t)
    return lambda: t.nn.utils.clip_grad_norm_(made, 1.0)


# --- data and files ---------------------------------------------------------------------------------------------------


@program('data/loader', False)
@program('data/loader_shuffled', True)
def loader(t, shuffle):
    data = t.utils.data
    batches = data.DataLoader(data.TensorDataset(t.tensor(SAMPLES), t.tensor(TARGETS)), 64, shuffle=shuffle)

    def run():
        for _ in batches:
            pass

    return run


@program('data/save', False)
@program('data/load', True)
def files(t, loads):
    state = {str(i): t.tensor(MATRIX) for i in range(32)}
    path = os.path.join(folder, t.__name__)
    t.save(state, path)
    return (lambda: t.load(path)) if loads else lambda: t.save(state, path)


# --- functions of tensors ---------------------------------------------------------------------------------------------


def of_tensors(name, function):
    def make(t):
        x, rows, mask = t.tensor(MATRIX), t.tensor(ROWS), t.tensor(MASK)
        return lambda: function(t, x, rows, mask)
    programs[name] = make


for key, get in {'x[rows]': lambda x, rows, mask: x[rows], 'x[:, rows]': lambda x, rows, mask: x[:, rows],
                 'x[mask]': lambda x, rows, mask: x[mask], 'x[3]': lambda x, rows, mask: x[3],
                 'x[3, 4]': lambda x, rows, mask: x[3, 4], 'x[::2, 1:]': lambda x, rows, mask: x[::2, 1:],
                 'x[mask] = 0': lambda x, rows, mask: x.__setitem__(mask, 0.0),
                 'x[rows] = 0': lambda x, rows, mask: x.__setitem__(rows, 0.0)}.items():
    of_tensors('index/' + key, lambda t, x, rows, mask, get=get: get(x, rows, mask))
for key, function in {
        'einsum': lambda t, x: t.einsum('bn,anm,bm->ba', x[:64, :32], x[:160].reshape(80, 32, 32), x[:64, 32:64]),
        'cov': lambda t, x: t.cov(x[:64]), 'quantile': lambda t, x: x.quantile(0.3, 1),
        'median': lambda t, x: x.median(), 'histc': lambda t, x: t.histc(x),
        'bucketize': lambda t, x: t.bucketize(x, x[0].sort()[0]),
        'cdist': lambda t, x: t.cdist(x[:128], x[128:256]), 'pdist': lambda t, x: t.nn.functional.pdist(x[:128]),
        'trapezoid': lambda t, x: t.trapezoid(x), 'randn': lambda t, x: t.randn(512, 512),
        'randperm': lambda t, x: t.randperm(4096)}.items():
    of_tensors('function/' + key, lambda t, x, rows, mask, function=function: function(t, x))


@program('distributions/normal', 'Normal', 0.0, 1.0)
@program('distributions/gamma', 'Gamma', 2.0, 1.0)
@program('distributions/laplace', 'Laplace', 0.0, 1.0)
@program('distributions/poisson', 'Poisson', 4.0)
def sample_and_score(t, name, *arguments):
    made = getattr(t.distributions, name)(*[t.full((256, 256), value) for value in arguments])
    return lambda: made.log_prob(made.sample())


# --- derivatives and batches of functions -----------------------------------------------------------------------------


def network(t):
    nn = t.nn
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10))


@program('func/gradients_of_samples')
def gradients_of_samples(t):
    module, call = network(t), t.func.functional_call
    state = {name: t.full(one.shape, 0.01) for name, one in module.named_parameters()}

    def loss(state, x, y):
        return t.nn.functional.cross_entropy(call(module, state, (x.unsqueeze(0),)), y.unsqueeze(0))

    images, classes = t.tensor(IMAGES), t.tensor(CLASSES)
    gradients = t.func.vmap(t.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: gradients(state, images, classes)


@program('func/ensemble')
def ensemble(t):
    models = [t.nn.Sequential(t.nn.Linear(64, 128), t.nn.ReLU(), t.nn.Linear(128, 10)) for _ in range(16)]
    state, buffers = t.func.stack_module_state(models)
    x = t.tensor(MATRIX[:32, :64])
    every = t.func.vmap(lambda s, b: t.func.functional_call(models[0], (s, b), (x,)))
    return lambda: every(state, buffers)


@program('func/vmap_dot')
def dots(t):
    x, y = t.tensor(MATRIX[:256]), t.tensor(MATRIX[256:])
    return lambda: t.func.vmap(t.dot)(x, y)


@program('func/jacrev', lambda t, v, w: t.func.jacrev(lambda u: (w @ u).tanh())(v))
@program('func/hessian', lambda t, v, w: t.func.hessian(lambda u: (w @ u).tanh().sum())(v))
def derivatives(t, function):
    w, v = t.tensor(0.1 * MATRIX[:32, :32]), t.tensor(MATRIX[0, :32])
    return lambda: function(t, v, w)


# --- timing -----------------------------------------------------------------------------------------------------------


def seconds(run, finish):
    time.sleep(REST)
    begin = time.perf_counter()
    run()
    finish()
    count = max(1, int(ROUND / max(time.perf_counter() - begin, 1e-7)))
    begin = time.perf_counter()
    for _ in range(count):
        run()
    finish()
    return (time.perf_counter() - begin) / count


def compare(make, rounds):
    own, other, best = make(koine), make(torch), [math.inf, math.inf]
    for run in (own, other):
        run()
    for _ in range(rounds):
        best[0] = min(best[0], seconds(own, koine.accelerator.synchronize))
        best[1] = min(best[1], seconds(other, lambda: None))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', help='some of the programs: the beginnings of their names')
    parser.add_argument('--rounds', type=int, default=5)
    args = parser.parse_args()
    chosen = [name for name in programs if not args.names or name.startswith(tuple(args.names))]
    if not chosen:
        sys.exit('programs.py: no program begins with %s; there are %s' % (' or '.join(args.names),
                                                                           ', '.join(programs)))
    logarithms = {}
    print('%-28s %9s %9s %6s' % ('program', 'koine ms', 'torch ms', 'ratio'))
    for name in chosen:
        own, other = compare(programs[name], args.rounds)
        logarithms.setdefault(name.split('/')[0], []).append(math.log(own / other))
        print('%-28s %9.4f %9.4f %6.2f' % (name, own * 1e3, other * 1e3, own / other), flush=True)
    for family, of_family in logarithms.items():
        print('geometric mean of %s: %.2f' % (family, math.exp(sum(of_family) / len(of_family))))


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as folder:
        main()
