"""Whole programs on the device koine give the CPU's losses, without an operator on the CPU."""
import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


def draw(step, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(step))


def classes(step, count, of=10):
    return torch.randint(0, of, (count,), generator=torch.Generator().manual_seed(step))


def images(step):
    return draw(step, 4, 1, 16, 16), classes(step, 4)


def losses(make, data, optimizer, loss, steps, device):
    torch.manual_seed(0)
    net = make().to(device)
    rule = optimizer(net.parameters())
    found = []
    for step in range(steps):
        x, y = (t.to(device) for t in data(step))
        rule.zero_grad()
        value = loss(net(x), y)
        value.backward()
        rule.step()
        found.append(value.item())
    return found


def check(make, data, optimizer, loss=F.cross_entropy, steps=4):
    torch.koine.reset_fallbacks()
    assert losses(make, data, optimizer, loss, steps, 'koine') == pytest.approx(
        losses(make, data, optimizer, loss, steps, 'cpu'), rel=1e-4)
    assert torch.koine.fallbacks() == {}


OPTIMIZERS = {
    'sgd': lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    'sgd fused': lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, fused=True),
    'adam': lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.01),
    'adam fused': lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.01, fused=True),
    'adam amsgrad fused': lambda p: torch.optim.Adam(p, 0.01, amsgrad=True, fused=True),
    'adamw': lambda p: torch.optim.AdamW(p, 0.01),
    'adamw fused': lambda p: torch.optim.AdamW(p, 0.01, fused=True),
    'rmsprop': lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
    'adagrad': lambda p: torch.optim.Adagrad(p, 0.01),
    'adadelta': lambda p: torch.optim.Adadelta(p, 0.5),
    'nadam': lambda p: torch.optim.NAdam(p, 0.01),
}


@pytest.mark.parametrize('name', OPTIMIZERS)
def test_linear_regression(name):
    def data(step):
        x = draw(step, 8, 3)
        return x, x.sum(1, keepdim=True) * 2 + 1
    check(lambda: nn.Linear(3, 1), data, OPTIMIZERS[name], F.mse_loss, 6)


def test_cnn():
    check(lambda: nn.Sequential(nn.Conv2d(1, 8, 3), nn.MaxPool2d(2), nn.Conv2d(8, 8, 5), nn.Dropout2d(0.0),
                                nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 10)),
          images, OPTIMIZERS['adam'])


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.one, self.two = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(self.two(F.relu(self.norm(self.one(x)), inplace=True)) + x)


def test_resnet():
    check(lambda: nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(3, 2, 1),
                                Residual(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)),
          images, OPTIMIZERS['sgd'])


def test_mobilenet():
    check(lambda: nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.Hardswish(),
                                nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.ReLU6(), nn.Conv2d(8, 16, 1),
                                nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Hardsigmoid(), nn.Linear(16, 10)),
          images, OPTIMIZERS['sgd'])


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.all, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2) for y in self.all(x).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(n, t, c))


class Gpt(nn.Module):
    def __init__(self, width=16, words=20, length=8):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.attention = Attention(width, 2)
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        x = x + self.attention(self.norms[0](x))
        x = x + self.mlp(self.norms[1](x))
        return self.head(self.norms[2](x)).flatten(0, 1)


def test_gpt():
    def data(step):
        tokens = classes(step, 27, 20).view(3, 9)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()
    check(Gpt, data, OPTIMIZERS['adamw'])


class Recurrent(nn.Module):
    def __init__(self, kind, width=4, hidden=8):
        super().__init__()
        self.layers = kind(width, hidden, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, 10)

    def forward(self, x):
        return self.out(self.layers(x)[0][:, -1])


@pytest.mark.parametrize('kind', [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent(kind):
    check(lambda: Recurrent(kind), lambda step: (draw(step, 3, 4, 4), classes(step, 3)), OPTIMIZERS['adam'])


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.token = nn.Conv2d(1, 16, 4, 4), nn.Parameter(torch.zeros(1, 1, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, 'gelu', batch_first=True, norm_first=True)
        self.out = nn.Linear(16, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.out(self.layer(torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1))[:, 0])


def test_vit():
    check(Vit, images, OPTIMIZERS['adamw fused'])


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.low = nn.Conv2d(1, 4, 3, 1, 1), nn.Conv2d(4, 8, 3, 1, 1)
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(16, 1, 3, 1, 1)
        self.norm = nn.GroupNorm(2, 4, eps=0.01)
        self.resize = nn.Upsample(scale_factor=2, mode='bilinear')

    def forward(self, x):
        high = F.leaky_relu(self.norm(self.down(x)))
        low = F.elu(self.low(F.max_pool2d(high, 2)))
        return self.out(torch.cat([high, self.up(low), self.resize(low)], 1))


def test_unet():
    def data(step):
        x = draw(step, 2, 1, 8, 8)
        return x, (x > 0).float()
    check(Unet, data, OPTIMIZERS['adagrad'], F.binary_cross_entropy_with_logits)


@pytest.mark.parametrize('make', [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_optimizers_are_fused_unless_told_otherwise(make):
    def groups(**options):
        parameters = [nn.Parameter(torch.ones(3, device=options.pop('device', 'koine')))]
        rule = make(parameters, **{'lr': 0.1, **options})
        parameters[0].grad = torch.ones_like(parameters[0])
        rule.step()
        torch.testing.assert_close(parameters[0].detach().cpu(), torch.full((3,), 0.9), rtol=0.01, atol=0)
        return rule.param_groups[0]['fused']
    assert groups() is True
    assert groups(foreach=True) is None and groups(fused=False) is False and groups(device='cpu') is None
    assert groups(lr=torch.tensor(0.1)) is None


def test_momentum_may_begin_late():
    def run(device):
        first, second = (nn.Parameter(torch.full((2,), x, device=device)) for x in (1.0, 2.0))
        rule = torch.optim.SGD([first, second], 0.1, momentum=0.9)
        for step in range(4):
            first.grad = torch.full_like(first, step + 1.0)
            second.grad = torch.ones_like(second) if step > 1 else None
            rule.step()
        return [t.detach().cpu() for t in (first, second)]
    for got, wanted in zip(run('koine'), run('cpu'), strict=True):
        torch.testing.assert_close(got, wanted)


def test_state_of_optimizers_moves_between_devices():
    def run(devices):
        p = None
        for device in devices:
            q = nn.Parameter(p.detach().to(device) if p is not None else torch.ones(3, device=device))
            rule = torch.optim.Adam([q], 0.1)
            if p is not None:
                rule.load_state_dict(state)
            p = q
            for _ in range(2):
                p.grad = p.detach() * 2
                rule.step()
            state = rule.state_dict()
        return p.detach().cpu()
    for devices in (('koine', 'cpu'), ('cpu', 'koine'), ('koine', 'koine')):
        torch.testing.assert_close(run(devices), run(('cpu', 'cpu')))


@pytest.mark.parametrize('reentrant', [False, True])
def test_checkpoints_draw_the_same_numbers_again(reentrant):
    x = torch.ones(1000, device='koine', requires_grad=True)
    y = checkpoint(F.dropout, x, use_reentrant=reentrant)
    y.sum().backward()
    assert 0 < (y > 0).sum().item() < 1000 and torch.equal(x.grad, y)
