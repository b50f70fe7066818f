"""torch.optim.lr_scheduler."""
from .. import safetensors, serialization
from .._bind import Binding, parse
from .._c import callback, check, checked, ffi, lib, path, raise_pending
from .._dtypes import float64
from .._files import temporary_file
from .._tensor import tensor

SIGNATURES = {
    'ExponentialLR': ('kn_exponential_lr_with', 'optimizer, gamma, last_epoch=-1'),
    'StepLR': ('kn_step_lr_with', 'optimizer, step_size, gamma=0.1, last_epoch=-1'),
    'MultiStepLR': ('kn_multi_step_lr_with', 'optimizer, milestones, gamma=0.1, last_epoch=-1'),
    'ConstantLR': ('kn_constant_lr_with', 'optimizer, factor=0.3333333333333333, total_iters=5, last_epoch=-1'),
    'LinearLR': ('kn_linear_lr_with', 'optimizer, start_factor=0.3333333333333333, end_factor=1.0, total_iters=5, '
                 'last_epoch=-1'),
    'PolynomialLR': ('kn_polynomial_lr_with', 'optimizer, total_iters=5, power=1.0, last_epoch=-1'),
    'CosineAnnealingLR': ('kn_cosine_annealing_lr_with', 'optimizer, T_max, eta_min=0.0, last_epoch=-1'),
    'CosineAnnealingWarmRestarts': ('kn_cosine_annealing_warm_restarts_with',
                                    'optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1'),
    'CyclicLR': ('kn_cyclic_lr_with', 'optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, '
                 'mode="triangular", gamma=1.0, cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, '
                 'last_epoch=-1'),
    'OneCycleLR': ('kn_one_cycle_lr_with', 'optimizer, max_lr, total_steps=None, epochs: _=None, '
                   'steps_per_epoch: _=None, pct_start=0.3, anneal_strategy="cos", '
                   'cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0, '
                   'final_div_factor=10000.0, three_phase=False, last_epoch=-1'),
    'ReduceLROnPlateau': ('kn_reduce_lr_on_plateau_with', 'optimizer, mode="min", factor=0.1, patience=10, '
                          'threshold=0.0001, threshold_mode="rel", cooldown=0, min_lr=0, eps=1e-08'),
}
# PyTorch's words for fields that are bools: (the field, the word that is true).
_WORDS = {'mode="min"': ('mode_max', 'max', 'min'), 'threshold_mode="rel"': ('absolute', 'abs', 'rel'),
          'anneal_strategy="cos"': ('anneal_linearly', 'linear', 'cos')}


class LRScheduler:
    """All schedules. One of Python derives from this class, calls super().__init__(optimizer), and has get_lr(self),
    which returns the groups' rates at self.last_epoch. A loop of the program steps it: the trainer and other schedules
    take only the library's."""

    def __init__(self, optimizer, last_epoch=-1):
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for group in optimizer.param_groups:
            group.setdefault('initial_lr', group['lr'])
        self.base_lrs = [group['initial_lr'] for group in optimizer.param_groups]
        self.step()

    @property
    def _h(self):
        raise TypeError('%s is a schedule of Python: it is stepped by a loop of your own, not by the trainer or by '
                        'another schedule' % type(self).__name__)

    def get_lr(self):
        raise NotImplementedError('%s: a schedule needs get_lr' % type(self).__name__)

    def step(self, epoch=None):
        """To the next epoch, or to that one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, rate in zip(self.optimizer.param_groups, self.get_lr()):
            group['lr'] = rate
        self._last_lr = [group['lr'] for group in self.optimizer.param_groups]

    def get_last_lr(self):
        return self._last_lr

    def state_dict(self):
        """The attributes but for the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != 'optimizer'}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)

    def save(self, file):
        serialization.save(self.state_dict(), file)

    def load(self, file):
        self.load_state_dict(serialization.load(file))


_LRScheduler = LRScheduler


