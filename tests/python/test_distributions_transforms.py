"""koine.distributions: transforms by themselves, biject_to and transform_to. The numbers are PyTorch's."""
import numpy
import pytest

import koine
from koine import distributions as D
from koine.distributions import constraints as c
from koine.distributions import transforms as t


def tensor(values, **options):
    return koine.tensor(values, dtype='float64', **options)


def close(found, expected):
    numpy.testing.assert_allclose(found.detach().numpy(), expected, rtol=2e-9, atol=1e-12)


# name: (transform, an argument, the result, log_abs_det_jacobian or None)
ROWS = {
    'power': (t.PowerTransform(tensor([2, -0.5, 3])), [0.5, 0.3, 2], [0.25, 1.825741858, 8],
        [0, 1.112812026, 2.48490665]),
    'softplus': (t.SoftplusTransform(), [-20, 0.3, 30], [2.06115362e-09, 0.8543552445, 30],
        [-20, -0.5543552445, -9.357622969e-14]),
    'cdf': (t.CumulativeDistributionTransform(D.Normal(tensor(0.5), tensor(2))), [-1.5, 0.3, 2],
        [0.1586552539, 0.4601721627, 0.7733726476], [-2.112085714, -1.617085714, -1.893335714]),
    'inverse': (t.ExpTransform().inv, [0.3, 1, 2], [-1.203972804, 0, 0.6931471806], [1.203972804, -0, -0.6931471806]),
    'stick': (t.StickBreakingTransform(), [[-1.5, 0.3, 2], [1, 2, 3]],
        [[0.0692277845, 0.3750638893, 0.4894662699, 0.06624205628],
         [0.4753668864, 0.4128789376, 0.1064541366, 0.005300039375]],
        [-7.079891336, -9.108351297]),
    'correlations': (t.CorrCholeskyTransform(), [0.1, 0.2, 0.3, 0.4, -2, 1],
        [[1, 0, 0, 0], [0.09966799462, 0.995020749, 0, 0], [0.1973753202, 0.2855819101, 0.9378091254, 0],
         [0.3799489623, -0.8917326954, 0.1872524258, 0.1593364837]],
        -5.312652978),
    'softmax': (t.SoftmaxTransform(), [[-1.5, 0.3, 2], [1, 2, 3]],
        [[0.02489723701, 0.1506195068, 0.8244832562], [0.09003057317, 0.2447284711, 0.6652409558]], None),
    'lower cholesky': (t.LowerCholeskyTransform(), [[1, 2, 3], [0.4, 0.5, 0.6], [-1, -2, -0.3]],
        [[2.718281828, 0, 0], [0.4, 1.648721271, 0], [-1, -2, 0.7408182207]], None),
    'positive definite': (t.PositiveDefiniteTransform(), [[1, 2, 3], [0.4, 0.5, 0.6], [-1, -2, -0.3]],
        [[7.389056099, 1.087312731, -2.718281828], [1.087312731, 2.878281828, -3.697442541],
         [-2.718281828, -3.697442541, 5.548811636]],
        None),
    'compose': (t.ComposeTransform([t.AffineTransform(1.0, 2.0), t.StickBreakingTransform(), t.ExpTransform()]),
        [-1.5, 0.3, 2], [1.044109671, 1.977052736, 1.314407753, 1.001843759], -8.040336049),
    'identity': (t.identity_transform, [-1.5, 0.3, 2], [-1.5, 0.3, 2], [0, 0, 0]),
    'independent': (t.IndependentTransform(t.ExpTransform(), 1), [[-1.5, 0.3, 2], [1, 2, 3]],
        [[0.2231301601, 1.349858808, 7.389056099], [2.718281828, 7.389056099, 20.08553692]], [0.8, 6]),
    'reshape': (t.ReshapeTransform((2, 3), (3, 2)), [[1, 2, 3], [4, 5, 6]], [[1, 2], [3, 4], [5, 6]], 0),
    'cat': (t.CatTransform([t.ExpTransform(), t.AffineTransform(1.0, 2.0)], -1, [1, 2]), [[-1.5, 0.3, 2], [1, 2, 3]],
        [[0.2231301601, 1.6, 5], [2.718281828, 5, 7]],
        [[-1.5, 0.6931471806, 0.6931471806], [1, 0.6931471806, 0.6931471806]]),
    'cat of vectors': (t.CatTransform([t.IndependentTransform(t.ExpTransform(), 1),
                                        t.IndependentTransform(t.TanhTransform(), 1)], -1, [1, 2]),
        [[-1.5, 0.3, 2], [1, 2, 3]],
        [[0.2231301601, 0.2913126125, 0.9640275801], [2.718281828, 0.9640275801, 0.9950547537]],
        [-4.238687035, -6.268662504]),
    'stack': (t.StackTransform([t.ExpTransform(), t.AffineTransform(1.0, 2.0), t.TanhTransform()], 1),
        [[-1.5, 0.3, 2], [1, 2, 3]], [[0.2231301601, 1.6, 0.9640275801], [2.718281828, 5, 0.9950547537]],
        [[-1.5, 0.6931471806, -2.650005495], [1, 0.6931471806, -4.618657009]])}


