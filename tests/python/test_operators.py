"""Every operator of the list from Python, on the sample that `koine doctor --operators` uses, by both of its names."""
import inspect
import itertools

import numpy
import pytest
from conftest import sample

import koine

NAMES = koine._ops.names()


def first(result):
    return result[0] if isinstance(result, tuple) else result


def close(a, b):
    numpy.testing.assert_array_equal(numpy.asarray(a.float() if a.dtype == koine.bfloat16 else a), numpy.asarray(b))


@pytest.mark.parametrize('name', NAMES)
def test_by_name(name):
    inputs, params = sample(name)
    result = koine._ops.call(name, *inputs, **params)
    for one in result if isinstance(result, tuple) else [result]:
        assert isinstance(one, koine.Tensor)
        one.tolist()


def with_arguments(described, inputs, params):
    """The keyword arguments of koine.NAME for the inputs and parameters of the operator; None if it has no place for
    one of them."""
    operator, values = described.operator, dict(params)
    for i, one in enumerate(operator.input_names):
        values[one] = inputs[i:] if operator.inputs[i].is_list else inputs[i] if i < len(inputs) else None
    keywords = {}
    for one in described.arguments:
        several = one.target + 's'
        if several in values:
            keywords[one.name] = values.pop(several)
        elif one.target in values:
            keywords[one.name] = values.pop(one.target)
        elif one.default is koine._ops.REQUIRED:
            keywords[one.name] = next(param.default for param in operator.params if param.name == one.target)
    return keywords if all(value is None for value in values.values()) else None


# index_fill has a tensor and a number of the same name: koine.index_fill takes either.
FUNCTIONS = [name for name in NAMES if not name.endswith('_backward') and 'index_fill' not in name]


@pytest.mark.parametrize('name', FUNCTIONS)
def test_function(name):
    """koine.NAME with PyTorch's order and names gives what the operator gives."""
    inputs, params = sample(name)
    described = koine._ops.signature(name)
    keywords = with_arguments(described, inputs, params)
    if keywords is None:
        pytest.skip('its sample uses a parameter that PyTorch has not')
    copies = [None if one is None else one.clone() for one in inputs]
    koine.manual_seed(1)
    expected = koine._ops.call(name, *copies, **params)
    koine.manual_seed(1)
    result = koine._ops.function(name)(**keywords)
    close(first(result), first(expected))


def test_signatures():
    """Names and defaults are PyTorch's."""
    text = {name: str(inspect.signature(koine._ops.function(name))) for name in
            ('conv2d', 'softmax', 'cross_entropy', 'layer_norm', 'sum', 'gather', 'embedding', 'topk', 'leaky_relu')}
    assert text['conv2d'] == '(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)'
    assert text['softmax'] == '(input, dim=None, *, dtype=None)'
    assert text['cross_entropy'] == ("(input, target, weight=None, ignore_index=-100, reduction='mean', "
                                     "label_smoothing=0.0)")
    assert text['layer_norm'] == '(input, normalized_shape, weight=None, bias=None, eps=1e-05)'
    assert text['sum'] == '(input, dim=None, keepdim=False, *, dtype=None)'
    assert text['gather'] == '(input, dim, index)'
    assert text['embedding'] == ('(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, '
                                 'scale_grad_by_freq=False, sparse=False)')
    assert text['topk'] == '(input, k, dim=-1, largest=True, sorted=True)'
    assert text['leaky_relu'] == '(input, negative_slope=0.01, inplace=False)'


def test_results():
    """Of operators with further results, such as statistics, PyTorch's functions return the first."""
    functional = koine.nn.functional
    x = koine.randn(2, 4, 6)
    for result in (functional.group_norm(x, 2), functional.layer_norm(x, (6,)),
                   functional.scaled_dot_product_attention(x, x, x)):
        assert result.shape == x.shape


@pytest.mark.parametrize('kind', ['avg', 'max'])
def test_adaptive_pooling(kind):
    """A number is the size along every dimension."""
    functional = koine.nn.functional
    for dims in (2, 3):
        pool, x = getattr(functional, 'adaptive_%s_pool%dd' % (kind, dims)), koine.randn(2, 3, *(6,) * dims)
        close(pool(x, 2), pool(x, (2,) * dims))


