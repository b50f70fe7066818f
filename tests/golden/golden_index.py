"""Golden cases of gathers and scatters: repeated and negative indices, ties, NaN and infinities, empty indices."""
import torch
import torch.nn.functional as F

from golden_file import GoldenFile

NAN, INF = float('nan'), float('inf')


def special(f, *shape):
    x = f.distinct(*shape)
    x.view(-1)[0], x.view(-1)[2], x.view(-1)[5] = NAN, INF, -0.0
    return x


def gathers(f):
    repeated = torch.tensor([[0, 3, 3], [2, 0, 0]])
    f.listed('gather_repeated', 'gather', [special(f, 4, 3), repeated], lambda x, i: torch.gather(x, 0, i), dim=0)
    f.listed('gather_nothing', 'gather', [f.uniform(4, 3), torch.zeros(0, 3, dtype=torch.int64)], lambda x, i: torch.gather(x, 0, i), dim=0)
    f.listed('take_negative', 'take', [special(f, 4, 3), torch.tensor([[-1, 0], [-12, 11]])], torch.take)
    apart = [torch.tensor([[0], [-1]]), torch.tensor([1, -4, 1])]
    f.listed('index_apart', 'index', [special(f, 3, 2, 4)] + apart, lambda x, a, b: x[a, :, b], dims=(0, 2))
    f.listed('index_mask', 'index', [special(f, 3, 4), torch.tensor([True, False, True])], lambda x, m: x[m])
    f.listed('index_no_mask', 'index', [f.uniform(3, 4), torch.zeros(3, 4, dtype=torch.bool)], lambda x, m: x[m])
    f.listed('masked_fill', 'masked_fill', [special(f, 3, 4), torch.tensor([True, False, True, False])], lambda x, m: x.masked_fill(m, -INF), value=-INF)
    f.listed('embedding_padding', 'embedding', [f.uniform(4, 3), repeated], lambda w, i: F.embedding(i, w, padding_idx=3), padding_idx=3)
    f.listed('embedding_by_frequency', 'embedding', [f.uniform(4, 3), repeated], lambda w, i: F.embedding(i, w, scale_grad_by_freq=True), scale_grad_by_freq=True)


def scatters(f):
    repeated = torch.tensor([[0, 3, 3], [2, 0, 3], [0, 0, 3]])
    f.listed('scatter_add_repeated', 'scatter_add', [special(f, 4, 3), repeated, f.uniform(3, 4)[:, :3].contiguous()],
             lambda x, i, s: x.scatter_add(0, i, s), dim=0, terms=4)
    f.listed('scatter_once', 'scatter', [special(f, 4, 3), torch.tensor([[3, 0, 1]]), f.uniform(1, 3)], lambda x, i, s: x.scatter(0, i, s), dim=0)
    f.listed('index_add_alpha', 'index_add', [f.uniform(4, 3), torch.tensor([1, 1, 3, 1]), f.uniform(4, 3)],
             lambda x, i, s: x.index_add(0, i, s, alpha=-2), dim=0, alpha=-2.0, terms=4)
    f.listed('index_fill_negative', 'index_fill', [special(f, 4, 3), torch.tensor([-1, 0])], lambda x, i: x.index_fill(1, i, NAN), dim=1, value=NAN)
    f.listed('index_put_add', 'index_put', [f.uniform(3, 4), f.uniform(1), torch.tensor([0, -1, 0]), torch.tensor([2, 2, -2])],
             lambda x, v, a, b: x.index_put((a, b), v, True), accumulate=True, terms=3)
    tied = torch.tensor([[1., 0.], [0., NAN], [-0.0, 2.]]).double()
    ties = torch.tensor([[1., 1.], [0., 0.], [2., 2.]]).double()
    index = torch.tensor([[0, 0], [0, 1], [2, 2]])
    finite = tied.nan_to_num(3)  # next to a factor 0, PyTorch's gradient of a NaN is NaN, not the product of the others
    for reduce in ('sum', 'prod', 'mean', 'amax', 'amin'):
        for own in (True, False):
            f.listed('%s_%s' % (reduce, 'with' if own else 'without'), 'scatter_reduce',
                     [finite if reduce == 'prod' else tied, index, ties],
                     lambda x, i, s: x.scatter_reduce(0, i, s, reduce, include_self=own), dim=0, reduce=reduce,
                     include_self=own, terms=3)


def make(folder):
    f = GoldenFile('index', 71)
    gathers(f)
    scatters(f)
    f.save(folder)
