/* rt/tuning/tuning.h - stored measurements of a device: the best parameters of a kernel, the fastest implementation of
 * a problem.
 *
 * A result maps a question, a line of text that names the kernel or the problem, to a choice, with the measured
 * seconds. Results are stored per device, driver and library version in CACHE/tuning/HASH.json, which is read on first
 * use and may be copied to another machine with such a device: the file named by KOINE_TUNE_FILE is read too, with
 * priority. File contents are not trusted: callers know the possible choices and accept no others. Safe for many
 * threads and, because writes merge under a lock, for many processes. */
#pragma once

#include <koine/status.h>

typedef struct kn_tuning_figure {
    char *name;     /* of a candidate; the first is the untuned default */
    double seconds; /* HUGE_VAL: it failed */
} kn_tuning_figure;

typedef struct kn_tuning_result {
    char *question, *choice;
    bool complete; /* false: more candidates are to be timed */
    kn_tuning_figure *figures;
    int num_figures;
} kn_tuning_result;

/* The result, which the caller frees with kn_tuning_free; false if there is none. */
bool kn_tuning_find(kn_tuning_result *result, kn_device *device, const char *question);
void kn_tuning_free(kn_tuning_result *result); /* leaves {0} */

/* Adds a candidate's time to a result, and chooses it if it is the fastest by `margin`: 0.95 requires 5 % less time
 * than the first. */
kn_status kn_tuning_add(kn_tuning_result *result, const char *name, double seconds, double margin);
double kn_tuning_seconds(const kn_tuning_result *result, const char *name); /* -1: not timed */

/* Keeps a copy in memory and writes it to disk. In memory it is kept even if writing fails. */
kn_status kn_tuning_store(kn_device *device, const kn_tuning_result *result);

/* Changes whenever kn_tuning_find may answer differently, to invalidate cached answers. */
unsigned kn_tuning_generation(void);

/* The file of a device; the caller frees it. */
char *kn_tuning_path(kn_device *device);

/* Writes all results of the device to a file; reads those of a file, which must be about a device of that name with as
 * many compute units. */
kn_status kn_tuning_export(kn_device *device, const char *path);
kn_status kn_tuning_import(kn_device *device, const char *path);

/* Clears the results in memory; and, on disk, those of all devices whose questions begin with `prefix`. */
void kn_tuning_forget(void);
kn_status kn_tuning_clear_disk(const char *prefix);
