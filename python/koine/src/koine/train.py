"""The trainer: a loop with progress, validation, early stopping, checkpoints, history, plots and resuming."""
from ._bind import Struct
from ._c import callback, check, checked, ffi, lib, owned_text, text
from ._tensor import borrowed


class Trainer:
    """trainer = Trainer(net, optimizer, epochs=5, output='run'); trainer.fit(train, validation).

    `loss`: a loss module (default: cross entropy), or a function loss(outputs, batch), of tuples of tensors. Further
    keywords are the fields of kn_trainer_params: patience, monitor, quiet, resume, log_every, clip_grad_norm, ..."""

    def __init__(self, module, optimizer, *, loss=None, epochs=10, scheduler=None, output=None, **options):
        self.module, self.optimizer, self._keep = module, optimizer, [loss, scheduler]
        struct = Struct(ffi.typeof('kn_trainer_params *'))
        unknown = [name for name in options if not struct.takes(name)]
        if unknown:
            raise TypeError('the trainer has no option %s; it has: %s' % (', '.join(unknown), ', '.join(struct.fields)))
        params = struct.fill({'epochs': epochs, 'output': output, **options}, self._keep)
        params.module, params.optim = module._h, optimizer._h
        if scheduler is not None:
            params.scheduler = scheduler._h
        if hasattr(loss, '_h'):
            params.loss_module = loss._h
        elif loss is not None:
            self._keep.append(callback('kn_tensor *(kn_tensor *const *, const kn_batch *, void *)', ffi.NULL,
                                       lambda outputs, batch, _: loss(self._outputs(outputs), _fields(batch))))
            params.loss = self._keep[-1]
        self._h = ffi.gc(checked(lib.kn_trainer_new_with(params)), lib.kn_trainer_free)

    def _outputs(self, outputs):
        return tuple(borrowed(outputs[i]) for i in range(lib.kn_module_output_count(self.module._h)))

    def add_callback(self, *, on_fit_start=None, on_epoch_start=None, on_before_optimizer_step=None, on_step_end=None,
                     on_epoch_end=None, on_fit_end=None):
        """Functions of the trainer and, in between, of epoch (from 1), step and loss:
        on_fit_start(trainer), on_epoch_start(trainer, epoch), on_step_end(trainer, epoch, step, loss),
        on_epoch_end(trainer, epoch, row of the history), on_fit_end(trainer)."""
        struct = ffi.new('kn_callback *')

        def bind(name, function, kind, convert):
            def called(*arguments):
                function(self, *convert(*arguments[1:-1]))
                return lib.KN_OK

            if function is not None:
                self._keep.append(callback(kind, lib.KN_ERR_STATE, called))
                setattr(struct, name, self._keep[-1])

        head = 'kn_status(kn_trainer *, '
        bind('on_fit_start', on_fit_start, head + 'void *)', lambda: ())
        bind('on_epoch_start', on_epoch_start, head + 'int, void *)', lambda epoch: (epoch,))
        for name, function in (('on_before_optimizer_step', on_before_optimizer_step), ('on_step_end', on_step_end)):
            bind(name, function, head + 'int, int64_t, kn_tensor *, void *)',
                 lambda epoch, step, loss: (epoch, step, borrowed(loss)))
        bind('on_epoch_end', on_epoch_end, head + 'int, const kn_history *, void *)',
             lambda epoch, history: (epoch, _rows(history)[-1]))
        bind('on_fit_end', on_fit_end, head + 'void *)', lambda: ())
        check(lib.kn_trainer_add_callback(self._h, struct))

    def fit(self, train, validation=None):
        """Trains; the module then has the weights of its best epoch. KeyboardInterrupt after Ctrl-C."""
        check(lib.kn_trainer_fit(self._h, train._h, ffi.NULL if validation is None else validation._h))
        return self

    def evaluate(self, data):
        """(loss, accuracy) over a loader, without gradients."""
        loss, accuracy = ffi.new('double *'), ffi.new('double *')
        check(lib.kn_trainer_evaluate(self._h, data._h, loss, accuracy))
        return loss[0], accuracy[0]

    def stop(self):
        """Ends fit after the current epoch."""
        lib.kn_trainer_stop(self._h)

    @property
    def history(self):
        """A dict for each epoch."""
        return _rows(lib.kn_trainer_history(self._h))

    @property
    def best_epoch(self):
        return lib.kn_trainer_best_epoch(self._h)

    def table(self):
        return owned_text(lib.kn_history_table(lib.kn_trainer_history(self._h)))


def _fields(batch):
    return tuple(borrowed(batch.fields[i]) for i in range(batch.num_fields))


def _rows(history):
    columns = [text(lib.kn_history_column(history, i)) for i in range(lib.kn_history_columns(history))]
    return [{name: lib.kn_history_value(history, row, i) for i, name in enumerate(columns)}
            for row in range(lib.kn_history_epochs(history))]
