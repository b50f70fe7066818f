/* watch/doctor/devices.c - device nodes and their permissions, GPUs on the bus, platforms without a device. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "rt/device/device.h"
#include "rt/device/table.h"
#include "rt/find/find.h"
#include "rt/find/left_out.h"
#include "watch/doctor/diagnose.h"

/* --- nodes ------------------------------------------------------------------------------------ */

typedef struct nodes {
    kn_diagnosis *diagnosis;
    const char *folder; /* without KOINE_DOCTOR_ROOT: "/dev/dri" */
    const char *prefix; /* prefix of the file names: "renderD" */
    bool digit;         /* a digit must follow the prefix */
    int seen, usable;
} nodes;

static void report_forbidden(const nodes *all, const char *node, const struct stat *status)
{
    const struct group *group = getgrgid(status->st_gid);
    bool group_may = (status->st_mode & 060) == 060 && status->st_gid != 0;
    char *remedy;
    if (group && group_may)
        remedy = kn_formatted("sudo usermod -aG %s \"$USER\", then log in again (in a container: --group-add %lu)",
                              group->gr_name, (unsigned long)status->st_gid);
    else if (group_may)
        remedy =
            kn_formatted("give your user the group %lu, to which the node belongs (in a container: --group-add %lu)",
                         (unsigned long)status->st_gid, (unsigned long)status->st_gid);
    else
        remedy =
            kn_formatted("let your user read and write it, as root: chmod a+rw %s (a udev rule makes it last)", node);
    kn_diagnosis_add(all->diagnosis, KN_FINDING_PROBLEM,
                     kn_formatted("no permission to use the device node %s, so its driver shows no device", node),
                     remedy);
}

static void visit_node(const char *name, void *user)
{
    nodes *all = user;
    size_t length = strlen(all->prefix);
    if (strncmp(name, all->prefix, length) != 0 || (all->digit && (name[length] < '0' || name[length] > '9')))
        return;
    char node[512], path[KN_PROBE_PATH];
    int written = snprintf(node, sizeof node, "%s/%s", all->folder, name);
    struct stat status;
    if (written < 0 || written >= (int)sizeof node || stat(kn_probe_path(path, node), &status) != 0 ||
        S_ISDIR(status.st_mode))
        return;
    all->seen++;
    if (access(path, R_OK | W_OK) == 0)
        all->usable++;
    else if (errno == EACCES || errno == EPERM)
        report_forbidden(all, node, &status);
}

void kn_diagnose_nodes(kn_diagnosis *diagnosis)
{
    static const nodes kinds[] = {
        {.folder = "/dev/dri", .prefix = "renderD", .digit = true}, /* Mesa, Intel, AMD */
        {.folder = "/dev", .prefix = "kfd"},                        /* AMD's ROCm */
        {.folder = "/dev", .prefix = "nvidia", .digit = true},
        {.folder = "/dev", .prefix = "nvidiactl"},
        {.folder = "/dev", .prefix = "nvidia-uvm"},
        {.folder = "/dev", .prefix = "dxg"}, /* WSL */
    };
    int usable = 0, nvidia = 0, before = diagnosis->count;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        nodes all = kinds[i];
        char folder[KN_PROBE_PATH];
        all.diagnosis = diagnosis;
        kn_visit_directory(kn_probe_path(folder, all.folder), visit_node, &all);
        usable += all.usable;
        nvidia += strcmp(all.prefix, "nvidia") == 0 ? all.seen : 0;
    }
    char module[KN_PROBE_PATH];
    if (nvidia == 0 && access(kn_probe_path(module, "/proc/driver/nvidia/version"), F_OK) == 0)
        kn_diagnosis_add(diagnosis, KN_FINDING_PROBLEM,
                         kn_formatted("NVIDIA's kernel driver is loaded, but there is no device node /dev/nvidia0"),
                         kn_formatted("as root: nvidia-modprobe -u -c=0; in a container: start it with --gpus all"));
    if (diagnosis->count == before && usable > 0)
        kn_diagnosis_add(diagnosis, KN_FINDING_GOOD,
                         kn_formatted("%d GPU device node%s may be used", usable, usable == 1 ? "" : "s"), NULL);
}

/* --- GPUs on the PCI bus ---------------------------------------------------------------------- */

typedef struct bus {
    bool seen[16]; /* per row of kn_driver_rows */
} bus;

static unsigned long read_number(const char *folder, const char *name, const char *file)
{
    char relative[512], path[KN_PROBE_PATH], line[64];
    int written = snprintf(relative, sizeof relative, "%s/%s/%s", folder, name, file);
    if (written < 0 || written >= (int)sizeof relative ||
        !kn_file_first_line(kn_probe_path(path, relative), line, sizeof line))
        return 0;
    return strtoul(line, NULL, 16);
}

static void visit_pci(const char *name, void *user)
{
    bus *all = user;
    const char *folder = "/sys/bus/pci/devices";
    if (read_number(folder, name, "class") >> 16 != 0x03) /* display controller */
        return;
    unsigned long vendor = read_number(folder, name, "vendor");
    for (int i = 0; kn_driver_rows[i].name && i < (int)(sizeof all->seen / sizeof all->seen[0]); i++)
        if (kn_driver_rows[i].pci_vendor && kn_driver_rows[i].pci_vendor == vendor)
            all->seen[i] = true;
}

