"""Functions that are a call of the C interface, and settings, against numpy."""
import numpy
import pytest

import koine
from koine import nn


def random(*shape):
    return numpy.random.randn(*shape)


def close(ours, theirs, atol=1e-9):
    numpy.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-6, atol=atol)


@pytest.mark.parametrize('dtype', ['int64', 'int32', 'int16', 'int8', 'uint8'])
def test_products_of_integers_take_the_lower_bits(dtype):
    random, limits = numpy.random.default_rng(5), numpy.iinfo(dtype)
    for shapes in [((3, 4), (4, 5)), ((5,), (5,)), ((2, 1, 3, 4), (5, 4, 2)), ((7,), (7, 3)), ((3, 0), (0, 2)),
                   ((1, 300000), (300000, 1))]:
        a, b = (random.integers(limits.min, limits.max, shape, dtype, endpoint=True) for shape in shapes)
        product = koine.matmul(koine.tensor(a), koine.tensor(b))
        assert product.numpy().dtype == dtype and numpy.array_equal(product.numpy(), numpy.matmul(a, b))
    with pytest.raises(ValueError, match='cannot be multiplied'):
        koine.ones(2, dtype=dtype) @ koine.ones(3, dtype=dtype)
    with pytest.raises(TypeError):
        koine.ones(2, dtype=dtype) @ koine.ones(2)


def test_joining():
    a, b = random(2, 3), random(1, 2)
    expected = numpy.zeros((3, 5))
    expected[:2, :3], expected[2:, 3:] = a, b
    close(koine.block_diag(koine.tensor(a), koine.tensor(b)), expected)
    x, y = koine.tensor([1, 2]), koine.tensor([3, 4, 5])
    assert koine.cartesian_prod(x, y).tolist() == [[i, j] for i in (1, 2) for j in (3, 4, 5)]
    vectors = [random(3), random(3)]
    tensors = [koine.tensor(one) for one in vectors]
    close(koine.column_stack(tensors), numpy.column_stack(vectors))
    close(koine.dstack(tensors), numpy.dstack(vectors))
    close(koine.row_stack(tensors), numpy.vstack(vectors))
    parts = koine.split_with_sizes(koine.tensor(a), [1, 2], dim=1)
    assert [one.shape for one in parts] == [(2, 1), (2, 2)]
    sequences = nn.utils.rnn.pad_sequence([koine.tensor([1, 2, 3]), koine.tensor([4])], True, -1)
    assert sequences.tolist() == [[1, 2, 3], [4, -1, -1]]


def test_indices():
    places = numpy.array([[0, 5], [11, 7]])
    for ours, theirs in zip(koine.unravel_index(koine.tensor(places), (3, 4)), numpy.unravel_index(places, (3, 4))):
        assert ours.tolist() == theirs.tolist()
    assert koine.tensor([0, 3, 0, 4]).nonzero_static(size=3).tolist() == [[1], [3], [-1]]
    x = koine.zeros(4)
    assert x.masked_scatter_(koine.tensor([True, False, True, False]), koine.tensor([1.0, 2.0])) is x
    assert x.tolist() == [1, 0, 2, 0]


def test_scatter():
    x, index, src = koine.tensor([1.0, 2, 3]), koine.tensor([0, 2, 0]), koine.tensor([5.0, 6, 7])
    assert x.scatter(0, index[:2], src).tolist() == [5, 2, 6]
    assert x.scatter(0, index, 4).tolist() == koine.scatter(x, 0, index, value=4).tolist() == [4, 2, 4]
    assert x.scatter(0, index, src, reduce='add').tolist() == [13, 2, 9]
    assert x.scatter(0, index, 2.0, reduce='multiply').tolist() == [4, 2, 6]
    assert x.scatter_(0, index, src, reduce='multiply') is x and x.tolist() == [35, 2, 18]
    with pytest.raises(ValueError, match="reduce must be 'add' or 'multiply', not 'mean'"):
        x.scatter(0, index, src, reduce='mean')


@pytest.mark.parametrize('weighted', [False, True])
def test_histogram(weighted):
    x, weight = random(50), random(50) ** 2 if weighted else None
    tensors = koine.tensor(x), None if weight is None else koine.tensor(weight)
    edges = numpy.array([-1.0, -0.2, 0.3, 2.0])
    for bins, ours, options in ((7, 7, {}), (5, 5, {'range': (-1.0, 1.0)}), (edges, koine.tensor(edges), {})):
        for density in (False, True):
            found = koine.histogram(tensors[0], ours, weight=tensors[1], density=density, **options)
            hist, places = numpy.histogram(x, bins, weights=weight, density=density, **options)
            close(found.hist, hist)
            close(found.bin_edges, places)
    with pytest.raises(ValueError, match='range is for a number of bins'):
        koine.histogram(tensors[0], koine.tensor(edges), range=(0.0, 1.0))


