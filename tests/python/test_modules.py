"""Modules: layers, containers, modules of Python, state, ownership."""
import copy
import gc
import inspect
import weakref

import numpy
import pytest

import koine
from koine import nn


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, size)
        self.scale = nn.Parameter(koine.ones(size))
        self.register_buffer('calls', koine.zeros(1))

    def forward(self, x):
        with koine.no_grad():
            self.calls += 1
        return x + self.fc(x).relu() * self.scale


# Inputs of the layers that take no matrix of floats [2, 4], and constructors' arguments.
ARGUMENTS = {
    'Bilinear': (4, 4, 3), 'ChannelShuffle': (2,), 'Embedding': (5, 3), 'EmbeddingBag': (5, 3), 'GroupNorm': (2, 4),
    'LayerNorm': (4,), 'RMSNorm': (4,), 'Linear': (4, 3), 'LocalResponseNorm': (2,), 'MultiheadAttention': (4, 2),
    'PixelShuffle': (2,), 'PixelUnshuffle': (2,), 'Threshold': (0.1, 20.0), 'Unflatten': (1, (2, 2)), 'Unfold': (2,),
    'TransformerEncoderLayer': (4, 2, 8), 'TransformerDecoderLayer': (4, 2, 8), 'Transformer': (4, 2, 1, 1, 8),
    'Fold': (3, 2), 'FractionalMaxPool2d': (2, 3), 'FractionalMaxPool3d': (2, 3),
    'AdaptiveLogSoftmaxWithLoss': (4, 8, [2]), 'TransformerEncoder': lambda: (nn.TransformerEncoderLayer(4, 2, 8), 2),
    'TransformerDecoder': lambda: (nn.TransformerDecoderLayer(4, 2, 8), 2),
}
for _n in (1, 2, 3):
    ARGUMENTS.update({'Conv%dd' % _n: (4, 3, 2), 'ConvTranspose%dd' % _n: (4, 3, 2), 'MaxPool%dd' % _n: (2,),
                      'AvgPool%dd' % _n: (2,), 'BatchNorm%dd' % _n: (4,), 'InstanceNorm%dd' % _n: (4,),
                      'MaxUnpool%dd' % _n: (2,), 'LPPool%dd' % _n: (2, 2), 'AdaptiveAvgPool%dd' % _n: (2,),
                      'AdaptiveMaxPool%dd' % _n: (2,)})
    for _kind in ('Zero', 'Reflection', 'Replication', 'Circular'):
        ARGUMENTS['%sPad%dd' % (_kind, _n)] = (1,)
    ARGUMENTS['ConstantPad%dd' % _n] = (1, 2.0)
for _kind in ('RNN', 'LSTM', 'GRU', 'RNNCell', 'LSTMCell', 'GRUCell'):
    ARGUMENTS[_kind] = (4, 3)
for _kind in ('Upsample', 'UpsamplingNearest2d', 'UpsamplingBilinear2d'):
    ARGUMENTS[_kind] = (None, 2)


