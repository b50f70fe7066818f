"""Results lie in memory as PyTorch's: where operands are transposed or have their channels last, so are the results."""
import itertools

import pytest
import torch
import torch.nn.functional as F

IMAGES = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0)) * 0.8 + 0.1
LAYOUTS = {
    'channels last': IMAGES.to(memory_format=torch.channels_last),
    'transposed': IMAGES.transpose(1, 2),
    'permuted': IMAGES.permute(3, 1, 0, 2),
    'with gaps': IMAGES.transpose(0, 3)[::2],
    'broadcast': IMAGES[:1].permute(3, 2, 1, 0).expand(5, 4, 3, 2),
    'without order': IMAGES,
}


def on_device(x):
    """With the same strides, of a copy of the whole storage."""
    storage = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
    return storage.koine().as_strided(x.shape, x.stride(), x.storage_offset())


def same_layout(function, *tensors):
    got, wanted = function(*(on_device(x) for x in tensors)), function(*tensors)
    if isinstance(wanted, torch.Tensor):
        got, wanted = [got], [wanted]
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one.detach().cpu(), other.detach(), check_stride=False)
        assert one.stride() == other.stride()


def slope(function):
    """Its gradient by its argument, for a gradient with the layout of the result."""
    def run(x, *others):
        leaf = x.detach().requires_grad_()
        y = function(leaf, *others)
        return torch.autograd.grad(y, leaf, y.detach())[0]
    return run


@pytest.mark.parametrize('layout', LAYOUTS)
def test_one_operand(layout):
    x = LAYOUTS[layout]
    for f in (torch.abs, torch.exp, torch.logical_not, torch.isnan, torch.isinf, torch.logit):
        same_layout(f, x)
    same_layout(lambda x: [x.half().abs(), x.half().exp(), x.clamp(min=0.5), x.flip(0), x.flip(1, -1)], x)
    for f in (F.relu, F.relu6, F.hardtanh, F.hardswish, F.hardsigmoid, F.elu, F.selu, F.celu, F.leaky_relu, F.silu,
              F.mish, F.gelu, F.softplus, F.softshrink, F.hardshrink, torch.logit, torch.abs):
        same_layout(f, x)
        same_layout(slope(f), x)


@pytest.mark.parametrize('layout', LAYOUTS)
def test_several_operands(layout):
    """The first that tells decides, also where another has fewer dimensions."""
    x, plain = LAYOUTS[layout], LAYOUTS[layout].contiguous()
    for f in (torch.add, torch.logical_and, torch.floor_divide, torch.fmod, torch.lt):
        for other in (x, plain, x[:1], x[..., :1], plain[0]):
            same_layout(f, x, other)
            same_layout(f, other, x)
    for one, two, three in itertools.permutations((x, plain, x[:, :1])):
        same_layout(lambda a, b, c: [torch.where(a > 0.5, b, c), torch.where(a > 0.5, b, 1.0), torch.addcmul(a, b, c)],
                    one, two, three)
    same_layout(lambda x: F.huber_loss(x, x, reduction='none'), x)
    same_layout(slope(lambda x, y: F.binary_cross_entropy(x, y, reduction='none')), x, x)
    same_layout(lambda x, weight: F.prelu(x, weight), x, torch.full((x.shape[1],), 0.5))
    same_layout(slope(F.prelu), x, torch.full((x.shape[1],), 0.5))


@pytest.mark.parametrize('layout', LAYOUTS)
def test_gradients_of_another_layout(layout):
    """The gradient decides, but where PyTorch asks the argument first."""
    x, plain = LAYOUTS[layout], LAYOUTS[layout].contiguous()
    for f in (F.silu, F.mish, F.elu, F.hardswish, F.hardtanh, F.softplus, F.leaky_relu, torch.logit):
        for gradient in (plain, torch.ones(()).expand(x.shape)):
            def run(x, gradient):
                leaf = x.detach().requires_grad_()
                return torch.autograd.grad(f(leaf), leaf, gradient)[0]
            same_layout(run, x, gradient)
            same_layout(run, plain, x)


@pytest.mark.parametrize('layout', LAYOUTS)
def test_indices(layout):
    x = LAYOUTS[layout]
    one, two = torch.tensor([1, 0, 1]), torch.tensor([[0, 1, 0], [1, 1, 0]])
    for f in (lambda x, i, j: x[i], lambda x, i, j: x[:, i], lambda x, i, j: x[..., i], lambda x, i, j: x[j],
              lambda x, i, j: x[:, j.t()], lambda x, i, j: x[:, i, j], lambda x, i, j: x[i, :, i],
              lambda x, i, j: x[:, i, :, j], lambda x, i, j: x[:, i[:, None], i[:1]], lambda x, i, j: x[i, j, i, j],
              lambda x, i, j: x[x > 0.5], lambda x, i, j: x[:, x[0] > 0.5], lambda x, i, j: x[:, :, x[0, 0] > 0.5],
              lambda x, i, j: x[j.t(), 1], lambda x, i, j: x[:1, i], lambda x, i, j: x[:1, x[0, :, 0, 0] > 0.5],
              lambda x, i, j: x[i[:1], x[0] > 0.5]):
        same_layout(f, x, one, two)


def test_dropout():
    for x in LAYOUTS.values():
        for wanted, y in zip(torch.native_dropout(x, 0.5, True), torch.native_dropout(on_device(x), 0.5, True)):
            assert y.stride() == wanted.stride()


@pytest.mark.parametrize('layout', LAYOUTS)
def test_normalisation(layout):
    x = LAYOUTS[layout]
    for f in (lambda x: F.batch_norm(x, None, None, training=True), lambda x: F.group_norm(x, 1)):
        same_layout(f, x)
        same_layout(slope(f), x)


def test_views_of_results_in_compiled_graphs():
    """Their strides are those that PyTorch's shape functions predict."""
    torch._dynamo.reset()

    def f(x):
        y = F.elu(x.abs()).transpose(0, 1)
        return torch.where(y > 0.5, y, F.silu(y)).transpose(0, 1).view(-1)
    x = torch.randn(4, 6, device='koine')
    compiled = torch.compile(f, backend='koine')
    for _ in range(3):
        torch.testing.assert_close(compiled(x), f(x))
