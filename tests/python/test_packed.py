"""Packed sequences: their layout, and recurrent layers that take them. The numbers are PyTorch's."""
import numpy
import pytest

import koine
from koine import nn
from koine.nn.utils.rnn import (PackedSequence, invert_permutation, pack_padded_sequence, pack_sequence,
                                pad_packed_sequence, pad_sequence, unpack_sequence, unpad_sequence)


def steps(*shape):
    return koine.arange(float(numpy.prod(shape))).reshape(*shape)


def test_packing():
    x = steps(4, 3, 2)
    packed = pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
    assert packed.data.tolist() == [[2, 3], [0, 1], [4, 5], [8, 9], [6, 7], [14, 15], [20, 21]]
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1] and packed.batch_sizes.dtype is koine.int64
    assert packed.sorted_indices.tolist() == packed.unsorted_indices.tolist() == [1, 0, 2]
    padded, lengths = pad_packed_sequence(packed, batch_first=True, padding_value=-1.0, total_length=5)
    assert padded.shape == (3, 5, 2) and lengths.tolist() == [2, 4, 1] and lengths.dtype is koine.int64
    assert padded[..., 0].tolist() == [[0, 6, -1, -1, -1], [2, 8, 14, 20, -1], [4, -1, -1, -1, -1]]
    assert pad_packed_sequence(packed)[0][:, 1].tolist() == x[:, 1].tolist()
    first = pack_padded_sequence(x.transpose(0, 1), koine.tensor([2, 4, 1]), True, False)
    assert first.data.tolist() == packed.data.tolist()
    data, sizes, sorted_, unsorted = pack_padded_sequence(x, numpy.array([4, 4, 2]))
    assert sorted_ is None and unsorted is None and sizes.tolist() == [3, 3, 2, 2] and len(data) == 10
    order = pack_padded_sequence(steps(2, 4), [1, 2, 1, 2], enforce_sorted=False)
    assert order.sorted_indices.tolist() == [1, 3, 0, 2] and order.unsorted_indices.tolist() == [2, 0, 3, 1]
    assert order.data.tolist() == [1, 3, 0, 2, 5, 7]


def test_lists_of_sequences():
    a, b, c = koine.tensor([1, 2]), koine.tensor([3, 4, 5]), koine.tensor([6])
    packed = pack_sequence([b, a, c])
    assert packed.data.tolist() == [3, 1, 6, 4, 2, 5] and packed.data.dtype is koine.int64
    assert packed.batch_sizes.tolist() == [3, 2, 1] and packed.sorted_indices is None
    assert [one.tolist() for one in unpack_sequence(pack_sequence([a, b, c], enforce_sorted=False))] == [
        [1, 2], [3, 4, 5], [6]]
    assert pad_sequence([a, b, c], True, padding_side='left').tolist() == [[0, 1, 2], [3, 4, 5], [0, 0, 6]]
    assert pad_sequence([a, c], padding_side='left', padding_value=7).tolist() == [[1, 7], [2, 6]]
    padded = pad_sequence([a, b, c])
    assert [one.tolist() for one in unpad_sequence(padded, koine.tensor([2, 3, 1]))] == [[1, 2], [3, 4, 5], [6]]
    assert [one.tolist() for one in unpad_sequence(padded.T, [2, 3], batch_first=True)] == [[1, 2], [3, 4, 5]]
    assert invert_permutation(koine.tensor([2, 0, 1])).tolist() == [1, 2, 0] and invert_permutation(None) is None


def test_packed_sequences():
    embedding = nn.Embedding(5, 3)
    packed = pack_sequence([koine.tensor([4, 1]), koine.tensor([2, 3, 0])], enforce_sorted=False)
    made = PackedSequence(embedding(packed.data), packed.batch_sizes, packed.sorted_indices)
    assert made.unsorted_indices.tolist() == [1, 0] and made.data.shape == (5, 3) and isinstance(made, tuple)
    assert pad_packed_sequence(made)[0][1, 0].tolist() == embedding.weight[1].tolist()
    assert made.to(koine.float32) is made and packed.float().data.dtype is koine.float32
    moved = made.to('host')
    assert type(moved) is PackedSequence and moved.data.device.type == moved.sorted_indices.device.type == 'host'
    assert PackedSequence(koine.ones(2, 1), koine.tensor([1, 1])).batch_sizes.device.type == 'host'


def test_gradients_of_packing():
    x = steps(3, 2).requires_grad_()
    padded, _ = pad_packed_sequence(pack_padded_sequence(x, [1, 3], enforce_sorted=False), padding_value=9.0)
    (padded * steps(3, 2)).sum().backward()
    assert padded.tolist() == [[0, 1], [9, 3], [9, 5]] and x.grad.tolist() == [[0, 1], [0, 3], [0, 5]]


