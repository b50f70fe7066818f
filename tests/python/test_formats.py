"""Memory formats; strides as torch 2.15 has them."""
import koine
import pytest

LAST, PLAIN = (90, 1, 18, 3), (90, 30, 6, 1)  # of shape (2, 3, 5, 6)


@pytest.fixture
def plain():
    return koine.rand(2, 3, 5, 6)


@pytest.fixture
def last(plain):
    return plain.contiguous(memory_format=koine.channels_last)


def test_conversions(plain, last):
    assert last.stride() == LAST and last.tolist() == plain.tolist()
    assert last.contiguous(memory_format=koine.channels_last) is last and last.contiguous().stride() == PLAIN
    assert plain.to(memory_format=koine.channels_last).stride() == LAST
    converted = plain.to(koine.float64, memory_format=koine.channels_last)
    assert converted.stride() == LAST and converted.dtype is koine.float64
    assert last.to(memory_format=koine.preserve_format) is last
    volumes = koine.rand(2, 3, 4, 5, 6).contiguous(memory_format=koine.channels_last_3d)
    assert volumes.stride() == (360, 1, 90, 18, 3)


def test_questions(plain, last):
    assert last.is_contiguous(memory_format=koine.channels_last) and not last.is_contiguous()
    assert plain.is_contiguous(memory_format=koine.contiguous_format)
    assert not plain.is_contiguous(memory_format=koine.channels_last)
    assert koine.rand(1, 1, 4, 4).is_contiguous(memory_format=koine.channels_last)


def test_clones(plain, last):
    assert last.clone().stride() == LAST and plain.clone(memory_format=koine.channels_last).stride() == LAST
    assert last.clone(memory_format=koine.contiguous_format).stride() == PLAIN
    copy = last.clone(memory_format=koine.channels_last)
    copy.zero_()
    assert last.sum().item() > 0


@pytest.mark.parametrize('name', ['empty_like', 'zeros_like', 'ones_like', 'rand_like', 'randn_like'])
def test_tensors_like_others(plain, last, name):
    like = getattr(koine, name)
    assert like(last).stride() == LAST and like(last, dtype=koine.float64).stride() == LAST
    assert like(last, memory_format=koine.contiguous_format).stride() == PLAIN
    assert like(plain, memory_format=koine.channels_last).stride() == LAST
    made = like(last, requires_grad=True)
    assert made.is_leaf and made.requires_grad


def test_orders_of_tensors_like_others():
    assert koine.full_like(koine.rand(4, 5)[:, ::2], 2.0).stride() == (3, 1)
    assert koine.zeros_like(koine.rand(4, 5).t()[::2]).stride() == (1, 3)
    assert koine.zeros_like(koine.rand(3, 1).expand(3, 4)).stride() == (4, 1)
    assert koine.full_like(koine.rand(4, 5).t(), 2.0).tolist() == [[2.0] * 4] * 5


def test_new_tensors():
    made = koine.empty(2, 3, 5, 6, memory_format=koine.channels_last, requires_grad=True)
    assert made.stride() == LAST and made.is_leaf and made.requires_grad


def test_gradients(plain):
    plain.requires_grad_()
    weights = koine.rand(2, 3, 5, 6)
    (plain.contiguous(memory_format=koine.channels_last) * weights).sum().backward()
    assert plain.grad.tolist() == weights.tolist()


def test_operators_keep_formats(last):
    assert last.exp().stride() == LAST and koine.nn.functional.relu(last).stride() == LAST


def test_weights_stay_as_they_are():
    layer = koine.nn.Conv2d(3, 4, 3)
    assert layer.to('cpu', memory_format=koine.channels_last) is layer and layer.weight.is_contiguous()


def test_what_is_no_format(plain):
    with pytest.raises(RuntimeError, match='channels_last is for tensors of 4 dimensions, not 1'):
        koine.ones(2).contiguous(memory_format=koine.channels_last)
    with pytest.raises(TypeError, match='a memory format is needed'):
        plain.to(memory_format='channels_last')
