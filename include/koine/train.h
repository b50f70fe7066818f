/* koine/train.h - the training loop with what one wants around it: progress, validation, early stopping, checkpoints,
 * history, plots, resume. Nothing here is needed by those who write their own loop (examples/loop_by_hand.c). */
#ifndef KOINE_TRAIN_H
#define KOINE_TRAIN_H

#include <koine/common.h>
#include <koine/data.h>
#include <koine/io.h>
#include <koine/module.h>
#include <koine/optim.h>

KN_BEGIN_DECLS

/* --- metrics: accumulated on the device, read once per report --------------------------------- *
 * One figure each; koine/device_log.h keeps many and reads them in one transfer. */

typedef struct kn_metric kn_metric;
KN_API kn_metric *kn_metric_accuracy(void); /* share of rows whose argmax over dimension 1 is the target class */
KN_API kn_metric *kn_metric_mean(void);     /* mean of the values given (a running loss), weighted by the batch size */
KN_API void kn_metric_free(kn_metric *metric);
KN_API void kn_metric_reset(kn_metric *metric);
/* output and target of one batch (kn_metric_mean: output a scalar, target NULL, weight the batch size). No wait. */
KN_API kn_status kn_metric_update(kn_metric *metric, kn_tensor *output, kn_tensor *target, int64_t weight);
KN_API kn_status kn_metric_compute(kn_metric *metric, double *value); /* waits for the device */

/* --- history ---------------------------------------------------------------------------------- *
 * A table of numbers with named columns: a row per epoch, or per step that was logged. */

typedef struct kn_history kn_history;
KN_API int kn_history_epochs(const kn_history *history); /* rows */
KN_API int kn_history_columns(const kn_history *history);
/* "epoch", "train_loss", "train_acc", "val_loss", "val_acc", "grad_norm", "lr" */
KN_API const char *kn_history_column(const kn_history *history, int column);
KN_API double kn_history_value(const kn_history *history, int epoch, int column);
KN_API kn_status kn_history_save_csv(const kn_history *history, const char *path);
/* .svg or .png, drawn by gnuplot; an error that says so when it is missing */
KN_API kn_status kn_history_save_plot(const kn_history *history, const char *path);
KN_API char *kn_history_table(const kn_history *history); /* text; the caller frees it with kn_free */

/* --- the trainer ------------------------------------------------------------------------------ *
 * A trainer is used by one thread at a time; several trainers may run in several threads, each with objects of its own.
 *
 * What it writes into `output`, each file whole or not at all:
 *
 *     checkpoint.safetensors   the module in its best epoch, for kn_module_load and PyTorch
 *     last.safetensors         after each epoch, all that the next one depends on: what `resume` goes on from
 *     history.csv, .svg        kn_trainer_history, after each epoch; the plot at the end
 *     steps.csv, .svg          kn_trainer_steps, likewise; histograms.csv
 *
 * One fit at a time writes into a directory: while one is running, in this process or another, kn_trainer_fit of a
 * second is KN_ERR_STATE. The lock is the operating system's (flock on the directory): it ends with the process,
 * however that ends, and leaves no file. File systems that cannot lock directories, some network ones, give no such
 * protection.
 *
 * Resuming. last.safetensors holds the module, its best epoch, the optimizer with its hyperparameters (the learning
 * rate in force among them), the generators, the figures so far, the states of callbacks that have one, and the
 * settings that decide the bits. With the same settings a run that ended in whatever way (its last epoch, an interrupt,
 * a kill) and is resumed gives the very bits of one that was never broken off; the epoch that was being trained begins
 * again.
 * - The optimizer's saved hyperparameters win over those that the new optimizer was made with; a difference is a
 * warning (kn_log, one line that names both values). Set another learning rate in on_fit_start, which is called after
 *   resuming.
 * - Another batch size, seed, shuffling, number of samples, device, dtype or number of devices than the run was saved
 *   with is used as given, and is a warning that names both: the results cannot be those of an unbroken run.
 * - A callback's state that the file lacks, or that no callback asks for, is a warning that names it.
 * - Another monitor, module, optimizer or set of columns is an error, and so is a file that is there and cannot be
 *   read, a link that leads nowhere included. Only where there is no such name does the run begin anew. */

