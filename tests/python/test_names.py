"""Older and further names of PyTorch, and numpy's words for arguments."""
import numpy
import pytest

import koine
from koine import nn


def close(ours, theirs):
    numpy.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-5, atol=1e-5)


def test_tensors_by_type():
    assert koine.Tensor(2, 3).shape == (2, 3) and koine.Tensor(4).shape == (4,) and koine.Tensor().shape == (0,)
    for made in (koine.Tensor([1, 2]), koine.Tensor(numpy.array([1, 2])), koine.Tensor(koine.tensor([1, 2]))):
        assert made.dtype is koine.float32 and made.tolist() == [1, 2]
    assert koine.Tensor([1, 2], dtype=koine.int64).dtype is koine.int64
    assert nn.Parameter(koine.Tensor(3, 2)).shape == (3, 2)
    assert koine.LongTensor([1, 2]).dtype is koine.int64 and koine.FloatTensor([1]).dtype is koine.float32
    assert koine.BoolTensor([0, 3]).tolist() == [False, True] and koine.ByteTensor(2, 1).shape == (2, 1)
    assert koine.ones(2).type(koine.LongTensor).dtype is koine.int64
    assert isinstance(koine.ones(1), koine.FloatTensor) and not isinstance(koine.ones(1), koine.LongTensor)
    assert not isinstance(1.0, koine.FloatTensor)
    like = koine.tensor([1], dtype=koine.int32)
    assert like.new(2, 3).shape == (2, 3) and like.new([5]).dtype is koine.int32
    for wrong in (lambda: koine.Tensor([1], [2]), lambda: koine.FloatTensor(2, [3])):
        with pytest.raises(TypeError, match='expected sizes, or numbers in a list'):
            wrong()


def test_words_of_numpy():
    x = numpy.random.randn(2, 3, 4).astype('float32')
    ours = koine.tensor(x)
    close(ours.sum(axis=(0, 2), keepdims=True), x.sum(axis=(0, 2), keepdims=True))
    close(koine.mean(ours, axis=1), x.mean(axis=1))
    close(ours.max(axis=1).values, x.max(axis=1))
    close(ours.argmin(axis=-1, keepdims=True), x.argmin(axis=-1)[..., None])
    close(ours.std(axis=0, unbiased=False), x.std(axis=0))
    close(koine.cat([ours, ours], axis=2), numpy.concatenate([x, x], axis=2))
    close(ours.softmax(axis=1).sum(axis=1), numpy.ones((2, 4)))
    close(ours.median(axis=1).values, numpy.median(x, axis=1))
    close(ours.cumprod(axis=1), x.cumprod(axis=1))
    assert ours.any(axis=0).shape == (3, 4)
    with pytest.raises(TypeError, match="cumsum\\(\\) missing 1 required argument: 'dim'"):
        ours.cumsum()


def test_norms():
    x = numpy.random.randn(3, 4).astype('float32')
    ours = koine.tensor(x)
    for p, order in (('fro', 'fro'), ('nuc', 'nuc'), (2, 'fro'), (None, 'fro')):
        close(ours.norm(p), numpy.linalg.norm(x, order))
    close(koine.norm(ours, p=float('inf'), dim=1, keepdim=True), abs(x).max(axis=1, keepdims=True))
    close(ours.norm(1, 0), abs(x).sum(axis=0))
    assert koine.tensor([3, 4]).norm(dtype=koine.float32).item() == 5


def test_decompositions():
    x = numpy.random.randn(4, 3).astype('float32')
    ours = koine.tensor(x)
    u, s, v = koine.svd(ours)
    close(u @ s.diag() @ v.T, x)
    assert u.shape == (4, 3) and koine.svd(ours, some=False)[0].shape == (4, 4)
    q, r = ours.qr()
    close(q @ r, x)
    gram = x.T @ x + numpy.eye(3, dtype='float32')
    close(koine.cholesky(koine.tensor(gram)), numpy.linalg.cholesky(gram))
    close(ours.pinverse(), numpy.linalg.pinv(x))


def test_detached_tensors():
    x = koine.ones(2, requires_grad=True)
    y = x * 2
    assert y.detach_() is y and y.is_leaf and not y.requires_grad and y.tolist() == [2, 2]
    assert x.detach_() is x and not x.requires_grad
    layer = koine.nn.Linear(2, 1)
    for one in layer.parameters():
        one.detach_()
    assert not layer(x).requires_grad


def test_changes_of_shape_in_place():
    x = koine.arange(6.0).reshape(1, 2, 3)
    assert x.squeeze_() is x and x.shape == (2, 3)
    assert x.t_().shape == (3, 2) and x.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.unsqueeze_(1).shape == (3, 1, 2) and x.transpose_(0, 2).shape == (2, 1, 3)
    assert x.squeeze_(1).shape == (2, 3)
    with pytest.raises(RuntimeError, match='a leaf that requires a gradient'):
        koine.ones(1, 2, requires_grad=True).squeeze_()


