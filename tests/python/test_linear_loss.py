"""The cross entropy of a linear layer's results, in chunks and at once."""
import pytest

import koine
from koine import nn
from koine.nn import functional as F


def test_linear_cross_entropy():
    x, w = koine.randn(20, 3, requires_grad=True), koine.randn(7, 3, requires_grad=True)
    target = koine.arange(20) % 7
    options = nn.LinearCrossEntropyOptions
    expected = F.cross_entropy(F.linear(x, w), target, ignore_index=2)
    gradients = koine.autograd.grad(expected, (x, w))
    for one in (None, options(), options(batch_chunk_size=6), options(chunking_method='aspect_ratio:2'),
                options(chunking_method=None)):
        found = F.linear_cross_entropy(x, w, target, ignore_index=2, options=one)
        koine.testing.assert_close(found, expected)
        koine.testing.assert_close(koine.autograd.grad(found, (x, w)), gradients)
    assert options().rows(x, w) == -1 and options(chunking_method='aspect_ratio:2').rows(x, w) == 4
    assert options(chunking_method='aspect_ratio:99').rows(x, w) == 1 and options(batch_chunk_size=5).rows(x, w) == 5
    for wrong in ({'batch_chunk_size': 0}, {'chunking_method': 'aspect_ratio:0'}, {'chunking_method': 'all'}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            options(**wrong)


def test_linear_cross_entropy_loss():
    loss = nn.LinearCrossEntropyLoss(3, 5, bias=True, weight=koine.rand(5),
                                     options=nn.LinearCrossEntropyOptions(batch_chunk_size=2))
    assert list(loss.state_dict()) == ['weight', 'linear.weight', 'linear.bias']
    x, target = koine.randn(6, 3), koine.arange(6) % 5
    koine.testing.assert_close(loss(x, target), F.cross_entropy(loss.linear(x), target, loss.weight))
    loss(x, target).backward()
    assert loss.linear.weight.grad is not None and 'num_classes=5' in repr(loss)
    several = nn.LinearCrossEntropyLoss(3, 5, out_features=(2,), reduction='none')
    assert several(x, target[:, None].repeat(1, 2)).shape == (6, 2)
    with pytest.raises(RuntimeError, match=r'5 classes has the shape \(5,\), not \(3,\)'):
        nn.LinearCrossEntropyLoss(3, 5, weight=koine.rand(3))
