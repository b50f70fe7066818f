"""koine.distributions: what the methods give, numbers of PyTorch in float64, their gradients, and shapes."""
import math

import numpy
import pytest

import koine
from koine import distributions as D

inf, nan = math.inf, math.nan


def tensor(values, **options):
    return koine.tensor(values, dtype='float64', **options)


L = [[1, 0, 0], [0.5, 2, 0], [-0.3, 0.2, 0.7]]
C = [[2, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1]]

# (class, parameters, a value, what the methods give)
ROWS = [
    (D.Normal, dict(loc=[0.5, -1], scale=[2, 0.3]), [[1, 2], [20, -5]], dict(
        mean=[0.5, -1], mode=[0.5, -1], variance=[4, 0.09], entropy=[2.112085714, 0.2149657289],
        log_prob=[[-1.643335714, -49.71496573], [-49.14333571, -88.60385462]],
        cdf=[[0.5987063257, 1], [1, 0]], icdf=[[-2.063103131, -1.38446547], [3.063103131, -0.6155345303]])),
    (D.LogNormal, dict(loc=[0.5, -1], scale=[2, 0.3]), [[1, 2], [0.1, 0.3]], dict(
        mean=[12.18249396, 0.3848121446], mode=[0.03019738342, 0.3362164937], variance=[7954.670768, 0.01394536434],
        log_prob=[[-1.643335714, -16.33448722], [-0.2913110212, 1.257868715]], entropy=[2.612085714, -0.7850342711],
        cdf=[[0.4012936743, 0.9999999917], [0.08056330457, 0.2482809312]],
        icdf=[[0.1270590765, 0.2504576412], [21.39384216, 0.5403519836]])),
    (D.Laplace, dict(loc=[0.5, -1], scale=[2, 0.3]), [[1, 2], [-3, 0.1]], dict(
        mean=[0.5, -1], mode=[0.5, -1], variance=[8, 0.18], entropy=[2.386294361, 0.4891743762],
        log_prob=[[-1.636294361, -9.489174376], [-3.136294361, -3.155841043]],
        cdf=[[0.6105996085, 0.9999773], [0.08688697173, 0.9872192334]],
        icdf=[[-2.718875825, -1.482831374], [3.718875825, -0.5171686263]])),
    (D.Uniform, dict(low=[0.5, -1], high=[2, 0.3]), [[1, 0.1], [1.5, -0.5]], dict(
        mean=[1.25, -0.35], mode=[nan, nan], variance=[0.1875, 0.1408333333], entropy=[0.4054651081, 0.2623642645],
        log_prob=[[-0.4054651081, -0.2623642645], [-0.4054651081, -0.2623642645]],
        cdf=[[0.3333333333, 0.8461538462], [0.6666666667, 0.3846153846]], icdf=[[0.65, -0.87], [1.85, 0.17]])),
    (D.Exponential, dict(rate=[0.5, 3]), [[1, 2], [0.3, 0.1]], dict(
        mean=[2, 0.3333333333], mode=[0, 0], variance=[4, 0.1111111111], entropy=[1.693147181, -0.09861228867],
        log_prob=[[-1.193147181, -4.901387711], [-0.8431471806, 0.7986122887]],
        cdf=[[0.3934693403, 0.9975212478], [0.1392920236, 0.2591817793]],
        icdf=[[0.2107210313, 0.03512017189], [4.605170186, 0.7675283643]])),
    (D.Bernoulli, dict(probs=[0.5, 0.3, 0.9]), [1, 0, 1], dict(
        mean=[0.5, 0.3, 0.9], mode=[nan, 0, 1], variance=[0.25, 0.21, 0.09],
        log_prob=[-0.6931471806, -0.3566749439, -0.1053605157], entropy=[0.6931471806, 0.6108643021, 0.3250829734])),
    (D.Bernoulli, dict(logits=[0, -3, 25]), [1, 0, 0], dict(
        mean=[0.5, 0.04742587318, 1], mode=[nan, 0, 1], log_prob=[-0.6931471806, -0.04858735157, -25],
        entropy=[0.6931471806, 0.1908649711, 3.610879904e-10])),
    (D.Binomial, dict(total_count=5, probs=[0.3, 0.8]), [[1, 2], [5, 0]], dict(
        mean=[1.5, 4], mode=[1, 4], variance=[1.05, 0.8], entropy=[1.413614855, 1.243024162],
        log_prob=[[-1.021234668, -2.972015747], [-6.019864022, -8.047189562]])),
    (D.Binomial, dict(total_count=4, logits=[0, -2]), [1, 2], dict(
        mean=[2, 0.4768116881], log_prob=[-1.386294361, -2.715952575], entropy=[1.407531741, 0.8828731748])),
    (D.Poisson, dict(rate=[2.5, 0.7]), [[1, 0], [5, 3]], dict(
        mean=[2.5, 0.7], mode=[2, 0], variance=[2.5, 0.7],
        log_prob=[[-1.583709268, -0.7], [-2.706038083, -3.561784301]])),
    (D.Categorical, dict(probs=[[0.1, 0.2, 0.7], [2, 1, 0]]), [[0, 1], [2, 0]], dict(
        mean=[nan, nan], mode=[2, 0], entropy=[0.8018185525, 0.6365141683],
        log_prob=[[-2.302585093, -1.098612289], [-0.3566749439, -0.4054651081]])),
    (D.Categorical, dict(logits=[0.1, 0.2, 0.7]), [0, 1, 2], dict(
        mode=2, log_prob=[-1.367949549, -1.267949549, -0.7679495489], entropy=1.061430688)),
    (D.OneHotCategorical, dict(probs=[[0.1, 0.2, 0.7], [2, 1, 0]]), [[0, 1, 0], [1, 0, 0]], dict(
        mean=[[0.1, 0.2, 0.7], [0.6666666667, 0.3333333333, 0]], mode=[[0, 0, 1], [1, 0, 0]],
        variance=[[0.09, 0.16, 0.21], [0.2222222222, 0.2222222222, 0]], log_prob=[-1.609437912, -0.4054651081],
        entropy=[0.8018185525, 0.6365141683])),
    (D.Gamma, dict(concentration=[2.5, 0.7], rate=[1.5, 3]), [[1, 0.2], [5, 3]], dict(
        mean=[1.666666667, 0.2333333333], mode=[1, 0], variance=[1.111111111, 0.07777777778],
        log_prob=[[-0.7710201002, 0.3909927293], [-4.356863232, -8.821422331]],
        cdf=[[0.30001416412137244, 0.6107688624801707], [0.9896376620842136, 0.9999522682305916]],
        entropy=[1.324482801, -0.5037521082])),
    (D.Beta, dict(concentration1=[2.5, 0.7], concentration0=[1.5, 3]), [[0.1, 0.2], [0.5, 0.3]], dict(
        mean=[0.625, 0.1891891892], mode=[0.75, 0], variance=[0.046875, 0.03263758295],
        log_prob=[[-1.878699061, 0.5106021707], [0.2415644753, 0.121899853]], entropy=[-0.1886034475, -0.701472619])),
    (D.Dirichlet, dict(concentration=[[2.5, 0.7, 1], [0.5, 0.3, 0.2]]), [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]], dict(
        mean=[[0.5952380952, 0.1666666667, 0.2380952381], [0.5, 0.3, 0.2]], mode=[[1, 0, 0], [1, 0, 0]],
        variance=[[0.04633263562, 0.02670940171, 0.03488574917], [0.125, 0.105, 0.08]],
        log_prob=[-1.468040746, -0.7153218769], entropy=[-1.350140877, -3.318095796])),
    (D.MultivariateNormal, dict(loc=[[1, 2, 3], [0, 0, 0]], scale_tril=L), [[[1, 0, 2]], [[0.3, 0.1, -0.2]]], dict(
        mean=[[1, 2, 3], [0, 0, 0]], variance=[[1, 4.25, 0.62]] * 2, entropy=[4.593287836] * 2,
        log_prob=[[-4.246349061, -9.259741918], [-14.44985034, -3.149850336]])),
    (D.MultivariateNormal, dict(loc=[1, 2, 3], covariance_matrix=C), [[1, 0, 2], [0.3, 0.1, -0.2]], dict(
        mode=[1, 2, 3], variance=[2, 1.5, 1], log_prob=[-5.517968798, -10.60974547], entropy=4.772160736)),
    (D.MultivariateNormal, dict(loc=[1, 2, 3], precision_matrix=C), [1, 0, 2], dict(
        variance=[0.5208704959, 0.7099536211, 1.038173386], log_prob=-5.341470464, entropy=3.741470464)),
]
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
    fixed = {name: one for name, one in parameters.items() if name == 'total_count'}
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
    if kind.has_rsample:
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
    assert not made.sample().requires_grad and made.has_rsample == (kind in (
        D.Normal, D.LogNormal, D.Laplace, D.Uniform, D.Exponential, D.MultivariateNormal))
    wide = made.expand((4,) + batch)
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
