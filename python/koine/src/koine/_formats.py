"""Memory formats: the order in which the dimensions of images lie in memory. Whatever it is, layers compute the same;
pooling and elementwise operators keep it, others give results in the order of the dimensions."""


class memory_format:  # noqa: N801
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return 'koine.' + self._name


contiguous_format, preserve_format, channels_last, channels_last_3d = (
    memory_format(name) for name in ('contiguous_format', 'preserve_format', 'channels_last', 'channels_last_3d'))

# The dimensions from the one that is outermost in memory to the innermost.
_ORDERS = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}


def _order_of(format, ndim):
    if not isinstance(format, memory_format):
        raise TypeError('a memory format is needed, such as koine.channels_last, not %r' % (format,))
    order = _ORDERS.get(format)
    if order and len(order) != ndim:
        raise RuntimeError('%r is for tensors of %d dimensions, not %d' % (format, len(order), ndim))
    return order


def _back(order):
    return sorted(range(len(order)), key=order.__getitem__)


def is_in(x, format):
    """Does the tensor lie in memory in that format, without gaps?"""
    order = _order_of(format, x.ndim) if format else None
    return (x.permute(*order) if order else x).is_contiguous()


def to_format(x, format):
    """The tensor in that format: itself if it is."""
    order = _order_of(format, x.ndim)
    if format is preserve_format:
        return x
    if order is None:
        return x.contiguous()
    return x if is_in(x, format) else x.permute(*order).contiguous().permute(*_back(order))


def create_like(x, format, create):
    """create(shape) in that format; preserve_format: in x's order, as elementwise operators keep it."""
    order = _order_of(format, x.ndim)
    if format is preserve_format and not x.is_contiguous():
        steps = x.stride()
        order = None if 0 in steps else sorted(range(x.ndim), key=lambda dim: -steps[dim])
    return create([x.shape[dim] for dim in order]).permute(*_back(order)) if order else create(x.shape)
