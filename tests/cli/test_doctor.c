/* tests/cli/test_doctor.c - `koine doctor` on simulated machines: KOINE_DOCTOR_ROOT replaces the root of /etc, /dev,
 * /sys and /usr/lib. The devices themselves are real. */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_program.h"
#include "support/full.h"

/* A machine on which PoCL is registered and installed. */
static const char *machine(const char *name)
{
    const char *root = fresh_folder(name);
    put_file(root, "etc/OpenCL/vendors/pocl.icd", "libpocl.so.2\n");
    put_file(root, "usr/lib/libpocl.so.2", "");
    put_file(root, "sys/devices/system/cpu/online", "0-1\n");
    return root;
}

/* The simulated machine has the drivers registered in its folders, wherever this machine's are registered. */
#define ON_ITS_OWN "unset OCL_ICD_VENDORS; "

static void put_library(const char *root, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "usr/lib/x86_64-linux-gnu/%s", name);
    put_file(root, path, "");
}

static run_result examine(const char *root)
{
    return run_shell(ON_ITS_OWN "KOINE_DOCTOR_ROOT='%s' '%s' doctor --system", root, KOINE_PROGRAM);
}

static void a_sound_machine_is_well(void **state)
{
    (void)state;
    run_result r = examine(machine("sound"));
    assert_status(r, 0);
    assert_contains(r.output, "1 OpenCL driver registered");
    assert_contains(r.output, "All is well.");
    assert_lacks(r.output, "problem");
    run_free(&r);
}

static void no_platform(void **state)
{
    (void)state;
    const char *empty = fresh_folder("no-vendors");
    run_result r = run_shell("OCL_ICD_VENDORS='%s' '%s' doctor", empty, KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.output, "no OpenCL driver is registered");
    assert_contains(r.output, "unset OCL_ICD_VENDORS");
    assert_contains(r.output, "there is no OpenCL device");
    assert_contains(r.output, "pocl-opencl-icd");
    run_free(&r);

    r = run_shell("OCL_ICD_VENDORS=/nowhere/at/all '%s' doctor", KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.output, "/nowhere/at/all is not there");
    run_free(&r);
}

static void no_vendors_folder(void **state)
{
    (void)state;
    run_result r = examine(fresh_folder("bare"));
    assert_status(r, 1);
    assert_contains(r.output, "no OpenCL driver is registered");
    assert_contains(r.output, "apt-get install pocl-opencl-icd");
    run_free(&r);
}

static void a_driver_without_an_icd_file(void **state)
{
    (void)state;
    const char *root = machine("no-icd");
    put_library(root, "libnvidia-opencl.so.1");
    run_result r = examine(root);
    assert_status(r, 1);
    assert_contains(r.output, "no .icd file");
    assert_contains(r.output, "echo libnvidia-opencl.so.1 > ");
    assert_contains(r.output, "/etc/OpenCL/vendors/nvidia.icd");
    run_free(&r);

    root = machine("with-icd");
    put_library(root, "libnvidia-opencl.so.1");
    put_library(root, "libnvidia-nvvm.so.4");
    put_library(root, "libnvidia-ptxjitcompiler.so.1");
    put_file(root, "etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1");
    r = examine(root);
    assert_status(r, 0);
    assert_lacks(r.output, "compiles kernels with");
    run_free(&r);
}

