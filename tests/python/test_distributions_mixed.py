"""koine.distributions made of others: Multinomial and MixtureSameFamily. The numbers are PyTorch's."""
import numpy
import pytest

import koine
from koine import distributions as D


def tensor(values, **options):
    return koine.tensor(values, dtype='float64', **options)


def close(found, expected):
    numpy.testing.assert_allclose(found.detach().numpy(), expected, rtol=2e-9)


def mixture(means, weights=(0.3, 0.7)):
    components = D.Normal(tensor(means), tensor([[1, 2], [0.1, 3]]))
    return D.MixtureSameFamily(D.Categorical(tensor(weights)), components)


def vectors():
    components = D.Normal(tensor([[0, 1, 2], [2, 3, 4]]), tensor([[1, 2, 3], [0.1, 3, 2]]))
    return D.MixtureSameFamily(D.Categorical(tensor([0.3, 0.7])), D.Independent(components, 1))


def test_mixtures():
    made = mixture([[0, 1], [2, 3]], [[0.3, 0.7], [0.5, 0.5]])
    close(made.mean, [0.7, 2.5])
    close(made.variance, [3.31, 4.755])
    close(made.log_prob(tensor([[0.5, 2.5], [10, -30]])), [[-1.423151564, -2.724473535], [-12.09376066, -63.210698]])
    close(made.cdf(tensor([[0.5, 2.5], [10, -3]])), [[0.4883443104, 0.7169079404], [0.9999976216, 0.01137506597]])
    made = vectors()
    close(made.mean, [1.4, 2.4, 3.4])
    close(made.variance, [1.147, 8.34, 6.34])
    close(made.log_prob(tensor([[0.5, 2.5, 1], [10, -30, 2]])), [-6.214353429, -175.8775479])
    made = D.MixtureSameFamily(D.Categorical(tensor([0.3, 0.7])), D.Poisson(tensor([1, 5])))
    close(made.log_prob(tensor([3, 0])), [-2.148528425, -2.162124306])


def test_multinomial():
    made = D.Multinomial(5, tensor([[0.1, 0.2, 0.7], [0.5, 0, 0.5]]))
    close(made.mean, [[0.5, 1, 3.5], [2.5, 0, 2.5]])
    close(made.variance, [[0.45, 0.8, 1.05], [1.25, 0, 1.25]])
    close(made.entropy(), [2.137718214, 1.523670872])
    close(made.log_prob(tensor([[1, 2, 2], [5, 0, 0]])), [-2.833613424, -3.465735903])
    assert (made.sample((100,)).sum(-1) == 5).all()
    made = D.Multinomial(3, logits=tensor([1, 2, 3]))
    close(made.log_prob(tensor([1, 2, 0])), -4.124205605)
    close(made.entropy(), 1.677951715)


@pytest.mark.parametrize('made', [mixture([[0, 1], [2, 3]]), vectors(), D.Multinomial(5, tensor([0.1, 0.2, 0.7])),
                                  D.MixtureSameFamily(D.Categorical(tensor([[0.5, 0.5], [0.9, 0.1]])),
                                                      D.Independent(D.Poisson(tensor([[[1], [2]], [[3], [4]]])), 1))])
def test_shapes(made):
    batch, event = made.batch_shape, made.event_shape
    assert made.sample().shape == batch + event and made.sample((3, 2)).shape == (3, 2) + batch + event
    assert made.sample((0,)).shape == (0,) + batch + event and not made.has_rsample
    wide = made.expand((4,) + batch)
    samples = wide.sample((2,))
    assert wide.batch_shape == (4,) + batch and wide.event_shape == event and samples.shape == (2, 4) + batch + event
    close(wide.log_prob(samples), made.log_prob(samples).numpy())
    assert wide.log_prob(samples).shape == (2, 4) + batch and wide.mean.shape == (4,) + batch + event


def test_gradients():
    logits, loc = tensor([0.1, -0.5], requires_grad=True), tensor([[0, 1], [2, 3]], requires_grad=True)
    value = tensor([[0.5, 2.5], [1, -3]])
    assert koine.autograd.gradcheck(lambda logits, loc: D.MixtureSameFamily(
        D.Categorical(logits=logits), D.Normal(loc, 2.0)).log_prob(value), [logits, loc])
    counts = tensor([[3, 2], [5, 0]])
    assert koine.autograd.gradcheck(lambda logits: D.Multinomial(5, logits=logits).log_prob(counts), [logits])
    assert koine.autograd.gradcheck(lambda logits: D.Multinomial(5, logits=logits).entropy(), [logits])


def test_values_outside_of_one_component():
    made = D.MixtureSameFamily(D.Categorical(tensor([0.3, 0.7])), D.Uniform(tensor([0, 1]), tensor([2, 3])))
    assert made.support.check(tensor([0.5, 1.5, 2.5, 4])).tolist() == [False, True, False, False]
