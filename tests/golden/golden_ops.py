"""Golden cases of the operations, one file per family."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, exact

NAN = float('nan')
INF = float('inf')


def convolution(folder):
    f = GoldenFile('conv2d', 1)

    def conv(name, x, w, bias=True, **params):
        inputs = [f.uniform(*x), f.uniform(*w), f.uniform(w[0]) if bias else None]
        reduction = w[1] * w[2] * w[3]
        f.case(name, 'conv2d', inputs, lambda x, w, b: F.conv2d(x, w, b, **params), reduction=reduction, **params)

    conv('plain', (2, 3, 7, 6), (4, 3, 3, 3))
    conv('no_bias', (2, 3, 7, 6), (4, 3, 3, 3), bias=False)
    conv('kernel_1x1', (2, 5, 4, 3), (3, 5, 1, 1))
    conv('kernel_is_image', (3, 2, 4, 5), (3, 2, 4, 5))
    conv('kernel_2x4', (1, 2, 5, 7), (3, 2, 2, 4))
    conv('stride_2', (2, 3, 7, 8), (4, 3, 3, 3), stride=2)
    conv('stride_3x2', (1, 2, 9, 8), (3, 2, 3, 2), stride=(3, 2))
    conv('stride_beyond_kernel', (1, 2, 9, 9), (2, 2, 2, 2), stride=4)
    conv('padding_1', (2, 3, 5, 6), (4, 3, 3, 3), padding=1)
    conv('padding_2x1', (1, 2, 4, 5), (3, 2, 3, 3), padding=(2, 1))
    conv('padding_beyond_kernel', (1, 1, 3, 3), (2, 1, 2, 2), padding=3)
    conv('dilation_2', (1, 2, 8, 9), (3, 2, 3, 3), dilation=2)
    conv('dilation_1x3', (1, 2, 6, 9), (3, 2, 2, 3), dilation=(1, 3))
    conv('groups_2', (2, 4, 6, 5), (6, 2, 3, 3), groups=2)
    conv('depthwise', (2, 4, 6, 5), (4, 1, 3, 3), groups=4, padding=1)
    conv('depthwise_multiplier_2', (1, 3, 6, 5), (6, 1, 3, 3), groups=3, stride=2, padding=1)
    conv('same_odd', (1, 2, 5, 6), (3, 2, 3, 5), padding='same')
    conv('same_even', (1, 2, 5, 6), (3, 2, 2, 4), padding='same')
    conv('same_dilated', (1, 2, 7, 6), (3, 2, 4, 3), padding='same', dilation=(1, 2))
    conv('all_at_once', (2, 4, 11, 10), (6, 2, 3, 2), stride=(2, 3), padding=(2, 1), dilation=(2, 1), groups=2)
    conv('many_channels', (1, 33, 5, 5), (17, 33, 3, 3), padding=1)
    f.save(folder)


def pooling(folder):
    f = GoldenFile('pool2d', 2)

    def pool(name, kind, x, **params):
        function = {'max_pool2d': F.max_pool2d, 'avg_pool2d': F.avg_pool2d}[kind]
        x = x if isinstance(x, torch.Tensor) else f.distinct(*x)
        f.case(name, kind, [x], lambda x: function(x, **params), **params)

    pool('max_2', 'max_pool2d', (2, 3, 6, 8), kernel_size=2)
    pool('max_2_ragged', 'max_pool2d', (2, 2, 7, 9), kernel_size=2)
    pool('max_3_stride_2_padding_1', 'max_pool2d', (2, 2, 7, 8), kernel_size=3, stride=2, padding=1)
    pool('max_ceil', 'max_pool2d', (1, 2, 8, 7), kernel_size=3, stride=2, ceil_mode=True)
    pool('max_ceil_padding', 'max_pool2d', (1, 2, 6, 6), kernel_size=2, stride=3, padding=1, ceil_mode=True)
    pool('max_dilation', 'max_pool2d', (1, 2, 8, 9), kernel_size=3, stride=1, dilation=2)
    pool('max_2d_sizes', 'max_pool2d', (1, 2, 9, 8), kernel_size=(3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2))
    pool('max_overlap', 'max_pool2d', (1, 2, 5, 5), kernel_size=3, stride=1)
    ties = exact(f.random.randint(0, 3, (2, 2, 7, 7)))
    pool('max_ties', 'max_pool2d', ties, kernel_size=3, stride=2, padding=1)
    nan = f.distinct(1, 2, 6, 6)
    nan[0, 0, 1, 1] = NAN
    nan[0, 1, 5, 2] = NAN
    pool('max_nan', 'max_pool2d', nan, kernel_size=2)
    low = f.distinct(1, 1, 4, 4)
    low[0, 0, :2, :2] = -INF
    pool('max_minus_infinity', 'max_pool2d', low, kernel_size=2)
    pool('avg_2', 'avg_pool2d', (2, 3, 6, 8), kernel_size=2)
    pool('avg_3_stride_2_padding_1', 'avg_pool2d', (2, 2, 7, 8), kernel_size=3, stride=2, padding=1)
    pool('avg_without_pad', 'avg_pool2d', (2, 2, 7, 8), kernel_size=3, stride=2, padding=1, count_include_pad=False)
    pool('avg_ceil', 'avg_pool2d', (1, 2, 8, 7), kernel_size=3, stride=2, ceil_mode=True)
    pool('avg_ceil_padding', 'avg_pool2d', (1, 2, 6, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True)
    pool('avg_ceil_without_pad', 'avg_pool2d', (1, 2, 6, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)
    pool('avg_divisor', 'avg_pool2d', (1, 2, 6, 5), kernel_size=(2, 3), stride=(2, 1), padding=(1, 1), divisor_override=5)
    for kind, function in (('adaptive_max_pool2d', F.adaptive_max_pool2d),
                           ('adaptive_avg_pool2d', F.adaptive_avg_pool2d)):
        for shape, size in (((2, 3, 6, 5), (1, 1)), ((1, 2, 7, 9), (3, 5)), ((1, 2, 4, 5), (7, 3)),
                            ((2, 1, 6, 6), (3, 3)), ((1, 2, 5, 5), (5, 5))):
            name = '%s_%dx%d_to_%dx%d' % (kind[:12], shape[2], shape[3], *size)
            f.case(name, kind, [f.distinct(*shape)], lambda x: function(x, size), output_size=size)
    f.case('adaptive_max_ties', 'adaptive_max_pool2d', [ties], lambda x: F.adaptive_max_pool2d(x, (3, 3)), output_size=(3, 3))
    f.case('adaptive_max_nan', 'adaptive_max_pool2d', [nan], lambda x: F.adaptive_max_pool2d(x, (1, 2)), output_size=(1, 2))
    wide = exact(f.random.randint(0, 4, (3, 2, 9, 53)))  # windows of 5 x 27, with ties
    wide[1, 0, 2, 20] = wide[1, 0, 3, 4] = wide[1, 1, 8, 52] = NAN
    wide[2, 0, :5, :27] = -INF
    f.case('adaptive_max_wide', 'adaptive_max_pool2d', [wide], lambda x: F.adaptive_max_pool2d(x, 2), output_size=(2, 2))
    f.case('adaptive_avg_wide', 'adaptive_avg_pool2d', [f.uniform(2, 2, 9, 53)], lambda x: F.adaptive_avg_pool2d(x, 2), output_size=(2, 2))
    f.save(folder)


def convolutions(folder):
    """Signals and volumes, also transposed. padding_after: additional trailing zeros, with pad in PyTorch."""
    f = GoldenFile('conv', 31)

    def conv(name, op, x, w, bias=True, padding_after=None, **params):
        transposed = op.startswith('conv_transpose')
        outputs = w[1] * params.get('groups', 1) if transposed else w[0]
        inputs = [f.uniform(*x), f.uniform(*w), f.uniform(outputs) if bias else None]
        stored = dict(params) if padding_after is None else dict(params, padding_after=padding_after)

        def compute(x, w, b):
            given = dict(params)
            if padding_after is not None:
                before = given.pop('padding')
                x = F.pad(x, [n for pair in zip(before[::-1], padding_after[::-1]) for n in pair])
            return getattr(F, op)(x, w, b, **given)

        f.case(name, op, inputs, compute, reduction=w[1] * int(np.prod(w[2:])), **stored)

    conv('1d', 'conv1d', (2, 3, 9), (4, 3, 3))
    conv('1d_without_batch', 'conv1d', (3, 9), (4, 3, 2), bias=False)
    conv('1d_all', 'conv1d', (2, 4, 17), (6, 2, 3), stride=2, padding=3, dilation=4, groups=2)
    conv('1d_same', 'conv1d', (2, 3, 8), (4, 3, 4), padding='same', dilation=2)
    conv('1d_depthwise', 'conv1d', (2, 5, 11), (10, 1, 3), padding=1, groups=5)
    conv('1d_sides', 'conv1d', (2, 3, 9), (4, 3, 4), padding=(2,), padding_after=(1,))
    conv('2d_sides', 'conv2d', (2, 3, 7, 6), (4, 3, 3, 3), stride=2, padding=(1, 0), padding_after=(0, 3))
    conv('3d', 'conv3d', (2, 3, 4, 5, 6), (4, 3, 3, 2, 3))
    conv('3d_without_batch', 'conv3d', (2, 3, 4, 5), (3, 2, 2, 2, 2), bias=False)
    conv('3d_all', 'conv3d', (2, 4, 7, 8, 6), (6, 2, 2, 3, 2), stride=(2, 3, 1), padding=(1, 2, 0), dilation=(3, 1, 2), groups=2)
    conv('3d_same', 'conv3d', (1, 2, 4, 5, 3), (3, 2, 2, 3, 4), padding='same')
    conv('3d_1x1x1', 'conv3d', (2, 5, 2, 3, 4), (3, 5, 1, 1, 1))
    conv('3d_depthwise', 'conv3d', (1, 3, 4, 5, 3), (6, 1, 2, 3, 2), padding=1, groups=3)
    conv('3d_sides', 'conv3d', (1, 2, 4, 5, 3), (3, 2, 3, 2, 2), padding=(1, 0, 2), padding_after=(0, 1, 1))
    conv('transpose1d', 'conv_transpose1d', (2, 3, 7), (3, 4, 3))
    conv('transpose1d_without_batch', 'conv_transpose1d', (3, 7), (3, 4, 3), bias=False, stride=2)
    conv('transpose1d_all', 'conv_transpose1d', (2, 4, 6), (4, 3, 3), stride=3, padding=2, output_padding=1, dilation=2, groups=2)
    conv('transpose2d', 'conv_transpose2d', (2, 3, 4, 5), (3, 4, 3, 2))
    conv('transpose2d_stride_2', 'conv_transpose2d', (2, 3, 4, 5), (3, 4, 4, 4), stride=2, padding=1)
    conv('transpose2d_output_padding', 'conv_transpose2d', (1, 3, 4, 5), (3, 2, 3, 3), stride=(2, 3), padding=1, output_padding=(1, 2))
    conv('transpose2d_padding_beyond_stride', 'conv_transpose2d', (1, 2, 3, 4), (2, 3, 2, 3), output_padding=2, dilation=3)
    conv('transpose2d_all', 'conv_transpose2d', (2, 4, 5, 4), (4, 3, 3, 2), stride=(2, 3), padding=(2, 1), output_padding=(1, 0), dilation=(2, 1), groups=2)
    conv('transpose2d_depthwise', 'conv_transpose2d', (2, 5, 4, 5), (5, 1, 3, 3), stride=2, padding=1, groups=5)
    conv('transpose3d', 'conv_transpose3d', (2, 3, 2, 3, 4), (3, 4, 2, 3, 2))
    conv('transpose3d_all', 'conv_transpose3d', (1, 4, 3, 2, 4), (4, 3, 2, 3, 2), stride=(2, 1, 3), padding=(1, 0, 1), output_padding=(1, 0, 2), dilation=(1, 2, 1), groups=2)
    f.save(folder)


def poolings(folder):
    """Signals and volumes, with indices of the maxima."""
    f = GoldenFile('pool', 32)

    def pool(name, op, x, **params):
        x = x if isinstance(x, torch.Tensor) else f.distinct(*x)
        extra = {'return_indices': True} if op.endswith('_with_indices') else {}
        function = getattr(F, op[:-len('_with_indices')] if extra else op)
        f.case(name, op, [x], lambda x: function(x, **params, **extra), **params)

    for dims, shape in ((1, (2, 2, 11)), (2, (1, 2, 7, 8)), (3, (1, 2, 4, 5, 6))):
        size = (3, 2, 4)[:dims]
        for kind in ('max_pool%dd', 'max_pool%dd_with_indices', 'avg_pool%dd'):
            op = kind % dims
            pool(op, op, shape, kernel_size=2)
            pool(op + '_overlap', op, shape, kernel_size=3, stride=2, padding=1)
            pool(op + '_ceil', op, shape, kernel_size=3, stride=2, padding=1, ceil_mode=True)
            pool(op + '_sizes', op, shape, kernel_size=(2, 3, 2)[:dims], stride=(1, 2, 3)[:dims],
                 padding=(1, 0, 1)[:dims])
            if 'max' in kind:
                pool(op + '_dilation', op, shape, kernel_size=2, stride=1, padding=1, dilation=(3, 2, 2)[:dims])
            else:
                pool(op + '_without_pad', op, shape, kernel_size=3, stride=2, padding=1, ceil_mode=True,
                     count_include_pad=False)
        pool('adaptive_max_%dd' % dims, 'adaptive_max_pool%dd_with_indices' % dims, shape, output_size=size)
        pool('adaptive_max_%dd_to_1' % dims, 'adaptive_max_pool%dd_with_indices' % dims, shape, output_size=(1,) * dims)
        pool('adaptive_avg_%dd' % dims, 'adaptive_avg_pool%dd' % dims, shape, output_size=size)
        pool('adaptive_avg_%dd_to_1' % dims, 'adaptive_avg_pool%dd' % dims, shape, output_size=(1,) * dims)
    pool('avg_3d_divisor', 'avg_pool3d', (1, 2, 4, 5, 6), kernel_size=(2, 3, 2), stride=2, divisor_override=5)
    ties = exact(f.random.randint(0, 3, (2, 2, 4, 5, 6)))
    pool('max_3d_ties', 'max_pool3d_with_indices', ties, kernel_size=3, stride=2, padding=1)
    pool('adaptive_max_3d_ties', 'adaptive_max_pool3d_with_indices', ties, output_size=(2, 3, 2))
    nan = f.distinct(1, 2, 4, 4, 4)
    nan[0, 0, 1, 1, 2] = NAN
    nan[0, 1, 3, 2, 0] = NAN
    nan[0, 1, 2, :2, :2] = -INF
    pool('max_3d_nan', 'max_pool3d_with_indices', nan, kernel_size=2)
    infinite = f.distinct(2, 2, 6, 6)
    infinite[0, 0, :3, :3] = -INF
    infinite[1, 1, 2, 3] = INF
    pool('max_2d_infinite', 'max_pool2d_with_indices', infinite, kernel_size=3, padding=1)
    f.save(folder)


def functions(folder):
    f = GoldenFile('functions', 11)
    special = exact([-INF, -88.0, -3.0, -1.0, -0.5, -0.0, 0.0, 1e-12, 0.5, 1.0, 3.0, 88.0, INF, NAN])
    for name in ('square', 'sign', 'reciprocal', 'rsqrt', 'exp2', 'expm1', 'log2', 'log10', 'log1p', 'sin', 'cos',
                 'tan', 'asin', 'acos', 'atan', 'sinh', 'cosh', 'asinh', 'acosh', 'atanh', 'erf', 'erfc', 'logsigmoid',
                 'silu', 'softsign', 'tanhshrink', 'hardsigmoid', 'hardswish'):
        function = getattr(torch, name, None) or getattr(F, name)
        f.case(name, name, [f.uniform(3, 7, low=-0.9, high=0.9)], function)
        f.case(name + '_wide', name, [f.uniform(3, 7, low=-6, high=6)], function)
        # PyTorch's gradient of softsign is NaN at infinity; ours is 0
        f.case(name + '_special', name, [special], function, gradient=name != 'softsign')
    f.save(folder)


def activations(folder):
    f = GoldenFile('activation', 3)
    special = exact([-INF, -100.0, -1.5, -0.0, 0.0, 0.25, 3.0, 88.0, INF, NAN])
    for name, function in (('relu', F.relu), ('sigmoid', torch.sigmoid), ('tanh', torch.tanh)):
        f.case(name, name, [f.distinct(3, 7, low=-4, high=4)], function)
        f.case(name + '_special', name, [special], function)
    for name, function in (('softmax', F.softmax), ('log_softmax', F.log_softmax)):
        for shape, dim in (((4, 5), 1), ((4, 5), 0), ((4, 5), -1), ((2, 3, 4), 1), ((7,), 0), ((2, 1, 3), 1),
                           ((3, 2, 2, 3), 1)):
            case = '%s_%s_dim%d' % (name, 'x'.join(map(str, shape)), dim)
            f.case(case, name, [f.uniform(*shape, low=-3, high=3)], lambda x: function(x, dim=dim), dim=dim,
                   reduction=shape[dim])
        f.case(name + '_large', name, [exact([[1000.0, 1001.0, 999.0], [-1000.0, -1000.0, -1003.0]])],
               lambda x: function(x, dim=1), dim=1)
        f.case(name + '_minus_infinity', name, [exact([[-INF, 0.0, 1.0], [2.0, -INF, -INF]])],
               lambda x: function(x, dim=1), dim=1)
        f.case(name + '_long', name, [f.uniform(2, 301, low=-5, high=5)], lambda x: function(x, dim=1), dim=1,
               reduction=301)
    f.case('linear', 'linear', [f.uniform(4, 5), f.uniform(3, 5), f.uniform(3)], F.linear, reduction=5)
    f.case('linear_no_bias', 'linear', [f.uniform(4, 5), f.uniform(3, 5), None], F.linear, reduction=5)
    f.case('linear_1d', 'linear', [f.uniform(5), f.uniform(3, 5), f.uniform(3)], F.linear, reduction=5)
    f.case('linear_3d', 'linear', [f.uniform(2, 3, 5), f.uniform(4, 5), f.uniform(4)], F.linear, reduction=5)
    bounded = exact([-INF, -1.5, -1.0, -0.0, 0.0, 0.5, 1.0, 5.5, 6.0, 7.0, INF, NAN])
    f.case('relu6', 'relu6', [f.uniform(5, 7, low=-3, high=9)], F.relu6)
    f.case('relu6_special', 'relu6', [bounded], F.relu6)
    f.case('hardtanh', 'hardtanh', [f.uniform(5, 7, low=-3, high=3)], lambda x: F.hardtanh(x, -1.0, 1.0), min=-1.0, max=1.0)
    f.case('hardtanh_special', 'hardtanh', [bounded], lambda x: F.hardtanh(x, -1.0, 1.0), min=-1.0, max=1.0)
    for name, bounds in (('both', dict(min=-1.0, max=6.0)), ('min', dict(min=0.0)), ('max', dict(max=1.0)),
                         ('crossed', dict(min=1.0, max=-1.0))):
        f.case('clamp_' + name, 'clamp', [bounded], lambda x: torch.clamp(x, **bounds), **bounds)
    f.case('clamp_integers', 'clamp', [f.integers(-9, 9, 13)], lambda x: torch.clamp(x, min=-2, max=5), gradient=False, min=-2.0, max=5.0)
    f.save(folder)


def losses(folder):
    f = GoldenFile('loss', 4)
    for reduction in ('mean', 'sum', 'none'):
        classes = f.integers(0, 5, 6)
        ignored = classes.clone()
        ignored[1] = -100
        ignored[4] = 2
        weight = f.uniform(5, low=0.2, high=2.0)
        logits = f.uniform(6, 5, low=-3, high=3)
        spatial = f.uniform(2, 4, 3, 2, low=-3, high=3)
        spatial_classes = f.integers(0, 4, 2, 3, 2)
        weight4 = f.uniform(4, low=0.2, high=2.0)
        probabilities = exact(F.softmax(f.uniform(6, 5), dim=1))
        spatial_probabilities = exact(F.softmax(f.uniform(2, 4, 3, 2), dim=1))

        def cross(name, x, target, weight=None, differentiable_target=False, function=F.cross_entropy,
                  op='cross_entropy', **params):
            # The weight gets no gradient in Koine (it is a parameter, not an input): computed without one here too.
            f.case('%s_%s_%s' % (op, name, reduction), op, [x, target] if weight is None else [x, target, weight],
                   lambda x, t, w=None: function(x, t, weight=None if w is None else w.detach(), reduction=reduction,
                                                 **params),
                   reduction_mode=reduction, **params)

        def nll(name, x, target, weight=None, **params):
            cross(name, exact(F.log_softmax(x, dim=1)), target, weight, function=F.nll_loss, op='nll_loss', **params)

        cross('indices', logits, classes)
        cross('weighted', logits, classes, weight)
        cross('ignored', logits, ignored)
        cross('ignored_weighted', logits, ignored, weight)
        cross('ignore_2', logits, classes, ignore_index=2)
        cross('smoothed', logits, classes, label_smoothing=0.1)
        cross('smoothed_weighted_ignored', logits, ignored, weight, label_smoothing=0.3)
        cross('spatial', spatial, spatial_classes)
        cross('spatial_weighted', spatial, spatial_classes, weight4)
        cross('spatial_smoothed', spatial, spatial_classes, label_smoothing=0.2)
        cross('probabilities', logits, probabilities)
        cross('probabilities_weighted', logits, probabilities, weight)
        cross('probabilities_smoothed', logits, probabilities, label_smoothing=0.25)
        cross('probabilities_spatial', spatial, spatial_probabilities, weight4, label_smoothing=0.1)
        cross('large_logits', exact([[1000.0, -1000.0, 0.0], [-1000.0, 1000.0, 1000.0]]), torch.tensor([0, 2]))
        nll('indices', logits, classes)
        nll('weighted_ignored', logits, ignored, weight)
        nll('spatial', spatial, spatial_classes, weight4)
        all_ignored = torch.full((6,), -100)
        f.case('cross_entropy_nothing_' + reduction, 'cross_entropy', [logits, all_ignored],
               lambda x, t: F.cross_entropy(x, t, reduction=reduction), gradient=False, reduction_mode=reduction)

        f.case('mse_' + reduction, 'mse_loss', [f.uniform(3, 4), f.uniform(3, 4)],
               lambda x, y: F.mse_loss(x, y, reduction=reduction), reduction_mode=reduction)
        x, y = f.uniform(4, 5, low=-4, high=4), f.uniform(4, 5, low=0, high=1)
        x[0, :4] = exact([0.0, 90.0, -90.0, 1000.0])
        weight, pos_weight = f.uniform(4, 1, low=0.5, high=2), f.uniform(5, low=0.5, high=3)
        for name, w, p in (('plain', None, None), ('weight', weight, None), ('pos_weight', None, pos_weight),
                           ('both', weight, pos_weight)):
            f.case('bce_%s_%s' % (name, reduction), 'binary_cross_entropy_with_logits', [x, y, w, p],
                   lambda x, y, w, p: F.binary_cross_entropy_with_logits(
                       x, y.detach(), None if w is None else w.detach(), reduction=reduction,
                       pos_weight=None if p is None else p.detach()), reduction_mode=reduction)
    f.save(folder)


def elementwise(folder):
    f = GoldenFile('elementwise', 5)
    special = exact([-INF, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 30.0, INF, NAN])
    for name, function in (('neg', torch.neg), ('exp', torch.exp), ('log', torch.log), ('sqrt', torch.sqrt),
                           ('abs', torch.abs)):
        positive = name in ('log', 'sqrt')
        f.case(name, name, [f.uniform(5, 7, low=0.1 if positive else -3, high=3)], function)
        f.case(name + '_special', name, [special], function)
    shapes = {'same': ((3, 4), (3, 4)), 'row': ((3, 4), (4,)), 'column': ((3, 1), (1, 4)), 'zero_dim': ((2, 3), ()),
              'outer': ((5, 1, 3), (2, 1))}
    for name, function in (('add', torch.add), ('sub', torch.sub), ('mul', torch.mul), ('div', torch.div),
                           ('maximum', torch.maximum)):
        for shape_name, (a, b) in shapes.items():
            f.case('%s_%s' % (name, shape_name), name, [f.uniform(*a), f.uniform(*b, low=0.5, high=2)], function)
    f.case('pow', 'pow', [f.uniform(3, 4, low=0.2, high=2), f.uniform(3, 4, low=-2, high=3)], torch.pow)
    f.case('pow_broadcast', 'pow', [f.uniform(3, 1, low=0.2, high=2), f.uniform(4, low=-2, high=3)], torch.pow)
    base = [0.0, 0.0, 0.0, -0.0, -2.0, -2.0, -2.0, 1.0, NAN, 1.0, INF, -INF, INF, 0.5, 2.0, NAN]
    exponent = [0.0, 2.0, -1.0, 3.0, 3.0, -2.0, 0.5, NAN, 0.0, INF, 0.5, 3.0, -1.0, INF, -INF, 1.0]
    f.case('pow_special', 'pow', [exact(base), exact(exponent)], torch.pow)
    for value in (0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -2.5):
        # PyTorch uses the square root for 0.5, which differs from C's pow at -inf and, in the gradient, at -0: omitted.
        x = exact(([] if value == 0.5 else [-INF, -0.0]) + [-2.0, 0.0, 0.25, 1.0, 3.0, INF, NAN])
        f.case('pow_scalar_%g' % value, 'pow_scalar', [x], lambda x: torch.pow(x, value), value=value)
    f.case('add_scalar', 'add_scalar', [f.uniform(3, 4)], lambda x: x + 1.25, value=1.25)
    f.case('mul_scalar', 'mul_scalar', [f.uniform(3, 4)], lambda x: x * -2.5, value=-2.5)
    a, b = exact([1.0, 2.0, 2.0, NAN, NAN, 1.0, INF, -0.0]), exact([2.0, 1.0, 2.0, NAN, 1.0, NAN, INF, 0.0])
    f.case('maximum_special', 'maximum', [a, b], torch.maximum)
    for name in ('eq', 'ne', 'lt', 'le', 'gt', 'ge'):
        f.case(name, name, [a, b], getattr(torch, name), gradient=False)
        f.case(name + '_integers', name, [f.integers(0, 3, 4, 1), f.integers(0, 3, 5)], getattr(torch, name),
               gradient=False)
    i, j = torch.tensor([7, -7, 7, -7, 0, 2**62]), torch.tensor([2, 2, -2, -2, 5, 1])
    for name in ('add', 'sub', 'mul', 'div', 'maximum'):
        f.case(name + '_integers', name, [i, j], getattr(torch, name), gradient=False)
    f.save(folder)


def reductions(folder):
    f = GoldenFile('reduction', 6)
    for name, function in (('sum', torch.sum), ('mean', torch.mean), ('max', torch.max)):
        for shape in ((), (1,), (17,), (3, 5), (2, 3, 4)):
            f.case('%s_%s' % (name, 'x'.join(map(str, shape)) or 'scalar'), name, [f.distinct(*shape)], function,
                   reduction=max(1, math.prod(shape)))
    for name, function in (('sum_dims', torch.sum), ('mean_dims', torch.mean)):
        for shape, dims in (((3, 5), (0,)), ((3, 5), (1,)), ((2, 3, 4), (0, 2)), ((2, 3, 4), (-1,)),
                            ((2, 3, 4), (1, 0)), ((2, 3, 4), (0, 1, 2)), ((2, 3, 4, 5), (1, 3))):
            for keepdim in (False, True):
                case = '%s_%s_%s%s' % (name, 'x'.join(map(str, shape)), '_'.join(map(str, dims)),
                                       '_keep' if keepdim else '')
                f.case(case, name, [f.uniform(*shape)], lambda x: function(x, dim=dims, keepdim=keepdim), dims=dims,
                       keepdim=keepdim, reduction=20)
    ties = exact(f.random.randint(0, 3, (4, 6)))
    nan = f.distinct(3, 4)
    nan[1, 2] = NAN
    nan[2, 1] = NAN
    nan[2, 3] = NAN
    for label, x, dims in (('plain', f.distinct(3, 5), (0, 1, -1)), ('cube', f.distinct(2, 3, 4), (0, 1, 2)),
                           ('ties', ties, (0, 1)), ('nan', nan, (0, 1)), ('vector', f.distinct(7), (0,))):
        for dim in dims:
            for keepdim in (False, True):
                name = '%s_%d%s' % (label, dim, '_keep' if keepdim else '')
                f.case('max_dim_' + name, 'max_dim', [x], lambda x: tuple(torch.max(x, dim=dim, keepdim=keepdim)),
                       dim=dim, keepdim=keepdim)
                f.case('argmax_' + name, 'argmax', [x], lambda x: torch.argmax(x, dim=dim, keepdim=keepdim),
                       gradient=False, dim=dim, keepdim=keepdim)
    f.case('max_ties', 'max', [ties], torch.max)
    f.case('max_nan', 'max', [nan], torch.max, gradient=False)
    for name, x in (('integers', f.integers(-9, 9, 3, 4)), ('bools', f.integers(0, 2, 3, 4) > 0),
                    ('bytes', f.integers(0, 255, 3, 4).to(torch.uint8))):
        f.case('sum_' + name, 'sum', [x], torch.sum, gradient=False)
        f.case('sum_dims_' + name, 'sum_dims', [x], lambda x: torch.sum(x, dim=(1,)), gradient=False, dims=(1,),
               keepdim=False)
    f.case('argmax_integers', 'argmax', [f.integers(0, 4, 5, 7)], lambda x: torch.argmax(x, dim=1), gradient=False, dim=1, keepdim=False)
    index = torch.tensor([2, 0, 2, 3])
    f.case('index_select_0', 'index_select', [f.uniform(4, 3), index], lambda x, i: torch.index_select(x, 0, i), dim=0)
    f.case('index_select_1', 'index_select', [f.uniform(2, 4, 3), index], lambda x, i: torch.index_select(x, 1, i), dim=1)
    f.save(folder)


def rows(folder):
    f = GoldenFile('rows', 21)
    ties = exact(f.random.randint(0, 3, (4, 6)))
    nan = f.distinct(3, 4)
    nan[1, 2] = NAN
    nan[2, 1] = NAN
    nan[2, 3] = NAN
    infinite = f.distinct(3, 4)
    infinite[0, :] = -INF
    infinite[1, 2] = -INF
    infinite[2, 1] = INF
    zeros = f.distinct(4, 5)
    zeros[1, 2] = 0
    zeros[2, 0] = 0
    zeros[2, 4] = 0
    for name, function in (('min', torch.min), ('prod', torch.prod), ('var', torch.var), ('std', torch.std)):
        for shape in ((17,), (3, 5), (2, 3, 4)):
            f.case('%s_%s' % (name, 'x'.join(map(str, shape))), name, [f.distinct(*shape)], function,
                   reduction=math.prod(shape))
    f.case('min_ties', 'min', [ties], torch.min)
    f.case('min_nan', 'min', [nan], torch.min, gradient=False)
    f.case('var_of_one', 'var', [f.distinct(1)], torch.var, gradient=False)
    f.case('prod_integers', 'prod', [f.integers(-3, 4, 7)], torch.prod, gradient=False)
    for label, x in (('plain', f.distinct(3, 5)), ('ties', ties), ('nan', nan)):
        for dim in (0, 1):
            f.case('min_dim_%s_%d' % (label, dim), 'min_dim', [x], lambda x: tuple(torch.min(x, dim=dim)), dim=dim,
                   keepdim=False)
            f.case('argmin_%s_%d' % (label, dim), 'argmin', [x], lambda x: torch.argmin(x, dim=dim), gradient=False,
                   dim=dim, keepdim=False)
    shapes = (((3, 5), (0,)), ((3, 5), (1,)), ((2, 3, 4), (0, 2)), ((2, 3, 4), (-1,)), ((2, 3, 4), (1, 0)))
    for name, function in (('amax', torch.amax), ('amin', torch.amin), ('logsumexp', torch.logsumexp)):
        for shape, dims in shapes:
            for keepdim in (False, True):
                case = '%s_%s_%s%s' % (name, 'x'.join(map(str, shape)), '_'.join(map(str, dims)),
                                       '_keep' if keepdim else '')
                f.case(case, name, [f.distinct(*shape)], lambda x: function(x, dims, keepdim), dims=dims,
                       keepdim=keepdim, reduction=20)
        f.case(name + '_ties', name, [ties], lambda x: function(x, (1,)), dims=(1,), keepdim=False, reduction=6)
        f.case(name + '_nan', name, [nan], lambda x: function(x, (1,)), gradient=False, dims=(1,), keepdim=False)
        f.case(name + '_infinite', name, [infinite], lambda x: function(x, (1,)), gradient=False, dims=(1,),
               keepdim=False)
    for dim in (0, 1):
        f.case('prod_dim_%d' % dim, 'prod_dim', [f.distinct(3, 5)], lambda x: torch.prod(x, dim), dim=dim,
               keepdim=False)
        f.case('prod_dim_zeros_%d' % dim, 'prod_dim', [zeros], lambda x: torch.prod(x, dim), dim=dim, keepdim=False)
    for name, function in (('var_dims', torch.var), ('std_dims', torch.std)):
        for shape, dims in shapes:
            for correction in (0, 1):
                case = '%s_%s_%s_less_%d' % (name, 'x'.join(map(str, shape)), '_'.join(map(str, dims)), correction)
                f.case(case, name, [f.distinct(*shape)], lambda x: function(x, dims, unbiased=correction == 1),
                       dims=dims, keepdim=False, correction=correction, reduction=20)
    for p in (0, 0.5, 1, 2, 3, INF, -INF):
        for shape, dims in shapes:
            case = 'norm_%s_%s_%s' % (p, 'x'.join(map(str, shape)), '_'.join(map(str, dims)))
            f.case(case, 'norm', [f.distinct(*shape)], lambda x: torch.linalg.vector_norm(x, p, dims), dims=dims,
                   keepdim=False, reduction=20, p=p, gradient=p != 0)
    for dim in (0, 1, 2):
        f.case('cumsum_%d' % dim, 'cumsum', [f.distinct(2, 3, 4)], lambda x: torch.cumsum(x, dim), dim=dim,
               keepdim=False, reduction=4)
    f.case('cumsum_bools', 'cumsum', [f.integers(0, 2, 17) > 0], lambda x: torch.cumsum(x, 0), gradient=False, dim=0, keepdim=False)
    f.case('norm_2_of_zeros', 'norm', [exact([[0.0, 0.0], [3.0, -4.0]])], lambda x: torch.linalg.vector_norm(x, 2, (1,)), dims=(1,), keepdim=False, p=2)
    f.case('norm_nan', 'norm', [nan], lambda x: torch.linalg.vector_norm(x, 2, (1,)), gradient=False, dims=(1,), keepdim=False, p=2)
    f.save(folder)


def products(folder):
    f = GoldenFile('matmul', 7)
    pairs = (((5,), (5,)), ((5,), (5, 4)), ((3, 5), (5,)), ((3, 5), (5, 4)), ((5,), (2, 5, 3)), ((2, 3, 5), (5,)),
             ((2, 3, 5), (5, 4)), ((3, 5), (2, 5, 4)), ((2, 3, 5), (2, 5, 4)), ((2, 1, 3, 5), (4, 5, 2)),
             ((1, 3, 5), (4, 5, 2)), ((2, 3, 3, 5), (2, 3, 5, 2)), ((1, 1), (1, 1)), ((17, 19), (19, 23)))
    for a, b in pairs:
        name = '%s_by_%s' % ('x'.join(map(str, a)), 'x'.join(map(str, b)))
        f.case(name, 'matmul', [f.uniform(*a), f.uniform(*b)], torch.matmul, reduction=a[-1])
    f.case('nothing_inside', 'matmul', [torch.zeros(2, 0, dtype=torch.float64), torch.zeros(0, 3, dtype=torch.float64)], torch.matmul, gradient=False)
    f.save(folder)


def make(folder):
    for family in (convolution, convolutions, pooling, poolings, functions, activations, losses, elementwise,
                   reductions, rows, products):
        family(folder)
