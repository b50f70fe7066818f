/* test_usage.c - a device's figures from a fake NVML, from fake /sys and /proc trees, and from this machine. */
#include "rt_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "watch/usage/usage.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-6)

/* --- fake machines ----------------------------------------------------------------------- */

static const char *fresh_root(const char *name)
{
    static char root[256];
    char command[600];
    snprintf(root, sizeof root, "%s/tests/folders/usage-%s", KOINE_BINARY_DIR, name);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
    assert_ok(kn_make_directories(root));
    return root;
}

static void make_folder_of(char *path)
{
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_ok(kn_make_directories(path));
    *slash = '/';
}

static void put(const char *root, const char *path, const char *text)
{
    char full[KN_USAGE_PATH];
    snprintf(full, sizeof full, "%s%s", root, path);
    make_folder_of(full);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void put_link(const char *root, const char *path, const char *target)
{
    char full[KN_USAGE_PATH];
    snprintf(full, sizeof full, "%s%s", root, path);
    make_folder_of(full);
    assert_int_equal(symlink(target, full), 0);
}

static kn_usage clear(void)
{
    kn_usage usage;
    kn_usage_clear(&usage);
    return usage;
}

static void assert_nothing_known(const kn_usage *u)
{
    assert_true(u->memory_used == -1 && u->memory_total == -1 && u->num_processes == -1);
    assert_true(isnan(u->load) && isnan(u->memory_load) && isnan(u->temperature) && isnan(u->power));
    assert_true(isnan(u->power_limit) && isnan(u->clock) && isnan(u->memory_clock) && isnan(u->fan));
    assert_string_equal(u->source, "");
}

/* --- NVML ------------------------------------------------------------------------------------- */

static void nvml_tells_all(void **state)
{
    (void)state;
    const char *root = fresh_root("nvml");
    put(root, "/proc/100001/comm", "python3\n");
    kn_usage u = clear();
    assert_true(kn_usage_from_nvml(&u, "0000:65:00.0", "", root));
    assert_string_equal(u.source, "NVML");
    assert_true(u.memory_used == (int64_t)4 << 30 && u.memory_total == (int64_t)16 << 30);
    NEAR(u.load, 87);
    NEAR(u.memory_load, 31);
    NEAR(u.temperature, 61);
    NEAR(u.power, 254.5);
    NEAR(u.power_limit, 700);
    NEAR(u.clock, 1980);
    NEAR(u.memory_clock, 2619);
    NEAR(u.fan, 40);
    assert_int_equal(u.num_processes, 4); /* most memory first, unknown last */
    assert_int_equal(u.processes[0].pid, 100003);
    assert_true(u.processes[0].memory_used == (int64_t)2048 << 20);
    assert_string_equal(u.processes[0].name, "train");
    assert_int_equal(u.processes[1].pid, 100001);
    assert_string_equal(u.processes[1].name, "python3");
    assert_int_equal(u.processes[2].pid, 100004);
    assert_int_equal(u.processes[3].pid, 100002);
    assert_int_equal(u.processes[3].memory_used, -1);
}

/* More processes than fit in the list: the listed ones are real, and the rest is counted. */
static void nvml_tells_many_processes(void **state)
{
    (void)state;
    kn_usage u = clear();
    assert_true(kn_usage_from_nvml(&u, "0000:67:00.0", "", ""));
    assert_int_equal(u.num_processes, 71);
    for (int i = 0; i < KN_USAGE_MAX_PROCESSES; i++) {
        assert_in_range(u.processes[i].pid, 200001, 200070);
        assert_true(u.processes[i].memory_used > 0);
    }
}

static void nvml_tells_little(void **state)
{
    (void)state;
    kn_usage u = clear();
    assert_true(kn_usage_from_nvml(&u, "", "00000000-0000-0000-0000-000000000066", "")); /* by UUID */
    assert_true(u.memory_used == (int64_t)4 << 30);
    assert_true(isnan(u.load) && isnan(u.temperature) && isnan(u.power) && isnan(u.clock) && isnan(u.fan));
    assert_int_equal(u.num_processes, -1);
    u = clear();
    assert_false(kn_usage_from_nvml(&u, "0000:01:00.0", "", ""));
    assert_false(kn_usage_from_nvml(&u, "", "", ""));
    assert_nothing_known(&u);
}

/* --- sysfs ------------------------------------------------------------------------------------ */

#define AMD "/sys/bus/pci/devices/0000:03:00.0"

static void put_amdgpu(const char *root)
{
    put_link(root, AMD "/driver", "../../../../bus/pci/drivers/amdgpu");
    put(root, AMD "/mem_info_vram_used", "1073741824\n");
    put(root, AMD "/mem_info_vram_total", "17163091968\n");
    put(root, AMD "/gpu_busy_percent", "42\n");
    put(root, AMD "/mem_busy_percent", "7\n");
    put(root, AMD "/hwmon/hwmon3/name", "amdgpu\n");
    put(root, AMD "/hwmon/hwmon3/temp1_input", "54000\n");
    put(root, AMD "/hwmon/hwmon3/power1_average", "121000000\n");
    put(root, AMD "/hwmon/hwmon3/power1_cap", "203000000\n");
    put(root, AMD "/hwmon/hwmon3/freq1_input", "2100000000\n");
    put(root, AMD "/hwmon/hwmon3/freq2_input", "875000000\n");
    put(root, AMD "/hwmon/hwmon3/pwm1", "51\n");
}

static void sysfs_of_amdgpu(void **state)
{
    (void)state;
    const char *root = fresh_root("amdgpu");
    put_amdgpu(root);
    kn_usage u = clear();
    assert_true(kn_usage_from_sysfs(&u, "0000:03:00.0", root));
    assert_string_equal(u.source, "amdgpu");
    assert_true(u.memory_used == 1073741824 && u.memory_total == INT64_C(17163091968));
    NEAR(u.load, 42);
    NEAR(u.memory_load, 7);
    NEAR(u.temperature, 54);
    NEAR(u.power, 121);
    NEAR(u.power_limit, 203);
    NEAR(u.clock, 2100);
    NEAR(u.memory_clock, 875);
    NEAR(u.fan, 20);
    assert_int_equal(u.num_processes, -1);
}

static void sysfs_of_others(void **state)
{
    (void)state;
    const char *root = fresh_root("others");
    put_link(root, "/sys/bus/pci/devices/0000:00:02.0/driver", "../../drivers/i915");
    put(root, "/sys/bus/pci/devices/0000:00:02.0/drm/card0/gt_act_freq_mhz", "1150\n");
    put_link(root, "/sys/bus/pci/devices/0000:04:00.0/driver", "../../drivers/xe");
    put(root, "/sys/bus/pci/devices/0000:04:00.0/tile0/gt0/freq0/act_freq", "2400\n");
    put(root, "/sys/bus/pci/devices/0000:04:00.0/hwmon/hwmon1/temp2_input", "48000\n");
    put(root, "/sys/bus/pci/devices/0000:04:00.0/hwmon/hwmon1/power1_max", "190000000\n");
    put(root, "/sys/bus/pci/devices/0000:04:00.0/mem_info_vram_used", "nonsense\n");
    kn_usage u = clear();
    assert_true(kn_usage_from_sysfs(&u, "0000:00:02.0", root));
    assert_string_equal(u.source, "i915");
    NEAR(u.clock, 1150);
    assert_true(isnan(u.load) && u.memory_used == -1);
    u = clear();
    assert_true(kn_usage_from_sysfs(&u, "0000:04:00.0", root));
    assert_string_equal(u.source, "xe");
    NEAR(u.clock, 2400);
    NEAR(u.temperature, 48);
    NEAR(u.power_limit, 190);
    assert_true(u.memory_used == -1);
    u = clear();
    assert_false(kn_usage_from_sysfs(&u, "0000:09:00.0", root));
    assert_false(kn_usage_from_sysfs(&u, "", root));
    assert_nothing_known(&u);
}

static void processes_of_a_graphics_device(void **state)
{
    (void)state;
    const char *root = fresh_root("fdinfo");
    static const char one[] = "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t8\ndrm-pdev:\t0000:03:00.0\n"
                              "drm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t512 KiB\n";
    put(root, "/proc/300/comm", "train\n");
    put_link(root, "/proc/300/fd/4", "/dev/dri/renderD128");
    put(root, "/proc/300/fdinfo/4", one);
    put_link(root, "/proc/300/fd/5", "/dev/dri/renderD128"); /* the same client again */
    put(root, "/proc/300/fdinfo/5", one);
    put_link(root, "/proc/300/fd/6", "/dev/dri/renderD128");
    put(root, "/proc/300/fdinfo/6",
        "drm-client-id:\t9\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t9 MiB\ndrm-resident-vram0:\t1 MiB\n");
    put_link(root, "/proc/301/fd/0", "/dev/null"); /* not a graphics device */
    put(root, "/proc/301/fdinfo/0", one);
    put_link(root, "/proc/302/fd/3", "/dev/dri/renderD129"); /* another device */
    put(root, "/proc/302/fdinfo/3", "drm-client-id:\t1\ndrm-pdev:\t0000:04:00.0\ndrm-memory-vram:\t1 MiB\n");
    put_link(root, "/proc/303/fd/3", "/dev/dri/renderD128"); /* reports no memory */
    put(root, "/proc/303/fdinfo/3", "drm-client-id:\t2\ndrm-pdev:\t0000:03:00.0\n");
    put(root, "/proc/meminfo", "");
    kn_usage u = clear();
    kn_usage_drm_processes(&u, "0000:03:00.0", root);
    assert_int_equal(u.num_processes, 2);
    assert_int_equal(u.processes[0].pid, 300);
    assert_true(u.processes[0].memory_used == 3 << 20);
    assert_string_equal(u.processes[0].name, "train");
    assert_int_equal(u.processes[1].pid, 303);
    assert_int_equal(u.processes[1].memory_used, -1);
}

static void more_processes_than_are_listed(void **state)
{
    (void)state;
    kn_usage u = clear();
    for (int i = 0; i < KN_USAGE_MAX_PROCESSES + 5; i++)
        kn_usage_add_process(&u, 1000 + i, i, "x");
    assert_int_equal(u.num_processes, KN_USAGE_MAX_PROCESSES + 5);
    kn_usage_sort_processes(&u);
    assert_int_equal(u.processes[0].pid, 1000 + KN_USAGE_MAX_PROCESSES - 1);
}

/* --- the host --------------------------------------------------------------------------------- */

static void wait_an_interval(void) { nanosleep(&(struct timespec){.tv_nsec = 120000000}, NULL); }

static void figures_of_a_processor(void **state)
{
    (void)state;
    const char *root = fresh_root("host");
    put(root, "/proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3 4\n");
    put(root, "/proc/meminfo", "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    400 kB\n");
    put(root, "/sys/class/hwmon/hwmon0/name", "nvme\n");
    put(root, "/sys/class/hwmon/hwmon0/temp1_input", "99000\n");
    put(root, "/sys/class/hwmon/hwmon1/name", "k10temp\n");
    put(root, "/sys/class/hwmon/hwmon1/temp1_input", "45500\n");
    put(root, "/sys/class/powercap/intel-rapl:0/energy_uj", "900000\n");
    put(root, "/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000\n");
    put(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n");
    put(root, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2000000\n");
    kn_usage u = clear();
    kn_usage_from_host(&u, root);
    assert_string_equal(u.source, "proc");
    assert_true(u.memory_total == 1000 * 1024 && u.memory_used == 600 * 1024);
    NEAR(u.temperature, 45.5);
    NEAR(u.clock, 2500);
    assert_true(isnan(u.load)); /* the counters did not change */
    NEAR(u.power, 0);
    put(root, "/proc/stat", "cpu  200 0 150 1050 100 0 0 0 0 0\n");
    put(root, "/sys/class/powercap/intel-rapl:0/energy_uj", "100000\n"); /* wrapped: 0.2 J in some 0.12 s */
    wait_an_interval();
    kn_usage_from_host(&u, root);
    NEAR(u.load, 30); /* 150 of 500 ticks */
    assert_true(u.power > 0.1 && u.power < 2);
    kn_usage again = clear(); /* immediately: the previous answer is reused */
    kn_usage_from_host(&again, root);
    NEAR(again.load, 30);
}

static void a_processor_that_tells_little(void **state)
{
    (void)state;
    const char *root = fresh_root("bare");
    kn_usage u = clear();
    kn_usage_from_host(&u, root);
    assert_true(isnan(u.load) && isnan(u.temperature) && isnan(u.power) && isnan(u.clock));
    assert_true(u.memory_used == -1 && u.memory_total == -1);
    put(root, "/sys/class/thermal/thermal_zone0/type", "acpitz\n");
    put(root, "/sys/class/thermal/thermal_zone0/temp", "20000\n");
    put(root, "/sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
    put(root, "/sys/class/thermal/thermal_zone1/temp", "66000\n");
    put(root, "/proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2500.5\nprocessor\t: 1\ncpu MHz\t\t: 1500.5\n");
    kn_usage_from_host(&u, root);
    NEAR(u.temperature, 66);
    NEAR(u.clock, 2000.5);
}

static void paths_that_are_too_long(void **state)
{
    (void)state;
    char root[KN_USAGE_PATH], path[KN_USAGE_PATH];
    memset(root, 'x', sizeof root);
    root[sizeof root - 1] = '\0';
    assert_string_equal(kn_usage_path(path, root, "/proc"), "");
    assert_int_equal(kn_usage_read_number(""), -1);
}

/* --- this machine ----------------------------------------------------------------------------- */

static void a_device_of_this_machine(void **state)
{
    (void)state;
    kn_device *device;
    kn_usage u;
    assert_new(device = kn_device_open("cpu"));
    assert_ok(kn_device_usage(device, &u));
    assert_true(u.memory_used > 0 && u.memory_total > u.memory_used);
    assert_true(isnan(u.load) || (u.load >= 0 && u.load <= 100));
    assert_true(kn_device_memory_used(device) > 0);
    double load = kn_utilization(device);
    assert_true(isnan(load) || (load >= 0 && load <= 100));
    assert_true(isnan(kn_memory_usage(device)));
    kn_temperature(device);
    kn_power_draw(device);
    kn_clock_rate(device);
    char *text = kn_list_gpu_processes(device);
    assert_non_null(text);
    assert_non_null(strstr(text, "cpu:0\n"));
    assert_non_null(strstr(text, "does not tell"));
    kn_free(text);
}

static void wrong_devices(void **state)
{
    (void)state;
    kn_usage u;
    assert_int_equal(kn_device_usage(NULL, &u), KN_ERR_ARGUMENT);
    assert_message("kn_device_usage: argument `device` is NULL");
    assert_int_equal(kn_device_usage(test_device(), NULL), KN_ERR_ARGUMENT);
    assert_message("usage");
    assert_int_equal(kn_device_usage(kn_device_host(), &u), KN_ERR_DEVICE);
    assert_message("host");
    assert_true(isnan(kn_utilization(kn_device_host())));
    assert_message("host");
    assert_int_equal(kn_device_memory_used(NULL), -1);
    assert_message("NULL");
    assert_null(kn_list_gpu_processes(NULL));
    assert_message("NULL");
}

int main(void)
{
    setenv("KOINE_NVML_LIBRARY", FAKE_NVML, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvml_tells_all),
        cmocka_unit_test(nvml_tells_many_processes),
        cmocka_unit_test(nvml_tells_little),
        cmocka_unit_test(sysfs_of_amdgpu),
        cmocka_unit_test(sysfs_of_others),
        cmocka_unit_test(processes_of_a_graphics_device),
        cmocka_unit_test(more_processes_than_are_listed),
        cmocka_unit_test(figures_of_a_processor),
        cmocka_unit_test(a_processor_that_tells_little),
        cmocka_unit_test(paths_that_are_too_long),
        cmocka_unit_test(a_device_of_this_machine),
        cmocka_unit_test(wrong_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
