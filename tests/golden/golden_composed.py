"""Golden cases of norms by PyTorch's rules, factors of LU factorisations, derivatives by differences, incomplete gamma
functions, and functions that Koine composes of operators."""
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, exact

L = torch.linalg
INF = float('inf')


def norms(f):
    x = f.uniform(2, 3, 4)
    for ord, dims in ((None, None), (None, (1,)), (None, (0, 2)), (3.0, (1,)), (0.0, (2,)), (-INF, (0,)),
                      ('fro', (1, 2)), ('nuc', (2, 0)), (2.0, (0, 1)), (-2.0, (1, 2)), (1.0, (2, 1)), (-1.0, (1, 2)),
                      (INF, (0, 2)), (-INF, (1, 2))):
        kind = 'default' if ord is None else ord if isinstance(ord, str) else 'ord'
        params = {} if dims is None else {'dims': dims}
        if kind == 'ord':
            params['ord'] = ord
        name = 'norm_%s_%s' % (ord, ''.join(map(str, dims or ())))
        f.listed(name, 'linalg_norm', [x], lambda t: L.norm(t, ord, dims, keepdim=len(f.cases) % 2 == 0),
                 gradient=ord != 0.0, terms=100, kind=kind, keepdim=len(f.cases) % 2 == 0, **params)
    f.listed('norm_matrix', 'linalg_norm', [x[0]], lambda t: L.norm(t, 1), kind='ord', ord=1.0)
    f.listed('norm_vector', 'linalg_norm', [x[0, 0]], lambda t: L.norm(t, 1), kind='ord', ord=1.0)
    square = f.uniform(2, 3, 3) + 2 * torch.eye(3)
    for norm, ord in enumerate(('fro', 'nuc', 2, -2, 1, -1, INF, -INF)):
        product = lambda t: L.matrix_norm(t, ord) * L.matrix_norm(L.inv(t), ord)  # the gradient of PyTorch's cond fails
        f.case('cond_%s' % ord, 'linalg_cond', [exact(square)],
               product if norm not in (2, 3) else lambda t: L.cond(t, ord), norm=norm, terms=1000)
    f.case('cond_singular', 'linalg_cond', [exact([[1, 2], [2, 4]])], lambda t: L.cond(t, 1), gradient=False, norm=4)


def factors(f):
    for name, shape in (('square', (2, 3, 3)), ('tall', (4, 2)), ('wide', (2, 4))):
        a = f.uniform(*shape)
        f.case('lu_factor_' + name, 'lu_factor', [a], lambda t: L.lu_factor(t)[0], terms=100)
        for part in range(3):
            f.case('lu_%s_%d' % (name, part), 'lu', [a], lambda t: L.lu(t)[part], part=part, terms=100)
    lu, pivots = L.lu_factor(f.uniform(2, 3, 3))
    lu = exact(lu)
    for left in (True, False):
        for adjoint in (True, False):
            f.case('lu_solve_%d%d' % (left, adjoint), 'lu_solve', [lu, f.uniform(2, 3, 3), pivots.to(torch.int32)],
                   lambda t, b, p: L.lu_solve(t, p, b, left=left, adjoint=adjoint), left=left, adjoint=adjoint,
                   terms=100)
    a, tau = torch.geqrf(f.uniform(2, 4, 3))
    f.listed('householder', 'linalg_householder_product', [exact(a), exact(tau)], L.householder_product, terms=20)
    f.case('tensorinv', 'tensorinv', [exact(f.uniform(4, 2, 2) + torch.eye(4).reshape(4, 2, 2))], lambda t: L.tensorinv(t, 1), ind=1, terms=100)
    f.case('tensorsolve', 'tensorsolve', [exact(f.uniform(2, 2, 4) + torch.eye(4).reshape(2, 2, 4)), f.uniform(2, 2)], L.tensorsolve, terms=100)
    f.case('vecdot', 'vecdot', [f.uniform(2, 3), f.uniform(3)], L.vecdot, terms=3)


def differences(f):
    x, places = f.uniform(5, 4), exact([0.0, 0.5, 0.75, 2.0, 2.5])
    for order in (1, 2):
        f.listed('gradient_%d' % order, 'gradient', [x],
                 lambda t: torch.gradient(t, spacing=0.5, dim=1, edge_order=order)[0], edge_order=order, spacing=0.5)
        f.listed('gradient_places_%d' % order, 'gradient', [x, places],
                 lambda t, p: torch.gradient(t, spacing=(p.detach(),), dim=0, edge_order=order)[0], gradient=False,
                 dim=0, edge_order=order)
    f.listed('gradient_two', 'gradient', [x[:2]], lambda t: torch.gradient(t, dim=0)[0], dim=0)


