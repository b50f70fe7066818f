"""torch.optim.swa_utils: averages of a network over its training, and the schedule that goes with them."""
import copy
import itertools
import math

from .._c import check, lib
from .._dtypes import int64
from .._functions import zeros
from ..autograd import no_grad
from ..nn.module import Module
from .lr_scheduler import LRScheduler

# --- averages ---------------------------------------------------------------------------------------------------------


def get_ema_avg_fn(decay=0.999):
    """The exponential moving average: decay * averaged + (1 - decay) * current."""
    if not 0 <= decay <= 1:
        raise ValueError('get_ema_avg_fn: decay is from 0 to 1, not %r' % (decay,))

    def ema_update(averaged, current, num_averaged):
        return averaged * decay + current * (1 - decay)

    return ema_update


def get_swa_avg_fn():
    """The equal average of all updates."""
    def swa_update(averaged, current, num_averaged):
        return averaged + (current - averaged) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay=0.999):
    """The same as get_ema_avg_fn of lists of tensors, in place."""
    return _in_place(get_ema_avg_fn(decay), lambda num_averaged: 1 - decay)


def get_swa_multi_avg_fn():
    """The same as get_swa_avg_fn of lists of tensors, in place."""
    return _in_place(get_swa_avg_fn(), lambda num_averaged: 1 / (num_averaged + 1))


def _in_place(average, weight):
    """Floating tensors take one operation, with the weight of the current values."""
    def update(averaged_list, current_list, num_averaged):
        with no_grad():
            for averaged, current in zip(averaged_list, current_list):
                if averaged.is_floating_point():
                    averaged.lerp_(current, weight(num_averaged))
                else:
                    averaged.copy_(average(averaged, current, num_averaged))

    return update


class AveragedModel(Module):
    """`module` is a copy of the model, whose parameters are the average of what update_parameters was given: an equal
    one, or that of avg_fn(averaged, current, num_averaged) or of multi_avg_fn, which gets lists and changes the first.
    Buffers are the last ones, or averaged likewise with use_buffers=True."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError('AveragedModel: avg_fn and multi_avg_fn exclude each other')
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer('n_averaged', zeros((), dtype=int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers
        self._count = None  # (version of n_averaged, its value), which saves reading it from the device

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """One more set of values."""
        averaged, current = self._values(self.module), self._values(model)
        current = [one.to(mine.device) for one, mine in zip(current, averaged)]
        count = self._number()
        with no_grad():
            if count == 0:
                _copy(averaged, current)
            elif self.avg_fn is not None:
                _copy(averaged, [self.avg_fn(one, other, count) for one, other in zip(averaged, current)])
            else:
                (self.multi_avg_fn or get_swa_multi_avg_fn())(averaged, current, count)
            if not self.use_buffers:
                _copy(self.module.buffers(), model.buffers())
            self.n_averaged += 1
        self._count = self.n_averaged._version, count + 1

    def _values(self, model):
        buffers = model.buffers() if self.use_buffers else ()
        return [one.detach() for one in itertools.chain(model.parameters(), buffers)]

    def _number(self):
        version = self.n_averaged._version
        return self._count[1] if self._count is not None and self._count[0] == version else int(self.n_averaged)


def _copy(to, tensors):
    for one, other in zip(to, tensors):
        one.copy_(other)


def update_bn(loader, model, device=None):
    """Computes the running statistics of batch normalisation anew, as equal averages over the batches of a DataLoader,
    which brings them to its own device. Averaged parameters need this."""
    check(lib.kn_update_bn(loader._h, model._h))


# --- the schedule -----------------------------------------------------------------------------------------------------


class SWALR(LRScheduler):
    """Goes from the learning rates that there are to swa_lr, a number or one for each group, in anneal_epochs steps.
    Other schedules may change the rates before."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy='cos', last_epoch=-1):
        groups = len(optimizer.param_groups)
        self.swa_lrs = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * groups
        if len(self.swa_lrs) != groups:
            raise ValueError('SWALR: swa_lr has %d numbers for %d groups' % (len(self.swa_lrs), groups))
        if anneal_strategy not in ('cos', 'linear'):
            raise ValueError("SWALR: anneal_strategy is 'cos' or 'linear', not %r" % (anneal_strategy,))
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError('SWALR: anneal_epochs is a number of 0 or more, not %r' % (anneal_epochs,))
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        step = max(self.last_epoch, 1) if self.anneal_epochs == 0 else self.last_epoch
        before, now = self._share(step - 1), self._share(step)
        return [swa_lr * now + (swa_lr if before == 1 else (group['lr'] - before * swa_lr) / (1 - before)) * (1 - now)
                for group, swa_lr in zip(self.optimizer.param_groups, self.swa_lrs)]

    def _share(self, step):
        """Of swa_lr in the rate."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self.anneal_strategy == 'linear' else (1 - math.cos(math.pi * t)) / 2
