"""Golden trajectories of optimizers, and the statistics of PyTorch's default initialisation."""
import os

import numpy as np
import torch

from golden_file import exact, save_safetensors, text

STEPS = 10

OPTIMIZERS = {
    'sgd': (torch.optim.SGD, dict(lr=0.1)),
    'sgd_weight_decay': (torch.optim.SGD, dict(lr=0.1, weight_decay=0.05)),
    'sgd_momentum': (torch.optim.SGD, dict(lr=0.05, momentum=0.9)),
    'sgd_dampening': (torch.optim.SGD, dict(lr=0.05, momentum=0.9, dampening=0.5)),
    'sgd_nesterov': (torch.optim.SGD, dict(lr=0.05, momentum=0.8, nesterov=True)),
    'sgd_nesterov_weight_decay': (torch.optim.SGD, dict(lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.1)),
    'adam': (torch.optim.Adam, dict(lr=0.1)),
    'adam_betas': (torch.optim.Adam, dict(lr=0.05, betas=(0.5, 0.8), eps=1e-3)),
    'adam_weight_decay': (torch.optim.Adam, dict(lr=0.1, weight_decay=0.1)),
    'adam_amsgrad': (torch.optim.Adam, dict(lr=0.1, amsgrad=True)),
}


def optimizers(folder):
    """Two parameters p and q under given gradients; q has none in step 3 and is not updated there. All values float64."""
    random = np.random.RandomState(21)
    p0, q0 = exact(random.uniform(-1, 1, (3, 5))), exact(random.uniform(-1, 1, (7,)))
    # Gradients that shrink stepwise, so that amsgrad's maximum matters.
    gp = [exact(random.uniform(-1, 1, (3, 5)) / (1 + 3 * (t % 4))) for t in range(STEPS)]
    gq = [exact(random.uniform(-1, 1, (7,)) / (1 + 3 * (t % 4))) for t in range(STEPS)]
    tensors = {'p': p0, 'q': q0, 'grad_p': torch.stack(gp), 'grad_q': torch.stack(gq)}
    metadata = {'torch': torch.__version__, 'cases': ' '.join(OPTIMIZERS), 'steps': str(STEPS), 'step_without_grad_q': '3'}
    for name, (kind, params) in OPTIMIZERS.items():
        p, q = p0.clone().requires_grad_(), q0.clone().requires_grad_()
        optimizer = kind([p, q], **params)
        path_p, path_q = [], []
        for t in range(STEPS):
            p.grad, q.grad = gp[t].clone(), None if t == 3 else gq[t].clone()
            optimizer.step()
            path_p.append(p.detach().clone())
            path_q.append(q.detach().clone())
        tensors[name + '/p'], tensors[name + '/q'] = torch.stack(path_p), torch.stack(path_q)
        flat = {k: v for k, v in params.items() if k != 'betas'}
        if 'betas' in params:
            flat['beta1'], flat['beta2'] = params['betas']
        metadata[name] = ' '.join(['op=' + kind.__name__.lower()] + ['%s=%s' % (k, text(v)) for k, v in flat.items()])
    save_safetensors(os.path.join(folder, 'optimizers.safetensors'), tensors, metadata)


def initialisation(folder):
    """Each layer's weight and bias: mean, standard deviation and largest magnitude over many draws, in this order."""
    layers = {
        'linear_64_32': lambda: torch.nn.Linear(64, 32),
        'linear_3_500': lambda: torch.nn.Linear(3, 500),
        'conv2d_1_32_3': lambda: torch.nn.Conv2d(1, 32, 3),
        'conv2d_32_64_5': lambda: torch.nn.Conv2d(32, 64, 5),
        'conv2d_8_16_3_groups_4': lambda: torch.nn.Conv2d(8, 16, 3, groups=4),
        'conv2d_4_6_2x5': lambda: torch.nn.Conv2d(4, 6, (2, 5)),
    }
    torch.manual_seed(0)
    tensors = {}
    for name, make_layer in layers.items():
        drawn = {'weight': [], 'bias': []}
        count = 0
        while count < 200000:
            layer = make_layer()
            drawn['weight'].append(layer.weight.detach().double().flatten())
            drawn['bias'].append(layer.bias.detach().double().flatten())
            count += layer.weight.numel()
        for which, values in drawn.items():
            values = torch.cat(values)
            tensors['%s/%s' % (name, which)] = torch.stack([values.mean(), values.std(), values.abs().max()])
    save_safetensors(os.path.join(folder, 'initialisation.safetensors'), tensors, {'torch': torch.__version__, 'cases': ' '.join(layers)})


def make(folder):
    optimizers(folder)
    initialisation(folder)
