/* rt/graph/capture.h - recordings: the commands of a step, as they are kept by a graph and taken by a capture.
 *
 * A recorded launch has a kernel object of its own whose arguments are set once; a replay sets only those that change
 * (variables, the fault record of another stream) and enqueues. */
#ifndef KN_RT_GRAPH_CAPTURE_H
#define KN_RT_GRAPH_CAPTURE_H

#include "rt/internal.h"
#include "rt/trace/watch.h"

/* Host memory whose contents kernels see as an argument; snapshots of all variables are laid out one after another. */
typedef struct kn_variable {
    const void *memory;  /* one reference (rt/graph/variable.h) */
    size_t size, offset; /* offset in a snapshot */
} kn_variable;

typedef struct kn_variable_argument {
    cl_uint index;       /* of the kernel's parameter */
    size_t offset, size; /* of its value in a snapshot */
} kn_variable_argument;

typedef struct kn_transfer {
    cl_mem from, to;
    size_t from_offset, to_offset, bytes;
    unsigned char pattern[16]; /* of a fill */
    size_t pattern_bytes;
} kn_transfer;

/* A matrix product with its operands' memory found: buffers may be gone when it is replayed, memory is not. */
typedef struct kn_gemm_call {
    kn_gemm_params params; /* the buffers are not looked at */
    cl_mem a, b, c;
    size_t a_offset, b_offset, c_offset; /* elements */
    cl_mem scratch;                      /* NULL: none needed */
    size_t scratch_offset, scratch_bytes;
} kn_gemm_call;

typedef struct kn_command {
    kn_command_kind kind;          /* KERNEL, COPY or FILL */
    bool is_gemm;                  /* of kind KERNEL: CLBlast enqueues its own kernels */
    char *operation, *kernel_name; /* NULL but for kernels from a launch */
    cl_kernel kernel;
    int dims;
    size_t global[3], local[3]; /* local[0] 0: the driver's choice */
    int fault_argument;         /* the parameter that takes the stream's fault record; -1: none */
    int first_variable, num_variables;
    kn_transfer transfer;
    kn_gemm_call gemm;
} kn_command;

/* A buffer from outside the graph's pool that its commands use. */
typedef struct kn_outside {
    kn_buffer_watcher watcher; /* first: the pool gives this address back */
    atomic_bool gone;
    kn_buffer *buffer;
} kn_outside;

typedef struct kn_replay_hook {
    kn_status (*prepare)(void *user);
    void *user;
    void (*drop)(void *user);
} kn_replay_hook;

typedef struct kn_recording {
    kn_device *device;
    kn_command *commands;
    kn_variable *variables;
    kn_variable_argument *arguments; /* the commands' variable arguments */
    kn_replay_hook *hooks;
    kn_outside **outside; /* each allocated by itself: the pool keeps its address */
    int num_commands, num_variables, num_arguments, num_hooks, num_outside;
    size_t snapshot_bytes;
    bool has_faults;
    kn_stream *bound; /* whose fault record the kernels have; only the submitting thread looks */
} kn_recording;

/* A recording in the making. */
struct kn_capture {
    kn_recording *recording;
    kn_mem_pool *pool;
    bool blind;        /* an error stuck before it: later ones are not seen */
    kn_status failure; /* the first thing that could not be recorded; KN_OK: none */
    char message[512];
};

kn_recording *kn_recording_new(kn_device *device);            /* NULL with an error */
void kn_recording_free(kn_recording *recording);              /* drops hooks, kernels, watches; NULL allowed */
bool kn_recording_lost_memory(const kn_recording *recording); /* has a buffer from outside been freed? */

/* Each records one command instead of enqueueing it. An error fails the capture for good. */
kn_status kn_capture_kernel(kn_stream *stream, kn_kernel *kernel, const kn_launch_params *params,
                            const size_t global[3], const size_t local[3]);
kn_status kn_capture_transfer(kn_stream *stream, kn_command_kind kind, const kn_transfer *transfer,
                              const kn_buffer *from, const kn_buffer *to);
kn_status kn_capture_gemm(kn_stream *stream, const kn_gemm_call *call);

const char *kn_command_operation(const kn_command *command); /* "conv2d", "copy"; lives as long as the command */

/* Is a thread capturing on the stream? Only that one may use the stream meanwhile, and look into the capture: its end
 * may free it at any time. */
static inline bool kn_stream_has_capture(const kn_stream *stream)
{
    return atomic_load_explicit(&((kn_stream *)(uintptr_t)stream)->capture, memory_order_acquire) != NULL;
}
bool kn_stream_captured_elsewhere(const kn_stream *stream);

/* The calling thread's capture on the stream, NULL: none. */
kn_capture *kn_stream_own_capture(const kn_stream *stream);

/* Begins one: false when there is one already. Ends it. */
bool kn_stream_start_capture(kn_stream *stream, kn_capture *capture);
void kn_stream_stop_capture(kn_stream *stream);

/* Sets the arguments of a kernel (rt/command/launch.c). */
kn_status kn_kernel_set_arguments(cl_kernel handle, kn_stream *stream, const kn_launch_params *params);

/* CLBlast's product, enqueued (rt/clblast/clblast.c). */
kn_status kn_clblast_enqueue(kn_stream *stream, const kn_gemm_call *call);

#endif
