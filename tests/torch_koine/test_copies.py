"""Copies between the CPU and the device, of all dtypes and layouts."""
import pytest
import torch

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
          torch.int8, torch.uint8, torch.bool]
ONLY_BITS = [torch.complex64, torch.complex128, torch.complex32, torch.uint16, torch.uint32, torch.uint64,
             torch.float8_e4m3fn]


def values(dtype, *shape):
    numbers = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) % 7
    return numbers.to(dtype)


@pytest.mark.parametrize('dtype', DTYPES + ONLY_BITS, ids=str)
def test_there_and_back(dtype):
    x = values(dtype, 3, 4)
    for source in (x, x.t(), x[:, 1:3], x[::2, ::3], x[1, 2], x[:0]):
        there = source.to('koine')
        assert there.dtype == dtype and there.shape == source.shape
        assert torch.equal(there.cpu().view(torch.uint8) if source.numel() == 0 else there.cpu().float(),
                           source.view(torch.uint8) if source.numel() == 0 else source.float())


@pytest.mark.parametrize('to', DTYPES, ids=str)
@pytest.mark.parametrize('start', DTYPES, ids=str)
def test_conversion(start, to):
    x = values(start, 2, 5)
    assert torch.equal(x.to('koine', to).cpu(), x.to(to))  # across
    assert torch.equal(x.koine().to(to).cpu(), x.to(to))  # on the device
    assert torch.equal(x.koine().to('cpu', to), x.to(to))  # back
    target = torch.empty(5, 2, dtype=to, device='koine').t()
    assert torch.equal(target.copy_(x).cpu(), x.to(to))


def test_views_of_the_device():
    x = values(torch.float32, 4, 6)
    y = x.koine()
    for view in (lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t.reshape(2, 2, 6).permute(2, 0, 1),
                 lambda t: t.unsqueeze(1).expand(4, 3, 6), lambda t: t.as_strided((3, 2), (2, 5), 1),
                 lambda t: t.diagonal(), lambda t: t.unfold(1, 3, 2), lambda t: t.view(torch.int32),
                 lambda t: t.flatten()[3:7].view(2, 2), lambda t: t.view(torch.uint8)[:, 3:7]):
        assert torch.equal(view(y).cpu(), view(x))
    y[1:, ::2] = x[:3, 1::2]
    x[1:, ::2] = x[:3, 1::2].clone()
    y[0] = 5
    x[0] = 5
    y[:, 1].copy_(torch.tensor([1.0]))  # broadcast
    x[:, 1] = 1
    assert torch.equal(y.cpu(), x)


def test_empty_views():
    x = torch.arange(5.0).koine()
    assert x[5:].clone().numel() == 0 and (x[5:] + x[5:]).numel() == 0 and x[5:].cpu().numel() == 0
    assert torch.zeros(0, 3).koine().sum(0).tolist() == [0, 0, 0]


def test_into_views_of_the_cpu():
    x = torch.zeros(4, 4)
    x[:, 1:3] = values(torch.float32, 4, 2).koine()
    x.t()[0].copy_(torch.ones(1).koine())
    assert torch.equal(x[:, 1:3], values(torch.float32, 4, 2)) and torch.equal(x[:, 0], torch.ones(4))


def test_many_dimensions():
    x = values(torch.float32, *(2,) * 10)
    assert torch.equal(x.koine().cpu(), x)
    assert torch.equal(x.transpose(0, 9).koine().cpu(), x.transpose(0, 9))


def test_memory_formats():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    y = x.koine()
    assert y.is_contiguous(memory_format=torch.channels_last) and torch.equal(y.cpu(), x)
    assert torch.equal(y.contiguous().cpu(), x)
    assert torch.empty(2, 3, 4, 5, device='koine', memory_format=torch.channels_last).stride() == (60, 1, 15, 3)


def test_items():
    for dtype in DTYPES:
        assert values(dtype, 5).koine()[3].item() == values(dtype, 5)[3].item()
    assert torch.tensor(1 + 2j).koine().item() == 1 + 2j
    assert torch.tensor(2**53 + 1).koine().item() == 2**53 + 1
    assert torch.tensor([1.5, 2.5]).koine().tolist() == [1.5, 2.5]


def test_complex_to_real():
    x = torch.tensor([1 + 2j, 3 - 4j])
    assert torch.equal(torch.view_as_real(x.koine()).cpu(), torch.view_as_real(x))
    assert torch.equal(x.koine().real.cpu(), x.real)
    assert torch.equal(x.koine().conj().cpu(), x.conj())
    assert torch.equal(torch.ones(2).koine().to(torch.complex64).cpu(), torch.ones(2, dtype=torch.complex64))


def test_errors():
    with pytest.raises(RuntimeError, match='expand|broadcast|size'):
        torch.zeros(3, device='koine').copy_(torch.zeros(4))
    with pytest.raises(RuntimeError, match='item|Scalar|element'):
        torch.zeros(3, device='koine').item()
