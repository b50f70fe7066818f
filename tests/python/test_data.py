"""Datasets, those made of others, and the loader."""
import numpy
import pytest

import koine
from koine.data import (ChainDataset, ConcatDataset, DataLoader, IterableDataset, StackDataset, Subset, TensorDataset,
                        random_split)


class Squares(koine.data.Dataset):
    def __init__(self, fails_at=None):
        self.fails_at = fails_at

    def __len__(self):
        return 20

    def __getitem__(self, index):
        if index == self.fails_at:
            raise ValueError('sample %d is bad' % index)
        return numpy.full(3, index, numpy.float32), index * index


@pytest.mark.parametrize('workers', [0, 2])
def test_loader(workers):
    loader = DataLoader(Squares(), 8, num_workers=workers)
    batches = list(loader)
    assert len(loader) == 3 and [len(x) for x, _ in batches] == [8, 8, 4]
    assert koine.cat([y for _, y in batches]).tolist() == [i * i for i in range(20)]
    x = batches[1][0]
    assert x.dtype is koine.float32 and x.shape == (8, 3) and x[0].tolist() == [8, 8, 8]
    shuffled = DataLoader(Squares(), 5, shuffle=True, num_workers=workers, seed=1)
    first, second = ([y.tolist() for _, y in shuffled] for _ in range(2))
    assert first != second and sorted(sum(first, [])) == sorted(sum(second, [])) == [i * i for i in range(20)]
    with pytest.raises((RuntimeError, ValueError), match='sample 9 is bad'):
        list(DataLoader(Squares(9), 4, num_workers=workers))


def test_datasets():
    x, y = koine.randn(6, 2), numpy.arange(6)
    dataset = TensorDataset(x, y, names=['tokens', 'target'])
    assert len(dataset) == 6 and [name for name, *_ in dataset.fields] == ['tokens', 'target']
    sample, label = dataset[-1]
    numpy.testing.assert_array_equal(sample, x[-1].numpy())
    assert label == 5
    with pytest.raises(IndexError):
        dataset[6]
    with pytest.raises(OSError):
        koine.data.MNIST('/nowhere')


# --- made of others ---------------------------------------------------------------------------------------------------


def labels(dataset, workers=0):
    return [int(one) for _, y in DataLoader(dataset, 4, num_workers=workers) for one in y.tolist()]


def sources():
    """Two datasets of the same samples, one in Python."""
    rows = numpy.arange(20)
    return Squares(), TensorDataset(numpy.repeat(rows[:, None], 3, 1).astype(numpy.float32), rows * rows)


@pytest.mark.parametrize('source', sources())
def test_subsets(source):
    subset = Subset(source, [7, 3, 3, 19])
    assert len(subset) == 4 and subset.dataset is source and subset.indices == [7, 3, 3, 19]
    assert [int(subset[i][1]) for i in (0, 1, -1)] == [49, 9, 361] and subset[3][0].tolist() == [19, 19, 19]
    for workers in (0, 2):
        assert labels(subset, workers) == [49, 9, 9, 361]
    assert labels(Subset(subset, numpy.array([3, 0]))) == [361, 49]
    with pytest.raises(IndexError):
        subset[4]
    with pytest.raises(ValueError, match='index 1 is 20; the dataset has 20 samples'):
        DataLoader(Subset(source, [0, 20]))
    with pytest.raises(TypeError, match='koine.data.Dataset, or what has __len__ and __getitem__, not int'):
        Subset(3, [0])


def test_a_subset_that_changes_samples():
    class Doubled(Subset):
        def __getitem__(self, index):
            x, y = super().__getitem__(index)
            return x, y * 2

    for source in sources():
        assert labels(Doubled(source, [2, 1])) == [8, 2]


