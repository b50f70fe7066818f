"""Reads safetensors files as dictionaries of torch tensors, without other packages; compares tensors."""
import json
import math
import os
import struct

import torch

DTYPES = {'F64': torch.float64, 'F32': torch.float32, 'F16': torch.float16, 'BF16': torch.bfloat16,
          'I64': torch.int64, 'I32': torch.int32, 'U8': torch.uint8, 'BOOL': torch.bool}


def read_tensors(path):
    with open(path, 'rb') as file:
        header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        data = bytearray(os.fstat(file.fileno()).st_size - file.tell())
        file.readinto(data)
    tensors = {}
    for name, entry in header.items():
        if name == '__metadata__':
            continue
        begin, end = entry['data_offsets']
        dtype = DTYPES[entry['dtype']]
        flat = torch.frombuffer(data, dtype=dtype, count=math.prod(entry['shape']), offset=begin) if end > begin else \
            torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(entry['shape']).clone()  # its own memory, with the peer's alignment
    return tensors


def difference(ours, theirs):
    """The largest difference, relative to the largest magnitude; infinite if only one of two elements is finite."""
    if list(ours.shape) != list(theirs.shape):
        return math.inf
    ours, theirs = ours.double(), theirs.double()
    finite = torch.isfinite(theirs)
    if not torch.equal(finite, torch.isfinite(ours)):
        return math.inf
    ours, theirs = ours[finite], theirs[finite]
    if theirs.numel() == 0:
        return 0.0
    scale = theirs.abs().max().item()
    apart = (ours - theirs).abs().max().item()
    return apart / scale if scale > 0 else apart
