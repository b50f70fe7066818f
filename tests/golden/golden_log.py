"""What the device log computes: histograms (torch.histc) of values on the bins' edges and next to them, and the norm
that clip_grad_norm_ returns."""
import os

import numpy as np
import torch

from golden_file import exact, save_safetensors

HISTOGRAMS = {'unit': (0.0, 1.0, 10), 'signed': (-1.0, 1.0, 7), 'inner': (0.1, 0.7, 100), 'narrow': (1e-3, 1.1e-3, 13)}
LENGTHS = (1, 3, 64, 1000, 5000)


def edges_and_neighbours(low, high, bins, dtype):
    edges = torch.linspace(low, high, bins + 1, dtype=torch.float64).to(dtype)
    far = torch.tensor(1e9, dtype=dtype)
    return torch.cat([edges, torch.nextafter(edges, far), torch.nextafter(edges, -far)])


def make(folder):
    random = np.random.RandomState(41)
    tensors = {}
    metadata = {'torch': torch.__version__, 'cases': ' '.join(HISTOGRAMS)}
    for name, (low, high, bins) in HISTOGRAMS.items():
        metadata[name] = 'op=histc low=%r high=%r bins=%d' % (low, high, bins)
        for kind, dtype in (('f32', torch.float32), ('f64', torch.float64)):
            x = edges_and_neighbours(low, high, bins, dtype)
            tensors['%s/in_%s' % (name, kind)] = x
            tensors['%s/out_%s' % (name, kind)] = torch.histc(x, bins, low, high).long()
    parameters = [torch.nn.Parameter(torch.zeros(n, dtype=torch.float64)) for n in LENGTHS]
    for i, p in enumerate(parameters):
        p.grad = exact(random.standard_normal(LENGTHS[i]) * 10.0 ** (i - 2))
        tensors['grad%d' % i] = p.grad.clone()
    tensors['norm'] = torch.nn.utils.clip_grad_norm_(parameters, 1e30)
    save_safetensors(os.path.join(folder, 'log.safetensors'), tensors, metadata)
