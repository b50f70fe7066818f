/* koine/device_log.h - statistics that are kept on the device and read occasionally, all in one transfer: running
 * means, accuracy, gradient norms, histograms.
 *
 *     kn_device_log *log = kn_device_log_new();
 *     int loss = kn_device_log_add_scalar(log, "loss");
 *     int norm = kn_device_log_add_grad_norm(log, "grad_norm", kn_module_parameters(net));
 *     ... each step:
 *         kn_device_log_scalar(log, loss, loss_tensor, batch_size);
 *         kn_device_log_grad_norm(log, norm);
 *     ... every hundred steps:
 *         kn_device_log_read(log);
 *         printf("%g %g\n", kn_device_log_value(log, loss, KN_FIGURE_MEAN),
 *                kn_device_log_value(log, norm, KN_FIGURE_LAST));
 *
 * Reading a value in each step would make the host wait for the device in each step. An update only enqueues kernels,
 * on the calling thread's current stream. All state is in one buffer on the values' device, so a read is one transfer,
 * and updates inside a captured graph are counted at each replay; one update, of any entry, must precede the capture,
 * since it allocates the buffer (KN_ERR_STATE otherwise). Dtypes are float32 and float64 (float16 and bfloat16
 * gradients are converted).
 * Sums are compensated and in a fixed order: the same updates give the same bits.
 *
 * A log is used by one thread at a time, and its updates by one stream (or by streams that wait for each other). */
#ifndef KOINE_DEVICE_LOG_H
#define KOINE_DEVICE_LOG_H

#include <koine/common.h>
#include <koine/metrics.h>
#include <koine/module.h>
#include <koine/status.h>

KN_BEGIN_DECLS

typedef struct kn_device_log kn_device_log;

KN_API kn_device_log *kn_device_log_new(void);      /* NULL with an error if out of memory */
KN_API void kn_device_log_free(kn_device_log *log); /* NULL allowed; does not wait */

/* --- entries ---------------------------------------------------------------------------------- *
 * Each function adds an entry and returns its index, from 0; -1 with an error (a duplicate name, an invalid range).
 * Entries may be added at any time. The name is copied. */

KN_API int kn_device_log_add_scalar(kn_device_log *log, const char *name);
KN_API int kn_device_log_add_accuracy(kn_device_log *log, const char *name);
/* Any metric (koine/metrics.h); its parameters are copied, not what it has seen. */
KN_API int kn_device_log_add_metric(kn_device_log *log, const char *name, const kn_metric *metric);

/* torch.histc: `bins` (1 to KN_MAX_BINS) of equal width from min to max, with max in the last one; values outside and
 * NaN are counted separately. An update is KN_ERR_ARGUMENT if min and max are not a valid range in the values'
 * dtype. */
#define KN_MAX_BINS 4096
KN_API int kn_device_log_add_histogram(kn_device_log *log, const char *name, int bins, double min, double max);

/* The 2-norm of all parameters' gradients taken as one vector, as returned by torch.nn.utils.clip_grad_norm_, and the
 * norm of each. The log keeps references to the parameters; the list may be freed. */
KN_API int kn_device_log_add_grad_norm(kn_device_log *log, const char *name, kn_parameter_list parameters);

/* The index of an entry by name; -1, without an error, if there is none. */
KN_API int kn_device_log_find(const kn_device_log *log, const char *name);

/* --- updates: nothing here waits -------------------------------------------------------------- *
 * KN_ERR_DEVICE if the values' device or dtype differs from that of the entry since the last reset. */

/* A value of one element. `weight` is its weight in the mean (such as the batch size; 1 for a plain mean; 0 or
 * more). */
KN_API kn_status kn_device_log_scalar(kn_device_log *log, int entry, kn_tensor *value, int64_t weight);

/* output [n, classes, ...] and target classes [n, ...] (whole numbers): counts the rows whose largest output (the first
 * of equal ones) is the target's. */
KN_API kn_status kn_device_log_accuracy(kn_device_log *log, int entry, kn_tensor *output, kn_tensor *target);
/* Of any metric: output and target as of kn_metric_update. */
KN_API kn_status kn_device_log_metric(kn_device_log *log, int entry, kn_tensor *output, kn_tensor *target);
KN_API kn_status kn_device_log_histogram(kn_device_log *log, int entry, kn_tensor *values); /* of any shape */

/* Of the parameters' current gradients; a parameter without a gradient counts as 0. Call it between kn_backward and
 * kn_optim_zero_grad. */
KN_API kn_status kn_device_log_grad_norm(kn_device_log *log, int entry);

/* Resets all entries. Values already read or requested are not affected. */
KN_API kn_status kn_device_log_reset(kn_device_log *log);

/* --- reading ---------------------------------------------------------------------------------- */

/* Reads the values of all entries in one transfer, for which the host waits. */
KN_API kn_status kn_device_log_read(kn_device_log *log);

/* The same asynchronously: request makes the device copy its values at this point of the stream; poll takes over those
 * of the oldest request not yet taken, if they have arrived; wait waits for them. At most KN_LOG_REQUESTS may be
 * pending: another one is KN_ERR_STATE, as is a wait without a request. */
#define KN_LOG_REQUESTS 8
KN_API kn_status kn_device_log_request(kn_device_log *log);
KN_API kn_status kn_device_log_poll(kn_device_log *log, bool *arrived);
KN_API kn_status kn_device_log_wait(kn_device_log *log);
KN_API int kn_device_log_requests(const kn_device_log *log); /* pending, or arrived and not taken */

/* --- values last read, polled or waited for --------------------------------------------------- */

typedef enum kn_log_statistic {
    KN_FIGURE_LAST, /* the latest value */
    KN_FIGURE_MEAN, /* weighted; of a metric of one value that value */
    KN_FIGURE_MIN,
    KN_FIGURE_MAX,    /* both NaN after a NaN value */
    KN_FIGURE_SUM,    /* of value times weight; of an accuracy the correct rows */
    KN_FIGURE_WEIGHT, /* sum of the weights; of an accuracy the rows; of a histogram the values */
    KN_FIGURE_COUNT   /* updates; of an accuracy the rows; of a histogram the values */
} kn_log_statistic;

/* NaN if there is no such value: an entry without updates (its sum, weight and count are 0), the minimum of a metric,
 * AUROC after kn_device_log_poll and kn_device_log_wait, an entry that does not exist. */
KN_API double kn_device_log_value(const kn_device_log *log, int entry, kn_log_statistic figure);

/* The number of a scalar's or gradient norm's first update with a NaN or infinite value, from 1; 0 if there was none.
 * `is_nan` may be NULL. */
KN_API int64_t kn_device_log_first_bad(const kn_device_log *log, int entry, bool *is_nan);

/* The norm of the gradient of parameter `index` at the latest update of a gradient norm. */
KN_API double kn_device_log_parameter_norm(const kn_device_log *log, int entry, int index);

/* The counts of a histogram's bins, borrowed until the next read; NULL for another kind of entry. `outside` (may be
 * NULL) receives the numbers of values below, above, and NaN. */
KN_API const int64_t *kn_device_log_bins(const kn_device_log *log, int entry, int64_t outside[3]);

KN_END_DECLS

#endif
