#!/usr/bin/env python3
"""Prints PyTorch's public names of layers, functions, optimizers, schedules, tensor methods, linear algebra, special
functions and functions of torch that are no methods: tools/torch_names.txt.

    python3 tools/torch_names.py > tools/torch_names.txt

tools/operators.py compares them with Koine's. It needs PyTorch."""
import inspect

import torch
import torch.nn.functional
import torch.nn.init
import torch.nn.utils
import torch.optim.lr_scheduler

# Functions of torch that its documentation describes as creating, drawing or changing tensors. It has hundreds of
# others, most of them internal.
DESCRIBED = {'arange', 'asarray', 'as_tensor', 'bartlett_window', 'bernoulli', 'binomial', 'blackman_window',
             'bucketize', 'can_cast', 'cat', 'column_stack', 'combinations', 'complex', 'concat', 'concatenate',
             'dstack', 'empty', 'empty_like', 'empty_strided', 'eye', 'from_numpy', 'frombuffer', 'full', 'full_like',
             'gradient', 'hamming_window', 'hann_window', 'histogramdd', 'hstack', 'isin', 'kaiser_window', 'linspace',
             'lobpcg', 'logspace', 'multinomial', 'normal', 'ones', 'ones_like', 'pca_lowrank', 'poisson', 'polar',
             'promote_types', 'rand', 'rand_like', 'randint', 'randint_like', 'randn', 'randn_like', 'randperm',
             'range', 'result_type', 'row_stack', 'scalar_tensor', 'searchsorted', 'segment_reduce', 'stack',
             'svd_lowrank', 'tensor', 'trapz', 'tril_indices', 'triu_indices', 'vander', 'vstack', 'where', 'zeros',
             'zeros_like'}

HIDDEN = {'Tensor', 'Any', 'Callable', 'Optional', 'Iterable', 'Sequence', 'Union', 'TypeVar', 'Parameter'}


def public(module, kinds):
    """Functions or classes that are defined in PyTorch and that users call by this module's name."""
    listed = set(getattr(module, '__all__', ()))
    for name in sorted(listed or dir(module)):
        value = getattr(module, name, None)
        of_torch = (getattr(value, '__module__', None) or 'torch').startswith('torch')
        if not name.startswith('_') and name not in HIDDEN and of_torch and any(kind(value) for kind in kinds):
            yield name


def is_function(value):
    return inspect.isroutine(value) or type(value).__name__ == 'boolean_dispatch'


def methods():
    for name in sorted(dir(torch.Tensor)):
        if not name.startswith('_'):
            yield name


def of_torch():
    """Functions of torch that are neither tensor methods nor in torch.nn.functional, and are described."""
    elsewhere = set(methods()) | set(public(torch.nn.functional, [is_function]))
    for name in sorted(set(torch.functional.__all__) | DESCRIBED):
        if name not in elsewhere:
            yield name


def main():
    print('# PyTorch %s. Made by tools/torch_names.py.' % torch.__version__.split('+')[0])
    for title, names in (('torch.nn', public(torch.nn, [inspect.isclass])),
                         ('torch.nn.functional', public(torch.nn.functional, [is_function])),
                         ('torch.nn.init', public(torch.nn.init, [is_function])),
                         ('torch.nn.utils', public(torch.nn.utils, [is_function])),
                         ('torch.optim', public(torch.optim, [inspect.isclass])),
                         ('torch.optim.lr_scheduler', public(torch.optim.lr_scheduler, [inspect.isclass])),
                         ('torch.Tensor', methods()),
                         ('torch', of_torch()),
                         ('torch.linalg', public(torch.linalg, [inspect.isroutine])),
                         ('torch.special', public(torch.special, [inspect.isroutine]))):
        print('\n[%s]' % title)
        for name in names:
            print(name)


if __name__ == '__main__':
    main()
