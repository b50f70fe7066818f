"""Operators where arguments, dtypes or memory need care; all of them, by PyTorch's samples: opinfo.py."""
import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def same(function, *tensors, close=1e-5):
    """The function of these tensors, and its gradients, on both devices."""
    def run(device):
        moved = [t.detach().to(device).requires_grad_(t.requires_grad) for t in tensors]
        result = function(*moved)
        results = result if isinstance(result, (tuple, list)) else [result]
        ends = [y.sin().sum() for y in results if y.requires_grad]
        leaves = [t for t in moved if t.requires_grad]
        gradients = torch.autograd.grad(sum(ends), leaves) if ends and leaves else []
        return [y.detach().cpu() for y in [*results, *gradients]]
    for got, wanted in zip(run('koine'), run('cpu'), strict=True):
        torch.testing.assert_close(got, wanted, rtol=close, atol=close, equal_nan=True)


def leaf(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def test_numbers_and_dtypes():
    x, whole, flags = leaf(3, 4).detach(), torch.arange(12).view(3, 4), torch.tensor([True, False, True, True])
    one = torch.tensor(2.5, dtype=torch.float64)
    for f in (torch.add, torch.sub, torch.mul, torch.div, torch.eq, torch.lt, torch.maximum):
        same(lambda a, b: [f(a, b)], x, whole)
        if f not in (torch.sub, torch.maximum):
            same(lambda a, b: [f(a, b)], whole, flags)
    for f in (torch.add, torch.sub, torch.mul, torch.div, torch.pow, torch.remainder, torch.eq, torch.ge):
        same(lambda a: [f(a, 2), f(a, 2.5), f(a, one)], x)
        same(lambda a: [f(a, 2)], whole)
    same(lambda a: [2 - a, 2 / (a + 20), 2 ** a, True + a, a * True], x)
    same(lambda a: [a + 0.5, a / 2, a // 2, a % 5, a & 3, a << 1, torch.where(a > 3, a, 1.5)], whole)
    same(lambda a, b: [torch.add(a, b, alpha=3), torch.sub(a, b, alpha=0.5), torch.add(a, 2, alpha=3)], x, x + 1)


def test_numbers_beside_whole_numbers_and_truth_values():
    flags, whole, real = torch.tensor([True, False]), torch.tensor([1, -3]), torch.tensor(0.1, dtype=torch.float64)
    same(lambda x: [x & True, x | True, x ^ True, x + True, x * True, x // 2, x % 2, 7 // (x + 1), x == True], flags)
    for f in (torch.add, torch.mul, torch.div, torch.pow, torch.remainder, torch.true_divide):
        same(lambda x: [f(x, real), f(x.int(), real)] + ([f(real, x)] if f != torch.pow else []), whole, close=1e-12)
    same(lambda x: [torch.add(x, real, alpha=2), torch.sub(x, 2, alpha=3)], whole, close=1e-12)
    flags = flags.koine()
    flags &= True
    assert flags.tolist() == [True, False]


@pytest.mark.parametrize('name', ['add', 'sub', 'mul', 'div'])
def test_plain_operands_and_others(name):
    """Those that PyTorch's code for structured operators is left out for, and what they border on."""
    f, f_ = getattr(torch, name), getattr(torch.Tensor, name + '_')
    a, b = leaf(3, 4), leaf(3, 4, seed=1)
    half, row, column = b.detach().half(), b.detach()[:1], b.detach().t()[:3, :3]
    same(lambda x, y: [f(x, y), f(x, 2), f(x, 0.5), f(x, torch.tensor(2.5))], a, b)
    same(lambda x, y: [f(x, y), f(x[:0], y[:0]), f(x[0, 0], y[0, 0])], a, b)
    same(lambda x, y, z: [f(x, y), f(y, x), f(z, y[:, :3]), f(x[:, :3], z)], a, row, column)
    same(lambda x, y: [f(x, y), f(y, x), f(y, y), f(y, 3)], a, half)
    same(lambda x, y: [f_(x.clone(), y), f_(x.clone(), 3), f_(x.t().clone(), y.t())], a, b)
    same(lambda x, y: [f_(x.clone(), y), f_(y.double(), x[:1])], a, row)
    same(lambda x: [f(x, 2j), f(x, 1 + 2j)], a.detach())
    x = a.detach().koine()
    assert torch.equal(f_(x, x).cpu(), f(a, a).detach()) and x._version == 1
    y = b.detach().koine().flatten()
    with pytest.raises(RuntimeError, match='single memory location'):
        f_(y[1:], y[:-1])
    with pytest.raises(RuntimeError, match="can't be cast|cannot be cast"):
        f_(x, 1j)


def test_plain_results_of_one_operand():
    for name in ('cos', 'exp', 'log', 'neg', 'reciprocal', 'rsqrt', 'sigmoid', 'silu', 'sin', 'sqrt', 'tanh'):
        f = getattr(torch, name, getattr(F, name, None))
        same(lambda x: [f(x.abs() + 1), f(x.t()), f(x[::2]), f(x[:0]), f(x.half())], leaf(3, 4), close=2e-3)
        if name != 'silu':
            same(lambda x: [getattr(x.clone().abs() + 1, name + '_')(), f(x.to(torch.int8))], leaf(3, 4).detach())
            assert f(torch.ones(2, 3, 4, 5, device='koine').to(memory_format=torch.channels_last)).is_contiguous(
                memory_format=torch.channels_last)


def test_out_and_in_place():
    x = leaf(3, 4).detach().koine()
    out = torch.empty(0, device='koine')
    assert torch.exp(x, out=out) is out and out.shape == (3, 4)
    columns = torch.zeros(4, 6, device='koine').t()[:3]
    torch.add(x, 1, out=columns)
    assert torch.equal(columns, x + 1) and columns.stride() == (1, 6)
    wide = torch.empty(3, 4, dtype=torch.float64, device='koine')
    torch.mul(x, 2, out=wide)
    assert torch.equal(wide.float(), x * 2)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.add(x, 1, out=torch.empty(3, 4, dtype=torch.int64, device='koine'))
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.arange(4, device='koine').add_(0.5)
    y = x.clone()
    y[:, 1].mul_(2).add_(1)
    y[0].clamp_(min=0).sqrt_()
    z = x.cpu().clone()
    z[:, 1].mul_(2).add_(1)
    z[0].clamp_(min=0).sqrt_()
    torch.testing.assert_close(y.cpu(), z)


def test_in_place_on_what_has_no_elements(run_python):
    """Their memory is not released twice, which ends the process sooner or later."""
    assert run_python('import torch\n'
                      'for i in range(100):\n'
                      '    x = torch.empty(0, device="koine")\n'
                      '    assert x.masked_fill_(torch.tensor(True, device="koine"), 1) is x and x.shape == (0,)\n'
                      '    x.logit_(), torch.nn.functional.hardtanh_(x)\n'
                      '    x.index_fill_(0, torch.empty(0, dtype=torch.int64, device="koine"), 1)\n'
                      'print(x.cpu())\n') == 'tensor([])\n'


def test_whole_numbers_beyond_float64():
    for bounds in ((2**53 + 1, 2**53 + 6), (0, 2**62, 2**60 + 1), (2**60 + 1, 2**60 - 6, -2)):
        assert torch.equal(torch.arange(*bounds, device='koine').cpu(), torch.arange(*bounds))


def test_reductions_along_no_dimension():
    x = torch.tensor([[0., 2., 0.], [1., 1., 0.]])
    same(lambda t: [t.all(dim=()), t.any(dim=()), t.all(dim=(), keepdim=True), t.all(), t.any(dim=(0, 1))], x)
    same(lambda t: [t.all(dim=()), t.any(dim=[])], x.to(torch.uint8))


def test_comparisons_of_several_dtypes():
    x = torch.tensor([1, 2, 4])
    same(lambda t: [torch.bucketize(t, t[:2] + 0.5), torch.bucketize(t.half(), t), torch.searchsorted(t, t - 0.5)], x)
    out = torch.empty(0, dtype=torch.int64, device='koine')
    torch.bucketize(x.koine(), torch.tensor([1.5, 2.5]).koine(), out=out)
    assert out.tolist() == [0, 1, 2]
    assert torch.equal(x.koine(), x.koine().float()) and not torch.equal(x.koine(), x.koine() + 0.5)


@pytest.mark.parametrize('eps', [1e-12, 1e-5, 0.1])
def test_layer_norm_uses_its_eps(eps):
    same(lambda x, w, b: F.layer_norm(x * 1e-2, (4,), w, b, eps), leaf(3, 2, 4), leaf(4, seed=1), leaf(4, seed=2),
         close=1e-4)
    same(lambda x, w, b: F.group_norm(x * 1e-2, 2, w, b, eps), leaf(2, 4, 3), leaf(4, seed=1), leaf(4, seed=2),
         close=1e-4)
    same(lambda x, w, b: F.batch_norm(x * 1e-2, None, None, w, b, True, 0.1, eps), leaf(5, 4), leaf(4, seed=1),
         leaf(4, seed=2), close=1e-4)


@pytest.mark.parametrize('sizes, groups', [((3, 6), 2), ((2, 6, 5), 6), ((2, 4, 3, 5), 1), ((2, 4, 2, 3, 2), 2)])
@pytest.mark.parametrize('affine', [False, True])
def test_group_norm(sizes, groups, affine):
    weights = [leaf(sizes[1], seed=1), leaf(sizes[1], seed=2)] if affine else []
    same(lambda x, *wb: F.group_norm(x, groups, *wb), leaf(*sizes), *weights, close=1e-4)
    same(lambda x, *wb: torch.native_group_norm(x, *(wb or (None, None)), sizes[0], sizes[1], x[0, 0].numel(), groups,
                                                0.5)[1:], leaf(*sizes).detach(), *(w.detach() for w in weights))


def test_layer_norm_backward_takes_statistics_of_any_origin():
    x, g, w = leaf(3, 4).detach(), leaf(3, 4, seed=1).detach(), leaf(4, seed=2).detach()
    mean, rstd = x.mean(1, keepdim=True), (x.var(1, correction=0, keepdim=True) + 0.5).rsqrt()
    same(lambda *t: torch.ops.aten.native_layer_norm_backward(t[0], t[1], [4], t[2], t[3], t[4], t[4], [True] * 3),
         g, x, mean, rstd, w)


def test_batch_norm_keeps_running_statistics():
    nets = [torch.nn.BatchNorm2d(3).to(device) for device in ('cpu', 'koine')]
    x = leaf(2, 3, 4, 4).detach()
    for net in nets:
        for i in range(3):
            net(x.to(net.weight.device) * (i + 1))
    for name, value in nets[0].state_dict().items():
        torch.testing.assert_close(nets[1].state_dict()[name].cpu(), value)
    for net in nets:
        net.eval()
    torch.testing.assert_close(nets[1](x.koine()).cpu(), nets[0](x))


def test_indices():
    x = leaf(4, 5, 3)
    rows, columns, mask = torch.tensor([3, 0, -1]), torch.tensor([1, 4, 2]), torch.arange(4) % 2 == 0
    same(lambda a, r, c, m: [a[r], a[r, c], a[:, c], a[m], a[r, :, 1], a[..., None, 0]], x, rows, columns, mask)

    def change(a, r, c, m):
        b = a * 1
        b[r, c] = 2
        b[m] += 1
        b.index_put_((r,), b[0].clone(), accumulate=True)
        return b.masked_fill(b > 1, 0.5)
    same(change, x, rows, columns, mask)
    same(lambda w, i: F.embedding(i, w, padding_idx=1), leaf(6, 4), torch.tensor([[1, 2], [2, 5]]))
    same(lambda w, i: F.embedding(i, w, scale_grad_by_freq=True), leaf(6, 4), torch.tensor([[1, 2], [2, 5]]))


def test_losses():
    x, target = leaf(5, 4), torch.tensor([0, 3, -100, 1, 1])
    weight = torch.tensor([0.5, 1, 2, 3])
    for reduction in ('none', 'mean', 'sum'):
        same(lambda a, t: F.cross_entropy(a, t, reduction=reduction), x, target)
        same(lambda a, t, w: F.cross_entropy(a, t, w, reduction=reduction, label_smoothing=0.1), x, target, weight)
        same(lambda a, b: F.huber_loss(a, b, reduction=reduction, delta=0.5), x, leaf(5, 4, seed=1))
    image = leaf(2, 4, 3, 3)
    same(lambda a, t: F.cross_entropy(a, t), image, torch.arange(18).view(2, 3, 3) % 4)
    same(lambda a, t, w: torch.ops.aten.nll_loss_forward(a, t, w, 1, -100), x.detach(), target, weight)


def test_binary_cross_entropy_runs_on_the_device():
    x, target, weight = leaf(5, 4).sigmoid().detach().requires_grad_(), leaf(5, 4, seed=1).sigmoid().detach(), leaf(4)
    torch.koine.reset_fallbacks()
    for reduction in ('none', 'mean', 'sum'):
        same(lambda a, b: F.binary_cross_entropy(a, b, reduction=reduction), x, target)
        same(lambda a, b, w: F.binary_cross_entropy(a, b, w.abs(), reduction=reduction), x, target, weight.detach())
    assert torch.koine.fallbacks() == {}


@pytest.mark.parametrize('reduction', ['none', 'mean', 'sum'])
@pytest.mark.parametrize('loss', [F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.l1_loss])
def test_second_derivatives_of_losses(loss, reduction):
    def slopes(x, y):
        value = (loss(x, y, reduction=reduction) ** 2).sum()
        return [g * g for g in torch.autograd.grad(value, (x, y), create_graph=True)]
    same(slopes, *(leaf(3, 4, seed=i).detach().double().requires_grad_() for i in range(2)))


def test_attention():
    q, k, v = leaf(2, 4, 5, 8), leaf(2, 4, 6, 8, seed=1), leaf(2, 4, 6, 8, seed=2)
    mask = torch.rand(5, 6, generator=torch.Generator().manual_seed(0)) > 0.3
    torch.koine.reset_fallbacks()
    same(lambda *t: F.scaled_dot_product_attention(*t), q, k, v)
    same(lambda *t: F.scaled_dot_product_attention(*t, is_causal=True, scale=0.5), q, k, v)
    same(lambda a, b, c, m: F.scaled_dot_product_attention(a, b, c, m), q, k, v, mask)
    same(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, enable_gqa=True), q,
         leaf(2, 2, 6, 8), leaf(2, 2, 6, 8))
    assert torch.koine.fallbacks() == {}
    on_device = F.scaled_dot_product_attention(*(t.koine() for t in (q, k, v)))
    assert 'Fused' in on_device.grad_fn.name()  # not PyTorch's composition


def test_attention_that_broadcasts():
    q, k = leaf(2, 3, 4, 5), leaf(2, 3, 6, 5, seed=1)
    for queries, keys in ((q[:1], k), (q, k[:1]), (q[:, :1], k), (q, k[:, :1])):
        same(F.scaled_dot_product_attention, queries.detach().requires_grad_(), keys.detach().requires_grad_(),
             keys.detach().requires_grad_())
    with pytest.raises(RuntimeError, match='must match'):  # groups of heads have to be asked for
        F.scaled_dot_product_attention(*(torch.ones(1, heads, 2, 4, device='koine') for heads in (4, 2, 2)))
    same(lambda a, b: F.scaled_dot_product_attention(a, b, b, scale=0.0), q, k)
    same(torch.vmap(lambda a, b: F.scaled_dot_product_attention(a[None], b[None], b[None])), q, k)


def test_an_encoder_that_leaves_padding_out():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 2).eval()
    x, padding = leaf(2, 5, 8).detach(), torch.tensor([[False] * 3 + [True] * 2, [False] * 5])
    with torch.no_grad():
        wanted = net(x, src_key_padding_mask=padding)
        got = net.koine()(x.koine(), src_key_padding_mask=padding.koine()).cpu()
    torch.testing.assert_close(got[~padding], wanted[~padding], rtol=1e-4, atol=1e-5)


def test_attention_keeps_the_layout():
    """Results and gradients have the order of dimensions that PyTorch's shape functions say."""
    q, k, v = (torch.randn(2, 6, 3, 8).koine().transpose(1, 2).requires_grad_() for _ in range(3))
    with torch.no_grad():
        wide = torch.randn(2, 6, 3, 10).koine().transpose(1, 2)
        assert F.scaled_dot_product_attention(q, k, wide).transpose(1, 2).is_contiguous()
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert 'Fused' in y.grad_fn.name()  # not PyTorch's composition
    assert y.transpose(1, 2).is_contiguous()
    y.square().sum().backward()
    assert all(t.grad.stride() == t.stride() for t in (q, k, v))
    same(lambda a, b, c: F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (a, b, c)), is_causal=True),
         *(leaf(2, 6, 3, 8) for _ in range(3)))


def test_backward_moves_no_running_estimates():
    net, other = (torch.nn.BatchNorm2d(3).to(device) for device in ('koine', 'cpu'))
    x = torch.randn(4, 3, 5, 5)
    for one in (net, other):
        one(x.to(one.weight.device)).square().sum().backward()
    assert torch.allclose(net.running_mean.cpu(), other.running_mean, atol=1e-6)
    assert torch.allclose(net.running_var.cpu(), other.running_var, atol=1e-6)


def test_systems_of_equations():
    a, b = leaf(3, 4, 4), leaf(3, 4, 2, seed=1)
    for matrix in (lambda t: t, lambda t: t.mT):
        same(lambda x, y: torch.linalg.solve(matrix(x), y), a, b, close=1e-3)
        same(lambda x, y: torch.linalg.solve(matrix(x), y.mT, left=False), a, b, close=1e-3)
        same(lambda x, y: torch.linalg.solve(matrix(x), y[0, :, 0]), a, b, close=1e-3)
        same(lambda x: [torch.linalg.det(matrix(x)), *torch.linalg.slogdet(matrix(x))], a, close=1e-3)
        same(lambda x: torch.linalg.inv(matrix(x)), a, close=1e-3)
    same(lambda x: [torch.linalg.cholesky(x @ x.mT + torch.eye(4, device=x.device))], a, close=1e-3)
    same(lambda x: list(torch.linalg.qr(x)), a, close=1e-3)
    same(lambda x: torch.linalg.svdvals(x), a, close=1e-3)


def test_dropout():
    x = torch.ones(1000, device='koine', requires_grad=True)
    y = F.dropout(x, 0.3)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach()) and set(y.detach().mul(0.7).round().cpu().tolist()) == {0, 1}
    assert abs((y != 0).float().mean().item() - 0.7) < 0.08
    assert torch.equal(F.dropout(x, 0.3, False), x)