def test_matrices():
    array = random(4, 4)
    a = koine.tensor(array)
    values, vectors = numpy.linalg.eigh(array + array.T)
    close((a + a.T).matrix_exp(), vectors * numpy.exp(values) @ vectors.T, 1e-6)
    close(a.det(), numpy.linalg.det(array))
    for ours, theirs in zip(a.slogdet(), numpy.linalg.slogdet(array)):
        close(ours, theirs)
    close(a.inverse(), numpy.linalg.inv(array))
    p, lower, upper = koine.lu_unpack(*koine.linalg.lu_factor(a))
    close(p @ lower @ upper, array)
    x, y = random(2, 3), random(2, 3)
    close(koine.cross(koine.tensor(x), koine.tensor(y)), numpy.cross(x, y))
    close(koine.tensor(x.T).cross(koine.tensor(y.T)), numpy.cross(x, y).T)
    with pytest.raises(ValueError, match='no dimension of size 3'):
        koine.cross(a, a)
    close(koine.linalg.vander(koine.tensor(x[0]), N=4), numpy.vander(x[0], 4, increasing=True))
    close(koine.linalg.diagonal(a, offset=1), numpy.diagonal(array, 1))
    close(koine.linalg.matmul(a, a), array @ array)
    inverse, info = koine.linalg.inv_ex(a)
    close(inverse, numpy.linalg.inv(array))
    assert info.item() == 0 and koine.linalg.cholesky_ex(-(a @ a.T))[1].item() > 0
    close(koine.linalg.solve_ex(a, a)[0], numpy.eye(4))
    assert koine.linalg.lu_factor_ex(koine.zeros(2, 2))[2].item() == 1
    rows = koine.tensor(array)
    assert rows.renorm_(2, 0, 0.5) is rows
    close(rows, array * numpy.minimum(1, 0.5 / numpy.linalg.norm(array, axis=1))[:, None], 1e-6)


def test_results_by_name():
    """Functions of several results return PyTorch's named tuples."""
    a = koine.tensor(random(4, 4))
    positive = a @ a.T + koine.eye(4)
    for found, names in (
            (koine.linalg.eigh(positive), ('eigenvalues', 'eigenvectors')), (koine.linalg.svd(a), ('U', 'S', 'Vh')),
            (koine.svd(a), ('U', 'S', 'V')), (a.qr(), ('Q', 'R')), (a.slogdet(), ('sign', 'logabsdet')),
            (koine.linalg.slogdet(a), ('sign', 'logabsdet')), (koine.linalg.lu_factor(a), ('LU', 'pivots')),
            (koine.linalg.cholesky_ex(positive), ('L', 'info')), (koine.linalg.inv_ex(a), ('inverse', 'info')),
            (koine.linalg.solve_ex(a, a), ('result', 'info')), (koine.linalg.lu(a), ('P', 'L', 'U')),
            (a.frexp(), ('mantissa', 'exponent')), (a.aminmax(), ('min', 'max')), (a.sort(), ('values', 'indices'))):
        assert found._fields == names and all(getattr(found, one) is found[i] for i, one in enumerate(names))


def test_least_squares():
    a, b = random(6, 2), random(6, 3)
    found = koine.linalg.lstsq(koine.tensor(a), koine.tensor(b))
    solution, residuals, rank, _ = numpy.linalg.lstsq(a, b, rcond=None)
    close(found.solution, solution), close(found.residuals, residuals)
    assert found.rank.item() == rank and found.singular_values.numel() == 0
    assert koine.linalg.lstsq(koine.tensor(a.T), koine.tensor(b[:2])).residuals.numel() == 0


