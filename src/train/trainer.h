/* train/trainer.h - the trainer as its parts see it. */
#ifndef KN_TRAIN_TRAINER_H
#define KN_TRAIN_TRAINER_H

#include <koine/device_log.h>
#include <koine/train.h>

#include "base/directory_lock.h"
#include "base/error.h"
#include "nn/tensor_list.h"
#include "train/history.h"
#include "train/progress.h"

/* What of a run, besides its files, decides the bits that it gives: kept in last.safetensors, compared on resuming. */
#define KN_MAX_SETTINGS 24
#define KN_SETTING_TEXT 128
typedef struct kn_setting {
    const char *name;
    char value[KN_SETTING_TEXT];
    bool is_optimizer; /* a hyperparameter: on resuming the saved one is used, of the others this run's */
} kn_setting;
typedef struct kn_settings {
    kn_setting all[KN_MAX_SETTINGS];
    int count;
} kn_settings;
#define KN_TRAINER_FILES 8 /* that there may be at most: save.c */

struct kn_trainer {
    kn_trainer_params params;    /* monitor, output, inputs and target are the trainer's own copies */
    int num_inputs, num_outputs; /* of the module */
    kn_tensor **tensors;         /* room for them, used while a batch is applied */
    kn_callback *callbacks;      /* their names likewise */
    int num_callbacks, callback_capacity;

    /* Running figures of the epoch, on the device; apart from them those of an evaluation, which a callback may run in
     * the middle of an epoch. Entry numbers are -1 where the figure is not wanted. */
    kn_device_log *log, *evaluation;
    int log_loss, log_accuracy, log_norm, log_histograms; /* histograms: the first parameter's */
    int evaluation_loss, evaluation_accuracy;

    kn_history history;
    kn_history steps, histograms; /* of the steps that were logged */
    kn_progress progress;
    bool is_fitting, stop;
    int signal; /* that ended the last fit; 0: none */
    int lock;   /* of the output directory, while fitting */

    /* The course of the fit: what early stopping and resuming go by. */
    kn_settings settings;
    int epoch;           /* finished so far */
    int64_t global_step; /* steps of the optimizer so far */
    int best_epoch;      /* from 1; 0: none */
    double best_value;   /* of the monitored figure */
    int epochs_since_best;
    kn_tensor_list best; /* copies of the module's state in its best epoch, on the device */
    int monitor_column;  /* of the history */

