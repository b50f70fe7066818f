"""Golden cases of group, instance, RMS and local response normalisation, and of vectors of norm 1."""
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, exact


def make(folder):
    f = GoldenFile('norms', 23)

    def group(name, shape, groups, affine=3, **params):
        weight = f.uniform(shape[1], low=0.3, high=2) if affine & 1 else None
        bias = f.uniform(shape[1]) if affine & 2 else None
        f.listed('group_' + name, 'group_norm', [f.uniform(*shape, low=-2, high=3), weight, bias],
                 lambda x, *w: F.group_norm(x, groups, *([v for v in (w + (None, None))[:2]]), **params)
                 if affine == 3 else
                 F.group_norm(x, groups, weight=w[0] if affine & 1 else None, bias=w[1] if affine & 2 else None,
                              **params),
                 num_groups=groups, terms=2 * shape[0] * 64, **params)

    group('images', (2, 6, 3, 5), 3)
    group('one_group', (2, 4, 7), 1)
    group('plain', (3, 4, 5), 2, affine=0)
    group('weight', (3, 4, 17), 2, affine=1)
    group('bias', (3, 4, 2), 2, affine=2)
    group('rows', (3, 12), 4)
    group('eps', (2, 4, 3), 2, eps=0.25)
    group('volume', (1, 2, 2, 3, 3), 2)
    group('wide', (2, 4, 40), 2)

    def instance(name, shape, running=None, stats=True, affine=True, **params):
        c = shape[1]
        inputs = [f.uniform(*shape, low=-2, high=3), f.uniform(c, low=0.3, high=2) if affine else None,
                  f.uniform(c) if affine else None, f.uniform(c) if running else None,
                  f.uniform(c, low=0.2, high=2) if running else None]
        f.listed('instance_' + name, 'instance_norm', inputs,
                 lambda x, w, b, m, v: F.instance_norm(x, m if m is None else m.detach().clone(),
                                                       v if v is None else v.detach().clone(), w, b,
                                                       use_input_stats=stats, **params),
                 use_input_stats=stats, terms=64, **params)

    instance('images', (2, 3, 4, 5))
    instance('plain', (2, 3, 7), affine=False)
    instance('running', (2, 3, 4), running=True, stats=False)
    instance('eps', (2, 3, 6), eps=0.25)

    def rms(name, shape, normalized, affine=True, **params):
        f.listed('rms_' + name, 'rms_norm',
                 [f.uniform(*shape, low=-2, high=3), f.uniform(*normalized, low=0.3, high=2) if affine else None],
                 lambda x, w: F.rms_norm(x, normalized, w, **params), shape=normalized, terms=2 * shape[0] * 35,
                 **params)

    rms('matrix', (4, 7), (7,), eps=1e-5)
    rms('two_dims', (3, 2, 5), (2, 5), eps=1e-6)
    rms('plain', (3, 35), (35,), affine=False, eps=1e-5)
    f.listed('rms_zero', 'rms_norm', [torch.zeros(2, 3).double()], lambda x: F.rms_norm(x, (3,), None, 1e-5), shape=3, eps=1e-5)

    for size in (1, 2, 3, 5):
        f.listed('response_%d' % size, 'local_response_norm', [f.uniform(2, 4, 3, low=-2, high=2)],
                 lambda x: F.local_response_norm(x, size, alpha=0.5, k=0.75), size=size, alpha=0.5, k=0.75, terms=size)
    f.listed('response_images', 'local_response_norm', [f.uniform(1, 6, 2, 3, low=-20, high=20)], lambda x: F.local_response_norm(x, 5), size=5, terms=5)

    x = f.uniform(3, 4)
    x[1] = 0
    for p in (1.0, 2.0, 3.0, float('inf')):
        f.listed('normalize_p%g' % p, 'normalize', [x], lambda a: F.normalize(a, p=p), gradient=p == 2, p=p, terms=4)
    f.listed('normalize_columns', 'normalize', [x], lambda a: F.normalize(a, dim=0, eps=0.5), dim=0, eps=0.5, terms=4)
    f.listed('softmin', 'softmin', [f.uniform(3, 4, low=-50, high=50)], lambda a: F.softmin(a, 1), dim=1, terms=4)
    f.save(folder)
