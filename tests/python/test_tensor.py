"""Tensors: creation, numpy, dtypes, operators of Python, indexing, views."""
import copy
import pickle

import numpy
import pytest

import koine

DTYPES = ['float64', 'float32', 'float16', 'int64', 'int32', 'int16', 'int8', 'uint8', 'bool']


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('shape', [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_to_numpy_and_back(dtype, shape):
    array = numpy.asarray(numpy.random.rand(*shape) * 10).astype(dtype)
    tensor = koine.from_numpy(array)
    assert tensor.shape == shape and tensor.dtype == getattr(koine, dtype) and tensor.ndim == len(shape)
    back = tensor.numpy()
    assert back.dtype == numpy.dtype(dtype)
    numpy.testing.assert_array_equal(back, array)


def test_shapes_are_tuples():
    shape = koine.zeros(2, 3).shape
    assert isinstance(shape, koine.Size) and shape == (2, 3) and repr(shape) == '(2, 3)'
    assert shape.numel() == 6 and koine.zeros(()).size().numel() == 1 and koine.Size([3]) == koine.zeros(3).shape


def test_bfloat16():
    x = koine.tensor([1.0, 2.5, 3.14159], dtype=koine.bfloat16)
    assert x.dtype is koine.bfloat16 and x.itemsize == 2
    with pytest.raises(TypeError, match='float'):
        x.numpy()
    assert x.tolist() == [1.0, 2.5, 3.140625]
    assert x.float().numpy().tolist() == [1.0, 2.5, 3.140625]


def test_any_order_of_memory():
    array = numpy.arange(24).reshape(2, 3, 4)
    for view in (array.T, array[:, ::-1], array[::-1, 1:, ::2], numpy.asfortranarray(array)):
        numpy.testing.assert_array_equal(koine.tensor(view).numpy(), view)
        numpy.testing.assert_array_equal(koine.tensor(array).permute(2, 0, 1).numpy(), array.transpose(2, 0, 1))


def test_python_numbers():
    assert koine.tensor([1, 2]).dtype is koine.int64
    assert koine.tensor([1.0, 2]).dtype is koine.float32
    assert koine.tensor(True).dtype is koine.bool
    assert koine.tensor(3).item() == 3 and isinstance(koine.tensor(3).item(), int)
    assert koine.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert koine.full((2,), 3).dtype is koine.int64 and koine.full((2,), 3.0).dtype is koine.float32
    assert koine.arange(3).dtype is koine.int64 and koine.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75]
    big = koine.tensor(2**53 + 1)
    assert (big + 0).item() == 2**53 + 1 and (koine.zeros(1, dtype='int64') + 2**62 + 1).item() == 2**62 + 1


def test_host_memory_is_shared():
    host = koine.zeros(2, 3, device='host')
    array = host.numpy()
    array[1, 2] = 7
    assert host.numpy()[1, 2] == 7 and host.tolist()[1][2] == 7
    del host
    assert array[1, 2] == 7
    with pytest.raises(RuntimeError, match='host'):
        koine.zeros(2, device='host') + 1


BINARY = ['a + b', 'a - b', 'a * b', 'a / b', 'a // b', 'a % b', 'a ** b', 'a == b', 'a != b', 'a < b', 'a <= b',
          'a > b', 'a >= b']


@pytest.mark.parametrize('text', BINARY)
@pytest.mark.parametrize('kind', ['float64', 'int64'])
def test_binary(text, kind):
    a = (numpy.random.rand(2, 3) * 5 + 1).astype(kind)
    b = (numpy.random.rand(3) * 3 + 1).astype(kind)
    if text == 'a / b' and kind == 'int64':
        expected = (a / b).astype('float32')
    else:
        expected = eval(text)
    tensors = {'a': koine.tensor(a), 'b': koine.tensor(b)}
    numpy.testing.assert_allclose(eval(text, tensors).numpy(), expected, rtol=1e-6)
    for ours, theirs in (({'a': koine.tensor(a), 'b': 2}, {'a': a, 'b': 2}),
                         ({'a': 3, 'b': koine.tensor(b)}, {'a': 3, 'b': b})):
        numpy.testing.assert_allclose(eval(text, ours).numpy(), eval(text, theirs), rtol=1e-6)


@pytest.mark.parametrize('text', ['a & b', 'a | b', 'a ^ b', 'a << 1', 'a >> 1', '~a', '-a', 'abs(a)', '+a', 'a & 3'])
def test_bits(text):
    a, b = numpy.arange(-3, 3), numpy.arange(6)
    ours = eval(text, {'a': koine.tensor(a), 'b': koine.tensor(b)})
    numpy.testing.assert_array_equal(ours.numpy(), eval(text))


@pytest.mark.parametrize('text', ['x += y', 'x -= y', 'x *= y', 'x /= y', 'x //= y', 'x **= y', 'x %= y'])
def test_in_place(text):
    for y in (2.0, 3):
        x = koine.tensor([1.0, 4.0, 9.0])
        names = {'x': x, 'y': y}
        array = {'x': numpy.array([1.0, 4.0, 9.0], dtype='float32'), 'y': y}
        exec(text, names)
        exec(text, array)
        assert names['x'] is x
        numpy.testing.assert_allclose(x.numpy(), array['x'], rtol=1e-6)


def test_matmul():
    a, b = numpy.random.rand(2, 3, 4), numpy.random.rand(4, 5)
    numpy.testing.assert_allclose((koine.tensor(a) @ koine.tensor(b)).numpy(), a @ b)


POINTWISE = ['sin', 'cos', 'tan', 'exp', 'log', 'sqrt', 'tanh', 'floor', 'ceil', 'trunc', 'abs', 'sign', 'log1p',
             'expm1', 'square', 'reciprocal', 'isnan', 'isfinite', 'arcsinh', 'log2', 'log10']


@pytest.mark.parametrize('name', POINTWISE)
def test_pointwise(name):
    array = numpy.random.rand(3, 4) + 0.5
    expected = getattr(numpy, name)(array)
    numpy.testing.assert_allclose(getattr(koine, name)(koine.tensor(array)).numpy(), expected, rtol=1e-12)
    numpy.testing.assert_allclose(getattr(koine.tensor(array), name)().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize('dim', [None, 0, -1, (0, 2)])
@pytest.mark.parametrize('keepdim', [False, True])
@pytest.mark.parametrize('name', ['sum', 'mean', 'prod', 'amax', 'amin', 'std', 'var', 'any', 'all', 'nansum'])
def test_reductions(name, dim, keepdim):
    array = numpy.random.rand(2, 3, 4)
    ours = getattr(koine.tensor(array), name)(dim=dim, keepdim=keepdim).numpy()
    options = {'ddof': 1} if name in ('std', 'var') else {}
    theirs = getattr(numpy, name)(array, axis=dim, keepdims=keepdim, **options)
    numpy.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_extremes():
    x = koine.tensor([[3.0, 1.0], [2.0, 5.0]])
    assert x.max().item() == 5 and x.argmax().item() == 3 and x.argmin(dim=1).tolist() == [1, 0]
    values, indices = x.max(dim=0)
    assert values.tolist() == [3, 5] and indices.tolist() == [0, 1]
    assert x.max(dim=1).indices.tolist() == [0, 1]
    assert koine.max(x, koine.full_like(x, 2.5)).tolist() == [[3, 2.5], [2.5, 5]]
    assert x.clamp(2, 4).tolist() == [[3, 2], [2, 4]] and x.clamp(min=2).tolist() == [[3, 2], [2, 5]]
    assert koine.where(x > 2, x, 0).tolist() == [[3, 0], [0, 5]]


KEYS = ['0', '-1', '1:', '::2', ':, 1', '..., 0', 'None', ':, None, 1:2', '[0, 2]', '[[0, 1], [2, 0]]',
        '[0, 1], [2, 1]', ':, [0, 2]', '[0], :, 1', 'a[:, 0, 0] > 11', 'a > 5',
        '..., [1, 0], :', '1, 2, 3', '0:0', ':, a[0, :, 0] > 3',
        'True', '[], ', ':, :, [0, 1]', '0, [0, 1], 1:3', '[1], None, [2]', 'None, ..., 1']


@pytest.mark.parametrize('key', KEYS)
def test_get(key):
    a = numpy.arange(3 * 3 * 4).reshape(3, 3, 4)
    x = koine.tensor(a)
    expected = eval('a[%s]' % key)
    ours = eval('x[%s]' % key.replace('a', 'x') if '>' not in key else 'x[koine.tensor(%s)]' % key
                if not key.startswith(':') else 'x[:, koine.tensor(a[0, :, 0] > 3)]')
    assert ours.shape == expected.shape
    numpy.testing.assert_array_equal(ours.numpy(), expected)


@pytest.mark.parametrize('key', [key for key in KEYS if key not in ('True',)])
@pytest.mark.parametrize('whole', [True, False])
def test_put(key, whole):
    a = numpy.arange(3 * 3 * 4).reshape(3, 3, 4)
    x = koine.tensor(a)
    part = eval('a[%s]' % key)
    value = 100 if whole else numpy.arange(part.size).reshape(part.shape) + 100
    copied = a.copy()
    exec('copied[%s] = value' % key)
    exec('x[%s] = value' % key)
    numpy.testing.assert_array_equal(x.numpy(), copied)


def test_one_bool_as_a_mask():
    x, y = koine.tensor(3.0), koine.arange(6).reshape(2, 3)
    yes, no = koine.tensor(True), koine.tensor(False)
    assert x[yes].tolist() == [3] and x[x > 5].tolist() == [] and x[numpy.array(True)].tolist() == [3]
    assert y[yes].shape == (1, 2, 3) and y[no].shape == (0, 2, 3) and y[:, yes].shape == (2, 1, 3)
    x[x > 2] = 5
    y[no], y[0, yes] = 7, 9
    assert x.item() == 5 and y.tolist() == [[9, 9, 9], [3, 4, 5]]


def test_views_share_memory():
    x = koine.zeros(2, 3)
    x[0].fill_(1)
    x.T[2] += 5
    x.view(6)[1] = 9
    x.view(3, 2).transpose(0, 1)[0, 0] = 4
    assert x.tolist() == [[4, 9, 6], [0, 0, 5]]
    assert x.T.stride() == (1, 3) and x[:, 1:].storage_offset() == 1 and not x.T.is_contiguous()
    with pytest.raises(RuntimeError, match='reshape'):
        x.T.view(6)
    assert x.T.reshape(6).shape == (6,)
    assert x.as_strided((2, 2), (1, 1)).tolist() == [[4, 9], [9, 6]]


def test_shapes():
    x = koine.arange(24).reshape(2, 3, 4)
    a = x.numpy()
    for ours, theirs in [(x.permute(2, 0, 1), a.transpose(2, 0, 1)), (x.flatten(1), a.reshape(2, 12)),
                         (x.unsqueeze(1).squeeze(1), a), (x.movedim(0, 2), numpy.moveaxis(a, 0, 2)),
                         (x.flip(0, 2), a[::-1, :, ::-1]), (x.roll(1, 2), numpy.roll(a, 1, 2)),
                         (x.repeat(1, 2, 1), numpy.tile(a, (1, 2, 1))), (x.expand(2, 2, 3, 4)[1], a),
                         (koine.cat([x, x], 1), numpy.concatenate([a, a], 1)),
                         (koine.stack((x, x)), numpy.stack([a, a])),
                         (x.tril(), numpy.tril(a)), (x.repeat_interleave(2, 1), numpy.repeat(a, 2, 1)),
                         (x.T, a.T), (x.mT, a.swapaxes(1, 2)), (x.select(1, 2), a[:, 2])]:
        numpy.testing.assert_array_equal(ours.numpy(), theirs)
    assert [one.shape for one in x.split(2, 1)] == [(2, 2, 4), (2, 1, 4)]
    assert [one.shape for one in x.split([1, 2], 1)] == [(2, 1, 4), (2, 2, 4)]
    assert len(x.chunk(2, 2)) == 2 and len(x.unbind(1)) == 3 and len(list(x)) == 2 and len(x) == 2
    assert [one.tolist() for one in koine.nonzero(koine.tensor([[0, 1], [1, 0]]), as_tuple=True)] == [[0, 1], [1, 0]]
    assert koine.meshgrid(koine.arange(2), koine.arange(3))[1].tolist() == [[0, 1, 2], [0, 1, 2]]


def test_unique_and_sort():
    x = koine.tensor([3, 1, 3, 2])
    assert x.unique().tolist() == [1, 2, 3]
    values, inverse, counts = koine.unique(x, return_inverse=True, return_counts=True)
    assert inverse.tolist() == [2, 0, 2, 1] and counts.tolist() == [1, 1, 2]
    values, indices = x.sort(descending=True)
    assert values.tolist() == [3, 3, 2, 1]
    assert x.topk(2).values.tolist() == [3, 3] and x.median().item() == 2 and x.float().quantile(0.5).item() == 2.5


def test_copies():
    x = koine.randn(2, 3, requires_grad=True)
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert made.requires_grad and made is not x
        numpy.testing.assert_array_equal(made.detach().numpy(), x.detach().numpy())
    y = koine.zeros(2, 3)
    y.copy_(x.detach())
    assert koine.equal(y, x) and koine.allclose(y, x + 1e-9)
    assert pickle.loads(pickle.dumps(koine.float16)) is koine.float16
    assert x.to('float64').dtype is koine.float64 and x.to(x.device) is x and x.float() is not None


def test_numbers_of_tensors():
    assert float(koine.tensor(2.5)) == 2.5 and int(koine.tensor(3)) == 3 and bool(koine.tensor([1]))
    assert [10, 20, 30][koine.tensor(1)] == 20 and '%.1f' % koine.tensor(1.25) == '1.2'
    assert '{:.2f}'.format(koine.tensor(1.239)) == '1.24' and f'{koine.tensor(3)}' == '3'
    assert f'{koine.tensor(0.5, requires_grad=True)}' == '0.5' and f'{koine.tensor([3])}'.startswith('tensor([3]')
    assert 3 in koine.tensor([1, 3]) and 4 not in koine.tensor([1, 3])
    with pytest.raises(ValueError, match='any'):
        bool(koine.tensor([1, 2]))
    assert repr(koine.tensor([1.0, 2.0])).startswith('tensor([1., 2.], device=')
    assert numpy.asarray(koine.tensor([1, 2])).sum() == 3
    with pytest.raises(TypeError, match='koine.tensor'):
        numpy.ones(2) + koine.ones(2)
    assert (koine.ones(2) * numpy.float32(2)).tolist() == [2, 2]


def test_random():
    koine.manual_seed(3)
    a, b = koine.rand(5), koine.randn(5)
    koine.manual_seed(3)
    assert koine.equal(a, koine.rand(5)) and koine.equal(b, koine.randn(5))
    generator = koine.Generator().manual_seed(3)
    assert koine.equal(a, koine.rand(5, generator=generator))
    state = koine.get_rng_state()
    first = koine.rand(3)
    koine.set_rng_state(state)
    assert koine.equal(first, koine.rand(3))
    generator.set_state(state)
    assert koine.equal(first, koine.rand(3, generator=generator)) and generator.get_state().dtype is koine.uint8
    with pytest.raises(TypeError, match='that get_rng_state or get_state returned'):
        koine.set_rng_state(koine.zeros(64))
    assert sorted(koine.randperm(5).tolist()) == [0, 1, 2, 3, 4]
    assert koine.randint(2, 5, (100,)).unique().tolist() == [2, 3, 4]
    assert abs(koine.zeros(1000).normal_(5, 0.1).mean().item() - 5) < 0.05


@pytest.mark.parametrize('count', [1, 63, 64, 65, 200])
def test_random_numbers_by_place(count):
    """A number depends on the seed and its place only: not on the device, and not on how many follow."""
    for draw in (lambda n, where: koine.rand(n, device=where), lambda n, where: koine.rand(n, device=where).half(),
                 lambda n, where: koine.rand(n, device=where, dtype='float64'),
                 lambda n, where: koine.randint(-3, 1000, (n,), device=where),
                 lambda n, where: koine.randint(0, 2**40, (n,), device=where),
                 lambda n, where: koine.zeros(n, device=where).bernoulli_(0.3)):
        found = []
        for where in (None, 'host'):
            koine.manual_seed(3)
            found.append(draw(count, where).numpy())
        assert (found[0] == found[1]).all()
    for draw in (koine.randn, koine.rand, lambda n: koine.zeros(n).exponential_(), lambda n: koine.zeros(n).cauchy_(),
                 lambda n: koine.zeros(n).geometric_(0.2), lambda n: koine.bernoulli(koine.full((n,), 0.4))):
        koine.manual_seed(3)
        few = draw(count)
        koine.manual_seed(3)
        assert koine.equal(few, draw(count + 70)[:count])


def test_multinomial():
    weights = koine.zeros(2, 100)
    weights[0, 10:50], weights[1, 99] = 1.0, 3.0
    drawn = koine.multinomial(weights[:1], 40)[0].tolist()
    assert sorted(drawn) == list(range(10, 50)) != drawn
    drawn = koine.multinomial(weights, 40, replacement=True)
    assert set(drawn[0].tolist()) <= set(range(10, 50)) and set(drawn[1].tolist()) == {99}
    counts = koine.multinomial(koine.tensor([1.0, 0.0, 3.0]), 4000, replacement=True).bincount().tolist()
    assert counts[1] == 0 and abs(counts[2] - 3000) < 150
    first = koine.multinomial(koine.tensor([[1.0, 0.0, 3.0]]).expand(4000, 3), 1).flatten().bincount().tolist()
    assert first[1] == 0 and abs(first[2] - 3000) < 150


def test_devices():
    found = koine.devices()
    assert len(found) == koine.device_count() > 0
    first = found[0]
    assert koine.device(str(first)) == first == str(first) and first.name and first.properties['total_memory'] > 0
    assert koine.zeros(1, device=first).device == first and koine.device('host').type == 'host'
    with koine.device('host'):
        assert koine.zeros(1).device.type == 'host'
    assert koine.zeros(1).device == koine.current_device()
    with pytest.raises(RuntimeError, match='no such device'):
        koine.device('no such device')


def test_limits_of_dtypes():
    for name in ('float16', 'float32', 'float64'):
        ours, right = koine.finfo(getattr(koine, name)), numpy.finfo(name)
        assert (ours.bits, ours.max, ours.min, ours.eps, ours.tiny) == (
            right.bits, right.max, right.min, right.eps, right.tiny)
    assert koine.finfo(koine.bfloat16).max == koine.tensor(3.3895313892515355e+38).bfloat16().item()
    assert (koine.tensor(1.0).bfloat16() + koine.finfo(koine.bfloat16).eps).item() > 1
    ours = koine.iinfo(koine.int16)
    assert (ours.bits, ours.min, ours.max) == (16, -2 ** 15, 2 ** 15 - 1)
    with pytest.raises(TypeError, match='finfo is for floating dtypes, not int32'):
        koine.finfo(koine.int32)
    with pytest.raises(TypeError, match='iinfo is for integer dtypes, not bool'):
        koine.iinfo(koine.bool_)


def test_conversions_by_name():
    x = koine.tensor([1.7, 2.2])
    for name, dtype in (('short', koine.int16), ('char', koine.int8), ('byte', koine.uint8)):
        assert getattr(x, name)().dtype is dtype and getattr(x, name)().tolist() == [1, 2]


def test_dtypes_of_ranges():
    assert koine.arange(3.0).dtype is koine.arange(0, 3, 1.0).dtype is koine.float32
    assert koine.arange(3).dtype is koine.arange(koine.tensor(1), numpy.int64(4)).dtype is koine.int64
    assert koine.arange(koine.tensor(1), numpy.int64(4)).tolist() == [1, 2, 3]
    assert koine.arange(numpy.float32(2.5)).tolist() == [0.0, 1.0, 2.0]


def test_a_tensor_without_dimensions_is_an_index():
    x = koine.arange(8).reshape(2, 2, 2)
    assert x[koine.tensor(0), :, [0, 1]].tolist() == [[0, 1], [2, 3]]
    assert koine.zeros(2, 3)[koine.tensor(1), None, [0, 1]].shape == (1, 2)
    assert koine.tensor([5., 6])[koine.tensor(-1, dtype=koine.int16)].item() == 6
    with pytest.raises(IndexError, match='index 2 is out of range'):
        x[koine.tensor(2)]
    y = koine.zeros(3)
    y[[0, 1]] = koine.ones(1, 2)
    y[2:] = koine.ones(1, 1, 1)
    assert y.tolist() == [1, 1, 1]
