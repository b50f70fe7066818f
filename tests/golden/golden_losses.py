"""Golden cases of losses by elements, of margins and of distances: exact probabilities 0 and 1, huge scores, NaN and
infinities, ties at margins, no elements."""
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, exact

REDUCTIONS = ('mean', 'sum', 'none')
SPECIAL = exact([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-30, 1e15, float('inf'), float('-inf'), float('nan'), -3.0])


def elements(f):
    def all_reductions(name, operator, inputs, function, reductions=REDUCTIONS, **params):
        for reduction in reductions:
            f.listed('%s_%s' % (name, reduction), operator, inputs,
                     lambda *x: function(*x, reduction=reduction, **params), reduction=reduction, terms=15, **params)

    x, y, w = f.uniform(3, 5, low=-3, high=3), f.uniform(3, 5, low=-3, high=3), f.uniform(3, 5, low=0.2, high=2)
    y[0, 0] = x[0, 0]  # a tie
    empty = torch.zeros(0, 5, dtype=torch.float64)
    others = exact([0.0, 0.0, 0.5, 2.0, -0.5, 0.0, 1e-30, 3.0, 1.0, float('-inf'), 2.0, -4.0])
    differences = (('l1_loss', F.l1_loss, {}), ('mse_loss', F.mse_loss, {}),
                   ('smooth_l1_loss', F.smooth_l1_loss, {'beta': 0.75}), ('huber_loss', F.huber_loss, {'delta': 1.25}))
    for name, function, params in differences:
        all_reductions(name, name, [x, y], function, **params)
        f.listed(name + '_broadcast', name, [x, f.uniform(5)], lambda a, b: function(a, b, **params), terms=15,
                 **params)
        f.listed(name + '_empty', name, [empty, empty], lambda a, b: function(a, b, **params), **params)
        f.listed(name + '_empty_sum', name, [empty, empty], lambda a, b: function(a, b, reduction='sum', **params),
                 reduction='sum', **params)
        f.listed(name + '_special', name, [SPECIAL, others], lambda a, b: function(a, b, reduction='none', **params),
                 gradient=name != 'l1_loss', reduction='none', **params)
        if name != 'smooth_l1_loss':
            for reduction in REDUCTIONS:
                f.listed('%s_weighted_%s' % (name, reduction), name, [x, y, w],
                         lambda a, b, v: function(a, b, weight=v, reduction=reduction, **params), reduction=reduction,
                         terms=15, **params)
    ties = exact([-1.0, 1.0, 0.0, 0.5, -0.5, -2.0, 2.0, 0.25])
    zeros = torch.zeros(8, dtype=torch.float64)
    f.listed('smooth_l1_ties', 'smooth_l1_loss', [ties, zeros], lambda a, b: F.smooth_l1_loss(a, b, reduction='none'), reduction='none')
    f.listed('smooth_l1_beta_0', 'smooth_l1_loss', [ties, zeros], lambda a, b: F.smooth_l1_loss(a, b, reduction='none', beta=0.0),
             reduction='none', beta=0.0)
    f.listed('huber_ties', 'huber_loss', [ties, zeros], lambda a, b: F.huber_loss(a, b, reduction='none'), reduction='none')
    f.listed('l1_ties', 'l1_loss', [zeros, ties * 0], lambda a, b: F.l1_loss(a, b, reduction='none'), reduction='none')

    p, q = f.uniform(3, 5, low=0.05, high=0.95), f.uniform(3, 5, low=0, high=1)
    all_reductions('bce', 'binary_cross_entropy', [p, q], F.binary_cross_entropy)
    for reduction in REDUCTIONS:
        f.listed('bce_weighted_' + reduction, 'binary_cross_entropy', [p, q, f.uniform(5, low=0.2, high=2)],
                 lambda a, b, v: F.binary_cross_entropy(a, b, v.detach(), reduction=reduction), reduction=reduction,
                 terms=15)
    sure = exact([0.0, 0.0, 1.0, 1.0, 1e-30, 0.5, float('nan'), 0.0])
    truth = torch.tensor([0, 1, 0, 1, 1, 0, 1, 0]).double()
    f.listed('bce_sure', 'binary_cross_entropy', [sure[[0, 1, 2, 3, 4, 5, 7]], truth[[0, 1, 2, 3, 4, 5, 7]].long()],
             lambda a, b: F.binary_cross_entropy(a, b.double(), reduction='none'), reduction='none')
    f.listed('bce_empty', 'binary_cross_entropy', [empty, empty], F.binary_cross_entropy)

    logs, shares = F.log_softmax(x, 1), F.softmax(y, 1)
    logs, shares = exact(logs), exact(shares)
    all_reductions('kl_div', 'kl_div', [logs, shares], F.kl_div, REDUCTIONS + ('batchmean',), log_target=False)
    all_reductions('kl_div_log', 'kl_div', [logs, exact(shares.log())], F.kl_div, REDUCTIONS + ('batchmean',), log_target=True)
    f.listed('kl_div_zero', 'kl_div', [exact([-1.0, -100.0, -2.0, float('-inf'), float('nan')]), exact([0.0, 0.0, 1.0, 0.5, 0.5])],
             lambda a, b: F.kl_div(a, b.detach(), reduction='none'), gradient=False, reduction='none')
    f.listed('kl_div_broadcast', 'kl_div', [logs, shares[0]], lambda a, b: F.kl_div(a, b, reduction='sum'), reduction='sum', terms=15)
    f.listed('kl_div_empty', 'kl_div', [empty, empty], F.kl_div)

    rate, count = f.uniform(3, 5, low=0.1, high=4), exact(f.integers(0, 6, 3, 5).numpy())
    for full in (False, True):
        all_reductions('poisson_log%d' % full, 'poisson_nll_loss', [x, count],
                       lambda a, b, **k: F.poisson_nll_loss(a, b.detach() if full else b, **k), full=full)
        all_reductions('poisson_rate%d' % full, 'poisson_nll_loss', [rate, count],
                       lambda a, b, **k: F.poisson_nll_loss(a, b.detach() if full else b, **k), ('mean', 'none'),
                       log_input=False, full=full)
    f.listed('poisson_zero_rate', 'poisson_nll_loss', [torch.zeros(2).double(), exact([0.0, 2.0])],
             lambda a, b: F.poisson_nll_loss(a, b, log_input=False, reduction='none'), log_input=False, reduction='none')
    for full in (False, True):
        all_reductions('gaussian%d' % full, 'gaussian_nll_loss', [x, y, w], F.gaussian_nll_loss, full=full)
    f.listed('gaussian_rows', 'gaussian_nll_loss', [x, y, f.uniform(3, low=0.2, high=2)], lambda a, b, v: F.gaussian_nll_loss(a, b, v), terms=15)
    f.listed('gaussian_columns', 'gaussian_nll_loss', [x, y, f.uniform(3, 1, low=0.2, high=2)], lambda a, b, v: F.gaussian_nll_loss(a, b, v), terms=15)
    f.listed('gaussian_no_variance', 'gaussian_nll_loss', [exact([1.0, 2.0]), exact([1.0, 2.5]), exact([0.0, 0.125])],
             lambda a, b, v: F.gaussian_nll_loss(a, b, v, eps=0.25, reduction='none'), eps=0.25, reduction='none')

    sign = exact(2 * f.integers(0, 2, 3, 5).numpy() - 1)
    all_reductions('soft_margin', 'soft_margin_loss', [x, sign], lambda a, b, **k: F.soft_margin_loss(a, b.detach(), **k))
    f.listed('soft_margin_large', 'soft_margin_loss', [exact([30.0, -30.0, 0.0]), exact([1.0, 1.0, -1.0])],
             lambda a, b: F.soft_margin_loss(a, b.detach(), reduction='none'), reduction='none')
    all_reductions('hinge_embedding', 'hinge_embedding_loss', [x, sign], lambda a, b, **k: F.hinge_embedding_loss(a, b.detach(), **k), margin=0.5)
    f.listed('hinge_embedding_ties', 'hinge_embedding_loss', [exact([1.0, 1.0, 0.0, 3.0, float('inf')]), exact([-1.0, 1.0, 0.0, -1.0, -1.0])],
             lambda a, b: F.hinge_embedding_loss(a, b.detach(), reduction='none'), reduction='none')
    all_reductions('margin_ranking', 'margin_ranking_loss', [x, y, sign], F.margin_ranking_loss, margin=0.5)
    f.listed('margin_ranking_ties', 'margin_ranking_loss', [exact([1.0, 2.0, 2.0]), exact([1.0, 1.0, 3.0]), exact([1.0, -1.0, 1.0])],
             lambda a, b, t: F.margin_ranking_loss(a, b, t, reduction='none'), reduction='none')


