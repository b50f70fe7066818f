"""Layers with several outputs, layers made of others, lists of parameters: against numpy."""
import copy
import gc

import numpy
import pytest

import koine
from koine import nn


def random(*shape):
    return numpy.random.randn(*shape).astype('float32')


def close(ours, theirs, atol=1e-5):
    numpy.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-5, atol=atol)


# --- pooling ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('dims', [1, 2, 3])
def test_indices(dims):
    """Each index is the place of its maximum; unpooling puts it there."""
    x = random(2, 3, *(6,) * dims)
    flat = x.reshape(2, 3, -1)
    for kind in (getattr(nn, 'MaxPool%dd' % dims)(2, return_indices=True),
                 getattr(nn, 'AdaptiveMaxPool%dd' % dims)(3, return_indices=True)):
        values, indices = kind(koine.tensor(x))
        windows = x.reshape(2, 3, *(3, 2) * dims).max(axis=tuple(range(3, 3 + 2 * dims, 2)))
        close(values, windows)
        taken = numpy.take_along_axis(flat, indices.numpy().reshape(2, 3, -1), 2)
        close(values, taken.reshape(windows.shape))
        back = getattr(nn, 'MaxUnpool%dd' % dims)(2)(values, indices)
        close(back, numpy.where(numpy.isin(x, windows), x, 0))
    assert isinstance(getattr(nn, 'MaxPool%dd' % dims)(2)(koine.tensor(x)), koine.Tensor)


@pytest.mark.parametrize('dims', [1, 2, 3])
def test_unpooling_to_a_shape(dims):
    """The size may begin with the batch and the channels."""
    x = koine.tensor(random(2, 3, *(7,) * dims))
    pool = getattr(nn.functional, 'max_pool%dd' % dims)
    unpool = getattr(nn.functional, 'max_unpool%dd' % dims)
    values, indices = pool(x, 2, return_indices=True)
    back = unpool(values, indices, 2, output_size=x.shape)
    assert back.shape == x.shape and koine.equal(pool(back.abs(), 2), values.abs())
    assert koine.equal(back, unpool(values, indices, 2, output_size=x.shape[2:]))


def test_sizes_by_dimension():
    """One number in a tuple is for every dimension, as in PyTorch; other numbers than the dimensions are errors."""
    x, weight = koine.tensor(random(2, 3, 6, 7)), koine.tensor(random(4, 3, 3, 3))
    f = nn.functional
    assert koine.equal(f.conv2d(x, weight, padding=(1,), stride=[2]), f.conv2d(x, weight, padding=1, stride=2))
    assert koine.equal(f.avg_pool2d(x, (3,), (2,), (1,)), f.avg_pool2d(x, 3, 2, 1))
    assert koine.equal(nn.MaxPool2d((3,), padding=(1,))(x), f.max_pool2d(x, 3, padding=1))
    assert nn.Conv3d(3, 4, (2,), padding=(1,))(koine.ones(1, 3, 4, 5, 6)).shape == (1, 4, 5, 6, 7)
    for wrong in (lambda: f.avg_pool2d(x, (1, 2, 3)), lambda: f.conv2d(x, weight, padding=(1, 1, 1)),
                  lambda: nn.MaxPool2d((1, 2, 3)), lambda: f.avg_pool2d(x, ())):
        with pytest.raises(ValueError, match='numbers; it needs 2'):
            wrong()
    with pytest.raises(ValueError, match='stride has 2 numbers; it needs 3'):
        nn.Conv3d(3, 4, 1, stride=(1, 2))


@pytest.mark.parametrize('dims', [2, 3])
def test_fractional_pooling(dims):
    x = random(2, 3, *(7,) * dims)
    pool = getattr(nn, 'FractionalMaxPool%dd' % dims)
    values, indices = pool(2, output_ratio=0.5, return_indices=True)(koine.tensor(x))
    assert values.shape == indices.shape == (2, 3) + (3,) * dims
    taken = numpy.take_along_axis(x.reshape(2, 3, -1), indices.numpy().reshape(2, 3, -1), 2)
    close(values, taken.reshape(values.shape))
    function = getattr(nn.functional, 'fractional_max_pool%dd_with_indices' % dims)
    assert len(function(koine.tensor(x), 2, 3)) == 2
    function = getattr(nn.functional, 'fractional_max_pool%dd' % dims)
    koine.manual_seed(1)
    first = function(koine.tensor(x), 3, output_size=4)
    koine.manual_seed(1)
    assert koine.equal(first, pool(3, output_size=4)(koine.tensor(x)))
    # The last window ends where x does, so its size follows from the largest element of the last corner.
    corner = x[(..., *(slice(-3, None),) * dims)].reshape(2, 3, -1).max(axis=2)
    close(first[(..., *(-1,) * dims)], corner)
    with pytest.raises(ValueError, match='only one of output_size and output_ratio'):
        pool(2, output_size=3, output_ratio=0.5)


