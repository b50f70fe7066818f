#!/usr/bin/env python3
"""Trains a small CNN, keeps the best epoch, stops early: torch_classification.py [--data DIR] [--device NAME] ...

Data are MNIST's four files, or Fashion-MNIST's."""
import argparse
import datetime
import gzip
import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument('--data', default='/usr/share/datasets/fashion-mnist')
parser.add_argument('--device', default='koine')
parser.add_argument('--epochs', type=int, default=20)
parser.add_argument('--patience', type=int, default=5)
parser.add_argument('--samples', type=int, help='of an epoch')
parser.add_argument('--workers', type=int, default=4)
parser.add_argument('--compile', action='store_true', help="torch.compile(net, backend='koine')")
parser.add_argument('--checkpoint', default='checkpoint.pt')
options = parser.parse_args()


def numbers(name, header):
    """The bytes of a file behind its header, compressed or not."""
    path = os.path.join(options.data, name)
    with (open(path, 'rb') if os.path.exists(path) else gzip.open(path + '.gz')) as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def dataset(which):
    images = numbers(which + '-images-idx3-ubyte', 16).view(-1, 1, 28, 28)[:options.samples]
    return TensorDataset(images / 255.0, numbers(which + '-labels-idx1-ubyte', 8)[:options.samples].long())


def create_net():
    net = nn.Sequential()
    net.add_module('conv1', nn.Conv2d(in_channels=1, out_channels=32, kernel_size=3))
    net.add_module('pool1', nn.MaxPool2d(kernel_size=2, stride=2))
    net.add_module('conv2', nn.Conv2d(in_channels=32, out_channels=64, kernel_size=5))
    net.add_module('pool2', nn.MaxPool2d(kernel_size=2, stride=2))
    net.add_module('dropout', nn.Dropout2d(p=0.1))
    net.add_module('adaptive_pool', nn.AdaptiveMaxPool2d((1, 1)))
    net.add_module('flatten', nn.Flatten())
    net.add_module('linear1', nn.Linear(64, 32))
    net.add_module('relu', nn.ReLU())
    net.add_module('linear2', nn.Linear(32, 10))
    return net


class Accuracy(nn.Module):
    """The part of right predictions: of a batch when called, of all since reset() from compute()."""

    def __init__(self):
        super().__init__()
        self.register_buffer('right', torch.zeros((), dtype=torch.long))
        self.total = 0

    def forward(self, preds, labels):
        right = (preds.argmax(1) == labels).sum()
        self.right += right
        self.total += len(labels)
        return right / len(labels)

    def compute(self):
        return self.right / self.total

    def reset(self):
        self.right.zero_()
        self.total = 0


torch.manual_seed(0)
device = torch.device(options.device)
print(f'Using {device} device.')
dl_train = DataLoader(dataset('train'), batch_size=128, shuffle=True, num_workers=options.workers)
dl_val = DataLoader(dataset('t10k'), batch_size=128, num_workers=options.workers)

net = create_net()
print(net)
net.to(device)
loss_fn = nn.CrossEntropyLoss().to(device)
metric = Accuracy().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
forward = torch.compile(net, backend='koine') if options.compile else net

history = []
for epoch in range(1, options.epochs + 1):
    # --- train ---
    net.train()
    total_loss = step = 0
    for features, labels in dl_train:
        features, labels = features.to(device), labels.to(device)
        preds = forward(features)
        loss = loss_fn(preds, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        metric(preds, labels)
        total_loss += loss.item()
        step += 1
    train_loss, train_acc = total_loss / step, metric.compute().item()
    metric.reset()
    # --- validate ---
    net.eval()
    total_loss = step = 0
    with torch.no_grad():
        for features, labels in dl_val:
            features, labels = features.to(device), labels.to(device)
            preds = forward(features)
            total_loss += loss_fn(preds, labels).item()
            step += 1
            metric(preds, labels)
    history.append(metric.compute().item())
    print(f'{datetime.datetime.now():%H:%M:%S} epoch {epoch}: loss {train_loss:.4f}, accuracy {train_acc:.4f}, '
          f'validation loss {total_loss / step:.4f}, accuracy {history[-1]:.4f}')
    metric.reset()
    # --- keep the best, stop early ---
    best = history.index(max(history))
    if best == len(history) - 1:
        torch.save(net.state_dict(), options.checkpoint)
    if len(history) - best > options.patience:
        print(f'no better accuracy in {options.patience} epochs: the end', file=sys.stderr)
        break
net.load_state_dict(torch.load(options.checkpoint))
print('the best accuracy: %.4f, fallbacks: %s' % (max(history), torch.koine.fallbacks()))
