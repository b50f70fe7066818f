"""torch.koine: operators that the device does not have, which run on the CPU.

TORCH_KOINE_FALLBACK in the environment is the mode at the start: warn (the default), silent or error.
"""
import os

import torch

_ops = torch.ops.koine
_modes = ('warn', 'silent', 'error')


class Fallback(tuple):
    """(calls, seconds)"""
    calls = property(lambda self: self[0])
    seconds = property(lambda self: self[1])


def fallbacks():
    """What ran on the CPU so far: {'aten::topk.values': (calls, seconds)}, the longest first. Seconds include the
    copies of the tensors and the waiting for the device."""
    seconds = _ops.fallback_seconds()
    calls = _ops.fallback_calls()
    return {name: Fallback((calls[name], seconds[name])) for name in sorted(seconds, key=lambda n: -seconds[n])}


def reset_fallbacks():
    """Forgets the figures; each operator warns again."""
    _ops.forget_fallbacks()


def set_fallback_mode(mode):
    """'warn': a warning at the first call of each operator; 'silent': none; 'error': such a call is an error. Returns
    the previous mode."""
    if mode not in _modes:
        raise ValueError('the mode of fallbacks is one of %s, not %r' % (', '.join(map(repr, _modes)), mode))
    return _modes[_ops.exchange_fallback_mode(_modes.index(mode))]


if os.environ.get('TORCH_KOINE_FALLBACK'):
    set_fallback_mode(os.environ['TORCH_KOINE_FALLBACK'])
