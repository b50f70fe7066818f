/* train/trainer.h - internals of the trainer. */
#pragma once

#include <koine/device_log.h>
#include <koine/distributed.h>
#include <koine/grad_scaler.h>
#include <koine/train.h>

#include "base/directory_lock.h"
#include "base/error.h"
#include "nn/tensor_list.h"
#include "train/history.h"
#include "train/metric.h"
#include "train/progress.h"

/* A setting that affects the results bit for bit: saved in last.safetensors and compared on resuming. */
#define KN_MAX_SETTINGS 28
#define KN_SETTING_TEXT 128
typedef struct kn_setting {
    const char *name;
    char value[KN_SETTING_TEXT];
    bool is_optimizer; /* a hyperparameter: resuming uses the saved value; other settings use this run's */
} kn_setting;
typedef struct kn_settings {
    kn_setting all[KN_MAX_SETTINGS];
    int count;
} kn_settings;
#define KN_LOSS_INPUTS 8   /* maximum number of a loss module's */
#define KN_TRAINER_FILES 8 /* maximum number: save.c */

/* A metric of the history, and its entries in the two logs. */
typedef struct kn_trainer_metric {
    char *name;
    kn_metric_spec spec;
    int logged, evaluated;
} kn_trainer_metric;

struct kn_trainer {
    kn_trainer_params params;    /* monitor, output, inputs and target are the trainer's own copies */
    int num_inputs, num_outputs; /* of the module */
    kn_tensor **tensors;         /* scratch for inputs and outputs while a batch is applied */
    kn_callback *callbacks;      /* their names are copies too */
    int num_callbacks, callback_capacity;
    kn_trainer_metric metrics[KN_TRAINER_METRICS]; /* accuracy, if wanted, is the first */
    int num_metrics;
    kn_grad_scaler *scaler; /* NULL: none; the trainer's own unless it is that of params */

    /* Running figures of the epoch, on the device; those of an evaluation are separate, because a callback may run one
     * in the middle of an epoch. Entry numbers are -1 for figures that are not wanted. */
    kn_device_log *log, *evaluation;
    int log_loss, log_norm, log_histograms; /* histograms: the first parameter's */
    int evaluation_loss;

    kn_history history;
    kn_history steps, histograms; /* of logged steps */
    kn_progress progress;
    bool is_fitting, stop;
    int signal; /* the signal that ended the last fit; 0: none */
    int lock;   /* lock on the output directory, while fitting */

    /* Progress of the fit, for early stopping and resuming. */
    kn_settings settings;
    int epoch;           /* finished so far */
    int64_t global_step; /* steps of the optimizer so far */
    int best_epoch;      /* from 1; 0: none */
    double best_value;   /* of the monitored figure */
    int epochs_since_best;
    kn_tensor_list best; /* copies of the module's state in its best epoch, on the device */
    int monitor_column;  /* of the history */

    /* Training by several ranks (ranks.h). */
    kn_group *group; /* of the module; NULL: this process alone */
    bool has_parts;  /* of kn_nn_distributed: it takes the mean over the passes of a step */
    kn_tensor *votes;
    kn_work *vote;         /* under way; NULL: none */
    kn_status kept_status; /* an error that the other ranks do not know of yet */
    char kept_message[1000], rank_name[320];
    bool others_failed, is_apart; /* is_apart: after an error, when ranks go their own ways */
    double own_seconds;           /* on the clock of this rank's own work, when the epoch began */
    double *step_seconds;         /* of all ranks, per step of the last epoch; NULL: none */
    int64_t timed_steps;
    uint8_t *generators; /* the states of all ranks, to be saved; NULL: none */

    const char *written[KN_TRAINER_FILES]; /* names of the files that this fit wrote */
    int num_written;
    char written_text[KN_TRAINER_FILES * 32]; /* the same, joined by commas */
};

/* callbacks.c: calls one kind of callback. `step` and `loss` for the moments of steps only. */
typedef enum kn_moment {
    KN_FIT_START,
    KN_EPOCH_START,
    KN_BEFORE_OPTIMIZER_STEP,
    KN_STEP_END,
    KN_EPOCH_END,
    KN_FIT_END
} kn_moment;
kn_status kn_trainer_call(kn_trainer *trainer, kn_moment moment, int epoch, int64_t step, kn_tensor *loss);
void kn_trainer_free_callbacks(kn_trainer *trainer);

/* callbacks.c: the states of callbacks, into a file under "callback.NAME." and back; warns about a state that only the
 * file or only the trainer has. */
kn_status kn_trainer_put_callbacks(kn_trainer *trainer, kn_tensor_file *file);
kn_status kn_trainer_get_callbacks(kn_trainer *trainer, const kn_tensor_file *file, const char *path);

/* settings.c: collects this fit's settings / writes them to a file / compares them with a file's, warns about
 * differences and takes over the file's optimizer settings. Call the last after loading the optimizer's state. */
void kn_trainer_note_settings(kn_trainer *trainer, const kn_loader *train, const kn_loader *validation);
kn_status kn_trainer_put_settings(const kn_trainer *trainer, kn_tensor_file *file);
kn_status kn_trainer_compare_settings(kn_trainer *trainer, const kn_tensor_file *file, const char *path);

/* The results of applying the module to a batch. */
typedef struct kn_applied_batch {
    kn_tensor *output; /* the first */
    kn_tensor *target; /* NULL: none, and neither loss nor metrics need one */
    kn_tensor *loss;
} kn_applied_batch;

