/* train/metric.h - what the trainer asks of a metric beyond koine/train.h. */
#ifndef KN_TRAIN_METRIC_H
#define KN_TRAIN_METRIC_H

#include <koine/train.h>

/* The first value of kn_metric_mean since the last reset that was not a finite number. */
typedef struct kn_metric_fault {
    int64_t update; /* from 1; 0: all were finite */
    bool is_nan;    /* NaN rather than infinite */
} kn_metric_fault;

/* As kn_metric_compute, with the fault of a mean (fault NULL allowed). Waits for the device. */
kn_status kn_metric_read(kn_metric *metric, double *value, kn_metric_fault *fault);

#endif