def test_products_added_in_place():
    x, a, b = koine.ones(2), koine.tensor([2.0, 4.0]), koine.tensor([1.0, 8.0])
    assert x.addcdiv_(a, b, value=2) is x and x.tolist() == [5, 2] and x.addcmul_(a, b).tolist() == [7, 34]


def test_small_functions():
    assert koine.randint(5, size=(3,)).shape == (3,) and koine.randint(high=1, size=(2,)).tolist() == [0, 0]
    assert koine.broadcast_shapes((2, 1), 3, (1, 3)) == (2, 3) == koine.Size([2, 3]) and koine.Size is type(
        koine.ones(1).shape)
    assert koine.is_nonzero(koine.tensor([2.0])) and not koine.tensor(0).is_nonzero() and not koine.ones(1).is_complex()
    x = koine.ones(2, requires_grad=True)
    assert koine.as_tensor(x) is x and koine.as_tensor([1, 2], koine.float32).tolist() == [1, 2]
    koine.as_tensor(x, dtype=koine.float64).sum().backward()
    assert x.grad.tolist() == [1, 1] and x.grad.dtype is koine.float32
    x = koine.ones(2)
    assert koine.asarray(x) is x and koine.asarray(x, copy=True) is not x
    assert koine.asarray(x, dtype='int32').tolist() == [1, 1]
    assert koine.asarray([1.0], requires_grad=True).requires_grad and koine.scalar_tensor(3).dtype is koine.float32
    assert x[koine.newaxis].shape == (1, 2) and x.ndimension() == 1 and koine.e == pytest.approx(2.718281828)


def test_names_of_layers():
    from koine.nn.parameter import Parameter
    assert Parameter is nn.Parameter
    indices, weight = koine.tensor([1, 0]), koine.randn(3, 2)
    layer = nn.Embedding(3, 2, sparse=True)
    assert layer(indices).shape == (2, 2)
    assert nn.EmbeddingBag(3, 2, mode='sum', sparse=False)(indices[None]).shape == (1, 2)
    assert nn.Embedding.from_pretrained(weight, freeze=True, sparse=True).weight.tolist() == weight.tolist()
    assert nn.functional.embedding(indices, weight, sparse=False)[1].tolist() == weight[0].tolist()
    assert nn.LSTM(2, 3).flatten_parameters() is None
    assert nn.init._calculate_fan_in_and_fan_out(koine.ones(4, 3, 2, 2)) == (12, 16)
    assert nn.init._calculate_fan_in_and_fan_out(koine.ones(4, 3)) == (3, 4)
    with pytest.raises(ValueError, match='2 dimensions or more, not 1'):
        nn.init._calculate_fan_in_and_fan_out(koine.ones(4))


def test_sizes_by_name():
    assert koine.empty(size=(2, 3)).shape == koine.zeros(size=[2, 3]).shape == koine.rand(size=(2, 3)).shape == (2, 3)


def test_data_of_tensors_with_gradients():
    x = koine.ones(2, requires_grad=True)
    x.data = x * 3
    assert x.tolist() == [3, 3] and x.is_leaf


def test_copies_are_recorded():
    x, y = koine.ones(2, 3, requires_grad=True), koine.zeros(2, 3)
    assert y.copy_(x * 2) is y and y.requires_grad and y.tolist() == [[2] * 3] * 2
    (y * y).sum().backward()
    assert x.grad.tolist() == [[8] * 3] * 2
    z = (x * 1).copy_(koine.ones(3))
    x.grad = None
    (z + x).sum().backward()
    assert x.grad.tolist() == [[1] * 3] * 2
    whole = koine.zeros(2, 3, dtype=koine.float64)
    whole.copy_(x)
    whole.sum().backward()
    assert x.grad.tolist() == [[2] * 3] * 2 and x.grad.dtype is koine.float32


def test_outer_products_of_all_dtypes():
    steps, rates = koine.arange(3), koine.tensor([0.5, 2.0])
    assert koine.outer(steps, rates).tolist() == [[0, 0], [0.5, 2], [1, 4]]
    assert steps.outer(steps).dtype is koine.int64 and koine.ger(rates, rates).tolist() == [[0.25, 1], [1, 4]]
    with pytest.raises(ValueError, match='outer: vectors are needed'):
        koine.outer(steps, koine.ones(2, 2))


def test_names_and_paths_are_not_cut_at_a_nul(tmp_path):
    for wrong in (lambda: koine.save({'w': koine.ones(1)}, str(tmp_path / 'a\0b')),
                  lambda: koine.safetensors.save_file({'a\0b': koine.ones(1)}, tmp_path / 'a'),
                  lambda: koine.einsum('i->i\0j', koine.ones(1)),
                  lambda: koine.device('0:0\0')):
        with pytest.raises(ValueError, match='has a NUL character'):
            wrong()
    assert not list(tmp_path.iterdir())


def test_what_dir_lists_is_there():
    x = koine.ones(2, 2)
    for one in (koine, x, koine.nn, koine.linalg, koine.optim):
        assert [name for name in dir(one) if not hasattr(one, name)] == []
    assert 'relu' in dir(koine) and 'relu' in dir(x) and 'einsum' not in dir(x)
