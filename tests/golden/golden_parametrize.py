"""Parametrized, pruned and fused modules: module_features.safetensors, in float64.

CASE/start/NAME     the state dict at the beginning, PyTorch's names
CASE/in, CASE/gout  input, and the gradient of the output
CASE/out0, ...      outputs of steps in training mode, each followed by a step of SGD (lr 0.05) with that gradient
CASE/eval           the output in evaluation mode afterwards
CASE/end/NAME       the state dict at the end
"""
import os

import numpy as np
import torch
from torch.nn.utils import fusion, parametrizations, prune

from golden_file import save_safetensors

STEPS = 3


def drawn(random, *shape):
    return torch.from_numpy(random.uniform(-1, 1, shape))


def fill(module, random):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(drawn(random, *parameter.shape))
    return module


def put_state(tensors, prefix, module):
    for name, value in module.state_dict().items():
        tensors[prefix + name] = value.detach().clone().contiguous()


def train(tensors, name, module, x, random):
    put_state(tensors, name + '/start/', module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    gout = drawn(random, *module.eval()(x).shape)  # in training mode the pass would be a power iteration
    module.train()
    tensors[name + '/in'], tensors[name + '/gout'] = x, gout
    for step in range(STEPS):
        optimizer.zero_grad()
        y = module(x)
        tensors['%s/out%d' % (name, step)] = y.detach()
        y.backward(gout)
        optimizer.step()
    module.eval()
    tensors[name + '/eval'] = module(x).detach()
    put_state(tensors, name + '/end/', module)


def parametrized(tensors, random):
    def linear():
        return fill(torch.nn.Linear(5, 4, dtype=torch.float64), random)

    def conv():
        return fill(torch.nn.Conv2d(2, 3, 2, dtype=torch.float64), random)

    def transposed():
        return fill(torch.nn.ConvTranspose2d(3, 2, 2, dtype=torch.float64), random)

    norm, spectral = parametrizations.weight_norm, parametrizations.spectral_norm
    vector, image = drawn(random, 6, 5), drawn(random, 2, 2, 4, 4)
    train(tensors, 'weight_linear', norm(linear()), vector, random)
    train(tensors, 'weight_conv_dim1', norm(conv(), dim=1), image, random)
    train(tensors, 'weight_whole', norm(linear(), dim=None), vector, random)
    train(tensors, 'weight_bias', norm(linear(), name='bias', dim=0), vector, random)
    train(tensors, 'spectral_linear', spectral(linear()), vector, random)
    train(tensors, 'spectral_conv', spectral(conv(), n_power_iterations=2, eps=1e-6), image, random)
    train(tensors, 'spectral_transposed', spectral(transposed()), drawn(random, 2, 3, 3, 3), random)
    train(tensors, 'spectral_bias', spectral(linear(), name='bias'), vector, random)
    train(tensors, 'weight_spectral', spectral(norm(linear())), vector, random)


def pruned(tensors, random):
    linear = fill(torch.nn.Linear(6, 5, dtype=torch.float64), random)
    conv = fill(torch.nn.Conv2d(4, 6, 3, dtype=torch.float64), random)
    both = torch.nn.Sequential(fill(torch.nn.Linear(4, 5, dtype=torch.float64), random),
                               fill(torch.nn.Linear(5, 3, dtype=torch.float64), random))
    for name, module in (('linear', linear), ('conv', conv), ('both', both)):
        put_state(tensors, 'prune_%s/start/' % name, module)
    scores = drawn(random, 5, 6)
    tensors['prune_linear/scores'] = scores

    def keep(name, step, module):
        tensors['prune_%s/mask%d' % (name, step)] = module.weight_mask.clone()

    for step, change in enumerate((lambda: prune.l1_unstructured(linear, 'weight', 0.3),
                                   lambda: prune.l1_unstructured(linear, 'weight', 4),
                                   lambda: prune.l1_unstructured(linear, 'weight', 0.5, importance_scores=scores),
                                   lambda: prune.ln_structured(linear, 'weight', 1, 2, 1),
                                   lambda: prune.identity(linear, 'weight'))):
        change()
        keep('linear', step, linear)
    put_state(tensors, 'prune_linear/pruned/', linear)
    prune.remove(linear, 'weight')
    put_state(tensors, 'prune_linear/end/', linear)
    mask = (drawn(random, 6, 4, 3, 3) > -0.5).double()
    tensors['prune_conv/custom'] = mask
    for step, change in enumerate((lambda: prune.ln_structured(conv, 'weight', 2, 1, 0),
                                   lambda: prune.ln_structured(conv, 'weight', 0.5, 2, -3),
                                   lambda: prune.ln_structured(conv, 'weight', 1, float('inf'), 0),
                                   lambda: prune.custom_from_mask(conv, 'weight', mask),
                                   lambda: prune.l1_unstructured(conv, 'weight', 0.25))):
        change()
        keep('conv', step, conv)
    for step, amount in enumerate((7, 0.5)):
        prune.global_unstructured([(both[0], 'weight'), (both[1], 'weight')], prune.L1Unstructured, amount=amount)
        keep('both', 2 * step, both[0])
        keep('both', 2 * step + 1, both[1])


def fused(tensors, random):
    for name, layer, norm, x, fuse in (
            ('fuse_conv', torch.nn.Conv2d(2, 3, 2, bias=False), torch.nn.BatchNorm2d(3, eps=1e-3), (2, 2, 4, 4),
             fusion.fuse_conv_bn_eval),
            ('fuse_transposed', torch.nn.ConvTranspose1d(2, 3, 2), torch.nn.BatchNorm1d(3, affine=False), (2, 2, 4),
             lambda layer, norm: fusion.fuse_conv_bn_eval(layer, norm, transpose=True)),
            ('fuse_linear', torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), (5, 4), fusion.fuse_linear_bn_eval)):
        layer, norm = fill(layer.double(), random).eval(), fill(norm.double(), random).eval()
        norm.running_mean.copy_(drawn(random, 3))
        norm.running_var.copy_(drawn(random, 3) + 1.5)
        x = drawn(random, *x)
        put_state(tensors, name + '/start/0.', layer)
        put_state(tensors, name + '/start/1.', norm)
        made = fuse(layer, norm)
        put_state(tensors, name + '/end/', made)
        tensors[name + '/in'], tensors[name + '/out'] = x, made(x).detach()
        assert torch.allclose(made(x), norm(layer(x)))


def make(folder):
    torch.manual_seed(7)
    tensors, random = {}, np.random.RandomState(77)
    parametrized(tensors, random)
    pruned(tensors, random)
    fused(tensors, random)
    save_safetensors(os.path.join(folder, 'module_features.safetensors'), tensors, {'torch': torch.__version__})
