"""Averages of parameters over training, and their schedule."""
import math

import numpy
import pytest

import koine
from koine import nn, optim
from koine.optim.swa_utils import (SWALR, AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn, get_swa_avg_fn,
                                   get_swa_multi_avg_fn, update_bn)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        return self.norm(self.fc(x))


def change(net):
    """Other values; the weight of them."""
    with koine.no_grad():
        for one in net.parameters():
            one.copy_(koine.randn(*one.shape))
        net.norm.running_mean.copy_(koine.randn(2))
        net.norm.num_batches_tracked += 5
    return net.fc.weight.numpy() if not net.fc.weight.requires_grad else net.fc.weight.detach().numpy()


@pytest.mark.parametrize('options, step', [
    ({}, lambda a, p, n: a + (p - a) / (n + 1)),
    ({'avg_fn': get_swa_avg_fn()}, lambda a, p, n: a + (p - a) / (n + 1)),
    ({'multi_avg_fn': get_swa_multi_avg_fn()}, lambda a, p, n: a + (p - a) / (n + 1)),
    ({'multi_avg_fn': get_ema_multi_avg_fn(0.9)}, lambda a, p, n: 0.9 * a + 0.1 * p),
    ({'avg_fn': get_ema_avg_fn(0.5)}, lambda a, p, n: 0.5 * a + 0.5 * p),
    ({'avg_fn': lambda a, p, n: p * n}, lambda a, p, n: p * n)])
def test_averages(options, step):
    net = Net()
    averaged = AveragedModel(net, **options)
    assert list(averaged.state_dict())[:2] == ['n_averaged', 'module.fc.weight']
    expected = None
    for i in range(4):
        weight = change(net)
        averaged.update_parameters(net)
        expected = weight if i == 0 else step(expected, weight, i)
        numpy.testing.assert_allclose(averaged.module.fc.weight.detach().numpy(), expected, rtol=1e-5, atol=1e-6)
        assert averaged.n_averaged.item() == i + 1
    assert koine.equal(averaged.module.norm.running_mean, net.norm.running_mean)
    x = koine.randn(3, 2)
    assert koine.equal(averaged.eval()(x), averaged.module(x))


def test_averages_of_buffers():
    net = Net()
    averaged = AveragedModel(net, use_buffers=True)
    means, counts = [], []
    for _ in range(3):
        change(net)
        means.append(net.norm.running_mean.numpy())
        counts.append(net.norm.num_batches_tracked.item())
        averaged.update_parameters(net)
    numpy.testing.assert_allclose(averaged.module.norm.running_mean.numpy(), numpy.mean(means, 0), rtol=1e-5)
    assert averaged.module.norm.num_batches_tracked.item() == 9 and counts == [5, 10, 15]


def test_states_of_averages(tmp_path):
    net = Net()
    first, second = AveragedModel(net), AveragedModel(net)
    for _ in range(2):
        change(net)
        first.update_parameters(net)
    first.save(tmp_path / 'average.safetensors')
    for restore in (lambda: second.load_state_dict(first.state_dict()),
                    lambda: second.load(tmp_path / 'average.safetensors')):
        second.update_parameters(net)
        restore()
        assert second.n_averaged.item() == 2
    change(net)
    first.update_parameters(net)
    second.update_parameters(net)
    assert koine.equal(first.module.fc.weight, second.module.fc.weight) and second.n_averaged.item() == 3
    with pytest.raises(ValueError, match='exclude each other'):
        AveragedModel(net, avg_fn=get_swa_avg_fn(), multi_avg_fn=get_swa_multi_avg_fn())
    for wrong in (get_ema_avg_fn, get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match='decay is from 0 to 1, not 1.5'):
            wrong(1.5)


def test_statistics_anew():
    net = Net()
    averaged = AveragedModel(net)
    averaged.update_parameters(net)
    x = koine.randn(32, 2) * 3 + 1
    loader = koine.data.DataLoader(koine.data.TensorDataset(x), 8)
    update_bn(loader, averaged)
    features = averaged.module.fc(x).detach().numpy()
    numpy.testing.assert_allclose(averaged.module.norm.running_mean.numpy(), features.mean(0), rtol=1e-4, atol=1e-5)
    variances = features.reshape(4, 8, 2).var(1, ddof=1).mean(0)
    numpy.testing.assert_allclose(averaged.module.norm.running_var.numpy(), variances, rtol=1e-4)
    assert net.norm.running_mean.tolist() == [0, 0]


def test_the_schedule():
    weights = [nn.Parameter(koine.ones(1)) for _ in range(2)]
    optimizer = optim.SGD([{'params': weights[0]}, {'params': weights[1], 'lr': 0.5}], lr=1.0)
    before, schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5), SWALR(optimizer, [0.1, 0.2], anneal_epochs=4)
    assert schedule.get_last_lr() == [1.0, 0.5] and schedule.last_epoch == 0
    before.step()
    for i in range(1, 7):
        schedule.step()
        share = (1 - math.cos(math.pi * min(i / 4, 1))) / 2
        expected = [0.1 * share + 0.5 * (1 - share), 0.2 * share + 0.25 * (1 - share)]
        assert schedule.get_last_lr() == pytest.approx(expected)
    assert optimizer.param_groups[0]['lr'] == pytest.approx(0.1)


def test_states_of_the_schedule(tmp_path):
    def make(epochs=4):
        optimizer = optim.SGD([nn.Parameter(koine.ones(1))], lr=1.0)
        return optimizer, SWALR(optimizer, 0.2, epochs, 'linear')

    (optimizer, schedule), (other_optimizer, other) = make(), make(9)
    rates = []
    for _ in range(5):
        schedule.step()
        rates.append(optimizer.lr)
    assert rates == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.2])
    _, schedule = make()
    schedule.step()
    schedule.save(tmp_path / 'schedule')
    for restore in (lambda: other.load_state_dict(schedule.state_dict()), lambda: other.load(tmp_path / 'schedule')):
        restore()
        other_optimizer.lr = 0.8
        other.step()
        assert other_optimizer.lr == pytest.approx(0.6) and other.last_epoch == 2
    assert make(0)[0].lr == 0.2
    net = nn.Linear(1, 1)
    with pytest.raises(TypeError, match='SWALR is a schedule of Python'):
        koine.Trainer(net, optim.SGD(net.parameters(), lr=1), scheduler=schedule)
    for wrong, words in (({'swa_lr': [1, 2]}, '2 numbers for 1 groups'), ({'anneal_strategy': 'sin'}, "not 'sin'"),
                         ({'anneal_epochs': -1}, '0 or more, not -1')):
        with pytest.raises(ValueError, match=words):
            SWALR(optimizer, **{'swa_lr': 0.1, **wrong})
