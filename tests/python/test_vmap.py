"""koine.vmap and stack_module_state, and PyTorch's numbers for assert_close."""
import collections

import numpy
import pytest

import koine
from koine import func, nn


def close(ours, theirs, rtol=1e-5):
    numpy.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=rtol, atol=1e-6)


def test_dims():
    x, y = koine.randn(3, 4), koine.randn(5, 4)
    close(koine.vmap(koine.dot)(x, x), (x * x).sum(1).numpy())
    close(koine.vmap(koine.mv, in_dims=(None, 0))(y, x), x.numpy() @ y.numpy().T)
    close(koine.vmap(koine.mv, in_dims=(None, 0), out_dims=-1)(y, x), y.numpy() @ x.numpy().T)
    close(koine.vmap(lambda a, b: a + b, in_dims=-1)(x, y[:3]), (x + y[:3]).T.numpy())
    close(koine.vmap(koine.vmap(lambda a, b: a * b, (0, None)), (None, 0))(x[0], y[0]),
          numpy.outer(y[0].numpy(), x[0].numpy()))
    assert koine.vmap is func.vmap and koine.vmap(lambda x, scale: x * scale)(x, scale=2).shape == (3, 4)


def test_trees():
    Pair = collections.namedtuple('Pair', 'left right')
    given = {'a': koine.ones(2, 3), 'b': [Pair(koine.zeros(3, 2), 7)]}
    dims = {'a': 0, 'b': [Pair(1, None)]}
    found = koine.vmap(lambda t: Pair(t['a'] + t['b'][0].left, {'c': t['a'] * t['b'][0].right}), (dims,),
                       out_dims=(1, 0))(given)
    assert isinstance(found, Pair) and found.left.shape == (3, 2) and found.right['c'].tolist() == [[7] * 3] * 2
    whole, same = koine.vmap(lambda x: (x, given['a']), out_dims=(0, None))(koine.ones(4))
    assert whole.shape == (4,) and same is given['a']