def inputs_of(name):
    if name.startswith('Embedding'):
        return [koine.randint(0, 5, (2, 4))]
    if 'Unpool' in name:
        n = int(name[-2])
        return [koine.ones(1, 2, *[1] * n), koine.zeros(1, 2, *[1] * n, dtype='int64')]
    if name == 'Fold':
        return [koine.rand(2, 4, 4)]
    if name in ('CrossEntropyLoss', 'NLLLoss', 'MultiMarginLoss', 'AdaptiveLogSoftmaxWithLoss'):
        return [koine.rand(2, 4).log_softmax(1), koine.randint(0, 4, (2,))]
    if name == 'MultiLabelMarginLoss':
        return [koine.rand(2, 4), koine.tensor([[1, -1, 0, 0], [0, 2, -1, 0]])]
    if name == 'CTCLoss':
        return [koine.rand(6, 2, 4).log_softmax(2), koine.tensor([[1, 2], [2, 3]]), koine.tensor([6, 6]),
                koine.tensor([2, 2])]
    if name in ('MarginRankingLoss', 'CosineEmbeddingLoss'):
        target = koine.ones(2) if name.startswith('Cos') else koine.ones(2, 4)
        return [koine.rand(2, 4), koine.rand(2, 4), target]
    if name in ('TripletMarginLoss', 'TripletMarginWithDistanceLoss', 'GaussianNLLLoss'):
        return [koine.rand(2, 4), koine.rand(2, 4), koine.rand(2, 4) + 0.5]
    if name.endswith('Loss'):
        return [koine.rand(2, 4), koine.rand(2, 4).round() if 'Margin' not in name else koine.ones(2, 4)]
    if name in ('Bilinear', 'CosineSimilarity', 'PairwiseDistance'):
        return [koine.rand(2, 4), koine.rand(2, 4)]
    if name in ('RNN', 'LSTM', 'GRU') or name.startswith('TransformerEncoder'):
        return [koine.rand(3, 2, 4)]
    if name.startswith('Transformer'):
        return [koine.rand(3, 2, 4), koine.rand(3, 2, 4)]
    if name == 'MultiheadAttention':
        return [koine.rand(3, 2, 4)] * 3
    if name.endswith(('1d', '2d', '3d')) and name not in ('Dropout1d',):
        return [koine.rand(2, 4, *[4] * int(name[-2]))]
    if name in ('PixelShuffle', 'PixelUnshuffle', 'ChannelShuffle', 'Unfold', 'Softmax2d', 'LocalResponseNorm',
                'Dropout1d', 'Upsample'):
        return [koine.rand(2, 4, 4, 4) if name != 'Dropout1d' else koine.rand(2, 4, 4)]
    return [koine.rand(2, 4)]


LAYERS = sorted(set(nn._layers.CLASSES) - set(nn.containers.CLASSES) - {'SyncBatchNorm'})  # test_distributed.py


@pytest.mark.parametrize('name', LAYERS)
def test_layer(name):
    arguments = ARGUMENTS.get(name, ())
    layer = getattr(nn, name)(*(arguments() if callable(arguments) else arguments))
    assert name.lower() in repr(layer).lower()
    result = layer(*inputs_of(name))
    first = result[0] if isinstance(result, tuple) else result
    assert isinstance(first, koine.Tensor) and numpy.isfinite(first.detach().numpy()).all()


def test_arguments():
    conv = nn.Conv2d(3, 8, (3, 5), stride=2, padding=(1, 2), bias=False)
    assert conv.weight.shape == (8, 3, 3, 5) and conv(koine.zeros(1, 3, 8, 8)).shape == (1, 8, 4, 4)
    assert nn.Conv2d(1, 1, 3, padding='same')(koine.zeros(1, 1, 5, 5)).shape == (1, 1, 5, 5)
    assert nn.Linear(2, 3, dtype='float64').weight.dtype is koine.float64
    assert nn.Linear(2, 3, device='host').weight.device.type == 'host'
    loss = nn.CrossEntropyLoss(reduction='sum')(koine.zeros(2, 2), koine.tensor([0, 1]))
    assert loss.item() == pytest.approx(1.386294)
    assert nn.Conv2d(2, 2, 3, padding=1, padding_mode='reflect')(koine.zeros(1, 2, 4, 4)).shape == (1, 2, 4, 4)
    with pytest.raises(ValueError, match="'mean', 'sum'"):
        nn.MSELoss(reduction='average')
    with pytest.raises(TypeError, match='out_features'):
        nn.Linear(3)
    with pytest.raises(ValueError):
        nn.Linear(-1, 3)
    with pytest.raises(TypeError, match='koine.Tensors, not ndarray'):
        nn.Linear(2, 3)(numpy.zeros((1, 2)))


def test_arguments_stay():
    """The library computes with its own copy of them."""
    net = koine.models.resnet18(num_classes=10, small_images=True)
    for layer, name in ((nn.Dropout(0.5), 'p'), (nn.BatchNorm1d(3), 'momentum'), (nn.Conv2d(1, 1, 1), 'padding'),
                        (nn.LayerNorm(3), 'eps'), (nn.LSTM(2, 2), 'dropout'), (net.conv1, 'stride')):
        with pytest.raises(AttributeError, match='%s is fixed when the layer is made' % name):
            setattr(layer, name, 1)
    layer = nn.Linear(2, 3)
    layer.bias, layer.tag = nn.Parameter(koine.ones(3)), 'first'
    assert layer.bias.sum().item() == 3 and layer.tag == 'first'
    nn.ReLU(inplace=True).inplace = False  # which has no effect


