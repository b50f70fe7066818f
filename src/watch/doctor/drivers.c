/* watch/doctor/drivers.c - does the OpenCL loader find its drivers?
 *
 * The loader (ocl-icd, or Khronos' own) reads /etc/OpenCL/vendors/NAME.icd; each file's one line names a driver's
 * library, which it loads. OCL_ICD_VENDORS (or OPENCL_VENDOR_PATH) names another folder or a single .icd file;
 * OCL_ICD_FILENAMES names libraries directly. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/system.h"
#include "watch/doctor/diagnose.h"

#define MAX_DRIVERS 64
#define NAME_SIZE 512

/* Folders of drivers' libraries, in addition to the dynamic linker's. */
static const char *const library_folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/intel-opencl",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
    "/opt/rocm/lib",
};

typedef struct vendors {
    kn_diagnosis *diagnosis;
    const char *folder;
    int files;      /* .icd files seen */
    int registered; /* libraries they name */
    char libraries[MAX_DRIVERS][NAME_SIZE];
} vendors;

/* Both "libpocl.so.2" and "/usr/lib/libpocl.so.2.10.0" are libpocl. */
static bool same_library(const char *a, const char *b)
{
    const char *slash = strrchr(a, '/');
    const char *name = slash ? slash + 1 : a;
    size_t length = strcspn(b, ".");
    return strncmp(name, b, length) == 0 && name[length] == '.';
}

/* The library's file, written to `path`; false if it is in none of the folders. */
static bool find_library(const char *library, char path[KN_PROBE_PATH])
{
    for (size_t i = 0; i < sizeof library_folders / sizeof library_folders[0]; i++) {
        char relative[NAME_SIZE];
        int length = snprintf(relative, sizeof relative, "%s/%s", library_folders[i], library);
        if (length > 0 && length < NAME_SIZE && access(kn_probe_path(path, relative), F_OK) == 0)
            return true;
    }
    return false;
}

/* NULL if the library can be loaded, otherwise the reason. It stays loaded, as with the loader itself: unloading
 * drivers is unsafe. */
static const char *why_not_loadable(const char *library)
{
    if (kn_trusted_environment("KOINE_DOCTOR_ROOT")) { /* a simulated tree, not to be loaded */
        static char path[KN_PROBE_PATH];
        bool there = library[0] == '/' ? access(kn_probe_path(path, library), F_OK) == 0 : find_library(library, path);
        return there ? NULL : "no such file";
    }
    return dlopen(library, RTLD_LAZY | RTLD_LOCAL) ? NULL : dlerror();
}

static const kn_driver_row *row_of_library(const char *library)
{
    for (const kn_driver_row *row = kn_driver_rows; row->name; row++)
        if (same_library(library, row->library))
            return row;
    return NULL;
}

/* In containers often only some of a driver's libraries are mounted. A note: older versions need fewer. */
static void check_compilers(const vendors *all, const kn_driver_row *row)
{
    for (int i = 0; i < KN_MAX_COMPILERS && row->compilers[i]; i++) {
        const char *reason = why_not_loadable(row->compilers[i]);
        if (reason)
            kn_diagnosis_add(
                all->diagnosis, KN_FINDING_NOTE,
                kn_formatted("the %s driver compiles kernels with %s, which cannot be loaded (%s): if kernels do not "
                             "build, and the compiler says nothing, this is why",
                             row->name, row->compilers[i], reason),
                kn_formatted("install all libraries of the driver's version (%s); in a container %s", row->install,
                             row->in_container));
    }
}

static void check_library(vendors *all, const char *library, const char *named_by)
{
    if (all->registered < MAX_DRIVERS)
        snprintf(all->libraries[all->registered++], NAME_SIZE, "%s", library);
    const char *reason = why_not_loadable(library);
    const kn_driver_row *row = row_of_library(library);
    if (!reason) {
        if (row)
            check_compilers(all, row);
        return;
    }
    kn_diagnosis_add(
        all->diagnosis, KN_FINDING_PROBLEM,
        kn_formatted("%s names the driver %s, which cannot be loaded: %s", named_by, library, reason),
        row ? kn_formatted("install the driver (%s), or remove %s if the hardware is gone", row->install, named_by)
            : kn_formatted("install the package that this driver belongs to, or remove %s", named_by));
}

static void check_icd_file(vendors *all, const char *path)
{
    char library[NAME_SIZE];
    all->files++;
    if (access(path, R_OK) != 0) {
        kn_diagnosis_add(all->diagnosis, KN_FINDING_PROBLEM, kn_formatted("%s cannot be read", path),
                         kn_formatted("as root: chmod a+r %s", path));
        return;
    }
    if (!kn_file_first_line(path, library, sizeof library)) {
        kn_diagnosis_add(all->diagnosis, KN_FINDING_PROBLEM,
                         kn_formatted("%s is empty: it must hold the name of a driver's library", path),
                         kn_formatted("reinstall the driver's package, or remove the file"));
        return;
    }
    check_library(all, library, path);
}