def test_index_fill():
    x, index = koine.zeros(3, 2), koine.tensor([2, 0])
    assert x.index_fill(0, index, 3).tolist() == [[3, 3], [0, 0], [3, 3]]
    assert koine.index_fill(x, 1, index[1:], koine.tensor(4.0)).tolist() == [[4, 0]] * 3
    assert x.index_fill_(0, index, 5) is x and x.sum().item() == 20


@pytest.mark.parametrize('name', ['kron', 'diag', 'diff', 'one_hot', 'masked_select', 'pixel_shuffle', 'trace',
                                  'msort'])
def test_c_functions(name):
    expected = {
        'kron': (lambda x: koine.kron(x, x), lambda a: numpy.kron(a, a)),
        'diag': (lambda x: koine.diag(x, 1), lambda a: numpy.diag(a, 1)),
        'diff': (lambda x: koine.diff(x, dim=0), lambda a: numpy.diff(a, axis=0)),
        'one_hot': (lambda x: koine.one_hot((x > 0).long(), 2), lambda a: numpy.eye(2)[(a > 0).astype(int)]),
        'masked_select': (lambda x: koine.masked_select(x, x > 0), lambda a: a[a > 0]),
        'pixel_shuffle': (lambda x: koine.pixel_shuffle(x.reshape(1, 4, 2, 2), 2).shape, lambda a: (1, 1, 4, 4)),
        'trace': (koine.trace, numpy.trace),
        'msort': (koine.msort, lambda a: numpy.sort(a, axis=0)),
    }[name]
    x = koine.randn(4, 4)
    result = expected[0](x)
    numpy.testing.assert_array_equal(numpy.asarray(result), expected[1](x.numpy()))


def test_linalg():
    a = koine.randn(4, 4, dtype='float64')
    array = a.numpy()
    spd = a @ a.T + koine.eye(4, dtype='float64')
    for ours, theirs in [(koine.linalg.inv(a), numpy.linalg.inv(array)), (koine.linalg.det(a), numpy.linalg.det(array)),
                         (koine.linalg.cholesky(spd), numpy.linalg.cholesky(spd.numpy())),
                         (koine.linalg.solve(a, spd), numpy.linalg.solve(array, spd.numpy())),
                         (koine.linalg.norm(a), numpy.linalg.norm(array)),
                         (koine.linalg.norm(a, 'nuc', (0, 1)), numpy.linalg.norm(array, 'nuc')),
                         (koine.linalg.matrix_norm(a, 'inf'), numpy.linalg.norm(array, numpy.inf)),
                         (koine.linalg.svdvals(a), numpy.linalg.svd(array)[1]),
                         (koine.einsum('ij,kj->ik', a, spd), array @ spd.numpy().T)]:
        numpy.testing.assert_allclose(numpy.asarray(ours), theirs, rtol=1e-9)
    q, r = koine.linalg.qr(a)
    numpy.testing.assert_allclose((q @ r).numpy(), array, atol=1e-12)


# --- gradients against differences ------------------------------------------------------------------------------------

GRADIENTS = ['sin', 'exp', 'mul', 'div', 'matmul', 'softmax', 'layer_norm', 'conv2d', 'max_pool2d', 'mse_loss',
             'cross_entropy', 'sum', 'std', 'cumsum', 'gelu', 'linear', 'index_select', 'where', 'bmm', 'logsumexp']


@pytest.mark.parametrize('name', GRADIENTS)
def test_gradient(name):
    inputs, params = sample(name, 'float64')
    floating = [one for one in inputs if one is not None and one.is_floating_point()]
    weights = first(koine._ops.call(name, *inputs, **params))
    weights = koine.rand_like(weights) + 0.5

    def loss():
        return (first(koine._ops.call(name, *inputs, **params)) * weights).sum()

    for one in floating:
        one.requires_grad_()
    loss().backward()
    for one in floating[:2]:
        if one.grad is None:
            continue
        values, grad = one.detach(), one.grad.numpy()
        for place in itertools.islice(numpy.ndindex(*one.shape), 0, None, 3):
            with koine.no_grad():
                before = values[place].item()
                values[place] = before + 1e-6
                up = loss().item()
                values[place] = before - 1e-6
                down = loss().item()
                values[place] = before
            assert grad[place] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-7)
