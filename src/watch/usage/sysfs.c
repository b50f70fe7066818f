/* watch/usage/sysfs.c - figures of the kernel's graphics drivers in /sys/bus/pci/devices/ADDRESS.
 *
 * amdgpu: Documentation/gpu/amdgpu/thermal.rst and driver-misc.rst; i915 and xe show clocks and sensors only.
 * Processes: Documentation/gpu/drm-usage-stats.rst, the keys "drm-..." of /proc/PID/fdinfo/FD. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/system.h"
#include "watch/usage/usage.h"

/* --- the device ------------------------------------------------------------------------------- */

typedef struct device_folder {
    const char *root, *address;
    kn_usage *usage;
} device_folder;

static double read_sensor(const device_folder *d, const char *hwmon, const char *file, double unit)
{
    char path[KN_USAGE_PATH];
    return kn_usage_read_scaled(
        kn_usage_path(path, d->root, "/sys/bus/pci/devices/%s/hwmon/%s/%s", d->address, hwmon, file), unit);
}

static double first_known(double a, double b) { return isnan(a) ? b : a; }

/* Millidegrees, microwatts, hertz; the fan's pulse width of 255. */
static void visit_hwmon(const char *name, void *user)
{
    device_folder *d = user;
    kn_usage *u = d->usage;
    u->temperature = first_known(u->temperature, read_sensor(d, name, "temp1_input", 1e-3));
    u->temperature = first_known(u->temperature, read_sensor(d, name, "temp2_input", 1e-3)); /* xe: of the package */
    u->power = first_known(u->power, read_sensor(d, name, "power1_average", 1e-6));
    u->power = first_known(u->power, read_sensor(d, name, "power1_input", 1e-6));
    u->power_limit = first_known(u->power_limit, read_sensor(d, name, "power1_cap", 1e-6));
    u->power_limit = first_known(u->power_limit, read_sensor(d, name, "power1_max", 1e-6));
    u->clock = first_known(u->clock, read_sensor(d, name, "freq1_input", 1e-6));
    u->memory_clock = first_known(u->memory_clock, read_sensor(d, name, "freq2_input", 1e-6));
    u->fan = first_known(u->fan, read_sensor(d, name, "pwm1", 100.0 / 255));
}

/* i915: drm/card0/gt_act_freq_mhz */
static void visit_card(const char *name, void *user)
{
    device_folder *d = user;
    char path[KN_USAGE_PATH];
    d->usage->clock = first_known(
        d->usage->clock,
        kn_usage_read_scaled(
            kn_usage_path(path, d->root, "/sys/bus/pci/devices/%s/drm/%s/gt_act_freq_mhz", d->address, name), 1));
}

/* The name of the kernel's driver as a static string; "sysfs" for others with figures. */
static const char *driver_of(const device_folder *d)
{
    static const char *const known[] = {"amdgpu", "i915", "xe"};
    char path[KN_USAGE_PATH], target[KN_USAGE_PATH];
    ssize_t length =
        readlink(kn_usage_path(path, d->root, "/sys/bus/pci/devices/%s/driver", d->address), target, sizeof target - 1);
    if (length < 0)
        return NULL;
    target[length] = '\0';
    const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i]) == 0)
            return known[i];
    return "sysfs";
}

bool kn_usage_memory_from_sysfs(kn_usage *usage, const char *pci_address, const char *root)
{
    char path[KN_USAGE_PATH];
    if (!*pci_address)
        return false;
    usage->memory_used =
        kn_usage_read_number(kn_usage_path(path, root, "/sys/bus/pci/devices/%s/mem_info_vram_used", pci_address));
    usage->memory_total =
        kn_usage_read_number(kn_usage_path(path, root, "/sys/bus/pci/devices/%s/mem_info_vram_total", pci_address));
    return usage->memory_used >= 0 && usage->memory_total >= 0;
}

bool kn_usage_from_sysfs(kn_usage *usage, const char *pci_address, const char *root)
{
    device_folder d = {root, pci_address, usage};
    char path[KN_USAGE_PATH];
    const char *driver = *pci_address ? driver_of(&d) : NULL;
    if (!driver)
        return false;
#define IN_DEVICE(file) kn_usage_path(path, root, "/sys/bus/pci/devices/%s/" file, pci_address)
    kn_usage_memory_from_sysfs(usage, pci_address, root);
    usage->load = kn_usage_read_scaled(IN_DEVICE("gpu_busy_percent"), 1);
    usage->memory_load = kn_usage_read_scaled(IN_DEVICE("mem_busy_percent"), 1);
    usage->clock = kn_usage_read_scaled(IN_DEVICE("tile0/gt0/freq0/act_freq"), 1); /* xe */
    kn_visit_directory(IN_DEVICE("hwmon"), visit_hwmon, &d);
    kn_visit_directory(IN_DEVICE("drm"), visit_card, &d);
#undef IN_DEVICE
    usage->source = driver;
    return true;
}

