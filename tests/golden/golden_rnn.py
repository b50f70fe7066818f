"""rnn.safetensors and rnn_modules.safetensors: recurrent layers of one direction, and cells. The input and the weights
are those of torch's functions; lengths are those of packed sequences."""
import os

import torch
from golden_file import GoldenFile, save_safetensors
from torch import nn

MODULES = {'rnn_tanh': (lambda i, h, **k: nn.RNN(i, h, **k), 1),
           'rnn_relu': (lambda i, h, **k: nn.RNN(i, h, nonlinearity='relu', **k), 1), 'gru': (nn.GRU, 3),
           'lstm': (nn.LSTM, 4)}
CELLS = {'rnn_tanh_cell': torch.rnn_tanh_cell, 'rnn_relu_cell': torch.rnn_relu_cell, 'gru_cell': torch.gru_cell,
         'lstm_cell': torch.lstm_cell}


def layer(operator, reverse):
    """A function of the operator's inputs that calls PyTorch's layer; a reversed layer is the second direction of a
    bidirectional one."""
    make, _ = MODULES[operator]

    def run(x, weight_ih, weight_hh, bias_ih=None, bias_hh=None, h0=None, *rest):
        c0, weight_hr, lengths = (list(rest) + [None] * 3)[:3] if operator == 'lstm' else \
            (None, None, (list(rest) + [None])[0])
        hidden = weight_hh.shape[0] // MODULES[operator][1]
        options = {'proj_size': weight_hr.shape[0]} if weight_hr is not None else {}
        module = make(x.shape[2], hidden, bias=bias_ih is not None, bidirectional=reverse, **options).double()
        suffix = '_l0_reverse' if reverse else '_l0'
        values = {'weight_ih': weight_ih, 'weight_hh': weight_hh, 'bias_ih': bias_ih, 'bias_hh': bias_hh,
                  'weight_hr': weight_hr}
        parameters = {name + suffix: value for name, value in values.items() if value is not None}
        states = [t for t in (h0, c0) if t is not None]
        if operator == 'lstm' and h0 is not None and c0 is None:
            states.append(torch.zeros(x.shape[1], hidden, dtype=x.dtype))
        states = [torch.stack([torch.zeros_like(t), t] if reverse else [t]) for t in states]
        data = x
        if lengths is not None:
            data = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        arguments = (data,) + ((tuple(states) if operator == 'lstm' else states[0],) if states else ())
        output, last = torch.func.functional_call(module, parameters, arguments)
        if lengths is not None:
            output, _ = nn.utils.rnn.pad_packed_sequence(output, total_length=x.shape[0])
        last = last if operator == 'lstm' else (last,)
        return (output[..., -(output.shape[2] // 2):] if reverse else output, *(t[-1] for t in last))
    return run


def layers(f):
    for operator, (_, gates) in MODULES.items():
        def tensors(steps, batch, inputs, hidden, outputs=None):
            outputs = outputs or hidden
            return [f.uniform(steps, batch, inputs), f.uniform(gates * hidden, inputs),
                    f.uniform(gates * hidden, outputs), f.uniform(gates * hidden), f.uniform(gates * hidden),
                    f.uniform(batch, outputs)]

        def add(name, inputs, reverse=False):
            f.listed('%s_%s' % (operator, name), operator, inputs, layer(operator, reverse), reverse=reverse, terms=40)
        more = lambda batch, hidden: [f.uniform(batch, hidden), None] if operator == 'lstm' else []
        lengths = torch.tensor([2, 5, 1])
        add('plain', tensors(3, 2, 4, 5)[:3])
        add('states', tensors(3, 2, 4, 5) + more(2, 5))
        add('reverse', tensors(3, 2, 4, 5) + more(2, 5), reverse=True)
        add('lengths', tensors(5, 3, 2, 4) + more(3, 4) + [lengths])
        add('lengths_reverse', tensors(5, 3, 2, 4) + more(3, 4) + [lengths], reverse=True)
        add('one_step', tensors(1, 1, 1, 1)[:5])
        large = tensors(2, 2, 2, 3)
        large[0] = large[0] * 32  # the gates saturate
        add('large', large)
        hurt = tensors(3, 4, 2, 3)
        hurt[0][0, 0, 0] = float('inf')
        hurt[0][1, 1, 1] = float('nan')
        hurt[0][0, 2, 0] = -float('inf')
        hurt[0][2, 3, :] = -0.0
        f.listed('%s_special' % operator, operator, hurt, layer(operator, False), gradient=False)
        if operator == 'lstm':
            x = tensors(4, 3, 2, 5, 3)
            add('projected', x + [f.uniform(3, 5), f.uniform(3, 5)])
            add('projected_lengths', x + [f.uniform(3, 5), f.uniform(3, 5), torch.tensor([4, 2, 3])], reverse=True)


def cells(f):
    for operator, function in CELLS.items():
        gates = MODULES[operator[:-5]][1]
        is_lstm = operator == 'lstm_cell'

        def call(x, weight_ih, weight_hh, bias_ih, bias_hh, h, c=None):
            return function(x, (h, c) if is_lstm else h, weight_ih, weight_hh, bias_ih, bias_hh)
        states = [f.uniform(3, 5)] * (2 if is_lstm else 1)
        f.listed(operator, operator,
                 [f.uniform(3, 4), f.uniform(gates * 5, 4), f.uniform(gates * 5, 5), f.uniform(gates * 5),
                  f.uniform(gates * 5)] + states, call, terms=10)


LAYERS = (('rnn', nn.RNN, dict(num_layers=2, nonlinearity='relu')),
          ('gru', nn.GRU, dict(num_layers=2, bidirectional=True)),
          ('lstm', nn.LSTM, dict(num_layers=2, bidirectional=True, batch_first=True)),
          ('proj', nn.LSTM, dict(num_layers=2, proj_size=2, bias=False)))


def modules(folder):
    """rnn_modules.safetensors: for each layer its state dict, as "NAME.weight_ih_l0", and as "NAME:..." two calls, of
    all states and without any but with lengths: what goes in and comes out, and the gradients of the sum of squares of
    all results."""
    torch.manual_seed(32)
    tensors, lengths = {'lengths': torch.tensor([2, 4, 1])}, torch.tensor([2, 4, 1])
    for name, kind, options in LAYERS:
        module = kind(3, 4, **options)
        tensors.update(('%s.%s' % (name, key), value.clone()) for key, value in module.state_dict().items())
        first = options.get('batch_first', False)
        x = torch.randn((3, 4, 3) if first else (4, 3, 3)).requires_grad_()
        rows = 2 * (2 if options.get('bidirectional') else 1)
        states = [torch.randn(rows, 3, options.get('proj_size', 4)).requires_grad_()]
        if kind is nn.LSTM:
            states.append(torch.randn(rows, 3, 4).requires_grad_())
        for call in ('states', 'lengths'):
            module.zero_grad()
            x.grad = None
            if call == 'states':
                output, last = module(x, tuple(states) if len(states) > 1 else states[0])
            else:
                packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=False)
                packed, last = module(packed)
                output, _ = nn.utils.rnn.pad_packed_sequence(packed, batch_first=first, total_length=4)
            results = (output,) + (last if isinstance(last, tuple) else (last,))
            sum((r * r).sum() for r in results).backward()
            tensors.update(('%s:%s.out%d' % (name, call, i), r) for i, r in enumerate(results))
            tensors['%s:%s.grad_x' % (name, call)] = x.grad.clone()
            tensors.update(('%s:%s.grad.%s' % (name, call, key), p.grad.clone())
                           for key, p in module.named_parameters())
        tensors['%s:x' % name] = x
        for i, state in enumerate(states):
            tensors['%s:state%d' % (name, i)] = state
            tensors['%s:grad_state%d' % (name, i)] = state.grad
    save_safetensors(os.path.join(folder, 'rnn_modules.safetensors'), tensors, {'torch': torch.__version__})


def make(folder):
    f = GoldenFile('rnn', 31)
    layers(f)
    cells(f)
    f.save(folder)
    modules(folder)
