"""koine.distributions: gradients of gamma deviates, and of the samples that are made of them."""
import numpy
import pytest

import koine
from koine import distributions as D
from koine.distributions.gamma_deviates import log_slope

N = 20000

# (concentration, deviate, the derivative of the deviate's logarithm), by mpmath: quantiles from 1e-6 to 1 - 1e-6.
SLOPES = [
    (0.001, 9.8216596e-47, 105361.3373), (0.001, 5.1200251, 167.3636613), (0.05, 5.8446321e-121, 5526.988552),
    (0.05, 5.8446321e-41, 1842.852403), (0.05, 6.1285409e-15, 644.5594942), (0.05, 5.5738784e-07, 278.0433486),
    (0.05, 0.076317114, 46.09660171), (0.05, 8.6968627, 2.37963816), (0.3, 6.9726991e-21, 154.1436456),
    (0.3, 1.5022227e-07, 51.80653612), (0.3, 0.0032703395, 18.56533655), (0.3, 0.073131136, 8.779627917),
    (0.3, 0.88481077, 2.933946664), (0.3, 10.984836, 0.5139684512), (1, 1.0000005e-06, 14.23830176),
    (1, 0.010050336, 5.050786065), (1, 0.22314355, 2.217364665), (1, 0.69314718, 1.396593477),
    (1, 2.3025851, 0.7535643344), (1, 13.815511, 0.2367469466), (2.5, 0.0064480801, 2.463599346),
    (2.5, 0.27714904, 1.045140806), (2.5, 1.1712672, 0.6083940918), (2.5, 2.1757301, 0.4577403134),
    (2.5, 4.6181784, 0.3096265661), (2.5, 17.944093, 0.1356175051), (20, 5.3639866, 0.09062616403),
    (20, 11.082131, 0.06675108796), (20, 16.172476, 0.05596218327), (20, 19.667672, 0.05084225489),
    (20, 25.902529, 0.04417943679), (20, 48.826479, 0.03121558098), (500, 400.81222, 0.002229999081),
    (500, 449.45622, 0.002109164824), (500, 481.09015, 0.002039480845), (500, 499.66671, 0.002001333898),
    (500, 528.86195, 0.001945053734), (500, 613.57621, 0.001802882238)]


@pytest.mark.parametrize('dtype, tolerance', [('float64', 2e-8), ('float32', 2e-5)])
def test_slopes(dtype, tolerance):
    a, z, expected = numpy.array([row for row in SLOPES if dtype == 'float64' or row[1] > 1e-37]).T
    found = log_slope(koine.tensor(a, dtype=dtype), koine.tensor(numpy.log(z), dtype=dtype))
    numpy.testing.assert_allclose(found.numpy(), expected, rtol=tolerance)


def test_slopes_of_far_and_of_many():
    a = koine.tensor([1e-3, 0.1, 1.0, 1e7], dtype='float64')
    for value in (0.0, 1e-300, 1.0, 1e4, 2e7):
        slopes = log_slope(a, koine.tensor(value, dtype='float64').log().clamp(min=-1e4).expand(4))
        assert koine.isfinite(slopes).all() and (slopes > 0).all()
    # The mean of the derivative of a deviate is that of the mean, which is the concentration.
    a = koine.tensor([0.01, 1.0, 30.0, 1e5]).requires_grad_()
    slope, = koine.autograd.grad(D.Gamma(a, 1.0).rsample((N,)).sum(), a)
    numpy.testing.assert_allclose(slope.numpy() / N, 1, atol=0.1)
    assert numpy.abs(slope.numpy()[1:] / N - 1).max() < 0.015


def moment_slopes(make, parameters, power=1):
    """(the mean of the gradients of samples' powers, the gradient of the moment)."""
    found = koine.autograd.grad((make(*parameters).rsample((N,)) ** power).mean(0).sum(), parameters)
    made = make(*parameters)
    moment = made.mean if power == 1 else made.mean ** 2 + made.variance
    expected = koine.autograd.grad(moment.sum(), parameters, allow_unused=True)  # the mean of Fisher's F has no df1
    return [one.numpy() for one in found], [0 if one is None else one.numpy() for one in expected]


@pytest.mark.parametrize('make, parameters', [
    (D.Gamma, ([0.5, 3.0], [2.0, 0.5])), (D.InverseGamma, ([9.0, 20.0], [2.0, 0.5])), (D.Chi2, ([0.5, 7.0],)),
    (D.Beta, ([0.5, 3.0], [2.0, 0.7])), (D.FisherSnedecor, ([3.0, 9.0], [30.0, 40.0])),
    (D.Wishart, (5.0, [[2.0, 0.3], [0.3, 1.0]])), (lambda a: D.Wishart(a, koine.eye(2)), (3.0,))])
def test_gradients_of_moments(make, parameters):
    parameters = [koine.tensor(one).requires_grad_() for one in parameters]
    for power in (1, 2):
        for found, expected in zip(*moment_slopes(make, parameters, power)):
            numpy.testing.assert_allclose(found, expected, rtol=0.08, atol=0.01)


def test_gradients_of_vectors():
    a = koine.tensor([0.5, 3.0, 1.5]).requires_grad_()
    weights = koine.tensor([1.0, -2.0, 0.5])
    found, = koine.autograd.grad((D.Dirichlet(a).rsample((N,)) @ weights).mean(), a)
    expected, = koine.autograd.grad((D.Dirichlet(a).mean * weights).sum(), a)
    numpy.testing.assert_allclose(found.numpy(), expected.numpy(), atol=0.005)
    samples = D.Dirichlet(a.half()).rsample((3,))
    assert samples.dtype is koine.float16
    slope, = koine.autograd.grad(samples[:, 0].sum(), a)
    assert koine.isfinite(slope).all()


def test_samples_are_those_without_a_gradient():
    a = koine.tensor([0.5, 3.0]).requires_grad_()
    state = koine.get_rng_state()
    drawn = D.Gamma(a, 2.0).rsample((3,))
    koine.set_rng_state(state)
    assert drawn.requires_grad and not D.Gamma(a, 2.0).sample().requires_grad
    koine.set_rng_state(state)
    assert D.Gamma(a, 2.0).sample((3,)).tolist() == drawn.tolist()


def test_learning_a_posterior():
    """Of a coin that showed 7 of 10: the Beta distribution with 8 and 4, by samples with a gradient."""
    logs = koine.zeros(2, requires_grad=True)
    optimizer = koine.optim.Adam([logs], lr=0.05)
    for _ in range(400):
        posterior = D.Beta(*logs.exp().unbind())
        p = posterior.rsample((64,)).clamp(1e-5, 1 - 1e-5)
        loss = -(7 * p.log() + 3 * (1 - p).log()).mean() - posterior.entropy()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    numpy.testing.assert_allclose(logs.exp().detach().numpy(), [8, 4], rtol=0.2)
