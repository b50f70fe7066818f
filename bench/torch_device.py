#!/usr/bin/env python3
"""Training steps of PyTorch programs on the device koine and on PyTorch's CPU, and the cost of calling an operator.

    python3 bench/torch_device.py                    # all; --only cnn,resnet18,gpt,calls
    python3 bench/torch_device.py --steps 10 --repetitions 5 --compile

With --compile also programs compiled: by torch.compile's backend koine, and by its default one for the CPU.
Times are the shortest of the repetitions, per step, the devices in turn. Needs PyTorch and torch_koine."""
import argparse
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

if not hasattr(torch, 'koine'):
    import torch_koine  # noqa: F401


def cnn():
    net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.MaxPool2d(2), nn.Dropout2d(0.1),
                        nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return net, torch.randn(128, 1, 28, 28), torch.randint(0, 10, (128,)), lambda p: torch.optim.Adam(p, 0.01)


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after),
                                  nn.ReLU(True), nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.short = nn.Identity() if stride == 1 else nn.Sequential(
            nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    for before, after in ((64, 64), (64, 128), (128, 256), (256, 512)):
        layers += [Block(before, after, 1 if before == after else 2), Block(after, after, 1)]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    return net, torch.randn(8, 3, 96, 96), torch.randint(0, 10, (8,)), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norms[0](x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
        return x + self.mlp(self.norms[1](x))


class Gpt(nn.Module):
    def __init__(self, words=1024, width=256, length=128, layers=4, heads=8):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.layers(x))).flatten(0, 1)


def gpt():
    tokens = torch.randint(0, 1024, (8, 129))
    return Gpt(), tokens[:, :-1].contiguous(), tokens[:, 1:].flatten(), lambda p: torch.optim.AdamW(p, 1e-3)


PROGRAMS = {'cnn': cnn, 'resnet18': resnet18, 'gpt': gpt}


class Run:
    def __init__(self, make, device, backend=None):
        torch.manual_seed(0)
        net, x, y, optimizer = make()
        self.call = torch.compile(net, backend=backend) if backend else net
        self.net, self.x, self.y, self.device = net.to(device), x.to(device), y.to(device), device
        self.rule, self.best = optimizer(self.net.parameters()), float('inf')

    def steps(self, count):
        began = time.perf_counter()
        for _ in range(count):
            self.rule.zero_grad()
            loss = F.cross_entropy(self.call(self.x), self.y)
            loss.backward()
            self.rule.step()
        loss.item()
        self.best = min(self.best, (time.perf_counter() - began) / count)


def program(name, steps, repetitions, compile):
    kinds = [('koine', None), ('cpu', None)]
    if compile:
        kinds += [('koine', 'koine'), ('cpu', 'inductor')]
    runs = [Run(PROGRAMS[name], *kind) for kind in kinds]
    for run in runs:
        run.steps(3)
        run.best = float('inf')
    for _ in range(repetitions):
        for run in runs:
            run.steps(steps)
    times = [1e3 * run.best for run in runs]
    print(f'{name:10s} ' + '   '.join(f'{device}{" compiled" if backend else ""} {time:8.2f} ms'
                                      for (device, backend), time in zip(kinds, times)) +
          f'   ratio {times[0] / times[1]:.2f}' + (f' {times[2] / times[3]:.2f}' if compile else ''), flush=True)


def calls(repetitions):
    """Python to enqueued, 16 elements. The median is that of a CPU device at work on other cores."""
    a, b = torch.randn(16, device='koine'), torch.randn(16, device='koine')
    each = {'a + b': lambda: a + b, 'a * 2.0': lambda: a * 2.0, 'relu': lambda: F.relu(a), 'exp': lambda: torch.exp(a),
            'softplus': lambda: F.softplus(a), 'sum': lambda: a.sum(), 'add_': lambda: a.add_(b),
            'empty': lambda: torch.empty(16, device='koine')}
    times = {name: [] for name in each}
    with torch.no_grad():
        for _ in range(40 * repetitions):
            for name, function in each.items():
                torch.koine.synchronize()
                began = time.perf_counter()
                for _ in range(300):
                    function()
                times[name].append(1e6 * (time.perf_counter() - began) / 300)
    for name, its in times.items():
        print(f'{name:10s} shortest {min(its):6.2f} us, median {statistics.median(its):6.2f} us', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', default='calls,' + ','.join(PROGRAMS))
    parser.add_argument('--steps', type=int, default=5)
    parser.add_argument('--repetitions', type=int, default=5)
    parser.add_argument('--compile', action='store_true')
    options = parser.parse_args()
    for name in options.only.split(','):
        if name == 'calls':
            calls(options.repetitions)
        else:
            program(name, options.steps, options.repetitions, options.compile)


if __name__ == '__main__':
    main()
