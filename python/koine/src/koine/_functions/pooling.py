"""Pooling and resizing of torch.nn.functional whose arguments choose between operators."""
from .. import _ops

op = _ops.function


def _max_pool(name):
    def function(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        pool = op(name + '_with_indices' if return_indices else name)
        return pool(input, kernel_size, stride, padding, dilation, ceil_mode)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False'
    return function


max_pool1d, max_pool2d, max_pool3d = (_max_pool('max_pool%dd' % n) for n in (1, 2, 3))


def _max_unpool(name, dims):
    def function(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        """`output_size` may begin with the batch and the channels, as that of what was pooled does."""
        if output_size is not None and len(output_size) == dims + 2:
            output_size = output_size[2:]
        return op(name)(input, indices, kernel_size, stride, padding, output_size)

    function.__name__ = function.__qualname__ = name
    function.line = 'input, indices, kernel_size, stride=None, padding=0, output_size=None'
    return function


max_unpool1d, max_unpool2d, max_unpool3d = (_max_unpool('max_unpool%dd' % n, n) for n in (1, 2, 3))


def _adaptive(name, dims):
    """A number is the size along every dimension; None is the input's."""

    def sizes(output_size):
        each = (output_size,) * dims if output_size is None or isinstance(output_size, int) else output_size
        return [-1 if one is None else one for one in each]

    def average(input, output_size):
        return op(name)(input, sizes(output_size))

    def maximum(input, output_size, return_indices=False):
        return op(name + '_with_indices' if return_indices else name)(input, sizes(output_size))

    function = maximum if 'max' in name else average
    function.__name__ = function.__qualname__ = name
    function.line = 'input, output_size' + ', return_indices=False' * ('max' in name)
    return function


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    _adaptive('adaptive_avg_pool%dd' % n, n) for n in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive('adaptive_max_pool%dd' % n, n) for n in (1, 2, 3))


# --- resizing: the older names of interpolate -------------------------------------------------------------------------


def upsample(input, size=None, scale_factor=None, mode='nearest', align_corners=None):
    return op('interpolate')(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    return upsample(input, size, scale_factor)


def upsample_bilinear(input, size=None, scale_factor=None):
    return upsample(input, size, scale_factor, 'bilinear', True)
