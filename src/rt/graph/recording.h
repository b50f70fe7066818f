/* rt/graph/recording.h - recordings: the commands of a step, recorded by a capture and kept by a graph.
 *
 * Each recorded launch has its own kernel object, whose arguments are set once; a replay sets only those that change
 * (variables, the fault record of another stream) and enqueues. */
#pragma once

#include "rt/clblast/gemm_call.h"
#include "rt/command/recorder.h"
#include "rt/memory/pool.h"

/* Host memory whose contents kernels see as an argument; snapshots of all variables are laid out one after another. */
typedef struct kn_variable {
    const void *memory;  /* one reference (rt/graph/variable.h) */
    size_t size, offset; /* offset in a snapshot */
} kn_variable;

/* `place`: the index of the kernel's parameter; of a kernel that gathers arguments, the first byte in its values. */
typedef struct kn_variable_argument {
    size_t place;
    size_t offset, size; /* of its value in a snapshot */
} kn_variable_argument;

typedef struct kn_command {
    kn_command_kind kind;          /* KERNEL, COPY or FILL */
    bool is_gemm;                  /* of kind KERNEL: CLBlast enqueues its own kernels */
    char *operation, *kernel_name; /* NULL but for kernels from a launch */
    cl_kernel kernel;
    int dims;
    size_t global[3], local[3]; /* local[0] 0: the driver's choice */
    int fault_place;            /* of the argument that is the stream's fault record; -1: none */
    kn_calling calling;
    kn_values *values; /* of a kernel that gathers them; NULL: its arguments are set */
    int first_variable, num_variables;
    kn_transfer transfer;
    kn_gemm_call gemm;
} kn_command;

/* A buffer from outside the graph's pool that its commands use. */
typedef struct kn_outside {
    kn_buffer_watcher watcher; /* first: the pool passes its address to the callback */
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
    kn_entry entry;   /* of one of its kernels: it is worth while to run them directly; NULL: none is known */
    kn_stream *bound; /* the stream whose fault record the kernels have; for the submitting thread only */
} kn_recording;

/* A capture: a recording in the making. */
typedef struct kn_graph_capture {
    kn_capture base; /* first: the stream keeps its address */
    kn_recording *recording;
    kn_mem_pool *pool;
} kn_graph_capture;

/* A capture, not begun yet, into a new recording whose memory comes from the pool; NULL with an error. */
kn_graph_capture *kn_graph_capture_new(kn_device *device, kn_mem_pool *pool);

void kn_recording_free(kn_recording *recording);              /* drops hooks, kernels, watches; NULL allowed */
bool kn_recording_lost_memory(const kn_recording *recording); /* has a buffer from outside been freed? */

/* replay.c: enqueues the recording on the stream, with the values that its hooks give the variables now: they are
 * called once nothing else can run out of memory. Waits only when several replays are not enqueued yet. With `here` the
 * calling thread enqueues it before returning. */
kn_status kn_recording_replay(kn_stream *stream, kn_recording *recording, bool here);

void kn_command_free(kn_command *command);                   /* what it holds, not the struct */
const char *kn_command_operation(const kn_command *command); /* "conv2d", "copy"; lives as long as the command */
