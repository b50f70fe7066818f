/* koine/device_log.h - figures that are kept on the device and read now and then, all in one transfer: running means,
 * accuracy, gradient norms, histograms.
 *
 *     kn_device_log *log = kn_device_log_new();
 *     int loss = kn_device_log_add_scalar(log, "loss");
 *     int norm = kn_device_log_add_grad_norm(log, "grad_norm", kn_module_parameters(net));
 *     ... each step:
 *         kn_device_log_scalar(log, loss, loss_tensor, batch_size);
 *         kn_device_log_grad_norm(log, norm);
 *     ... every hundred steps:
 *         kn_device_log_read(log);
 *         printf("%g %g\n", kn_device_log_value(log, loss, KN_FIGURE_MEAN), kn_device_log_value(log, norm,
 * KN_FIGURE_LAST));
 *
 * To read a number each step would make the host wait for the device each step. An update only enqueues kernels, on the
 * calling thread's current stream; all state is one buffer on the device of the values, so a read is one transfer, and
 * an update inside a captured graph goes on counting when the graph is replayed; one update, of any entry, must come
 * before the capture, since it makes the buffer (KN_ERR_STATE else). float32 and float64 (f16 gradients are
 * converted); sums are compensated and in a fixed order: the same updates give the same bits.
 *
 * A log is used by one thread at a time, its updates by one stream (or by streams that wait for one another). */
#ifndef KOINE_DEVICE_LOG_H
#define KOINE_DEVICE_LOG_H

#include <koine/common.h>
#include <koine/nn.h>
#include <koine/status.h>

KN_BEGIN_DECLS

typedef struct kn_device_log kn_device_log;

KN_API kn_device_log *kn_device_log_new(void);      /* NULL with an error when memory is exhausted */
KN_API void kn_device_log_free(kn_device_log *log); /* NULL allowed; does not wait */

/* --- entries ---------------------------------------------------------------------------------- *
 * Each function adds an entry and returns its number, from 0; -1 with an error (a name that is taken, a range that is
 * none). They may be added at any time. The name is copied. */

KN_API int kn_device_log_add_scalar(kn_device_log *log, const char *name);
KN_API int kn_device_log_add_accuracy(kn_device_log *log, const char *name);

/* torch.histc: `bins` (1 to KN_MAX_BINS) of equal width from min to max, max being in the last one; values outside, and
 * NaN, are counted apart. An update is KN_ERR_ARGUMENT where min and max are no range in the values' dtype. */
#define KN_MAX_BINS 4096
KN_API int kn_device_log_add_histogram(kn_device_log *log, const char *name, int bins, double min, double max);

/* The 2-norm of the gradients of all parameters as if they were one vector, which torch.nn.utils.clip_grad_norm_
 * returns, and the norm of each. The log keeps references to the parameters; the list need not stay. */
KN_API int kn_device_log_add_grad_norm(kn_device_log *log, const char *name, kn_parameter_list parameters);

KN_API int kn_device_log_find(const kn_device_log *log,
                              const char *name); /* its number; -1, no error, if there is none */

/* --- updates: nothing here waits -------------------------------------------------------------- *
 * KN_ERR_DEVICE when the values' device or dtype differs from what the entry holds since the last reset. */

/* A value of one element. The mean weighs it with `weight` (the batch size, say; 1 for a plain mean; 0 or more). */
KN_API kn_status kn_device_log_scalar(kn_device_log *log, int entry, kn_tensor *value, int64_t weight);

/* output [n, classes, ...] and target classes [n, ...] (whole numbers): counts the rows whose largest output, the first
 * among equals, is the target's. */
KN_API kn_status kn_device_log_accuracy(kn_device_log *log, int entry, kn_tensor *output, kn_tensor *target);
KN_API kn_status kn_device_log_histogram(kn_device_log *log, int entry, kn_tensor *values); /* of any shape */

/* Of the parameters' present gradients; one without a gradient counts as 0. Call it between kn_backward and
 * kn_optim_zero_grad. */
KN_API kn_status kn_device_log_grad_norm(kn_device_log *log, int entry);

/* All entries as new. What was read or requested stays as it is. */
KN_API kn_status kn_device_log_reset(kn_device_log *log);

/* --- reading ---------------------------------------------------------------------------------- */

/* Fetches the figures of all entries in one transfer, for which the host waits. */
KN_API kn_status kn_device_log_read(kn_device_log *log);

/* The same without a wait: request has the device copy its figures as they are at this point of the stream; poll takes
 * over those of the oldest request not yet taken, if they have arrived. wait takes them over in any case. At most
 * KN_LOG_REQUESTS may be under way: a further one is KN_ERR_STATE, as is a wait without a request. */
#define KN_LOG_REQUESTS 8
KN_API kn_status kn_device_log_request(kn_device_log *log);
KN_API kn_status kn_device_log_poll(kn_device_log *log, bool *arrived);
KN_API kn_status kn_device_log_wait(kn_device_log *log);
KN_API int kn_device_log_requests(const kn_device_log *log); /* under way, or arrived and not taken */

/* --- the figures last read, polled or waited for ---------------------------------------------- */

typedef enum kn_figure {
    KN_FIGURE_LAST, /* the newest value */
    KN_FIGURE_MEAN, /* weighted; of an accuracy the share of rows that are right */
    KN_FIGURE_MIN,
    KN_FIGURE_MAX,    /* both NaN once a value was */
    KN_FIGURE_SUM,    /* of value times weight; of an accuracy the rows that are right */
    KN_FIGURE_WEIGHT, /* sum of the weights; of an accuracy the rows; of a histogram the values */
    KN_FIGURE_COUNT   /* updates; of an accuracy the rows; of a histogram the values */
} kn_figure;

/* NaN where there is no such figure: an entry without updates (its sum, weight and count are 0), the minimum of an
 * accuracy, an entry that does not exist. */
KN_API double kn_device_log_value(const kn_device_log *log, int entry, kn_figure figure);

/* A scalar's or gradient norm's first update whose value was NaN or infinite, from 1; 0 when there was none. `is_nan`
 * may be NULL. */
KN_API int64_t kn_device_log_first_bad(const kn_device_log *log, int entry, bool *is_nan);

/* The norm of parameter `index` of a gradient norm at its newest update. */
KN_API double kn_device_log_parameter_norm(const kn_device_log *log, int entry, int index);

/* The counts of a histogram's bins, borrowed until the next read; NULL for another kind of entry. `outside` (NULL
 * allowed) takes how many values were below, above, and NaN. */
KN_API const int64_t *kn_device_log_bins(const kn_device_log *log, int entry, int64_t outside[3]);

KN_END_DECLS

#endif
