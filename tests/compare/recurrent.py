"""Recurrent layers and cells, against loops over their formulas."""

import torch

from cases import cases
from draw import Case

GATES = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}


def step(kind, x, h, c, weights):
    """The next state and cell. weights: of the input, of the state, their biases."""
    wi, wh, bi, bh = weights
    a = x @ wi.mT + (bi if bi is not None else 0)
    b = h @ wh.mT + (bh if bh is not None else 0)
    if kind == "lstm":
        i, f, g, o = (a + b).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
    if kind == "gru":
        (ar, az, an), (br, bz, bn) = a.chunk(3, 1), b.chunk(3, 1)
        z = (az + bz).sigmoid()
        return (1 - z) * (an + (ar + br).sigmoid() * bn).tanh() + z * h, c
    return (torch.tanh if kind == "rnn_tanh" else torch.relu)(a + b), c


def run(kind, x, weights, h, c, projection, lengths, reverse):
    """The output of a layer, the last state and the last cell."""
    outputs = [None] * x.shape[0]
    for t in reversed(range(x.shape[0])) if reverse else range(x.shape[0]):
        next_h, next_c = step(kind, x[t], h, c, weights)
        next_h = next_h @ projection.mT if projection is not None else next_h
        goes_on = (t < lengths).unsqueeze(1) if lengths is not None else torch.ones(x.shape[1], 1, dtype=torch.bool)
        outputs[t] = torch.where(goes_on, next_h, torch.zeros_like(next_h))
        h, c = torch.where(goes_on, next_h, h), torch.where(goes_on, next_c, c)
    return (torch.stack(outputs), h) + ((c,) if kind == "lstm" else ())


def sizes(d):
    return d.integer(1, 4), d.integer(0, 5), d.integer(1, 5), d.integer(1, 20)


def weights_of(d, x, features, hidden, outputs, gates):
    weights = [d.like(x, (gates * hidden, n), low=-1, high=1, special=False) for n in (features, outputs)]
    return weights + [d.like(x, (gates * hidden,), special=False) if d.chance(0.6) else None for _ in range(2)]


def zeros(x, *shape):
    return torch.zeros(*shape, dtype=x.dtype)


@cases("rnn_tanh", "rnn_relu", "gru", "lstm")
def layer(d):
    steps, batch, features, hidden = sizes(d)
    is_lstm, reverse = d.name == "lstm", d.chance(0.5)
    outputs = d.integer(1, hidden) if is_lstm and d.chance(0.3) else hidden
    x = d.floats(shape=(steps, batch, features), low=-1, high=1, special=False)
    inputs = [x] + weights_of(d, x, features, hidden, outputs, GATES[d.name])
    inputs.append(d.like(x, (batch, outputs), special=False) if d.chance(0.6) else None)
    if is_lstm:
        inputs.append(d.like(x, (batch, hidden), special=False) if d.chance(0.6) else None)
        inputs.append(d.like(x, (outputs, hidden), special=False) if outputs != hidden else None)
    inputs.append(d.tensor((batch,), torch.int64, 0, steps, special=False) if d.chance(0.5) else None)

    def function(x, wi, wh, bi, bh, h, *rest):
        c, projection, lengths = rest if is_lstm else (None, None, rest[0])
        h = h if h is not None else zeros(x, batch, outputs)
        c = c if c is not None else zeros(x, batch, hidden)
        return run(d.name, x, (wi, wh, bi, bh), h, c, projection, lengths, reverse)
    return Case(inputs, {"reverse": reverse}, function)


@cases("rnn_tanh_cell", "rnn_relu_cell", "gru_cell", "lstm_cell")
def cell(d):
    kind = d.name[:-5]
    _, batch, features, hidden = sizes(d)
    x = d.floats(shape=(batch, features), low=-1, high=1, special=False)
    inputs = [x] + weights_of(d, x, features, hidden, hidden, GATES[kind])
    inputs += [d.like(x, (batch, hidden), special=False) if d.chance(0.6) else None
               for _ in range(2 if kind == "lstm" else 1)]

    def function(x, wi, wh, bi, bh, h, c=None):
        h = h if h is not None else zeros(x, batch, hidden)
        results = step(kind, x, h, c if c is not None else zeros(x, batch, hidden), (wi, wh, bi, bh))
        return results if kind == "lstm" else results[0]
    return Case(inputs, function=function)
