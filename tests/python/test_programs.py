"""Programs as they are written for PyTorch, with koine in its place, and also with PyTorch where that is installed:
they have to be valid there."""
import copy
import math

import pytest

import koine

try:
    import torch
except ImportError:
    torch = None


def resnet(torch, nn, F):
    class Block(nn.Module):
        def __init__(self, inside, outside, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(inside, outside, kernel_size=3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(outside)
            self.conv2 = nn.Conv2d(outside, outside, kernel_size=3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(outside)
            self.relu = nn.ReLU(inplace=True)
            self.downsample = None
            if stride != 1 or inside != outside:
                self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False),
                                                nn.BatchNorm2d(outside))

        def forward(self, x):
            identity = x if self.downsample is None else self.downsample(x)
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += identity
            return self.relu(out)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(True))
            self.layers = nn.Sequential(*[Block(8, 16, 2), Block(16, 16)])
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(16, 10)
            for m in self.modules():
                if isinstance(m, nn.Conv2d):
                    nn.init.kaiming_normal_(m.weight, mode='fan_out', nonlinearity='relu')
                    if m.bias is not None:
                        nn.init.zeros_(m.bias)
                elif isinstance(m, nn.BatchNorm2d):
                    nn.init.constant_(m.weight, 1)

        def forward(self, x):
            return self.fc(torch.flatten(self.avgpool(self.layers(self.stem(x))), 1))

    net, criterion = Net(), nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=4)
    average = copy.deepcopy(net)
    x, y = torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,))
    for _ in range(2):
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        with torch.no_grad():
            for p, q in zip(average.parameters(), net.parameters()):
                p.mul_(0.9).add_(q, alpha=0.1)
    net.eval()
    with torch.no_grad():
        correct = (net(x).softmax(dim=-1).argmax(dim=1) == y).float().mean().item()
    assert 0 <= correct <= 1
    net.fc = nn.Linear(net.fc.in_features, 3)  # fine-tuning
    assert net(x).shape == (8, 3)
    return loss


def unet(torch, nn, F):
    def double(inside, outside):
        return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(inplace=True))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.up2 = double(1, 8), double(8, 16), double(16, 8)
            self.pool, self.up = nn.MaxPool2d(2), nn.ConvTranspose2d(16, 8, kernel_size=2, stride=2)
            self.out = nn.Conv2d(8, 2, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.up(self.down2(self.pool(a)))
            dy, dx = a.size()[2] - b.size()[2], a.size(3) - b.size(3)
            b = F.pad(b, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            return self.out(self.up2(torch.cat([a, b], dim=1)))

    net = UNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
    x, y = torch.randn(2, 1, 17, 19), (torch.rand(2, 17, 19) > 0.5).long()
    loss = F.cross_entropy(net(x), y, ignore_index=255)
    loss.backward()
    optimizer.step()
    return loss + F.binary_cross_entropy_with_logits(net(x)[:, 1], y.float(), pos_weight=torch.tensor([2.0]))


def gpt(torch, nn, F):
    class Attention(nn.Module):
        def __init__(self, width, heads, length):
            super().__init__()
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
            self.heads, self.width, self.drop = heads, width, nn.Dropout(0.1)
            self.register_buffer('bias', torch.tril(torch.ones(length, length)).view(1, 1, length, length))

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = (one.view(B, T, self.heads, C // self.heads).transpose(1, 2)
                       for one in self.c_attn(x).split(self.width, dim=2))
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float('-inf'))
            y = self.drop(F.softmax(att, dim=-1)) @ v
            return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))

    class GPT(nn.Module):
        def __init__(self, vocabulary=50, width=32, heads=4, length=16):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.h = nn.ModuleList([nn.ModuleDict({
                'ln_1': nn.LayerNorm(width), 'attn': Attention(width, heads, length), 'ln_2': nn.LayerNorm(width),
                'mlp': nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate='tanh'),
                                     nn.Linear(4 * width, width))}) for _ in range(2)])
            self.lm_head = nn.Linear(width, vocabulary, bias=False)
            self.wte.weight = self.lm_head.weight
            self.apply(self.initialise)

        def initialise(self, module):
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, mean=0.0, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

        def forward(self, idx, targets=None):
            b, t = idx.size()
            x = self.wte(idx) + self.wpe(torch.arange(0, t, dtype=torch.int64, device=idx.device))
            for block in self.h:
                x = x + block['attn'](block['ln_1'](x))
                x = x + block['mlp'](block['ln_2'](x))
            logits = self.lm_head(x)
            loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
            return logits, loss

    net = GPT()
    decayed = [p for _, p in net.named_parameters() if p.dim() >= 2]
    others = [p for _, p in net.named_parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{'params': decayed, 'weight_decay': 0.1}, {'params': others, 'weight_decay': 0.0}],
                                  lr=3e-4, betas=(0.9, 0.95))
    for group in optimizer.param_groups:
        group['lr'] = 1e-3
    with torch.autocast('cpu', dtype=torch.bfloat16):
        _, loss = net(torch.randint(50, (4, 16)), torch.randint(50, (4, 16)))
    loss.backward()
    optimizer.step()
    net.eval()
    idx = torch.zeros((1, 1), dtype=torch.int64)
    with torch.no_grad():
        for _ in range(3):
            logits = net(idx[:, -16:])[0][:, -1, :] / 0.8
            best, _ = torch.topk(logits, 5)
            logits[logits < best[:, [-1]]] = -float('Inf')
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
    assert idx.shape == (1, 4)
    return loss


