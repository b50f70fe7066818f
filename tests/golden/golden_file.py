"""A golden file: cases of operations with inputs, outputs and gradients, in the safetensors format.

Tensors are named CASE/in0, CASE/in1, ... (inputs), CASE/out, CASE/out1 (outputs), CASE/gout (the gradient of the first
output) and CASE/grad0, ... (the gradients of the inputs). The metadata holds "cases", the names in order, and for each
case "op=NAME key=value ..." or "operator=NAME parameter=value ..." (golden_ops.c).
"""
import json
import os
import struct

import numpy as np
import torch

DTYPE_NAMES = {'float64': 'F64', 'float32': 'F32', 'float16': 'F16', 'bfloat16': 'BF16', 'int64': 'I64', 'int32': 'I32',
               'int16': 'I16', 'int8': 'I8', 'uint8': 'U8', 'bool': 'BOOL'}


def save_safetensors(path, tensors, metadata):
    """8-byte little-endian length, JSON header padded with blanks to a multiple of 8, then the data without gaps."""
    header = {'__metadata__': metadata}
    blocks = []
    offset = 0
    for name, value in tensors.items():
        value = value.detach() if isinstance(value, torch.Tensor) else torch.from_numpy(value)
        dtype = str(value.dtype).replace('torch.', '')
        array = (value.view(torch.int16) if dtype == 'bfloat16' else value).numpy()  # NumPy has no bfloat16
        block = array.tobytes()  # row-major, also for a 0-dimensional array
        header[name] = {'dtype': DTYPE_NAMES[dtype], 'shape': list(array.shape),
                        'data_offsets': [offset, offset + len(block)]}
        offset += len(block)
        blocks.append(block)
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text)
        for block in blocks:
            file.write(block)


def exact(array):
    """A float64 tensor with values exact in float32."""
    return torch.from_numpy(np.asarray(array, dtype=np.float64).astype(np.float32).astype(np.float64))


def stored(tensor):
    """Inputs are stored as float32, which is exact; everything else is unchanged."""
    if tensor.dtype != torch.float64:
        return tensor.detach()
    narrow = tensor.detach().to(torch.float32)
    assert torch.equal(torch.nan_to_num(narrow.double(), nan=0.5), torch.nan_to_num(tensor.detach(), nan=0.5)), \
        'an input that float32 cannot hold'
    return narrow


class GoldenFile:
    def __init__(self, name, seed):
        self.name = name
        self.random = np.random.RandomState(seed)
        self.tensors = {}
        self.cases = []
        self.metadata = {'torch': torch.__version__}

    def uniform(self, *shape, low=-1.0, high=1.0):
        return exact(self.random.uniform(low, high, shape))

    def distinct(self, *shape, low=-2.0, high=2.0):
        """Distinct values: no ties, and no kink near a finite difference."""
        count = int(np.prod(shape))
        return exact((low + (high - low) * (self.random.permutation(count) + 0.5) / max(count, 1)).reshape(shape))

    def integers(self, low, high, *shape):
        return torch.from_numpy(self.random.randint(low, high, shape).astype(np.int64))

    def listed(self, name, operator, inputs, function, gradient=True, **params):
        """The same for an operator of Koine's list, with its parameters' names.
        `terms`: the length of its longest sum."""
        self.case(name, None, inputs, function, gradient, operator=operator, **params)

    def case(self, name, op, inputs, function, gradient=True, **params):
        """Runs function(*inputs) and its backward pass with random gradients; stores everything."""
        assert name not in self.cases, name
        inputs = [x if x is None else x.clone().requires_grad_(gradient and x.is_floating_point()) for x in inputs]
        outputs = function(*inputs)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        self.cases.append(name)
        self.metadata[name] = ' '.join((['op=' + op] if op else []) +
                                       ['%s=%s' % (key, text(value)) for key, value in params.items()])
        for i, x in enumerate(inputs):
            if x is not None:
                self.tensors['%s/in%d' % (name, i)] = stored(x)
        for i, y in enumerate(outputs):
            self.tensors['%s/out%s' % (name, i or '')] = y.detach().clone()
        if gradient and outputs[0].requires_grad:
            gout = self.uniform(*outputs[0].shape)
            outputs[0].backward(gout)
            self.tensors[name + '/gout'] = stored(gout)
            for i, x in enumerate(inputs):
                if x is not None and x.grad is not None:
                    self.tensors['%s/grad%d' % (name, i)] = x.grad

    def save(self, folder):
        self.metadata['cases'] = ' '.join(self.cases)
        save_safetensors(os.path.join(folder, self.name + '.safetensors'), self.tensors, self.metadata)


def text(value):
    if isinstance(value, (tuple, list)):
        return ','.join(text(v) for v in value)
    if isinstance(value, bool):
        return '1' if value else '0'
    if isinstance(value, float):
        return repr(value)
    return str(value)