def classes(f):
    x, target, w = f.uniform(4, 3, low=-2, high=2), f.integers(0, 3, 4), f.uniform(3, low=0.2, high=2)
    x[1, 0] = x[1, 1]
    for reduction in REDUCTIONS:
        for p in (1, 2):
            f.listed('multi_margin_p%d_%s' % (p, reduction), 'multi_margin_loss', [x, target, w],
                     lambda a, t, v: F.multi_margin_loss(a, t, p=p, margin=0.75, weight=v.detach(),
                                                         reduction=reduction),
                     p=p, margin=0.75, reduction=reduction, terms=12)
        several = torch.tensor([[0, 2, -1], [1, -1, 0], [-1, 0, 1], [2, 2, -1]])
        f.listed('multilabel_margin_' + reduction, 'multilabel_margin_loss', [x, several],
                 lambda a, t: F.multilabel_margin_loss(a, t, reduction=reduction), reduction=reduction, terms=12)
        hot = f.integers(0, 2, 4, 3)
        f.listed('multilabel_soft_' + reduction, 'multilabel_soft_margin_loss', [x * 64, hot, w],
                 lambda a, t, v: F.multilabel_soft_margin_loss(a, t.double(), v.detach(), reduction=reduction),
                 reduction=reduction, terms=12)
    f.listed('multi_margin_vector', 'multi_margin_loss', [x[0], target[0]], F.multi_margin_loss, terms=3)
    f.listed('multi_margin_ties', 'multi_margin_loss', [exact([[1.0, 2.0, 0.0]]), torch.tensor([1])], F.multi_margin_loss, terms=3)
    f.listed('multilabel_margin_vector', 'multilabel_margin_loss', [x[0], torch.tensor([1, 0, -1])], F.multilabel_margin_loss, terms=3)


