"""Calls that all ranks of a group make: values are exchanged, and combined. Ranks are numbered as among all processes,
also where a call is about a smaller group. Nothing is recorded for gradients, and tensors that require one are not
written outside of no_grad."""
import enum

from .._c import NULL, check, checked, ffi, lib
from .._groups import group_of
from .._tensor import Tensor


class ReduceOp(enum.IntEnum):
    """How values are combined."""
    SUM, AVG, MAX, MIN = lib.KN_REDUCE_SUM, lib.KN_REDUCE_MEAN, lib.KN_REDUCE_MAX, lib.KN_REDUCE_MIN
    PRODUCT = lib.KN_REDUCE_PRODUCT
    BAND, BOR, BXOR = lib.KN_REDUCE_AND, lib.KN_REDUCE_OR, lib.KN_REDUCE_XOR


class Work:
    """A call that async_op=True has started. Its tensors are not used before wait()."""

    def __init__(self, pointer, group, sender=None):
        self._group = group  # which must outlive it
        self._sender = sender
        self._h = ffi.gc(checked(pointer), lib.kn_work_free)

    def wait(self):
        """Until the results can be used. Raises the call's error; True else."""
        check(lib.kn_work_wait(self._h))
        return True

    def is_completed(self):
        return bool(lib.kn_work_is_done(self._h))

    def source_rank(self):
        """Of irecv, after wait(): the rank that sent the message."""
        if self._sender is None:
            raise ValueError('source_rank: this call received no message')
        return self._group._ranks[self._sender[0]]


def _run(group, async_op, call, op=ReduceOp.SUM):
    """call(the group's handle, parameters), to its end or only begun."""
    params = ffi.new('kn_collective_params *', (int(op), NULL))
    if async_op:
        params.work = ffi.new('kn_work **')
        work = params.work
        check(call(group._h, params))
        return Work(work[0], group)
    check(call(group._h, params))
    return None


def handle_of(call, value):
    if not isinstance(value, Tensor):
        raise TypeError('%s: a koine.Tensor is needed, not %s' % (call, type(value).__name__))
    return value._h


def _handles(call, name, values, group):
    """Of a list with a tensor for each rank."""
    handles = [handle_of(call, one) for one in values]
    if len(handles) != group.size():
        raise ValueError('%s: %s needs %d tensors, one for each rank, not %d' % (call, name, group.size(),
                                                                                len(handles)))
    return handles


def _only_on(call, name, values, root, group):
    """The handles of a list that only one rank gives."""
    if group.rank() != root:
        if values:
            raise ValueError('%s: only rank %d gives %s' % (call, group._ranks[root], name))
        return NULL
    if values is None:
        raise ValueError('%s: rank %d must give %s' % (call, group._ranks[root], name))
    return _handles(call, name, values, group)


# --- one tensor on each rank ------------------------------------------------------------------------------------------


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Replaces the tensor by the combination of all ranks', which has the same bits on each."""
    group, handle = group_of(group, 'all_reduce'), handle_of('all_reduce', tensor)
    return _run(group, async_op, lambda g, p: lib.kn_group_all_reduce_with(g, handle, p), op)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None, async_op=False):
    """The same on rank `dst` only; elsewhere the tensor keeps its values."""
    group, handle = group_of(group, 'reduce'), handle_of('reduce', tensor)
    root = group.number_of(dst)
    return _run(group, async_op, lambda g, p: lib.kn_group_reduce_with(g, handle, root, p), op)


def broadcast(tensor, src, group=None, async_op=False):
    """Replaces the tensor by rank `src`'s."""
    group, handle = group_of(group, 'broadcast'), handle_of('broadcast', tensor)
    root = group.number_of(src)
    return _run(group, async_op, lambda g, p: lib.kn_group_broadcast_with(g, handle, root, p))


def barrier(group=None, async_op=False):
    """Returns when all ranks have called it."""
    return _run(group_of(group, 'barrier'), async_op, lib.kn_group_barrier_with)