/* As in containers: the driver without the libraries that it compiles with. */
static void a_driver_without_its_compiler(void **state)
{
    (void)state;
    const char *root = machine("no-compiler");
    put_library(root, "libnvidia-opencl.so.1");
    put_library(root, "libnvidia-ptxjitcompiler.so.1");
    put_file(root, "etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1");
    run_result r = examine(root);
    assert_status(r, 0);
    assert_contains(r.output, "compiles kernels with libnvidia-nvvm.so.4");
    assert_contains(r.output, "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    assert_lacks(r.output, "libnvidia-ptxjitcompiler.so.1");
    run_free(&r);
}

static void an_icd_file_without_its_driver(void **state)
{
    (void)state;
    const char *root = machine("dangling");
    put_file(root, "etc/OpenCL/vendors/intel.icd", "/usr/lib/x86_64-linux-gnu/intel-opencl/libigdrcl.so\n");
    put_file(root, "etc/OpenCL/vendors/empty.icd", "\n");
    run_result r = examine(root);
    assert_status(r, 1);
    assert_contains(r.output, "libigdrcl.so, which cannot be loaded");
    assert_contains(r.output, "intel-opencl-icd");
    assert_contains(r.output, "empty.icd is empty");
    assert_contains(r.output, "2 problems found.");
    run_free(&r);
}

static void a_driver_that_does_not_load(void **state)
{
    (void)state;
    const char *folder = fresh_folder("broken-driver");
    put_file(folder, "broken.icd", "libno-such-driver.so.7\n");
    run_result r = run_shell("OCL_ICD_VENDORS='%s' '%s' doctor", folder, KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.output, "libno-such-driver.so.7, which cannot be loaded");
    assert_contains(r.output, "there is no OpenCL device");
    run_free(&r);
}

/* Root may do anything, so as root the program is run as another user. */
static void a_node_without_permission(void **state)
{
    (void)state;
    const char *as_user = getuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups" : "";
    run_result r = run_shell("%s test -x '%s'", as_user, KOINE_PROGRAM);
    bool possible = r.status == 0;
    run_free(&r);
    if (!possible)
        skip();

    const char *root = machine("nodes");
    put_file(root, "dev/dri/renderD128", "");
    put_file(root, "dev/kfd", "");
    put_file(root, "dev/nvidia0", "");
    put_file(root, "dev/nvidiactl", "");
    r = run_shell("chmod 0660 '%s/dev/dri/renderD128' && chmod 0000 '%s/dev/kfd' '%s/dev/nvidia0' && chmod 0666 "
                  "'%s/dev/nvidiactl' &&"
                  " { [ $(id -u) != 0 ] || chgrp 44 '%s/dev/dri/renderD128'; }",
                  root, root, root, root, root);
    assert_status(r, 0);
    run_free(&r);
    r = run_shell(ON_ITS_OWN "KOINE_DOCTOR_ROOT='%s' %s '%s' doctor --system", root, as_user, KOINE_PROGRAM);
    assert_status(r, 1);
    if (getuid() == 0) {
        assert_contains(r.output, "no permission to use the device node /dev/dri/renderD128");
        if (getgrgid(44)) /* "video" on Debian */
            assert_contains(r.output, "usermod -aG ");
    }
    assert_contains(r.output, "no permission to use the device node /dev/kfd");
    assert_contains(r.output, "no permission to use the device node /dev/nvidia0");
    assert_lacks(r.output, "nvidiactl");
    run_free(&r);
}

static void a_gpu_without_a_driver(void **state)
{
    (void)state;
    if (kn_gpu_count() > 0)
        skip(); /* with a working GPU it is only a note */
    const char *root = machine("gpu");
    put_file(root, "sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n");
    put_file(root, "sys/bus/pci/devices/0000:03:00.0/vendor", "0x1002\n");
    put_file(root, "sys/bus/pci/devices/0000:04:00.0/class", "0x020000\n"); /* Intel's network card is not a GPU */
    put_file(root, "sys/bus/pci/devices/0000:04:00.0/vendor", "0x8086\n");
    put_file(root, "proc/driver/nvidia/version", "NVRM version\n");
    run_result r = examine(root);
    assert_status(r, 1);
    assert_contains(r.output, "a GPU of AMD, but no OpenCL platform offers it");
    assert_lacks(r.output, "Intel");
    assert_contains(r.output, "no device node /dev/nvidia0");
    assert_contains(r.output, "nvidia-modprobe");
    run_free(&r);
}

static void sysfs_is_not_mounted(void **state)
{
    (void)state;
    const char *root = machine("no-sysfs");
    run_result r = run_shell(ON_ITS_OWN "rm -r '%s/sys' && KOINE_DOCTOR_ROOT='%s' '%s' doctor --system", root, root,
                             KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.output, "/sys is not mounted");
    assert_contains(r.output, "mount -t sysfs");
    run_free(&r);
}

static void a_cache_that_cannot_be_written(void **state)
{
    (void)state;
    const char *root = machine("cache");
    put_file(root, "file", "");
    run_result r = run_shell(ON_ITS_OWN "KOINE_CACHE_DIR='%s/file/cache' KOINE_DOCTOR_ROOT='%s' '%s' doctor --system",
                             root, root, KOINE_PROGRAM);
    assert_status(r, 0); /* slower, not wrong */
    assert_contains(r.output, "cannot be written");
    assert_contains(r.output, "KOINE_CACHE_DIR");
    run_free(&r);
}

static void the_devices_compute_right(void **state)
{
    (void)state;
    if (getenv("OCL_ICD_VENDORS")) /* the devices are registered in a folder that the simulated machine does not have */
        skip();
    const char *operators = test_full() ? " --operators" : "";
    run_result r = run_shell("KOINE_LOG=debug KOINE_DOCTOR_ROOT='%s' '%s' doctor%s 2>&1", machine("numbers"),
                             KOINE_PROGRAM, operators);
    assert_status(r, 0);
    assert_contains(r.output, "operations agree with their references");
    assert_null(strstr(r.output, "is rebuilt with"));   /* src/rt/program/builtins.c declares all that operators call */
    assert_null(strstr(r.output, "warning generated")); /* which Clang prints for a kernel */
    run_free(&r);
}

/* A device that computes wrong numbers, simulated with wrong kernels: average.cl is for GPUs, average_lanes.cl for
 * small planes on CPU devices. */
static run_result examine_with_kernels(const char *name, const char *edit)
{
    char kernels[1024], cache[1024];
    snprintf(kernels, sizeof kernels, "%s", fresh_folder(name));
    snprintf(cache, sizeof cache, "%s", fresh_folder("wrong-kernels-cache"));
    run_result r =
        run_shell("cp -R '%s/cl/.' '%s' && cd '%s/pool' && cat average*.cl > before && %s average.cl average_lanes.cl "
                  "&& cat average*.cl > after && ! cmp -s after before",
                  KOINE_SOURCE_DIR, kernels, kernels, edit);
    assert_status(r, 0);
    run_free(&r);
    return run_shell("KOINE_KERNEL_DIR='%s' KOINE_CACHE_DIR='%s' KOINE_DOCTOR_ROOT='%s' '%s' doctor", kernels, cache,
                     machine("kernels"), KOINE_PROGRAM);
}

static void wrong_numbers_name_the_operation(void **state)
{
    (void)state;
    run_result r = examine_with_kernels(
        "wrong-numbers", "sed -i 's|value / divisor|1 + value|; s|: sum / divisor|: 1 + sum|; s|0) / divisor|0) + 1|'");
    assert_status(r, 1);
    assert_contains(r.output, "wrong results from avg_pool2d");
    assert_contains(r.output, "KOINE_KERNEL_DIR is set");
    assert_lacks(r.output, "agree with their references");
    run_free(&r);
}

static void a_kernel_that_does_not_build(void **state)
{
    (void)state;
    run_result r = examine_with_kernels("broken-kernel", "sed -i '1i #error broken on purpose'");
    assert_status(r, 1);
    assert_contains(r.output, "pool/average");
    assert_contains(r.output, "broken on purpose");
    run_free(&r);
}

/* A launcher that says `words`, before those on PATH. */
static run_result examine_with_launcher(const char *name, const char *words, const char *environment)
{
    char root[4096], script[256];
    snprintf(root, sizeof root, "%s", machine(name));
    snprintf(script, sizeof script, "#!/bin/sh\necho '%s'\n", words);
    put_file(root, "bin/mpirun", script);
    return run_shell(ON_ITS_OWN
                     "chmod +x '%s/bin/mpirun'; PATH='%s/bin':$PATH %s KOINE_DOCTOR_ROOT='%s' '%s' doctor --system",
                     root, root, environment, root, KOINE_PROGRAM);
}

static void the_mpi_and_its_launcher(void **state)
{
    (void)state;
    run_result r = examine_with_launcher("no-mpi", "mpirun (Open MPI) 9.9", "KOINE_MODULE_PATH=/nowhere");
    assert_status(r, 0);
    assert_contains(r.output, "there is an MPI (mpirun (Open MPI) 9.9), but the back end");
    assert_contains(r.output, "build Koine again");
    run_free(&r);
    if (access(KOINE_BINARY_DIR "/lib/libkoine_mpi.so", R_OK) != 0)
        return;
    run_result open = examine_with_launcher("mpi", "mpirun (Open MPI) 9.9", "");
    run_result other = examine_with_launcher("other-mpi", "HYDRA build details:", "");
    const bool is_open = strstr(open.output, "started by mpirun") != NULL;
    assert_contains(is_open ? open.output : other.output, "groups of processes run over ");
    assert_contains(is_open ? open.output : other.output, is_open ? "over Open MPI v" : "over MPICH ");
    assert_contains(is_open ? other.output : open.output, "but mpirun is another MPI's (");
    assert_status(open, 0);
    run_free(&open);
    run_free(&other);
}

/* The machine that runs the tests may have a platform without devices, which is a note. */
static void quiet_prints_no_good_news(void **state)
{
    (void)state;
    const char *doctor = ON_ITS_OWN "KOINE_DOCTOR_ROOT='%s' '%s' doctor --system %s";
    const char *root = machine("quiet");
    run_result r = run_shell(doctor, root, KOINE_PROGRAM, "--quiet");
    run_result other = run_shell(doctor, root, KOINE_PROGRAM, "| grep -v -e '^ok ' -e '^All is well'");
    assert_status(r, 0);
    assert_lacks(r.output, "problem");
    assert_string_equal(r.output, other.output);
    run_free(&r);
    run_free(&other);
}

static void an_unknown_device(void **state)
{
    (void)state;
    run_result r = run_shell("KOINE_DOCTOR_ROOT='%s' '%s' doctor --device=nosuch", machine("unknown"), KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.errors, "nosuch");
    assert_contains(r.errors, first_device_name());
    run_free(&r);
}

/* The device is lost during the check: reported once, nothing hangs, and the exit status shows it. */
static void a_lost_device_is_told(void **state)
{
    (void)state;
    static const char *const failures[] = {"launch:3:-36", "read:2:-9999", "alloc:1:-2", "wait:3:-5"};
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        run_result r = run_shell("KOINE_LOG=off KOINE_FAIL_CL=%s timeout 100 '%s' doctor --device %s", failures[i],
                                 KOINE_PROGRAM, first_device_name());
        assert_status(r, 1);
        assert_contains(r.output, "is lost: ");
        assert_contains(r.output, "dmesg");
        assert_contains(r.output, "1 problem found");
        run_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_machine_is_well),
        cmocka_unit_test(no_platform),
        cmocka_unit_test(no_vendors_folder),
        cmocka_unit_test(a_driver_without_an_icd_file),
        cmocka_unit_test(a_driver_without_its_compiler),
        cmocka_unit_test(an_icd_file_without_its_driver),
        cmocka_unit_test(a_driver_that_does_not_load),
        cmocka_unit_test(a_node_without_permission),
        cmocka_unit_test(a_gpu_without_a_driver),
        cmocka_unit_test(sysfs_is_not_mounted),
        cmocka_unit_test(a_cache_that_cannot_be_written),
        cmocka_unit_test(the_mpi_and_its_launcher),
        cmocka_unit_test(quiet_prints_no_good_news),
        cmocka_unit_test(an_unknown_device),
        cmocka_unit_test(the_devices_compute_right),
        cmocka_unit_test(wrong_numbers_name_the_operation),
        cmocka_unit_test(a_kernel_that_does_not_build),
        cmocka_unit_test(a_lost_device_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
