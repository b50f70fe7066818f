"""Golden cases of padding, patches, resizing, sampling, and of the poolings beside max and average."""
import numpy as np
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, exact

NAN = float('nan')
INF = float('inf')


def padding(f):
    def pad(name, x, pads, mode='constant', value=None):
        x = f.uniform(*x) if isinstance(x, tuple) else x
        given = {} if value is None else {'value': value}
        f.listed('pad_' + name, 'pad', [x], lambda x: F.pad(x, pads, mode, value), pad=pads, mode=mode, **given)

    pad('constant', (2, 3, 4), (1, 2, 0, 3), value=1.5)
    pad('constant_nan', (2, 3), (1, 0), value=NAN)
    pad('constant_infinite', (2, 3), (0, 1), value=-INF)
    pad('crop', (2, 4, 5), (-1, 2, 3, -2), value=-0.5)
    pad('crop_to_nothing', (2, 3), (-1, -2))
    pad('of_nothing', torch.zeros(0, 2, dtype=torch.float64), (1, 1, 2, 0), value=3.0)
    pad('four_dimensions', (2, 1, 2, 3), (1, 0, 0, 1, 2, 0, 0, 1))
    pad('integers', f.integers(-2**40, 2**40, 2, 3), (1, 2), value=2**62 + 1)
    pad('integers_circular', f.integers(-2**40, 2**40, 1, 2, 3), (1, 2), mode='circular')
    pad('reflect_limit', (1, 2, 4), (3, 3), mode='reflect')
    pad('reflect_2d', (2, 1, 3, 4), (3, 1, 0, 2), mode='reflect')
    pad('reflect_3d', (1, 2, 3, 2, 4), (3, 0, 1, 1, 2, 1), mode='reflect')
    pad('reflect_crop', (1, 1, 5, 4), (-1, 2, 3, -2), mode='reflect')
    pad('reflect_special', exact([[[NAN, INF, -0.0, 1]]]), (2, 3), mode='reflect')
    pad('replicate_1', (2, 1, 1), (3, 2), mode='replicate')
    pad('replicate_2d', (1, 2, 3, 2), (0, 5, 4, 1), mode='replicate')
    pad('replicate_3d', (1, 2, 2, 3, 2), (1, 2, 0, 3, 2, 0), mode='replicate')
    pad('replicate_crop', (1, 1, 4, 5), (-2, 3, 1, -1), mode='replicate')
    pad('circular_limit', (1, 2, 3), (3, 3), mode='circular')
    pad('circular_2d', (2, 1, 3, 4), (1, 4, 3, 0), mode='circular')
    pad('circular_3d', (1, 1, 2, 3, 2), (1, 2, 3, 0, 2, 1), mode='circular')
    pad('circular_crop', (1, 1, 4, 5), (-2, 3, 1, -1), mode='circular')


def patches(f):
    def both(name, size, channels, n=2, **params):
        x = f.uniform(n, channels, *size) if n else f.uniform(channels, *size)
        f.listed('unfold_' + name, 'unfold', [x], lambda x: F.unfold(x, **params), **params)
        columns = F.unfold(x, **params)
        f.listed('fold_' + name, 'fold', [f.uniform(*columns.shape)], lambda x: F.fold(x, size, **params),
                 output_size=size, terms=16, **params)

    both('2', (3, 4), 2, kernel_size=2)
    both('all', (7, 8), 3, kernel_size=(2, 3), dilation=(2, 1), padding=(1, 2), stride=(1, 2))
    both('without_batch', (4, 5), 2, n=0, kernel_size=3, padding=1)
    both('gaps', (7, 6), 1, kernel_size=2, stride=3)
    both('image', (3, 2), 2, kernel_size=(3, 2))
    both('padding_only', (1, 1), 1, kernel_size=2, padding=3, stride=2)


