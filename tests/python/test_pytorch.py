"""Layers and functions against PyTorch's, where that is installed: constructors, results, masks."""
import inspect

import numpy
import pytest

import koine
from test_modules import ARGUMENTS

torch = pytest.importorskip('torch')


def close(ours, theirs, atol=2e-5):
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            close(one, other, atol)
        return
    numpy.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=atol)


def both(function, *arrays):
    """function(library, tensors) of the two libraries."""
    return (function(koine, *[koine.tensor(one) for one in arrays]),
            function(torch, *[torch.tensor(one) for one in arrays]))


def random(*shape):
    return numpy.random.randn(*shape).astype('float32')


@pytest.mark.parametrize('name', ['hann', 'hamming', 'blackman', 'bartlett', 'kaiser'])
@pytest.mark.parametrize('periodic', [True, False])
def test_windows(name, periodic):
    for length in (0, 1, 2, 3, 64):
        ours, theirs = (getattr(library, name + '_window')(length, periodic, dtype=library.float64)
                        for library in (koine, torch))
        numpy.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)


SPECIAL = 'digamma erf erfc erfcx exp2 expm1 gammaln i0 i0e i1 i1e log_ndtr sinc'.split()


@pytest.mark.parametrize('name', SPECIAL)
def test_special_functions(name):
    """As near to PyTorch's float64 as float32 allows, over the range and in the tails."""
    x = numpy.concatenate([numpy.linspace(-8.9, 12, 500), numpy.logspace(-6, 1.9, 100)]).astype('float32')
    theirs = getattr(torch.special, name)(torch.tensor(x).double()).numpy()
    ours = getattr(koine.special, name)(koine.tensor(x)).double().numpy()
    near_zero = 2e-6 if name in ('digamma', 'gammaln', 'sinc') else 1e-36  # which cross it
    numpy.testing.assert_allclose(ours, theirs, rtol=1.5e-5, atol=near_zero)


# --- constructors -----------------------------------------------------------------------------------------------------

# PyTorch's take arguments that its signatures do not show.
HIDDEN = ('RNN', 'LSTM', 'GRU', 'Sequential')
OTHER_DEFAULTS = ('dim', 'activation', 'modules')


def parameters(kind):
    line = getattr(kind.__init__, 'line', None)
    found = koine._bind.parse(line) if line is not None else inspect.signature(kind.__init__)
    return {name: one for name, one in found.parameters.items() if name not in ('self', 'device', 'dtype')}


@pytest.mark.parametrize('name', sorted({*koine.nn._layers.CLASSES, *koine.nn.lazy.CLASSES} - set(HIDDEN)))
def test_constructor(name):
    """The arguments are PyTorch's, in its order and with its defaults, but for those that are missing."""
    ours, theirs = parameters(getattr(koine.nn, name)), parameters(getattr(torch.nn, name))
    assert list(ours) == [one for one in theirs if one in ours]
    for argument, one in ours.items():
        assert argument in OTHER_DEFAULTS or one.default == theirs[argument].default
        assert one.kind is theirs[argument].kind


REDUCED = {name: False for name in ('bias', 'affine', 'elementwise_affine', 'track_running_stats')}


@pytest.mark.parametrize('name', sorted({*koine.nn._layers.PARAMETERS, *koine.nn._layers.BUFFERS}))
@pytest.mark.parametrize('reduced', [False, True])
def test_none(name, reduced):
    """The parameters and buffers that PyTorch knows as None are None."""
    known = parameters(getattr(koine.nn, name))
    keywords = {one: value for one, value in REDUCED.items() if reduced and one in known}
    ours, theirs = (getattr(nn, name)(*ARGUMENTS.get(name, ()), **keywords) for nn in (koine.nn, torch.nn))
    named = {**theirs._parameters, **theirs._buffers}
    assert {one: getattr(ours, one) is None for one in named} == {one: value is None for one, value in named.items()}


@pytest.mark.parametrize('name', sorted(one for one in ARGUMENTS if not callable(ARGUMENTS[one])))
def test_attributes(name):
    """Arguments are shown as PyTorch shows them: kernel_size=3 of a Conv2d as (3, 3)."""
    ours, theirs = (getattr(library.nn, name)(*ARGUMENTS[name]) for library in (koine, torch))
    shown = {one: getattr(theirs, one, ...) for one in parameters(type(ours))}
    shown = {one: value for one, value in shown.items() if isinstance(value, (int, float, str, tuple))}
    assert {one: getattr(ours, one) for one in shown} == shown


# --- pooling, patches, resizing ---------------------------------------------------------------------------------------

