"""Golden cases of normalisations, and a network with them before and after some passes.

norm.safetensors         cases of the operations
norm_weights.safetensors the state dict of a network with BatchNorm2d, BatchNorm1d and LayerNorm after two passes in
                         training, as PyTorch would save it
norm_run.safetensors     what that network makes of an input then: x; train, the output of a further pass in training;
                         eval, of one in evaluation after it; and the buffers after all of it, under their names
"""
import os

import torch
import torch.nn.functional as F

from golden_file import GoldenFile, exact, save_safetensors


def operations(folder):
    f = GoldenFile('norm', 8)

    def batch(name, shape, training=True, running=True, affine=True, second='mean', **params):
        c = shape[1]
        inputs = [f.uniform(*shape, low=-2, high=3), f.uniform(c) if running else None,
                  f.uniform(c, low=0.2, high=2) if running else None, f.uniform(c, low=0.3, high=2) if affine else None,
                  f.uniform(c) if affine else None]

        def run(x, mean, var, weight, bias):
            if mean is None:
                return F.batch_norm(x, None, None, weight, bias, training=training, **params)
            mean, var = mean.detach().clone(), var.detach().clone()
            y = F.batch_norm(x, mean, var, weight, bias, training=training, **params)
            return y, mean if second == 'mean' else var

        reduction = 1
        for size in shape:
            reduction *= size
        f.case('batch_' + name, 'batch_norm', inputs, run, reduction=reduction // c, training=training, second=second,
               **params)

    for second in ('mean', 'var'):
        batch('matrix_' + second, (7, 3), second=second)
        batch('images_' + second, (3, 4, 5, 6), second=second)
        batch('eval_' + second, (3, 4, 5), training=False, second=second)
        batch('momentum_' + second, (4, 3, 2), momentum=0.75, second=second)
    batch('no_running', (5, 3, 4), running=False)
    batch('plain', (5, 3, 4), affine=False)
    batch('plain_eval', (5, 3, 4), affine=False, training=False)
    batch('eps', (5, 3), eps=0.25)
    batch('eval_eps', (1, 3), eps=0.25, training=False)
    batch('one_image', (1, 5, 3, 7))
    batch('volume', (2, 3, 2, 3, 2))

    def layer(name, shape, normalized, affine=True, **params):
        inputs = [f.uniform(*shape, low=-2, high=3)] + [f.uniform(*normalized, low=0.3, high=2) if affine else None,
                                                        f.uniform(*normalized) if affine else None]
        reduction = shape[0] * 2
        for size in normalized:
            reduction *= size
        f.case('layer_' + name, 'layer_norm', inputs, lambda x, w, b: F.layer_norm(x, normalized, w, b, **params),
               reduction=reduction, normalized=normalized, **params)

    layer('matrix', (4, 7), (7,))
    layer('two_dims', (3, 2, 5), (2, 5))
    layer('whole', (3, 5), (3, 5))
    layer('plain', (3, 17), (17,), affine=False)
    layer('eps', (3, 5), (5,), eps=0.25)
    layer('row_of_one', (3, 1), (1,))
    f.save(folder)


def network():
    net = torch.nn.Sequential()
    net.add_module('conv', torch.nn.Conv2d(2, 5, kernel_size=3, bias=False))
    net.add_module('bn', torch.nn.BatchNorm2d(5))
    net.add_module('flatten', torch.nn.Flatten())
    net.add_module('head', torch.nn.Sequential(torch.nn.Linear(45, 6), torch.nn.BatchNorm1d(6, momentum=None),
                                               torch.nn.LayerNorm(6)))
    return net


def module(folder):
    torch.manual_seed(5)
    net = network()
    f = GoldenFile('unused', 9)
    for _ in range(2):
        net(f.uniform(4, 2, 5, 5).float())
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += 0.25 * f.uniform(*parameter.shape).float()
    save_safetensors(os.path.join(folder, 'norm_weights.safetensors'), net.state_dict(), {'format': 'pt'})
    x = f.uniform(4, 2, 5, 5).float()
    net = net.double()
    tensors = {'x': x, 'train': net(x.double()).detach()}
    net.eval()
    tensors['eval'] = net(x.double()).detach()
    tensors.update(net.named_buffers())
    save_safetensors(os.path.join(folder, 'norm_run.safetensors'), tensors, {'torch': torch.__version__})


def make(folder):
    operations(folder)
    module(folder)