def dcgan(torch, nn, F):
    generator = nn.Sequential(nn.ConvTranspose2d(10, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
                              nn.ConvTranspose2d(16, 1, 4, 2, 1, bias=False), nn.Tanh())
    judge = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
                          nn.Conv2d(16, 1, 4, 1, 0, bias=False), nn.Sigmoid())

    def initialise(m):
        if m.__class__.__name__.find('Conv') != -1:
            nn.init.normal_(m.weight.data, 0.0, 0.02)

    generator.apply(initialise), judge.apply(initialise)
    criterion, label = nn.BCELoss(), torch.full((4,), 1.0)
    optimizers = [torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (generator, judge)]
    judge.zero_grad()
    criterion(judge(torch.randn(4, 1, 8, 8)).view(-1), label).backward()
    fake = generator(torch.randn(4, 10, 1, 1))
    label.fill_(0.0)
    criterion(judge(fake.detach()).view(-1), label).backward()
    optimizers[1].step()
    generator.zero_grad()
    loss = criterion(judge(fake).view(-1), label.fill_(1.0))
    loss.backward()
    optimizers[0].step()
    return loss


def language_model(torch, nn, F):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop, self.encoder = nn.Dropout(0.2), nn.Embedding(30, 16)
            self.rnn, self.decoder = nn.LSTM(16, 24, 2, dropout=0.2), nn.Linear(24, 30)
            nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

        def forward(self, x, hidden):
            output, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
            return F.log_softmax(self.decoder(self.drop(output)).view(-1, 30), dim=1), hidden

        def init_hidden(self, batch):
            weight = next(self.parameters())
            return weight.new_zeros(2, batch, 24), weight.new_zeros(2, batch, 24)

    net = Net()
    hidden = net.init_hidden(3)
    for _ in range(2):
        net.zero_grad()
        hidden = tuple(one.detach() for one in hidden)
        output, hidden = net(torch.randint(0, 30, (7, 3)), hidden)
        loss = nn.NLLLoss()(output, torch.randint(0, 30, (21,)))
        loss.backward()
        for p in net.parameters():
            p.data.add_(p.grad, alpha=-0.1)
    return loss


def vit(torch, nn, F):
    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 32, kernel_size=8, stride=8)
            self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, 32)), nn.Parameter(torch.randn(1, 17, 32) * 0.02)
            layer = nn.TransformerEncoderLayer(d_model=32, nhead=4, dim_feedforward=64, dropout=0.1,
                                               activation='gelu', batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(32), enable_nested_tensor=False)
            self.head = nn.Linear(32, 10)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1) + self.pos
            return self.head(self.encoder(x)[:, 0])

    net, seen = ViT(), []
    handle = net.encoder.layers[0].register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    loss = F.cross_entropy(net(torch.randn(2, 3, 32, 32)), torch.tensor([1, 2]))
    handle.remove()
    loss.backward()
    assert net.cls.grad is not None and seen == [(2, 17, 32)]
    return loss


LIBRARIES = ['koine'] + ['torch'] * (torch is not None)


@pytest.mark.parametrize('library', LIBRARIES)
@pytest.mark.parametrize('program', [resnet, unet, gpt, dcgan, language_model, vit])
def test_program(program, library):
    one = koine if library == 'koine' else torch
    one.manual_seed(0)
    loss = program(one, one.nn, one.nn.functional)
    assert math.isfinite(loss.item())