def test_lp_pool3d():
    x = abs(random(1, 2, 4, 4, 4))
    windows = x.reshape(1, 2, 2, 2, 2, 2, 2, 2)
    close(nn.LPPool3d(3, 2)(koine.tensor(x)), (windows ** 3).sum(axis=(3, 5, 7)) ** (1 / 3))


def test_adaptive_sizes():
    x = random(2, 3, 4, 6)
    close(nn.AdaptiveAvgPool2d((None, 2))(koine.tensor(x)), x.reshape(2, 3, 4, 2, 3).mean(axis=4))
    close(nn.functional.adaptive_max_pool2d(koine.tensor(x), (2, None)), x.reshape(2, 3, 2, 2, 6).max(axis=3))
    with pytest.raises(ValueError, match='output_size has 3 numbers; it needs 2'):
        nn.AdaptiveMaxPool2d((1, 2, 3))


# --- patches and resizing ---------------------------------------------------------------------------------------------


def test_fold():
    columns = random(1, 4, 4)
    expected = numpy.zeros((1, 1, 3, 3), 'float32')
    for window in range(4):
        for tap in range(4):
            expected[0, 0, window // 2 + tap // 2, window % 2 + tap % 2] += columns[0, tap, window]
    close(nn.Fold((3, 3), 2)(koine.tensor(columns)), expected)
    close(nn.Fold(3, (2, 2))(koine.tensor(columns)), expected)
    close(nn.functional.fold(koine.tensor(columns), 3, 2), expected)


def test_upsampling():
    x = random(1, 2, 3, 3)
    close(nn.UpsamplingNearest2d(scale_factor=2)(koine.tensor(x)), x.repeat(2, axis=2).repeat(2, axis=3))
    places = numpy.linspace(0, 2, 5)
    for make in (nn.UpsamplingBilinear2d(size=(5, 5)), lambda x: nn.functional.upsample_bilinear(x, (5, 5))):
        rows = numpy.apply_along_axis(lambda one: numpy.interp(places, range(3), one), 3, x)
        close(make(koine.tensor(x)), numpy.apply_along_axis(lambda one: numpy.interp(places, range(3), one), 2, rows))
    assert koine.equal(nn.functional.upsample(koine.tensor(x), 6), nn.functional.interpolate(koine.tensor(x), 6))
    with pytest.raises(ValueError, match='pad has 10 numbers; the most is 8'):
        nn.functional.pad(koine.zeros(1, 1, 1, 1, 1), (1,) * 10)


def test_affine_grid():
    theta = random(2, 2, 3)
    grid = nn.functional.affine_grid(koine.tensor(theta), (2, 1, 3, 4), align_corners=True)
    y, x = numpy.meshgrid(numpy.linspace(-1, 1, 3), numpy.linspace(-1, 1, 4), indexing='ij')
    places = numpy.stack([x, y, numpy.ones_like(x)], axis=-1)
    close(grid, numpy.einsum('hwk,nik->nhwi', places, theta))


# --- losses -----------------------------------------------------------------------------------------------------------


def test_triplets_of_any_distance():
    a, p, n = random(4, 3), random(4, 3), random(4, 3)
    tensors = [koine.tensor(one) for one in (a, p, n)]
    tensors[0].requires_grad_()

    def distance(x, y):
        return (x - y).abs().sum(-1)

    expected = numpy.maximum(0, abs(a - p).sum(1) - abs(a - n).sum(1) + 2)
    loss = nn.TripletMarginWithDistanceLoss(distance_function=distance, margin=2.0, reduction='none')
    gc.collect()
    for function in (loss, copy.deepcopy(loss)):
        close(function(*tensors), expected)
    close(nn.functional.triplet_margin_with_distance_loss(*tensors, distance_function=distance, margin=2.0),
          expected.mean())
    loss(*tensors).sum().backward()
    signs = numpy.sign(a - p) - numpy.sign(a - n)
    close(tensors[0].grad, signs * (expected > 0)[:, None])
    modules = nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance())
    close(modules(*tensors), nn.TripletMarginLoss()(*tensors).item())