def test_module_of_python():
    net = nn.Sequential(nn.Linear(4, 8), Block(8), nn.Linear(8, 3))
    names = [name for name, _ in net.named_parameters()]
    assert names == ['0.weight', '0.bias', '1.scale', '1.fc.weight', '1.fc.bias', '2.weight', '2.bias']
    x = koine.randn(5, 4)
    expected = net[2](net[1](net[0](x)))
    assert koine.allclose(net(x), expected) and net[1].calls.item() == 2
    net(x).sum().backward()
    assert all(one.grad is not None for one in net.parameters())
    assert [type(one).__name__ for one in net.modules()] == ['Sequential', 'Linear', 'Block', 'Linear', 'Linear']
    assert net[1].fc is net[1].fc and net.get_submodule('1.fc') is net[1].fc
    net.eval()
    assert not net[1].fc.training and net.train()[1].training
    net.double()
    assert net[1].scale.dtype is koine.float64 and net(x.double()).dtype is koine.float64
    assert 'Block' in repr(net) and '(8, 8)' not in repr(net)


def test_parameters_are_the_same_objects():
    """Programs tell parameters apart by their id: those of the last layer from the others, say."""
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), Block(8))
    last = [id(one) for one in net[2].parameters()]
    others = [name for name, one in net.named_parameters() if id(one) not in last]
    assert others == ['0.weight', '0.bias', '1.weight', '1.bias']
    assert net[0].weight is net[0].weight is dict(net.named_parameters())['0.weight']
    assert net[1].running_mean is dict(net.named_buffers())['1.running_mean']
    names = {one: name for name, one in net.named_parameters()}
    assert names[net[2].fc.bias] == '2.fc.bias'
    net.double()
    assert {id(one) for one in net.parameters()} == {id(one) for one in names}
    given = nn.Parameter(koine.ones(8))
    net[2].scale = given
    assert net[2].scale is given and any(one is given for one in net.parameters())
    net[0].weight = net[2].fc.weight
    assert net[0].weight is net[2].fc.weight
    optimizer = koine.optim.SGD([{'params': [given]}, {'params': net[2].fc.parameters()}])
    assert [one is other for group, others in zip(optimizer.param_groups, ([given], net[2].fc.parameters()))
            for one, other in zip(group['params'], others)] == [True] * 3
    copied = copy.deepcopy(net)
    assert copied[2].scale is copied[2].scale is not given


def test_objects_do_not_keep_tensors():
    net = nn.Sequential(nn.Linear(4, 8))
    known = weakref.ref(net[0].weight), weakref.ref(next(net.parameters()))
    net[0].weight = nn.Parameter(koine.ones(8, 4))
    assert len(list(net.parameters())) == 2 and known[0]() is known[1]() is None
    known = weakref.ref(net[0].bias)
    del net
    gc.collect()
    assert known() is None


def test_several_inputs_and_outputs():
    class Two(nn.Module):
        num_outputs = 2

        def forward(self, a, b=None):
            return a * 2, a if b is None else a + b

    class Sum(nn.Module):
        def forward(self, a, b):
            return a + b

    x = koine.ones(2)
    assert nn.Sequential(Two(), Sum())(x).tolist() == [3, 3]
    assert Two()(x, x)[1].tolist() == [2, 2]

    class Wrong(nn.Module):
        def forward(self, a):
            return a, a

    with pytest.raises(ValueError, match='num_outputs'):
        nn.Sequential(Wrong())(x)


def test_errors_of_forward():
    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError('inside')

    class Matmul(nn.Module):
        def forward(self, x):
            return x @ koine.ones(7, 7)

    with pytest.raises(KeyError, match='inside'):
        nn.Sequential(Fails())(koine.ones(2))
    with pytest.raises(ValueError, match='matmul'):
        nn.Sequential(nn.ReLU(), Matmul())(koine.ones(2, 3))
    with pytest.raises(ValueError, match=r'in 1\)'):
        nn.Sequential(nn.ReLU(), nn.Linear(2, 2))(koine.ones(2, 3))
    with pytest.raises(TypeError, match='hold the layer'):
        class Mine(nn.Linear):
            def forward(self, x):
                return x
    with pytest.raises(AttributeError, match='super'):
        class Early(nn.Module):
            def __init__(self):
                self.size = 3
        Early()


