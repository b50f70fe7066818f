"""Networks of real sizes: 20 steps from the same weights give the CPU's losses; 1,000 steps take no further memory.

sh tests/run.sh --torch --full"""
import importlib.util
import os

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from test_training import Recurrent, classes, draw

pytestmark = pytest.mark.skipif(not os.environ.get('KOINE_TEST_FULL'), reason='long: sh tests/run.sh --torch --full')


def bench():
    path = os.path.join(os.path.dirname(__file__), '..', '..', 'bench', 'torch_device.py')
    spec = importlib.util.spec_from_file_location('torch_device', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NETS = bench()


def pictures(step, count, size, channels):
    """Not noise: each class has its colour and its place, so that there is something to learn."""
    labels = classes(step, count)
    x = 0.3 * draw(step, count, channels, size, size)
    for one, label in zip(x, labels.tolist()):
        place = size // 10 * label
        one[label % channels, place:place + size // 10 + 1] += 2
    return x, labels


def text(step, count, length, words=1024):
    tokens = torch.arange(length + 1) * 7 + classes(step, count, words).unsqueeze(1)
    return (tokens % words)[:, :-1].contiguous(), (tokens % words)[:, 1:].flatten()


def linear(step):
    x = 10 * torch.rand(10000, 2, generator=torch.Generator().manual_seed(step)) - 5
    return x, x @ torch.tensor([[2.0], [-3.0]]) + 10 + 2 * draw(step + 1000, 10000, 1)


class WithoutDropout(nn.Module):
    """The CNN of the articles; the devices draw other numbers."""

    def __init__(self):
        super().__init__()
        self.net = NETS.cnn()[0]
        self.net[4].p = 0

    def forward(self, x):
        return self.net(x)


def adam(rate):
    return lambda parameters: torch.optim.Adam(parameters, lr=rate)


def sgd(rate):
    return lambda parameters: torch.optim.SGD(parameters, lr=rate, momentum=0.9)


PROGRAMS = {
    'linear regression': (lambda: nn.Linear(2, 1), linear, adam(0.1), F.mse_loss),
    'cnn': (WithoutDropout, lambda step: pictures(step, 128, 28, 1), adam(1e-3), F.cross_entropy),
    'resnet18': (lambda: NETS.resnet18()[0], lambda step: pictures(step, 16, 32, 3), sgd(0.01), F.cross_entropy),
    'gpt': (NETS.Gpt, lambda step: text(step, 4, 128), lambda p: torch.optim.AdamW(p, lr=3e-4), F.cross_entropy),
    'lstm': (lambda: Recurrent(nn.LSTM, 28, 64), lambda step: (draw(step, 32, 28, 28), classes(step, 32)), adam(1e-3),
             F.cross_entropy),
}


class Training:
    def __init__(self, name, device, compile=False, dtype=torch.float32):
        torch.manual_seed(0)
        make, self.data, rule, self.loss = PROGRAMS[name]
        self.net, self.device, self.dtype = make().to(device, dtype), device, dtype
        self.call = torch.compile(self.net, backend='koine') if compile else self.net
        self.rule = rule(self.net.parameters())

    def step(self, step):
        x, y = (t.to(self.device, self.dtype if t.is_floating_point() else t.dtype) for t in self.data(step))
        loss = self.loss(self.call(x), y)
        self.rule.zero_grad()
        loss.backward()
        self.rule.step()
        return loss.item()

    def run(self, steps):
        return [self.step(i) for i in range(steps)]


# ResNet-18 in float32 multiplies rounding errors: after six steps PyTorch's own losses with one and with two threads
# are 6e-3 apart. In float64 the devices can be told apart from that.
NEAR = [(name, torch.float32, 1e-4) for name in PROGRAMS if name != 'resnet18'] + [('resnet18', torch.float64, 1e-9)]


@pytest.mark.parametrize('name, dtype, near', NEAR)
def test_the_losses_of_the_cpu(name, dtype, near):
    torch.koine.reset_fallbacks()
    expected = Training(name, 'cpu', dtype=dtype).run(20)
    assert Training(name, 'koine', dtype=dtype).run(20) == pytest.approx(expected, rel=near)
    assert torch.koine.fallbacks() == {}


@pytest.mark.parametrize('name', PROGRAMS)
def test_the_same_bits_compiled(name):
    torch._dynamo.reset()
    assert Training(name, 'koine', compile=True).run(20) == Training(name, 'koine').run(20)


@pytest.mark.parametrize('compile', [False, True])
@pytest.mark.parametrize('name', ['linear regression', 'cnn', 'lstm'])
def test_a_thousand_steps(name, compile):
    torch._dynamo.reset()
    training = Training(name, 'koine', compile)
    sizes, resident = [], []
    for step in range(1000):
        training.step(step % 10)
        sizes.append(torch.koine.memory_allocated())
        with open('/proc/self/statm') as file:
            resident.append(int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE'))
    assert sizes[-1] == sizes[100]
    assert max(resident[900:]) - max(resident[100:200]) < 32 << 20, 'the process grows'