def test_triplets_with_errors():
    x = koine.ones(2, 3)

    def fails(a, b):
        raise KeyError('inside')

    with pytest.raises(KeyError, match='inside'):
        nn.TripletMarginWithDistanceLoss(distance_function=fails)(x, x, x)
    with pytest.raises(TypeError, match='must return a koine.Tensor, not int'):
        nn.functional.triplet_margin_with_distance_loss(x, x, x, distance_function=lambda a, b: 3)
    with pytest.raises(TypeError, match='expected a function, not int'):
        nn.TripletMarginWithDistanceLoss(distance_function=3)


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - numpy.log(numpy.exp(x).sum(axis=-1, keepdims=True))


def test_adaptive_softmax():
    loss = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 9], div_value=2.0, head_bias=True)
    weights = {name: one.numpy() for name, one in loss.state_dict().items()}
    x, target = random(6, 8), numpy.array([0, 3, 5, 8, 12, 19])
    head = log_softmax(x @ weights['head.weight'].T + weights['head.bias'])
    expected = numpy.concatenate([head[:, :4]] + [
        head[:, 4 + i:5 + i] + log_softmax(x @ weights['tail.%d.0.weight' % i].T @ weights['tail.%d.1.weight' % i].T)
        for i in range(2)], axis=1)
    result = loss(koine.tensor(x), koine.tensor(target))
    close(result.output, expected[range(6), target])
    close(result.loss, -expected[range(6), target].mean())
    close(loss.log_prob(koine.tensor(x)), expected)
    assert loss.predict(koine.tensor(x)).tolist() == expected.argmax(axis=1).tolist()
    result.loss.backward()
    assert all(one.grad is not None for one in loss.parameters())
    with pytest.raises(ValueError, match='cutoffs'):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, [9, 4])


# --- Transformer ------------------------------------------------------------------------------------------------------


def normalised(x, state, name):
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / numpy.sqrt((centred ** 2).mean(axis=-1, keepdims=True) + 1e-5)
    return scaled * state[name + '.weight'] + state[name + '.bias']


def attention(query, key, mask, state, heads=2):
    """Of [N, L, E]; the mask is added."""
    weight, bias = numpy.split(state['in_proj_weight'], 3), numpy.split(state['in_proj_bias'], 3)

    def project(x, i):
        y = x @ weight[i].T + bias[i]
        return y.reshape(*y.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    q, k, v = project(query, 0), project(key, 1), project(key, 2)
    scores = numpy.exp(log_softmax(q @ k.swapaxes(2, 3) / numpy.sqrt(q.shape[-1]) + mask)) @ v
    joined = scores.transpose(0, 2, 1, 3).reshape(query.shape)
    return joined @ state['out_proj.weight'].T + state['out_proj.bias']


def part_of(state, name):
    return {key[len(name) + 1:]: value for key, value in state.items() if key.startswith(name + '.')}


def layer_of(x, memory, mask, memory_mask, state):
    """A layer, of an encoder if `memory` is None."""
    x = normalised(x + attention(x, x, mask, part_of(state, 'self_attn')), state, 'norm1')
    if memory is not None:
        x = normalised(x + attention(x, memory, memory_mask, part_of(state, 'multihead_attn')), state, 'norm2')
    inside = numpy.maximum(x @ state['linear1.weight'].T + state['linear1.bias'], 0)
    x = x + inside @ state['linear2.weight'].T + state['linear2.bias']
    return normalised(x, state, 'norm2' if memory is None else 'norm3')


def stack_of(x, memory, mask, memory_mask, module):
    state = {name: one.numpy() for name, one in module.state_dict().items()}
    for i in range(len(module.layers)):
        x = layer_of(x, memory, mask, memory_mask, part_of(state, 'layers.%d' % i))
    return normalised(x, state, 'norm')


def causal(size):
    return numpy.triu(numpy.full((size, size), -numpy.inf, 'float32'), 1)


def changed(module):
    """With other values in every layer."""
    with koine.no_grad():
        for one in module.parameters():
            one += koine.randn_like(one) * 0.2
    return module


HIDDEN = numpy.array([[False, False, False, False], [False, False, True, True]])


def test_encoder():
    encoder = changed(nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2,
                                            nn.LayerNorm(8)))
    x = random(2, 4, 8)
    tensor, padding = koine.tensor(x), numpy.where(HIDDEN, -numpy.inf, 0)[:, None, None]
    close(encoder(tensor), stack_of(x, None, 0, 0, encoder))
    close(encoder(tensor, mask=koine.tensor(causal(4))), stack_of(x, None, causal(4), 0, encoder))
    close(encoder(tensor, is_causal=True), stack_of(x, None, causal(4), 0, encoder))
    close(encoder(tensor, src_key_padding_mask=koine.tensor(HIDDEN), is_causal=True),
          stack_of(x, None, causal(4) + padding, 0, encoder))
    state = {name: one.numpy() for name, one in encoder.layers[1].state_dict().items()}
    close(encoder.layers[1](tensor, src_mask=koine.tensor(causal(4))), layer_of(x, None, causal(4), 0, state))
    close(encoder.layers[1](tensor, None, koine.tensor(HIDDEN)), layer_of(x, None, padding, 0, state))


