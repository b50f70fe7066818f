/* koine/train.h - a training loop with progress, validation, early stopping, checkpoints, history, plots and resuming.
 * Optional: examples/loop_by_hand.c trains without it. */
#ifndef KOINE_TRAIN_H
#define KOINE_TRAIN_H

#include <koine/common.h>
#include <koine/data.h>
#include <koine/grad_scaler.h>
#include <koine/io.h>
#include <koine/lr_scheduler.h>
#include <koine/metrics.h>
#include <koine/module.h>
#include <koine/optim.h>

KN_BEGIN_DECLS

/* --- history ---------------------------------------------------------------------------------- *
 * A table of numbers with named columns: one row per epoch or logged step. */

typedef struct kn_history kn_history;
KN_API int kn_history_epochs(const kn_history *history); /* rows */
KN_API int kn_history_columns(const kn_history *history);
/* "epoch", "train_loss", "train_acc" and those of other metrics, "val_loss", "val_acc", ..., "grad_norm", "lr" */
KN_API const char *kn_history_column(const kn_history *history, int column);
KN_API double kn_history_value(const kn_history *history, int epoch, int column);
KN_API kn_status kn_history_save_csv(const kn_history *history, const char *path);
/* .svg or .png, drawn by gnuplot; KN_ERR_IO names the package if it is missing */
KN_API kn_status kn_history_save_plot(const kn_history *history, const char *path);
KN_API char *kn_history_table(const kn_history *history); /* text; the caller frees it with kn_free */

/* --- the trainer ------------------------------------------------------------------------------ *
 * A trainer is used by one thread at a time; several trainers may run in several threads if they share no objects.
 *
 * Files in the directory `output`, each written atomically:
 *
 *     checkpoint.safetensors   the module after its best epoch, for kn_module_load and PyTorch
 *     last.safetensors         the complete state after each epoch, from which `resume` continues
 *     history.csv, .svg        kn_trainer_history; the table after each epoch, the plot at the end
 *     steps.csv, .svg          kn_trainer_steps, likewise; histograms.csv
 *
 * Only one fit may write to a directory: while it runs, in this process or another, a second kn_trainer_fit is
 * KN_ERR_STATE. The lock is the operating system's (flock on the directory): it ends with the process, however that
 * ends, and leaves no file. File systems that cannot lock directories, such as some network file systems, do not have
 * this protection.
 *
 * Resuming. last.safetensors holds the module, its best epoch, the optimizer with its hyperparameters (including the
 * current learning rate), the scale of gradients, the generators, the figures so far, the states of callbacks, and the
 * settings that affect results. With the same settings, a run that ended in any way (completion, interrupt, kill) and
 * is resumed gives the same bits as an uninterrupted one; an unfinished epoch is repeated.
 * - The optimizer's saved hyperparameters override those of the new optimizer; a difference logs a warning with both
 *   values. To change the learning rate, set it in on_fit_start, which is called after resuming.
 * - A different batch size, seed, shuffling, number of samples, device, dtype or number of devices or ranks is used as
 *   given, and logs a warning with both values: the results differ from those of an uninterrupted run.
 * - A callback's state that is missing from the file, or that no callback loads, logs a warning.
 * - A different monitor, module, optimizer or set of columns is an error, as is an existing file that cannot be read
 *   (including a dangling symbolic link). If there is no file, the run starts from the beginning. */

