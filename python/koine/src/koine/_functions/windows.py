"""Windows of signals, computed in numpy: periodic, as Fourier transforms want them, or symmetric."""
import math

import numpy

from .._dtypes import as_dtype
from .._tensor import tensor


def _window(name, values, arguments='', **settings):
    """values(cycle, **settings) of the place of each element in a cycle, 0 to 1."""

    def window(window_length, periodic=True, *further, dtype=None, device=None, requires_grad=False, **named):
        if len(further) > len(settings) or set(named) - set(settings):
            raise TypeError('%s takes window_length, periodic%s, dtype, device and requires_grad'
                            % (name, ''.join(', ' + one for one in settings)))
        if window_length < 0:
            raise ValueError('%s: window_length must be at least 0, not %d' % (name, window_length))
        kind = as_dtype(dtype or 'float32')
        if not kind.is_floating_point:
            raise TypeError('%s: dtype must be floating, not %s' % (name, kind.name))
        if window_length == 1:
            return tensor([1.0], kind, device, requires_grad)
        cycle = numpy.arange(window_length) / (window_length if periodic else max(window_length - 1, 1))
        found = values(cycle, **{**settings, **dict(zip(settings, further)), **named})
        return tensor(found, kind, device, requires_grad)

    window.__name__ = window.__qualname__ = name
    window.line = 'window_length, periodic=True, %s*, dtype=None, device=None, requires_grad=False' % arguments
    return window


def _hamming(cycle, alpha, beta):
    return alpha - beta * numpy.cos(2 * numpy.pi * cycle)


def _hann(cycle):
    return _hamming(cycle, 0.5, 0.5)


def _blackman(cycle):
    return 0.42 - 0.5 * numpy.cos(2 * numpy.pi * cycle) + 0.08 * numpy.cos(4 * numpy.pi * cycle)


def _bartlett(cycle):
    return 1 - abs(2 * cycle - 1)


def _kaiser(cycle, beta):
    """i0(beta x) / i0(beta), where i0(y) is the mean of exp(y cos(t)) over t: exactly, of these few points."""
    points = 20 + math.ceil(abs(beta) / 2)
    slopes = abs(beta) * numpy.cos(numpy.pi * (numpy.arange(points) + 0.5) / points)
    x = numpy.sqrt(1 - (2 * cycle - 1) ** 2)
    sums = [numpy.exp(numpy.outer(part, slopes) - abs(beta)).sum(1)
            for part in numpy.array_split(x, len(x) // 4096 + 1)]
    return numpy.concatenate(sums) / numpy.exp(slopes - abs(beta)).sum()


hann_window, blackman_window = _window('hann_window', _hann), _window('blackman_window', _blackman)
bartlett_window = _window('bartlett_window', _bartlett)
hamming_window = _window('hamming_window', _hamming, 'alpha=0.54, beta=0.46, ', alpha=0.54, beta=0.46)
kaiser_window = _window('kaiser_window', _kaiser, 'beta=12.0, ', beta=12.0)