# --- a list of tensors, one for each rank -----------------------------------------------------------------------------


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """tensor_list[r] becomes rank r's tensor; all have one shape and dtype."""
    group, handle = group_of(group, 'all_gather'), handle_of('all_gather', tensor)
    outputs = _handles('all_gather', 'tensor_list', tensor_list, group)
    return _run(group, async_op, lambda g, p: lib.kn_group_all_gather_with(g, outputs, handle, p))


def gather(tensor, gather_list=None, dst=0, group=None, async_op=False):
    """The same on rank `dst` only, which alone gives a list."""
    group, handle = group_of(group, 'gather'), handle_of('gather', tensor)
    root = group.number_of(dst)
    outputs = _only_on('gather', 'gather_list', gather_list, root, group)
    return _run(group, async_op, lambda g, p: lib.kn_group_gather_with(g, outputs, handle, root, p))


def scatter(tensor, scatter_list=None, src=0, group=None, async_op=False):
    """The tensor becomes element r of rank `src`'s list on rank r."""
    group, handle = group_of(group, 'scatter'), handle_of('scatter', tensor)
    root = group.number_of(src)
    inputs = _only_on('scatter', 'scatter_list', scatter_list, root, group)
    return _run(group, async_op, lambda g, p: lib.kn_group_scatter_with(g, handle, inputs, root, p))


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """The output on rank r becomes the combination of element r of all ranks' lists."""
    group, handle = group_of(group, 'reduce_scatter'), handle_of('reduce_scatter', output)
    inputs = _handles('reduce_scatter', 'input_list', input_list, group)
    return _run(group, async_op, lambda g, p: lib.kn_group_reduce_scatter_with(g, handle, inputs, p), op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """output_tensor_list[r] becomes element (this rank) of rank r's input_tensor_list. Shapes may differ."""
    group = group_of(group, 'all_to_all')
    outputs = _handles('all_to_all', 'output_tensor_list', output_tensor_list, group)
    inputs = _handles('all_to_all', 'input_tensor_list', input_tensor_list, group)
    return _run(group, async_op, lambda g, p: lib.kn_group_all_to_all_with(g, outputs, inputs, p))


# --- the same, of parts of one tensor ---------------------------------------------------------------------------------


def _parts(call, whole, part, group):
    """Views of `whole`, each of the shape of `part`: one after another, or along a first dimension of their own."""
    if not isinstance(whole, Tensor) or not isinstance(part, Tensor):
        raise TypeError('%s: koine.Tensors are needed, not %s and %s' % (
            call, type(whole).__name__, type(part).__name__))
    if whole.numel() != group.size() * part.numel():
        raise ValueError('%s: of %d ranks, each with a tensor of shape %s, one of shape %s cannot have the parts' % (
            call, group.size(), tuple(part.shape), tuple(whole.shape)))
    return whole.view(group.size(), *part.shape).unbind(0)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """all_gather into one tensor, in which the ranks' follow one another along dimension 0, or are stacked."""
    parts = _parts('all_gather_into_tensor', output_tensor, input_tensor, group_of(group, 'all_gather_into_tensor'))
    return all_gather(parts, input_tensor, group, async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """reduce_scatter of the parts of one tensor."""
    parts = _parts('reduce_scatter_tensor', input, output, group_of(group, 'reduce_scatter_tensor'))
    return reduce_scatter(output, parts, op, group, async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """all_to_all of parts along dimension 0: of equal sizes, or of these."""
    size = group_of(group, 'all_to_all_single').size()

    def split(whole, sizes):
        if sizes is None and whole.shape[0] % size:
            raise ValueError('all_to_all_single: %d rows cannot be divided among %d ranks: give the split sizes' % (
                whole.shape[0], size))
        return whole.split([whole.shape[0] // size] * size if sizes is None else list(sizes))

    return all_to_all(split(output, output_split_sizes), split(input, input_split_sizes), group, async_op)
