#!/usr/bin/env python3
"""What there is, and how tensors and networks get there: torch_devices.py

With CUDA the same program says torch.cuda and 'cuda'."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate


def try_gpu(i=0):
    """koine:i if there is one, else the CPU."""
    return torch.device(f'koine:{i}') if torch.koine.device_count() >= i + 1 else torch.device('cpu')


def try_all_gpus():
    devices = [torch.device(f'koine:{i}') for i in range(torch.koine.device_count())]
    return devices if devices else [torch.device('cpu')]


# --- the devices ---

print('available:', torch.koine.is_available(), 'devices:', torch.koine.device_count())
print('current:', torch.koine.current_device(), torch.koine.get_device_name(0))
print(torch.koine.get_device_properties(0))
print('free and total memory:', torch.koine.mem_get_info())
print(torch.koine.memory_summary(abbreviated=True))
torch.koine.empty_cache()
print(try_gpu(), try_gpu(10), try_all_gpus())

# --- tensors ---

device = torch.device('koine' if torch.koine.is_available() else 'cpu')
print(device, device.type)

tensor = torch.rand((100, 100))
moved = [tensor.to(device), tensor.koine(), tensor.to('koine:0'), tensor.koine(0),
         torch.ones(2, 3, device=try_gpu()), torch.tensor([1, 2], device=device)]
print('on the device:', [str(one.device) for one in moved], moved[0].is_koine)
back = [moved[0].cpu(), moved[0].to('cpu')]
print('and back:', [str(one.device) for one in back], back[0].is_koine, torch.equal(back[1], tensor))
print('another dtype:', torch.ones((3, 3)).koine().to(torch.int64).dtype)

X = torch.ones(2, 3, device=try_gpu())
print(X)
Y = torch.rand(2, 3, device=try_gpu(1)).to(X.device)
print('sum:', (X + Y).shape, 'the same tensor:', X.koine(0) is X)

# --- networks ---

net = nn.Sequential(nn.Linear(3, 1))
print('before:', next(net.parameters()).device, next(net.parameters()).is_koine)
net.to(device)  # in place: no new network
print('after:', net[0].weight.data.device, next(net.parameters()).is_koine)
print(net(X))

if torch.koine.device_count() > 1:
    parallel = nn.DataParallel(nn.Linear(2, 1).to(device))
    print('networks on', parallel.device_ids)
    torch.save(parallel.module.state_dict(), 'model_parameter.pt')

# --- data ---

data = TensorDataset(torch.arange(8.0).reshape(4, 2), torch.arange(4))
loader = DataLoader(data, batch_size=2, collate_fn=lambda batch: tuple(x.to(device) for x in default_collate(batch)))
print('batches:', [(str(features.device), labels.tolist()) for features, labels in loader])
