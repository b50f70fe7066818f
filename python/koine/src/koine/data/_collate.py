"""From samples to batches: torch.utils.data.default_collate and default_convert."""
import collections.abc
import numbers

import numpy

from .._device import current_device
from .._ops import function
from .._tensor import Tensor, tensor


def default_collate(batch):
    """A batch of a list of samples: numbers, arrays and tensors become a tensor with one dimension more, on the current
    device; dicts, tuples and lists one of batches; texts stay a list."""
    first = batch[0]
    if isinstance(first, Tensor):
        if any(one.device.type == 'host' for one in batch):  # where nothing is computed
            return tensor(numpy.stack([one.numpy() for one in batch]))
        return function('stack')(list(batch)).to(current_device())
    if isinstance(first, (str, bytes)):  # also those of numpy
        return list(batch)
    if isinstance(first, (numpy.ndarray, numpy.generic)):
        return tensor(numpy.stack(batch))
    if isinstance(first, numbers.Real):
        return tensor(numpy.asarray(batch))
    if isinstance(first, collections.abc.Mapping):
        return {key: default_collate([one[key] for one in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(one) != len(first) for one in batch):
            raise ValueError('default_collate: samples have %s parts' % ' and '.join(
                str(size) for size in sorted({len(one) for one in batch})))
        return _like(first, [default_collate(parts) for parts in zip(*batch)])
    raise TypeError('default_collate: samples are tensors, arrays, numbers, texts, and dicts, tuples and lists of '
                    'them, not %s: give the DataLoader a collate_fn' % type(first).__name__)


def default_convert(data):
    """A sample with tensors in place of arrays."""
    if isinstance(data, (numpy.ndarray, numpy.generic)):
        return tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return {key: default_convert(one) for key, one in data.items()}
    if isinstance(data, (tuple, list)):
        return _like(data, [default_convert(one) for one in data])
    return data


def _like(sequence, parts):
    """A list, a tuple or a named tuple, as the sequence is."""
    if isinstance(sequence, list):
        return parts
    return type(sequence)(*parts) if hasattr(sequence, '_fields') else tuple(parts)
