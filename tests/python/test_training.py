"""Optimizers, schedules, the trainer, files, graphs, the profiler, models."""
import io
import math
import os
import signal
import subprocess
import sys
import time

import numpy
import pytest

import koine
from koine import nn, optim

OPTIMIZERS = sorted(set(optim.SIGNATURES) - {'LBFGS'})


@pytest.mark.parametrize('name', OPTIMIZERS)
def test_optimizer(name):
    w = nn.Parameter(koine.full((3, 2), 5.0))
    optimizer = getattr(optim, name)([w], lr=0.1)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert optimizer.param_groups[0]['lr'] == pytest.approx(0.1)


def test_sgd_by_hand():
    w = nn.Parameter(koine.tensor([1.0, 2.0]))
    optimizer = optim.SGD([w], lr=0.1, momentum=0.9, weight_decay=0.5)
    value, velocity = numpy.array([1.0, 2.0]), None
    for _ in range(3):
        optimizer.zero_grad()
        (w ** 2).sum().backward()
        optimizer.step()
        gradient = 2 * value + 0.5 * value
        velocity = gradient if velocity is None else 0.9 * velocity + gradient
        value = value - 0.1 * velocity
    numpy.testing.assert_allclose(w.detach().numpy(), value, rtol=1e-5)


def test_groups_and_state(tmp_path):
    a, b = nn.Parameter(koine.ones(2)), nn.Parameter(koine.ones(3))
    optimizer = optim.AdamW([{'params': [a], 'lr': 0.5}, {'params': b, 'weight_decay': 0}], lr=0.1, betas=(0.8, 0.9))
    groups = optimizer.param_groups
    assert [group['lr'] for group in groups] == [0.5, 0.1] and groups[1]['betas'] == (0.8, 0.9)
    assert [group['weight_decay'] for group in groups] == [0.01, 0] and groups[1]['params'][0].shape == (3,)
    groups[1]['lr'] = 0.2
    groups[0]['betas'] = (0.7, 0.9)
    assert optimizer.param_groups[1]['lr'] == 0.2 and optimizer.param_groups[0]['betas'] == (0.7, 0.9)
    optimizer.lr = 0.3
    assert optimizer.lr == 0.3
    (a.sum() + b.sum()).backward()
    optimizer.step()
    optimizer.save(tmp_path / 'state.safetensors')
    optimizer.load(tmp_path / 'state.safetensors')
    with pytest.raises(TypeError, match='tensors or dicts'):
        optim.SGD([1, 2])
    with pytest.raises(ValueError):
        optim.SGD([a], lr=-1)
    with pytest.raises(TypeError, match='momentun'):
        optim.SGD([a], momentun=0.9)


@pytest.mark.parametrize('name', ['AdamW', 'SGD', 'Adafactor', 'Rprop'])
def test_an_empty_group(name):
    a, b = nn.Parameter(koine.ones(2, 2)), nn.Parameter(koine.ones(3))
    optimizer = getattr(optim, name)([{'params': [a]}, {'params': [], 'lr': 0.5}, {'params': [b]}], lr=0.1)
    (a.sum() + b.sum()).backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    assert [len(group['params']) for group in optimizer.param_groups] == [1, 0, 1] and a[0, 0].item() < 1 > b[0].item()


def test_text_of_an_optimizer():
    a, b = nn.Parameter(koine.ones(2)), nn.Parameter(koine.ones(1))
    optimizer = optim.Rprop([{'params': [a], 'name': 'a'}, {'params': [b], 'lr': 0.5}])
    assert repr(optimizer) == (
        'Rprop (\nParameter Group 0\n    etas: (0.5, 1.2)\n    lr: 0.01\n    maximize: False\n    name: a\n'
        '    step_sizes: (1e-06, 50.0)\n\nParameter Group 1\n    etas: (0.5, 1.2)\n    lr: 0.5\n    maximize: False\n'
        '    step_sizes: (1e-06, 50.0)\n)')