/* Several ranks (koine/group.h). If `module` was made by kn_nn_distributed, all ranks of its group train together: each
 * makes the same trainer and the same calls.
 * - Data. Every rank has a loader of the same data with the same seed, and gets a part of each epoch's order, whatever
 *   the sampler: for training as torch's DistributedSampler (parts are lengthened to be equal), for evaluation without
 *   a sample twice. batch_size is that of a rank. A loader with a kn_distributed_sampler is used as it is.
 * - A module with `parts` needs .accumulate = parts / ranks, and whole steps; then training gives the same bits on any
 *   number of ranks: parts are whole batches of the order.
 * - Figures are those of all data on all ranks, and so are kn_trainer_evaluate and kn_trainer_measure, which all ranks
 *   call. They are added up once per epoch, and in rows of steps (log_every), for which the ranks wait.
 * - Buffers (running means) are rank 0's when an epoch ends.
 * - Rank 0 writes the files and the progress, and the states of its callbacks. To resume, all ranks read
 *   last.safetensors, so `output` must be a folder that all see. It holds the generators of all ranks: the same number
 *   of ranks gives the same bits.
 * - Callbacks are called on all ranks. A signal or kn_trainer_stop on one rank ends the fit on all, at the same step or
 *   epoch. Any error on one rank is returned by kn_trainer_fit on all, with the name of the rank; settings that must be
 *   alike but are not are such an error, KN_ERR_ARGUMENT, before training. (With .check_calls = false of the group,
 *   others find an error only when their calls time out.)
 * - A rank whose own work takes much longer than the others' is told by rank 0 after the epoch. */

/* Returns the loss of a batch, a tensor of one element, from the module's outputs and any fields of the batch.
 *
 *     static kn_tensor *squared(kn_tensor *const *outputs, const kn_batch *batch, void *user)
 *     {
 *         (void)user;
 *         return kn_mse_loss(outputs[0], batch->target, KN_REDUCTION_MEAN);
 *     } */
typedef kn_tensor *(*kn_loss_function)(kn_tensor *const *outputs, const kn_batch *batch, void *user);

/* A metric (koine/metrics.h) and its name in the history: letters, digits, "_" and "-". */
typedef struct kn_named_metric {
    const char *name;
    const kn_metric *metric;
} kn_named_metric;
#define KN_METRICS(...) ((const kn_named_metric[]){__VA_ARGS__, {NULL, NULL}})

typedef enum kn_monitor_mode { KN_MONITOR_MIN = 0, KN_MONITOR_MAX } kn_monitor_mode;