def test_draws():
    mean, std = koine.full((20000,), 3.0), koine.full((20000,), 0.5)
    for drawn in (koine.normal(mean, std), koine.normal(mean, 0.5), koine.normal(3.0, std),
                  koine.normal(3.0, 0.5, (20000,))):
        assert drawn.shape == (20000,)
        assert drawn.mean().item() == pytest.approx(3, abs=0.02) and drawn.std().item() == pytest.approx(0.5, abs=0.02)
    generator = koine.Generator().manual_seed(2)
    first = koine.normal(0.0, 1.0, (3,), generator=generator)
    assert koine.equal(first, koine.normal(0.0, 1.0, (3,), generator=generator.manual_seed(2)))
    with pytest.raises(ValueError, match='size is needed'):
        koine.normal(0.0, 1.0)
    successes = koine.binomial(koine.full((20000,), 10.0), koine.full((20000,), 0.3))
    assert successes.mean().item() == pytest.approx(3, abs=0.06)
    whole = koine.zeros(1000).random_(3, 6)
    assert sorted(set(whole.tolist())) == [3, 4, 5] and koine.zeros(1000).random_(2).max().item() == 1


def test_small_ones():
    assert koine.promote_types('int64', koine.float16) is koine.float16
    x = koine.ones(2, requires_grad=True)
    assert not koine.detach(x).requires_grad
    y = koine.zeros(2)
    assert y.lerp_(koine.ones(2), 0.25) is y and y.tolist() == [0.25, 0.25]
    assert y.lerp_(koine.ones(2), koine.tensor([0.0, 1.0])).tolist() == [0.25, 1]
    assert koine.tensor([1.0]).positive().item() == 1


def test_settings():
    assert not koine.are_deterministic_algorithms_enabled()
    try:
        koine.use_deterministic_algorithms(True, warn_only=True)
        assert koine.are_deterministic_algorithms_enabled() and koine.is_deterministic_algorithms_warn_only_enabled()
        koine.use_deterministic_algorithms(True)
        assert not koine.is_deterministic_algorithms_warn_only_enabled()
        koine.set_float32_matmul_precision('high')
        assert koine.get_float32_matmul_precision() == 'high'
        with pytest.raises(ValueError, match='lowest'):
            koine.set_float32_matmul_precision('lowest')
    finally:
        koine.use_deterministic_algorithms(False)
        koine.set_float32_matmul_precision('highest')


# --- koine.nn.utils ---------------------------------------------------------------------------------------------------


def test_vectors_of_parameters():
    net = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    close(vector, numpy.concatenate([one.detach().numpy().ravel() for one in net.parameters()]))
    nn.utils.vector_to_parameters(koine.arange(8, dtype='float32'), net.parameters())
    assert net.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and net.bias.tolist() == [6, 7]


def test_norms_of_gradients():
    net = nn.Linear(3, 2)
    net(koine.ones(1, 3)).sum().backward()
    norm = nn.utils.get_total_norm([one.grad for one in net.parameters()])
    assert norm.item() == pytest.approx(8 ** 0.5) and nn.utils.get_total_norm([net.bias.grad], 1).item() == 2
    nn.utils.clip_grads_with_norm_(net.parameters(), 1.0, norm)
    close(net.weight.grad, numpy.full((2, 3), 8 ** -0.5), 1e-6)


@pytest.mark.parametrize('make', [lambda: (nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), (2, 2, 4, 4)),
                                  lambda: (nn.Linear(4, 3), nn.BatchNorm1d(3), (5, 4))])
def test_fused_normalisation(make):
    layer, norm, shape = make()
    norm(layer(koine.randn(*shape)))
    layer.eval(), norm.eval()
    fuse = nn.utils.fuse_conv_bn_eval if len(shape) == 4 else nn.utils.fuse_linear_bn_eval
    fused, x = fuse(layer, norm), koine.randn(*shape)
    assert type(fused) is type(layer)
    close(fused(x), norm(layer(x)).detach().numpy(), 1e-5)


@pytest.mark.parametrize('name', ['LSTM', 'GRU', 'RNN'])
def test_lengths_of_sequences(name):
    """Results are those of each sequence on its own."""
    net = getattr(nn, name)(3, 4, num_layers=2, batch_first=True)
    x = koine.randn(2, 5, 3)
    output, state = net(x, lengths=koine.tensor([5, 2]))
    alone, last = net(x[1:, :2])
    close(output[1:, :2], alone.detach().numpy(), 1e-6)
    states, lasts = (state, last) if isinstance(state, tuple) else ((state,), (last,))
    for one, other in zip(states, lasts):
        close(one[:, 1:], other.detach().numpy(), 1e-6)


ACTIVATIONS = {'relu': (), 'elu': (0.7,), 'silu': (), 'hardtanh': (-0.5, 0.6), 'leaky_relu': (0.2,),
               'threshold': (0.1, 0.3), 'rrelu': (0.1, 0.1)}


