/* watch/usage/usage.h - the sources of kn_device_usage. They do not use OpenCL, but take PCI addresses.
 *
 * `root` is prepended to /proc and /sys, so that tests can simulate any machine; "" means this one, and programs pass
 * kn_usage_root, which is KOINE_DOCTOR_ROOT or "". Each source fills
 * in what it knows and leaves the rest as set by kn_usage_clear. */
#pragma once

#include <koine/usage.h>

/* Sets everything to unknown. */
void kn_usage_clear(kn_usage *usage);

/* Adds a process, or its memory to that of the same pid. */
void kn_usage_add_process(kn_usage *usage, int64_t pid, int64_t memory_used, const char *name);

/* Most memory first, then by pid. */
void kn_usage_sort_processes(kn_usage *usage);

/* NVML's device with that PCI address ("0000:65:00.0"), or, if the address is "", with that UUID. False if there is no
 * NVML or no such device. KOINE_NVML_LIBRARY names another library than libnvidia-ml.so.1, read at first use. */
bool kn_usage_from_nvml(kn_usage *usage, const char *pci_address, const char *uuid, const char *root);
bool kn_usage_memory_from_nvml(kn_usage *usage, const char *pci_address, const char *uuid); /* memory alone */

/* The graphics device with that PCI address in /sys/bus/pci/devices. False if there is none. */
bool kn_usage_from_sysfs(kn_usage *usage, const char *pci_address, const char *root);
bool kn_usage_memory_from_sysfs(kn_usage *usage, const char *pci_address, const char *root); /* memory alone */

/* The processes that /proc/PID/fdinfo shows to use it (amdgpu, i915, xe; the kernel shows this user's own). */
void kn_usage_drm_processes(kn_usage *usage, const char *pci_address, const char *root);

/* The host's processor and memory. */
void kn_usage_from_host(kn_usage *usage, const char *root);

/* --- for the sources -------------------------------------------------------------------------- */

#define KN_USAGE_PATH 512

const char *kn_usage_root(void);

/* "ROOT" and the rest by the format, into `path`; a path that is too long becomes "". Returns path. */
const char *kn_usage_path(char path[KN_USAGE_PATH], const char *root, const char *format, ...) KN_PRINTF(3, 4);

/* The integer in a small file; -1 if there is none. */
int64_t kn_usage_read_number(const char *path);

/* The first line of a small file, printable and without blanks around it; false when it cannot be read or is empty. */
bool kn_usage_read_line(const char *path, char *line, size_t size);

/* A number in a file times `unit`; NAN if there is none. */
double kn_usage_read_scaled(const char *path, double unit);

/* The name of a process, from /proc/PID/comm; "" when it cannot be read. */
void kn_usage_process_name(char name[64], const char *root, int64_t pid);
