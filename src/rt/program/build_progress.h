/* rt/program/build_progress.h - reports about kernels being built: to the log, at level debug, and to waiting threads.
 *
 * Building takes time in two places: when a program is created and, with drivers that compile late, at the first launch
 * of each kernel. */
#pragma once

#include <koine/common.h>

struct kn_program;

/* Sent before a thread waits for a kernel and once it has it. */
typedef struct kn_build_notice {
    const char *kernel; /* its name, valid during the call only */
    int done;           /* kernels that the thread has launched for the first time since the observer was set */
    bool is_over;       /* this wait has ended, after `seconds` */
    double seconds;
} kn_build_notice;

/* Observes the calling thread. `notice` is called with locks of the runtime held, so it must not call the runtime. */
typedef struct kn_build_observer {
    void (*notice)(const kn_build_notice *notice, void *user); /* NULL: nobody watches */
    void *user;
    int done; /* counted here */
} kn_build_observer;

/* Sets the thread's observer and returns the previous one, to be restored. */
kn_build_observer kn_build_observe(kn_build_observer observer);

/* --- for the runtime: around what takes the time ------------------------------------------------------------------ */

typedef struct kn_build_wait {
    const char *kernel;
    double started;
} kn_build_wait;

kn_build_wait kn_build_begin(const char *kernel);
double kn_build_end(kn_build_wait wait, bool is_ready); /* is_ready: it was launched; returns the seconds */

/* The log's lines. */
typedef enum kn_build_origin { KN_BUILT_FROM_SOURCE, KN_BUILT_FROM_CACHE } kn_build_origin;
void kn_build_log_program(const kn_device *device, const struct kn_program *program, kn_build_origin origin,
                          double seconds);
void kn_build_log_launch(const kn_device *device, const char *source, const char *kernel, double seconds);
