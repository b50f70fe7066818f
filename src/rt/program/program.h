/* rt/program/program.h - programs: built on first use, cached in memory per device, and on disk per source, options,
 * device and driver. */
#pragma once

#include "base/threads.h"
#include "rt/device/device_struct.h"
#include "rt/stream/calls.h"

/* An argument that a kernel object was given, of up to so many bytes; size 0: not known. */
typedef struct kn_known_argument {
    size_t size;
    unsigned char value[120];
} kn_known_argument;
#define KN_KNOWN_ARGUMENTS 24 /* the first parameters */

typedef struct kn_kernel {
    char *name;
    cl_kernel handle;
    size_t most_items; /* of a work-group, by its need of registers and local memory */
    kn_calling calling;
    kn_question question;
    kn_mutex lock;            /* arguments belong to the kernel object: setting them and enqueueing is one step */
    kn_known_argument *known; /* of its parameters, in order; guarded by the lock; NULL: they are gathered */
    atomic_bool launched;     /* has run before; written with the lock held */
    struct kn_kernel *next;
} kn_kernel;

typedef struct kn_program {
    char *source;
    char *asked_options, *options; /* the caller's; and, once built, the driver's */
    size_t group[3]; /* the work-group size that its kernels are compiled for; {0}: any that the driver chooses */
    uint32_t key;
    cl_program handle;
    kn_mutex lock; /* held while building and while kernels are added */
    kn_kernel *kernels;
    struct kn_program *next;
} kn_program;

#define KN_PROGRAM_BUCKETS 64

struct kn_program_table {
    kn_mutex lock;
    kn_program *buckets[KN_PROGRAM_BUCKETS];
};

kn_program_table *kn_program_table_new(void); /* NULL with an error */

/* The kernel, built if necessary. With `group` (NULL: any) it can run in work-groups of that size: if the driver takes
 * fewer work-items for it, as compilers do for kernels that need many registers, its program is built once more for
 * just that size, with fewer registers. */
kn_status kn_kernel_get(kn_kernel **kernel, kn_device *device, const char *source, const char *options,
                        const char *name, const size_t group[3]);

/* Has it been launched, in work-groups of any size? Does not build it. */
bool kn_kernel_has_run(kn_device *device, const char *source, const char *options, const char *name);

/* rt/program/build.c: sets the program's handle; its lock is held. `kernel` is the requested one: waiting threads are
 * told its name. */
kn_status kn_program_build(kn_device *device, kn_program *program, const char *kernel);

/* Does another process find on disk what this one builds for the device? */
bool kn_programs_are_kept(const kn_device *device);

/* rt/program/source_text.c: the text of a kernel source with its includes expanded; the caller frees it. From
 * KOINE_KERNEL_DIR if that is set and has the file, else the embedded one. */
kn_status kn_kernel_source_text(char **text, const char *path);

/* rt/program/build_log.c: the error of a build that failed, with the offending line of `text`, the source built. */
kn_status kn_fail_build(kn_device *device, const kn_program *program, cl_program handle, cl_int error,
                        const char *text);

/* rt/program/cache.c: binaries on disk. A file that is missing, damaged, or of another key counts as absent. A failure
 * to store is logged; it is not an error. */
unsigned char *kn_program_cache_load(const char *key, size_t *size); /* NULL when absent; the caller frees it */
void kn_program_cache_store(const char *key, const unsigned char *binary, size_t size);

/* An error if it cannot keep programs: it is switched off, or its folder cannot be written to or trusted. */
kn_status kn_program_cache_check(void);
