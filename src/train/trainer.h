/* train/trainer.h - the trainer as its parts see it. */
#ifndef KN_TRAIN_TRAINER_H
#define KN_TRAIN_TRAINER_H

#include <koine/train.h>

#include "base/error.h"
#include "nn/tensor_list.h"
#include "train/history.h"
#include "train/metric.h"
#include "train/progress.h"

struct kn_trainer {
    kn_trainer_params params; /* monitor and output are the trainer's own copies */
    kn_callback *callbacks;
    int num_callbacks, callback_capacity;

    kn_metric *train_loss, *train_accuracy; /* running figures of the epoch */
    kn_metric *evaluation_loss,
        *evaluation_accuracy; /* apart from them: a callback may evaluate in the middle of an epoch */

    kn_history history;
    kn_progress progress;
    bool is_fitting, stop;

    /* The course of the fit: what early stopping and resuming go by. */
    int epoch;         /* finished so far */
    int best_epoch;    /* from 1; 0: none */
    double best_value; /* of the monitored figure */
    int epochs_since_best;
    kn_tensor_list best; /* copies of the module's state in its best epoch, on the device */
    int monitor_column;  /* of the history */
};

/* trainer.c: calls one kind of callback. `step` and `loss` for on_step_end only. */
typedef enum kn_moment { KN_FIT_START, KN_EPOCH_START, KN_STEP_END, KN_EPOCH_END, KN_FIT_END } kn_moment;
kn_status kn_trainer_call(kn_trainer *trainer, kn_moment moment, int epoch, int64_t step, kn_tensor *loss);
kn_tensor *kn_trainer_loss(kn_trainer *trainer, kn_tensor *output, kn_tensor *target); /* the loss function applied */
bool kn_trainer_interrupted(const kn_trainer *trainer);                                /* Ctrl-C since the fit began */
kn_device *kn_trainer_device(kn_trainer *trainer);                                     /* of the module's parameters */

/* epoch.c: one pass over the training data and its figures; accuracy is NaN where it is not wanted. */
kn_status kn_trainer_train_epoch(kn_trainer *trainer, kn_loader *loader, double *loss, double *accuracy);

/* evaluate.c: one pass without gradients; `fault` as kn_metric_read gives it. Stops at an interrupt while fitting. */
kn_status kn_trainer_run_evaluation(kn_trainer *trainer, kn_loader *loader, double *loss, double *accuracy,
                                    kn_metric_fault *fault);

/* best.c: the best state so far, kept on the device and, when it is new, written to checkpoint.safetensors. */
kn_status kn_trainer_note_epoch(kn_trainer *trainer, bool *is_best); /* by the history's last row */
kn_status kn_trainer_keep_best(kn_trainer *trainer);
kn_status kn_trainer_restore_best(kn_trainer *trainer); /* into the module; nothing where there is none */

/* save.c: the files of the output directory. All do nothing without one. */
kn_status kn_trainer_prepare_output(kn_trainer *trainer);        /* makes it; finds out whether it can be written */
kn_status kn_trainer_save_checkpoint(kn_trainer *trainer);       /* checkpoint.safetensors: the module as it is now */
kn_status kn_trainer_save_last(kn_trainer *trainer);             /* last.safetensors and history.csv */
kn_status kn_trainer_save_plot(kn_trainer *trainer);             /* history.svg; a note where gnuplot is missing */
kn_status kn_trainer_resume(kn_trainer *trainer, bool *resumed); /* from last.safetensors, if it is there (resume.c) */

#endif
