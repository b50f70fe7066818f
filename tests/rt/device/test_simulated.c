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

/* NVML's device is found by PCI address or UUID. */
static void usage(void **state)
{
    (void)state;
    kn_usage u;
    kn_device *device = kn_device_at(0);
    assert_ok(kn_device_usage(device, &u));
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
    if (kn_gpu_count() != 2) {
        printf("skipped: this OpenCL loader has no layers\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),
        cmocka_unit_test(programs),
        cmocka_unit_test(peers),
        cmocka_unit_test(usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