def resizing(f):
    def resize(name, x, mode, sizes=None, factor=None, **params):
        x = f.uniform(*x) if isinstance(x, tuple) else x
        given = dict(sizes=sizes) if sizes else \
            dict(scale_factor=factor) if isinstance(factor, float) else dict(scale_factors=factor)
        align = {'align_corners': params['align_corners']} if 'align_corners' in params else {}
        gradient = params.pop('gradient', True)
        rest = {k: v for k, v in params.items() if k != 'align_corners'}
        f.listed('%s_%s' % (mode, name), 'interpolate', [x],
                 lambda x: F.interpolate(x, sizes, factor, mode,
                                         recompute_scale_factor=rest.get('recompute_scale_factor'),
                                         antialias=rest.get('antialias', False), **align),
                 gradient, mode=mode, terms=16, **given, **params)

    for mode in ('nearest', 'nearest-exact', 'area'):
        resize('1d', (2, 2, 5), mode, (8,))
        resize('1d_down', (1, 2, 11), mode, (4,))
        resize('2d', (1, 2, 3, 7), mode, (7, 3))
        resize('2d_double', (1, 2, 3, 2), mode, factor=2.0)
        resize('3d', (1, 1, 3, 2, 5), mode, (4, 5, 2))
        resize('to_1', (1, 1, 4, 3), mode, (1, 1))
    resize('factors', (1, 2, 5, 7), 'nearest', factor=(1.3, 0.6))
    resize('factors', (1, 2, 5, 7), 'nearest-exact', factor=(1.3, 0.6))
    resize('special', exact([[[NAN, INF, -INF, -0.0]]]), 'nearest', (7,))
    for align in (False, True):
        end = '_aligned' if align else ''
        resize('up' + end, (2, 2, 5), 'linear', (12,), align_corners=align)
        resize('down' + end, (1, 2, 11), 'linear', (4,), align_corners=align)
        resize('from_1' + end, (1, 2, 1), 'linear', (4,), align_corners=align)
        resize('to_1' + end, (1, 2, 5), 'linear', (1,), align_corners=align)
        resize('both' + end, (1, 2, 3, 7), 'bilinear', (7, 3), align_corners=align)
        resize('double' + end, (1, 2, 3, 4), 'bilinear', factor=2.0, align_corners=align)
        resize('both' + end, (1, 2, 3, 7), 'bicubic', (7, 3), align_corners=align)
        resize('double' + end, (1, 1, 2, 5), 'bicubic', factor=2.0, align_corners=align)
        resize('1x1' + end, (1, 1, 1, 1), 'bicubic', (2, 3), align_corners=align)
        resize('all' + end, (1, 2, 3, 2, 5), 'trilinear', (4, 5, 2), align_corners=align)
        resize('smooth_down' + end, (1, 1, 13, 9), 'bilinear', (4, 5), align_corners=align, antialias=True)
        resize('smooth_up' + end, (1, 1, 3, 4), 'bilinear', (5, 7), align_corners=align, antialias=True)
        resize('smooth_down' + end, (1, 1, 13, 9), 'bicubic', (4, 5), align_corners=align, antialias=True)
        resize('smooth_up' + end, (1, 1, 3, 4), 'bicubic', (5, 7), align_corners=align, antialias=True)
    resize('factor', (1, 2, 5, 7), 'bilinear', factor=(1.3, 0.6))
    resize('factor', (1, 2, 5, 7), 'bicubic', factor=(1.3, 0.6))
    resize('same_size', (1, 2, 3, 3), 'bilinear', factor=(1.2, 1.0))
    resize('same_size', (1, 2, 3, 3), 'bicubic', factor=(1.2, 1.0), gradient=False)  # PyTorch's is that of a copy
    resize('recomputed', (1, 2, 5, 7), 'bilinear', factor=(1.3, 0.6), recompute_scale_factor=True)
    resize('special', exact([[[[NAN, 1, 2, 5], [0, 1, -0.0, 3]]]]), 'bilinear', (2, 7))