@pytest.mark.parametrize('name', ACTIVATIONS)
def test_in_place(name):
    """inplace=True changes the input, with the same values and gradients; of dropout and of layers it has no effect."""
    function, x = getattr(nn.functional, name), random(4, 5)
    leaves = [koine.tensor(x, requires_grad=True) for _ in range(2)]
    inputs = [one * 1 for one in leaves]
    changed = function(inputs[0], *ACTIVATIONS[name], inplace=True)
    right = function(inputs[1], *ACTIVATIONS[name])
    assert changed is inputs[0] and right is not inputs[1]
    close(changed, right.detach().numpy())
    (changed * changed).sum().backward(), (right * right).sum().backward()
    close(leaves[0].grad, leaves[1].grad.numpy())


def test_in_place_without_effect():
    x = koine.randn(4, 5)
    before = x.tolist()
    nn.functional.dropout(x, 0.5, True, True)
    nn.Sequential(nn.ReLU(inplace=True), nn.Dropout(0.5, True))(x)
    assert x.tolist() == before


# --- PyTorch's choices ------------------------------------------------------------------------------------------------

def test_norms_of_matrices_by_number():
    x = koine.tensor([[1., 2], [3, 4]])
    for order, norm in ((1, 6), (-1, 4), (2, 5.464986), (-2, 0.365966), (numpy.inf, 7), (-numpy.inf, 3), (2., 5.464986),
                        ('fro', 5.477226), ('nuc', 5.830952)):
        close(koine.linalg.matrix_norm(x, order), norm, 1e-5)
    close(koine.linalg.cond(x, 1), 21, 1e-4)
    close(koine.linalg.cond(x), 14.933034, 1e-4)
    with pytest.raises(ValueError, match="3 is not one of 'fro', 'nuc', '2', '-2'"):
        koine.linalg.matrix_norm(x, 3)


def test_softmax_without_dim():
    for shape, dim in (((4,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 3, 4, 2), 1)):
        x = koine.tensor(random(*shape))
        for name in ('softmax', 'log_softmax', 'softmin'):
            function = getattr(nn.functional, name)
            close(function(x), function(x, dim).numpy(), 0)


def test_dtypes_of_sums():
    assert koine.sum(koine.tensor([1, 2]), dtype=koine.int32).dtype == koine.int32
    assert koine.tensor([250, 10], dtype=koine.uint8).sum(dtype=koine.uint8).item() == 4
    assert koine.tensor([True, True]).sum(dtype=koine.bool).item() is True
    assert koine.tensor([1.9, 1.9]).cumsum(0, dtype=koine.int32).tolist() == [1, 2]
    assert koine.tensor([2, 3]).prod().dtype == koine.int64


def test_several_results():
    x = koine.tensor([[1., 4, 9], [2, 3, 4]])
    down, along = koine.gradient(x)
    assert down.tolist() == [[1, -1, -5], [1, -1, -5]] and along.tolist() == [[3, 4, 5], [1, 1, 1]]
    assert koine.gradient(x, dim=1, spacing=2)[0].tolist() == [[1.5, 2, 2.5], [0.5, 0.5, 0.5]]
    assert koine.gradient(x, dim=1, spacing=[koine.tensor([0., 1, 2])])[0].tolist() == along.tolist()
    with pytest.raises(ValueError, match='1 spacings for 2 dimensions'):
        koine.gradient(x, spacing=[1])
    mantissa, exponent = koine.tensor([8., 3]).frexp()
    assert mantissa.tolist() == [0.5, 0.75] and exponent.tolist() == [4, 2] and exponent.dtype == koine.int32


def test_results_that_are_inputs():
    x = koine.ones(3, 3)
    for _ in range(5):
        koine.diff(x, n=0), koine.sum_to_size(x, (3, 3))
    assert x.sum().item() == 9


def test_filling_by_a_tensor_has_a_gradient():
    x, value = koine.tensor([1., 2], requires_grad=True), koine.tensor(3., requires_grad=True)
    mask = koine.tensor([True, False])
    koine.masked_fill(x, mask, value).sum().backward()
    assert value.grad.item() == 1 and x.grad.tolist() == [0, 1]
    y = x * 2
    assert y.masked_fill_(mask, value) is y
    y.sum().backward()
    assert value.grad.item() == 2 and x.grad.tolist() == [0, 3]