IMAGE, VOLUME = (2, 3, 8, 7), (1, 2, 6, 5, 6)
LAYERS = {
    'MaxPool1d': (lambda nn: nn.MaxPool1d(3, 2, 1, return_indices=True), (2, 3, 9)),
    'MaxPool2d': (lambda nn: nn.MaxPool2d(3, 2, 1, 1, True, True), IMAGE),
    'MaxPool3d': (lambda nn: nn.MaxPool3d((2, 1, 3), return_indices=True), VOLUME),
    'AdaptiveMaxPool1d': (lambda nn: nn.AdaptiveMaxPool1d(4, True), (2, 3, 9)),
    'AdaptiveMaxPool2d': (lambda nn: nn.AdaptiveMaxPool2d((3, None), return_indices=True), IMAGE),
    'AdaptiveMaxPool3d': (lambda nn: nn.AdaptiveMaxPool3d(2, return_indices=True), VOLUME),
    'AdaptiveAvgPool2d': (lambda nn: nn.AdaptiveAvgPool2d((None, 2)), IMAGE),
    'LPPool3d': (lambda nn: nn.LPPool3d(3, (2, 3, 2), stride=2), VOLUME),
    'Fold': (lambda nn: nn.Fold((4, 5), (2, 3), padding=(1, 0), stride=(1, 2)), (2, 12, 10)),
    'Upsample': (lambda nn: nn.Upsample(scale_factor=1.7, mode='bilinear', recompute_scale_factor=True), IMAGE),
    'UpsamplingNearest2d': (lambda nn: nn.UpsamplingNearest2d(scale_factor=(2, 1.5)), IMAGE),
    'UpsamplingBilinear2d': (lambda nn: nn.UpsamplingBilinear2d(size=(5, 9)), IMAGE),
}


@pytest.mark.parametrize('name', LAYERS)
def test_layer(name):
    make, shape = LAYERS[name]
    x = random(*shape)
    if name == 'LPPool3d':
        x = abs(x)
    close(*both(lambda library, one: make(library.nn)(one), x))


FUNCTIONS = {
    'relu in place': (lambda f, x: (f.relu(x, inplace=True), x), (2, 3)),
    'hardtanh in place': (lambda f, x: (f.hardtanh(x, -0.5, 0.6, True), x), (2, 3)),
    'affine_grid': (lambda f, x: f.affine_grid(x, (2, 3, 4, 5), align_corners=True), (2, 2, 3)),
    'affine_grid of volumes': (lambda f, x: f.affine_grid(x, (2, 3, 4, 5, 2), align_corners=False), (2, 3, 4)),
    'max_pool2d': (lambda f, x: f.max_pool2d(x, 3, 2, 1, 1, True, True), IMAGE),
    'max_pool1d': (lambda f, x: f.max_pool1d(x, 3, return_indices=True), (2, 3, 9)),
    'adaptive_max_pool2d': (lambda f, x: f.adaptive_max_pool2d(x, (None, 3), True), IMAGE),
    'adaptive_avg_pool3d': (lambda f, x: f.adaptive_avg_pool3d(x, (None, 2, 3)), VOLUME),
    'upsample_bilinear': (lambda f, x: f.interpolate(x, scale_factor=2, mode='bilinear', align_corners=True), IMAGE),
}


@pytest.mark.parametrize('name', FUNCTIONS)
def test_function(name):
    function, shape = FUNCTIONS[name]
    close(*both(lambda library, x: function(library.nn.functional, x), random(*shape)))


@pytest.mark.parametrize('dims', [2, 3])
def test_fractional_pooling(dims):
    """With the same random numbers."""
    shape, samples = (IMAGE, (2, 3, 2)) if dims == 2 else (VOLUME, (1, 2, 3))
    samples = numpy.random.rand(*samples).astype('float32')
    for options in ({'output_size': (3, 2, 4)[:dims]}, {'output_ratio': (0.5, 0.6, 0.4)[:dims]}):
        def pool(library, x, samples):
            function = getattr(library.nn.functional, 'fractional_max_pool%dd' % dims)
            return function(x, 2, return_indices=True, _random_samples=samples, **options)

        close(*both(pool, random(*shape), samples))


# --- modules with parameters ------------------------------------------------------------------------------------------


def pair(make):
    """The module of both libraries, with the same parameters."""
    ours, theirs = make(koine.nn), make(torch.nn)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({name: value.numpy() for name, value in theirs.state_dict().items()})
    return ours, theirs


STYLES = [{}, {'norm_first': True, 'batch_first': True, 'activation': 'gelu'}]


def sequence(length, style):
    return random(3, length, 8) if style else random(length, 3, 8)


def causal(size):
    return numpy.triu(numpy.full((size, size), -numpy.inf, 'float32'), 1)


def padding(*lengths):
    """-infinity past the ends."""
    most = max(lengths)
    return numpy.where(numpy.arange(most) < numpy.array(lengths)[:, None], 0, -numpy.inf).astype('float32')


def call(library, module, inputs, keywords):
    return module(*[library.tensor(one) for one in inputs],
                  **{name: library.tensor(one) if isinstance(one, numpy.ndarray) else one
                     for name, one in keywords.items()})


def compare(modules, inputs, keywords, theirs=None):
    """With these arguments; PyTorch's with those of `theirs`, too."""
    close(call(koine, modules[0], inputs, keywords), call(torch, modules[1], inputs, {**keywords, **(theirs or {})}))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('style', STYLES)