/* apply.c: applies the module and the loss to a batch; `measure`: metrics require a target / fails if the loader's data
 * lacks a needed field, `data` being its name in messages / fails if a metric is of classes but the targets' dtype
 * cannot hold them. */
kn_status kn_trainer_apply(kn_trainer *trainer, const kn_batch *batch, bool measure, kn_applied_batch *applied);
kn_status kn_trainer_check_fields(const kn_trainer *trainer, const kn_loader *loader, bool measure, const char *data);
kn_status kn_trainer_check_classes(const kn_trainer *trainer, const kn_loader *loader);

/* trainer.c */
/* Was a signal received since the fit began? Stores it. With several ranks: do all know of one? */
bool kn_trainer_interrupted(kn_trainer *trainer);
bool kn_trainer_signal_came(kn_trainer *trainer);              /* likewise, but to this rank */
const char *kn_trainer_signal_name(const kn_trainer *trainer); /* "SIGINT" */
kn_device *kn_trainer_device(kn_trainer *trainer);             /* of the module's parameters */

/* The figures of a pass; NaN for those not computed. */
typedef struct kn_pass_figures {
    double loss, grad_norm, metrics[KN_TRAINER_METRICS];
    int64_t bad_step; /* the first with a loss that is not finite, from 1; 0: none */
    int bad_rank;     /* with several ranks, whose */
    bool is_nan;
} kn_pass_figures;

/* epoch.c: one pass over the training data and its figures. */
kn_status kn_trainer_train_epoch(kn_trainer *trainer, kn_loader *loader, kn_pass_figures *figures);

/* evaluate.c: one pass without gradients: the figures of the history. Stops at an interrupt while fitting. */
kn_status kn_trainer_run_evaluation(kn_trainer *trainer, kn_loader *loader, kn_pass_figures *figures);

/* trainer_metrics.c: takes over the names and parameters of the trainer's metrics, which it checks / adds their entries
 * to a log / updates these with a batch / reads their values. `evaluation`: the log of evaluations, not of training. */
kn_status kn_trainer_take_metrics(kn_trainer *trainer, const kn_trainer_params *params);
void kn_trainer_free_metrics(kn_trainer *trainer);
kn_status kn_trainer_add_metrics(kn_trainer *trainer, bool evaluation);
kn_status kn_trainer_note_metrics(kn_trainer *trainer, bool evaluation, const kn_applied_batch *applied);
void kn_trainer_read_metrics(const kn_trainer *trainer, bool evaluation, double *values);
bool kn_trainer_needs_classes(const kn_trainer *trainer);

/* steps.c: logging every few steps. start makes a fit's log and tables; update records a step's figures on the device;
 * look processes the figures that have arrived and requests more when it is time. */
typedef struct kn_step_look {
    int64_t step; /* of the epoch */
    double lr;
    bool is_row; /* for the table of steps, not only for the progress bar */
} kn_step_look;
typedef struct kn_step_watch {
    kn_trainer *trainer;
    int epoch;
    int64_t steps;                       /* per epoch */
    int64_t steps_before;                /* in previous epochs */
    kn_step_look looks[KN_LOG_REQUESTS]; /* a ring, like the log's requests */
    int first, count;
    double loss_sum, loss_weight; /* at the last row: a row holds the differences */
    double *sums;                 /* likewise, of all metrics, one after the other */
    int64_t *bins;                /* likewise, for all histograms: 3 counts outside and the bins of each */
} kn_step_watch;
kn_status kn_steps_start(kn_trainer *trainer);
kn_status kn_steps_begin_epoch(kn_step_watch *watch, kn_trainer *trainer, kn_loader *loader);
kn_status kn_steps_note(kn_step_watch *watch, const kn_applied_batch *applied, int64_t samples);
/* of a step of the optimizer, with its gradients, unscaled */
kn_status kn_steps_note_gradients(kn_step_watch *watch, int64_t step);
kn_status kn_steps_poll(kn_step_watch *watch, int64_t step, bool is_time);
kn_status kn_steps_drain(kn_step_watch *watch); /* waits for the requested figures and processes them */
/* After a loss that is not finite, of which all ranks know: the same error on all, with the first such loss of any. */
kn_status kn_steps_find_bad(kn_step_watch *watch, kn_status status);
kn_status kn_steps_end_epoch(kn_step_watch *watch, kn_pass_figures *figures); /* waits for the device */
void kn_steps_free(kn_step_watch *watch);

/* best.c: the best state so far, kept on the device and written to checkpoint.safetensors when it improves. */
kn_status kn_trainer_note_epoch(kn_trainer *trainer, bool *is_best); /* judges the history's last row */
kn_status kn_trainer_keep_best(kn_trainer *trainer);
kn_status kn_trainer_restore_best(kn_trainer *trainer); /* into the module; no effect without one */

/* save.c: the files of the output directory. All do nothing without one. */
kn_status kn_trainer_open_output(kn_trainer *trainer); /* creates and locks it */
void kn_trainer_close_output(kn_trainer *trainer);     /* unlocks it */
/* checkpoint.safetensors: the module's current state */
kn_status kn_trainer_save_checkpoint(kn_trainer *trainer);
kn_status kn_trainer_save_last(kn_trainer *trainer);             /* last.safetensors and history.csv */
kn_status kn_trainer_save_tables(kn_trainer *trainer);           /* history.csv, steps.csv, histograms.csv */
kn_status kn_trainer_save_plot(kn_trainer *trainer);             /* history.svg; prints a note if gnuplot is missing */
kn_status kn_trainer_resume(kn_trainer *trainer, bool *resumed); /* from last.safetensors, if it exists (resume.c) */
