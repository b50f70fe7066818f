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


def coverage():
    """The same as text: a line for each operator that ran on the CPU, with its calls and what they cost."""
    ran = fallbacks()
    if not ran:
        return 'No operator has run on the CPU.'
    lines = ['%-48s %10s %12s' % ('operator on the CPU', 'calls', 'seconds')]
    lines += ['%-48s %10d %12.6f' % (name, *cost) for name, cost in ran.items()]
    lines += ['%-48s %10d %12.6f' % ('total', sum(c.calls for c in ran.values()), sum(c.seconds for c in ran.values()))]
    return '\n'.join(lines)


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
