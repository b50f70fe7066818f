#!/usr/bin/env python3
"""Linear regression on the CPU and on the device: torch_linear_regression.py [SAMPLES [EPOCHS]]"""
import sys
import time

import torch
from torch import nn

n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000000
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 500

torch.manual_seed(0)
X = 10 * torch.rand([n, 2]) - 5
w0 = torch.tensor([[2.0, -3.0]])
b0 = torch.tensor([[10.0]])
Y = X @ w0.t() + b0 + torch.normal(0.0, 2.0, size=[n, 1])


class LinearRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones_like(w0))
        self.b = nn.Parameter(torch.zeros_like(b0))

    def forward(self, x):
        return x @ self.w.t() + self.b


def train(device):
    linear = LinearRegression().to(device)
    x, y = X.to(device), Y.to(device)
    print(f'x: {x.device}, parameters: {next(linear.parameters()).device}')
    optimizer = torch.optim.Adam(linear.parameters(), lr=0.1)
    loss_fn = nn.MSELoss()
    tic = time.time()
    for epoch in range(epochs):
        optimizer.zero_grad()
        loss = loss_fn(linear(x), y)
        loss.backward()
        optimizer.step()
        if epoch % 50 == 0:
            print(f'epoch: {epoch}, loss: {loss.item()}')
    print(f'{device}: loss {loss.item():.5f}, w {linear.w.tolist()}, b {linear.b.item():.4f}, '
          f'time {time.time() - tic:.2f} s')


train('cpu')
train('koine')
