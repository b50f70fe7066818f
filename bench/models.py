#!/usr/bin/env python3
"""Training steps of common architectures, the same code for koine and for PyTorch on the CPU:

    python3 bench/models.py                  # all, in three minutes
    python3 bench/models.py unet lstm
    python3 bench/models.py --autocast       # forward passes and losses under autocast in bfloat16

Both begin with the same weights and see the same batch; the losses of the first and of the last step are compared, so
that no time is that of something else. Times are the shortest of --rounds rounds, the peers in turns. On a busy machine
ratios are worth nothing. Needs PyTorch and the package koine (sh tests/run.sh --python builds it)."""
import argparse
import contextlib
import math
import sys
import time

import koine
import torch
from architectures import architectures

STEPS = 5  # a round
REST = 0.1  # seconds before one: the other's threads still wait for work, busily


class Training:
    def __init__(self, t, architecture, autocast, state=None):
        make, self.loss, inputs, target = architecture
        self.inputs, self.target = [t.tensor(one) for one in inputs], t.tensor(target)
        self.module = make()
        if state is not None:
            self.module.load_state_dict({name: t.tensor(values) for name, values in state.items()})
        self.optimizer = t.optim.Adam(self.module.parameters(), lr=1e-3)
        self.context = (lambda: t.autocast('cpu', dtype=t.bfloat16)) if autocast else contextlib.nullcontext

    def step(self):
        self.optimizer.zero_grad()
        with self.context():
            loss = self.loss(self.module, self.inputs, self.target)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def seconds(training, finish):
    time.sleep(REST)
    begin = time.perf_counter()
    for _ in range(STEPS):
        training.step()
    finish()
    return (time.perf_counter() - begin) / STEPS


def compare(name, mine, theirs, args):
    """(seconds of koine, of PyTorch, the losses of the first and the last step of each)."""
    torch.manual_seed(0)
    other = Training(torch, theirs, args.autocast)
    own = Training(koine, mine, args.autocast, {key: value.numpy() for key, value in other.module.state_dict().items()})
    losses = [float(own.step()), float(other.step())]
    best = [math.inf, math.inf]
    for _ in range(args.rounds):
        best[0] = min(best[0], seconds(own, koine.accelerator.synchronize))
        best[1] = min(best[1], seconds(other, lambda: None))
    losses += [float(own.step()), float(other.step())]
    if not math.isclose(losses[0], losses[1], rel_tol=2e-2 if args.autocast else 1e-3):
        sys.exit('models.py: %s: the first losses are %g of koine and %g of PyTorch' % (name, *losses[:2]))
    return best, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', help='some of the architectures')
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--autocast', action='store_true', help='in bfloat16')
    args = parser.parse_args()
    mine, theirs = architectures(koine), architectures(torch)
    for name in args.names:
        if name not in mine:
            sys.exit('models.py: no architecture %s; there are %s' % (name, ', '.join(mine)))

    logarithms = []
    print('%-20s %9s %9s %6s  losses: first, last' % ('step of', 'koine ms', 'torch ms', 'ratio'))
    for name in args.names or mine:
        (own, other), losses = compare(name, mine[name], theirs[name], args)
        logarithms.append(math.log(own / other))
        print('%-20s %9.2f %9.2f %6.2f  %.4g and %.4g, %.3g and %.3g' % (name, own * 1e3, other * 1e3, own / other,
                                                                         *losses), flush=True)
    print('geometric mean %.2f' % math.exp(sum(logarithms) / len(logarithms)))


if __name__ == '__main__':
    main()
