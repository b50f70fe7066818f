#!/usr/bin/env python3
"""Training steps of common architectures, the same code for koine and for PyTorch on the CPU:

    python3 bench/models.py                  # all, in two minutes
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
import numpy as np
import torch

STEPS = 5  # a round
REST = 0.1  # seconds before one: the other's threads still wait for work, busily


def architectures(t):
    """Name: (module, loss of (module, inputs, target), inputs, target), with `t` either package."""
    nn, F = t.nn, t.nn.functional
    random = np.random.default_rng(0)

    def normal(*shape):
        return random.standard_normal(shape).astype('float32')

    def normalized(layer, channels, *more):
        return [layer, nn.BatchNorm2d(channels), *more]

    class UNet(nn.Module):
        def __init__(self, width=16):
            super().__init__()

            def double(inputs, outputs):
                return nn.Sequential(
                    *normalized(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), outputs, nn.ReLU(inplace=True)),
                    *normalized(nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), outputs, nn.ReLU(inplace=True)))

            self.down = nn.ModuleList([double(3, width), double(width, 2 * width), double(2 * width, 4 * width)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
                                     nn.ConvTranspose2d(2 * width, width, 2, 2)])
            self.join = nn.ModuleList([double(4 * width, 2 * width), double(2 * width, width)])
            self.classes = nn.Conv2d(width, 2, 1)

        def forward(self, x):
            seen = [self.down[0](x)]
            for block in self.down[1:]:
                seen.append(block(F.max_pool2d(seen[-1], 2)))
            x = seen.pop()
            for up, join in zip(self.up, self.join):
                x = join(t.cat([up(x), seen.pop()], 1))
            return self.classes(x)

    class SqueezeExcite(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.squeeze, self.excite = nn.Conv2d(channels, channels // 4, 1), nn.Conv2d(channels // 4, channels, 1)

        def forward(self, x):
            return x * t.sigmoid(self.excite(F.silu(self.squeeze(F.adaptive_avg_pool2d(x, 1)))))

    class Inverted(nn.Module):
        """EfficientNet's block."""

        def __init__(self, inputs, outputs, stride, expansion=4):
            super().__init__()
            wide = inputs * expansion
            self.adds = stride == 1 and inputs == outputs
            self.layers = nn.Sequential(
                *normalized(nn.Conv2d(inputs, wide, 1, bias=False), wide, nn.SiLU()),
                *normalized(nn.Conv2d(wide, wide, 5, stride, 2, groups=wide, bias=False), wide, nn.SiLU()),
                SqueezeExcite(wide), *normalized(nn.Conv2d(wide, outputs, 1, bias=False), outputs))

        def forward(self, x):
            return x + self.layers(x) if self.adds else self.layers(x)

    class EfficientNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                *normalized(nn.Conv2d(3, 16, 3, 2, 1, bias=False), 16, nn.SiLU()), Inverted(16, 24, 2),
                Inverted(24, 24, 1), Inverted(24, 40, 2), Inverted(40, 40, 1), Inverted(40, 80, 2), Inverted(80, 80, 1))
            self.classes = nn.Linear(80, 10)

        def forward(self, x):
            return self.classes(self.layers(x).mean((2, 3)))

    class DenseNet(nn.Module):
        def __init__(self, channels=16, growth=12, layers=8):
            super().__init__()
            self.first = nn.Conv2d(3, channels, 3, padding=1)
            self.layers = nn.ModuleList()
            for _ in range(layers):
                self.layers.append(nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(),
                                                 nn.Conv2d(channels, growth, 3, padding=1, bias=False)))
                channels += growth
            self.classes = nn.Linear(channels, 10)

        def forward(self, x):
            x = self.first(x)
            for layer in self.layers:
                x = t.cat([x, layer(x)], 1)
            return self.classes(F.avg_pool2d(x, x.shape[-1]).flatten(1))

    class VisionTransformer(nn.Module):
        def __init__(self, width=128, patches=64):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 4, 4)
            self.token = nn.Parameter(t.zeros(1, 1, width))
            self.places = nn.Parameter(t.zeros(1, patches + 1, width))
            layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, activation='gelu', batch_first=True,
                                               norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.classes = nn.Linear(width, 10)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = t.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
            return self.classes(self.encoder(x)[:, 0])

    class Recurrent(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.embedding = nn.Embedding(1000, 128)
            self.layers = layer(128, 256, 2, batch_first=True)
            self.words = nn.Linear(256, 1000)

        def forward(self, x):
            return self.words(self.layers(self.embedding(x))[0]).flatten(0, 1)

    class TextCNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(1000, 64)
            self.layers = nn.ModuleList([nn.Conv1d(64, 64, length) for length in (3, 4, 5)])
            self.classes = nn.Linear(192, 5)

        def forward(self, x):
            x = self.embedding(x).transpose(1, 2)
            seen = [F.relu(layer(x)) for layer in self.layers]
            return self.classes(t.cat([F.max_pool1d(one, one.shape[2]).squeeze(2) for one in seen], 1))

    class Audio(nn.Module):
        def __init__(self):
            super().__init__()
            layers = []
            for inputs, outputs in ((1, 16), (16, 32), (32, 64), (64, 64)):
                layers += [nn.Conv1d(inputs, outputs, 9, 4, 4, bias=False), nn.GroupNorm(4, outputs), nn.GELU()]
            self.layers, self.classes = nn.Sequential(*layers), nn.Linear(64, 10)

        def forward(self, x):
            return self.classes(self.layers(x).mean(2))

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(784, 400)
            self.mean, self.variance = nn.Linear(400, 20), nn.Linear(400, 20)
            self.decoder = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784), nn.Sigmoid())

        def forward(self, x, noise):
            hidden = F.relu(self.encoder(x))
            mean, log_variance = self.mean(hidden), self.variance(hidden)
            y = self.decoder(mean + noise * t.exp(0.5 * log_variance))
            return (F.binary_cross_entropy(y, x, reduction='sum')
                    - 0.5 * t.sum(1 + log_variance - mean.pow(2) - log_variance.exp()))

    def generator():
        layers = []
        for inputs, outputs, stride, padding in ((64, 128, 1, 0), (128, 64, 2, 1), (64, 32, 2, 1)):
            layers += normalized(nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False), outputs,
                                 nn.ReLU(True))
        return nn.Sequential(*layers, nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh())

    def discriminator():
        layers = [nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2, True)]
        for inputs, outputs in ((32, 64), (64, 128)):
            layers += normalized(nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), outputs, nn.LeakyReLU(0.2, True))
        return nn.Sequential(*layers, nn.Conv2d(128, 1, 4), nn.Flatten(0))

    def of_output(loss):
        return lambda module, inputs, target: loss(module(*inputs), target)

    def own(module, inputs, target):
        return module(*inputs)

    images, labels = normal(16, 3, 32, 32), random.integers(0, 10, 16)
    words = random.integers(0, 1000, (16, 32))
    classes, squares = of_output(F.cross_entropy), of_output(F.mse_loss)
    return {
        'unet': (UNet, classes, [normal(4, 3, 64, 64)], random.integers(0, 2, (4, 64, 64))),
        'efficientnet': (EfficientNet, classes, [normal(16, 3, 64, 64)], labels),
        'densenet': (DenseNet, classes, [images], labels),
        'vit': (VisionTransformer, classes, [images], labels),
        'lstm': (lambda: Recurrent(nn.LSTM), classes, [words], words.reshape(-1)),
        'gru': (lambda: Recurrent(nn.GRU), classes, [words], words.reshape(-1)),
        'textcnn': (TextCNN, classes, [random.integers(0, 1000, (32, 64))], random.integers(0, 5, 32)),
        'audio': (Audio, classes, [normal(8, 1, 8000)], random.integers(0, 10, 8)),
        'vae': (VAE, own, [random.random((128, 784)).astype('float32'), normal(128, 20)], labels),
        'dcgan/generator': (generator, squares, [normal(16, 64, 1, 1)], images),
        'dcgan/discriminator': (discriminator, of_output(F.binary_cross_entropy_with_logits), [images],
                                (random.random(16) > 0.5).astype('float32')),
    }


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
