"""x[key] and x[key] = value, with PyTorch's rules, in terms of views and of the operators index and index_put."""
import numpy

from ._c import KoineIndexError, NULL, check, checked, error, lib, scalar
from ._tensor import handles
from ._tensor.handles import new_object, options, owned, release, tensor, wrap

SLICE_END = 2**63 - 1
VIEWING = frozenset((int, slice, type(None), type(Ellipsis)))  # types of keys that only select views


def _as_index(key, x):
    """The tensor of an index given as a list, an array or a tensor; None for other keys."""
    if isinstance(key, handles.tensor_class):
        return key
    if isinstance(key, (list, numpy.ndarray, range)):
        array = numpy.asarray(key)
        if array.size == 0:
            array = array.astype(numpy.int64)
        if array.dtype != bool and not numpy.issubdtype(array.dtype, numpy.integer):
            raise KoineIndexError('indices are integers or bools, not %s' % array.dtype)
        return tensor(array if array.dtype == bool else array.astype(numpy.int64), device=x.device)
    return None


def _is_number(index):
    """One number, the same for all samples of a vmap."""
    return (lib.kn_ndim(index._h) == 0 and not lib.kn_vmap_level_of(index._h)
            and lib.kn_dtype_of(index._h) in (lib.KN_I64, lib.KN_I32, lib.KN_I16, lib.KN_I8))


def _width(key):
    """How many dimensions of x a key stands for."""
    if key is None or isinstance(key, (bool, numpy.bool_)):
        return 0
    is_mask = isinstance(key, handles.tensor_class) and lib.kn_dtype_of(key._h) == lib.KN_BOOL
    return lib.kn_ndim(key._h) if is_mask else 1


def _plain(x, keys):
    """The keys with lists and arrays as tensors, and whole numbers, also of tensors without dimensions, as int."""
    plain = []
    for one in keys:
        if type(one) not in VIEWING and not isinstance(one, (bool, numpy.bool_)):
            index = _as_index(one, x)
            if index is not None:
                one = int(index.item()) if _is_number(index) else index
            elif hasattr(one, '__index__'):
                one = one.__index__()
            else:
                raise TypeError('a tensor is indexed with integers, slices, None, ..., lists, arrays and tensors, not '
                                '%s' % type(one).__name__)
        plain.append(one)
    return plain


def _refusal(x, keys):
    """The exception of keys that do not fit x."""
    failure, ndim = error(), lib.kn_ndim(x._h)
    if sum(one is Ellipsis for one in keys) > 1:
        return KoineIndexError("an index has at most one '...'")
    if ndim == 0:
        return KoineIndexError('a tensor without dimensions has no elements to index: item() is its value')
    used = sum(_width(one) for one in keys if one is not Ellipsis)
    if used > ndim:
        return KoineIndexError('%d indices are too many for a tensor of %d dimensions' % (used, ndim))
    return failure


def _sliced(view, dim, key):
    step = 1 if key.step is None else int(key.step)
    if step < 1:
        raise ValueError('the step of a slice is 1 or more, not %d: koine.flip reverses' % step)
    return lib.kn_slice(view, dim, 0 if key.start is None else int(key.start),
                        SLICE_END if key.stop is None else int(key.stop), step)


def _viewed(x, key):
    """The handle of the view that the viewing keys select, and the indices of its dimensions: a list with None where
    there is none."""
    keys = key if type(key) is tuple else (key,)
    if not VIEWING.issuperset(map(type, keys)):
        keys = _plain(x, keys)
    view = x._h
    dim, covered, indices = 0, 0, []  # an index of bools covers several dimensions
    for one in keys:
        kind = type(one)
        if kind is int:
            part = lib.kn_select(view, dim, one)
        elif kind is slice:
            if one.start is None and one.stop is None and one.step is None:
                dim += 1
                continue
            part = _sliced(view, dim, one)
            dim += 1
        elif one is Ellipsis:
            skipped = lib.kn_ndim(x._h) - sum(_width(other) for other in keys if other is not Ellipsis)
            if skipped < 0:
                raise _refusal(x, keys)
            dim += skipped
            continue
        else:  # None, a bool, which is a mask of a new dimension of size 1, or a tensor
            is_tensor = isinstance(one, handles.tensor_class)
            width = _width(one)
            part = NULL if width else lib.kn_unsqueeze(view, dim)
            if one is not None:
                index = one if is_tensor else tensor(numpy.array(bool(one)), device=x.device)
                indices += [None] * (dim - covered) + [index if width else index.reshape(1)]
                covered = dim + max(width, 1)
            dim += max(width, 1)
            if width:
                continue
        if not part:
            raise _refusal(x, keys)
        view = owned(part, release)
    if dim > lib.kn_ndim(view) or sum(one is Ellipsis for one in keys) > 1:
        raise _refusal(x, keys)
    return view, indices


