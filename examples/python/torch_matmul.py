#!/usr/bin/env python3
"""A matrix product on the CPU and on the device: torch_matmul.py [ROWS]"""
import sys
import time

import torch

rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10000


def product(device):
    a = torch.rand((rows, 200), device=device)
    b = torch.rand((200, rows)).to(device)
    torch.matmul(a, b)  # the first call loads the kernels
    torch.accelerator.synchronize()
    tic = time.time()
    c = torch.matmul(a, b)
    torch.accelerator.synchronize()  # calls return before their work is done
    toc = time.time()
    print(f'{a.device}, {b.device}: {toc - tic:.4f} s')
    return (a.cpu() @ b.cpu() - c.cpu()).abs().max().item()


print('the largest difference: %.1e' % max(product(device) for device in ('cpu', 'koine')))
