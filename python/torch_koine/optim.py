"""SGD, Adam and AdamW of parameters on the device koine update many tensors in one launch, as with `fused=True`, where
the program sets neither `fused` nor `foreach`."""
import weakref

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

_FUSED = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)
_DTYPES = (torch.float32, torch.float64)
_with_momentum = weakref.WeakKeyDictionary()  # SGD's groups whose `fused` was set here


def _may_fuse(group):
    return (group.get('fused') is None and group.get('foreach') is None and not group.get('differentiable') and
            not isinstance(group['lr'], torch.Tensor) and
            all(p.device.type == 'koine' and p.dtype in _DTYPES for p in group['params']))


def _begins_late(optimizer, group):
    """Do some parameters have momentum and others not yet? PyTorch's fused step wants all or none."""
    return len({'momentum_buffer' in optimizer.state.get(p, {}) for p in group['params'] if p.grad is not None}) > 1


def _before_step(optimizer, args, kwargs):
    for group in _with_momentum.get(optimizer, ()):
        group['fused'] = None if _begins_late(optimizer, group) else True
    if optimizer.state or type(optimizer) not in _FUSED:
        return
    for group in optimizer.param_groups:
        if _may_fuse(group):
            group['fused'] = True
            if group.get('momentum'):
                _with_momentum.setdefault(optimizer, []).append(group)


def register():
    register_optimizer_step_pre_hook(_before_step)
