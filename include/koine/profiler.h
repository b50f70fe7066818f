/* koine/profiler.h - named ranges, and a profiler for host and device time.
 *
 * Ranges correspond to torch.cuda.nvtx. They are recorded by the profiler while it runs, and forwarded to NVTX or Intel
 * ITT if a tool has loaded such a library into the process (KOINE_NVTX_LIBRARY names one explicitly). With neither, a
 * range costs two relaxed loads and a counter.
 *
 * The profiler corresponds to torch.profiler. There is one per process. While it runs it records ranges, operations of
 * all threads (forward and backward), and every kernel and transfer with its device times. The records are kept until
 * the next start or kn_profiler_clear. All functions are thread-safe. */
#ifndef KOINE_PROFILER_H
#define KOINE_PROFILER_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

/* --- ranges ----------------------------------------------------------------------------------- */

/* Opens a range on the calling thread, nested in those already open; the name is copied. As torch.cuda.nvtx.range_push.
 * KN_ERR_ARGUMENT for NULL. The second form takes a printf format. */
KN_API kn_status kn_range_push(const char *name);
KN_API kn_status kn_range_push_format(const char *format, ...) KN_PRINTF(1, 2);

/* Closes the thread's innermost range. KN_ERR_STATE if none is open. */
KN_API kn_status kn_range_pop(void);

/* The number of open ranges on the calling thread. */
KN_API int kn_range_depth(void);

/* A point in time. As torch.cuda.nvtx.mark. */
KN_API kn_status kn_mark(const char *name);

/* A range that any thread may end and that need not nest. Ending a range that is not open (any more) is
 * KN_ERR_STATE. 0 with an error if it cannot be started. As torch.cuda.nvtx.range_start and range_end. */
KN_API uint64_t kn_range_start(const char *name);
KN_API kn_status kn_range_end(uint64_t id);

/* A range to the end of the enclosing block (a guard: koine/common.h): KN_RANGE("forward"); */
#define KN_RANGE(name) KN_GUARD(bool, kn_range_guard_, kn_range_push(name) == KN_OK, kn_range_leave)
static inline void kn_range_leave(bool *open)
{
    if (*open)
        kn_range_pop();
}

/* While on, every operation is also a range for NVTX or ITT, as with torch.autograd.profiler.emit_nvtx; with
 * `record_shapes` its name includes the shapes of its inputs. Returns whether a tool receives them. */
KN_API bool kn_emit_ranges(bool enabled, bool record_shapes);

/* --- running the profiler --------------------------------------------------------------------- */

typedef struct kn_profiler_params {
    bool record_shapes;  /* default false: record the shapes and dtypes of operations' inputs */
    bool profile_memory; /* default false: record what each operation allocates, and memory in use over time */
    bool with_flops;     /* default false: count floating-point operations and bytes moved */

    /* A schedule, as torch.profiler.schedule: after `skip_first` steps, cycles of `wait` ignored steps, `warmup` steps
     * whose records are discarded, and `active` recorded ones; `repeat` cycles, 0: unlimited. A step ends at
     * kn_profiler_step. Default active 0: no schedule, everything from start to stop is recorded. */
    int skip_first, wait, warmup, active, repeat;

    /* Called on the thread that calls kn_profiler_step or kn_profiler_stop when a cycle's records are complete; it may
     * create the table and the trace. Default NULL. */
    void (*on_trace_ready)(void *user);
    void *user;
} kn_profiler_params;
#define KN_PROFILER_DEFAULTS .record_shapes = false
KN_API kn_profiler_params kn_profiler_params_init(void);

/* Starts recording and deletes earlier records. KN_ERR_STATE if it is running, KN_ERR_ARGUMENT for an invalid
 * schedule. */
KN_API kn_status kn_profiler_start_with(const kn_profiler_params *params);
#define kn_profiler_start(...) KN_CALL(kn_profiler_start_with(&(kn_profiler_params){KN_PROFILER_DEFAULTS, __VA_ARGS__}))

