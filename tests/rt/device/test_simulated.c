/* test_simulated.c - vendor-specific driver queries, answered by the layer support/simulate_gpu.c on two PoCL devices:
 * test_simulated khr|nv|amd|amd-p2p. */
#include "rt/rt_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rt/rt.h"

static const char *kind;

static bool is(const char *name) { return strcmp(kind, name) == 0; }

static void addresses(void **state)
{
    (void)state;
    kn_device_properties p, q;
    assert_ok(kn_device_get_properties(kn_device_at(0), &p));
    assert_ok(kn_device_get_properties(kn_device_at(1), &q));
    assert_int_equal(p.type, KN_DEVICE_GPU);
    assert_string_equal(p.pci_address, is("nv") ? "0001:65:02.1" : "0000:65:00.0");
    assert_string_equal(q.pci_address, is("nv") ? "0001:66:02.1" : "0000:66:00.0");
    assert_string_equal(p.uuid, is("khr") ? "00000000-0000-0000-0000-000000000065" : "");
    if (!is("khr"))
        assert_int_equal(p.warp_size, is("nv") ? 32 : 64);
}

static void programs(void **state)
{
    (void)state;
    char *list = kn_device_arch_list(kn_device_at(0));
    assert_new(list);
    assert_true((strstr(list, "sm_90") != NULL) == is("nv"));
    kn_free(list);
    int major, minor;
    assert_ok(kn_device_capability(kn_device_at(0), &major, &minor));
    assert_int_equal(major, is("nv") ? 9 : 1);
    assert_int_equal(kn_device_limits(kn_device_at(0))->ptx_capability, is("nv") ? 90 : 0);
}

static void peers(void **state)
{
    (void)state;
    /* The simulated AMD devices have separate memory: only the list of peers counts. */
    assert_int_equal(kn_can_device_access_peer(kn_device_at(0), kn_device_at(1)), !is("amd"));
    assert_false(kn_can_device_access_peer(kn_device_at(0), kn_device_at(0)));
}

/* A Radeon of 16 GiB in /sys, of which 13 are in use. */
static void make_sysfs(void)
{
    static char root[600];
    char command[2000];
    snprintf(root, sizeof root, "%s/tests/folders/simulated-sysfs", KOINE_BINARY_DIR);
    snprintf(command, sizeof command,
             "rm -rf '%s'; d='%s/sys/bus/pci/devices/0000:65:00.0'; mkdir -p \"$d\"; ln -s ../amdgpu \"$d/driver\"; "
             "echo 17179869184 > \"$d/mem_info_vram_total\"; echo 13958643712 > \"$d/mem_info_vram_used\"",
             root, root);
    if (system(command) != 0)
        abort();
    setenv("KOINE_DOCTOR_ROOT", root, 1);
    setenv("KOINE_NVML_LIBRARY", "/nonexistent", 1);
}

static uint64_t free_of(kn_device *device, uint64_t total)
{
    uint64_t free_bytes = 0, total_bytes = 0;
    kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(device);
    const uint64_t real = limits->global_memory;
    limits->global_memory = total;
    assert_ok(kn_mem_get_info(device, &free_bytes, &total_bytes));
    limits->global_memory = real;
    assert_true(total_bytes == total);
    return free_bytes;
}

/* NVML and sysfs know of other processes, if they know the device. */
static void free_memory(void **state)
{
    (void)state;
    const uint64_t gib = (uint64_t)1 << 30;
    kn_device *device = kn_device_at(0);
    assert_true(free_of(device, 16 * gib) == (is("nv") ? 16 : is("amd-p2p") ? 3 : 12) * gib);
    assert_true(free_of(device, 64 * gib) == 64 * gib); /* the figures are of other memory */
}

/* NVML's device is found by PCI address or UUID. */
static void usage(void **state)
{
    (void)state;
    kn_usage u;
    kn_device *device = kn_device_at(0);
    assert_ok(kn_device_usage(device, &u));
    if (is("amd-p2p")) {
        assert_string_equal(u.source, "amdgpu");
        assert_true(u.memory_used == (int64_t)13 << 30);
        return;
    }
    if (is("nv")) { /* 0001:65:02.1 is unknown to the library */
        assert_string_equal(u.source, "");
        assert_true(u.memory_used == -1 && u.memory_total > 0 && u.num_processes == -1);
        return;
    }
    assert_string_equal(u.source, "NVML");
    assert_true(kn_utilization(device) == 87);
    assert_true(kn_memory_usage(device) == 31);
    assert_true(kn_temperature(device) == 61);
    assert_true(fabs(kn_power_draw(device) - 254500) < 1e-6);
    assert_true(kn_clock_rate(device) == 1980);
    assert_true(kn_device_memory_used(device) == (int64_t)4 << 30);
    char *text = kn_list_gpu_processes(device);
    assert_non_null(strstr(text, "gpu:0\nprocess     100003 uses     2048.000 MB GPU memory (train)\n"));
    assert_non_null(strstr(text, "100002 uses GPU memory that the driver does not tell\n"));
    kn_free(text);
    text = kn_list_gpu_processes(kn_device_at(1)); /* reports only its memory */
    assert_string_equal(text, "gpu:1\nthe driver does not tell which processes use it\n");
    kn_free(text);
}

int main(int argc, char **argv)
{
    kind = argc > 1 ? argv[1] : "khr";
    setenv("SIMULATE_GPU", kind, 1);
    setenv("OPENCL_LAYERS", SIMULATED_GPU_LAYER, 1);
    setenv("KOINE_NVML_LIBRARY", FAKE_NVML, 1);
    if (is("amd-p2p"))
        make_sysfs();
    if (kn_gpu_count() != 2) {
        printf("skipped: this OpenCL loader has no layers\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses), cmocka_unit_test(programs),    cmocka_unit_test(peers),
        cmocka_unit_test(usage),     cmocka_unit_test(free_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