def test_decoder_and_transformer():
    decoder = changed(nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True), 2,
                                            norm=nn.LayerNorm(8)))
    x, memory, mask = random(2, 4, 8), random(2, 3, 8), random(4, 3)
    tensors, padding = [koine.tensor(x), koine.tensor(memory)], numpy.where(HIDDEN, -numpy.inf, 0)[:, None, None]
    given = {'tgt_key_padding_mask': koine.tensor(HIDDEN), 'memory_mask': koine.tensor(mask)}
    expected = stack_of(x, memory, causal(4) + padding, mask, decoder)
    close(decoder(*tensors, tgt_mask=koine.tensor(causal(4)), **given), expected)
    close(decoder(*tensors, tgt_is_causal=True, memory_is_causal=True, **given), expected)
    close(decoder(*tensors, tgt_is_causal=True), stack_of(x, memory, causal(4), 0, decoder))
    with pytest.raises(ValueError, match='memory_mask, which is missing'):
        decoder(*tensors, memory_is_causal=True)

    net = changed(nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=True))
    inside = stack_of(memory, None, causal(3), 0, net.encoder)
    expected = stack_of(x, inside, causal(4), mask, net.decoder)
    close(net(tensors[1], tensors[0], tgt_mask=koine.tensor(causal(4)), src_mask=koine.tensor(causal(3)),
              memory_mask=given['memory_mask']), expected)
    close(net(tensors[1], tensors[0], src_is_causal=True, tgt_is_causal=True, memory_mask=given['memory_mask']),
          expected)
    assert numpy.array_equal(net.generate_square_subsequent_mask(4).numpy(), causal(4))


def test_activations_by_function():
    x, named = koine.randn(2, 3, 8), nn.TransformerEncoderLayer(8, 2, 16, activation='gelu').eval()
    given = nn.TransformerEncoderLayer(8, 2, 16, activation=nn.functional.gelu).eval()
    given.load_state_dict(named.state_dict())
    assert koine.equal(given(x), named(x))
    with pytest.raises(ValueError, match="'silu' is not one of 'relu', 'gelu'"):
        nn.TransformerDecoderLayer(8, 2, activation=nn.functional.silu)


def test_stacks_copy_their_layer():
    layer, norm = nn.TransformerEncoderLayer(8, 2, 16, dtype='float64').eval(), nn.LayerNorm(8, dtype='float64')
    layer.linear1.weight.requires_grad_(False)
    encoder = nn.TransformerEncoder(layer, 2, norm)
    names = ['%s.%s' % (part, name) for part in ('layers.0', 'layers.1') for name, _ in layer.named_parameters()]
    assert [name for name, _ in encoder.named_parameters()] == names + ['norm.weight', 'norm.bias']
    assert encoder.norm is norm and type(encoder.layers[1]) is nn.TransformerEncoderLayer
    for one in encoder.layers:
        assert koine.equal(one.linear2.weight, layer.linear2.weight) and not one.training
        assert not one.linear1.weight.requires_grad and one.linear2.weight.requires_grad
    with koine.no_grad():
        encoder.layers[0].linear2.weight.zero_()
    assert layer.linear2.weight.abs().sum().item() > 0 and encoder.layers[1].linear2.weight.abs().sum().item() > 0
    with pytest.raises(TypeError, match='TransformerDecoderLayer is needed, not TransformerEncoderLayer'):
        nn.TransformerDecoder(layer, 2)
    with pytest.raises(ValueError, match='num_layers must be at least 0, not -1'):
        nn.TransformerEncoder(layer, -1, nn.LayerNorm(8))
    with pytest.raises(TypeError, match='made by calling their class'):
        nn.TransformerEncoder(nn.Transformer(8, 2, 1, 1, 16).encoder.layers[0], 2)
    kept = encoder.layers[0]
    del encoder, norm
    gc.collect()
    assert kept(koine.ones(3, 1, 8, dtype='float64')).shape == (3, 1, 8)


