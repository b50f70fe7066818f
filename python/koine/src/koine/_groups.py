"""Groups of processes."""
import atexit
import datetime
import sys

from ._c import check, checked, encoded, ffi, lib, text

_BACKENDS = (None, 'mpi', 'local')
_default = []  # the group of all processes, while there is one
_kept = []  # to the end of the program: groups of modules and optimizers, which the library has only borrowed


class ProcessGroup:
    """A group as init_process_group and new_group make them."""

    def __init__(self, pointer, ranks=None):
        self._h = ffi.gc(pointer, lib.kn_group_free)
        self._ranks = tuple(range(self.size())) if ranks is None else tuple(ranks)

    def __deepcopy__(self, memo):
        return self

    def rank(self):
        """Of this process, in this group."""
        return lib.kn_group_rank(self._h)

    def size(self):
        return lib.kn_group_size(self._h)

    def name(self):
        """Of the back end."""
        return text(lib.kn_group_backend(self._h))

    def host(self, rank):
        """The name of the host of a rank of this group."""
        return text(checked(lib.kn_group_host(self._h, rank)))

    def waited(self):
        """Seconds that calls have spent waiting for other ranks and exchanging values with them."""
        return lib.kn_group_waited(self._h)

    def number_of(self, rank):
        """In this group, of a rank of all processes."""
        if rank not in self._ranks:
            raise ValueError('rank %s is not in this group, whose ranks are %s' % (rank, _listed(self._ranks)))
        return self._ranks.index(rank)


class _Elsewhere:
    """What new_group returns on a rank that is not in the group."""

    def __init__(self, ranks):
        self._ranks = tuple(ranks)


def _listed(ranks):
    return ', '.join(map(str, ranks))


def group_of(group, call):
    """That one, or by default the group of all processes."""
    if group is None:
        if not _default:
            raise ValueError('%s: there is no group yet: call init_process_group first' % call)
        return _default[0]
    if isinstance(group, _Elsewhere):
        raise ValueError('%s: this process is not in the group, whose ranks are %s' % (call, _listed(group._ranks)))
    if not isinstance(group, ProcessGroup):
        raise TypeError('%s: a ProcessGroup is needed, not %s' % (call, type(group).__name__))
    return group


def kept(group, call):
    """group_of, for what is made with the group."""
    group = group_of(group, call)
    if group not in _kept:
        _kept.append(group)
    return group


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, *, lost_after=10.0,
                       check_calls=True):
    """Opens the group of all processes that the launcher started together: over MPI, or of this one alone ('local')
    where there is no launcher. timeout: seconds, or a timedelta, until a call that waits for other ranks fails (600);
    lost_after: seconds of silence after which a rank counts as lost; check_calls: compare what the ranks are about to
    do. The launcher decides how many ranks there are; world_size and rank, if given, must be what it says."""
    if _default:
        raise ValueError('init_process_group: there is a group already: call destroy_process_group first')
    if backend not in _BACKENDS:
        raise ValueError("init_process_group: the back ends are 'mpi' and 'local', not %r: start the program with "
                         "mpirun, and leave out the back end" % (backend,))
    if init_method not in (None, 'env://'):
        raise ValueError('init_process_group: the launcher brings the processes together: leave out init_method')
    params = ffi.new('kn_group_params *', lib.kn_group_params_init())
    name = ffi.new('char[]', encoded(backend)) if backend else ffi.NULL
    params.backend, params.lost_after, params.check_calls = name, lost_after, check_calls
    if timeout is not None:
        params.timeout = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
    group = ProcessGroup(checked(lib.kn_group_open_with(params)))
    for what, given, found in (('world_size', world_size, group.size()), ('rank', rank, group.rank())):
        if given not in (-1, found):
            raise ValueError('init_process_group: %s is %d, but the launcher says %d: leave it out' % (
                what, given, found))
    _default.append(group)


def destroy_process_group(group=None):
    """Gives up a group, by default that of all processes. One that modules or optimizers were made with goes on for
    these to the end of the program."""
    if group is None or group in _default:
        _default.clear()


@atexit.register
def _end():
    """A program that ends with an error leaves its group open: to the launcher that is a failure, and it ends the
    other processes, too."""
    for one in set(_kept + _default):
        if getattr(sys, 'last_type', None) is None:
            ffi.release(one._h)
        else:
            ffi.gc(one._h, None)


def new_group(ranks=None):
    """A group of some ranks of all processes, by default of all, in the order of `ranks`. All processes call it; those
    that are not in it get an object that no call takes."""
    world = group_of(None, 'new_group')
    ranks = list(range(world.size()) if ranks is None else ranks)
    if len(set(ranks)) != len(ranks):
        raise ValueError('new_group: a rank is listed twice: %s' % _listed(ranks))
    for one in ranks:
        world.number_of(one)
    mine = world.rank()
    part = ffi.new('kn_group **')
    check(lib.kn_group_split(world._h, 0 if mine in ranks else -1, ranks.index(mine) if mine in ranks else 0, part))
    return ProcessGroup(part[0], ranks) if mine in ranks else _Elsewhere(ranks)


# --- what is known of a group -----------------------------------------------------------------------------------------


def is_available():
    """True: groups of one process there are always; is_mpi_available() tells of others."""
    return True


def is_mpi_available():
    """Is there the part of the library that talks to MPI?"""
    return bool(lib.kn_group_backend_is_available(b'mpi', ffi.NULL))


def is_initialized():
    return bool(_default)


def get_rank(group=None):
    """-1 for a group that this process is not in."""
    return -1 if isinstance(group, _Elsewhere) else group_of(group, 'get_rank').rank()


def get_world_size(group=None):
    return -1 if isinstance(group, _Elsewhere) else group_of(group, 'get_world_size').size()


def get_node_local_rank(fallback_rank=None):
    """Among the processes of this host: choose the device by it."""
    if fallback_rank is not None and not _default:
        return fallback_rank
    return lib.kn_group_local_rank(group_of(None, 'get_node_local_rank')._h)


def get_backend(group=None):
    return group_of(group, 'get_backend').name()


def get_process_group_ranks(group=None):
    """Their numbers among all processes."""
    return list((group if isinstance(group, _Elsewhere) else group_of(group, 'get_process_group_ranks'))._ranks)


def get_group_rank(group, global_rank):
    """The number in the group of a rank of all processes."""
    return group_of(group, 'get_group_rank').number_of(global_rank)