def test_what_only_the_program_knows_of_a_group():
    a, b, c = (nn.Parameter(koine.ones(2)) for _ in range(3))
    optimizer = optim.SGD([{'params': [a], 'name': 'head', 'factor': 0.5}, {'params': [b]}], lr=0.1)
    optimizer.add_param_group({'params': [c], 'lr': 0.3, 'name': 'late', 'fused': None})
    for group in optimizer.param_groups:
        group['lr'] *= group.get('factor', 1)
        group.setdefault('initial_lr', group['lr'])
    head, rest, late = optimizer.param_groups
    assert (head['lr'], rest['lr'], late['lr'], late['name']) == (0.05, 0.1, 0.3, 'late') and 'name' not in rest
    assert dict(head)['factor'] == 0.5 and head['initial_lr'] == 0.05 and len(head) == len(rest) + 2
    again = optim.SGD([{'params': [one]} for one in (a, b, c)], lr=1)
    again.load_state_dict(optimizer.state_dict())
    assert [group.get('name') for group in again.param_groups] == ['head', None, 'late']
    assert again.param_groups[0]['lr'] == 0.05
    head.update(lr=0.2)
    assert [dict(group)['lr'] for group in optim.SGD(optimizer.param_groups).param_groups] == [0.2, 0.1, 0.3]
    del head['name']
    with pytest.raises(KeyError):
        head['name']
    with pytest.raises(KeyError):
        del head['lr']
    with pytest.raises(ValueError, match='add_param_group adds others'):
        head['params'] = [b]


