"""Messages between two ranks. Ranks are numbered as among all processes, also in a smaller group."""
from .._c import check, ffi, lib
from .._groups import group_of
from ._collectives import Work, handle_of

_ANY_RANK = -1  # KN_ANY_RANK, a macro, which declarations of C functions do not have


def _message(call, function, tensor, rank, group, tag, is_started, receives):
    group, handle = group_of(group, call), handle_of(call, tensor)
    other = _ANY_RANK if rank is None else group.number_of(rank)
    params = ffi.new('kn_message_params *', lib.kn_message_params_init())
    params.tag, sender, work = tag, ffi.new('int *'), ffi.new('kn_work **')
    if receives:
        params.sender = sender
    if is_started:
        params.work = work
    check(function(group._h, handle, other, params))
    if is_started:
        return Work(work[0], group, sender if receives else None)
    return group._ranks[sender[0]] if receives else None


def send(tensor, dst, group=None, tag=0):
    """To rank `dst`, which receives it by a call with the same tag, 0 to 32767."""
    return _message('send', lib.kn_group_send_with, tensor, dst, group, tag, False, False)


def recv(tensor, src=None, group=None, tag=0):
    """From rank `src`, by default from any. Returns the rank that sent it."""
    return _message('recv', lib.kn_group_receive_with, tensor, src, group, tag, False, True)


def isend(tensor, dst, group=None, tag=0):
    """send, only begun: returns its Work. It is on its way while other calls are made; a blocking send may last until
    it is received."""
    return _message('isend', lib.kn_group_send_with, tensor, dst, group, tag, True, False)


def irecv(tensor, src=None, group=None, tag=0):
    """recv, only begun: returns its Work."""
    return _message('irecv', lib.kn_group_receive_with, tensor, src, group, tag, True, True)


class P2POp:
    """A message of batch_isend_irecv: op is isend or irecv, and peer the other rank."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0):
        if op not in (isend, irecv):
            raise ValueError('P2POp: op is %r; it may be isend or irecv' % (op,))
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list):
    """Starts them all, on all ranks in any order; returns the list of their Work."""
    return [one.op(one.tensor, one.peer, one.group, one.tag) for one in p2p_op_list]
