"""Mixed precision: autocast and GradScaler."""
import threading

import pytest

import koine
from koine import nn, optim


def products(*settings, **named):
    with koine.autocast(*settings, **named):
        return koine.ones(2, 2) @ koine.ones(2, 2)


def test_autocast():
    assert products('cpu').dtype is koine.bfloat16 and products('cpu', koine.float16).dtype is koine.float16
    assert products(koine.device('cpu'), dtype='bfloat16').dtype is koine.bfloat16
    assert products('cpu', enabled=False).dtype is koine.float32
    assert koine.amp.autocast is koine.autocast
    with koine.autocast('cpu', dtype=koine.bfloat16) as region:
        assert koine.is_autocast_enabled() and (koine.ones(2) + 1).dtype is koine.float32
        assert koine.softmax(products('cpu'), 1).dtype is koine.float32
        assert products('cpu', enabled=False).dtype is koine.float32 and koine.is_autocast_enabled()
        with region:
            assert koine.is_autocast_enabled()
        seen = []
        thread = threading.Thread(target=lambda: seen.append(koine.is_autocast_enabled()))
        thread.start()
        thread.join()
        assert seen == [False]
    assert not koine.is_autocast_enabled()
    with pytest.raises(ZeroDivisionError):
        with koine.autocast('cpu'):
            raise ZeroDivisionError
    assert not koine.is_autocast_enabled()


@pytest.mark.filterwarnings('ignore:.*no GPU')
def test_names_of_cuda():
    from koine.cuda.amp import GradScaler, autocast, custom_fwd
    is_there = koine.cuda.is_available()
    expected = koine.float16 if is_there else koine.float32
    assert koine.cuda.amp.autocast is autocast
    with autocast(cache_enabled=False):
        assert (koine.ones(2, 2) @ koine.ones(2, 2)).dtype is expected
    assert autocast()(lambda: koine.ones(2, 2) @ koine.ones(2, 2))().dtype is expected
    assert GradScaler(init_scale=4.0).is_enabled() == is_there and custom_fwd(abs)


def test_autocast_decorates():
    net = nn.Linear(3, 3)

    @koine.autocast('cpu')
    def step(depth):
        """Documented."""
        assert koine.is_autocast_enabled()
        return step(depth - 1) if depth else net(koine.ones(2, 3))

    outputs = step(2)
    assert outputs.dtype is koine.bfloat16 and step.__doc__ == 'Documented.' and not koine.is_autocast_enabled()
    outputs.float().sum().backward()
    assert net.weight.grad.dtype is koine.float32 and net.weight.grad.tolist() == [[2] * 3] * 3


def test_wrong_regions():
    with pytest.raises(ValueError, match='must be float16 or bfloat16, not float32'):
        products('cpu', koine.float32)
    with pytest.raises(TypeError, match='type of a device first.*not koine.bfloat16'):
        products(koine.bfloat16)
    with pytest.raises(RuntimeError, match='no device matches'):
        products('cpuu')
    assert not koine.is_autocast_enabled() and products('cpu').dtype is koine.bfloat16


# --- the scaler -------------------------------------------------------------------------------------------------------


def test_scaler(tmp_path):
    w = nn.Parameter(koine.ones(2))
    optimizer = optim.SGD([w], lr=0.5)
    scaler = koine.amp.GradScaler('cpu', init_scale=8.0, growth_interval=2)

    def step(factor, unscale=False):
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        if unscale:
            scaler.unscale_(optimizer)
            assert w.grad.tolist() == [factor, factor]
        scaler.step(optimizer)
        scaler.update()
        return w.tolist(), scaler.get_scale()

    assert scaler.get_scale() == 8 and scaler.is_enabled()
    assert [one.item() for one in scaler.scale([koine.ones(()), koine.ones(()) * 2])] == [8, 16]
    assert step(1.0) == ([0.5, 0.5], 8)
    assert step(1.0, unscale=True) == ([0, 0], 16)
    assert step(float('inf')) == ([0, 0], 8)
    scaler.save(tmp_path / 'scaler.safetensors')
    other = koine.amp.GradScaler()
    assert other.get_scale() == 65536
    other.load(tmp_path / 'scaler.safetensors')
    assert other.get_scale() == 8
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError):
        scaler.unscale_(optimizer)


def test_a_scaler_that_is_off():
    w = nn.Parameter(koine.ones(2))
    optimizer, scaler = optim.SGD([w], lr=1), koine.amp.GradScaler(enabled=False)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0, 0] and scaler.get_scale() == 1 and not scaler.is_enabled()


def test_wrong_scalers():
    for wrong in ({'growth_factor': 1}, {'backoff_factor': 2}, {'init_scale': 0}, {'growth_interval': 0}):
        with pytest.raises(ValueError, match=list(wrong)[0]):
            koine.amp.GradScaler(**wrong)
    with pytest.raises(TypeError, match="one of the library's optimizers, not int"):
        koine.amp.GradScaler().step(3)
    with pytest.raises(TypeError, match='takes tensors, not float'):
        koine.amp.GradScaler().scale(1.5)


@pytest.mark.parametrize('dtype', ['float16', 'bfloat16'])
def test_training_in_mixed_precision(dtype):
    x = koine.randn(64, 4)
    y = (x.sum(1) > 0).long()
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer, scaler, losses = optim.AdamW(net.parameters(), lr=0.02), koine.amp.GradScaler(), []
    for _ in range(20):
        with koine.autocast('cpu', dtype):
            loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2 and net[0].weight.dtype is koine.float32


def test_settings_of_a_scaler():
    scaler = koine.amp.GradScaler(init_scale=8.0, growth_interval=2)
    scaler.set_growth_factor(4.0)
    scaler.set_growth_interval(1)
    assert scaler.get_growth_factor() == 4.0 and scaler.get_growth_interval() == 1
    assert scaler.get_backoff_factor() == 0.5 and scaler.get_scale() == 8.0
    weight = nn.Parameter(koine.ones(2))
    optimizer = optim.SGD([weight], lr=0.5)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.5, 0.5] and scaler.get_scale() == 32.0
    scaler.update(koine.tensor(16.0))
    assert scaler.get_scale() == 16.0
    scaler.update(2)
    assert scaler.get_scale() == 2.0
    off = koine.amp.GradScaler(enabled=False)
    off.update(3.0)
    assert off.get_scale() == 1.0