/* Ends a training step. KN_ERR_STATE if the profiler is not running. */
KN_API kn_status kn_profiler_step(void);

/* Waits for the recorded commands, then stops. Open ranges are closed, and the table says so. KN_ERR_STATE if it is not
 * running. */
KN_API kn_status kn_profiler_stop(void);

KN_API bool kn_profiler_is_running(void); /* between start and stop, whatever the schedule */
KN_API void kn_profiler_clear(void);      /* frees the records; does nothing while it is running */

/* Runs the profiler to the end of the enclosing block (a guard: koine/common.h): KN_PROFILE(.record_shapes = true); If
 * it cannot start, the error is sticky and the block runs without it. */
#define KN_PROFILE(...)                                                                                                \
    KN_GUARD(bool, kn_profile_guard_,                                                                                  \
             KN_CALL(kn_profiler_enter(&(kn_profiler_params){KN_PROFILER_DEFAULTS, __VA_ARGS__})), kn_profiler_leave)
KN_API bool kn_profiler_enter(const kn_profiler_params *params); /* is it running now? */
static inline void kn_profiler_leave(bool *running)
{
    if (*running)
        kn_profiler_stop();
}

/* --- results ---------------------------------------------------------------------------------- *
 * After kn_profiler_stop or inside on_trace_ready; KN_ERR_STATE while recording, or if nothing was recorded. */

/* The records of each name combined, as torch.profiler's key_averages. Times are in microseconds. Operations and ranges
 * have host times, and as device times those of the kernels they enqueued: `self` excludes and `total` includes nested
 * ones. Kernels and transfers have their own rows, `on_device`. flops and bytes are those of the operations
 * (with_flops); an operation's are divided among its kernels in proportion to their time. fraction_of_peak: the larger
 * of arithmetic and memory traffic relative to the device's measured peak (see kn_profiler_table_params.peak); 0 if
 * unknown. */
typedef struct kn_profiler_row {
    const char *name;         /* valid until recording starts again (a start, a schedule's next cycle) or is cleared */
    const char *input_shapes; /* "" unless grouped by shapes */
    bool on_device;
    int64_t count;
    double self_cpu_time_total, cpu_time_total, self_device_time_total, device_time_total;
    double flops, bytes;
    double fraction_of_peak;
    int64_t device_memory_usage; /* bytes allocated minus bytes freed */
} kn_profiler_row;

/* An array of *count rows, sorted by descending self device time; free it with kn_free. NULL with an error. */
KN_API kn_profiler_row *kn_profiler_key_averages(bool group_by_input_shape, int *count);

/* Totals of all records; times in microseconds. */
typedef struct kn_profiler_totals {
    double wall_time;     /* from the start of recording to its end */
    double self_cpu_time; /* host time inside operations, ranges and the schedule's steps, all threads */
    double device_time;   /* kernels and transfers */
    int64_t operations, ranges, kernels, transfers;
    int64_t untimed;           /* commands without times from the driver */
    int64_t still_open;        /* ranges and operations that the stop had to close */
    int64_t dropped;           /* records lost because host memory ran out */
    double communication_time; /* during which a group's call was under way (koine/group.h) */
    double overlap; /* the share of it during which a kernel ran on a device of this process; 0 without calls */
} kn_profiler_totals;
KN_API kn_status kn_profiler_get_totals(kn_profiler_totals *totals);

/* A recorded kernel or transfer, for tools that draw or add up commands themselves. Times are nanoseconds of
 * CLOCK_MONOTONIC, to which the device's clock is mapped (docs/profiling.md); start and end are 0 if the driver gave
 * none. */
