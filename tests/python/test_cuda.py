"""Names of PyTorch's devices, where 'cuda' is a GPU of NVIDIA's or, without one, of any vendor."""
import pytest

import koine
from koine import nn

GPUS = [one for one in koine.devices() if one.type == 'gpu']


def test_gpus():
    assert koine.cuda.device_count() <= len(GPUS) and koine.cuda.is_available() == bool(GPUS)
    device = koine.device('cuda' if koine.cuda.is_available() else 'cpu')
    assert device.type == ('gpu' if GPUS else 'cpu')
    x = koine.ones(2, device=device)
    assert x.is_cuda == bool(GPUS) and koine.device(x.get_device()) == device and x.host().get_device() == -1
    koine.cuda.manual_seed_all(3)
    first = koine.rand(3)
    koine.cuda.manual_seed(3)
    assert koine.equal(first, koine.rand(3))


def test_cuda_is_nvidia_or_any_gpu(monkeypatch):
    there = ['gpu', 'gpu:0', 'gpu:1', 'gpu:2', 'cuda', 'cuda:0']
    monkeypatch.setattr(koine._device, 'exists', lambda name: name in there)
    assert koine._device.name_of_cuda('cuda') == 'cuda' and koine._device.name_of_cuda('cuda:1') == 'cuda:1'
    del there[-2:]
    assert koine._device.name_of_cuda('cuda') == 'gpu' and koine._device.name_of_cuda('cuda:1') == 'gpu:1'


@pytest.mark.skipif(bool(GPUS), reason='there is a GPU')
def test_without_gpus():
    for wrong in (lambda: koine.device('cuda:0'), koine.ones(1).cuda, lambda: koine.ones(1).cuda(0),
                  nn.Linear(1, 1).cuda, koine.cuda.get_device_name, koine.cuda.current_device):
        with pytest.raises(RuntimeError, match='gpu|GPU'):
            wrong()


@pytest.mark.skipif(not GPUS, reason='needs a GPU')
def test_with_gpus():
    assert koine.device('cuda') in GPUS and koine.ones(1).cuda().is_cuda
    assert nn.Linear(1, 1).cuda(0).weight.is_cuda and koine.cuda.get_device_name(0) == koine.device('cuda:0').name
    with koine.device('cuda:0'):
        assert koine.cuda.current_device() == 0


def test_memory():
    koine.cuda.reset_peak_memory_stats()
    x = koine.ones(1000)
    assert koine.cuda.memory_allocated() >= 4000 and koine.cuda.max_memory_allocated() >= 4000
    free, total = koine.cuda.mem_get_info()
    assert 0 < free <= total and koine.cuda.max_memory_reserved() >= koine.cuda.memory_reserved() > 0
    stats = koine.cuda.memory_stats(x.device)
    assert stats['allocated_bytes.all.current'] == koine.memory_allocated() and 'num_ooms' in stats
    del x
    assert issubclass(koine.OutOfMemoryError, RuntimeError) and koine.cuda.OutOfMemoryError is koine.OutOfMemoryError


def test_numbers_are_those_of_gpus(monkeypatch):
    opened = []
    monkeypatch.setattr(koine._device, 'exists', lambda name: False)
    monkeypatch.setattr(koine._device, 'device', lambda name: opened.append(name))
    koine.cuda.synchronize(1)
    koine.accelerator.synchronize(1)
    assert opened == ['gpu:1', 'gpu:1']


def test_accelerator():
    there = koine.accelerator.is_available()
    assert there == bool(GPUS) and koine.accelerator.device_count() == len(GPUS)
    device = koine.accelerator.current_accelerator().type if there else 'cpu'
    assert koine.ones(1, device=device).device.type == device
    assert there or koine.accelerator.current_accelerator() is None
    assert koine.accelerator.current_device_index() == 0
    before = koine.current_device()
    with koine.accelerator.device_index(None):
        assert koine.current_device() == before
    koine.accelerator.set_device_index(before)
    assert koine.accelerator.memory_allocated() == koine.memory_allocated()


def test_devices_of_two_words():
    device = koine.devices()[0]
    kind, index = str(device).split(':')
    assert koine.device(kind, int(index)) == device


def test_switches_without_effect():
    koine.backends.cudnn.benchmark = True
    assert koine.backends.cudnn.benchmark is True and not koine.backends.mps.is_available()
    koine.backends.cudnn.benchmark = False


@pytest.mark.skipif(bool(GPUS), reason='there is a GPU')
def test_mixed_precision_without_gpus():
    with pytest.warns(UserWarning, match='autocast: it is disabled'):
        region = koine.autocast('cuda', dtype=koine.float16)
    with region:
        assert (koine.ones(2, 2) @ koine.ones(2, 2)).dtype is koine.float32
    with pytest.warns(UserWarning, match='GradScaler: it is disabled'):
        scaler = koine.amp.GradScaler('cuda')
    x = koine.ones(1)
    assert not scaler.is_enabled() and scaler.scale(x) is x
    assert not koine.amp.GradScaler('cuda', enabled=False).is_enabled()