typedef struct kn_trainer_params {
    kn_module *module; /* borrowed, like all objects here; the trainer is freed before a group's module */
    kn_optim *optim;
    /* default NULL: "input". Names of the fields that are the module's inputs, in order, NULL-terminated:
     * KN_NAMES("tokens", "mask"); copied */
    const char *const *inputs;
    const char *target;    /* default NULL: "target". Name of the field used by accuracy and cross entropy; copied */
    kn_loss_function loss; /* default NULL: cross entropy of the first output and the target */
    void *loss_user;
    /* default NULL; or instead of `loss` a module (koine/nn/loss.h). Its last input is the target, those before it the
     * first outputs of `module`. Losses without a target, or with it elsewhere, need a loss function */
    kn_module *loss_module;
    /* default true: the metric kn_metric_accuracy() named "acc", before those of `metrics` */
    bool accuracy;
    /* default NULL: no others. Each is computed from the first output and the target, over each epoch, and is the
     * columns train_NAME and val_NAME of the history, NAME of the steps and of the progress bar; at most 15, of one
     * value each:
     *
     *     .metrics = KN_METRICS({"f1", f1}, {"top5", top5})
     *
     * Their parameters are copied: the objects themselves are neither updated nor needed later. AUROC has no value in
     * the middle of an epoch. For metrics of classes the targets must be integers: for others, such as probabilities,
     * kn_trainer_fit is KN_ERR_DTYPE before training */
    const kn_named_metric *metrics;
    /* default KN_F32: as the module computes. KN_F16, KN_BF16: modules and losses are applied under autocast
     * (koine/amp.h), and the parameters stay float32. With KN_F16 gradients are scaled by `grad_scaler`, or, if it is
     * NULL, by one with the default parameters, new for each fit. Its state is part of last.safetensors. Callbacks,
     * clipping and logged norms have the unscaled gradients; steps that it skips count as steps, and their infinite
     * norms are left out of the mean */
    kn_dtype precision;
    kn_grad_scaler *grad_scaler; /* default NULL; with another precision it scales as well */
    int epochs;                  /* default 10 */
    int patience;                /* default 5 epochs without improvement; 0: never stop early */
    double min_delta;            /* default 0 */
    /* default "val_loss" (without validation data: "train_loss"). Or train_NAME, val_NAME of a metric ("val_acc") or,
     * with log_grad_norm, grad_norm; kn_trainer_new rejects other names */
    const char *monitor;
    kn_monitor_mode mode; /* default min */
    const char *output;   /* the directory for the files above, created if missing; default NULL: no files */
    bool resume;          /* default false; true: continue from last.safetensors in `output` */
    bool quiet;           /* default false: progress on stderr, a bar on a terminal, else a line per epoch */
    /* Statistics of steps, kept on the device and read every `log_every` steps of an epoch, and at its last, in one
     * asynchronous transfer (default 0: never). They form the table kn_trainer_steps and, with `output`, steps.csv and
     * steps.svg: step (counted from the start of the fit), epoch, loss and the metrics since the last row of the epoch,
     * lr, and with log_grad_norm grad_norm (of the last step) and grad_norm.NAME of each parameter. The files are
     * written after each epoch and whenever the fit ends. */
    int log_every;
    bool log_grad_norm; /* default false; true: also the mean per epoch as a column of the history */
    /* default 0; number of bins of histograms of each parameter's gradient in the logged steps, from -log_range
     * (default 1) to log_range: histograms.csv, a row per parameter (its index in kn_module_parameters) */
    int log_histograms;
    double log_range;
    /* default false: SIGINT (Ctrl-C) and SIGTERM end fit cleanly after the current step: the tables and plots are
     * written, the module has its best weights, last.safetensors is that of the last complete epoch, and fit returns
     * KN_ERR_INTERRUPTED. A second signal ends the process at once. Ignored signals stay ignored; system calls are
     * restarted (SA_RESTART); the program's own handlers are restored when fit returns. true: the program's handlers
     * stay */
    bool keep_interrupt;
    /* default NULL; a schedule of the optimizer, stepped after each epoch (kn_reduce_lr_on_plateau with the monitored
     * figure) or, with scheduler_per_step, after each step of the optimizer. Its state is part of last.safetensors */
    kn_lr_scheduler *scheduler;
    bool scheduler_per_step; /* default false */
    /* default 1; n: gradients of n batches are added up, each loss divided by n, for one step of the optimizer (at the
     * end of an epoch of what there is). The callbacks around steps are called for these steps only, and norms and
     * histograms are those of these steps */
    int accumulate;
    double clip_grad_norm; /* default 0: none; else kn_clip_grad_norm_ before each step and on_before_optimizer_step */
} kn_trainer_params;
#define KN_TRAINER_DEFAULTS                                                                                            \
    .accuracy = true, .epochs = 10, .patience = 5, .monitor = "val_loss", .log_range = 1, .accumulate = 1,             \
    .precision = KN_F32
KN_API kn_trainer_params kn_trainer_params_init(void);

KN_API kn_trainer *kn_trainer_new_with(const kn_trainer_params *params);
#define kn_trainer_new(...) KN_CALL(kn_trainer_new_with(&(kn_trainer_params){KN_TRAINER_DEFAULTS, __VA_ARGS__}))
KN_API void kn_trainer_free(kn_trainer *trainer); /* NULL allowed */

/* Trains; `validation` may be NULL. At the end the module has the weights of its best epoch. KN_OK also after early
 * stopping. KN_ERR_NUMERIC if the loss is NaN or infinite (the message names the epoch and step) and KN_ERR_INTERRUPTED
 * after SIGINT or SIGTERM, both with the best weights so far in the module; kn_trainer_signal returns the signal, and a
 * program that exits because of it should return 128 plus its number, as shells expect. KN_ERR_STATE while another fit
 * writes to the same directory. */
