/* rt/clblast/parameters.h - the parameters of CLBlast's kernels: candidates, and which are in use.
 *
 * CLBlast chooses them by a table of devices it was tuned on, which lacks newer devices and processors under PoCL. This
 * is a list of sets that perform well on some device; `koine tune` finds the best one for a device, and the first
 * product on that device applies it. */
#pragma once

#include <koine/status.h>

#include "rt/device/limits.h"

typedef enum kn_clblast_kernel {
    KN_CLBLAST_GEMM,      /* uses padded copies of its operands: faster for large products */
    KN_CLBLAST_DIRECT,    /* uses the operands in place */
    KN_CLBLAST_THRESHOLD, /* the size from which the first is used */
    KN_CLBLAST_KERNELS
} kn_clblast_kernel;

#define KN_CLBLAST_OWN "CLBlast's own" /* the candidate that keeps CLBlast's choice */

const char *kn_clblast_kernel_name(kn_clblast_kernel kernel); /* "Xgemm"; as CLBlast calls them */

/* Number `index` of the kernel's sets, as text: "KWG=16 KWI=2 ..."; NULL beyond the last. */
const char *kn_clblast_candidate(kn_clblast_kernel kernel, int index);
bool kn_clblast_candidate_fits(const char *candidate, const kn_limits *limits, bool f64);
size_t kn_clblast_candidate_items(const char *candidate); /* work-items of a group; 0 for thresholds */

/* The question that a tuning result answers (rt/tuning/tuning.h). */
#define KN_CLBLAST_QUESTION 64
const char *kn_clblast_question(char buffer[KN_CLBLAST_QUESTION], kn_clblast_kernel kernel, bool f64);

/* The choice for an untuned device. */
const char *kn_clblast_default(const kn_limits *limits, kn_clblast_kernel kernel);

/* Get the set in use; set the one for all further products on the device. KN_ERR_STATE for CLBlast's own after it was
 * replaced: only a new process restores it. */
const char *kn_clblast_in_use(kn_device *device, kn_clblast_kernel kernel, bool f64);
kn_status kn_clblast_use(kn_device *device, kn_clblast_kernel kernel, bool f64, const char *candidate);

/* Applies the tuned set, or the default, once per device and precision. For rt/clblast/gemm.c, with CLBlast's lock
 * held. A set that cannot be applied is logged, and CLBlast's own parameters stay in use. */
void kn_clblast_prepare(kn_device *device, bool f64);
void kn_clblast_lock(void);
void kn_clblast_unlock(void);
