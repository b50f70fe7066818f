"""Storages without pointers: slices, resizing, sharing, DLPack, deepcopy, files."""
import copy
import io
import pickle

import pytest
import torch


def test_addresses():
    x = torch.arange(10.0).koine()
    assert x[3:].data_ptr() == x.data_ptr() + 12 and x.untyped_storage().data_ptr() == x.data_ptr()
    assert torch.empty(0, device='koine').data_ptr() == 0
    assert x.untyped_storage().nbytes() == 40


def test_a_slice_of_a_storage():
    x = torch.arange(10.0).koine()
    part = x.untyped_storage()[8:24]
    y = torch.empty(0, device='koine').set_(part, 0, (2, 2))
    assert torch.equal(y.cpu(), torch.tensor([[2.0, 3.0], [4.0, 5.0]]))
    y[0, 0] = 9
    del x
    assert y[0, 0].item() == 9
    odd = torch.empty(0, device='koine').set_(part[1:9], 0, (1,))
    with pytest.raises(RuntimeError, match='no multiple of the size'):
        odd.cpu()


def test_dlpack():
    x = torch.arange(6.0).koine().reshape(2, 3)
    y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    assert y.device == x.device
    y[1, 1] = 50
    assert x[1, 1].item() == 50
    del x
    assert y.cpu().sum().item() == 61


def test_set():
    x = torch.arange(6.0).koine()
    y = torch.empty(0, device='koine').set_(x)
    assert y.is_set_to(x) and y.data_ptr() == x.data_ptr()
    assert torch.equal(y.set_(x.untyped_storage(), 2, (2,), (2,)).cpu(), torch.tensor([2.0, 4.0]))
    assert y.set_(x.untyped_storage()).numel() == 6
    assert y.set_().numel() == 0 and x.numel() == 6


def test_resize():
    x = torch.arange(6.0).koine()
    x.resize_(2, 5)
    assert torch.equal(x.flatten()[:6].cpu(), torch.arange(6.0))
    assert torch.equal(x.resize_(2, 2).cpu(), torch.tensor([[0.0, 1.0], [2.0, 3.0]]))
    x.resize_(2, 3, 4, 5, memory_format=torch.channels_last)
    assert x.is_contiguous(memory_format=torch.channels_last) and x.untyped_storage().nbytes() == 480
    storage = torch.arange(4.0).koine().untyped_storage()
    storage.resize_(8)
    storage.resize_(16)
    assert torch.equal(torch.empty(0, device='koine').set_(storage, 0, (2,)).cpu(), torch.arange(2.0))


def test_a_storage_without_memory():
    x = torch.ones(4).koine()
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match='beyond the storage'):
        x.cpu()
    x.untyped_storage().resize_(16)
    x.copy_(torch.ones(4))
    assert x.cpu().sum().item() == 4


def test_out_of_bounds():
    x = torch.arange(6.0).koine()
    with pytest.raises(RuntimeError):
        x.as_strided((7,), (1,)).cpu()


def test_copies():
    x = torch.arange(6.0).koine().reshape(2, 3)
    assert torch.equal(copy.deepcopy(x).cpu(), x.cpu()) and copy.deepcopy(x).data_ptr() != x.data_ptr()
    net = copy.deepcopy(torch.nn.Linear(2, 3).koine())
    assert net.weight.is_koine
    both = pickle.loads(pickle.dumps([x, x[0]]))
    assert both[0].is_koine and torch.equal(both[0].cpu(), x.cpu()) and torch.equal(both[1].cpu(), x[0].cpu())


@pytest.mark.parametrize('weights_only', [True, False])
def test_files(weights_only):
    net = torch.nn.Linear(3, 2).koine()
    file = io.BytesIO()
    torch.save({'net': net.state_dict(), 'half': torch.ones(3, dtype=torch.float16, device='koine'),
                'view': torch.arange(6).koine()[2:]}, file)
    for place, device in ((None, 'koine'), ('cpu', 'cpu'), ('koine:0', 'koine'), ({'koine:0': 'cpu'}, 'cpu'),
                          (lambda storage, name: storage, 'cpu')):
        file.seek(0)
        loaded = torch.load(file, map_location=place, weights_only=weights_only)
        assert loaded['net']['weight'].device.type == device
        assert torch.equal(loaded['net']['weight'].cpu(), net.weight.detach().cpu())
        assert torch.equal(loaded['view'].cpu(), torch.arange(2, 6)) and loaded['half'].dtype == torch.float16
    file = io.BytesIO()
    torch.save(torch.ones(3), file)
    file.seek(0)
    assert torch.load(file, map_location='koine').is_koine


def test_optimizer_state():
    net = torch.nn.Linear(3, 2).koine()
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 3).koine()).sum().backward()
    optimizer.step()
    other = torch.optim.Adam(net.parameters())
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert other.state[net.weight]['exp_avg'].is_koine


def test_uninitialized_memory_can_be_filled():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3, device='koine').isnan().all().item()
        assert torch.empty_strided((2, 2), (1, 2), device='koine').isnan().all().item()
        assert (torch.empty(3, dtype=torch.int32, device='koine') == 2**31 - 1).all().item()
        assert torch.ones(2, device='koine').resize_(4)[2:].isnan().all().item()
    finally:
        torch.use_deterministic_algorithms(False)
