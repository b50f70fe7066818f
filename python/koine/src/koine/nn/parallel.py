"""torch.nn.parallel: a module that all ranks of a group train, each with its part of the data; and SyncBatchNorm."""
import contextlib

from .._c import check, checked, ffi, lib
from .._dtypes import code_of
from .._groups import kept
from ._hooks import through_library
from ._layers import CLASSES
from ._life import Life, hand_over
from .module import Layer, Module

MIB = 1 << 20


class DistributedDataParallel(Layer):
    """Around a module that is the same on all ranks: all begin with rank 0's parameters and buffers, and a backward
    pass averages the gradients over the ranks, while it goes on. A call that all ranks make, as are its forward and
    backward passes. Parameters that a pass does not use count as zeros. compress: 'float16' or 'bfloat16', in which
    gradients are sent; check_every and parts: koine/distributed.h. PyTorch's other options have no effect."""

    _places = {'module': 'child'}

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True,
                 process_group=None, bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False,
                 gradient_as_bucket_view=False, static_graph=False, *, compress=None, check_every=0, parts=0):
        if not isinstance(module, Module):
            raise TypeError('DistributedDataParallel: a koine.nn.Module is needed, not %s' % type(module).__name__)
        if module._lazy_layers():
            raise RuntimeError('DistributedDataParallel: some layers have no parameters yet: call the module with a '
                               'sample first')
        group = kept(process_group, 'DistributedDataParallel')
        params = ffi.new('kn_distributed_params *', lib.kn_distributed_params_init())
        params.broadcast_buffers, params.check_every, params.parts = broadcast_buffers, check_every, parts
        if bucket_cap_mb is not None:
            params.bucket_bytes = int(bucket_cap_mb * MIB)
        if compress is not None:
            params.compress = code_of(compress)
        life = Life()
        pointer = hand_over(module, life, lambda inner: checked(lib.kn_nn_distributed_with(inner, group._h, params)))
        life.own(pointer)
        self._start(pointer, life)
        self._note_child('module', module)
        self.__dict__['process_group'] = group

    def forward(self, *inputs, **keywords):
        return through_library(self, self.module.forward, inputs, keywords)

    def _make_bare(self, made, memo):
        raise TypeError('DistributedDataParallel: it cannot be copied: copy its module, and wrap the copy')

    @contextlib.contextmanager
    def no_sync(self):
        """Inside, backward passes only add to this rank's gradients; the first one after it averages all of that."""
        guard = ffi.new('kn_no_sync_guard *', lib.kn_distributed_enter_no_sync(self._h))
        try:
            yield
        finally:
            lib.kn_distributed_leave_no_sync(guard)

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False, *,
             optimizer=None):
        """Around a loop in which ranks may have unequal numbers of batches: one that has no more answers the others.
        optimizer: it makes a step with each of theirs, which ZeroRedundancyOptimizer needs."""
        if not enable:
            yield
            return
        params = ffi.new('kn_join_params *', (divide_by_initial_world_size, throw_on_early_termination,
                                              optimizer._h if optimizer is not None else ffi.NULL))
        check(lib.kn_distributed_join_begin_with(self._h, params))
        try:
            yield
        except BaseException:
            lib.kn_distributed_join_end(self._h)
            raise
        check(lib.kn_distributed_join_end(self._h))

    def check(self):
        """Raises an error that names a rank whose parameters or buffers differ from those of most; for all ranks."""
        check(lib.kn_distributed_check(self._h))


_BATCH_NORMS = tuple(CLASSES['BatchNorm%dd' % n] for n in (1, 2, 3))
_BatchNorm = CLASSES['BatchNorm2d']


class SyncBatchNorm(Layer):
    """torch.nn.SyncBatchNorm: batch normalisation with the statistics of all ranks' batches together."""

    _places = _BatchNorm._places

    def __init__(self, num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True,
                 process_group=None, device=None, dtype=None):
        group = kept(process_group, 'SyncBatchNorm')
        _BatchNorm.__init__(self, num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        checked(lib.kn_convert_sync_batchnorm(self._h, group._h))
        self._note_group(group)

    __init__.line = _BatchNorm.__init__.line

    def _note_group(self, group):
        """For copies, which are made with the same arguments as this one."""
        if '_made_with' in self.__dict__:
            _, arguments, keywords = self._made_with
            self.__dict__['_made_with'] = SyncBatchNorm.__init__, arguments, {**keywords, 'process_group': group}

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """Makes all batch normalisations of the module, which it changes, such layers. Returns the module."""
        group = kept(process_group, 'convert_sync_batchnorm')
        checked(lib.kn_convert_sync_batchnorm(module._h, group._h))
        for one in module.modules():
            if isinstance(one, _BATCH_NORMS):
                one.__class__ = cls
                one._note_group(group)
        return module


CLASSES['SyncBatchNorm'] = SyncBatchNorm