def sampling(f):
    def sample(name, x, grid, **params):
        x = f.uniform(*x) if isinstance(x, tuple) else x
        f.listed('grid_' + name, 'grid_sample', [x, grid],
                 lambda x, grid: F.grid_sample(x, grid, **dict({'align_corners': False}, **params)), terms=16, **params)

    # Exactly on pixels, on borders, half-way, outside; all are exact in float32.
    edges = exact(np.array([(-1, -1), (1, 1), (-0.75, 0.25), (0, 0), (1.25, -1.25), (-3, 0.5), (0.5, 5),
                            (0.75, -0.75), (2, 2)]).reshape(1, 3, 3, 2))
    places = f.uniform(2, 3, 4, 2, low=-1.3, high=1.3)
    far = f.uniform(2, 3, 4, 2, low=-4, high=4)
    for padding in ('zeros', 'border', 'reflection'):
        for align in (False, True):
            end = padding + ('_aligned' if align else '')
            for mode in ('bilinear', 'nearest', 'bicubic'):
                sample('%s_%s' % (mode, end), (2, 2, 4, 5), far if padding == 'reflection' else places, mode=mode,
                       padding_mode=padding, align_corners=align)
            sample('volumes_' + end, (1, 2, 3, 4, 2), f.uniform(1, 2, 2, 3, 3, low=-1.7, high=1.7),
                   padding_mode=padding, align_corners=align)
        sample('nearest_volumes_' + padding, (1, 2, 3, 4, 2), f.uniform(1, 2, 2, 3, 3, low=-1.7, high=1.7),
               mode='nearest', padding_mode=padding)
        sample('edges_' + padding, (1, 2, 4, 4), edges, padding_mode=padding)
        sample('edges_bicubic_' + padding, (1, 2, 4, 4), edges, mode='bicubic', padding_mode=padding)
        sample('of_one_' + padding, (1, 1, 1, 1), edges, padding_mode=padding, align_corners=padding == 'reflection')
    special = exact(np.array([(NAN, 0), (0, NAN), (INF, 0), (-INF, 0.5), (1e30, 0), (0.5, -1e30)]).reshape(1, 2, 3, 2))
    for padding in ('zeros', 'border'):
        f.listed('grid_special_' + padding, 'grid_sample', [f.uniform(1, 2, 2, 2), special],
                 lambda x, grid: F.grid_sample(x, grid, padding_mode=padding, align_corners=False), gradient=False,
                 padding_mode=padding)
    sample('of_special', exact([[[[NAN, 1], [INF, 2]]]]), exact(np.array([(0.9, 0.9), (0.5, -0.5), (0.5, 3)]).reshape(1, 1, 3, 2)))
    for name, shape, size in (('2d', (2, 2, 3), (2, 3, 4, 5)), ('2d_1', (1, 2, 3), (1, 1, 1, 3)),
                              ('3d', (2, 3, 4), (2, 1, 2, 3, 4))):
        for align in (False, True):
            f.case('affine_%s%s' % (name, '_aligned' if align else ''), 'affine_grid', [f.uniform(*shape)],
                   lambda t: F.affine_grid(t, size, align_corners=align), size=size, align_corners=align, terms=16)


def shuffles(f):
    f.case('pixel_shuffle', 'pixel_shuffle', [f.uniform(2, 8, 3, 2)], lambda x: F.pixel_shuffle(x, 2), factor=2)
    f.case('pixel_shuffle_3', 'pixel_shuffle', [f.uniform(18, 1, 2)], lambda x: F.pixel_shuffle(x, 3), factor=3)
    f.case('pixel_unshuffle', 'pixel_unshuffle', [f.uniform(2, 2, 6, 4)], lambda x: F.pixel_unshuffle(x, 2), factor=2)
    f.case('channel_shuffle', 'channel_shuffle', [f.uniform(2, 6, 2, 3)], lambda x: F.channel_shuffle(x, 3), factor=3)
    f.case('bilinear', 'bilinear', [f.uniform(2, 4, 3), f.uniform(2, 4, 5), f.uniform(6, 3, 5), f.uniform(6)], F.bilinear, terms=16)
    f.case('bilinear_no_bias', 'bilinear', [f.uniform(4, 3), f.uniform(4, 5), f.uniform(2, 3, 5)], F.bilinear, terms=16)


