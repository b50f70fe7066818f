"""Whole numbers, truth values and small floats, where they need care; and memory that is read and written at once."""
import pytest
import torch
import torch.nn.functional as F
from test_operators import leaf, same

koine = torch.koine
WHOLE = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


# --- what runs on the CPU ---------------------------------------------------------------------------------------------

def test_products_of_matrices_of_whole_numbers():
    koine.reset_fallbacks()
    for dtype in WHOLE:
        a, v = torch.tensor([[1, -2], [3, 4]]).to(dtype), torch.tensor([5, 6]).to(dtype)
        same(lambda a, v: [a @ a, a @ v, v @ a, v @ v, torch.vdot(v, v), a[None] @ a, torch.einsum('ij,jk->ki', a, a)],
             a, v)
        same(lambda a, v: [torch.addmm(v, a, a, beta=2, alpha=3), torch.addmv(v, a, v, alpha=2), a.addmm(a, a),
                           torch.addbmm(a, a[None], a[None]), torch.baddbmm(a[None], a[None], a[None], beta=3),
                           torch.linalg.multi_dot([a, a, a]), torch.tensordot(a, a, 1)], a, v)
        same(lambda a, v: [a.clone().addmm_(a, a), a.clone().addbmm_(a[None], a[None]),
                           torch.mm(a, a, out=a.new_empty(0))], a, v)
    assert set(koine.fallbacks()) == {'aten::addmm.out', 'aten::addmv.out', 'aten::addbmm', 'aten::addbmm_',
                                      'aten::baddbmm.out'}
    same(lambda a: [torch.addmm(a, a, a, beta=2**60 + 1, alpha=2**60 + 1)], torch.tensor([[1]]))
    whole = torch.ones(2, 2, dtype=torch.int64, device='koine')
    with pytest.raises(RuntimeError, match='same dtype'):
        whole @ whole.float()
    with pytest.raises(RuntimeError, match="not implemented for 'Bool'"):
        whole.bool() @ whole.bool()
    koine.set_fallback_mode('error')
    try:
        with pytest.raises(NotImplementedError, match='aten::addmm.out does not run on the device koine'):
            torch.addmm(whole, whole, whole)
    finally:
        koine.set_fallback_mode('warn')


def test_small_floats_and_volumes_by_cubic_polynomials():
    x = torch.tensor([[1.0, 0.5], [0.0, -1.0]])
    for dtype in (torch.float16, torch.bfloat16):
        same(lambda a: [torch.nextafter(a, a + 1)], x.to(dtype))
        on_device = torch.matrix_exp(x.to(dtype).koine())
        assert on_device.dtype == dtype
        torch.testing.assert_close(on_device.cpu(), torch.matrix_exp(x).to(dtype))
    volume, grid = leaf(1, 2, 3, 3, 3), (leaf(1, 2, 2, 2, 3, seed=1).detach() / 2).requires_grad_()
    same(lambda a, g: F.grid_sample(a, g, mode='bicubic', align_corners=False), volume, grid, close=1e-4)


# --- truth values -----------------------------------------------------------------------------------------------------

def test_sums_and_powers_of_truth_values():
    flags = torch.tensor([True, False, True])
    same(lambda x: [x.sum(dtype=torch.bool), x.float().mul(0.5).sum(dtype=torch.bool), x.prod(dtype=torch.bool),
                    x.prod(0, dtype=torch.bool), x.int().prod(0, dtype=torch.bool), x.nansum(dtype=torch.bool)], flags)
    same(lambda x: [x.clone().add_(~x, alpha=2), torch.add(x, ~x, alpha=True), torch.add(x, ~x, alpha=False),
                    torch.add(x, x, alpha=-1), x.clone().add_(True, alpha=2)], flags)
    same(lambda x: [x.sign(), x.sgn(), x.square(), x ** 2, 2 ** x, x ** True, x ** False, x ** 0.5,
                    x % 2, x // 2, x.clamp(0, 2), x.clamp(max=0.5), x ** (~x).int(), torch.fmod(x, x.float() + 1),
                    torch.ldexp(x, x), torch.pow(2.5, x)], flags)
    with pytest.raises(RuntimeError, match="not implemented for 'Bool'"):
        flags.koine().abs()


# --- whole numbers ----------------------------------------------------------------------------------------------------

def test_hardtanh_of_whole_numbers():
    x = torch.tensor([-3, 0, 1, 9])
    same(lambda a: [F.hardtanh(a), F.hardtanh(a, -1.5, 1.5), F.relu6(a), F.hardtanh(a.clone(), 0, 2, inplace=True)], x)
    same(lambda a: [F.hardtanh(a), F.relu6(a)], x.clamp(min=0).to(torch.uint8))
    same(lambda a: [F.hardtanh(a, -0.5, 0.5), torch._C._nn.hardtanh(a, out=a.new_empty(0))], leaf(5).detach())
    same(lambda a: F.hardtanh(a, -0.5, 0.5), leaf(5))


@pytest.mark.parametrize('dtype', WHOLE, ids=str)
def test_spaced_whole_numbers(dtype):
    for bounds in ((0, 10, 5), (0.5, 10.7, 5), (3.9, 0.2, 3), (1, 5, 1), (1, 5, 0)):
        for f in (torch.linspace, torch.logspace):
            if bounds[1] < 10 or f == torch.linspace:
                assert torch.equal(f(*bounds, dtype=dtype, device='koine').cpu(), f(*bounds, dtype=dtype))
    assert torch.equal(torch.logspace(0.5, 2.5, 4, base=2.5, dtype=dtype, device='koine').cpu(),
                       torch.logspace(0.5, 2.5, 4, base=2.5, dtype=dtype))