def test_lbfgs():
    w = nn.Parameter(koine.tensor([5.0, -3.0]))
    optimizer = optim.LBFGS([w], line_search_fn='strong_wolfe')

    def closure():
        optimizer.zero_grad()
        loss = ((w - 1) ** 2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 32
    numpy.testing.assert_allclose(w.detach().numpy(), [1, 1], atol=1e-4)


def test_schedules():
    made = optim.lr_scheduler
    for make, expected in [
        (lambda o: made.StepLR(o, 2, gamma=0.5), [1, 1, 0.5, 0.5, 0.25]),
        (lambda o: made.MultiStepLR(o, [1, 3], gamma=0.1), [1, 0.1, 0.1, 0.01, 0.01]),
        (lambda o: made.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625]),
        (lambda o: made.LambdaLR(o, lambda epoch: 1 / (epoch + 1)), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
        (lambda o: made.LinearLR(o, 0.5, total_iters=2), [0.5, 0.75, 1, 1, 1]),
        (lambda o: made.CosineAnnealingLR(o, 4), [1, 0.853553, 0.5, 0.146447, 0]),
        (lambda o: made.SequentialLR(o, [made.ConstantLR(o, 0.5), made.ExponentialLR(o, 0.1)], [2]),
         [0.5, 0.5, 1, 0.1, 0.01]),
    ]:
        optimizer = optim.SGD([nn.Parameter(koine.ones(1))], lr=1)
        schedule, seen = make(optimizer), []
        for _ in range(5):
            seen.append(optimizer.lr)
            schedule.step()
        assert seen == pytest.approx(expected, abs=1e-5)
    plateau = made.ReduceLROnPlateau(optimizer, 'min', patience=0, factor=0.1)
    for value in (1, 2):
        before = optimizer.lr
        plateau.step(value)
    assert optimizer.lr == pytest.approx(before * 0.1)
    with pytest.raises(ZeroDivisionError):
        made.LambdaLR(optimizer, lambda epoch: 1 / epoch)


def test_schedules_step_to_an_epoch():
    optimizer = optim.SGD([nn.Parameter(koine.ones(1))], lr=1.0)
    schedule = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
    for batch in range(9):
        schedule.step(batch / 4)
        assert optimizer.lr == pytest.approx((1 + math.cos(math.pi * (batch / 4 % 2) / 2)) / 2)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    schedule.step(epoch=3)
    assert schedule.get_last_lr() == [0.125] and schedule.last_epoch == 3
    with pytest.raises(ValueError, match='must be 0 or more, and a whole number'):
        schedule.step(0.5)


def test_a_schedule_of_python(tmp_path):
    class Warmup(optim.lr_scheduler.LRScheduler):
        def __init__(self, optimizer, steps, last_epoch=-1):
            self.steps = steps
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            return [rate * min(1, (self.last_epoch + 1) / self.steps) for rate in self.base_lrs]

    a, b = nn.Parameter(koine.ones(1)), nn.Parameter(koine.ones(1))
    optimizer = optim.SGD([{'params': [a]}, {'params': [b], 'lr': 1.0}], lr=2.0)
    schedule = Warmup(optimizer, 4)
    assert schedule.get_last_lr() == [0.5, 0.25] and optimizer.param_groups[0]['initial_lr'] == 2
    schedule.step()
    schedule.save(tmp_path / 'schedule')
    again = Warmup(optim.SGD([{'params': [a]}, {'params': [b]}], lr=1.0), 9)
    again.load(tmp_path / 'schedule')
    again.step()
    assert again.last_epoch == 2 and again.get_last_lr() == [1.5, 0.75]
    with pytest.raises(TypeError, match='Warmup is a schedule of Python'):
        optim.lr_scheduler.SequentialLR(optimizer, [schedule], [])
    with pytest.raises(NotImplementedError, match='LRScheduler: a schedule needs get_lr'):
        optim.lr_scheduler._LRScheduler(optimizer)


def test_state_of_a_schedule():
    made = optim.lr_scheduler
    for make in (lambda o: made.StepLR(o, 2, gamma=0.5), lambda o: made.CosineAnnealingLR(o, 5),
                 lambda o: made.SequentialLR(o, [made.ConstantLR(o, 0.5), made.ExponentialLR(o, 0.1)], [2])):
        optimizers = [optim.SGD([nn.Parameter(koine.ones(1))], lr=1) for _ in range(2)]
        schedules = [make(one) for one in optimizers]
        for _ in range(3):
            schedules[0].step()
        optimizers[1].load_state_dict(optimizers[0].state_dict())
        schedules[1].load_state_dict(schedules[0].state_dict())
        for one in schedules:
            one.step()
        assert optimizers[0].lr == optimizers[1].lr and schedules[1].last_epoch == 4
    with pytest.raises(ValueError, match='StepLR'):
        made.ExponentialLR(optimizers[0], 0.5).load_state_dict(made.StepLR(optimizers[0], 1).state_dict())


# --- the trainer ------------------------------------------------------------------------------------------------------


def problem():
    x = koine.randn(64, 4)
    return koine.data.DataLoader(koine.data.TensorDataset(x, (x.sum(1) > 0).long()), 16, shuffle=True, num_workers=1)


def test_trainer(tmp_path):
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    data, seen = problem(), []
    trainer = koine.Trainer(net, optim.Adam(net.parameters(), lr=0.03), epochs=4, patience=0, quiet=True,
                            output=str(tmp_path / 'run'))
    trainer.add_callback(on_epoch_end=lambda trainer, epoch, row: seen.append((epoch, row['train_loss'])),
                         on_step_end=lambda trainer, epoch, step, loss: seen.append(loss.item()))
    trainer.fit(data, data)
    history = trainer.history
    assert len(history) == 4 and history[-1]['train_loss'] < history[0]['train_loss']
    assert len(seen) == 4 + 16 and seen[4] == (1, history[0]['train_loss'])
    loss, accuracy = trainer.evaluate(data)
    assert accuracy > 0.8 and loss == pytest.approx(min(row['val_loss'] for row in history))
    assert 'best' in trainer.table() and 1 <= trainer.best_epoch <= 4
    assert os.path.exists(tmp_path / 'run' / 'checkpoint.safetensors')
    with pytest.raises(TypeError, match='patience'):
        koine.Trainer(net, optim.SGD(net.parameters()), pateince=3)


@pytest.mark.parametrize('loss', [nn.CrossEntropyLoss(), lambda outputs, batch: nn.functional.cross_entropy(
    outputs[0], batch[1])])
def test_losses_of_the_trainer(loss):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, x):
            return self.fc(x)

    net = Net()
    trainer = koine.Trainer(net, optim.SGD(net.parameters(), lr=0.5), loss=loss, epochs=2, quiet=True)
    trainer.fit(problem())
    assert trainer.history[1]['train_loss'] < trainer.history[0]['train_loss']


