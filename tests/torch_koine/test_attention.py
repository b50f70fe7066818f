"""Attention under torch.func's transforms, and the choice of its kernel."""
import copy

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call, grad, hessian, jacrev, jvp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from test_operators import leaf, same


def draw(*shape, seed=0):
    return leaf(*shape, seed=seed).detach()


def loss(q, mask=None):
    q = q[None]
    return F.scaled_dot_product_attention(q, q * 2, q.cos(), mask).square().sum()


def test_gradients_per_sample():
    q = draw(5, 2, 3, 8)
    torch.koine.reset_fallbacks()
    same(vmap(grad(loss)), q, close=1e-4)
    same(vmap(grad(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True).square().sum())), q[:, None])
    same(vmap(grad(loss), in_dims=1, out_dims=1), q.transpose(0, 1), close=1e-4)
    same(vmap(vmap(grad(loss))), draw(3, 4, 2, 3, 8), close=1e-4)
    same(grad(lambda q: vmap(loss)(q).sum()), q, close=1e-4)
    assert torch.koine.fallbacks() == {}


def test_gradients_per_sample_of_some_arguments():
    """The others have none: samples that share a key, or a value, or a query."""
    def one(q, k, v):
        return F.scaled_dot_product_attention(q[None], k[None], v[None]).square().sum()
    several, shared = draw(4, 2, 3, 8), (draw(2, 3, 8, seed=1), draw(2, 3, 8, seed=2))
    for place in range(3):
        dims = [0 if i == place else None for i in range(3)]
        arguments = [*shared[:place], several, *shared[place:]]
        for argnums in ((0,), (1,), (2,), (0, 2)):
            same(vmap(grad(one, argnums), in_dims=tuple(dims)), *arguments)


def test_gradients_per_sample_with_masks():
    q, masks = draw(5, 2, 3, 8), draw(5, 2, 3, 3, seed=1)
    for mask in (masks[0, 0], masks[0, :1], masks[:1]):
        same(vmap(grad(loss), in_dims=(0, None)), q, mask, close=1e-4)
    for each in (masks, masks[:, 0], masks[:, 0] > -2):
        same(vmap(grad(loss)), q, each, close=1e-4)
    same(vmap(grad(loss, argnums=1)), q, masks)
    same(lambda q, masks: grad(lambda masks: vmap(loss)(q, masks).sum())(masks), q, masks)


def test_gradients_per_sample_of_a_module():
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def run(device):
        moved = copy.deepcopy(module).to(device)
        weights = {name: weight.detach() for name, weight in moved.named_parameters()}

        def one(weights, x):
            x = x[None]
            return functional_call(moved, weights, (x, x, x), {'need_weights': False})[0].square().sum()
        return vmap(grad(one), in_dims=(None, 0))(weights, draw(4, 3, 8).to(device))
    wanted = run('cpu')
    for name, got in run('koine').items():
        torch.testing.assert_close(got.cpu(), wanted[name], rtol=1e-4, atol=1e-4)


def test_backward_passes_of_many_gradients():
    """The forward pass is outside of vmap."""
    same(jacrev(lambda q: F.scaled_dot_product_attention(q, q, q)), draw(1, 2, 3, 4))

    def batched(q):
        y = F.scaled_dot_product_attention(q, q.detach(), q.detach())
        return torch.autograd.grad(y, q, torch.stack([y.detach(), y.detach().cos()]), is_grads_batched=True)[0]
    got, wanted = (batched(leaf(1, 2, 3, 4).detach().to(device).requires_grad_()) for device in ('koine', 'cpu'))
    torch.testing.assert_close(got.cpu(), wanted)


def test_derivatives_of_gradients():
    """By PyTorch's composition: Koine's gradient has none. The CPU refuses those, but of the composition."""
    q = draw(1, 2, 3)
    for f in (lambda q: grad(lambda q: grad(loss)(q).square().sum())(q), hessian(loss),
              lambda q: list(jvp(loss, (q,), (q.cos(),)))):
        with sdpa_kernel(SDPBackend.MATH):
            wanted = f(q)
        got = f(q.koine())
        for one, other in zip(got if isinstance(got, list) else [got], wanted if isinstance(got, list) else [wanted]):
            torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-4)


def test_the_kernel_can_be_chosen():
    q = draw(2, 2, 3, 8).koine().requires_grad_()

    def is_fused(**options):
        return 'Fused' in F.scaled_dot_product_attention(q, q, q, **options).grad_fn.name()
    assert is_fused()
    with sdpa_kernel(SDPBackend.MATH):
        assert not is_fused()
        same(lambda a: F.scaled_dot_product_attention(a, a, a), leaf(2, 2, 3, 8))
    for fused in (SDPBackend.OVERRIDEABLE, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
        with sdpa_kernel(fused):
            assert is_fused()
            with pytest.raises(RuntimeError, match='No viable backend'):
                is_fused(dropout_p=0.5)
        with sdpa_kernel([fused, SDPBackend.MATH]):
            assert is_fused() and not is_fused(dropout_p=0.5)
    assert is_fused()
