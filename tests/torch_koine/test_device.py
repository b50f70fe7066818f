"""Devices: torch.koine, torch.accelerator, properties, and what import does."""
import pytest
import torch


def test_import_torch_is_enough(run_python):
    assert run_python("import torch; print(torch.ones(2, device='koine').device)") == 'koine:0\n'


def test_import_does_not_search_for_devices(run_python):
    program = 'import torch; torch.manual_seed(3); print(torch.koine.is_initialized()); ' \
              'print(torch.koine.initial_seed(), torch.koine.is_initialized())'
    assert run_python(program) == 'False\n3 True\n'


def test_autoload_can_be_switched_off(run_python):
    program = "import torch; print(hasattr(torch, 'koine')); import torch_koine; print(torch.koine.device_count() > 0)"
    assert run_python(program, environment={'TORCH_DEVICE_BACKEND_AUTOLOAD': '0'}) == 'False\nTrue\n'


def test_package_before_torch(run_python):
    assert run_python("import torch_koine, torch; print(torch.zeros(1).to('koine').device)") == 'koine:0\n'


def test_a_broken_package_does_not_stop_import_torch(run_python, tmp_path):
    program = "import warnings\nwith warnings.catch_warnings(record=True) as seen:\n" \
              "    warnings.simplefilter('always')\n    import torch\n" \
              "print([str(w.message) for w in seen if 'koine' in str(w.message)][0])"
    there = {'TORCH_KOINE_LIBRARY_DIR': str(tmp_path)}
    assert 'the device koine is not available: torch_koine has no library' in run_python(program, environment=there)
    (tmp_path / 'torch_version.txt').write_text('1.9.0\n')
    assert 'compiled for PyTorch 1.9.0' in run_python(program, environment=there)


def test_no_device(run_python):
    program = "import torch\nprint(torch.koine.is_available(), torch.koine.device_count())\n" \
              "try:\n    torch.ones(1, device='koine')\nexcept RuntimeError as error:\n    print(error)"
    told = run_python(program, environment={'KOINE_VISIBLE_DEVICES': ''})
    assert told.startswith('False 0\n') and 'KOINE_VISIBLE_DEVICES' in told


def test_properties():
    koine = torch.koine
    assert koine.is_available() and koine.device_count() >= 1 and koine.current_device() == 0
    properties = koine.get_device_properties('koine:0')
    assert properties.name == koine.get_device_name() and properties.total_memory > 0
    assert properties.type in ('cpu', 'gpu', 'accelerator') and properties.name in repr(properties)
    assert koine.get_device_capability() == (properties.major, properties.minor)
    assert koine.can_device_access_peer(0, 0) is False


def test_current_device():
    koine = torch.koine
    with koine.device(0), koine.device(None), koine.device_of(torch.ones(1)), koine.device('koine'):
        assert torch.ones(1, device='koine').device == torch.device('koine:0')
    koine.set_device('koine:0')
    with pytest.raises(RuntimeError, match='there is no koine:99'):
        torch.ones(1, device='koine:99')
    with pytest.raises(RuntimeError, match='there is no koine:99'):
        koine.set_device(99)
    with pytest.raises(RuntimeError):
        with koine.device(99):
            pass
    assert koine.current_device() == 0


def test_accelerator():
    assert torch.accelerator.current_accelerator() == torch.device('koine')
    assert torch.accelerator.is_available() and torch.accelerator.device_count() == torch.koine.device_count()
    torch.accelerator.synchronize()
    assert torch.accelerator.memory_allocated() == torch.koine.memory_allocated()


def test_default_device():
    torch.set_default_device('koine')
    try:
        assert torch.zeros(2).is_koine and torch.nn.Linear(2, 2).weight.is_koine
    finally:
        torch.set_default_device(None)


def test_methods():
    x = torch.ones(3)
    assert x.koine().is_koine and not x.is_koine and x.koine().koine(0).is_koine
    assert torch.nn.Linear(2, 2).koine().weight.is_koine and x.untyped_storage().koine().device.type == 'koine'
    assert x.koine().new_zeros(2).is_koine and torch.empty_like(x.koine()).is_koine


def test_module_moves_and_back():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    net.to('koine')
    assert all(value.is_koine for value in net.state_dict().values())
    net.to('cpu')
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