def test_encoder(style):
    modules = pair(lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, **style), 2,
                                                    nn.LayerNorm(8)))
    inputs = [sequence(5, style)]
    for keywords in ({}, {'mask': causal(5)}, {'mask': random(6, 5, 5)}, {'src_key_padding_mask': padding(5, 2, 4)},
                     {'mask': causal(5), 'src_key_padding_mask': padding(5, 2, 4)}):
        compare(modules, inputs, keywords)
    compare(modules, inputs, {'is_causal': True}, {'mask': causal(5)})
    layers = [one.layers[1] for one in modules]
    for keywords in ({'src_mask': causal(5), 'is_causal': True}, {'src_key_padding_mask': padding(5, 2, 4)}):
        compare(layers, inputs, keywords)
    compare(modules, inputs, {'src_key_padding_mask': padding(5, 2, 4) < 0},
            {'src_key_padding_mask': padding(5, 2, 4)})


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('style', STYLES)
@pytest.mark.parametrize('whole', [True, False])
def test_decoder_and_transformer(whole, style):
    if whole:
        modules = pair(lambda nn: nn.Transformer(8, 2, 2, 2, 16, 0.0, **style))
        inputs = sequence(5, style), sequence(4, style)
    else:
        modules = pair(lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0, **style), 2,
                                                        nn.LayerNorm(8)))
        inputs = sequence(4, style), sequence(5, style)
    masks = {'tgt_mask': causal(4), 'memory_mask': random(4, 5), 'tgt_key_padding_mask': padding(4, 2, 3),
             'memory_key_padding_mask': padding(5, 4, 2)}
    for keywords in ({}, masks, {'memory_mask': random(4, 5)}, {**masks, 'memory_is_causal': True}):
        compare(modules, inputs, keywords)
    # The mask need not be given.
    for keywords in ({}, {'memory_mask': random(4, 5)}, {'memory_key_padding_mask': padding(5, 4, 2)}):
        compare(modules, inputs, {**keywords, 'tgt_is_causal': True}, {'tgt_mask': causal(4)})
    if whole:
        compare(modules, inputs, {'src_is_causal': True}, {'src_mask': causal(5)})
        close(koine.nn.Transformer.generate_square_subsequent_mask(4),
              torch.nn.Transformer.generate_square_subsequent_mask(4))


def test_adaptive_softmax():
    ours, theirs = pair(lambda nn: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 9], 2.0, True))
    x, target = random(6, 8), numpy.array([0, 3, 5, 8, 12, 19])
    result, expected = ours(koine.tensor(x), koine.tensor(target)), theirs(torch.tensor(x), torch.tensor(target))
    close(result.output, expected.output)
    close(result.loss, expected.loss)
    close(ours.log_prob(koine.tensor(x)), theirs.log_prob(torch.tensor(x)))
    close(ours.predict(koine.tensor(x)), theirs.predict(torch.tensor(x)))


@pytest.mark.parametrize('options', [{}, {'swap': True, 'margin': 2.0, 'reduction': 'sum'}, {'reduction': 'none'}])
def test_triplets(options):
    def distance(a, b):
        return (a - b).abs().sum(-1)

    inputs = [random(4, 6) for _ in range(3)]
    for function in (None, distance):
        close(*both(lambda library, *three: library.nn.functional.triplet_margin_with_distance_loss(
            *three, distance_function=function, **options), *inputs))
        close(*both(lambda library, *three: library.nn.TripletMarginWithDistanceLoss(
            distance_function=function, **options)(*three), *inputs))


# --- schedules --------------------------------------------------------------------------------------------------------

SCHEDULES = {
    'OneCycleLR': {'max_lr': 0.5, 'total_steps': 8},
    'OneCycleLR, linear': {'max_lr': [0.5, 0.2], 'total_steps': 8, 'anneal_strategy': 'linear', 'three_phase': True},
    'CyclicLR': {'base_lr': 0.01, 'max_lr': 0.2, 'step_size_up': 3, 'mode': 'triangular2'},
    'CyclicLR, by group': {'base_lr': [0.01, 0.02], 'max_lr': [0.2, 0.4], 'step_size_up': 2},
    'PolynomialLR': {'total_iters': 4, 'power': 2.0},
    'CosineAnnealingWarmRestarts': {'T_0': 3, 'T_mult': 2, 'eta_min': 0.001},
    'StepLR': {'step_size': 3},
}


@pytest.mark.parametrize('name', SCHEDULES)
def test_schedule(name):
    def rates(library):
        parameters = [library.nn.Parameter(library.ones(1)) for _ in range(2)]
        optimizer = library.optim.SGD([{'params': parameters[:1]}, {'params': parameters[1:], 'lr': 0.3}], lr=0.1,
                                      momentum=0.9)
        schedule = getattr(library.optim.lr_scheduler, name.split(',')[0])(optimizer, **SCHEDULES[name])
        found = []
        for _ in range(7):
            found += schedule.get_last_lr() + [optimizer.param_groups[0]['momentum']]
            optimizer.step()
            schedule.step()
        return found

    assert rates(koine) == pytest.approx(rates(torch), rel=1e-6)
