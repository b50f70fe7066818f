/* watch/doctor/diagnose.h - what is wrong with this machine's OpenCL, and how to mend it; what `koine doctor` prints.
 *
 * A diagnosis is a list of findings. The probes look at files and at what the loader answers; they change nothing. The
 * environment variable KOINE_DOCTOR_ROOT is put in front of the paths they look at (/etc, /dev, /sys, /usr/lib), so
 * that tests can show them any machine. */
#ifndef KN_WATCH_DOCTOR_DIAGNOSE_H
#define KN_WATCH_DOCTOR_DIAGNOSE_H

#include <koine/status.h>

typedef enum kn_finding_kind {
    KN_FINDING_GOOD,   /* looked at and in order */
    KN_FINDING_NOTE,   /* worth knowing; nothing needs mending */
    KN_FINDING_PROBLEM /* wrong; the remedy says what to do */
} kn_finding_kind;

typedef struct kn_finding {
    kn_finding_kind kind;
    char *what;   /* one sentence */
    char *remedy; /* NULL for good findings */
} kn_finding;

/* Start with {0}; `failed` is set, with the thread's error, when host memory ran out and the list is not complete. */
typedef struct kn_diagnosis {
    kn_finding *findings;
    int count, capacity;
    bool failed;
} kn_diagnosis;

/* Appends a finding and takes over both strings (`remedy` may be NULL); kn_formatted makes them. */
void kn_diagnosis_add(kn_diagnosis *diagnosis, kn_finding_kind kind, char *what, char *remedy);
int kn_diagnosis_problems(const kn_diagnosis *diagnosis);
void kn_diagnosis_free(kn_diagnosis *diagnosis);

/* A formatted string, the caller's; NULL with an error when memory is short. */
char *kn_formatted(const char *format, ...) KN_PRINTF(1, 2);

/* The loader's list of drivers (/etc/OpenCL/vendors or what OCL_ICD_VENDORS says): is it there, does each entry load;
 * is there a driver's library without an entry (a container into which the driver was mounted)? */
void kn_diagnose_drivers(kn_diagnosis *diagnosis);

/* Device nodes (/dev/dri/renderD*, /dev/kfd, /dev/nvidia*): may this process use them? */
void kn_diagnose_nodes(kn_diagnosis *diagnosis);

/* Platforms without a device, GPUs on the PCI bus that no platform offers, and whether there is any device at all. */
void kn_diagnose_devices(kn_diagnosis *diagnosis);

/* Can compiled kernels be kept between runs? */
void kn_diagnose_cache(kn_diagnosis *diagnosis);

/* Environment variables that change what is computed or how, and that somebody may have forgotten. */
void kn_diagnose_environment(kn_diagnosis *diagnosis);

/* --- for the probes --------------------------------------------------------------------------- */

/* The vendors whose drivers and devices are recognised, for messages only: no code decides by a vendor. */
typedef struct kn_driver_row {
    const char *name;     /* what people call it */
    const char *library;  /* the driver's library as its ICD file names it */
    const char *icd_file; /* that file's usual name */
    const char *install;  /* how Debian and Ubuntu get it */
    const char *vendor;   /* part of CL_DEVICE_VENDOR; NULL: drives no hardware of its own make */
    unsigned pci_vendor;  /* 0: none */
} kn_driver_row;
extern const kn_driver_row kn_driver_rows[]; /* ended by a NULL name */

#define KN_PROBE_PATH 4096

/* KOINE_DOCTOR_ROOT followed by `path`, into `buffer`; returns buffer. A path that is too long becomes "". */
const char *kn_probe_path(char buffer[KN_PROBE_PATH], const char *path);

/* The first line of a small file without blanks at its ends, into `line`; false when it cannot be read or is empty. */
bool kn_probe_first_line(const char *path, char *line, size_t size);

#endif
