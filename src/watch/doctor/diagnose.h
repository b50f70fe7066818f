/* watch/doctor/diagnose.h - diagnosis of this machine's OpenCL, with remedies, as printed by `koine doctor`.
 *
 * A diagnosis is a list of findings. The probes read files and query the loader; they change nothing. The environment
 * variable KOINE_DOCTOR_ROOT is prepended to the paths they read (/etc, /dev, /sys, /usr/lib), so that tests can
 * simulate any machine. */
#pragma once

#include <koine/status.h>

typedef enum kn_finding_kind {
    KN_FINDING_GOOD,   /* checked and in order */
    KN_FINDING_NOTE,   /* worth knowing; nothing to fix */
    KN_FINDING_PROBLEM /* wrong; see the remedy */
} kn_finding_kind;

typedef struct kn_finding {
    kn_finding_kind kind;
    char *what;   /* one sentence */
    char *remedy; /* NULL for good findings */
} kn_finding;

/* Initialise with {0}; `failed` is set, with the thread's error, if host memory ran out and the list is incomplete. */
typedef struct kn_diagnosis {
    kn_finding *findings;
    int count, capacity;
    bool failed;
} kn_diagnosis;

/* Appends a finding and takes ownership of both strings, made with kn_formatted (`remedy` may be NULL). */
void kn_diagnosis_add(kn_diagnosis *diagnosis, kn_finding_kind kind, char *what, char *remedy);
int kn_diagnosis_problems(const kn_diagnosis *diagnosis);
void kn_diagnosis_free(kn_diagnosis *diagnosis);

/* A formatted string, owned by the caller; NULL with an error if memory is short. */
char *kn_formatted(const char *format, ...) KN_PRINTF(1, 2);

/* The loader's list of drivers (/etc/OpenCL/vendors or what OCL_ICD_VENDORS says): is it there, does each entry load;
 * is there a driver's library without an entry (a container into which the driver was mounted)? */
void kn_diagnose_drivers(kn_diagnosis *diagnosis);

/* Device nodes (/dev/dri/renderD*, /dev/kfd, /dev/nvidia*): may this process use them? */
void kn_diagnose_nodes(kn_diagnosis *diagnosis);

/* Platforms without devices, GPUs on the PCI bus that no platform offers, and whether there is any device. */
void kn_diagnose_devices(kn_diagnosis *diagnosis);

/* Can compiled kernels be cached between runs? */
void kn_diagnose_cache(kn_diagnosis *diagnosis);

/* Environment variables that change results or behaviour, and that may be set by mistake. */
void kn_diagnose_environment(kn_diagnosis *diagnosis);

/* --- for the probes --------------------------------------------------------------------------- */

/* The vendors whose drivers and devices are recognised, for messages only: no code decides by a vendor. */
#define KN_MAX_COMPILERS 2

typedef struct kn_driver_row {
    const char *name;                        /* its common name */
    const char *library;                     /* the driver's library in its ICD file */
    const char *icd_file;                    /* that file's usual name */
    const char *install;                     /* how to install it on Debian and Ubuntu */
    const char *vendor;                      /* part of CL_DEVICE_VENDOR; NULL: not tied to a hardware vendor */
    unsigned pci_vendor;                     /* 0: none */
    const char *compilers[KN_MAX_COMPILERS]; /* libraries that it loads to compile kernels, or NULL */
    const char *in_container;                /* how a container gets these */
} kn_driver_row;
extern const kn_driver_row kn_driver_rows[]; /* terminated by a NULL name */

#define KN_PROBE_PATH 4096

/* KOINE_DOCTOR_ROOT followed by `path`, into `buffer`; returns buffer. A path that is too long becomes "". */
const char *kn_probe_path(char buffer[KN_PROBE_PATH], const char *path);
