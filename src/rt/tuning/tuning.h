/* rt/tuning/tuning.h - what was measured on a device and is worth keeping: the parameters that a kernel does best with,
 * the implementation that is the fastest for a problem.
 *
 * A result answers a question, a line of text that names the kernel or the problem, with a choice, and keeps the
 * seconds that decided. Results are kept per device, driver and library version in CACHE/tuning/HASH.json, which is
 * read at the first question and may be carried to another machine with such a device: the file that KOINE_TUNE_FILE
 * names is read too, and goes first. What a file says is believed only as far as it makes sense: whoever asks knows the
 * possible choices and takes no other. Safe from many threads and, since a write merges under a lock, from many
 * processes. */
#ifndef KN_RT_TUNING_TUNING_H
#define KN_RT_TUNING_TUNING_H

#include <koine/status.h>

typedef struct kn_tuning_figure {
    char *name;     /* of a candidate; the first one's is what runs untuned */
    double seconds; /* HUGE_VAL: it failed */
} kn_tuning_figure;

typedef struct kn_tuning_result {
    char *question, *choice;
    bool complete; /* false: more candidates are to be timed */
    kn_tuning_figure *figures;
    int num_figures;
} kn_tuning_result;

/* The answer, the caller's to free by kn_tuning_free; false where there is none. */
bool kn_tuning_find(kn_tuning_result *result, kn_device *device, const char *question);
void kn_tuning_free(kn_tuning_result *result); /* leaves {0} */

/* Adds a candidate's time to a result that is being made, and chooses it if it is the fastest by `margin`: 0.95 asks
 * for 5 % less than the first. */
kn_status kn_tuning_add(kn_tuning_result *result, const char *name, double seconds, double margin);
double kn_tuning_seconds(const kn_tuning_result *result, const char *name); /* -1: not timed */

/* Keeps a copy in memory and writes it to disk. In memory it is kept even if writing fails. */
kn_status kn_tuning_store(kn_device *device, const kn_tuning_result *result);

/* Changes whenever kn_tuning_find may answer differently: those who keep an answer ask again then. */
unsigned kn_tuning_generation(void);

/* The file of a device; the caller frees it. */
char *kn_tuning_path(kn_device *device);

/* Writes all results of the device to a file; reads those of a file, which must be about a device of that name with as
 * many compute units. */
kn_status kn_tuning_export(kn_device *device, const char *path);
kn_status kn_tuning_import(kn_device *device, const char *path);

/* Forgets what is in memory; and, on disk, the results of all devices whose questions begin with `prefix`. */
void kn_tuning_forget(void);
kn_status kn_tuning_clear_disk(const char *prefix);

#endif