/* --- processes -------------------------------------------------------------------------------- */

#define MAX_CLIENTS 64

typedef struct process_scan {
    const char *root, *address;
    kn_usage *usage;
    int64_t pid;
    long clients[MAX_CLIENTS]; /* of this process: several descriptors may be one client */
    int num_clients;
    bool uses; /* some descriptor refers to the device */
    int64_t memory;
} process_scan;

/* The figures of one descriptor. */
typedef struct client {
    bool is_ours;
    long id;
    int64_t resident, memory, total; /* bytes in device memory, depending on the driver's counters; -1: unknown */
} client;

/* "drm-resident-vram0:	1024 KiB" adds to *sum when the key begins with `prefix` and names memory of the device. */
static void add_region(int64_t *sum, const char *line, const char *prefix)
{
    size_t length = strlen(prefix);
    char unit[8] = "";
    long long value;
    if (strncmp(line, prefix, length) != 0)
        return;
    const char *region = line + length, *colon = strchr(region, ':');
    if ((strncmp(region, "vram", 4) != 0 && strncmp(region, "local", 5) != 0) || !colon ||
        sscanf(colon + 1, "%lld %7s", &value, unit) < 1)
        return;
    if (strcmp(unit, "KiB") == 0)
        value *= 1024;
    else if (strcmp(unit, "MiB") == 0)
        value *= 1024 * 1024;
    *sum = (*sum < 0 ? 0 : *sum) + value;
}

static client read_client(const char *path, const char *address)
{
    client c = {.id = -1, .resident = -1, .memory = -1, .total = -1};
    char line[256], pdev[32];
    FILE *file = kn_sys_open_lines(path);
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "drm-pdev: %31s", pdev) == 1)
            c.is_ours = strcmp(pdev, address) == 0;
        else if (sscanf(line, "drm-client-id: %ld", &c.id) != 1) {
            add_region(&c.resident, line, "drm-resident-");
            add_region(&c.memory, line, "drm-memory-");
            add_region(&c.total, line, "drm-total-");
        }
    }
    if (file)
        fclose(file);
    return c;
}

static void visit_descriptor(const char *name, void *user)
{
    process_scan *scan = user;
    char path[KN_USAGE_PATH], target[KN_USAGE_PATH];
    ssize_t length = readlink(kn_usage_path(path, scan->root, "/proc/%" PRId64 "/fd/%s", scan->pid, name), target,
                              sizeof target - 1);
    if (length < 0)
        return;
    target[length] = '\0';
    /* most descriptors do not refer to a graphics device: reading only the links is fast */
    if (!strstr(target, "/dri/"))
        return;
    client c =
        read_client(kn_usage_path(path, scan->root, "/proc/%" PRId64 "/fdinfo/%s", scan->pid, name), scan->address);
    if (!c.is_ours)
        return;
    for (int i = 0; i < scan->num_clients; i++)
        if (scan->clients[i] == c.id)
            return;
    if (c.id >= 0 && scan->num_clients < MAX_CLIENTS)
        scan->clients[scan->num_clients++] = c.id;
    int64_t bytes = c.resident >= 0 ? c.resident : c.memory >= 0 ? c.memory : c.total;
    scan->uses = true;
    if (bytes >= 0)
        scan->memory = (scan->memory < 0 ? 0 : scan->memory) + bytes;
}

static void visit_process(const char *name, void *user)
{
    process_scan *scan = user;
    char path[KN_USAGE_PATH], comm[64];
    if (name[strspn(name, "0123456789")] != '\0')
        return;
    scan->pid = strtoll(name, NULL, 10);
    scan->num_clients = 0;
    scan->uses = false;
    scan->memory = -1;
    kn_visit_directory(kn_usage_path(path, scan->root, "/proc/%s/fd", name), visit_descriptor, scan);
    if (!scan->uses)
        return;
    kn_usage_process_name(comm, scan->root, scan->pid);
    kn_usage_add_process(scan->usage, scan->pid, scan->memory, comm);
}

void kn_usage_drm_processes(kn_usage *usage, const char *pci_address, const char *root)
{
    process_scan scan = {.root = root, .address = pci_address, .usage = usage};
    char path[KN_USAGE_PATH];
    usage->num_processes = 0;
    kn_visit_directory(kn_usage_path(path, root, "/proc"), visit_process, &scan);
    kn_usage_sort_processes(usage);
}