# --- lists ------------------------------------------------------------------------------------------------------------


def test_lists_of_parameters():
    class Scales(nn.Module):
        def __init__(self):
            super().__init__()
            self.scales = nn.ParameterList([koine.full((2,), 3.0), nn.Parameter(koine.ones(2))])
            self.named = nn.ParameterDict({'shift': koine.zeros(2)})

        def forward(self, x):
            for one in self.scales:
                x = x * one
            return x + self.named['shift']

    net = Scales()
    assert [name for name, _ in net.named_parameters()] == ['scales.0', 'scales.1', 'named.shift']
    net(koine.ones(2)).sum().backward()
    assert net.scales[1].grad.tolist() == [3, 3] and net.named['shift'].grad.tolist() == [1, 1]
    scales, named = net.scales, net.named
    scales.append(koine.zeros(1)).extend([koine.zeros(3)])
    scales[0] = koine.ones(4)
    assert [one.shape for one in scales] == [(4,), (2,), (1,), (3,)] and len(scales) == 4
    assert scales[-1].shape == (3,) and all(isinstance(one, nn.Parameter) for one in scales)
    part = scales[1:3]
    assert isinstance(part, nn.ParameterList) and len(part) == 2 and part[0].grad.tolist() == [3, 3]
    named['more'] = nn.Parameter(koine.ones(1))
    named.update([('last', koine.ones(2))])
    assert list(named) == named.keys() == ['shift', 'more', 'last'] and 'more' in named and 'none' not in named
    assert len(named) == len(named.items()) == 3 and named.get('none') is None and named.values()[1].tolist() == [1]
    for wrong in (lambda: named['none'], lambda: scales[7]):
        with pytest.raises(LookupError):
            wrong()
    with pytest.raises(TypeError, match='koine.Tensor is needed, not float'):
        scales.append(1.0)


# --- arguments --------------------------------------------------------------------------------------------------------


def test_arguments_are_attributes():
    layer = nn.Linear(5, 3, bias=False)
    assert (layer.in_features, layer.out_features, layer.bias) == (5, 3, None)
    layer = nn.Conv2d(3, 8, (3, 5), padding=1)
    assert (layer.in_channels, layer.kernel_size, layer.padding, layer.groups) == (3, (3, 5), (1, 1), 1)
    assert nn.Conv2d(3, 8, 3, padding='same').padding == 'same' and nn.MaxPool2d(2).stride == 2
    assert nn.ZeroPad2d(1).padding == (1, 1, 1, 1) and nn.LayerNorm([4, 2]).normalized_shape == (4, 2)
    assert nn.Embedding(5, 3, padding_idx=-1).padding_idx == 4 and nn.MultiheadAttention(4, 2).kdim == 4
    assert nn.Dropout(0.25).p == 0.25
    assert not hasattr(layer, 'device') and not hasattr(layer, 'dtype')
    with pytest.raises(AttributeError, match="Linear has no attribute 'in_feature'"):
        nn.Linear(1, 1).in_feature


def test_arguments_of_layers_that_the_library_made():
    net = koine.models.resnet18(num_classes=10, small_images=True)
    assert (net.fc.in_features, net.fc.out_features) == (512, 10)
    assert (net.conv1.in_channels, net.conv1.out_channels, net.conv1.bias) == (3, 64, None)
    assert net.bn1.num_features == 64 and net.bn1.eps == 1e-5
    net.fc = nn.Linear(net.fc.in_features, 7)
    assert net(koine.randn(2, 3, 32, 32)).shape == (2, 7)


def test_embedding_of_given_vectors():
    vectors = koine.randn(5, 3)
    layer = nn.Embedding.from_pretrained(vectors, padding_idx=0)
    close(layer(koine.tensor([0, 4])), vectors.numpy()[[0, 4]])
    assert not layer.weight.requires_grad and nn.Embedding.from_pretrained(vectors, freeze=False).weight.requires_grad
    with pytest.raises(ValueError, match='embeddings have 2 dimensions, not 1'):
        nn.Embedding.from_pretrained(koine.ones(3))


def test_momentum_of_none():
    """Of batch normalisation: means of all batches; of instance normalisation: unchanged estimates."""
    batch, instance = nn.BatchNorm1d(1, momentum=None), nn.InstanceNorm1d(1, momentum=None, track_running_stats=True)
    for value in (1., 2., 6.):
        batch(koine.full((4, 1), value)), instance(koine.full((2, 1, 4), value))
    assert abs(batch.running_mean.item() - 3) < 1e-5
    assert instance.running_mean.item() == 0
