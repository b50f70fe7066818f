"""x[key] and x[key] = value, with PyTorch's rules, in terms of views and of the operators index and index_put."""
import numpy

from ._c import KoineIndexError, NULL, check, checked, ffi, lib, scalar

SLICE_END = 2**63 - 1


def _tensor():
    from . import _tensor as module
    return module


def _as_index(key, device):
    """The tensor of an index given as a list, an array or a tensor; None for other keys."""
    module = _tensor()
    if isinstance(key, module.Tensor):
        return key
    if isinstance(key, (list, numpy.ndarray, range)):
        array = numpy.asarray(key)
        if array.size == 0:
            array = array.astype(numpy.int64)
        if array.dtype != bool and not numpy.issubdtype(array.dtype, numpy.integer):
            raise KoineIndexError('indices are integers or bools, not %s' % array.dtype)
        return module.tensor(array if array.dtype == bool else array.astype(numpy.int64), device=device)
    return None


def _is_number(index):
    return index.ndim == 0 and lib.kn_dtype_of(index._h) in (lib.KN_I64, lib.KN_I32, lib.KN_I16, lib.KN_I8)


def _width(key):
    """How many dimensions of x a key stands for."""
    if key is None or isinstance(key, (bool, numpy.bool_)):
        return 0
    is_mask = isinstance(key, _tensor().Tensor) and lib.kn_dtype_of(key._h) == lib.KN_BOOL
    return key.ndim if is_mask else 1


def _expanded(x, key):
    """The keys as a list without Ellipsis, those that are lists and arrays as tensors, whole numbers in tensors without
    dimensions as numbers."""
    keys = []
    for one in key if isinstance(key, tuple) else [key]:
        index = None if one is Ellipsis else _as_index(one, x.device)
        keys.append(one if index is None else int(index.item()) if _is_number(index) else index)
    places = [i for i, one in enumerate(keys) if one is Ellipsis]
    if len(places) > 1:
        raise KoineIndexError("an index has at most one '...'")
    used = sum(_width(one) for one in keys if one is not Ellipsis)
    if used > x.ndim:
        raise KoineIndexError('%d indices are too many for a tensor of %d dimensions' % (used, x.ndim))
    if places:
        keys[places[0]:places[0] + 1] = [slice(None)] * (x.ndim - used)
    return keys


def _sliced(x, dim, key):
    step = 1 if key.step is None else int(key.step)
    if step < 1:
        raise ValueError('the step of a slice is 1 or more, not %d: koine.flip reverses' % step)
    if key.start is None and key.stop is None and step == 1:
        return x
    start = 0 if key.start is None else int(key.start)
    stop = SLICE_END if key.stop is None else int(key.stop)
    return _tensor().wrap(lib.kn_slice(x._h, dim, start, stop, step))


def _selected(x, dim, index):
    size = lib.kn_size(x._h, dim)
    if not -size <= index < size:
        raise KoineIndexError('index %d is out of range for dimension %d of size %d' % (index, dim, size))
    return _tensor().wrap(lib.kn_select(x._h, dim, index))


def _is_bool(key):
    """Is it one bool, also as a tensor? It is a mask of a new dimension of size 1."""
    return isinstance(key, (bool, numpy.bool_)) or (
        isinstance(key, _tensor().Tensor) and key.ndim == 0 and lib.kn_dtype_of(key._h) == lib.KN_BOOL)


def _viewed(x, key):
    """The view that the basic keys select, and the indices of its dimensions: a list with None where there is none."""
    wrap = _tensor().wrap
    dim, covered, indices = 0, 0, []  # an index of bools covers several dimensions
    for one in _expanded(x, key):
        if isinstance(one, slice):
            x = _sliced(x, dim, one)
        elif one is None:
            x = wrap(lib.kn_unsqueeze(x._h, dim))
        elif _is_bool(one):
            x = wrap(lib.kn_unsqueeze(x._h, dim))
            mask = one.reshape(1) if hasattr(one, '_h') else _as_index(numpy.array([bool(one)]), x.device)
            indices += [None] * (dim - covered) + [mask]
            covered = dim + 1
        else:
            if isinstance(one, _tensor().Tensor):
                indices += [None] * (dim - covered) + [one]
                dim += _width(one) - 1
                covered = dim + 1
            elif hasattr(one, '__index__'):
                x = _selected(x, dim, one.__index__())
                continue
            else:
                raise TypeError('a tensor is indexed with integers, slices, None, ..., lists, arrays and tensors, not '
                                '%s' % type(one).__name__)
        dim += 1
    return x, indices


def get(x, key):
    wrap = _tensor().wrap
    if type(key) is int:
        if lib.kn_ndim(x._h) == 0:
            raise KoineIndexError('a tensor without dimensions has no elements to index: item() is its value')
        return _selected(x, 0, key)
    viewed, indices = _viewed(x, key)
    if indices:
        handles = [NULL if one is None else one._h for one in indices]
        return wrap(lib.kn_index(viewed._h, handles, len(handles)))
    return viewed if viewed is not x else wrap(lib.kn_reshape(x._h, x.ndim, ffi.new('int64_t[]', list(x.shape))))


def _without_leading_ones(value):
    """Of which a value may have more than what it is written to has dimensions."""
    shape = tuple(value.shape)
    ones = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return value.reshape(shape[ones:]) if ones else value


def put(x, key, value):
    module = _tensor()
    viewed, indices = _viewed(x, key)
    if not isinstance(value, module.Tensor):
        if not indices and (isinstance(value, (int, float, numpy.generic))):
            checked(lib.kn_fill_with_(viewed._h, scalar(value)))
            return
        value = module.tensor(value, dtype=x.dtype, device=x.device)
    if value.device != x.device:
        value = value.to(x.device)
    value = _without_leading_ones(value)
    if not indices:
        if not (lib.kn_grad_enabled() and (value.requires_grad or x.requires_grad)):
            check(lib.kn_copy_(viewed._h, value._h))
            return
        if viewed.ndim == 0:  # recorded: as a write at index 0
            viewed = viewed.unsqueeze(0)
        # Counted on the device: a copy from the host could not be part of a graph.
        indices = [module.wrap(lib.kn_arange_with(0, viewed.shape[0], 1, module.options('int64', x.device)))]
    if value.dtype != viewed.dtype:
        value = value.to(dtype=viewed.dtype)
    handles = [NULL if one is None else one._h for one in indices]
    checked(lib.kn_index_put_with_(viewed._h, handles, len(handles), value._h, NULL))