def special(f):
    a = exact([0.0, 0.0, 1.0, 0.5, 0.01, 3.0, 3.0, 10.0, 50.0, 50.0, 200.0, 1000.0, 1000.0, -1.0, 2.0, INF, 1e5, 0.3, 20.0])
    x = exact([0.0, 1.0, 0.0, 0.25, 0.5, 1.0, 9.0, 9.5, 40.0, 55.0, 190.0, 1010.0, 900.0, 1.0, INF, 1.0, 1.001e5, 1e-4, 100.0])
    for name in ('igamma', 'igammac'):
        f.listed(name, name, [a, x], getattr(torch, name), gradient=False)
        f.listed(name + '_gradient', name, [a[3:13], x[3:13]], lambda p, q: getattr(torch, name)(p.detach(), q))
    f.listed('mvlgamma', 'mvlgamma', [f.uniform(2, 3, low=1.5, high=4)], lambda t: torch.mvlgamma(t, 3), p=3)
    f.case('frexp', 'frexp', [exact([0.0, 1.0, -1.0, 0.75, 1e-30, 3e20, -INF, 7.0])], torch.frexp)


def arrangements(f):
    x = f.uniform(4)
    f.listed('vander', 'vander', [x], lambda t: torch.vander(t), gradient=False)
    f.listed('vander_increasing', 'vander', [f.uniform(2, 3)], lambda t: L.vander(t, N=5), n=5, increasing=True, terms=5)
    f.listed('vander_none', 'vander', [x], lambda t: torch.vander(t, 0), gradient=False, n=0)
    for r, again in ((2, False), (2, True), (3, False), (4, True), (0, False), (5, False)):
        f.listed('combinations_%d%d' % (r, again), 'combinations', [x], lambda t: torch.combinations(t, r, again),
                 gradient=r in (2, 3), r=r, with_replacement=again)
    for name, shape, wrap in (('tall', (7, 2), True), ('plain', (5, 2), False), ('wide', (2, 4), True),
                              ('cube', (3, 3, 3), False)):
        f.case('fill_diagonal_' + name, 'fill_diagonal', [f.uniform(*shape)],
               lambda t: t.clone().fill_diagonal_(0.5, wrap), wrap=wrap)
    f.case('sum_to_size', 'sum_to_size', [f.uniform(2, 3, 4)], lambda t: t.sum_to_size(3, 1), shape=(3, 1), terms=8)
    y = exact([[0.0, 1, 0, 2], [3, 0, 0, 4], [0, 0, 5, 0]])
    for size in (3, 5, 7, 15):
        f.case('nonzero_static_%d' % size, 'nonzero_static', [y],
               lambda t: torch.nonzero_static(t, size=size, fill_value=-2), gradient=False, size=size)
    f.case('unravel_index', 'unravel_index', [torch.tensor([[3, 0], [23, 11]])], lambda t: torch.unravel_index(t, (2, 3, 4))[:2], gradient=False, shape=(2, 3, 4))


def counts(f):
    x, weight = exact([[0.1, 0.9, 1.0, -0.5], [0.5, 0.25, float('nan'), 2.0]]), f.uniform(2, 4)
    edges = exact([0.0, 0.25, 0.5, 2.0])
    f.case('histogram', 'histogram', [x], lambda t: torch.histogram(t, 4, range=(0.0, 1.0)), gradient=False, bins=4, max=1.0)
    f.case('histogram_range', 'histogram', [weight], lambda t: torch.histogram(t, 3), gradient=False, bins=3)
    f.case('histogram_equal', 'histogram', [exact([2.0, 2.0])], lambda t: torch.histogram(t, 3), gradient=False, bins=3)
    f.case('histogram_edges', 'histogram', [x, edges], lambda t, e: torch.histogram(t, e)[0], gradient=False)
    f.case('histogram_density', 'histogram', [x, edges, weight.abs()], lambda t, e, w: torch.histogram(t, e, weight=w, density=True), gradient=False,
           density=1, terms=8)


def sequences(f):
    f.listed('conv_tbc', 'conv_tbc', [f.uniform(5, 2, 3), f.uniform(3, 3, 4), f.uniform(4)], lambda x, w, b: torch.conv_tbc(x, w, b, 1), pad=1, terms=30)


def adaptive(f):
    """Inputs are features, classes and the parameters in order; the gradient is that of the loss."""
    def run(x, target, *values):
        module = torch.nn.AdaptiveLogSoftmaxWithLoss(9, 12, cutoffs=[3, 7], div_value=2.0, head_bias=True).double()
        with torch.no_grad():
            for parameter, value in zip(module.parameters(), values):
                parameter.copy_(value)
        output, loss = module(x, target)
        rows = x.reshape(-1, 9)  # PyTorch's log_prob takes no single sample
        return (loss, output, module.log_prob(rows).reshape(*target.shape, 12),
                module.predict(rows).reshape(target.shape))

    module = torch.nn.AdaptiveLogSoftmaxWithLoss(9, 12, cutoffs=[3, 7], div_value=2.0, head_bias=True)
    shapes = [tuple(p.shape) for p in module.parameters()]
    values = [f.uniform(*shape) for shape in shapes]
    f.case('adaptive', 'adaptive', [f.uniform(6, 9), torch.tensor([0, 11, 4, 2, 3, 7])] + values, run, terms=20)
    f.case('adaptive_head', 'adaptive', [f.uniform(2, 9), torch.tensor([1, 2])] + values, run, terms=20)
    f.case('adaptive_one', 'adaptive', [f.uniform(9), torch.tensor(8)] + values, run, terms=20)


def make(folder):
    f = GoldenFile('composed', 34)
    norms(f)
    factors(f)
    differences(f)
    special(f)
    arrangements(f)
    counts(f)
    sequences(f)
    adaptive(f)
    f.save(folder)
