#!/usr/bin/env python3
"""Trains a small CNN on Fashion-MNIST: fashion_mnist.py [--data DIR] [--epochs N] [--device NAME] [--limit N]"""
import argparse

import koine
from koine import nn

parser = argparse.ArgumentParser()
parser.add_argument('--data', default='/usr/share/datasets/fashion-mnist', help='the folder of the four original files')
parser.add_argument('--epochs', type=int, default=5)
parser.add_argument('--device', default='auto')
parser.add_argument('--limit', type=int, help='batches of an epoch')
options = parser.parse_args()

koine.set_device(options.device)
koine.manual_seed(1)
train = koine.data.DataLoader(koine.data.MNIST(options.data), 128, shuffle=True, num_workers=2)
test = koine.data.DataLoader(koine.data.MNIST(options.data, train=False), 256, num_workers=2)

net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.MaxPool2d(2), nn.Dropout2d(0.1),
                    nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = koine.optim.Adam(net.parameters(), lr=0.01)

for epoch in range(options.epochs):
    net.train()
    for step, (images, labels) in enumerate(train):
        if step == options.limit:
            break
        loss = nn.functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    right = total = 0
    with koine.no_grad():
        for step, (images, labels) in enumerate(test):
            if step == options.limit:
                break
            right = right + (net(images).argmax(1) == labels).sum()  # stays on the device
            total += len(labels)
    print('epoch %d: loss %.4f, accuracy %.4f' % (epoch + 1, loss.item(), right.item() / total))
