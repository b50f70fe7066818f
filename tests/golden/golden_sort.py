"""Golden cases of sorting and selecting, and of cumulative operators and reductions that go with them."""
import math

import torch

from golden_file import GoldenFile, exact

NAN = float('nan')
INF = float('inf')


def special(*shape):
    """Ties, NaN, infinities and zeros of both signs."""
    values = torch.tensor([1.0, NAN, -0.0, 0.0, INF, 1.0, -INF, NAN, 0.0, -0.0, -1.0, 2.0, -INF, INF, 0.5],
                          dtype=torch.float64)
    count = math.prod(shape)
    return values.repeat(count // len(values) + 1)[:count].reshape(shape)


def ties(f, *shape):
    return exact(f.random.randint(-3, 4, shape))


def numbers(f, *shape):
    """Without NaN."""
    x = special(*shape)
    return torch.where(torch.isnan(x), torch.full_like(x, 3.0), x)


def sorting(f):
    inputs = [('plain', f.distinct(4, 7)), ('ties', ties(f, 3, 41)), ('special', special(2, 15)),
              ('one', f.uniform(3, 1)), ('empty', f.uniform(3, 0)), ('scalar', f.uniform()),
              ('long_ties', ties(f, 400))]
    for name, x in inputs:
        for descending in (False, True):
            for dim in (0, -1) if x.dim() == 2 else (-1,):
                case = 'sort_%s_%d%s' % (name, dim % max(x.dim(), 1), '_descending' if descending else '')
                f.listed(case, 'sort', [x], lambda x: torch.sort(x, dim=dim, descending=descending, stable=True),
                         dim=dim, descending=descending)
        f.listed('argsort_' + name, 'argsort', [x], lambda x: torch.argsort(x, stable=True), gradient=False)
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
        x = ties(f, 3, 50).abs().to(dtype) if dtype in (torch.uint8, torch.bool) else ties(f, 3, 50).to(dtype)
        f.listed('sort_' + str(dtype)[6:], 'sort', [x], lambda x: torch.sort(x, descending=True, stable=True),
                 gradient=False, descending=True)
    big = torch.tensor([2**63 - 1, -2**63, 0, -1, 2**62, 2**63 - 1])
    f.listed('sort_extremes_int64', 'sort', [big], lambda x: torch.sort(x, stable=True), gradient=False)


def selecting(f):
    for name, x, k in (('few', f.distinct(4, 31), 3), ('one', f.distinct(4, 31), 1), ('all', f.distinct(4, 9), 9),
                       ('none', f.distinct(4, 9), 0), ('most', f.distinct(3, 30), 25), ('long', f.distinct(500), 7)):
        for largest in (True, False):
            f.listed('topk_%s_%s' % (name, 'largest' if largest else 'smallest'), 'topk', [x],
                     lambda x: torch.topk(x, k, largest=largest), k=k, largest=largest, gradient=k > 0)
    f.listed('topk_columns', 'topk', [f.distinct(31, 4)], lambda x: torch.topk(x, 4, dim=0), k=4, dim=0)
    values = lambda x, k, **params: torch.topk(x, k, **params).values
    f.listed('topk_special', 'topk', [special(2, 15)], lambda x: values(x, 6), k=6, gradient=False)
    f.listed('topk_special_smallest', 'topk', [special(2, 15)], lambda x: values(x, 14, largest=False), k=14, largest=False, gradient=False)
    for name, x, k, dim, keepdim in (('first', f.distinct(4, 31), 1, -1, False),
                                     ('middle', f.distinct(4, 31), 16, 1, True),
                                     ('last', f.distinct(31, 3), 31, 0, False), ('scalar', f.uniform(), 1, -1, False)):
        f.listed('kthvalue_' + name, 'kthvalue', [x], lambda x: torch.kthvalue(x, k, dim=dim, keepdim=keepdim), k=k,
                 dim=dim, keepdim=keepdim)
    f.listed('kthvalue_nan', 'kthvalue', [special(15)], lambda x: torch.kthvalue(x, 14).values, k=14, gradient=False)
    for op, function in (('median_dim', torch.median), ('nanmedian_dim', torch.nanmedian)):
        for name, x, dim, keepdim in (('odd', f.distinct(4, 7), -1, False), ('even', f.distinct(8, 3), 0, True),
                                      ('one', f.distinct(3, 1), 1, False)):
            f.listed('%s_%s' % (op, name), op, [x], lambda x: function(x, dim=dim, keepdim=keepdim), dim=dim,
                     keepdim=keepdim)
        nan = f.distinct(3, 5)
        nan[0, 3] = nan[2, 1] = nan[2, 4] = NAN
        f.listed(op + '_nan', op, [nan], lambda x: function(x, dim=1), dim=1)
    f.listed('nanmedian_dim_all_nan', 'nanmedian_dim', [torch.full((2, 3), NAN, dtype=torch.float64)], lambda x: torch.nanmedian(x, 1).values, gradient=False)
    nan = f.distinct(3, 5)
    nan[0, 3] = nan[2, 1] = nan[2, 4] = NAN
    for op, function in (('median', torch.median), ('nanmedian', torch.nanmedian)):
        for name, x in (('odd', f.distinct(3, 5)), ('ties', ties(f, 4, 6)), ('nan', nan), ('scalar', f.uniform()),
                        ('empty', f.uniform(0, 2))):
            f.listed('%s_%s' % (op, name), op, [x], lambda x: function(x), gradient=name != 'empty')
        f.listed(op + '_int64', op, [ties(f, 31).long()], lambda x: function(x), gradient=False)
    # PyTorch's index of a mode is that of any of the equal elements.
    f.listed('mode', 'mode', [f.distinct(5, 9)], lambda x: torch.mode(x))
    f.listed('mode_ties', 'mode', [ties(f, 5, 21)], lambda x: torch.mode(x).values, gradient=False)
    f.listed('mode_columns', 'mode', [ties(f, 21, 5)], lambda x: torch.mode(x, 0, True).values, dim=0, keepdim=True, gradient=False)
    f.listed('mode_int64', 'mode', [ties(f, 5, 21).long()], lambda x: torch.mode(x).values, gradient=False)
    f.listed('mode_nan', 'mode', [torch.tensor([NAN, NAN, NAN, 2, 2], dtype=torch.float64)], lambda x: torch.mode(x).values, gradient=False)


def cumulative(f):
    zeros = f.uniform(4, 6)
    zeros[1, 2] = zeros[2, 1] = zeros[2, 4] = zeros[3, 0] = 0
    low = f.uniform(3, 5)
    low[0, :2] = -INF
    low[1] = f.uniform(5, low=-200.0, high=200.0)
    for op, function, inputs in (('cumsum', torch.cumsum, (('numbers', numbers(f, 3, 5)), ('nan', special(2, 8)))),
                                 ('cumprod', torch.cumprod, (('zeros', zeros), ('one', f.uniform(3, 1)),
                                                             ('empty', f.uniform(3, 0)), ('scalar', f.uniform()))),
                                 ('logcumsumexp', torch.logcumsumexp,
                                  (('extreme', low), ('one', f.uniform(3, 1)),
                                   ('large', f.uniform(2, 5, low=-60.0, high=60.0))))):
        for name, x in inputs:
            f.listed('%s_%s' % (op, name), op, [x], lambda x: function(x, x.dim() - 1), dim=max(x.dim() - 1, 0),
                     terms=5, gradient=not bool(torch.isnan(function(x, x.dim() - 1)).any()) and name != 'numbers')
        f.listed(op + '_columns', op, [f.uniform(6, 4)], lambda x: function(x, 0), dim=0, terms=6)
    f.listed('cumprod_int32', 'cumprod', [torch.tensor([[2, -3, 4], [0, 5, 6]], dtype=torch.int32)], lambda x: torch.cumprod(x, 1), gradient=False, dim=1)
    special_log = torch.tensor([[-INF, -INF, 1, INF, 2], [1, NAN, 2, -INF, 0], [INF, -INF, 1, 0, 0]],
                               dtype=torch.float64)
    f.listed('logcumsumexp_special', 'logcumsumexp', [special_log], lambda x: torch.logcumsumexp(x, 1), gradient=False, dim=1)
    for op, function in (('cummax', torch.cummax), ('cummin', torch.cummin)):
        for name, x, dim in (('plain', f.distinct(4, 9), 1), ('ties', ties(f, 3, 21), 1),
                             ('ties_columns', ties(f, 21, 3), 0), ('special', special(2, 15), 1),
                             ('infinite', numbers(f, 15, 2), 0), ('empty', f.uniform(0, 3), 0)):
            f.listed('%s_%s' % (op, name), op, [x], lambda x: function(x, dim), dim=dim)
        f.listed(op + '_int64', op, [ties(f, 3, 21).long()], lambda x: function(x, 1), dim=1, gradient=False)


def reducing(f):
    for op, function in (('any', torch.any), ('all', torch.all)):
        for name, x in (('special', special(3, 5)), ('zeros', torch.zeros(2, 3, dtype=torch.float64)),
                        ('bool', ties(f, 3, 9) > 2), ('int64', ties(f, 9, 3).long()),
                        ('uint8', ties(f, 9, 3).abs().to(torch.uint8)), ('empty', f.uniform(0, 2))):
            f.listed('%s_%s' % (op, name), op, [x], lambda x: function(x), gradient=False)
            f.listed('%s_%s_rows' % (op, name), op, [x], lambda x: function(x, 1, True), gradient=False, dims=1,
                     keepdim=True)
    for name, x in (('special', special(3, 5)), ('bool', ties(f, 3, 9) > 2), ('int32', ties(f, 9, 3).int()),
                    ('empty', f.uniform(0, 2))):
        f.listed('count_nonzero_' + name, 'count_nonzero', [x], lambda x: torch.count_nonzero(x), gradient=False)
        f.listed('count_nonzero_%s_rows' % name, 'count_nonzero', [x], lambda x: torch.count_nonzero(x, 1),
                 gradient=False, dims=1)
    nan = f.uniform(4, 5)
    nan[0, 1] = nan[2, 0] = nan[2, 4] = nan[3, :] = NAN
    for op, function in (('nansum', torch.nansum), ('nanmean', torch.nanmean)):
        f.listed(op + '_all', op, [nan], lambda x: function(x), terms=20)
        f.listed(op + '_rows', op, [nan[:3].clone()], lambda x: function(x, 1, True), dims=1, keepdim=True, terms=5)
        f.listed(op + '_no_number', op, [nan], lambda x: function(x, 1), dims=1, gradient=False, terms=5)
    f.listed('nansum_int32', 'nansum', [torch.tensor([3, 4], dtype=torch.int32)], lambda x: torch.nansum(x), gradient=False)


def distinct(f):
    inputs = (('plain', ties(f, 4, 9)), ('special', numbers(f, 3, 8)), ('empty', f.uniform(0, 3)),
              ('one', f.uniform(1)), ('scalar', f.uniform()), ('int32', ties(f, 50).int()), ('bool', ties(f, 5, 3) > 0),
              ('uint8', ties(f, 31).abs().to(torch.uint8)))
    for op, function in (('unique', torch.unique), ('unique_consecutive', torch.unique_consecutive)):
        for name, x in inputs:
            f.listed('%s_%s' % (op, name), op, [x], lambda x: function(x, return_inverse=True, return_counts=True),
                     gradient=False)
        for name, x, dim in (('rows', ties(f, 30, 2).sign(), 0), ('columns', ties(f, 2, 30).sign(), -1),
                             ('middle', (ties(f, 2, 31, 2) > 0).int(), 1), ('one', f.uniform(1, 3), 0)):
            f.listed('%s_dim_%s' % (op, name), op, [x],
                     lambda x: function(x, return_inverse=True, return_counts=True, dim=dim), gradient=False, dim=dim)
        f.listed(op + '_nan', op, [special(15)], lambda x: function(x), gradient=False)


def searching(f):
    rows = torch.sort(ties(f, 3, 11)).values
    values = torch.cat([ties(f, 3, 5), torch.tensor([[INF, -INF, 0.5]] * 3, dtype=torch.float64)], 1)
    nan = torch.tensor([-INF, -1, -0.0, 0.0, 2, 2, INF, NAN, NAN], dtype=torch.float64)
    for right in (False, True):
        side = '_right' if right else ''
        f.listed('searchsorted' + side, 'searchsorted', [rows, values],
                 lambda s, v: torch.searchsorted(s, v, right=right), gradient=False, right=right)
        f.listed('searchsorted_one_row' + side, 'searchsorted', [rows[0], values],
                 lambda s, v: torch.searchsorted(s, v, right=right, out_int32=True), gradient=False, right=right,
                 out_int32=True)
        f.listed('searchsorted_special' + side, 'searchsorted', [nan, special(3, 5)],
                 lambda s, v: torch.searchsorted(s, v, right=right), gradient=False, right=right)
        f.listed('searchsorted_empty' + side, 'searchsorted', [f.uniform(0), f.uniform(3)],
                 lambda s, v: torch.searchsorted(s, v, right=right), gradient=False, right=right)
        f.listed('bucketize' + side, 'bucketize', [values, rows[1]], lambda v, s: torch.bucketize(v, s, right=right),
                 gradient=False, right=right)
    mixed = ties(f, 3, 11)
    f.listed('searchsorted_sorter', 'searchsorted', [mixed, values, torch.argsort(mixed)], lambda s, v, o: torch.searchsorted(s, v, sorter=o), gradient=False)
    for invert in (False, True):
        for name, a, b in (('plain', ties(f, 4, 9), exact(torch.tensor([1.0, -2.0, 7.0]))),
                           ('special', special(15), special(6)), ('int64', ties(f, 31).long(), ties(f, 3).long()),
                           ('empty', f.uniform(3), f.uniform(0))):
            f.listed('isin_%s%s' % (name, '_inverted' if invert else ''), 'isin', [a, b],
                     lambda a, b: torch.isin(a, b, invert=invert), gradient=False, invert=invert)


def counting(f):
    x = ties(f, 100).abs().long()
    f.listed('bincount', 'bincount', [x], lambda x: torch.bincount(x), gradient=False)
    f.listed('bincount_minlength', 'bincount', [x.to(torch.uint8)], lambda x: torch.bincount(x, minlength=9), gradient=False, minlength=9)
    f.listed('bincount_weights', 'bincount', [x, f.uniform(100)], lambda x, w: torch.bincount(x, w, 5), gradient=False, minlength=5, terms=100)
    f.listed('bincount_empty', 'bincount', [x[:0]], lambda x: torch.bincount(x, minlength=3), gradient=False, minlength=3)
    for name, x, params in (('plain', f.uniform(11, 13, low=-3, high=3), {'bins': 7, 'min': -2, 'max': 2}),
                            ('found', ties(f, 101), {'bins': 5}), ('default', ties(f, 31), {}),
                            ('special', special(30), {'bins': 4, 'min': -1, 'max': 2}),
                            ('equal', torch.ones(5, dtype=torch.float64), {'bins': 3}),
                            ('empty', f.uniform(0), {'bins': 3})):
        f.listed('histc_' + name, 'histc', [x], lambda x: torch.histc(x, **params), gradient=False, **params)


def quantiles(f):
    q = exact(torch.tensor([0.25, 0.0, 1.0, 0.6, 0.5]))
    nan = f.distinct(4, 9)
    nan[0, 3] = nan[2, 1] = nan[2, 4] = NAN
    nan[3] = NAN
    for op, function in (('quantile', torch.quantile), ('nanquantile', torch.nanquantile)):
        for how in ('linear', 'lower', 'higher', 'midpoint', 'nearest'):
            f.listed('%s_%s' % (op, how), op, [f.distinct(4, 9), q], lambda x, q: function(x, q, 1, interpolation=how),
                     dim=1, interpolation=how)
        f.listed(op + '_all', op, [f.distinct(4, 9), q[0]], lambda x, q: function(x, q))
        f.listed(op + '_columns', op, [f.distinct(9, 3), q[3]], lambda x, q: function(x, q, 0, True), dim=0,
                 keepdim=True)
        f.listed(op + '_one', op, [f.distinct(3, 1), q], lambda x, q: function(x, q, 1), dim=1)
        f.listed(op + '_nan', op, [nan, q], lambda x, q: function(x, q, 1), dim=1, gradient=False)
        f.listed(op + '_infinite', op, [torch.tensor([INF, -INF, 0, INF, INF], dtype=torch.float64), q],
                 lambda x, q: function(x, q, 0, interpolation='lower'), dim=0, gradient=False, interpolation='lower')


def make(folder):
    f = GoldenFile('sort', 31)
    sorting(f)
    selecting(f)
    cumulative(f)
    reducing(f)
    distinct(f)
    searching(f)
    counting(f)
    quantiles(f)
    f.save(folder)