def _handles_of(indices):
    return [NULL if one is None else one._h for one in indices]


def get(x, key):
    if type(key) is int:
        view, indices = lib.kn_select(x._h, 0, key), None
        if not view:
            raise _refusal(x, (key,))
        view = owned(view, release)
    else:
        view, indices = _viewed(x, key)
        if indices:
            return wrap(lib.kn_index(view, _handles_of(indices), len(indices)))
        if view is x._h:
            return wrap(lib.kn_reshape(view, lib.kn_ndim(view), lib.kn_shape(view)))
    result = new_object(handles.tensor_class)
    result._h = view
    return result


def _without_leading_ones(value):
    """Of which a value may have more than what it is written to has dimensions."""
    shape = value.shape
    ones = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return value.reshape(shape[ones:]) if ones else value


def _mask_over(view, indices):
    """The mask of x[mask] = number with the dimensions of x; None for other indices."""
    mask = indices[-1]
    if any(one is not None for one in indices[:-1]) or lib.kn_dtype_of(mask._h) != lib.KN_BOOL:
        return None
    before, shape = len(indices) - 1, mask.shape
    ndim = lib.kn_ndim(view)
    if tuple(lib.kn_size(view, i) for i in range(before, min(before + len(shape), ndim))) != shape:
        return None
    after = ndim - before - len(shape)
    return mask.reshape(shape + (1,) * after) if after else mask


def _put_number(x, view, indices, value):
    """True if it is written; False if numpy must convert it."""
    if not indices:
        checked(lib.kn_fill_with_(view, scalar(value)))
        return True
    if not x.is_floating_point() and not isinstance(value, int):
        return False
    mask = _mask_over(view, indices)
    if mask is not None:
        checked(lib.kn_masked_fill_with_(view, mask._h, scalar(value)))
    else:
        made = wrap(lib.kn_full_with(0, NULL, scalar(value), options(x.dtype, x.device)))
        checked(lib.kn_index_put_with_(view, _handles_of(indices), len(indices), made._h, NULL))
    return True


def put(x, key, value):
    view, indices = _viewed(x, key)
    if not isinstance(value, handles.tensor_class):
        if isinstance(value, (int, float, numpy.generic)) and _put_number(x, view, indices, value):
            return
        value = tensor(value, dtype=x.dtype, device=x.device)
    elif lib.kn_device_of(value._h) != lib.kn_device_of(view):
        value = value.to(x.device)
    if indices or lib.kn_ndim(value._h) > lib.kn_ndim(view):
        value = _without_leading_ones(value)
    if not indices:
        if not (lib.kn_grad_enabled() and (lib.kn_requires_grad(value._h) or lib.kn_requires_grad(x._h))):
            check(lib.kn_copy_(view, value._h))
            return
        if lib.kn_ndim(view) == 0:  # recorded: as a write at index 0
            view = owned(checked(lib.kn_unsqueeze(view, 0)), release)
        # Counted on the device: a copy from the host could not be part of a graph.
        indices = [wrap(lib.kn_arange_with(0, lib.kn_size(view, 0), 1, options('int64', x.device)))]
    if value.dtype != x.dtype:
        value = value.to(dtype=x.dtype)
    checked(lib.kn_index_put_with_(view, _handles_of(indices), len(indices), value._h, NULL))