def test_replacing():
    net = koine.models.mlp(4, 8, 3)
    body = koine.models.resnet18(num_classes=10, small_images=True)
    body.fc = nn.Linear(512, 2)
    assert body.eval()(koine.zeros(1, 3, 8, 8)).shape == (1, 2)
    assert dict(body.named_parameters())['fc.weight'].shape == (2, 512)
    former = nn.Linear(2, 2)
    holder = Block(2)
    first = holder.fc
    holder.fc = former
    assert holder.fc is former and first(koine.ones(1, 2)).shape == (1, 2)
    refused = Block(2)
    part = refused.fc
    with pytest.raises(ValueError, match='contains a dot'):
        net.add_module('a.b', refused)
    for one in (refused, part):  # the library has freed them
        with pytest.raises(AttributeError, match='was freed'):
            one.eval()
    tied = nn.ModuleDict({'embedding': nn.Embedding(5, 3), 'head': nn.Linear(3, 5, bias=False)})
    tied['head'].weight = tied['embedding'].weight
    assert len(list(tied.parameters())) == 1
    tied['head'](koine.ones(1, 3)).sum().backward()
    assert tied['embedding'].weight.grad is not None


def test_state(tmp_path):
    a, b = Block(3), Block(3)
    state = a.state_dict()
    assert list(state) == ['scale', 'calls', 'fc.weight', 'fc.bias']
    b.load_state_dict(state)
    x = koine.randn(2, 3)
    assert koine.equal(a(x), b(x))
    b.load_state_dict({name: tensor.numpy() + 1 for name, tensor in state.items()})
    assert koine.allclose(b.scale, a.scale + 1)
    with pytest.raises(RuntimeError, match='missing: fc.bias; unexpected: more'):
        b.load_state_dict({**{name: state[name] for name in list(state)[:3]}, 'more': x})
    with pytest.raises(RuntimeError, match='shape'):
        b.load_state_dict({**state, 'scale': koine.ones(4)})
    a.save(tmp_path / 'net.safetensors')
    b.load(tmp_path / 'net.safetensors')
    assert koine.equal(a(x), b(x))
    with pytest.raises(OSError):
        b.load(tmp_path / 'missing.safetensors')


def test_lists():
    blocks = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)]).append(nn.ReLU())
    assert len(blocks) == 4 and isinstance(blocks[-1], nn.ReLU) and [len(list(one.parameters())) for one in blocks] == [
        2, 2, 2, 0]
    blocks[3] = nn.Tanh()
    assert isinstance(blocks[3], nn.Tanh) and len(blocks) == 4
    table = nn.ModuleDict({'a': nn.ReLU()})
    table['b'] = nn.Tanh()
    assert table.keys() == ['a', 'b'] and 'b' in table and 'c' not in table
    named = nn.Sequential({'first': nn.Linear(2, 3), 'last': nn.ReLU()})
    assert named.first.weight.shape == (3, 2) and named[:1][0] is named.first


def test_parts_outlive_the_whole():
    part = koine.models.resnet18(num_classes=3).layer1[0].conv1
    gc.collect()
    assert part(koine.zeros(1, 64, 4, 4)).shape == (1, 64, 4, 4)
    weight = Block(3).fc.weight
    gc.collect()
    assert weight.shape == (3, 3)


def test_modules_are_freed():
    def make():
        net = nn.Sequential(Block(64), nn.Linear(64, 64))
        net(koine.zeros(1, 64)).sum().backward()

    make()
    gc.collect()
    koine.synchronize()
    before = koine.memory_allocated()
    for _ in range(5):
        make()
    gc.collect()
    koine.synchronize()
    assert koine.memory_allocated() == before


def test_attention_and_recurrence():
    x = koine.randn(2, 3, 8)
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    output, weights = attention(x, x, x)
    assert output.shape == (2, 3, 8) and weights.shape == (2, 3, 3)
    assert attention(x, x, x, need_weights=False)[1] is None
    lstm = nn.LSTM(8, 5, num_layers=2, batch_first=True)
    output, (h, c) = lstm(x)
    assert output.shape == (2, 3, 5) and h.shape == c.shape == (2, 2, 5)
    again, _ = lstm(x, (h, c))
    assert not koine.equal(again, output)
    output, h = nn.GRU(8, 5, batch_first=True)(x)
    assert h.shape == (1, 2, 5)
    h, c = nn.LSTMCell(8, 5)(x[:, 0])
    assert h.shape == c.shape == (2, 5)