typedef enum kn_profiler_kind { KN_PROFILER_KERNEL, KN_PROFILER_COPY, KN_PROFILER_FILL } kn_profiler_kind;
typedef struct kn_profiler_command {
    kn_profiler_kind kind;
    const char *name; /* the kernel's, or "Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD", "Memset"; valid as a row's */
    const char *operation; /* which it belongs to: "conv2d"; NULL: not known */
    kn_device *device;
    int stream;                 /* numbered among the device's recorded streams, from 0 */
    int64_t enqueued;           /* when the host had enqueued it */
    int64_t start, end;         /* on the device */
    size_t global[3], local[3]; /* of a kernel: work-items, and those of a work-group (0: the driver's choice) */
    size_t bytes;               /* of a transfer */
    uint64_t correlation;       /* of kn_profiler_correlate */
} kn_profiler_command;

/* An array of *count commands in the order in which they were enqueued; free it with kn_free. NULL with an error. */
KN_API kn_profiler_command *kn_profiler_commands(int64_t *count);

/* What the calling thread enqueues from now on, replays of graphs included, is recorded with this number, with which a
 * tool finds its own event for the command; as CUPTI's external correlation. Returns the number before; at first 0. */
KN_API uint64_t kn_profiler_correlate(uint64_t correlation);

/* A group's collectives and messages of each name combined; times in microseconds, on the group's thread. `bytes` are
 * those of the tensors as NCCL's tests count them: for all_gather, reduce_scatter and all_to_all of all blocks. A call
 * first waits until all ranks have come and its inputs have been computed; then it copies from the device, exchanges
 * and copies to the device, piece by piece, so that these times overlap. `bus_bandwidth`, in bytes per second, is what
 * each rank's link carried, without the waiting: as in NCCL's tests 2 (n - 1) / n bytes for each of an all_reduce among
 * n ranks. */
typedef struct kn_profiler_call {
    const char *name; /* "all_reduce"; valid as that of a kn_profiler_row */
    int64_t count;
    double bytes;
    double time_total, wait_time, copy_down_time, exchange_time, copy_up_time;
    double bus_bandwidth;
} kn_profiler_call;

/* An array of *count rows, sorted by descending time; free it with kn_free. NULL with an error. */
KN_API kn_profiler_call *kn_profiler_communication(int *count);

typedef struct kn_profiler_table_params {
    const char *sort_by; /* default "self_device_time_total"; or cpu_time_total, self_cpu_time_total, device_time_total,
                          * cpu_time, device_time (averages), count, flops, device_memory_usage, name; in descending
                          * order, except for the name. "cuda" means "device" */
    int row_limit;       /* default 100; 0: all */
    int max_name_column_width; /* default 55 bytes, at most 80; longer names end in "..." */
    bool group_by_input_shape; /* default false; needs record_shapes */
    bool peak; /* default true: the column "% of peak" (with_flops), for which the device's peaks are measured at the
                * first call in the process, by kernels on the thread's current stream and up to 512 MiB from its pool,
                * which keeps them until kn_empty_cache. Empty, with a logged warning, if that fails. With with_flops,
                * kn_profiler_key_averages and the trace need them too */
    int width; /* default 0: the terminal's; KN_WIDE: all columns. In a narrower one names are cut and the least
                * important columns left out, with a note below the table */
} kn_profiler_table_params;
#define KN_PROFILER_TABLE_DEFAULTS                                                                                     \
    .sort_by = "self_device_time_total", .row_limit = 100, .max_name_column_width = 55, .peak = true
KN_API kn_profiler_table_params kn_profiler_table_params_init(void);

/* The table that torch.profiler prints; the caller frees it with kn_free. NULL with an error on failure. */
KN_API char *kn_profiler_table_with(const kn_profiler_table_params *params);
#define kn_profiler_table(...)                                                                                         \
    KN_CALL(kn_profiler_table_with(&(kn_profiler_table_params){KN_PROFILER_TABLE_DEFAULTS, __VA_ARGS__}))

/* Writes a trace for chrome://tracing and https://ui.perfetto.dev: a track per host thread with ranges and operations,
 * a track per stream with its kernels and transfers, arrows from an operation to what it enqueued, counters of memory
 * in use, and for each group tracks with its calls and their parts. kn_group_export_trace writes one of all ranks. */
KN_API kn_status kn_profiler_export_chrome_trace(const char *path);

KN_END_DECLS

#endif
