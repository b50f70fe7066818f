"""koine.distributions of matrices, and of vectors with a covariance of low rank. The numbers are PyTorch's."""
import numpy
import pytest

import koine
from distribution_rows import C, L
from koine import distributions as D

nan = numpy.nan
N = 20000
W = [[1, 2], [0, 1], [2, 1]]
S = [[5, 0.1, 0], [0.1, 9, 1], [0, 1, 0.3]]
R = [[[1, 0, 0], [0.6, 0.8, 0], [0, 0.6, 0.8]], [[1, 0, 0], [-0.6, 0.8, 0], [0.96, 0.168, 0.224]]]


def tensor(values, **options):
    return koine.tensor(values, dtype='float64', **options)


def close(found, expected, **options):
    numpy.testing.assert_allclose(found.detach().numpy(), expected, **{'rtol': 2e-9, 'atol': 1e-12, **options})


# (class, parameters, a value, what the methods give)
ROWS = [
    (D.Wishart, dict(df=[4.5, 2.5], covariance_matrix=C), [C, S], dict(
        entropy=[14.48141587, 8.924814136], log_prob=[-9.899417599, -13.39726037],
        variance=[[[36, 13.905, 9.045], [13.905, 20.25, 6.93], [9.045, 6.93, 9]],
                  [[20, 7.725, 5.025], [7.725, 11.25, 3.85], [5.025, 3.85, 5]]],
        mode=[[[1, 0.15, 0.05], [0.15, 0.75, -0.1], [0.05, -0.1, 0.5]], [[nan] * 3] * 3])),
    (D.Wishart, dict(df=[4.5, 7], scale_tril=L), [C, S], dict(
        entropy=[13.76592427, 15.80702409], log_prob=[-10.18352016, -14.90016449],
        mean=[[[4.5, 2.25, -1.35], [2.25, 19.125, 1.125], [-1.35, 1.125, 2.79]],
              [[7, 3.5, -2.1], [3.5, 29.75, 1.75], [-2.1, 1.75, 4.34]]])),
    (D.Wishart, dict(df=4.5, precision_matrix=C), [C, S], dict(
        entropy=10.35865478, log_prob=[-7.526311375, -15.21405565],
        mode=[[0.2604352479, -0.05708169818, -0.03745986443], [-0.05708169818, 0.3549768106, 0.07670353193],
              [-0.03745986443, 0.07670353193, 0.5190866928]])),
    (D.LKJCholesky, dict(dim=3, concentration=[0.5, 2]), R, dict(log_prob=[-2.307880696, -4.277132446])),
    (D.LKJCholesky, dict(dim=2, concentration=1.5), [[1, 0], [0.6, 0.8]], dict(log_prob=-0.6747262566)),
    (D.LKJCholesky, dict(dim=4, concentration=1),
     [[1, 0, 0, 0], [0.6, 0.8, 0, 0], [0.6, 0, 0.8, 0], [0.5, 0.5, 0.5, 0.5]], dict(log_prob=-3.128789462)),
    (D.LowRankMultivariateNormal, dict(loc=[[1, 2, 3], [0, 0, 1]], cov_factor=W, cov_diag=[0.5, 1, 2]),
     [[[1, 0, 2], [9, 9, -9]], [[1, 0, 2], [0, 9, -9]]], dict(
        mean=[[1, 2, 3], [0, 0, 1]], mode=[[1, 2, 3], [0, 0, 1]], variance=[[5.5, 2, 7]] * 2,
        entropy=[5.913908602] * 2, log_prob=[[-6.359363147, -51.42299951], [-6.359363147, -42.09572678]]))]
ONES = pytest.mark.parametrize('kind, parameters, value, expected', ROWS, ids=[
    '%s-%s' % (row[0].__name__, list(row[1])[-1]) for row in ROWS])


def make(kind, parameters, **options):
    return kind(**{name: one if name == 'dim' else tensor(one) for name, one in parameters.items()}, **options)


@ONES
def test_values(kind, parameters, value, expected):
    made = make(kind, parameters)
    for name, one in expected.items():
        found = getattr(made, name)
        close(found(tensor(value)) if name == 'log_prob' else found() if name == 'entropy' else found, one)


@ONES
def test_gradients(kind, parameters, value, expected):
    fixed = {name: one for name, one in parameters.items() if name == 'dim'}
    names = [name for name in parameters if name not in fixed]
    inputs = [tensor(parameters[name], requires_grad=True) for name in names]

    def of(method, *arguments):
        def result(*given):
            given = [(one + one.mT) / 2 if name.endswith('_matrix') else one for name, one in zip(names, given)]
            return getattr(kind(**dict(zip(names, given)), validate_args=False, **fixed), method)(*arguments)

        return result

    assert koine.autograd.gradcheck(of('log_prob', tensor(value)), inputs)
    if 'entropy' in expected:
        assert koine.autograd.gradcheck(of('entropy'), inputs)
    if kind is D.LowRankMultivariateNormal:
        state = koine.get_rng_state()

        def drawn(*given):
            koine.set_rng_state(state)
            return of('rsample', (2,))(*given)

        assert koine.autograd.gradcheck(drawn, inputs)