def test_init():
    w = koine.zeros(50, 60)
    nn.init.kaiming_uniform_(w, a=5 ** 0.5)
    assert 0 < w.abs().max().item() <= 1 / 60 ** 0.5 + 1e-6
    assert nn.init.constant_(w, 3.0) is w and w.mean().item() == 3
    nn.init.xavier_normal_(w)
    assert w.std().item() == pytest.approx((2 / 110) ** 0.5, rel=0.1)
    nn.init.orthogonal_(w)
    numpy.testing.assert_allclose((w @ w.T).numpy(), numpy.eye(50), atol=1e-4)
    assert nn.init.calculate_gain('relu') == pytest.approx(2 ** 0.5)


def test_clipping():
    w = nn.Parameter(koine.ones(4))
    (w * 3).sum().backward()
    assert nn.utils.clip_grad_norm_([w], 1.0).item() == 6
    assert w.grad.tolist() == pytest.approx([0.5] * 4)
    nn.utils.clip_grad_value_(w, 0.25)
    assert w.grad.tolist() == [0.25] * 4
    w.grad = koine.tensor([1, float('inf'), 0, 0])
    with pytest.raises(koine.KoineError, match='inf'):
        nn.utils.clip_grad_norm_(w, 1.0, error_if_nonfinite=True)


def test_signatures():
    assert nn.Conv2d.__init__.line.startswith('in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1')
    assert 'batch_first=False' in nn.LSTM.__init__.line
    assert inspect.isclass(nn.Linear) and nn.Linear.__name__ == 'Linear'


def test_states_that_are_assigned():
    net, other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    other.double()
    other[0].bias.requires_grad_(False)
    state = other.state_dict()
    net.load_state_dict(state, assign=True)
    assert net[0].weight.dtype is koine.float64 and isinstance(net[0].weight, nn.Parameter)
    assert net[0].bias.requires_grad and net[0].weight.requires_grad and not net[1].running_mean.requires_grad
    state['0.weight'].zero_()
    assert net[0].weight.sum().item() == 0
    x = koine.randn(4, 2, dtype=koine.float64)
    assert koine.equal(net(x), other(x))
    net.load_state_dict({name: one.numpy() for name, one in state.items()}, assign=True)
    assert net[0].weight.dtype is koine.float64


def test_inputs_by_name():
    x, y = koine.randn(4, 3), koine.randn(4, 3)
    layer, loss = nn.Linear(3, 3), nn.MSELoss()
    assert koine.equal(layer(input=x), layer(x)) and koine.equal(nn.Sequential(layer)(input=x), layer(x))
    for call in (lambda: loss(input=x, target=y), lambda: loss(target=y, input=x), lambda: loss(x, target=y)):
        assert koine.equal(call(), loss(x, y))
    triplet = nn.TripletMarginLoss()
    assert koine.equal(triplet(anchor=x, negative=x + 1, positive=y), triplet(x, y, x + 1))
    for call, names in ((lambda: layer(inputs=x), 'called inputs; its inputs are input, target'),
                        (lambda: loss(x, input=y), 'called input;'), (lambda: triplet(x, negative=y), 'negative')):
        with pytest.raises(TypeError, match=names):
            call()


def test_buffers_by_assignment():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Buffer(koine.ones(2))
            self.seen = nn.Buffer([3.0], persistent=False)

        def forward(self, x):
            return x * self.scale

    module = Scaled()
    assert list(dict(module.named_buffers())) == ['scale', 'seen'] and list(module.state_dict()) == ['scale']
    assert list(module.parameters()) == [] and module.seen.tolist() == [3]
    module.scale = koine.full((2,), 5.0)
    assert module(koine.ones(2)).tolist() == [5, 5] and 'scale' in dict(module.named_buffers())
    with pytest.raises(AttributeError, match='super'):
        type('Early', (nn.Module,), {'__init__': lambda self: setattr(self, 'a', nn.Buffer(koine.ones(1)))})()
