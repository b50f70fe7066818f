"""torch.distributed.optim."""
from .._c import check, checked, ffi, lib
from .._groups import kept
from ..optim import LibraryOptimizer


class ZeroRedundancyOptimizer(LibraryOptimizer):
    """An optimizer of `optimizer_class` of which each rank keeps a part of the state: each steps some of the
    parameters, and after a step all ranks get all of them. Results are those of the optimizer alone. Gradients must be
    equal on all ranks, as DistributedDataParallel makes them; steps are calls that all ranks make.

    state_dict() and save() hold this rank's part; after consolidate_state_dict(to), which all ranks call, those of rank
    `to` hold the whole state, until the next step."""

    def __init__(self, params, optimizer_class, process_group=None, **defaults):
        group = kept(process_group, 'ZeroRedundancyOptimizer')
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, LibraryOptimizer)):
            raise TypeError('ZeroRedundancyOptimizer: optimizer_class is a class of koine.optim, not %r' % (
                optimizer_class,))
        whole = optimizer_class(params, **defaults)
        self.defaults, self._objects, self._others = whole.defaults, whole._objects, whole._others
        self._group, pointer = group, whole._h
        ffi.gc(pointer, None)  # kn_optim_zero frees it if it fails
        whole._h = None
        self._h = ffi.gc(checked(lib.kn_optim_zero(pointer, group._h)), lib.kn_optim_free)

    def consolidate_state_dict(self, to=0):
        check(lib.kn_optim_zero_consolidate(self._h, self._group.number_of(to)))
