/* rt/stream/executor.h - threads of the library that do what a driver's callback may not: OpenCL allows a callback
 * almost no call, and Intel's driver deadlocks (https://github.com/CHIP-SPV/chipStar/issues/1090). */
#pragma once

#include "base/error.h"

/* One for work that never waits, one for functions of users, which may: these must not hold up the others. */
typedef enum kn_executor { KN_EXECUTOR_RUNTIME, KN_EXECUTOR_USER, KN_NUM_EXECUTORS } kn_executor;

/* Part of the caller's struct, which `run` may free. */
typedef struct kn_posted {
    void (*run)(struct kn_posted *self);
    struct kn_posted *next;
} kn_posted;

/* Starts the thread; before a callback that posts to it is set. KN_ERR_MEMORY: there is no thread. */
kn_status kn_executor_start(kn_executor which);

/* From any thread, drivers' included. They run in this order. */
void kn_executor_post(kn_executor which, kn_posted *posted);

bool kn_executor_is_current(kn_executor which); /* called by its thread? */