def distances(f):
    a, b, c = f.uniform(4, 3), f.uniform(4, 3), f.uniform(4, 3)
    a[1] = 0
    b[2] = a[2]
    f.listed('cosine_rows', 'cosine_similarity', [a, b], F.cosine_similarity, terms=3)
    f.listed('cosine_columns', 'cosine_similarity', [a, b[0]], lambda x, y: F.cosine_similarity(x, y, dim=0, eps=0.5), dim=0, eps=0.5, terms=4)
    f.listed('cosine_last', 'cosine_similarity', [f.uniform(2, 3, 4), f.uniform(3, 1)], lambda x, y: F.cosine_similarity(x, y, dim=-1), dim=-1, terms=4)
    for p in (1.0, 2.0, 3.0, float('inf'), 0.0):
        f.listed('pairwise_p%g' % p, 'pairwise_distance', [a, b], lambda x, y: F.pairwise_distance(x, y, p=p),
                 gradient=p > 0, p=p, terms=3)
    f.listed('pairwise_broadcast', 'pairwise_distance', [a, b[0]], lambda x, y: F.pairwise_distance(x, y, eps=0.0, keepdim=True), eps=0.0, keepdim=True,
             terms=3)
    sign = torch.tensor([1, -1, 1, -1])
    for reduction in REDUCTIONS:
        f.listed('cosine_embedding_' + reduction, 'cosine_embedding_loss', [a, b, sign],
                 lambda x, y, t: F.cosine_embedding_loss(x, y, t, margin=0.25, reduction=reduction), margin=0.25,
                 reduction=reduction, terms=12)
        for swap in (False, True):
            f.listed('triplet_%s_swap%d' % (reduction, swap), 'triplet_margin_loss', [a, b, c],
                     lambda x, y, z: F.triplet_margin_loss(x, y, z, margin=0.75, p=1.5, swap=swap, reduction=reduction),
                     margin=0.75, p=1.5, swap=swap, reduction=reduction, terms=12)
    f.listed('cosine_embedding_vector', 'cosine_embedding_loss', [a[0], b[0], torch.tensor(-1)], F.cosine_embedding_loss, terms=3)
    f.listed('triplet_vector', 'triplet_margin_loss', [a[0], b[0], c[0]], F.triplet_margin_loss, terms=3)


def linear_layers(f):
    """The chunks are Koine's; the numbers are those without."""
    x, w, b, v = f.uniform(7, 3), f.uniform(5, 3), f.uniform(5), f.uniform(5, low=0.2, high=2)
    target, shares = torch.tensor([0, 4, 2, 1, 1, 3, 0]), exact(F.softmax(f.uniform(7, 5), 1))

    def case(name, inputs, chunk_size=0, **params):
        f.listed('linear_ce_' + name, 'linear_cross_entropy', inputs,
                 lambda x, w, t, b=None, v=None: F.linear_cross_entropy(
                     x, w, t, linear_bias=b, weight=None if v is None else v.detach(), **params),
                 terms=35, chunk_size=chunk_size, **params)

    for chunk_size in (0, 3, 1):
        for reduction in REDUCTIONS:
            case('%s_chunk%d' % (reduction, chunk_size), [x, w, target, b, v], chunk_size, reduction=reduction,
                 ignore_index=1, label_smoothing=0.125)
        case('plain_chunk%d' % chunk_size, [x, w, target], chunk_size)
        case('ignored_chunk%d' % chunk_size, [x, w, target.clamp(1, 1)], chunk_size, ignore_index=1)
    for reduction in REDUCTIONS:
        f.listed('linear_ce_shares_' + reduction, 'linear_cross_entropy', [x, w, target, b], lambda x, w, t, b: (
            F.linear_cross_entropy(x, w, F.one_hot(t, 5).double(), linear_bias=b, reduction=reduction)),
            terms=35, chunk_size=2, reduction=reduction)
    case('shares', [x, w, shares, None, v], 2, label_smoothing=0.25)
    case('auto', [x, w, target], -1)
    case('one_row', [x[0], w, torch.tensor(2)], 3)
    case('pixels', [x, f.uniform(5, 2, 3), target[:, None].repeat(1, 2), f.uniform(5, 2)], 2, reduction='none')
    case('empty_sum', [x[:0], w, target[:0]], 2, reduction='sum')


