"""Packed sequences. The library's recurrent layers take padded ones and their lengths; a PackedSequence has PyTorch's
layout, steps one after the other without padding, and becomes padded for a layer by an index of its rows."""
import collections

import numpy

from .._ops import function
from .._tensor import Tensor, tensor
from .._tensor.casts import Casts

_Fields = collections.namedtuple('PackedSequence', ('data', 'batch_sizes', 'sorted_indices', 'unsorted_indices'))


class PackedSequence(_Fields, Casts):
    """`data` [rows, *] has the first elements of all sequences, longest first, then the second ones, ...;
    `batch_sizes`, on the host, says how many sequences have a first, a second, ... element; `sorted_indices` which
    sequences of the batch these are, `unsorted_indices` the inverse, both None if the batch was sorted."""

    __slots__ = ()

    def __new__(cls, data, batch_sizes, sorted_indices=None, unsorted_indices=None):
        if sorted_indices is not None and unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        batch_sizes = batch_sizes if isinstance(batch_sizes, Tensor) else tensor(batch_sizes)
        if batch_sizes.device.type != 'host':
            batch_sizes = batch_sizes.host()
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *arguments, **keywords):
        """As Tensor.to, of `data`; the indices go to its device, too."""
        data = self.data.to(*arguments, **keywords)
        if data is self.data:
            return self
        indices = [None if one is None else one.to(data.device) for one in self[2:]]
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self):
        return self.to('cpu')


PackedSequence.__module__ = 'koine.nn.utils.rnn'


class Layout:
    """Where the elements of a batch of sequences lie in a packed and in a padded tensor."""

    def __init__(self, sizes, ranks):
        """`sizes` of the steps; `ranks[i]` is the place of sequence i among those sorted by length."""
        self.sizes, self.ranks = sizes, ranks
        self.present = ranks < sizes[:, None]  # [steps, batch]
        self.lengths = self.present.sum(0)

    @classmethod
    def of_packed(cls, packed):
        sizes = packed.batch_sizes.numpy()
        unsorted = packed.unsorted_indices
        return cls(sizes, numpy.arange(sizes[0]) if unsorted is None else unsorted.numpy())

    def rows(self, missing):
        """[steps, batch]: the row of each element in the packed tensor; `missing` where a sequence has ended."""
        starts = numpy.cumsum(self.sizes) - self.sizes
        return numpy.where(self.present, starts[:, None] + self.ranks, missing)

    def places(self, steps, batch_first):
        """[rows]: the place of each packed row in a padded tensor of so many steps."""
        order, batch = numpy.argsort(self.ranks), len(self.ranks)
        step, rank = numpy.nonzero(numpy.arange(batch) < self.sizes[:, None])
        return order[rank] * steps + step if batch_first else step * batch + order[rank]


def taken(rows, index):
    """Rows of a tensor, as an array of their numbers says, which gives the result's first dimensions."""
    index_ = tensor(numpy.ascontiguousarray(index.reshape(-1)), device=rows.device)
    return function('index_select')(rows, 0, index_).reshape(*index.shape, *rows.shape[1:])


def packed_rows(padded, layout, batch_first):
    """The `data` of a padded tensor."""
    steps = padded.shape[1 if batch_first else 0]
    flat = padded.reshape(padded.shape[0] * padded.shape[1], *padded.shape[2:])
    return taken(flat, layout.places(steps, batch_first))


def invert_permutation(permutation):
    """The index of 0, 1, 2, ... in it; None for None."""
    return None if permutation is None else function('argsort')(permutation)


def apply_packed(layer, input, hx):
    """A recurrent layer's results for a PackedSequence: the output is one, too, and the states are in the order of the
    batch, as hx is."""
    layout, batch_first = Layout.of_packed(input), layer.batch_first
    rows = layout.rows(0)  # what follows a sequence's end has no effect
    padded = taken(input.data, rows.T if batch_first else rows)
    lengths = tensor(layout.lengths, device=input.data.device)
    output, state = layer.forward(padded, hx, lengths)
    return PackedSequence(packed_rows(output, layout, batch_first), *input[1:]), state