@pytest.mark.parametrize('name', ROWS)
def test_values(name):
    transform, x, y, logs = ROWS[name]
    x = tensor(x, requires_grad=True)
    result = transform(x)
    close(result, y)
    assert transform.forward_shape(x.shape) == result.shape and transform.inverse_shape(result.shape) == x.shape
    assert transform.bijective == (name not in ('softmax', 'lower cholesky', 'positive definite'))
    assert transform.codomain.check(result).all() and transform.inv.inv == transform
    if transform.bijective:
        close(transform.inv(result), x.detach().numpy())
    else:
        close(transform(transform.inv(result)), y)
    if logs is not None:
        found = transform.log_abs_det_jacobian(x, result)
        close(found, logs)
        close(transform.inv.log_abs_det_jacobian(result, x), -numpy.array(logs))
    assert koine.autograd.gradcheck(transform, [x])


@pytest.mark.parametrize('name', ['stick', 'correlations'])
def test_determinants(name):
    """Of results without those that follow from others: the last probability, the diagonal."""
    transform, x = ROWS[name][:2]
    x = tensor(x if name == 'correlations' else x[0])
    rows, columns = numpy.tril_indices(4, -1)
    free = (lambda y: y[:-1]) if name == 'stick' else lambda y: y.reshape(-1)[koine.tensor(rows * 4 + columns)]
    jacobian = koine.autograd.functional.jacobian(lambda x: free(transform(x)), x)
    close(transform.log_abs_det_jacobian(x, transform(x)), numpy.linalg.slogdet(jacobian.numpy())[1])


def test_equality():
    assert t.ExpTransform() == t.ExpTransform() != t.TanhTransform()
    assert t.AffineTransform(1.0, tensor([2, 3])) == t.AffineTransform(1.0, tensor([2, 3]))
    assert t.AffineTransform(1.0, 2.0) != t.AffineTransform(1.0, 3.0) and t.ExpTransform().inv == t.ExpTransform().inv
    pair = [t.ExpTransform(), t.PowerTransform(2.0)]
    assert t.ComposeTransform(pair) == t.ComposeTransform(pair) != t.ComposeTransform(pair[:1])


def test_signs():
    assert t.PowerTransform(-2.0).sign == -1 and t.SoftplusTransform().sign == t.identity_transform.sign == 1
    assert t.ComposeTransform([t.AffineTransform(0.0, -1.0), t.ExpTransform(), t.AffineTransform(0.0, -2.0)]).sign == 1
    assert t.AffineTransform(0.0, -1.0).inv.sign == -1
    with pytest.raises(NotImplementedError, match='StickBreakingTransform has no sign'):
        t.StickBreakingTransform().sign


def test_absolute_values():
    transform = t.AbsTransform()
    assert transform(tensor([-2, 3])).tolist() == transform.inv(tensor([2, 3])).tolist() == [2, 3]
    assert not transform.bijective
    with pytest.raises(NotImplementedError, match='AbsTransform has no log_abs_det_jacobian'):
        transform.log_abs_det_jacobian(tensor(1), tensor(1))


