#!/usr/bin/env python3
"""Fits y = x w^T + b to noisy points: linear_regression.py [DEVICE]"""
import sys

import koine
from koine import nn

koine.set_device(sys.argv[1] if len(sys.argv) > 1 else 'auto')
koine.manual_seed(0)

true_w, true_b = koine.tensor([[2.0, -3.4]]), 4.2
x = koine.randn(1000, 2)
y = x @ true_w.T + true_b + 0.01 * koine.randn(1000, 1)

net = nn.Linear(2, 1)
optimizer = koine.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(100):
    loss = nn.functional.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print('on %s: loss %.6f, w %s, b %.3f' % (koine.current_device(), loss.item(),
                                          ['%.3f' % one for one in net.weight.flatten().tolist()], net.bias.item()))
