"""torch.autocast and torch.amp.GradScaler on the device."""
import pytest
import torch

koine = torch.koine


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_autocast(dtype):
    x, w = torch.randn(3, 4).koine(), torch.randn(4, 5).koine()
    with torch.autocast('koine', dtype=dtype):
        assert torch.is_autocast_enabled('koine') and torch.get_autocast_dtype('koine') == dtype
        product = x @ w
        assert product.dtype == dtype
        assert (product.float() + 1).dtype == torch.float32 and product.relu().dtype == dtype
        assert product.exp().dtype == torch.float32 and product.softmax(1).dtype == torch.float32
        assert product.sum().dtype == torch.float32 and torch.cat([product, product.float()]).dtype == torch.float32
        assert torch.nn.functional.mse_loss(product, product.float()).dtype == torch.float32
        with torch.autocast('koine', enabled=False):
            assert (x @ w).dtype == torch.float32
        with pytest.raises(RuntimeError, match='unsafe to autocast'):
            torch.nn.functional.binary_cross_entropy(product.sigmoid(), product.detach().sigmoid())
    assert (x @ w).dtype == torch.float32
    with koine.amp.autocast():
        assert (x @ w).dtype == torch.float16


def test_unscale():
    gradients = [torch.full((3,), 4.0).koine(), torch.full((2, 2), 2.0).half().koine()]
    found, inverse = torch.zeros(1).koine(), torch.full((1,), 0.5).koine()
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
    assert found.item() == 0 and gradients[0].tolist() == [2.0] * 3 and gradients[1][1, 1].item() == 1
    gradients[1][0, 1] = float('nan')
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
    assert found.item() == 1


def test_update_of_the_scale():
    scales = {}
    for device in ('koine', 'cpu'):
        scale = torch.full((), 8.0, device=device)
        tracker = torch.zeros((), dtype=torch.int32, device=device)
        scales[device] = []
        for inf in (0, 0, 0, 1, 0, 0):
            torch._amp_update_scale_(scale, tracker, torch.full((), float(inf), device=device), 2.0, 0.5, 2)
            scales[device].append((scale.item(), tracker.item()))
    assert scales['koine'] == scales['cpu']
    scale = torch.full((), 3e38).koine()
    torch._amp_update_scale_(scale, torch.ones((), dtype=torch.int32).koine(), torch.zeros(()).koine(), 2.0, 0.5, 2)
    assert scale.isfinite().item()


def test_a_step_with_an_infinity_is_skipped():
    net = torch.nn.Linear(2, 2).koine()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler('koine', init_scale=1024.0)
    before = net.weight.detach().cpu().clone()
    for factor, changes in ((float('inf'), False), (1.0, True)):
        with torch.autocast('koine'):
            loss = net(torch.ones(1, 2).koine()).float().sum() * factor
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(net.weight.detach().cpu(), before) != changes
    assert scaler.get_scale() == 512 and isinstance(koine.amp.GradScaler(), torch.amp.GradScaler)
    # The gradients were those of the loss, not of the scaled one.
    assert torch.allclose(net.weight.detach().cpu(), before - 0.1, atol=1e-3)