def test_dimensions():
    assert t.CorrCholeskyTransform().domain.event_dim == 1 and t.CorrCholeskyTransform().codomain.event_dim == 2
    with pytest.raises(ValueError, match='CorrCholeskyTransform has no event_dim: .* its domain, 1, .* codomain, 2'):
        t.CorrCholeskyTransform().event_dim
    whole = t.ComposeTransform([t.ExpTransform(), t.StickBreakingTransform(), t.CorrCholeskyTransform()])
    assert (whole.domain.event_dim, whole.codomain.event_dim) == (1, 2)
    assert whole.forward_shape((5, 9)) == (5, 5, 5) and whole.inverse_shape((5, 5, 5)) == (5, 9)
    with pytest.raises(ValueError, match='no matrix has 4 numbers below its diagonal'):
        t.CorrCholeskyTransform()(tensor([1, 2, 3, 4]))
    with pytest.raises(ValueError, match=r'the shape \(2, 2\) does not end with \(4,\)'):
        t.ReshapeTransform((4,), (2, 2))(koine.ones(2, 2))
    with pytest.raises(ValueError, match='have different numbers of elements'):
        t.ReshapeTransform((4,), (2, 3))


@pytest.mark.parametrize('constraint', [
    c.real, c.positive, c.nonnegative, c.greater_than(3.0), c.greater_than_eq(tensor([1, 2, 3])), c.less_than(-3.0),
    c.unit_interval, c.interval(-1.0, 3.0), c.half_open_interval(-1.0, tensor([0, 2, 3])), c.simplex, c.corr_cholesky,
    c.real_vector, c.independent(c.positive, 1), c.cat([c.positive, c.unit_interval], -1, [1, 2]),
    c.stack([c.positive, c.less_than(0), c.real], -1)], ids=repr)
def test_transforms_to_constraints(constraint):
    x = tensor([[-1.5, 0.3, 2.0], [3.0, -2.0, 0.0]])
    for registry in (D.biject_to, D.transform_to):
        transform = registry(constraint)
        y = transform(x)
        assert constraint.check(y).all() and transform.codomain.event_dim == constraint.event_dim
        close(transform(transform.inv(y)), y.numpy())
    close(D.biject_to(constraint).inv(D.biject_to(constraint)(x)), x.numpy())


def test_transforms_to_matrices():
    x = tensor([[-1.5, 0.3], [3.0, -2.0]])
    for constraint in (c.lower_cholesky, c.positive_definite, c.positive_semidefinite):
        assert constraint.check(D.transform_to(constraint)(x)).all()
        with pytest.raises(NotImplementedError, match='there is no transform to "a .* matrix'):
            D.biject_to(constraint)
    with pytest.raises(NotImplementedError, match='there is no transform to "0 or 1": register adds one'):
        D.transform_to(c.boolean)


def test_registering():
    even = c.Constraint('an even number', lambda value: value % 2 == 0)
    D.transform_to.register(even, lambda constraint: t.AffineTransform(0, 2))

    @D.biject_to.register(even)
    def _even(constraint):
        return t.AffineTransform(0, 4)

    assert D.transform_to(even)(tensor(3)).item() == 6 and D.biject_to(even)(tensor(3)).item() == 12


def test_constraints():
    assert c.square.check(koine.ones(2, 3, 3)).tolist() == [True, True] and not c.square.check(koine.ones(3, 2)).any()
    symmetric = tensor([[[1, 2], [2, 1]], [[2, 1], [1, 2]], [[2, 1], [0, 2]], [[1, 1], [1, 1]]])
    assert c.symmetric.check(symmetric).tolist() == [True, True, False, True]
    assert c.positive_definite.check(symmetric).tolist() == [False, True, False, False]
    assert c.positive_semidefinite.check(symmetric[:3]).tolist() == [False, True, False]
    assert c.lower_triangular.check(tensor([[1, 0], [2, 0]])).item()
    assert c.positive_integer.check(tensor([0, 1, 1.5])).tolist() == [False, True, False]
    assert c.multinomial(3).check(tensor([[1, 2], [1, 1], [4, -1]])).tolist() == [True, False, False]


def test_optimizing_a_parameter_that_is_constrained():
    """The scale of a distribution, by maximum likelihood, as of any support."""
    data = 3 * koine.randn(200)
    free = koine.zeros(1, requires_grad=True)
    to_scale = D.transform_to(D.Normal.arg_constraints['scale'])
    optimizer = koine.optim.Adam([free], lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        (-D.Normal(0.0, to_scale(free)).log_prob(data).mean()).backward()
        optimizer.step()
    assert to_scale(free).item() == pytest.approx(data.square().mean().sqrt().item(), rel=0.01)