@ONES
def test_shapes(kind, parameters, value, expected):
    made = make(kind, parameters)
    batch, event = made.batch_shape, made.event_shape
    assert made.sample().shape == batch + event and made.sample((3, 2)).shape == (3, 2) + batch + event
    wide = made.expand((4,) + batch)
    samples = wide.sample((2,))
    assert type(wide) is kind and samples.shape == (2, 4) + batch + event
    assert wide.support.check(samples).all() and made.has_rsample == (kind is not D.LKJCholesky)
    close(wide.log_prob(samples), made.log_prob(samples).numpy())
    close(wide.log_prob(samples[0, 0]), made.log_prob(samples[0, 0]).expand((4,) + batch).numpy())


def test_matrices_of_the_normal_distribution_of_low_rank():
    made = make(D.LowRankMultivariateNormal, dict(loc=[1, 2, 3], cov_factor=W, cov_diag=[0.5, 1, 2]))
    covariance = made.covariance_matrix.numpy()
    close(made.covariance_matrix, [[5.5, 2, 4], [2, 2, 1], [4, 1, 7]])
    close(made.precision_matrix, numpy.linalg.inv(covariance))
    close(made.scale_tril @ made.scale_tril.mT, covariance)


def test_divergences():
    one = make(D.LowRankMultivariateNormal, dict(loc=[1, 2, 3], cov_factor=W, cov_diag=[0.5, 1, 2]))
    other = make(D.LowRankMultivariateNormal, dict(loc=[[1, 2, 3], [0, 0, 1]], cov_factor=W, cov_diag=[1.5, 1, 1]))
    full = make(D.MultivariateNormal, dict(loc=[[1, 2, 3], [0, 0, 1]], covariance_matrix=C))
    close(D.kl_divergence(one, other), [0.03615473883, 1.544091247])
    close(D.kl_divergence(other, one), [0.04119013851, 1.62300832])
    close(D.kl_divergence(one, full), [2.759607824, 6.751759091])
    close(D.kl_divergence(full, one), [0.7062933208, 2.288111503])
    with pytest.raises(ValueError, match='the vectors have 3 and 2 elements'):
        D.kl_divergence(one, D.MultivariateNormal(koine.zeros(2), koine.eye(2)))


def test_samples():
    made = D.LowRankMultivariateNormal(koine.tensor([1.0, 2.0, 3.0]), koine.tensor(W, dtype='float32'),
                                       koine.tensor([0.5, 1.0, 2.0]))
    samples = made.sample((N,)).numpy()
    numpy.testing.assert_allclose(samples.mean(0), made.mean.numpy(), atol=0.08)
    numpy.testing.assert_allclose(numpy.cov(samples.T), made.covariance_matrix.numpy(), atol=0.25)
    for df in (2.5, 7.0):
        made = D.Wishart(df, koine.tensor(C))
        samples, variance = made.sample((N,)).numpy(), made.variance.numpy()
        assert (numpy.abs(samples.mean(0) - made.mean.numpy()) < 4 * numpy.sqrt(variance / N)).all()
        numpy.testing.assert_allclose(samples.var(0), variance, rtol=0.1)


@pytest.mark.parametrize('concentration', [0.6, 3.0])
def test_samples_of_correlations(concentration):
    """(r + 1) / 2 of each correlation r has a Beta distribution with both parameters concentration - 1 + dim / 2."""
    factors = D.LKJCholesky(4, concentration).sample((N,))
    correlations = (factors @ factors.mT).numpy()[:, [1, 2, 2, 3, 3, 3], [0, 0, 1, 0, 1, 2]]
    beta = D.Beta(concentration + 1, concentration + 1)
    numpy.testing.assert_allclose(correlations.mean(0), 0, atol=0.015)
    numpy.testing.assert_allclose(correlations.var(0), 4 * beta.variance.item(), rtol=0.04)
    numpy.testing.assert_allclose(numpy.corrcoef(correlations.T), numpy.eye(6), atol=0.03)


@pytest.mark.parametrize('call, error, words', [
    (lambda: D.Wishart(1.5, koine.eye(3)), ValueError, 'df must be greater than 2, the size of the matrices less 1'),
    (lambda: D.Wishart(4.0, koine.tensor(S) * -1), ValueError, 'covariance_matrix must be a symmetric'),
    (lambda: D.Wishart(4.0, koine.ones(3, 2)), ValueError, r'must be square matrices, not of the shape \(3, 2\)'),
    (lambda: D.Wishart(4.0), ValueError, 'Wishart: exactly one of covariance_matrix and precision_matrix and'),
    (lambda: D.LKJCholesky(3).rsample(), NotImplementedError, 'LKJCholesky has no rsample'),
    (lambda: D.LKJCholesky(1), ValueError, 'LKJCholesky: dim must be 2 or more, not 1'),
    (lambda: D.LKJCholesky(3, -1.0), ValueError, 'LKJCholesky: concentration must be greater than 0'),
    (lambda: D.LKJCholesky(3).log_prob(koine.ones(3, 3)), ValueError, 'a positive diagonal and rows of length 1, but'),
    (lambda: D.LowRankMultivariateNormal(koine.zeros(2), koine.ones(3, 1), koine.ones(3)), ValueError, 'do not fit'),
    (lambda: D.LowRankMultivariateNormal(koine.zeros(2), koine.ones(2, 1), koine.zeros(2)), ValueError,
     'cov_diag must be greater than 0')])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
