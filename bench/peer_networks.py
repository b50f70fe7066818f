"""The benchmarks' networks in PyTorch, with the same layers and names as networks.c, image_networks.c and seeds.c."""
import torch
from torch import nn

from peer_transformers import Gpt, VisionTransformer, loss_of_tokens


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.MaxPool2d(2, 2), nn.Conv2d(32, 64, 5), nn.MaxPool2d(2, 2),
                         nn.Dropout2d(0.1), nn.AdaptiveMaxPool2d((1, 1)),
                         nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


class LinearRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(1, 2))
        self.b = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x @ self.w.t() + self.b


def perceptron():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride != 1 or inputs != channels:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, channels, 1, stride, bias=False),
                                            nn.BatchNorm2d(channels))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class Bottleneck(nn.Module):
    """The stride is in the 3x3 convolution."""
    expansion = 4

    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, 4 * channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * channels)
        self.downsample = None
        if stride != 1 or inputs != 4 * channels:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * channels, 1, stride, bias=False),
                                            nn.BatchNorm2d(4 * channels))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(y)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    """The stages after a stem: `stem` is its convolution, `pool` follows it (may be None);
    stage i has blocks[i] blocks."""

    def __init__(self, stem, pool, block, blocks, classes):
        super().__init__()
        self.conv1 = stem
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = pool or nn.Identity()
        inputs = 64
        for stage, count in enumerate(blocks):
            layers = []
            for i in range(count):
                layers.append(block(inputs, 64 << stage, 2 if stage and i == 0 else 1))
                inputs = (64 << stage) * block.expansion
            setattr(self, 'layer%d' % (stage + 1), nn.Sequential(*layers))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def resnet18():
    """For CIFAR: a 3x3 stem of stride 1, no max pooling."""
    return ResNet(nn.Conv2d(3, 64, 3, 1, 1, bias=False), None, BasicBlock, (2, 2, 2, 2), 10)


def resnet50():
    return ResNet(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.MaxPool2d(3, 2, 1), Bottleneck, (3, 4, 6, 3), 1000)


def conv_bn_relu6(inputs, channels, kernel, stride, groups):
    return nn.Sequential(nn.Conv2d(inputs, channels, kernel, stride, kernel // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(channels), nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, channels, stride, expansion):
        super().__init__()
        hidden = inputs * expansion
        layers = [conv_bn_relu6(inputs, hidden, 1, 1, 1)] if expansion != 1 else []
        layers += [conv_bn_relu6(hidden, hidden, 3, stride, hidden), nn.Conv2d(hidden, channels, 1, bias=False),
                   nn.BatchNorm2d(channels)]
        self.conv = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == channels

    def forward(self, x):
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(nn.Module):
    """For CIFAR: stride 1 in the stem and in the second stage, no dropout."""

    def __init__(self):
        super().__init__()
        layers, inputs = [conv_bn_relu6(3, 32, 3, 1, 1)], 32
        for expansion, channels, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2),
                                                    (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for block in range(blocks):
                layers.append(InvertedResidual(inputs, channels, 1 if block else stride, expansion))
                inputs = channels
        layers.append(conv_bn_relu6(inputs, 1280, 1, 1, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(1280, 10)

    def forward(self, x):
        x = nn.functional.adaptive_avg_pool2d(self.features(x), 1)
        return self.classifier(torch.flatten(x, 1))


class SequenceClassifier(nn.Module):
    """Two layers of `kind`, and a linear layer after the last step."""

    def __init__(self, kind):
        super().__init__()
        self.rnn = kind(256, 256, 2, batch_first=True)
        self.fc = nn.Linear(256, 10)

    def forward(self, x):
        return self.fc(self.rnn(x)[0][:, -1])


def adam(rate):
    return lambda parameters, recorded: torch.optim.Adam(parameters, lr=rate, capturable=recorded)


def adamw(rate):
    return lambda parameters, recorded: torch.optim.AdamW(parameters, lr=rate, capturable=recorded)


def sgd(rate):
    return lambda parameters, recorded: torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=5e-4)


# benchmark: network, optimizer (told whether its step will be recorded in a CUDA graph), loss, whether it has dropout
TRAINING = {
    'linear_regression': (LinearRegression, adam(0.1), nn.functional.mse_loss, False),
    'cnn_step': (cnn, adam(0.01), nn.functional.cross_entropy, True),
    'mlp': (perceptron, adam(0.001), nn.functional.cross_entropy, False),
    'lenet': (lenet, adam(0.001), nn.functional.cross_entropy, False),
    'resnet18': (resnet18, sgd(0.01), nn.functional.cross_entropy, False),
    'resnet50': (resnet50, sgd(0.0001), nn.functional.cross_entropy, False),
    'lstm': (lambda: SequenceClassifier(nn.LSTM), adam(0.001), nn.functional.cross_entropy, False),
    'gru': (lambda: SequenceClassifier(nn.GRU), adam(0.001), nn.functional.cross_entropy, False),
    'gpt': (lambda: Gpt(4096, 128, 256, 4, 4), adamw(3e-4), loss_of_tokens, False),
    'gpu/gpt': (lambda: Gpt(50257, 1024, 768, 12, 12), adamw(3e-4), loss_of_tokens, False),
    'vit': (lambda: VisionTransformer(32, 4, 6, 3, 192, 10), adamw(3e-4), nn.functional.cross_entropy, False),
    'gpu/vit': (lambda: VisionTransformer(224, 16, 12, 12, 768, 1000), adamw(3e-4), nn.functional.cross_entropy, False),
    'mobilenetv2': (MobileNetV2, sgd(0.0001), nn.functional.cross_entropy, False),
}
