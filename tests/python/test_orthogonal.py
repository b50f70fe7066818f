"""Orthogonal parametrizations. The numbers are PyTorch's."""
import numpy
import pytest

import koine
from koine import nn
from koine.nn.utils.parametrizations import orthogonal

SQUARE = [[1.0, 0.3, -0.2], [0.5, -1.0, 0.7], [-0.4, 0.2, 1.0]]
TALL = [[1.0, 0.3], [0.5, -1.0], [-0.4, 0.2]]
WIDE = [[1.0, 0.5, -0.4], [0.3, -1.0, 0.2]]

# (map, original, weight, gradient of the original where that of the weight is 0, 1, 2, ...)
VALUES = [
    ('matrix_exp', SQUARE, [[0.8025731, -0.4248124, 0.4188207], [0.5018571, 0.8603566, -0.08902811],
                            [-0.3225149, 0.2816397, 0.9036942]],
     [[0, 0, 0], [3.010138, 0, 0], [3.513163, 2.239014, 0]]),
    ('cayley', SQUARE, [[0.8157303, -0.4134831, 0.4044944], [0.4853933, 0.8696629, -0.08988764],
                        [-0.3146067, 0.2696629, 0.9101124]],
     [[0, 0, 0], [2.840045, 0, 0], [3.444818, 2.14276, 0]]),
    ('householder', SQUARE, [[-0.4184397, -0.436443, -0.7965085], [-0.7092199, 0.7048554, -0.01363884],
                             [0.5673759, 0.5591926, -0.6044735]],
     [[0, 0, 0], [-11.06383, 0, 0], [-16.2575, 23.4756, 0]]),
    ('matrix_exp', TALL, [[0.8025731, -0.4248124], [0.5018571, 0.8603566], [-0.3225149, 0.2816397]],
     [[0, 0], [0.81516, 0], [2.226101, 5.590324]]),
    ('matrix_exp', WIDE, [[0.8025731, 0.5018571, -0.3225149], [-0.4248124, 0.8603566, 0.2816397]],
     [[0, -2.510912, 0.1739945], [0, 0, 5.160026]]),
    ('cayley', TALL, [[0.8157303, -0.4134831], [0.4853933, 0.8696629], [-0.3146067, 0.2696629]],
     [[0, 0], [0.7514203, 0], [2.248302, 5.370231]]),
    ('cayley', WIDE, [[0.8157303, 0.4853933, -0.3146067], [-0.4134831, 0.8696629, 0.2696629]],
     [[0, -2.391617, 0.2144174], [0, 0, 4.993915]]),
    ('householder', TALL, [[-0.4184397, -0.436443], [-0.7092199, 0.7048554], [0.5673759, 0.5591926]],
     [[0, 0], [-5.249697, 0], [-7.769691, 7.422678]]),
    ('householder', WIDE, [[-0.4184397, -0.7092199, 0.5673759], [-0.436443, 0.7048554, 0.5591926]],
     [[0, -6.465392, -7.157201], [0, 0, 10.5124]]),
]


def close(ours, theirs, atol=1e-5):
    numpy.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-5, atol=atol)


def layer_of(rows, columns, *arguments, **keywords):
    return orthogonal(nn.Linear(columns, rows, bias=False), *arguments, **keywords)


@pytest.mark.parametrize('orthogonal_map, original, weight, gradient', VALUES)
def test_values(orthogonal_map, original, weight, gradient):
    layer = layer_of(*numpy.shape(original), orthogonal_map=orthogonal_map, use_trivialization=False)
    assert list(layer.state_dict()) == ['parametrizations.weight.original']
    with koine.no_grad():
        layer.parametrizations.weight.original.copy_(koine.tensor(original))
    close(layer.weight, weight)
    (layer.weight * koine.arange(layer.weight.numel()).reshape(layer.weight.shape)).sum().backward()
    close(layer.parametrizations.weight.original.grad, gradient)
    close(layer(koine.eye(len(weight[0]))), numpy.transpose(weight))


@pytest.mark.parametrize('shape', [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize('orthogonal_map', [None, 'matrix_exp', 'cayley', 'householder'])
def test_around_a_base(shape, orthogonal_map):
    layer = layer_of(*shape, 'weight', orthogonal_map)
    assert list(layer.state_dict()) == ['parametrizations.weight.original', 'parametrizations.weight.0.base']

    def gap():
        weight = layer.weight if shape[0] >= shape[1] else layer.weight.T
        return (weight.T @ weight - koine.eye(min(shape))).abs().max().item()

    assert gap() < 1e-5
    optimizer = koine.optim.SGD(layer.parameters(), lr=0.1)
    before, target = layer.weight.detach().clone(), koine.randn(*shape)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (layer.weight - target).pow(2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True) and gap() < 1e-5 and not koine.allclose(layer.weight, before)
    other = layer_of(*shape, 'weight', orthogonal_map)
    other.load_state_dict(layer.state_dict())
    close(other.weight, layer.weight.detach().numpy())
    layer.weight = before
    close(layer.weight, before.numpy())


def test_assigned_values():
    q = numpy.linalg.qr(numpy.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]))[0].astype('float32')
    q *= numpy.sign(q[1]) * [-1, -1]  # PyTorch's choice
    layer = layer_of(3, 2, orthogonal_map='householder', use_trivialization=False)
    layer.weight = koine.tensor(q)
    close(layer.weight, q)
    close(layer.parametrizations.weight.original, [[1, 0], [0.4337717, 1], [0.7229529, 0.3969657]])
    square = layer_of(3, 3)
    square.weight = koine.tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 1.0], [5.0, 7.0, 3.0]])  # which is not orthogonal
    close(square.weight, [[0.1690309, 0.9486833, -0.2672612], [0.5070926, -0.3162278, -0.8017837],
                          [0.8451543, 0, 0.5345225]])
    close(square.parametrizations.weight.original, -numpy.eye(3))
    for name in ('matrix_exp', 'cayley'):
        with pytest.raises(NotImplementedError, match='nothing can be assigned to a weight of orthogonal_map'):
            layer_of(3, 3, orthogonal_map=name, use_trivialization=False).weight = koine.eye(3)


def test_batches():
    class Batch(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(koine.randn(2, 3, 3))

        def forward(self, x):
            return x @ self.weight

    for name in ('matrix_exp', 'cayley', 'householder'):
        weight = orthogonal(Batch(), orthogonal_map=name).weight
        close(weight @ weight.mT, numpy.broadcast_to(numpy.eye(3), (2, 3, 3)))


def test_errors():
    for wrong, words in ((lambda: layer_of(2, 2, orthogonal_map='exp'), "is one of 'matrix_exp', 'cayley', 'househol"),
                         (lambda: orthogonal(nn.LayerNorm(3)), 'weight has 1 dimensions; a matrix or a batch'),
                         (lambda: layer_of(2, 2, 'wight'), "Linear has no parameter or buffer 'wight'")):
        with pytest.raises(ValueError, match=words):
            wrong()
