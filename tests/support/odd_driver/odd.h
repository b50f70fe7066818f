/* support/odd_driver/odd.h - shared by the files of the layer; layer.c says what it does. */
#pragma once

#include "support/layer.h"

#include <stdbool.h>

/* X(its number in the layer, its name in ODD_DRIVER, the number that "name=number" there replaces) */
#define ODDITIES(X)                                                                                                    \
    X(OLD, "old", 0)                                                                                                   \
    X(UNAVAILABLE, "unavailable", 0)                                                                                   \
    X(NO_COMPILER, "no-compiler", 0)                                                                                   \
    X(COPY, "copy", 0)                                                                                                 \
    X(UNLIKE, "unlike", 0)                                                                                             \
    X(LOCAL, "local", 48)                                                                                              \
    X(GROUP, "group", 256)                                                                                             \
    X(DIMS, "dims", 65535)                                                                                             \
    X(STRICT, "strict", 0)                                                                                             \
    X(ARGUMENTS, "arguments", 1024)                                                                                    \
    X(ALIGN, "align", 4096)                                                                                            \
    X(WIDTH, "width", 1)                                                                                               \
    X(UNITS, "units", 8)                                                                                               \
    X(CACHE, "cache", 1)                                                                                               \
    X(BARE, "bare", 0)                                                                                                 \
    X(INEXACT, "inexact", 0)                                                                                           \
    X(FILL, "fill", 0)                                                                                                 \
    X(BLOCKING, "blocking", 0)                                                                                         \
    X(POSTED, "posted", 5)                                                                                             \
    X(LATE, "late", 30)                                                                                                \
    X(MARKER_ZERO, "marker-zero", 0)                                                                                   \
    X(MARKER_MIXED, "marker-mixed", 0)                                                                                 \
    X(NO_TIMES, "no-times", 0)                                                                                         \
    X(ALLOCATION, "allocation", 64)                                                                                    \
    X(LAZY, "lazy", 64)                                                                                                \
    X(CRASH, "crash", 1)                                                                                               \
    X(SILENT, "silent", 0)                                                                                             \
    X(WARNINGS, "warnings", 0)                                                                                         \
    X(NO_BINARY, "no-binary", 0)

#define ODD_NUMBER(number, name, value) ODD_##number,
enum { ODDITIES(ODD_NUMBER) NUM_ODDITIES };

typedef struct oddity {
    const char *name;
    size_t number;
    bool is_on;
} oddity;
HIDDEN oddity odd[NUM_ODDITIES];

/* A refusal is also reported to stderr, for whoever looks for its cause. */
cl_int odd_refuse(cl_int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

cl_device_id odd_device_of(cl_command_queue queue);

/* --- devices.c, limits.c --- */
void odd_install_devices(void);
/* What the device says of a limit; false: the truth. */
bool odd_answer_limit(cl_device_id device, cl_device_info what, size_t size, void *to, size_t *size_ret, cl_int *error);

/* --- launches.c --- */
void odd_install_launches(void);

/* --- transfers.c --- */
void odd_install_transfers(void);

/* --- memory.c --- */
void odd_install_memory(void);
/* A command uses it: the error if its memory, which is given only now, is not there. */
cl_int odd_use_memory(cl_mem memory);

/* --- events.c --- */
void odd_install_events(void);
/* Is this thread the driver's, in a callback? */
bool odd_in_callback(void);

/* --- programs.c --- */
void odd_install_programs(void);

/* --- every_call.c: after all others --- */
void odd_install_every_call(void);
/* A kernel was launched: the elementwise one of number `crash` crashes. */
void odd_count_launch(const char *kernel);
