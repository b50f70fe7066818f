#!/usr/bin/env python3
"""Prints PyTorch's public names of layers, functions, optimizers, schedules and tensor methods: tools/torch_names.txt.

    python3 tools/torch_names.py > tools/torch_names.txt

tools/operators.py compares them with Koine's. It needs PyTorch."""
import inspect

import torch
import torch.nn.functional
import torch.nn.init
import torch.nn.utils
import torch.optim.lr_scheduler

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


def main():
    print('# PyTorch %s. Made by tools/torch_names.py.' % torch.__version__.split('+')[0])
    for title, names in (('torch.nn', public(torch.nn, [inspect.isclass])),
                         ('torch.nn.functional', public(torch.nn.functional, [is_function])),
                         ('torch.nn.init', public(torch.nn.init, [is_function])),
                         ('torch.nn.utils', public(torch.nn.utils, [is_function])),
                         ('torch.optim', public(torch.optim, [inspect.isclass])),
                         ('torch.optim.lr_scheduler', public(torch.optim.lr_scheduler, [inspect.isclass])),
                         ('torch.Tensor', methods())):
        print('\n[%s]' % title)
        for name in names:
            print(name)


if __name__ == '__main__':
    main()