def test_wrong_sequences():
    x = steps(4, 3, 2)
    for wrong, words in ((lambda: pack_padded_sequence(x, [2, 4, 1]), 'do not decrease: enforce_sorted=False'),
                         (lambda: pack_padded_sequence(x, [4, 2]), 'the batch has 3 sequences'),
                         (lambda: pack_padded_sequence(x, [4, 2, 0]), 'lengths are 1 to 4, the number of steps'),
                         (lambda: pack_padded_sequence(x, [5, 2, 1]), 'lengths are 1 to 4'),
                         (lambda: pad_packed_sequence(pack_padded_sequence(x, [4, 2, 1]), total_length=3),
                          'total_length is 3; the longest sequence has 4 steps'),
                         (lambda: pad_sequence([x], padding_side='top'), "'right' or 'left', not 'top'"),
                         (lambda: nn.GRU(2, 3)(pack_padded_sequence(x, [4, 2, 1]), lengths=koine.tensor([4, 2, 1])),
                          'GRU: a PackedSequence has its lengths')):
        with pytest.raises(ValueError, match=words):
            wrong()


# Of each layer: the output's first feature, and that of the last state (of an LSTM c_n) and of x's gradient, [steps or
# states, batch], and the gradient of weight_ih_l0[0].
LAYERS = {
    'RNN': ([[-0.1280444, -0.8349855, -0.6456968], [0.3278472, -0.9200137, 0], [0, -0.9135826, 0], [0, -0.8226562, 0]],
            [[0.9098860, 0.1291495, 0.8533757], [0.0075206, 0.1525687, 0.3391450], [0.3278472, -0.8226562, -0.6456968],
             [0.5893760, 0.9856022, 0.8201998]],
            [[0.3706896, -0.2824343, -1.2817640], [0.7504507, 0.0661884, 0], [0, 0.0450827, 0], [0, 0.0084836, 0]],
            [0.3984452, -0.2059181]),
    'LSTM': ([[0.1396082, 0.1421502, 0.1012574], [-0.0142384, -0.0040176, 0], [0, -0.0547654, 0], [0, -0.0626477, 0]],
             [[-0.7065052, -0.5839744, 0.1411759], [1.0064155, 0.3593070, 0.7303193],
              [-0.0201289, -0.0927186, 0.1498900], [-0.5246577, -0.8563312, 0.2528469]],
             [[0.2092573, 0.2954634, 0.3122574], [0.5390863, 0.2260855, 0], [0, 0.2796882, 0], [0, 0.3990158, 0]],
             [0.5452679, 0.1126759]),
    'GRU': ([[-0.2830756, -0.2900911, -0.3646650], [-0.0359764, -0.5319173, 0], [0, -0.6212817, 0],
             [0, -0.6737805, 0]],
            [[-0.6334921, -0.5006174, -0.1648722], [0.6173288, -0.0306380, 0.5432951],
             [-0.0359764, -0.6737805, -0.3646650], [-0.5274084, -0.7372081, 0.1351747]],
            [[0.1985382, 0.1455766, -0.0461811], [0.2148203, 0.3305224, 0], [0, 0.3123227, 0], [0, 0.4234294, 0]],
            [-0.0028539, -0.2707917]),
}


@pytest.mark.parametrize('batch_first', [False, True])
@pytest.mark.parametrize('name', LAYERS)
def test_layers(name, batch_first):
    net = getattr(nn, name)(2, 3, bidirectional=True, num_layers=2, batch_first=batch_first)
    with koine.no_grad():
        for i, one in enumerate(net.parameters()):
            one.copy_(0.5 * (steps(*one.shape) * 0.37 + i).sin())
    x, h = steps(4, 3, 2).cos().requires_grad_(), steps(4, 3, 3).sin()
    packed = pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
    output, state = net(packed, (h, h.cos()) if name == 'LSTM' else h)
    assert type(output) is PackedSequence and output.batch_sizes.tolist() == [3, 2, 1, 1]
    padded, last = pad_packed_sequence(output)[0], state[1] if name == 'LSTM' else state
    (padded.sin().sum() + (last * last).sum()).backward()
    found = padded[..., 0], last[..., 0], x.grad[..., 0], net.weight_ih_l0.grad[0]
    for ours, expected in zip(found, LAYERS[name]):
        numpy.testing.assert_allclose(ours.detach().numpy(), expected, rtol=2e-5, atol=2e-6)


def test_sorted_batches_of_layers():
    """Without initial states, with a hook, and after another layer."""
    first, second, shown = nn.GRU(2, 4), nn.LSTM(4, 3, batch_first=True), []
    first.register_forward_hook(lambda module, inputs, output: shown.append((type(inputs[0]), type(output[0]))))
    x = koine.randn(5, 3, 2)
    middle, _ = first(pack_padded_sequence(x, [5, 3, 3]))
    output, (h, _) = second(middle)
    assert shown == [(PackedSequence, PackedSequence)] and output.sorted_indices is None
    alone = second(first(x[:3, 1:2])[0].transpose(0, 1))[1][0]
    numpy.testing.assert_allclose(h[:, 1:2].detach().numpy(), alone.detach().numpy(), rtol=1e-5, atol=1e-6)