@pytest.mark.parametrize('dtype', WHOLE + [torch.bool, torch.float32], ids=str)
def test_comparisons_with_numbers_beyond_the_dtype(dtype):
    x = torch.tensor([0, 1, 5, 44, 127]).to(dtype)
    if dtype != torch.bool:
        same(lambda a: [torch.isin(a, 261), torch.isin(a, 300, invert=True)], x)
    for number in (-3, 300, 261, -300, 2**31 + 5, 2**40, 2**63 - 1, 127.5, 300.0, True, float('inf')):
        same(lambda a: [f(a, number) for f in (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)], x)
        same(lambda a: [a.clone().lt_(number), torch.lt(a, torch.tensor(number))], x)


def test_numbers_beyond_int32_beside_int32():
    x, far = torch.tensor([1, 5, -100], dtype=torch.int32), 2**31 + 5
    same(lambda a: [a + far, far - a, a * far, a // far, a % far, a & far, far ** a.abs(), a.clone().add_(far)], x)
    same(lambda a: [a / far, far / a, torch.div(a, far, rounding_mode='trunc')], x)


def test_factors_beyond_float64():
    x = torch.tensor([1, -2])
    same(lambda a: [torch.addcmul(a, a, a, value=2**60 + 1), a.clone().addcmul_(a, a, value=-2**53 - 1)], x)
    same(lambda a: [torch.addcmul(a, a, a, value=2.5), torch.addcmul(a, a.int(), a, value=3)], x)


# --- memory that is read and written ----------------------------------------------------------------------------------

def test_overlapping_memory():
    def x():
        return torch.arange(9.0, device='koine')
    y = x().view(3, 3)
    for write in (lambda: y.copy_(y.t()), lambda: y.view(9)[1:].copy_(y.view(9)[:-1]), lambda: y.copy_(y[:1]),
                  lambda: y[1:].floor_divide_(y[:-1]), lambda: torch.where(y[1:] > 1, y[1:], y[:-1], out=y[1:])):
        with pytest.raises(RuntimeError, match='refer to a single memory location'):
            write()
    with pytest.raises(RuntimeError, match='more than one element of the written-to tensor'):
        x()[:1].expand(3).copy_(x()[:3])
    with pytest.raises(RuntimeError, match='more than one element of the written-to tensor'):
        x()[:1].expand(3).copy_(torch.ones(3))
    assert torch.equal(y, x().view(3, 3))
    assert torch.equal(y.copy_(y.view(3, 3)), x().view(3, 3))          # the same elements
    assert y.view(9)[:4].copy_(y.view(9)[5:]).tolist() == [5, 6, 7, 8]  # disjoint ones
    assert x()[::2].copy_(x()[1::2].repeat(2)[:5]).tolist() == [1, 3, 5, 7, 1]
    z = x()
    assert z[:8:2].copy_(z[1::2]).tolist() == [1, 3, 5, 7]             # interleaved


# --- arguments --------------------------------------------------------------------------------------------------------

def test_logical_operators_with_numbers_first():
    x = torch.tensor([1, 0])
    for f in (torch.logical_and, torch.logical_or, torch.logical_xor):
        same(lambda a: [f(torch.tensor(1), a), f(a, torch.tensor(0)), f(a, a.float()), f(a[None], a[:, None])], x)
        with pytest.raises(RuntimeError, match='all tensors on the device koine'):
            f(x, x.koine())


def test_mode_into_given_tensors():
    x = torch.tensor([[1, 2, 2], [3, 3, 1]])
    same(lambda a: torch.mode(a, out=(a.new_empty(0), a.new_empty(0))), x)
    same(lambda a: torch.mode(a, 0, True, out=(a.new_empty(0), a.new_empty(0))), x)


# --- operators that are composed --------------------------------------------------------------------------------------

def test_composed_operators_run_on_the_device():
    x, image = leaf(3, 4, 4), leaf(2, 6, 3, 2)
    koine.reset_fallbacks()
    same(lambda a: [a << 3, 5 << a, a << a, a >> 1, a >> a, a.clone().__ilshift__(2), a.clone().__irshift__(a)],
         torch.tensor([1, 5, 7]))
    same(lambda a: torch.frexp(a), torch.tensor([[0.0, 1.0, -3.7], [1e-40, 5e30, float('inf')]]))
    same(lambda a: torch.frexp(a.t(), out=(a.new_empty(0), a.new_empty(0, dtype=torch.int32))), image[0, 0].detach())
    for p in (1, 2, float('inf')):
        same(lambda a: [a.renorm(p, 0, 1.0), a.renorm(p, -1, 2.0)], x)
    same(lambda a: [a.clone().renorm_(2, 1, 0.5)], x.detach())
    same(lambda a: [F.channel_shuffle(a, 3)], image)
    same(lambda a: [F.native_channel_shuffle(a, 2)], image.detach())
    wide = image.detach().to(memory_format=torch.channels_last).koine()
    assert F.channel_shuffle(wide, 3).is_contiguous(memory_format=torch.channels_last)
    same(lambda a: [torch.cdist(a, a[:, :2] + 1, p) for p in (0.0, 0.5, 1.0, 2.0, 3.0, float('inf'))], x.detach())
    same(lambda a: [F.pdist(a[0], p) for p in (0.0, 1.0, 2.0, 3.0, float('inf'))], x.detach())
    same(lambda a: torch.lu_unpack(*torch.linalg.lu_factor(a)), x, close=1e-3)
    assert koine.fallbacks() == {}
    same(lambda a: [torch.cdist(a, a[:, :2] + 1, p) for p in (1.0, 2.0, 3.0)], x)
    same(lambda a: [torch.cdist(a, a, compute_mode='donot_use_mm_for_euclid_dist')], x.detach())
    same(lambda a: F.pdist(a[0]), x)
