"""koine.distributions: what the methods give, numbers of PyTorch in float64, their gradients, and shapes."""
import math

import numpy
import pytest

import koine
from distribution_rows import IMPLICIT, ROWS, WITHOUT_RSAMPLE, C, L
from koine import distributions as D

nan = math.nan


def tensor(values, **options):
    return koine.tensor(values, dtype='float64', **options)


ONES = [pytest.param(*row, id='%s-%s' % (row[0].__name__, list(row[1])[-1])) for row in ROWS]


def close(found, expected):
    numpy.testing.assert_allclose(found.detach().numpy(), expected, rtol=2e-9, atol=1e-15)


@pytest.mark.parametrize('kind, parameters, value, expected', ONES)
def test_values(kind, parameters, value, expected):
    made = kind(**{name: tensor(one) for name, one in parameters.items()})
    for name, one in expected.items():
        if name == 'log_prob' or name == 'cdf':
            close(getattr(made, name)(tensor(value)), one)
        elif name == 'icdf':
            close(made.icdf(tensor([[0.1], [0.9]])), one)
        else:
            close(getattr(made, name)() if name == 'entropy' else getattr(made, name), one)
    if 'variance' in expected:
        close(made.stddev, numpy.sqrt(expected['variance']))


@pytest.mark.parametrize('kind, parameters, value, expected', ONES)
def test_gradients(kind, parameters, value, expected):
    fixed = {name: one for name, one in parameters.items() if kind is D.Binomial and name == 'total_count'}
    names = [name for name in parameters if name not in fixed]
    inputs = [tensor(parameters[name], requires_grad=True) for name in names]
    if names == ['probs']:  # at 0, where they are clamped, differences find no derivative
        inputs = [tensor(numpy.maximum(parameters['probs'], 0.1), requires_grad=True)]

    def of(method, *arguments):
        def result(*given):
            given = [(one + one.mT) / 2 if name.endswith('_matrix') else one for name, one in zip(names, given)]
            return getattr(kind(**dict(zip(names, given)), validate_args=False, **fixed), method)(*arguments)

        return result

    assert koine.autograd.gradcheck(of('log_prob', tensor(value)), inputs)
    if 'entropy' in expected:
        assert koine.autograd.gradcheck(of('entropy'), inputs)
    if kind.has_rsample and kind not in IMPLICIT:
        state = koine.get_rng_state()

        def drawn(*given):
            koine.set_rng_state(state)
            return of('rsample', (2,))(*given)

        assert koine.autograd.gradcheck(drawn, inputs)


@pytest.mark.parametrize('kind, parameters, value, expected', ONES)
def test_shapes(kind, parameters, value, expected):
    made = kind(**{name: tensor(one) for name, one in parameters.items()})
    batch, event = made.batch_shape, made.event_shape
    assert made.sample().shape == batch + event and made.sample((3, 2)).shape == (3, 2) + batch + event
    assert made.sample((0,)).shape == (0,) + batch + event
    assert not made.sample().requires_grad and made.has_rsample == (kind not in WITHOUT_RSAMPLE)
    wide = made.expand((4,) + batch)
    assert type(batch) is type(event) is koine.Size
    assert type(wide) is kind and wide.batch_shape == (4,) + batch and wide.event_shape == event
    samples = wide.sample((2,))
    assert samples.shape == (2, 4) + batch + event and wide.log_prob(samples).shape == (2, 4) + batch
    numpy.testing.assert_allclose(wide.log_prob(samples).numpy(), made.log_prob(samples).numpy())
    assert wide.mean.shape[:1] == (4,) and kind.__name__ + '(' in repr(made)
    assert made.batch_shape == batch and made.log_prob(tensor(value)).shape == numpy.shape(expected['log_prob'])


def test_numbers_and_dtypes():
    made = D.Normal(0, 1)
    assert made.sample().dtype is koine.float32 and made.batch_shape == () and repr(made) == (
        'Normal(loc: 0.0, scale: 1.0)')
    made = D.Normal(tensor([0.0, 1.0]), 2)
    assert made.scale.dtype is koine.float64 and made.scale.tolist() == [2, 2]
    half = D.Uniform(koine.zeros(2, dtype='float16'), 1.0)
    assert half.sample().dtype is half.log_prob(half.sample()).dtype is koine.float16
    assert D.Categorical(koine.ones(3)).sample().dtype is koine.int64


def test_values_that_can_be_enumerated():
    assert D.Bernoulli(tensor([0.1, 0.2])).enumerate_support().tolist() == [[0, 0], [1, 1]]
    assert D.Bernoulli(tensor([0.1, 0.2])).enumerate_support(expand=False).tolist() == [[0], [1]]
    assert D.Categorical(tensor([0.1, 0.2, 0.7])).enumerate_support().tolist() == [0, 1, 2]
    assert D.OneHotCategorical(tensor([[0.1, 0.9]])).enumerate_support().tolist() == [[[1, 0]], [[0, 1]]]
    assert D.Binomial(2, tensor(0.5)).enumerate_support().tolist() == [0, 1, 2]
    with pytest.raises(NotImplementedError, match='where total_count differs'):
        D.Binomial(tensor([1.0, 2.0]), tensor(0.5)).enumerate_support()
    with pytest.raises(NotImplementedError, match='Normal has no enumerate_support'):
        D.Normal(0.0, 1.0).enumerate_support()


def test_matrices_of_the_normal_distribution():
    for given in ({'covariance_matrix': C}, {'precision_matrix': C}, {'scale_tril': L}):
        made = D.MultivariateNormal(koine.zeros(3, dtype='float64'), **{k: tensor(v) for k, v in given.items()})
        scale, covariance = made.scale_tril.numpy(), made.covariance_matrix.numpy()
        numpy.testing.assert_allclose(scale @ scale.T, covariance, atol=1e-12)
        numpy.testing.assert_allclose(numpy.linalg.inv(covariance), made.precision_matrix.numpy(), atol=1e-12)
        assert (numpy.triu(scale, 1) == 0).all()


def test_independent():
    base = D.Normal(tensor([[0.5, -1], [1, 2]]), tensor([[2, 0.3], [1, 1]]))
    made = D.Independent(base, 1)
    assert made.batch_shape == made.event_shape == (2,) and made.has_rsample and made.sample((3,)).shape == (3, 2, 2)
    close(made.log_prob(tensor([[1, 2], [-3, 0.1]])), [-51.35830144, -11.64287707])
    close(made.entropy(), [2.327051443, 2.837877066])
    wide = made.expand((3, 2))
    assert wide.batch_shape == (3, 2) and wide.event_shape == (2,) and wide.log_prob(wide.sample()).shape == (3, 2)
    assert D.Independent(base, 2).entropy().shape == () and D.Independent(base, 0).batch_shape == (2, 2)
    with pytest.raises(ValueError, match='must be from 0 to 2, .*, not 3'):
        D.Independent(base, 3)
    with pytest.raises(ValueError, match='Normal: the value must be a real number'):
        made.log_prob(tensor([[1, nan], [0, 0]]))