def test_gradients_of_samples():
    model = nn.Linear(3, 2)
    x, y = koine.randn(5, 3), koine.tensor([0, 1, 1, 0, 1])
    params = {name: one.detach() for name, one in model.named_parameters()}

    def loss(params, x, y):
        return nn.functional.cross_entropy(func.functional_call(model, params, (x,)), y)

    found = koine.vmap(func.grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for i in range(5):
        model.zero_grad()
        nn.functional.cross_entropy(model(x[i]), y[i]).backward()
        close(found['weight'][i], model.weight.grad.numpy())
        close(found['bias'][i], model.bias.grad.numpy())
    w = koine.randn(3, requires_grad=True)
    koine.vmap(lambda row: (row * w).sum() ** 2)(x).sum().backward()
    close(w.grad, 2 * x.numpy().T @ (x.numpy() @ w.detach().numpy()), rtol=1e-4)


def test_randomness():
    x = koine.zeros(3, 4)
    drawn = koine.vmap(lambda row: row + koine.rand(4), randomness='different')(x)
    assert not koine.equal(drawn[0], drawn[1])
    drawn = koine.vmap(lambda row: row + koine.rand(4), randomness='same')(x)
    assert koine.equal(drawn[0], drawn[1]) and koine.equal(drawn[0], drawn[2])
    with pytest.raises(RuntimeError, match="draws random numbers; randomness='different' or 'same'"):
        koine.vmap(lambda row: row + koine.rand(4))(x)


def counted(function):
    """The function, which counts its calls in .calls."""
    def call(*arguments):
        call.calls += 1
        return function(*arguments)

    call.calls = 0
    return call


def test_all_samples_at_once():
    x, w = koine.randn(6, 3), koine.randn(3)
    once = counted(lambda row: koine.softmax(koine.relu(row) @ w + row, -1))
    close(koine.vmap(once)(x), koine.stack([once(row) for row in x]).numpy())
    assert once.calls == 1 + 6
    y = koine.tensor([0, 2, 1, 1, 0, 2])
    picking = counted(lambda row, i: -row.log_softmax(0)[i])
    close(koine.vmap(picking)(x, y), nn.functional.cross_entropy(x, y, reduction='none').numpy())
    assert picking.calls == 1
    chunked = counted(lambda row: (row * 2, row.sum()))
    double, total = koine.vmap(chunked, out_dims=(1, 0), chunk_size=4)(x)
    close(double, 2 * x.numpy().T)
    close(total, x.numpy().sum(1))
    assert chunked.calls == 2
    with pytest.raises(ValueError, match='chunk_size must be at least 1, not 0'):
        koine.vmap(koine.sin, chunk_size=0)


def test_what_depends_on_values_goes_sample_by_sample():
    x = koine.tensor([[1., 2.], [-1., -2.], [3., -1.]])
    for function in (lambda row: row * 2 if row.sum() > 0 else -row, lambda row: row * row.sum().item(),
                     lambda row: row[row > 0].sum(), lambda row: nn.functional.elu(row, row.sum()),
                     lambda row: koine.tensor(row.numpy() + 1)):
        repeated = counted(function)
        close(koine.vmap(repeated)(x), koine.stack([function(row) for row in x]).numpy())
        assert repeated.calls > 3


def test_in_place():
    x, out = koine.zeros(3, 2), koine.zeros(2)
    koine.vmap(lambda row, i: row.add_(i))(x, koine.arange(3.))
    assert x.tolist() == [[0, 0], [1, 1], [2, 2]]
    total = koine.vmap(lambda row: koine.zeros_like(row).add_(row)[0])(x)
    assert total.tolist() == [0, 1, 2]
    koine.vmap(lambda row: out.add_(row))(x)  # one after another
    assert out.tolist() == [3, 3]


def test_nothing_is_kept():
    x, w = koine.randn(8, 5), koine.randn(3, 5)
    square = koine.eye(5) + x[:5]

    def used(function):
        function()
        before = koine.accelerator.memory_allocated()
        for _ in range(3):
            function()
        return koine.accelerator.memory_allocated() - before

    for function in (lambda: koine.vmap(func.grad(lambda w, row: (w @ row).sum()), (None, 0))(w, x),
                     lambda: koine.vmap(lambda row: koine.zeros_like(row) + row.detach().to(koine.float64))(x),
                     lambda: koine.vmap(lambda row: koine.empty_like(row).copy_(row) if row.sum() > 0 else row)(x),
                     lambda: koine.vmap(koine.linalg.matrix_rank)(koine.stack([square, square])),
                     lambda: koine.vmap(koine.linalg.lu)(koine.stack([square, square])),
                     lambda: func.jacrev(lambda v: w @ v)(x[0]), lambda: func.hessian(lambda v: (w @ v).sum())(x[0])):
        assert used(function) == 0


def test_derivatives_at_once():
    w, x = koine.randn(4, 3), koine.randn(5, 3)
    layer = counted(lambda row: (w @ row).tanh())
    jacobian = func.jacrev(layer)(x[0])
    assert jacobian.shape == (4, 3) and layer.calls == 2
    slopes = 1 - (w @ x[0]).tanh() ** 2
    close(jacobian, (slopes.unsqueeze(1) * w).numpy())
    close(func.jacrev(layer, chunk_size=3)(x[0]), jacobian.numpy())
    close(koine.vmap(func.jacrev(layer))(x)[0], jacobian.numpy())
    close(koine.vmap(func.hessian(lambda row: layer(row).sum()))(x)[0],
          func.hessian(lambda row: layer(row).sum())(x[0]).numpy())
    branches = counted(lambda row: row * 2 if row[0] > -1e9 else row)
    close(func.jacrev(branches)(x[0]), 2 * numpy.eye(3))
    drawn = func.jacrev(lambda row: row * koine.rand(3))(x[0])
    assert drawn.shape == (3, 3) and (drawn.diagonal() > 0).all()


def test_errors_of_vmap():
    x = koine.ones(2, 3)
    for wrong, said in ((lambda: koine.vmap(koine.add)(x, koine.ones(3)), r'have the sizes \[2, 3\]'),
                        (lambda: koine.vmap(koine.add)(x, 2), 'has 0 for argument 1, which is no tensor but int'),
                        (lambda: koine.vmap(koine.add, (0,))(x, x), 'in_dims has 1 entries for 2 arguments'),
                        (lambda: koine.vmap(koine.add, (None, None))(x, x), 'names no dimension'),
                        (lambda: koine.vmap(lambda x: 3)(x), 'must return tensors, not int'),
                        (lambda: koine.vmap(koine.sin)(koine.ones(0, 2)), 'no samples'),
                        (lambda: koine.vmap(koine.sin, out_dims=None)(x), 'differs between the samples'),
                        (lambda: koine.vmap(lambda x: (x, x), out_dims=(0,))(x), 'out_dims has 1 entries for 2'),
                        (lambda: koine.vmap(koine.add, ([0], 0))(x, x), 'argument 0 does not have its structure')):
        with pytest.raises(ValueError, match=said):
            wrong()
    with pytest.raises(RuntimeError, match="randomness is 'error', 'different' or 'same', not 'some'"):
        koine.vmap(koine.sin, randomness='some')


def test_ensembles():
    models = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval() for _ in range(3)]
    params, buffers = func.stack_module_state(models)
    assert params['0.weight'].shape == (3, 4, 3) and params['0.weight'].is_leaf and params['1.bias'].requires_grad
    assert buffers['1.running_var'].shape == (3, 4) and not buffers['1.running_var'].requires_grad
    x = koine.randn(5, 3)
    found = koine.vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)))(params, buffers)
    close(found, numpy.stack([one(x).detach().numpy() for one in models]))
    found.sum().backward()
    assert params['0.weight'].grad.shape == (3, 4, 3)
    for wrong, said in (([], 'no modules'), ([models[0], nn.Linear(1, 1)], 'different classes'),
                        ([models[0], nn.Sequential()], 'others not')):
        with pytest.raises(RuntimeError, match=said):
            func.stack_module_state(wrong)