def test_functions_of_numbers():
    x = koine.tensor([1., 2])
    close(koine.xlogy(x, 3.), numpy.array([1, 2]) * numpy.log(3), 1e-6)
    close(koine.xlogy(2., x), 2 * numpy.log([1, 2]), 1e-6)
    assert x.copysign(-1).tolist() == [-1, -2]
    assert koine.float_power(2, x).tolist() == [2, 4] and x.float_power(2).dtype == koine.float64
    n = koine.tensor([5, 6])
    n.bitwise_or_(8), n.bitwise_left_shift_(1)
    assert n.tolist() == [26, 28]
    with pytest.raises(ValueError, match='padding.* must be at least 0, not -1'):
        nn.functional.conv2d(koine.zeros(1, 1, 4, 4), koine.zeros(1, 1, 1, 1), padding=-1)


def test_products_of_matrices():
    a, b, c = random(2, 3), random(3, 4), random(4, 2)
    tensors = [koine.tensor(one) for one in (a, b, c)]
    for product in (koine.chain_matmul(*tensors), koine.chain_matmul(tensors)):
        close(product, a @ b @ c)
    square = numpy.array([[2., 1], [1, 3]])
    for n in (0, 1, 3, -1, -3):
        close(koine.tensor(square).matrix_power(n), numpy.linalg.matrix_power(square, n))
    assert koine.nanmean(koine.tensor([1., numpy.nan, 3]), dtype=koine.float64).item() == 2


def test_spreads_with_their_means():
    """A bool in place of the dimensions says whether the estimate is unbiased."""
    x = random(3, 4)
    for name, spread in (('var_mean', numpy.var), ('std_mean', numpy.std)):
        function = getattr(koine, name)
        for arguments, dim, ddof in (((True,), None, 1), ((False,), None, 0), ((1, False), 1, 0), ((0, True), 0, 1)):
            found = function(koine.tensor(x), *arguments)
            close(found[0], spread(x, axis=dim, ddof=ddof))
            close(found[1], x.mean(axis=dim))
        close(function(koine.tensor(x), dim=1, unbiased=False, keepdim=True)[0], spread(x, axis=1, keepdims=True))
        close(function(koine.tensor(x), correction=2)[0], spread(x, ddof=2))


def test_bounds_that_are_tensors():
    x, bound = koine.tensor([0.0, 1.0, 2.0, 3.0], requires_grad=True), koine.tensor(1.5, requires_grad=True)
    below, above = ([1.5, 1.5, 2, 3], [0, 0, 1, 1]), ([0, 1, 1.5, 1.5], [1, 1, 0, 0])
    for function, (values, passes) in ((lambda: x.clamp_min(bound), below), (lambda: koine.clamp_max(x, bound), above),
                                       (lambda: (x * 1).clamp_min_(bound), below),
                                       (lambda: (x * 1).clamp_max_(bound), above),
                                       (lambda: (x * 1).clamp_(bound), below),
                                       (lambda: (x * 1).clip_(max=bound), above)):
        result = function()
        assert result.tolist() == values
        of_x, of_bound = koine.autograd.grad(result.sum(), [x, bound])
        assert of_x.tolist() == passes and of_bound.item() == 4 - sum(passes)
    assert x.clamp_min(koine.tensor([1.0, 0.0, 4.0, 2.0])).tolist() == [1, 1, 4, 3]
    assert koine.tensor([1, 5]).clamp_max_(3).tolist() == [1, 3]


def test_lengths_in_lists():
    scores = koine.tensor(random(5, 2, 4)).log_softmax(-1)
    targets, lengths = koine.tensor([[1, 2], [3, 0]]), ([5, 4], (2, 1))
    expected = nn.functional.ctc_loss(scores, targets, *[koine.tensor(one) for one in lengths], zero_infinity=True)
    assert koine.equal(nn.functional.ctc_loss(scores, targets, *lengths, zero_infinity=True), expected)
    assert koine.equal(nn.CTCLoss(zero_infinity=True)(scores, targets, *lengths), expected)


def test_steps_in_between_are_released():
    """Of results that are views, whose steps would keep the memory."""
    x, square = koine.randn(4, 5), koine.randn(4, 4) + 4 * koine.eye(4)

    def use():
        row = x[0].clone()
        koine.meshgrid(row, row, indexing='xy')
        koine.vstack([row, row]), koine.atleast_2d(row), koine.atleast_3d(row)
        koine.linalg_solve(square, square[0].clone()), koine.linalg.solve(square, square[0].clone())

    use()
    before = koine.memory_allocated()
    use()
    assert koine.memory_allocated() == before