KN_API kn_status kn_trainer_fit(kn_trainer *trainer, kn_loader *train, kn_loader *validation);

/* Loss and accuracy over a loader, without gradients, in evaluation mode. accuracy may be NULL. */
KN_API kn_status kn_trainer_evaluate(kn_trainer *trainer, kn_loader *data, double *loss, double *accuracy);
/* Likewise, updates metrics with all of a loader's batches: kn_trainer_measure(trainer, test, &confusion, 1). They are
 * not reset before. */
KN_API kn_status kn_trainer_measure(kn_trainer *trainer, kn_loader *data, kn_metric *const *metrics, int num_metrics);

KN_API const kn_history *kn_trainer_history(const kn_trainer *trainer); /* borrowed */
KN_API const kn_history *kn_trainer_steps(const kn_trainer *trainer);   /* of logged steps (log_every); borrowed */
KN_API int kn_trainer_best_epoch(const kn_trainer *trainer);            /* from 1; 0 if there is none yet */
/* Completed epochs, and optimizer steps, since the start of the run, including those before it was resumed. Valid from
 * on_fit_start on, where an epoch above 0 means a resumed run. */
KN_API int kn_trainer_epoch(const kn_trainer *trainer);
KN_API int64_t kn_trainer_global_step(const kn_trainer *trainer);
KN_API int kn_trainer_signal(const kn_trainer *trainer); /* SIGINT or SIGTERM if it ended the last fit, else 0 */
/* The files that the last fit wrote: "history.csv, checkpoint.safetensors, last.safetensors, history.svg". Files that
 * could not be written are missing, such as history.svg without gnuplot. Borrowed. */
KN_API const char *kn_trainer_files(kn_trainer *trainer);

/* Callbacks are called in the order in which they were added; NULL fields are skipped. A status other than KN_OK ends
 * fit, which returns it. `epoch` and `step` count from 1, `step` in each epoch; kn_trainer_global_step counts all
 * steps. */
typedef struct kn_callback {
    kn_status (*on_fit_start)(kn_trainer *trainer, void *user); /* after resuming */
    kn_status (*on_epoch_start)(kn_trainer *trainer, int epoch, void *user);
    /* Lightning's on_before_optimizer_step: after kn_backward, before kn_optim_step. The gradients (kn_grad) may be
     * read, clipped or changed; logged gradient norms are those before the change. kn_trainer_global_step does not yet
     * include this step. loss is on the device: reading it waits */
    kn_status (*on_before_optimizer_step)(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user);
    kn_status (*on_step_end)(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user); /* likewise */
    /* Called before last.safetensors is written, so that a resumed run starts with its changes, such as the learning
     * rate. */
    kn_status (*on_epoch_end)(kn_trainer *trainer, int epoch, const kn_history *history, void *user);
    kn_status (*on_fit_end)(kn_trainer *trainer, void *user);
    void *user;

    /* The callback's own state between epochs, such as a counter or the position in a schedule, so that a resumed run
     * gives the same results. `save` stores it in the empty `state`, as tensors of any device (kn_tensor_file_put) and
     * text (kn_tensor_file_set_metadata), which becomes part of last.safetensors. It is called in a scope, after
     * on_epoch_end. `load` receives that state, as host tensors, when a run is resumed, before on_fit_start; it is not
     * called if nothing was saved. Set both or neither, and with them `name`, which identifies the state: UTF-8,
     * without dots, unique in the trainer; copied. */
    const char *name;
    kn_status (*save)(kn_trainer *trainer, kn_tensor_file *state, void *user);
    kn_status (*load)(kn_trainer *trainer, const kn_tensor_file *state, void *user);
} kn_callback;
/* Copies the struct. Add callbacks before the fit, which loads their states at its start. */
KN_API kn_status kn_trainer_add_callback(kn_trainer *trainer, const kn_callback *callback);
KN_API void kn_trainer_stop(kn_trainer *trainer); /* ends fit after the current epoch; callable from callbacks */

KN_END_DECLS

#endif