def ctc(f):
    """PyTorch's gradient is that of log_probs after a softmax: here exp(log_probs), of the steps that count, is
    subtracted again."""
    def case(name, steps, targets, input_lengths, target_lengths, classes=5, blank=0, reductions=REDUCTIONS, scale=1,
             zero_infinity=False):
        n = len(input_lengths)
        log_probs = exact(F.log_softmax(scale * f.uniform(steps, n, classes, low=-2, high=2), 2))
        lengths, sizes = torch.tensor(input_lengths), torch.tensor(target_lengths)

        def function(x, t, il, tl, reduction):
            loss = F.ctc_loss(x, t, il, tl, blank=blank, reduction='none', zero_infinity=zero_infinity)
            counts = (torch.arange(steps)[:, None] < il) & (loss.detach() != (0 if zero_infinity else float('inf')))
            surplus = (x.exp() * counts[:, :, None]).sum((0, 2))
            loss = loss - (surplus - surplus.detach())
            if reduction == 'mean':
                loss = loss / tl.clamp(min=1)
            return loss if reduction == 'none' else loss.sum() if reduction == 'sum' else loss.mean()

        for reduction in reductions:
            f.listed('ctc_%s_%s' % (name, reduction), 'ctc_loss', [log_probs, torch.tensor(targets), lengths, sizes],
                     lambda x, t, il, tl: function(x, t, il, tl, reduction), reduction=reduction, blank=blank,
                     zero_infinity=zero_infinity, terms=steps)

    case('padded', 6, [[1, 2, 3], [2, 2, 0], [4, 0, 0]], [6, 5, 3], [3, 2, 1])
    case('one_after_another', 6, [1, 2, 3, 2, 2, 4], [6, 5, 3], [3, 2, 1])
    case('blank', 5, [[0, 1], [3, 3]], [5, 4], [2, 2], blank=4)
    case('repeated', 7, [[1, 1, 1]], [7], [3], reductions=('none',))
    case('barely', 5, [[1, 1, 1], [1, 2, 1]], [5, 3], [3, 3], reductions=('none',))
    case('impossible', 4, [[1, 1, 1], [1, 2, 1]], [4, 4], [3, 3], reductions=('none',))
    case('impossible_zero', 4, [[1, 1, 1], [1, 2, 1]], [4, 4], [3, 3], zero_infinity=True)
    case('no_labels', 4, [[1, 1], [1, 2]], [4, 3], [0, 2])
    case('one_step', 1, [[2], [0]], [1, 1], [1, 0])
    case('sure', 8, [[1, 2, 3]], [8], [3], scale=40, reductions=('none',))
    case('long', 40, [[i % 4 + 1 for i in range(19)], [1 + i % 2 for i in range(19)]], [40, 39], [19, 17], reductions=('none', 'mean'))
    x = exact(F.log_softmax(f.uniform(5, 4), 1))
    f.listed('ctc_one_sample', 'ctc_loss', [x, torch.tensor([1, 3]), torch.tensor(5), torch.tensor(2)],
             lambda a, t, il, tl: F.ctc_loss(a, t, il, tl, reduction='none'), gradient=False, reduction='none', terms=5)


def make(folder):
    f = GoldenFile('losses', 21)
    elements(f)
    classes(f)
    distances(f)
    ctc(f)
    for reduction in ('none', 'mean'):
        f.listed('multilabel_soft_images_' + reduction, 'multilabel_soft_margin_loss', [f.uniform(2, 3, 2, 4), f.integers(0, 2, 2, 3, 2, 4)],
                 lambda a, t: F.multilabel_soft_margin_loss(a, t.double(), reduction=reduction), reduction=reduction, terms=48)
    linear_layers(f)
    f.save(folder)