def test_a_callback_that_raises():
    net = nn.Linear(4, 2)
    trainer = koine.Trainer(net, optim.SGD(net.parameters()), epochs=2, quiet=True)

    def fails(trainer, epoch, row):
        raise LookupError('epoch %d' % epoch)

    trainer.add_callback(on_epoch_end=fails)
    with pytest.raises(LookupError, match='epoch 1'):
        trainer.fit(problem())


def test_control_c_during_fit():
    process = subprocess.Popen([sys.executable, '-c', '''
import koine, sys
net = koine.nn.Linear(4, 2)
x = koine.randn(64, 4)
data = koine.data.DataLoader(koine.data.TensorDataset(x, (x.sum(1) > 0).long()), 4, num_workers=2)
trainer = koine.Trainer(net, koine.optim.SGD(net.parameters()), epochs=10**6, patience=0, quiet=True)
trainer.add_callback(on_epoch_end=lambda trainer, epoch, row: epoch == 1 and print('go', flush=True))
try:
    trainer.fit(data)
except KeyboardInterrupt:
    print('stopped', len(trainer.history) > 0)
'''], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == 'go\n'
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and out == 'stopped True\n'


def test_exit_with_workers():
    """The end of the interpreter in the middle of an epoch of a dataset in Python."""
    done = subprocess.run([sys.executable, '-c', '''
import koine, numpy, time
class Slow(koine.data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, index):
        time.sleep(0.001)
        return numpy.zeros(3, numpy.float32)
loader = koine.data.DataLoader(Slow(), 4, num_workers=3)
batches = iter(loader)
print(next(batches)[0].shape)
'''], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, '(4, 3)\n', '')


# --- files, graphs, the profiler, models ------------------------------------------------------------------------------


def test_safetensors(tmp_path):
    tensors = {'a': koine.randn(2, 3), 'b': koine.arange(4), 'c': koine.ones(2, dtype='bfloat16')}
    koine.safetensors.save_file(tensors, tmp_path / 'x.safetensors', {'made': 'here'})
    loaded = koine.safetensors.load_file(tmp_path / 'x.safetensors')
    assert list(loaded) == ['a', 'b', 'c']
    for name, tensor in tensors.items():
        assert koine.equal(loaded[name], tensor) and loaded[name].dtype is tensor.dtype
    assert koine.safetensors.load_metadata(tmp_path / 'x.safetensors', 'made') == 'here'
    assert koine.safetensors.load_file(tmp_path / 'x.safetensors', 'host')['a'].device.type == 'host'
    koine.safetensors.save_npy(tmp_path / 'x.npy', tensors['a'])
    numpy.testing.assert_array_equal(numpy.load(tmp_path / 'x.npy'), tensors['a'].numpy())
    (tmp_path / 'bad.safetensors').write_bytes(b'not one')
    with pytest.raises(ValueError, match='bad.safetensors'):
        koine.safetensors.load_file(tmp_path / 'bad.safetensors')


def test_save_and_load(tmp_path):
    net, other, path = nn.Linear(3, 2), nn.Linear(3, 2), tmp_path / 'x.safetensors'
    koine.save({**net.state_dict(), 'turned': koine.arange(6).view(2, 3).T}, path)
    loaded = koine.load(path)
    assert loaded.pop('turned').tolist() == [[0, 3], [1, 4], [2, 5]] and set(loaded) == {'weight', 'bias'}
    assert loaded['weight'].device == koine.current_device()
    other.load_state_dict(loaded)
    assert koine.equal(other.weight, net.weight)
    for device in ('host', koine.device('host')):
        assert koine.load(path, map_location=device, weights_only=True)['bias'].device.type == 'host'
    with pytest.raises(TypeError, match='not Linear: save its state_dict'):
        koine.save(net, path)
    with pytest.raises(TypeError, match='"parts.1" is Linear: save its state_dict'):
        koine.save({'parts': [koine.ones(2), net]}, path)
    with pytest.raises(TypeError, match='a key of "net" is tuple'):
        koine.save({'net': {(1, 2): koine.ones(2)}}, path)
    with pytest.raises(TypeError, match='map_location'):
        koine.load(path, map_location={'cuda': 'cpu'})
    with pytest.raises(OSError):
        koine.load(tmp_path / 'none.safetensors')
    assert set(koine.load(path)) == {'weight', 'bias', 'turned'}  # failures left the file as it was


def test_saving_to_open_files(tmp_path):
    buffer, state = io.BytesIO(), {'epoch': 2, 'net': nn.Linear(3, 2).state_dict()}
    koine.save(state, buffer)
    buffer.seek(0)
    loaded = koine.load(buffer, map_location='host')
    assert loaded['epoch'] == 2 and loaded['net']['weight'].device.type == 'host'
    with open(tmp_path / 'net', 'wb') as file:
        koine.save(state['net'], file)
    with open(tmp_path / 'net', 'rb') as file:
        assert koine.equal(koine.load(file)['weight'], state['net']['weight'])
    assert loaded['net']['bias'].tolist() == koine.load(tmp_path / 'net')['bias'].tolist()


def test_checkpoint(tmp_path):
    """What programs save between epochs: states of a network and its optimizer, with numbers and texts."""
    net, path = nn.Linear(3, 2), tmp_path / 'checkpoint'
    optimizer = optim.AdamW(net.parameters(), lr=0.05)
    net(koine.ones(1, 3)).sum().backward()
    optimizer.step()
    koine.save({'epoch': 3, 'net': net.state_dict(), 'optimizer': optimizer.state_dict(), 'loss': float('inf'),
                'rest': (None, 'text', [True, koine.arange(3)]), 'net.weight': koine.zeros(1),
                'random': koine.get_rng_state()}, path)
    drawn = koine.rand(3)
    loaded = koine.load(path)
    assert (loaded['epoch'], loaded['loss'], loaded['rest'][:2]) == (3, float('inf'), (None, 'text'))
    assert loaded['rest'][2][0] is True and loaded['rest'][2][1].tolist() == [0, 1, 2]
    assert loaded['net.weight'].tolist() == [0] and koine.equal(loaded['net']['weight'], net.weight)
    other = nn.Linear(3, 2)
    other.load_state_dict(loaded['net'])
    again = optim.AdamW(other.parameters())
    again.load_state_dict(loaded['optimizer'])
    assert again.param_groups[0]['lr'] == 0.05
    koine.set_rng_state(loaded['random'])
    assert koine.equal(koine.rand(3), drawn)
    koine.safetensors.save_file({}, path, {'koine.structure': '{"dict": [["a", {"tensor": "b"}]]}'})
    with pytest.raises(ValueError, match="checkpoint: its metadata \"koine.structure\" is damaged: 'b'"):
        koine.load(path)


def test_graph():
    w = nn.Parameter(koine.ones(3))
    optimizer, x = optim.SGD([w], lr=0.1), koine.ones(3)

    def step():
        optimizer.zero_grad()
        loss = ((w - x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    step()
    graph = koine.graph.Graph()
    with graph.capture():
        loss = step()
    assert len(graph) > 0
    for value in (2.0, 3.0):
        x.copy_(koine.full((3,), value))
        before = w.detach().clone()
        graph.replay()
        assert loss.item() == pytest.approx(((before - x) ** 2).sum().item(), rel=1e-6)
        assert koine.allclose(w, before - 0.2 * (before - x))
    with pytest.raises(RuntimeError):
        with koine.graph.Graph().capture():
            x.tolist()
    assert x.tolist() == [3, 3, 3]


@pytest.mark.parametrize('key', [slice(1, 3), 2, (slice(None), 1), (1, 2), Ellipsis])
def test_graph_of_a_recorded_assignment(key):
    x, w = koine.ones(4, 3), nn.Parameter(koine.ones(1))

    def step():
        y = x * w
        y[key] = w * 3
        w.grad = None
        (y * y).sum().backward()
        return y

    step()
    graph = koine.graph.Graph()
    with graph.capture():
        y = step()
    x.fill_(2)
    graph.replay()
    expected = numpy.full((4, 3), 2.0)
    expected[key] = 3
    assert y.tolist() == expected.tolist() and w.grad.item() == 2 * (expected ** 2).sum()


def test_profiler(tmp_path):
    with koine.profiler.profile(with_flops=True) as profile:
        with koine.profiler.record_function('my range'):
            before = time.monotonic_ns()
            (koine.ones(8, 8) @ koine.ones(8, 8)).sum().item()
            after = time.monotonic_ns()
    table = profile.table()
    assert 'my range' in table and 'matmul' in table
    commands = profile.commands()
    operations = {one.operation for one in commands}
    assert 'sum' in operations and operations & {'matmul', 'gemm'}  # by the kernel that is chosen
    assert 'Memcpy DtoH' in {one.name for one in commands}
    assert all(before <= one.start <= one.end <= after + 1e9 for one in commands)  # the offset of clocks is not exact
    assert all(one.device == koine.current_device() for one in commands)
    profile.export_chrome_trace(tmp_path / 'trace.json')
    assert (tmp_path / 'trace.json').stat().st_size > 100


def test_models():
    assert 'resnet18' in koine.models.names()
    net = koine.models.new('lenet5', num_classes=7, in_channels=1)
    assert net(koine.zeros(2, 1, 28, 28)).shape == (2, 7)
    gpt = koine.models.gpt2(vocab_size=11, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    assert gpt(koine.zeros(1, 4, dtype='int64')).shape == (1, 4, 11)
    assert koine.models.mlp(4, 3, 2)(koine.zeros(5, 4)).shape == (5, 2)
    with pytest.raises(AttributeError, match='resnet18'):
        koine.models.resnet17
    with pytest.raises(ValueError, match='resnet18'):
        koine.models.new('resnet17')


@pytest.mark.parametrize('name', ['AdamW', 'SGD', 'Adafactor', 'LBFGS'])
def test_state_of_an_optimizer(name):
    """Another optimizer goes on from it bit by bit; its form is PyTorch's."""
    nets = [nn.Linear(3, 2) for _ in range(2)]
    options = {'momentum': 0.9} if name == 'SGD' else {}
    optimizers = [getattr(koine.optim, name)(net.parameters(), lr=0.05, **options) for net in nets]
    x = koine.randn(4, 3)

    def step(net, optimizer):
        def closure():
            optimizer.zero_grad()
            loss = (net(x) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)

    step(nets[0], optimizers[0])
    state = optimizers[0].state_dict()
    assert state['param_groups'][0]['lr'] == 0.05 and 0 in state['state']
    if name == 'AdamW':
        assert list(state['state'][1]) == ['step', 'exp_avg', 'exp_avg_sq']
    nets[1].load_state_dict(nets[0].state_dict())
    optimizers[1].load_state_dict(state)
    for net, optimizer in zip(nets, optimizers):
        step(net, optimizer)
    assert koine.equal(nets[0].weight, nets[1].weight) and koine.equal(nets[0].bias, nets[1].bias)


def test_state_that_does_not_fit():
    optimizer = koine.optim.AdamW(nn.Linear(3, 2).parameters())
    with pytest.raises(ValueError, match='state_dict does not fit this optimizer: it has 0 groups of parameters'):
        optimizer.load_state_dict({'state': {}, 'param_groups': []})