class _Library(LRScheduler):
    """The library's schedules."""

    _h = None

    def _keep(self, pointer, *others):
        self._h = ffi.gc(checked(pointer), lib.kn_lr_scheduler_free)
        self.optimizer, self._others = others[0], others  # which must outlive it
        raise_pending()

    def step(self, metrics=None, epoch=None):
        """ReduceLROnPlateau takes the metric. Others go to the next epoch, or to the one given first or by name, which
        of CosineAnnealingWarmRestarts may have a fraction."""
        epoch = metrics if epoch is None else epoch
        if lib.kn_lr_scheduler_takes_metric(self._h) and metrics is not None:
            check(lib.kn_lr_scheduler_step_metric(self._h, float(metrics)))
        elif epoch is not None:
            check(lib.kn_lr_scheduler_step_to(self._h, float(epoch)))
        else:
            check(lib.kn_lr_scheduler_step(self._h))
        raise_pending()

    @property
    def base_lrs(self):
        """The rates of the groups with which the schedule began."""
        return [group['initial_lr'] for group in self.optimizer.param_groups]

    @property
    def last_epoch(self):
        return lib.kn_lr_scheduler_last_epoch(self._h)

    def get_last_lr(self):
        groups = lib.kn_optim_num_groups(self._others[0]._h)
        return [lib.kn_lr_scheduler_last_lr(self._h, i) for i in range(groups)]

    def save(self, file):
        check(lib.kn_lr_scheduler_save(self._h, path(file)))

    def load(self, file):
        check(lib.kn_lr_scheduler_load(self._h, path(file)))

    def state_dict(self):
        """{'kind': the class, ...: numbers}. The rates themselves are in the optimizer's."""
        with temporary_file('state_dict') as file:
            self.save(file)
            tensors, kind = safetensors.load_both(file, 'koine', 'host')
        return {'kind': kind, **{name: one.tolist() for name, one in tensors.items()}}

    def load_state_dict(self, state_dict):
        """What state_dict() returned, of a schedule of the same class."""
        numbers = dict(state_dict)
        kind = numbers.pop('kind')
        with temporary_file('state_dict') as file:
            tensors = {name: tensor(value, dtype=float64, device='host') for name, value in numbers.items()}
            safetensors.save_file(tensors, file, {'koine': kind})
            self.load(file)


def _product(name, epochs, steps_per_epoch):
    if epochs is None or steps_per_epoch is None:
        raise ValueError('%s: total_steps is needed, or epochs and steps_per_epoch' % name)
    return epochs * steps_per_epoch


def _scheduler(name, c_name, line):
    signature, words, made = parse(line), [word for word in _WORDS if word in line], []

    def __init__(self, *arguments, **keywords):
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        values = dict(bound.arguments)
        if name == 'OneCycleLR' and values['total_steps'] is None:
            values['total_steps'] = _product('OneCycleLR', values['epochs'], values['steps_per_epoch'])
        c_line = line
        for word in words:
            field, true, false = _WORDS[word]
            given = values.pop(word.split('=')[0])
            if given not in (true, false):
                raise ValueError("%s: %s is '%s' or '%s', not %r" % (name, word.split('=')[0], false, true, given))
            values[field] = given == true
            c_line = c_line.replace(word, field + '=False')
        if not made:
            made.append(Binding(c_name, c_line))
        self._keep(made[0]((), values)[0], values['optimizer'])

    __init__.line = line
    return type(name, (_Library,), {'__init__': __init__, '__module__': 'koine.optim.lr_scheduler',
                                    '__doc__': 'torch.optim.lr_scheduler.%s.' % name})


globals().update({_name: _scheduler(_name, *_row) for _name, _row in SIGNATURES.items()})


def _by_function(name, c_name):
    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        functions = lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]

        def called(epoch, group, _):
            return float(functions[group if len(functions) > 1 else 0](epoch))

        function = callback('double(int64_t, int, void *)', float('nan'), called)
        params = ffi.new('kn_lr_params *', (last_epoch,))
        self._keep(getattr(lib, c_name)(optimizer._h, function, ffi.NULL, params), optimizer, function)

    __init__.line = 'optimizer, lr_lambda, last_epoch=-1'
    return type(name, (_Library,), {'__init__': __init__, '__module__': 'koine.optim.lr_scheduler',
                                    '__doc__': 'torch.optim.lr_scheduler.%s.' % name})


LambdaLR = _by_function('LambdaLR', 'kn_lambda_lr_with')
MultiplicativeLR = _by_function('MultiplicativeLR', 'kn_multiplicative_lr_with')


class _Composed(_Library):
    def _take(self, schedulers):
        """Their pointers: the library takes them over."""
        pointers = [one._h for one in schedulers]
        for one in schedulers:
            ffi.gc(one._h, None)
        return ffi.new('kn_lr_scheduler *[]', pointers)


class SequentialLR(_Composed):
    """One schedule after the other."""

    def __init__(self, optimizer, schedulers, milestones):
        self._keep(lib.kn_sequential_lr(optimizer._h, self._take(schedulers), len(schedulers), list(milestones)),
                   optimizer, schedulers)


class ChainedScheduler(_Composed):
    """All schedules in each epoch."""

    def __init__(self, schedulers, optimizer=None):
        self._keep(lib.kn_chained_scheduler(self._take(schedulers), len(schedulers)),
                   optimizer or schedulers[0]._others[0], schedulers)