def test_concatenations():
    one, other = sources()
    both = ConcatDataset([one, Subset(other, [5, 6]), other])
    assert len(both) == 42 and both.cumulative_sizes == [20, 22, 42]
    assert [int(both[i][1]) for i in (0, 19, 20, 21, 22, -1)] == [0, 361, 25, 36, 0, 361]
    squares = [i * i for i in range(20)]
    assert labels(both, 2) == squares + [25, 36] + squares and labels(one + other) == squares * 2
    for index in (42, -43):
        with pytest.raises(IndexError, match='there are 42'):
            both[index]
    with pytest.raises(ValueError, match='at least one'):
        ConcatDataset([])
    with pytest.raises(TypeError, match='not int'):
        ConcatDataset([one, 3])
    with pytest.raises(ValueError):
        DataLoader(one + TensorDataset(numpy.zeros((2, 4), numpy.float32), numpy.zeros(2, numpy.int64)))


@pytest.mark.parametrize('source', sources())
def test_random_split(source):
    parts = random_split(source, [15, 5, 0], generator=koine.Generator().manual_seed(1))
    assert [len(part) for part in parts] == [15, 5, 0]
    assert sorted(sum((part.indices for part in parts), [])) == list(range(20))
    assert labels(parts[0]) == [i * i for i in parts[0].indices] != sorted(labels(parts[0]))
    generator = koine.Generator().manual_seed(1)
    again, third = (random_split(source, [0.75, 0.25], generator) for _ in range(2))
    assert again[0].indices == parts[0].indices != third[0].indices
    koine.manual_seed(5)
    first = random_split(source, [0.5, 0.5])
    koine.manual_seed(5)
    assert first[1].indices == random_split(source, [0.5, 0.5])[1].indices
    assert [len(part) for part in random_split(source, [1 / 3] * 3)] == [7, 7, 6]
    for wrong, words in [([15, 6], 'sum of the lengths is 21'), ([0.5, 0.6], 'whole numbers, or fractions'),
                         ([], 'number of parts is 0'), ([21, -1], 'must not be negative')]:
        with pytest.raises(ValueError, match=words):
            random_split(source, wrong)
    with pytest.raises(TypeError, match='not int'):
        random_split(2, [1, 1])


def test_the_name_in_pytorch():
    from koine.utils import data
    public = [name for name in vars(koine.data) if name[0] != '_']
    assert 'DataLoader' in public and sorted(koine.data.__all__) == sorted(public)
    assert all(getattr(data, name) is getattr(koine.data, name) for name in public)
    with pytest.raises(TypeError, match='koine.data.Dataset, .*, not map'):
        data.DataLoader(map(int, [1, 2]))


def test_chains():
    class Count(IterableDataset):
        def __init__(self, *numbers):
            self.numbers = numbers

        def __iter__(self):
            return iter(self.numbers)

        def __len__(self):
            return len(self.numbers)

    chain = ChainDataset([Count(1, 2), Count(3)])
    assert list(chain) == [1, 2, 3] and len(chain) == 3
    assert [batch.tolist() for batch, in DataLoader(chain, batch_size=2)] == [[1, 2], [3]]
    with pytest.raises(TypeError, match='ChainDataset is for IterableDatasets, not list: ConcatDataset is for others'):
        ChainDataset([[1, 2]])


def test_stacks():
    numbers, squares = [1.0, 2.0, 3.0], [1.0, 4.0, 9.0]
    pairs = StackDataset(numbers, squares)
    assert len(pairs) == 3 and pairs[2] == (3.0, 9.0)
    first, second = next(iter(DataLoader(pairs, batch_size=2)))
    assert first.tolist() == [1, 2] and second.tolist() == [1, 4]
    named = StackDataset(x=numbers, y=squares)
    assert named[1] == {'x': 2.0, 'y': 4.0}
    assert next(iter(DataLoader(named, batch_size=3)))['y'].tolist() == squares
    for wrong, words in ((lambda: StackDataset(), 'needs datasets'),
                         (lambda: StackDataset(numbers, x=squares), 'by position or by name'),
                         (lambda: StackDataset(numbers, [1]), 'the datasets have 1 and 3 samples')):
        with pytest.raises(ValueError, match=words):
            wrong()
