"""Operators that the device does not have run on the CPU, counted."""
import warnings

import pytest
import torch

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
    koine.reset_fallbacks()
    assert koine.fallbacks() == {}


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
