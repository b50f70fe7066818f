"""torch.nn.utils.rnn: sequences of different lengths, padded and packed. Recurrent layers take both, padded ones with
their lengths."""
import numpy

from ..._bind import tensor_function
from ..._functions import full
from ..._ops import function
from ..._tensor import Tensor, tensor
from .._packed import Layout, PackedSequence, invert_permutation, packed_rows, taken  # noqa: F401

_pad = tensor_function('pad_sequence', 'kn_pad_sequence', 'sequences, batch_first=False, padding_value=0.0')


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side='right'):
    """One tensor of sequences [length, *]: [steps, batch, *], or with batch_first [batch, steps, *]."""
    if padding_side not in ('right', 'left'):
        raise ValueError("pad_sequence: padding_side is 'right' or 'left', not %r" % (padding_side,))
    if padding_side == 'right':
        return _pad(sequences, batch_first, padding_value)
    turned = _pad([one.flip(0) for one in sequences], batch_first, padding_value)
    return turned.flip(1 if batch_first else 0)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """A list of the sequences of a padded tensor."""
    found = []
    for i, length in enumerate(_numbers(lengths).tolist()):
        found.append(padded_sequences[i, :length] if batch_first else padded_sequences[:length, i])
    return found


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """A PackedSequence of padded sequences. They may be in any order with enforce_sorted=False."""
    lengths = _numbers(lengths)
    batch, steps = input.shape[:2] if batch_first else input.shape[1::-1]
    if lengths.shape != (batch,):
        raise ValueError('pack_padded_sequence: lengths has shape %s; the batch has %d sequences' % (
            lengths.shape, batch))
    if batch == 0 or lengths.min() < 1 or lengths.max() > steps:
        raise ValueError('pack_padded_sequence: lengths are 1 to %d, the number of steps, not %s' % (
            steps, lengths.tolist()))
    if enforce_sorted and (lengths[1:] > lengths[:-1]).any():
        raise ValueError('pack_padded_sequence: the lengths %s do not decrease: enforce_sorted=False takes any order'
                         % lengths.tolist())
    order = numpy.argsort(-lengths, kind='stable')
    sizes = (lengths > numpy.arange(lengths.max())[:, None]).sum(1)
    layout = Layout(sizes, numpy.argsort(order))
    indices = () if enforce_sorted else (tensor(order, device=input.device), tensor(layout.ranks, device=input.device))
    return PackedSequence(packed_rows(input, layout, batch_first), tensor(sizes, device='host'), *indices)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """(padded sequences, their lengths), in the order of the batch that was packed; with total_length steps, or as
    many as the longest sequence has."""
    layout, data = Layout.of_packed(sequence), sequence.data
    rows, steps = layout.rows(len(data)), len(layout.sizes)
    if total_length is not None and total_length < steps:
        raise ValueError('pad_packed_sequence: total_length is %d; the longest sequence has %d steps' % (
            total_length, steps))
    rows = numpy.pad(rows, ((0, (total_length or steps) - steps), (0, 0)), constant_values=len(data))
    if (rows == len(data)).any():
        padding = full((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
        data = function('cat')([data, padding])
    return taken(data, rows.T if batch_first else rows), tensor(layout.lengths, device=data.device)


def pack_sequence(sequences, enforce_sorted=True):
    """A PackedSequence of a list of sequences [length, *]."""
    return pack_padded_sequence(pad_sequence(sequences), [len(one) for one in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """A list of the sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def _numbers(lengths):
    lengths = lengths.numpy() if isinstance(lengths, Tensor) else numpy.asarray(lengths)
    return lengths.astype('int64')