def test_resizing_by_size_and_by_factor():
    x = leaf(1, 2, 5, 7)
    for mode in ('nearest', 'nearest-exact', 'bilinear', 'bicubic'):
        same(lambda a: F.interpolate(a, (8, 3), mode=mode), x)
        same(lambda a: F.interpolate(a, scale_factor=(1.7, 0.6), mode=mode), x)
        same(lambda a: F.interpolate(a, scale_factor=1.7, recompute_scale_factor=True, mode=mode), x)


@pytest.mark.parametrize('mode', ['reflect', 'replicate', 'circular'])
def test_padding_an_empty_batch(mode):
    same(lambda x: F.pad(x, (1, 2), mode), torch.zeros(0, 3, 3, requires_grad=True))


def test_table_is_current():
    """table.inc is what tools/match_operators.py makes of Koine's list and PyTorch's schemas."""
    library = os.path.join(os.environ.get('KOINE_BUILD_DIR', os.path.join(ROOT, 'build')), 'lib', 'libkoine.so')
    made = subprocess.run([sys.executable, os.path.join(ROOT, 'python', 'tools', 'match_operators.py'), library],
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    with open(os.path.join(ROOT, 'python', 'torch_koine', 'csrc', 'operators', 'table.inc'), encoding='utf-8') as file:
        assert made == file.read()