/* The loss of a batch, a tensor of one element, from the module's outputs and any fields of the batch.
 *
 *     static kn_tensor *squared(kn_tensor *const *outputs, const kn_batch *batch, void *user)
 *     {
 *         (void)user;
 *         return kn_mse_loss(outputs[0], batch->target, KN_REDUCTION_MEAN);
 *     } */
typedef kn_tensor *(*kn_loss_function)(kn_tensor *const *outputs, const kn_batch *batch, void *user);

typedef enum kn_monitor_mode { KN_MONITOR_MIN = 0, KN_MONITOR_MAX } kn_monitor_mode;

typedef struct kn_trainer_params {
    kn_module *module; /* borrowed, as all here */
    kn_optim *optim;
    /* default NULL: "input". Names of the fields that the module gets, in the order of its inputs, and a final NULL:
     * KN_NAMES("tokens", "mask"); copied */
    const char *const *inputs;
    const char *target;    /* default NULL: "target". Name of the field that accuracy and cross entropy take; copied */
    kn_loss_function loss; /* default NULL: cross entropy of the first output and the target */
    void *loss_user;
    /* default true: also the columns train_acc and val_acc, of the first output. The targets are classes then (whole
     * numbers); with others, probabilities or values, kn_trainer_fit is KN_ERR_DTYPE before it trains */
    bool accuracy;
    int epochs;       /* default 10 */
    int patience;     /* default 5 epochs without improvement; 0: never stop early */
    double min_delta; /* default 0 */
    /* default "val_loss" (without validation data: "train_loss"). Or train_acc, val_acc, with log_grad_norm grad_norm;
     * any other name is refused when the trainer is made */
    const char *monitor;
    kn_monitor_mode mode; /* default min */
    const char *output;   /* the directory for the files above, made if need be; default NULL: nothing is written */
    bool resume; /* default false: go on from last.safetensors in `output`, with the very bits of an unbroken run */
    bool quiet;  /* default false: progress on stderr, a bar on a terminal, a line per epoch elsewhere */
    /* Figures of steps, kept on the device and fetched every `log_every` steps of an epoch, and at its last, in one
     * transfer that nothing waits for (default 0: never). They are the table kn_trainer_steps and, with `output`,
     * steps.csv and steps.svg: step (from the fit's beginning), epoch, loss and acc since the row before (in the same
     * epoch), lr, and with log_grad_norm grad_norm (the step's) and grad_norm.NAME of each parameter. The files are
     * written after each epoch and when the fit ends, however it ends. */
    int log_every;
    bool log_grad_norm; /* default false; true: also the mean per epoch as a column of the history */
    /* default 0; bins of the histograms of each parameter's gradient in the steps logged, from -log_range (default 1)
     * to log_range: histograms.csv, a row per parameter (its number in kn_module_parameters) */
    int log_histograms;
    double log_range;
    /* default false: SIGINT (Ctrl-C) and SIGTERM during fit end it cleanly after the step under way: the rows and the
     * plot are written, the best weights are in the module, last.safetensors is that of the last whole epoch, fit is
     * KN_ERR_INTERRUPTED. A second signal ends the process at once. A signal that the process ignores stays ignored;
     * system calls are restarted (SA_RESTART); the program's own handlers are back when fit returns. true: the
     * program's handlers stay */
    bool keep_interrupt;
} kn_trainer_params;
#define KN_TRAINER_DEFAULTS .accuracy = true, .epochs = 10, .patience = 5, .monitor = "val_loss", .log_range = 1
KN_API kn_trainer_params kn_trainer_params_init(void);

KN_API kn_trainer *kn_trainer_new_with(const kn_trainer_params *params);
#define kn_trainer_new(...) KN_CALL(kn_trainer_new_with(&(kn_trainer_params){KN_TRAINER_DEFAULTS, __VA_ARGS__}))
KN_API void kn_trainer_free(kn_trainer *trainer); /* NULL allowed */