static void visit_vendor_file(const char *name, void *user)
{
    vendors *all = user;
    size_t length = strlen(name);
    if (length < 4 || strcmp(name + length - 4, ".icd") != 0)
        return; /* like the loader, reads only .icd files */
    char path[KN_PROBE_PATH];
    int written = snprintf(path, sizeof path, "%s/%s", all->folder, name);
    if (written > 0 && written < KN_PROBE_PATH)
        check_icd_file(all, path);
}

/* A driver whose library exists but is not named by an .icd file: common in containers into which only libraries are
 * mounted. */
static void check_unregistered(const vendors *all)
{
    for (const kn_driver_row *row = kn_driver_rows; row->name; row++) {
        char path[KN_PROBE_PATH];
        bool registered = false;
        for (int i = 0; i < all->registered; i++)
            registered = registered || same_library(all->libraries[i], row->library);
        if (registered || !find_library(row->library, path))
            continue;
        kn_diagnosis_add(
            all->diagnosis, KN_FINDING_PROBLEM,
            kn_formatted("the %s driver %s is installed, but no .icd file in %s names it, so OpenCL does not see it",
                         row->name, path, all->folder),
            kn_formatted("as root: mkdir -p %s && echo %s > %s/%s", all->folder, row->library, all->folder,
                         row->icd_file));
    }
}

/* Seen with PoCL 3.1: it gets the processors from hwloc, which reads /sys, and if that is empty PoCL aborts the process
 * that enumerates its devices. */
static void check_sysfs(const vendors *all)
{
    char path[KN_PROBE_PATH];
    bool pocl = false;
    for (int i = 0; i < all->registered; i++)
        pocl = pocl || same_library(all->libraries[i], "libpocl.so");
    if (pocl && access(kn_probe_path(path, "/sys/devices/system/cpu"), F_OK) != 0)
        kn_diagnosis_add(
            all->diagnosis, KN_FINDING_PROBLEM,
            kn_formatted("/sys is not mounted: PoCL, the driver for CPUs, ends any program that asks for its devices"),
            kn_formatted("as root: mount -t sysfs sysfs /sys"));
}

static void report_empty(const vendors *all, const char *variable, bool readable)
{
    char *what = readable ? kn_formatted("no OpenCL driver is registered: %s holds no .icd file", all->folder)
                          : kn_formatted("no OpenCL driver is registered: the folder %s is not there", all->folder);
    char *remedy =
        variable
            ? kn_formatted("unset %s (it points the loader at that folder), or point it at a folder with .icd files",
                           variable)
            : kn_formatted("install a driver; for the CPU: apt-get install pocl-opencl-icd; for a GPU its vendor's "
                           "OpenCL package");
    kn_diagnosis_add(all->diagnosis, KN_FINDING_PROBLEM, what, remedy);
}

void kn_diagnose_drivers(kn_diagnosis *diagnosis)
{
    static const char *const variables[] = {"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"};
    char standard[KN_PROBE_PATH];
    vendors all = {.diagnosis = diagnosis, .folder = kn_probe_path(standard, "/etc/OpenCL/vendors")};
    const char *variable = NULL, *libraries = getenv("OCL_ICD_FILENAMES");
    for (size_t i = 0; i < sizeof variables / sizeof variables[0] && !variable; i++) {
        const char *value = getenv(variables[i]);
        if (!value || !*value)
            continue;
        variable = variables[i];
        all.folder = value;
    }
    if (libraries && *libraries) {
        kn_diagnosis_add(diagnosis, KN_FINDING_NOTE,
                         kn_formatted("OCL_ICD_FILENAMES is set: the loader takes the drivers %s", libraries), NULL);
        return;
    }
    struct stat status;
    bool single = stat(all.folder, &status) == 0 && S_ISREG(status.st_mode);
    bool readable = true;
    if (single)
        check_icd_file(&all, all.folder);
    else
        readable = kn_visit_directory(all.folder, visit_vendor_file, &all);
    if (all.files == 0)
        report_empty(&all, variable, readable);
    else
        kn_diagnosis_add(
            diagnosis, KN_FINDING_GOOD,
            kn_formatted("%d OpenCL driver%s registered in %s", all.files, all.files == 1 ? "" : "s", all.folder),
            NULL);
    check_sysfs(&all);
    if (!single && !variable) /* a user-defined folder omits drivers on purpose */
        check_unregistered(&all);
}
