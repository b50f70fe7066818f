/* koine/train.h - the training loop with what one wants around it: progress, validation, early stopping, checkpoints,
 * history, plots, resume. Nothing here is needed by those who write their own loop (examples/loop_by_hand.c). */
#ifndef KOINE_TRAIN_H
#define KOINE_TRAIN_H

#include <koine/common.h>
#include <koine/data.h>
#include <koine/nn.h>
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

/* --- the trainer ------------------------------------------------------------------------------ */

typedef kn_tensor *(*kn_loss_function)(kn_tensor *output, kn_tensor *target, void *user);

typedef enum kn_monitor_mode { KN_MONITOR_MIN = 0, KN_MONITOR_MAX } kn_monitor_mode;

typedef struct kn_trainer_params {
    kn_module *module; /* borrowed, as all here */
    kn_optim *optim;
    kn_loss_function loss; /* default NULL: cross entropy */
    void *loss_user;
    bool accuracy;        /* default true: also the columns train_acc and val_acc */
    int epochs;           /* default 10 */
    int patience;         /* default 5 epochs without improvement; 0: never stop early */
    double min_delta;     /* default 0 */
    const char *monitor;  /* default "val_loss" (without validation data: "train_loss") */
    kn_monitor_mode mode; /* default min */
    const char *output;   /* directory for history.csv, checkpoint.safetensors, last.safetensors and the plot; default
                             NULL: nothing is written */
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
    bool keep_interrupt; /* default false: the trainer catches SIGINT during fit and ends the epoch cleanly */
} kn_trainer_params;
#define KN_TRAINER_DEFAULTS .accuracy = true, .epochs = 10, .patience = 5, .monitor = "val_loss", .log_range = 1
KN_API kn_trainer_params kn_trainer_params_init(void);

KN_API kn_status kn_trainer_new_with(kn_trainer **trainer, const kn_trainer_params *params);
#define kn_trainer_new(trainer, ...)                                                                                   \
    KN_CALL(kn_trainer_new_with(trainer, &(kn_trainer_params){KN_TRAINER_DEFAULTS, __VA_ARGS__}))
KN_API void kn_trainer_free(kn_trainer *trainer); /* NULL allowed */

/* Trains; `validation` may be NULL. At the end the best checkpoint's weights are in the module again. KN_OK also after
 * early stopping; KN_ERR_NUMERIC when the loss is NaN or infinite (names the epoch and step; the best weights so far
 * are in the module), KN_ERR_INTERRUPTED after Ctrl-C (likewise). */
KN_API kn_status kn_trainer_fit(kn_trainer *trainer, kn_loader *train, kn_loader *validation);

/* Loss and accuracy over a loader, without gradients, in evaluation mode. accuracy may be NULL. */
KN_API kn_status kn_trainer_evaluate(kn_trainer *trainer, kn_loader *data, double *loss, double *accuracy);

KN_API const kn_history *kn_trainer_history(const kn_trainer *trainer); /* borrowed */
KN_API const kn_history *kn_trainer_steps(const kn_trainer *trainer);   /* of the steps logged (log_every); borrowed */
KN_API int kn_trainer_best_epoch(const kn_trainer *trainer);            /* from 1; 0 before there is one */

/* Callbacks, in the order they were added; each NULL field is skipped. A status other than KN_OK ends fit with it. */
typedef struct kn_callback {
    kn_status (*on_fit_start)(kn_trainer *trainer, void *user);
    kn_status (*on_epoch_start)(kn_trainer *trainer, int epoch, void *user);
    /* loss is on the device: reading it waits */
    kn_status (*on_step_end)(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user);
    kn_status (*on_epoch_end)(kn_trainer *trainer, int epoch, const kn_history *history, void *user);
    kn_status (*on_fit_end)(kn_trainer *trainer, void *user);
    void *user;
} kn_callback;
KN_API kn_status kn_trainer_add_callback(kn_trainer *trainer, const kn_callback *callback);
KN_API void kn_trainer_stop(kn_trainer *trainer); /* ends fit after the current epoch; callable from callbacks */

KN_END_DECLS

#endif
