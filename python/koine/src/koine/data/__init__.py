"""Datasets, samplers, and the loader, whose worker threads are the library's: torch.utils.data."""
from ._collate import default_collate as default_collate
from ._collate import default_convert as default_convert
from ._datasets import MNIST as MNIST
from ._datasets import ChainDataset as ChainDataset
from ._datasets import ConcatDataset as ConcatDataset
from ._datasets import Dataset as Dataset
from ._datasets import IterableDataset as IterableDataset
from ._datasets import StackDataset as StackDataset
from ._datasets import Subset as Subset
from ._datasets import TensorDataset as TensorDataset
from ._distributed import DistributedSampler as DistributedSampler
from ._loader import DataLoader as DataLoader
from ._loader import get_worker_info as get_worker_info
from ._samplers import BatchSampler as BatchSampler
from ._samplers import RandomSampler as RandomSampler
from ._samplers import Sampler as Sampler
from ._samplers import SequentialSampler as SequentialSampler
from ._samplers import SubsetRandomSampler as SubsetRandomSampler
from ._samplers import WeightedRandomSampler as WeightedRandomSampler
from ._splits import random_split as random_split

__all__ = ['BatchSampler', 'ChainDataset', 'ConcatDataset', 'DataLoader', 'Dataset', 'DistributedSampler',
           'IterableDataset', 'MNIST', 'RandomSampler', 'Sampler', 'SequentialSampler', 'StackDataset', 'Subset',
           'SubsetRandomSampler', 'TensorDataset', 'WeightedRandomSampler', 'default_collate', 'default_convert',
           'get_worker_info', 'random_split']