static bool is_of(const kn_device *device, const char *vendor)
{
    kn_device_properties p;
    return kn_device_get_properties(device, &p) == KN_OK && p.type != KN_DEVICE_CPU &&
           (kn_text_contains_nocase(p.vendor, vendor) || kn_text_contains_nocase(p.name, vendor));
}

static bool offered(const char *vendor)
{
    for (int slot = 1; slot < kn_device_slots(); slot++)
        if (is_of(kn_device_slot_at(slot), vendor))
            return true;
    for (int i = 0; i < kn_devices_hidden(); i++)
        if (is_of(kn_device_hidden_at(i), vendor))
            return true;
    return false;
}

static void check_bus(kn_diagnosis *diagnosis)
{
    bus all = {0};
    char path[KN_PROBE_PATH];
    kn_visit_directory(kn_probe_path(path, "/sys/bus/pci/devices"), visit_pci, &all);
    for (int i = 0; kn_driver_rows[i].name; i++) {
        const kn_driver_row *row = &kn_driver_rows[i];
        if (!all.seen[i] || offered(row->vendor))
            continue;
        /* If another GPU works, one without a driver (integrated graphics) is not a problem. */
        kn_diagnosis_add(diagnosis, kn_gpu_count() > 0 ? KN_FINDING_NOTE : KN_FINDING_PROBLEM,
                         kn_formatted("this machine has a GPU of %s, but no OpenCL platform offers it", row->name),
                         kn_formatted("%s; in a container, hand the device in: --gpus all (NVIDIA), --device /dev/dri, "
                                      "and --device /dev/kfd (AMD)",
                                      row->install));
    }
}

/* --- platforms -------------------------------------------------------------------------------- */

static void check_platform(kn_diagnosis *diagnosis, int index)
{
    const kn_platform_answer answer = kn_platform_ask(index);
    const char *name = answer.name[0] ? answer.name : "which does not tell its name";
    if (answer.devices > 0)
        return;
    if (answer.error) {
        kn_diagnosis_add(diagnosis, KN_FINDING_PROBLEM,
                         kn_formatted("platform %d (%s) does not tell its devices: %s", index, name, answer.error),
                         kn_formatted("update its driver, or remove it"));
        return;
    }
    kn_diagnosis_add(
        diagnosis, KN_FINDING_NOTE, kn_formatted("platform %d (%s) shows no device", index, name),
        kn_text_contains_nocase(name, "rusticl")
            ? kn_formatted("rusticl shows a device only when asked for its driver: "
                           "RUSTICL_ENABLE=radeonsi,iris,nouveau,llvmpipe")
            : kn_formatted("without its hardware a driver may be removed; with it, see the device nodes above"));
}

/* Drivers that allow larger buffers if configured. */
static void check_largest_buffer(kn_diagnosis *diagnosis, const kn_device *device)
{
    const kn_limits *limits = kn_device_limits(device);
    char most[32], memory[32];
    const char *remedy = kn_device_larger_buffers(device);
    if (remedy)
        kn_diagnosis_add(diagnosis, KN_FINDING_NOTE,
                         kn_formatted("%s (%s) gives at most %s of its %s in one buffer", kn_device_string(device),
                                      kn_device_name(device),
                                      kn_format_bytes(most, sizeof most, limits->max_allocation),
                                      kn_format_bytes(memory, sizeof memory, limits->global_memory)),
                         kn_formatted("%s", remedy));
}

void kn_diagnose_devices(kn_diagnosis *diagnosis)
{
    KN_PRESERVE_ERROR;
    int devices = kn_device_count(); /* first, because it finds a folder for PoCL */
    for (int i = 0; i < kn_platform_count(); i++)
        check_platform(diagnosis, i);

    for (int i = 0; devices > 0 && i < kn_left_out(); i++) /* with no device the error has the first of them */
        kn_diagnosis_add(diagnosis, KN_FINDING_NOTE, kn_formatted("%s", kn_left_out_at(i)), NULL);
    check_bus(diagnosis);
    for (int slot = 1; slot < kn_device_slots(); slot++)
        check_largest_buffer(diagnosis, kn_device_slot_at(slot));
    if (kn_devices_hidden() > 0)
        kn_diagnosis_add(diagnosis, devices > 0 ? KN_FINDING_NOTE : KN_FINDING_PROBLEM,
                         kn_formatted("KOINE_VISIBLE_DEVICES is `%s` and hides %d of %d devices",
                                      getenv("KOINE_VISIBLE_DEVICES"), kn_devices_hidden(),
                                      kn_devices_hidden() + devices),
                         kn_formatted("unset it to see them all"));
    if (devices == 0 && kn_devices_hidden() == 0) {
        const char *trouble = kn_error_message();
        kn_diagnosis_add(diagnosis, KN_FINDING_PROBLEM,
                         kn_formatted("there is no OpenCL device: Koine can hold tensors but not compute%s%s",
                                      *trouble ? ": " : "", trouble),
                         kn_formatted("mend what is listed above, or use the CPU: apt-get install pocl-opencl-icd"));
    } else if (devices > 0) {
        kn_diagnosis_add(diagnosis, KN_FINDING_GOOD,
                         kn_formatted("%d device%s, %d of them GPUs", devices, devices == 1 ? "" : "s", kn_gpu_count()),
                         NULL);
    }
}
