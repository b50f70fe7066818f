"""koine.data under the name that it has in PyTorch."""
from ..data import MNIST as MNIST
from ..data import ConcatDataset as ConcatDataset
from ..data import DataLoader as DataLoader
from ..data import Dataset as Dataset
from ..data import Subset as Subset
from ..data import TensorDataset as TensorDataset
from ..data import random_split as random_split