/* Trains; `validation` may be NULL. At the end the best checkpoint's weights are in the module again. KN_OK also after
 * early stopping; KN_ERR_NUMERIC when the loss is NaN or infinite (names the epoch and step; the best weights so far
 * are in the module), KN_ERR_INTERRUPTED after SIGINT or SIGTERM (likewise; kn_trainer_signal tells which, and a
 * program that ends because of it exits with 128 plus its number, as shells expect), KN_ERR_STATE while another fit
 * writes into the same output. */
KN_API kn_status kn_trainer_fit(kn_trainer *trainer, kn_loader *train, kn_loader *validation);

/* Loss and accuracy over a loader, without gradients, in evaluation mode. accuracy may be NULL. */
KN_API kn_status kn_trainer_evaluate(kn_trainer *trainer, kn_loader *data, double *loss, double *accuracy);

KN_API const kn_history *kn_trainer_history(const kn_trainer *trainer); /* borrowed */
KN_API const kn_history *kn_trainer_steps(const kn_trainer *trainer);   /* of the steps logged (log_every); borrowed */
KN_API int kn_trainer_best_epoch(const kn_trainer *trainer);            /* from 1; 0 before there is one */
/* Epochs finished, and steps that the optimizer has made, since the run began: resuming goes on counting. From
 * on_fit_start on; after 0 a fit goes on with a resumed run. */
KN_API int kn_trainer_epoch(const kn_trainer *trainer);
KN_API int64_t kn_trainer_global_step(const kn_trainer *trainer);
KN_API int kn_trainer_signal(const kn_trainer *trainer); /* SIGINT or SIGTERM, which ended the last fit; 0: neither */
/* What the last fit wrote into its output folder: "history.csv, checkpoint.safetensors, last.safetensors, history.svg".
 * A file that could not be written is not among them: history.svg, say, where gnuplot is missing. Borrowed. */
KN_API const char *kn_trainer_files(kn_trainer *trainer);

/* Callbacks, in the order they were added; each NULL field is skipped. A status other than KN_OK ends fit with it.
 * `epoch` counts from 1, and so does `step`, which begins again with every epoch; kn_trainer_global_step counts on. */
typedef struct kn_callback {
    kn_status (*on_fit_start)(kn_trainer *trainer, void *user); /* after resuming */
    kn_status (*on_epoch_start)(kn_trainer *trainer, int epoch, void *user);
    /* Lightning's on_before_optimizer_step: after kn_backward, before kn_optim_step. The gradients are there (kn_grad),
     * to be looked at, clipped or changed; what is logged of them is as they were before. kn_trainer_global_step is the
     * number of steps before this one. loss is on the device: reading it waits */
    kn_status (*on_before_optimizer_step)(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user);
    kn_status (*on_step_end)(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user); /* likewise */
    /* Before last.safetensors is written: what it changes, the learning rate say, is what a resumed run begins with. */
    kn_status (*on_epoch_end)(kn_trainer *trainer, int epoch, const kn_history *history, void *user);
    kn_status (*on_fit_end)(kn_trainer *trainer, void *user);
    void *user;

    /* What the callback itself must remember from one epoch to the next, a counter, a schedule's place, for a resumed
     * run to be the same. `save` puts it into the empty `state`: tensors of any device (kn_tensor_file_put), and text
     * (kn_tensor_file_set_metadata). It is called in a scope, after on_epoch_end, and goes into last.safetensors.
     * `load` gets the same when a run is resumed, as host tensors, before on_fit_start; it is not called where there is
     * nothing saved. Both or none; with them `name`, by which the state is found: UTF-8 without a dot, no other
     * callback's of this trainer; it is copied. */
    const char *name;
    kn_status (*save)(kn_trainer *trainer, kn_tensor_file *state, void *user);
    kn_status (*load)(kn_trainer *trainer, const kn_tensor_file *state, void *user);
} kn_callback;
/* Copies the struct. Callbacks are added before the fit that they belong to: resuming looks for their states as it
 * begins. */
KN_API kn_status kn_trainer_add_callback(kn_trainer *trainer, const kn_callback *callback);
KN_API void kn_trainer_stop(kn_trainer *trainer); /* ends fit after the current epoch; callable from callbacks */

KN_END_DECLS

#endif