def poolings(f):
    def unpool(name, dims, x, indices, **params):
        given = dict(params)
        if 'output_sizes' in given:
            given['output_size'] = given.pop('output_sizes')
        x = f.uniform(*x) if isinstance(x, tuple) else x
        f.listed(name, 'max_unpool%dd' % dims, [x, indices],
                 lambda x, i: getattr(F, 'max_unpool%dd' % dims)(x, i, **given), **params)

    unpool('unpool1', 1, (2, 2, 3), F.max_pool1d(f.distinct(2, 2, 6), 2, return_indices=True)[1], kernel_size=2)
    unpool('unpool1_sized', 1, (1, 2, 3), F.max_pool1d(f.distinct(1, 2, 7), 2, return_indices=True)[1], kernel_size=2, output_sizes=(7,))
    unpool('unpool2', 2, (2, 2, 2, 3), F.max_pool2d(f.distinct(2, 2, 4, 6), 2, return_indices=True)[1], kernel_size=2)
    unpool('unpool2_overlap', 2, (1, 2, 4, 4), F.max_pool2d(f.distinct(1, 2, 6, 6), 3, 1, return_indices=True)[1], kernel_size=3, stride=1)
    unpool('unpool2_padded', 2, (1, 2, 3, 4), F.max_pool2d(f.distinct(1, 2, 5, 7), 3, 2, 1, return_indices=True)[1], kernel_size=3, stride=2, padding=1)
    unpool('unpool2_special', 2, exact([[[[NAN, INF], [-0.0, 1]]]]), torch.tensor([[[[3, 2], [0, 15]]]]), kernel_size=2)
    unpool('unpool3', 3, (1, 2, 2, 1, 2), F.max_pool3d(f.distinct(1, 2, 4, 2, 4), 2, return_indices=True)[1], kernel_size=2)

    for name, op, x, p, params in (
            ('lp1', 'lp_pool1d', (2, 2, 9), 2, dict(kernel_size=3, stride=2)),
            ('lp1_ceil', 'lp_pool1d', (1, 2, 8), 2, dict(kernel_size=3, stride=2, ceil_mode=True)),
            ('lp2_3', 'lp_pool2d', (1, 2, 4, 6), 3, dict(kernel_size=(2, 3))),
            ('lp2_1', 'lp_pool2d', (1, 2, 4, 4), 1, dict(kernel_size=2)),
            ('lp3', 'lp_pool3d', (1, 2, 4, 3, 4), 2, dict(kernel_size=2))):
        f.case(name, op, [f.uniform(*x, low=0.25, high=2)], lambda x: getattr(F, op)(x, float(p), **params),
               norm_type=p, terms=16, **params)
    f.case('lp2_negative', 'lp_pool2d', [f.uniform(1, 2, 4, 4)], lambda x: F.lp_pool2d(x, 2.0, 2), norm_type=2, kernel_size=2, terms=16)
    f.case('lp2_nan', 'lp_pool2d', [exact([[[[NAN, 1, 2, 3], [1, 1, INF, 1]]]])], lambda x: F.lp_pool2d(x, 2.0, 2), gradient=False, norm_type=2, kernel_size=2)

    def fractional(name, x, kernel_size, output_size):
        dims = len(kernel_size)
        x = f.distinct(*x) if isinstance(x, tuple) else x
        function = F.fractional_max_pool2d if dims == 2 else F.fractional_max_pool3d
        samples = f.uniform(*x.shape[:2], dims, low=0, high=1) if x.dim() == dims + 2 else \
            f.uniform(1, x.shape[0], dims, low=0, high=1)
        f.listed(name, 'fractional_max_pool%dd' % dims, [x, samples],
                 lambda x, s: function(x, kernel_size, output_size, return_indices=True, _random_samples=s.detach()),
                 kernel_size=kernel_size, output_size=output_size)

    fractional('fractional2', (2, 2, 9, 7), (2, 3), (5, 4))
    fractional('fractional2_one', (1, 2, 5, 4), (3, 4), (1, 1))
    fractional('fractional2_all', (1, 1, 4, 5), (1, 1), (4, 5))
    fractional('fractional2_ties', exact(f.random.randint(0, 2, (1, 2, 7, 7))), (2, 2), (4, 5))
    nan = f.distinct(1, 1, 6, 6)
    nan[0, 0, 2, 3] = nan[0, 0, 4, 4] = NAN
    fractional('fractional2_nan', nan, (2, 2), (4, 4))
    fractional('fractional3', (1, 2, 6, 5, 7), (2, 2, 3), (3, 3, 4))
    fractional('fractional3_without_batch', (2, 6, 5, 7), (2, 1, 3), (4, 4, 3))

    for op, size, given in (('adaptive_avg_pool2d', (-1, 3), (None, 3)), ('adaptive_max_pool2d', (2, -1), (2, None)),
                            ('adaptive_avg_pool3d', (-1, 2, -1), (None, 2, None))):
        x = f.distinct(1, 2, 4, 5, 3) if op.endswith('3d') else f.distinct(1, 2, 4, 5)
        f.listed(op + '_keeping', op, [x], lambda x: getattr(F, op)(x, given), output_size=size, terms=16)


def make(folder):
    f = GoldenFile('vision', 61)
    padding(f)
    patches(f)
    resizing(f)
    sampling(f)
    shuffles(f)
    f.save(folder)
    f = GoldenFile('pool_more', 62)
    poolings(f)
    f.save(folder)