    const char *written[KN_TRAINER_FILES]; /* names of what this fit has put into its output folder */
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

/* callbacks.c: the states of callbacks, into a file under "callback.NAME." and back; a state that only the file or only
 * the trainer has is told. */
kn_status kn_trainer_put_callbacks(kn_trainer *trainer, kn_tensor_file *file);
kn_status kn_trainer_get_callbacks(kn_trainer *trainer, const kn_tensor_file *file, const char *path);

/* settings.c: those of this fit / into a file / compared with a file's: what differs is told, and the settings of the
 * optimizer become the file's. The last after the optimizer's state was loaded. */
void kn_trainer_note_settings(kn_trainer *trainer, const kn_loader *train, const kn_loader *validation);
kn_status kn_trainer_put_settings(const kn_trainer *trainer, kn_tensor_file *file);
kn_status kn_trainer_compare_settings(kn_trainer *trainer, const kn_tensor_file *file, const char *path);

/* A batch applied: what is made of it. */
typedef struct kn_applied_batch {
    kn_tensor *output; /* the first */
    kn_tensor *target; /* NULL: neither loss nor accuracy are known to need one, and there is none */
    kn_tensor *loss;
} kn_applied_batch;

/* apply.c: the module and the loss function applied to a batch; `accuracy`: it is wanted, so there must be a target /
 * an error where the loader's data lacks a field that is needed, `data` being its name in messages / and where accuracy
 * is wanted of targets of a dtype that classes have not. */
kn_status kn_trainer_apply(kn_trainer *trainer, const kn_batch *batch, bool accuracy, kn_applied_batch *applied);
kn_status kn_trainer_check_fields(const kn_trainer *trainer, const kn_loader *loader, const char *data);
kn_status kn_trainer_check_classes(const kn_trainer *trainer, const kn_loader *loader);

/* trainer.c */
bool kn_trainer_interrupted(kn_trainer *trainer);              /* a signal since the fit began; notes which */
const char *kn_trainer_signal_name(const kn_trainer *trainer); /* "SIGINT" */
kn_device *kn_trainer_device(kn_trainer *trainer);             /* of the module's parameters */
kn_status kn_trainer_log_accuracy(kn_device_log *log, int entry, kn_tensor *output, kn_tensor *target);

/* The figures of a pass; NaN where one is not wanted. */
typedef struct kn_pass_figures {
    double loss, accuracy, grad_norm;
    int64_t bad_step; /* the first whose loss was no finite number, from 1; 0: none */
    bool is_nan;
} kn_pass_figures;

/* epoch.c: one pass over the training data and its figures. */
kn_status kn_trainer_train_epoch(kn_trainer *trainer, kn_loader *loader, kn_pass_figures *figures);

/* evaluate.c: one pass without gradients. Stops at an interrupt while fitting. */
kn_status kn_trainer_run_evaluation(kn_trainer *trainer, kn_loader *loader, bool accuracy, kn_pass_figures *figures);

/* steps.c: what is logged every so many steps. start makes the log of a fit and its tables; update notes a step's
 * figures on the device; look goes through the figures that the device has sent, and asks for more where it is time. */
typedef struct kn_step_look {
    int64_t step; /* of the epoch */
    double lr;
    bool is_row; /* of the table of steps, or just for the progress bar */
} kn_step_look;
typedef struct kn_step_watch {
    kn_trainer *trainer;
    int epoch;
    int64_t steps;                       /* per epoch */
    int64_t steps_before;                /* of the epochs before */
    kn_step_look looks[KN_LOG_REQUESTS]; /* a ring, as the log's requests */
    int first, count;
    double loss_sum, loss_weight, right, rows; /* as of the last row: a row has the figures since then */
    int64_t *bins;                             /* likewise, of all histograms: 3 outside and the bins of each */
} kn_step_watch;
kn_status kn_steps_start(kn_trainer *trainer);
kn_status kn_steps_begin_epoch(kn_step_watch *watch, kn_trainer *trainer, kn_loader *loader);
kn_status kn_steps_note(kn_step_watch *watch, int64_t step, const kn_applied_batch *applied, int64_t samples);
kn_status kn_steps_look(kn_step_watch *watch, int64_t step, bool is_time);
kn_status kn_steps_drain(kn_step_watch *watch); /* waits for the figures asked for, and goes through them */
kn_status kn_steps_end_epoch(kn_step_watch *watch, kn_pass_figures *figures); /* waits for the device */
void kn_steps_free(kn_step_watch *watch);

/* best.c: the best state so far, kept on the device and, when it is new, written to checkpoint.safetensors. */
kn_status kn_trainer_note_epoch(kn_trainer *trainer, bool *is_best); /* by the history's last row */
kn_status kn_trainer_keep_best(kn_trainer *trainer);
kn_status kn_trainer_restore_best(kn_trainer *trainer); /* into the module; nothing where there is none */

/* save.c: the files of the output directory. All do nothing without one. */
kn_status kn_trainer_open_output(kn_trainer *trainer);           /* makes and locks it */
void kn_trainer_close_output(kn_trainer *trainer);               /* for others to write into */
kn_status kn_trainer_save_checkpoint(kn_trainer *trainer);       /* checkpoint.safetensors: the module as it is now */
kn_status kn_trainer_save_last(kn_trainer *trainer);             /* last.safetensors and history.csv */
kn_status kn_trainer_save_tables(kn_trainer *trainer);           /* history.csv, steps.csv, histograms.csv */
kn_status kn_trainer_save_plot(kn_trainer *trainer);             /* history.svg; a note where gnuplot is missing */
kn_status kn_trainer_resume(kn_trainer *trainer, bool *resumed); /* from last.safetensors, if it is there (resume.c) */

#endif
