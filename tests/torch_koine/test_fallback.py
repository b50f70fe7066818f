"""Operators that the device does not have run on the CPU, counted."""
import subprocess
import sys
import warnings

import pytest
import torch
import torch_koine

koine = torch.koine


def missing():
    """An operator without a kernel."""
    return torch.linalg.eigvals(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).koine())


def test_counts_and_warns_once():
    koine.reset_fallbacks()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter('always')
        for _ in range(3):
            values = missing()
    assert values.is_koine and torch.allclose(values.cpu().real.sum(), torch.tensor(5.0))
    name = next(name for name in koine.fallbacks() if 'eig' in name)
    assert koine.fallbacks()[name].calls == 3 and koine.fallbacks()[name].seconds > 0
    assert sum(name in str(warning.message) for warning in seen) == 1
    line = next(line for line in torch_koine.coverage().splitlines() if line.startswith(name + ' '))
    assert line.split()[1] == '3' and float(line.split()[2]) > 0
    koine.reset_fallbacks()
    assert koine.fallbacks() == {} and torch_koine.coverage() == 'No operator has run on the CPU.'


def test_the_list_of_operators_without_a_kernel():
    printed = subprocess.run([sys.executable, '-m', 'torch_koine'], capture_output=True, text=True, check=True).stdout
    lines = printed.splitlines()
    assert 'aten::linalg_eig' in lines and 'aten::add.Tensor' not in lines
    assert int(lines[-1].split()[0]) > 400


def test_modes():
    assert koine.set_fallback_mode('silent') == 'warn'
    koine.reset_fallbacks()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        missing()
    assert koine.set_fallback_mode('error') == 'silent'
    try:
        with pytest.raises(NotImplementedError, match='does not run on the device koine; move'):
            missing()
    finally:
        assert koine.set_fallback_mode('warn') == 'error'
    with pytest.raises(ValueError):
        koine.set_fallback_mode('never')


def test_mode_from_the_environment(run_python):
    program = "import torch\ntry:\n    torch.linalg.eigvals(torch.ones(2, 2).koine())\n" \
              "except NotImplementedError:\n    print('refused')"
    assert run_python(program, environment={'TORCH_KOINE_FALLBACK': 'error'}) == 'refused\n'


# --- dtypes that Koine does not have ----------------------------------------------------------------------------------

def test_complex_numbers_are_computed_on_the_cpu():
    torch.koine.reset_fallbacks()
    x = torch.randn(3, 4, dtype=torch.complex64)
    y = x.koine()
    assert torch.equal((y * y + 1j).cpu(), x * x + 1j)           # kernels written by hand
    assert torch.equal(torch.where(y.real > 0, y, y.conj()).cpu(), torch.where(x.real > 0, x, x.conj()))
    assert torch.equal(y.cumsum(1).cpu(), x.cumsum(1))           # kernels of the table
    assert torch.equal(torch.cat([y, y]).cpu(), torch.cat([x, x]))
    y[0] = 0                                                     # in place
    assert y[0].abs().sum().item() == 0 and torch.equal(y[1:].cpu(), x[1:])
    assert {'aten::mul.Tensor', 'aten::cumsum.out', 'aten::abs.out'} <= set(torch.koine.fallbacks())


def test_derivatives_of_fourier_transforms():
    def gradient(device):
        x = torch.linspace(0, 1, 16, device=device).requires_grad_()
        spectrum = torch.fft.rfft(x)
        (torch.fft.irfft(spectrum * spectrum.conj()) ** 2).sum().backward()
        return x.grad.cpu()
    assert torch.allclose(gradient('koine'), gradient('cpu'), rtol=1e-4)


def test_unsigned_integers_are_computed_on_the_cpu():
    x = torch.tensor([0, 1, 2**16 - 1], dtype=torch.uint16)
    assert (x.koine() == x.flip(0).koine()).tolist() == [False, True, False]
