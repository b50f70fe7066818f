"""Samplers, collate functions, and loaders whose batches Python makes."""
import collections
import itertools
import threading

import numpy
import pytest

import koine
from koine import nn
from koine.data import (BatchSampler, DataLoader, IterableDataset, RandomSampler, Sampler, SequentialSampler, Subset,
                        SubsetRandomSampler, TensorDataset, WeightedRandomSampler, default_collate, default_convert)


class Squares(koine.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        if not 0 <= index < 20:
            raise IndexError(index)
        return numpy.full(3, index, numpy.float32), index * index


class Stream(IterableDataset):
    def __init__(self, count, fails_at=None):
        self.count, self.fails_at = count, fails_at

    def __iter__(self):
        for i in range(self.count):
            if i == self.fails_at:
                raise KeyError('sample %d' % i)
            yield numpy.float32(i), i


def numbers(batches):
    return [[int(one) ** 0.5 for one in batch[1].tolist()] for batch in batches]


# --- samplers ---------------------------------------------------------------------------------------------------------


def test_samplers():
    assert list(SequentialSampler(Squares())) == list(range(20)) and len(SequentialSampler('abc')) == 3
    generator = koine.Generator().manual_seed(3)
    for sampler in (RandomSampler(range(8), generator=generator), SubsetRandomSampler(list(range(8)), generator)):
        first, second = list(sampler), list(sampler)
        assert first != second and sorted(first) == sorted(second) == list(range(8)) and len(sampler) == 8
    generator.manual_seed(3)
    assert list(RandomSampler(range(8), generator=generator)) != list(range(8))
    longer = RandomSampler(range(8), num_samples=20)
    order = list(longer)
    assert len(longer) == len(order) == 20 and sorted(order[:8]) == sorted(order[8:16]) == list(range(8))
    assert len(set(order[16:])) == 4
    drawn = list(RandomSampler(range(3), replacement=True, num_samples=50))
    assert len(drawn) == 50 and set(drawn) == {0, 1, 2}
    assert len(RandomSampler([])) == 0 and list(RandomSampler([])) == list(RandomSampler([], True)) == []
    assert sorted(SubsetRandomSampler(['a', 'b'])) == ['a', 'b']
    weighted = list(WeightedRandomSampler([0.0, 1.0, 3.0], 400))
    assert set(weighted) == {1, 2} and 0.65 < weighted.count(2) / 400 < 0.85
    assert sorted(WeightedRandomSampler(koine.tensor([1.0, 0.0, 1.0]), 2, replacement=False)) == [0, 2]
    batches = BatchSampler(range(7), 3, False)
    assert list(batches) == [[0, 1, 2], [3, 4, 5], [6]] and len(batches) == 3
    assert list(BatchSampler(range(7), 3, True)) == [[0, 1, 2], [3, 4, 5]] and len(BatchSampler(range(7), 3, True)) == 2
    koine.manual_seed(5)
    before = list(RandomSampler(range(9)))
    koine.manual_seed(5)
    assert list(RandomSampler(range(9))) == before


def test_wrong_samplers():
    for wrong, words in ((lambda: RandomSampler(range(3), num_samples=0), 'num_samples is a number of 1 or more'),
                         (lambda: WeightedRandomSampler([1.0], 1.5), 'not 1.5'),
                         (lambda: WeightedRandomSampler([[1.0]], 1), '1 dimension, not 2'),
                         (lambda: BatchSampler(range(3), True, False), 'batch_size is a number')):
        with pytest.raises(ValueError, match=words):
            wrong()
    with pytest.raises(NotImplementedError, match='Sampler needs __iter__'):
        iter(Sampler())


@pytest.mark.parametrize('workers', [0, 2])
def test_loaders_with_samplers(workers):
    loader = DataLoader(Squares(), 4, sampler=[7, 3, 3, 19, 0], num_workers=workers)
    assert len(loader) == 2 and numbers(loader) == [[7, 3, 3, 19], [0]] == numbers(loader)
    assert loader.sampler == [7, 3, 3, 19, 0]
    koine.manual_seed(1)
    loader = DataLoader(Squares(), 5, sampler=RandomSampler(Squares()), num_workers=workers)
    first, second = numbers(loader), numbers(loader)
    assert first != second and sorted(sum(first, [])) == sorted(sum(second, [])) == list(range(20))
    orders = [numbers(DataLoader(Squares(), 5, shuffle=True, num_workers=workers,
                                 generator=koine.Generator().manual_seed(seed))) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2] and sorted(sum(orders[0], [])) == list(range(20))


def test_samplers_that_break_their_word():
    class Broken(Sampler):
        def __init__(self, indices, length):
            self.indices, self.length = indices, length

        def __iter__(self):
            return iter(self.indices)

        def __len__(self):
            return self.length

    for sampler, words in ((Broken([1, 2], 3), 'Broken: its length is 3, but it gave 2 indices'),
                           (Broken(itertools.count(), 3), 'gave more indices'),
                           (Broken([1, 20], 2), 'index 1 .* is 20')):
        with pytest.raises(ValueError, match=words):
            list(DataLoader(Squares(), 2, sampler=sampler))


def test_the_trainer_takes_samplers():
    x = koine.randn(64, 2)
    data = TensorDataset(x, (x.sum(1) > 0).long())
    net = nn.Linear(2, 2)
    trainer = koine.Trainer(net, koine.optim.SGD(net.parameters(), lr=0.5), epochs=3, quiet=True)
    trainer.fit(DataLoader(data, 8, sampler=WeightedRandomSampler([1.0] * 64, 32)))
    assert len(trainer.history) == 3
    with pytest.raises(TypeError, match='the trainer and update_bn take loaders whose batches the library makes'):
        trainer.fit(DataLoader(data, 8, collate_fn=default_collate))


# --- collating --------------------------------------------------------------------------------------------------------


def test_default_collate():
    x, y = default_collate([(1, 2.5), (3, 4.5)])
    assert x.dtype is koine.int64 and y.dtype is koine.float64 and y.tolist() == [2.5, 4.5]
    assert default_collate([True, False]).dtype is koine.bool and default_collate(['a', 'b']) == ['a', 'b']
    found = default_collate([{'a': numpy.ones(2, numpy.float32), 'b': ['x', 1]}, {'a': numpy.zeros(2), 'b': ['y', 2]}])
    assert found['a'].tolist() == [[1, 1], [0, 0]] and found['b'][0] == ['x', 'y'] and found['b'][1].tolist() == [1, 2]
    point = collections.namedtuple('point', 'x y')
    made = default_collate([point(numpy.int32(1), koine.ones(2)), point(numpy.int32(2), koine.zeros(2))])
    assert type(made) is point and made.x.dtype is koine.int32 and made.y.shape == (2, 2)
    hosts = default_collate([koine.ones(2, device='host'), koine.zeros(2, device='host')])
    assert hosts.device == koine.current_device() and hosts.tolist() == [[1, 1], [0, 0]]
    assert default_convert({'a': (numpy.ones(1), 'x', 3)})['a'][0].tolist() == [1]
    with pytest.raises(TypeError, match='not object: give the DataLoader a collate_fn'):
        default_collate([object()])
    with pytest.raises(ValueError, match='samples have 1 and 2 parts'):
        default_collate([(1,), (1, 2)])


@pytest.mark.parametrize('workers', [0, 2])
def test_loaders_with_collate(workers):
    threads = set()

    def collate(samples):
        threads.add(threading.get_ident())
        return {'sum': sum(label for _, label in samples), 'x': koine.tensor([x[0] for x, _ in samples])}

    loader = DataLoader(Squares(), 8, collate_fn=collate, num_workers=workers, drop_last=True)
    batches = list(loader)
    assert len(loader) == len(batches) == 2 and batches[1]['sum'] == sum(i * i for i in range(8, 16))
    assert batches[1]['x'].tolist() == list(range(8, 16)) and batches[1]['x'].device == koine.current_device()
    assert (threading.get_ident() in threads) == (workers == 0)
    shuffled = DataLoader(Squares(), 5, shuffle=True, collate_fn=default_collate, num_workers=workers, seed=3)
    first, second = numbers(shuffled), numbers(shuffled)
    assert first != second and sorted(sum(first, [])) == list(range(20))
    again = DataLoader(Squares(), 5, shuffle=True, collate_fn=default_collate, seed=3)
    assert numbers(again) == first != numbers(DataLoader(Squares(), 5, shuffle=True, collate_fn=default_collate))
    on_host = DataLoader(Squares(), 5, collate_fn=default_collate, device='host', num_workers=workers)
    assert all(one.device.type == 'host' for one in next(iter(on_host)))
    with pytest.raises(KeyError, match='bad'):
        def fails(samples):
            raise KeyError('bad')
        list(DataLoader(Squares(), 5, collate_fn=fails, num_workers=workers))


@pytest.mark.parametrize('workers', [0, 2])
def test_loaders_with_batch_samplers(workers):
    batches = [[1, 2, 3], [], [19], [0, 0]]
    loader = DataLoader(Squares(), batch_sampler=[one for one in batches if one], num_workers=workers)
    assert len(loader) == 3 and numbers(loader) == [[1, 2, 3], [19], [0, 0]] and isinstance(next(iter(loader)), tuple)
    sampler = BatchSampler(SubsetRandomSampler(range(10)), 4, False)
    found = numbers(DataLoader(TensorDataset(koine.arange(20), koine.arange(20) ** 2), batch_sampler=sampler))
    assert [len(one) for one in found] == [4, 4, 2] and sorted(sum(found, [])) == list(range(10))
    endless = DataLoader(Squares(), batch_size=2, sampler=itertools.cycle([4, 5, 6]), num_workers=workers)
    assert numbers(itertools.islice(endless, 3)) == [[4, 5], [6, 4], [5, 6]]
    single = DataLoader(TensorDataset(koine.ones(4, 2)), batch_sampler=[[0, 1]])
    assert [one.shape for one in next(iter(single))] == [(2, 2)]


@pytest.mark.parametrize('workers', [0, 2])
def test_iterable_datasets(workers):
    assert numbers([(None, koine.tensor([i * i for i in y.tolist()])) for _, y in DataLoader(
        Stream(5), 2, num_workers=workers)]) == [[0, 1], [2, 3], [4]]
    assert [y.tolist() for _, y in DataLoader(Stream(5), 2, drop_last=True, num_workers=workers)] == [[0, 1], [2, 3]]
    samples = list(DataLoader(Stream(3), batch_size=None, num_workers=workers))
    assert [(x.item(), y) for x, y in samples] == [(0, 0), (1, 1), (2, 2)] and isinstance(samples[0][0], koine.Tensor)
    with pytest.raises(KeyError, match='sample 3'):
        list(DataLoader(Stream(5, fails_at=3), 2, num_workers=workers))
    with pytest.raises(TypeError, match='Stream has no length'):
        len(DataLoader(Stream(5), 2))
    with pytest.raises(TypeError, match='no samples by index'):
        Stream(5)[0]

    class Sized(Stream):
        def __len__(self):
            return self.count

    assert len(DataLoader(Sized(5), 2)) == 3 and len(DataLoader(Sized(5), batch_size=None)) == 5


def test_samples_without_batches():
    found = list(DataLoader(Squares(), batch_size=None, sampler=[3, 1]))
    assert [(x.tolist(), y) for x, y in found] == [([3, 3, 3], 9), ([1, 1, 1], 1)]
    assert list(DataLoader(Subset(Squares(), [2]), batch_size=None, collate_fn=lambda sample: sample[1])) == [4]


def test_what_excludes_each_other():
    for given, words in (({'shuffle': True, 'sampler': [1]}, 'that of sampler: leave out shuffle'),
                         ({'batch_sampler': [[1]], 'batch_size': 2}, 'leave out batch_size'),
                         ({'batch_sampler': [[1]], 'shuffle': True, 'drop_last': True}, 'leave out shuffle, drop_last'),
                         ({'batch_size': None, 'drop_last': True}, 'leave out drop_last'),
                         ({'collate_fn': default_collate, 'num_workers': -1}, 'num_workers is a number of 0 or more'),
                         ({'collate_fn': default_collate, 'batch_size': 0}, 'batch_size is a number of 1 or more')):
        with pytest.raises(ValueError, match=words):
            DataLoader(Squares(), **given)
    for name in ('shuffle', 'sampler', 'batch_sampler'):
        with pytest.raises(ValueError, match='an order of its own: leave out ' + name):
            DataLoader(Stream(3), **{name: [[1]]})


# --- samples of other kinds -------------------------------------------------------------------------------------------

Pair = collections.namedtuple('Pair', 'left right')


class Samples(koine.data.Dataset):
    """made(i) for each i."""

    def __init__(self, made, count=5):
        self.made, self.count = made, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.made(range(self.count)[index])


def numbered(i):
    return {'image': numpy.full((2, 2), i, numpy.float32), 'label': i, 'name': 'n%d' % i, 'box': (i, [i, i + 1.5])}


@pytest.mark.parametrize('workers', [0, 2])
def test_samples_that_are_dicts(workers):
    loader = DataLoader(Samples(numbered), batch_size=2, num_workers=workers)
    batches = list(loader)
    assert len(loader) == len(batches) == 3 and list(batches[1]) == ['image', 'label', 'name', 'box']
    assert batches[1]['image'].shape == (2, 2, 2) and batches[1]['image'].dtype is koine.float32
    assert batches[1]['label'].tolist() == [2, 3] and batches[1]['name'] == ['n2', 'n3']
    assert batches[2]['name'] == ['n4']
    first, (second, third) = batches[1]['box']
    assert (first.tolist(), second.tolist(), third.tolist()) == ([2, 3], [2, 3], [3.5, 4.5])
    shuffled = DataLoader(Samples(numbered), 5, shuffle=True, num_workers=workers, seed=2)
    assert sorted(next(iter(shuffled))['label'].tolist()) == list(range(5))
    assert next(iter(DataLoader(Samples(numbered), 2, sampler=[4, 1])))['name'] == ['n4', 'n1']


def test_samples_of_other_kinds():
    assert list(DataLoader(Samples(str), 2)) == [['0', '1'], ['2', '3'], ['4']]
    assert list(DataLoader(Samples(lambda i: numpy.str_(i)), 5)) == [['0', '1', '2', '3', '4']]
    texts, counts = next(iter(DataLoader(Samples(lambda i: ('t%d' % i, i)), 2)))
    assert texts == ['t0', 't1'] and counts.tolist() == [0, 1]
    lists = next(iter(DataLoader(Samples(lambda i: [i, i + 10]), 2)))
    assert isinstance(lists, list) and [one.tolist() for one in lists] == [[0, 1], [10, 11]]
    pair = next(iter(DataLoader(Samples(lambda i: Pair(i, -i)), 2)))
    assert type(pair) is Pair and pair.right.tolist() == [0, -1]
    halves = next(iter(DataLoader(Samples(lambda i: koine.full((2,), i, dtype='bfloat16')), 2)))
    assert halves[0].dtype is koine.bfloat16 and halves[0].tolist() == [[0, 0], [1, 1]]
    assert list(DataLoader(Samples(numbered, 0), 2)) == []
    with pytest.raises(TypeError, match='give the DataLoader a collate_fn'):
        next(iter(DataLoader(Samples(lambda i: object()), 2)))
    net = nn.Linear(2, 2)
    trainer = koine.Trainer(net, koine.optim.SGD(net.parameters(), lr=0.5), epochs=1, quiet=True)
    with pytest.raises(TypeError, match='samples that are arrays, numbers, or tuples of them'):
        trainer.fit(DataLoader(Samples(numbered), 2))


def test_parts_of_datasets_of_dicts():
    source = Samples(numbered)
    parts = koine.data.random_split(source, [3, 2])
    found = [next(iter(DataLoader(part, 5)))['label'].tolist() for part in parts]
    assert found == [part.indices for part in parts] and sorted(sum(found, [])) == list(range(5))
    both = source + Subset(source, [4, 0])
    assert next(iter(DataLoader(both, 9)))['name'] == ['n0', 'n1', 'n2', 'n3', 'n4', 'n4', 'n0']


def test_the_first_sample_is_asked_for_once():
    asked = []

    def made(i):
        asked.append(i)
        return numpy.float32(i)

    loader = DataLoader(Samples(made), 5)
    assert asked == [0] and isinstance(loader._batches, koine.data._batches.InLibrary)
    assert next(iter(loader))[0].tolist() == list(range(5)) and asked == [0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize('workers', [0, 2])
def test_lists_as_datasets(workers):
    rows = [(numpy.full(2, i, numpy.float32), i) for i in range(5)]
    loader = DataLoader(rows, batch_size=2, num_workers=workers, worker_init_fn=print, persistent_workers=workers > 0,
                        timeout=0, multiprocessing_context=None, pin_memory_device='', prefetch_factor=None)
    assert loader.dataset is rows and len(loader) == 3
    assert [y.tolist() for _, y in loader] == [[0, 1], [2, 3], [4]]
    assert isinstance(loader._batches, koine.data._batches.InLibrary)
    parts = koine.data.random_split(rows, [2, 3])
    assert parts[0].dataset is rows and sorted(parts[0].indices + parts[1].indices) == list(range(5))
    both = koine.data.ConcatDataset([rows, Subset(rows, [3])])
    assert both.datasets[0] is rows and [y.tolist() for _, y in DataLoader(both, 6)] == [[0, 1, 2, 3, 4, 3]]
    texts = DataLoader(['a', 'b', 'c'], 2, shuffle=None, num_workers=workers)
    assert list(texts) == [['a', 'b'], ['c']]
    assert koine.data.get_worker_info() is None
    assert [one.device.type for one in TensorDataset(koine.ones(2), koine.ones(2, 3)).tensors] == ['host'] * 2
