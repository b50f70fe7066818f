"""Datasets cut at random into parts."""
import numpy

from .._c import check, ffi, lib
from .._functions import randint
from ._datasets import Dataset, Subset, TensorDataset, as_dataset
from ._loader import DataLoader


def random_split(dataset, lengths, generator=None):
    """Subsets without common samples, drawn at random with the generator, or as manual_seed says. `lengths` are numbers
    of samples whose sum is that of the dataset, or fractions whose sum is 1."""
    lengths, parts = [float(one) for one in lengths], ffi.new('kn_dataset *[]', max(len(lengths), 1))
    params = ffi.new('kn_random_split_params *', lib.kn_random_split_params_init())
    params.seed = randint(2**62, (), generator=generator).item()
    # What is split are the places of the samples, from which subsets of datasets in Python are made, too.
    places = TensorDataset(numpy.arange(len(as_dataset(dataset))))
    check(lib.kn_random_split_with(places._h, lengths, len(lengths), parts, params))
    return [Subset(dataset, _numbers(ffi.gc(one, lib.kn_dataset_free))) for one in parts[0:len(lengths)]]


def _numbers(handle):
    """The samples of a kn_dataset of whole numbers."""
    dataset = Dataset()
    dataset._handle = handle
    return [number for batch, in DataLoader(dataset, max(len(dataset), 1), device='host') for number in batch.tolist()]
