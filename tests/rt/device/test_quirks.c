/* test_quirks.c - which drivers have which quirks, and the workarounds: the rows of rt/device/quirks.c, with quirks set
 * on a device that has none. */
#include "rt/rt_test.h"

#include <stdlib.h>

#include "rt/device/device_struct.h"
#include "rt/device/inject.h"
#include "rt/device/struct_copies.h"
#include "rt/memory/buffer.h"
#include "watch/doctor/diagnose.h"

#define PLATFORM_NVIDIA "NVIDIA CUDA"
#define PLATFORM_INTEL "Intel(R) OpenCL Graphics"
#define PLATFORM_AMD "AMD Accelerated Parallel Processing"
#define GIB ((uint64_t)1 << 30)

/* What they add to a program's options. */
static const char *options_of(const kn_quirks *quirks)
{
    static char options[256];
    kn_text text = {0};
    kn_quirk_add_options(&text, quirks);
    char *added = kn_text_finish(&text);
    assert_non_null(added);
    snprintf(options, sizeof options, "%s", added);
    kn_free(added);
    return options;
}

static void rows_go_by_platform_and_version(void **state)
{
    (void)state;
    kn_quirks q = kn_quirks_of(PLATFORM_NVIDIA, "550.54.15");
    assert_true(q.f16_unannounced && q.gives_larger_buffers && q.allocates_lazily);
    assert_false(q.caches_programs || q.large_buffers_on_demand || q.allocation_limit_by_environment);
    assert_false(kn_quirks_of(PLATFORM_NVIDIA, "470.1").f16_unannounced);
    q = kn_quirks_of("Portable Computing Language", "3.1");
    assert_true(q.caches_programs && q.compiles_at_first_launch && q.compiles_each_local_size && !q.allocates_lazily);
    q = kn_quirks_of(PLATFORM_INTEL, "24.52.032224");
    assert_true(q.large_buffers_on_demand && !q.gives_larger_buffers);
    assert_true(kn_quirks_of("Intel(R) OpenCL HD Graphics", "21.28").large_buffers_on_demand);
    assert_true(!q.fails_in_exit_after_fork);
    q = kn_quirks_of("Intel(R) OpenCL", "2026.22.10.0.01_160000"); /* CPUs */
    assert_true(q.fails_in_exit_after_fork && !q.large_buffers_on_demand);
    q = kn_quirks_of(PLATFORM_AMD, "3635.0 (HSA1.1,LC)");
    assert_true(q.allocation_limit_by_environment && !q.large_buffers_on_demand);
    assert_true(kn_quirks_of("rusticl", "24.2.8").drives_any_vendor && !q.drives_any_vendor);
    q = kn_quirks_of("rusticl", "25.0.7");
    assert_string_equal(options_of(&q), " -DKN_FOR_SPIRV -O2");
    assert_true(q.fails_in_exit_after_fork);
    const kn_quirks none = {0}, other = kn_quirks_of("Another", "1.0");
    assert_memory_equal(&none, &other, sizeof none);
}

/* Programs are built with -O2 where the trial fails, not where it gives the right values. */
static void copies_of_structs_are_tried(void **state)
{
    (void)state;
    kn_device *device = test_device();
    const kn_quirks quirks = device->quirks;
    device->quirks.drops_struct_copies = true;
    for (int fails = 1; fails >= 0; fails--) {
        device->struct_copies = 0;
        if (fails)
            kn_inject(KN_CL_LAUNCH, 1, CL_OUT_OF_RESOURCES, false);
        assert_true(kn_struct_copies_are_dropped(device) == (fails || quirks.drops_struct_copies));
        kn_inject_stop();
        assert_true(kn_struct_copies_are_dropped(device) == (fails || quirks.drops_struct_copies)); /* once */
    }
    device->quirks = quirks;
}

/* The library's kernels compile without the driver's header on all devices and for all dtypes tested; a program that
 * does not is built with it. */
static void declarations_of_our_own(void **state)
{
    (void)state;
    assert_true(kn_quirks_of("Portable Computing Language", "3.1").reads_long_header);
    assert_false(kn_quirks_of("Portable Computing Language", "6.0").reads_long_header);
}

/* Intel's driver: only on request, because it is slower. */
static void large_buffers_on_demand(void **state)
{
    (void)state;
    const kn_quirks q = kn_quirks_of(PLATFORM_INTEL, "24"), none = {0};
    unsetenv("KOINE_LARGE_BUFFERS");
    assert_string_equal(options_of(&q), "");
    assert_true(kn_quirk_buffer_flags(&q, 5 * GIB, 4 * GIB) == 0);
    assert_non_null(strstr(kn_quirk_larger_buffers(&q, 4 * GIB, 16 * GIB), "KOINE_LARGE_BUFFERS=1"));
    assert_null(kn_quirk_larger_buffers(&q, 4 * GIB, 4 * GIB)); /* all of the memory */
    setenv("KOINE_LARGE_BUFFERS", "1", 1);
    assert_non_null(strstr(options_of(&q), "-cl-intel-greater-than-4GB-buffer-required"));
    assert_true(kn_quirk_buffer_flags(&q, 5 * GIB, 4 * GIB) == 1 << 23);
    assert_true(kn_quirk_buffer_flags(&q, 4 * GIB, 4 * GIB) == 0);
    assert_null(kn_quirk_larger_buffers(&q, 4 * GIB, 16 * GIB));
    assert_string_equal(options_of(&none), "");
    assert_true(kn_quirk_buffer_flags(&none, 5 * GIB, 4 * GIB) == 0);
    unsetenv("KOINE_LARGE_BUFFERS");
}

/* The driver allocates on first use, which is immediate: if that fails, the cache is freed and the allocation
 * retried. */
static void lazy_allocations_fail_in_time(void **state)
{
    (void)state;
    kn_device *device = test_device();
    const int64_t elements = 3 << 20;
    kn_stream *stream = kn_stream_current(device);
    kn_buffer *buffer = NULL;
    device->quirks.allocates_lazily = true;
    int64_t retries;
    assert_ok(kn_empty_cache(device));
    kn_reset_accumulated_memory_stats(device);
    kn_inject(KN_CL_COPY, 1, CL_MEM_OBJECT_ALLOCATION_FAILURE, false);
    assert_ok(kn_buffer_alloc(&buffer, stream, (size_t)elements * 4));
    kn_inject_stop();
    assert_ok(kn_memory_stat(device, "num_alloc_retries", &retries));
    assert_int_equal(retries, 1);
    kn_buffer_free(buffer);
    assert_ok(kn_empty_cache(device));
    kn_inject(KN_CL_COPY, 1, CL_MEM_OBJECT_ALLOCATION_FAILURE, true);
    assert_int_equal(kn_buffer_alloc(&buffer, stream, (size_t)elements * 4), KN_ERR_MEMORY);
    kn_inject_stop();
    assert_message("largest single buffer");
    device->quirks.gives_larger_buffers = true; /* then it is not the cause */
    kn_inject(KN_CL_COPY, 1, CL_MEM_OBJECT_ALLOCATION_FAILURE, true);
    assert_int_equal(kn_buffer_alloc(&buffer, stream, (size_t)elements * 4), KN_ERR_MEMORY);
    kn_inject_stop();
    assert_null(strstr(kn_error_message(), "largest single buffer"));
    kn_error_clear();
    device->quirks.allocates_lazily = device->quirks.gives_larger_buffers = false;
    assert_ok(kn_buffer_alloc(&buffer, stream, (size_t)elements * 4));
    kn_buffer_free(buffer);
}

static bool doctor_says(const char *what)
{
    kn_diagnosis diagnosis = {0};
    bool said = false;
    kn_diagnose_devices(&diagnosis);
    for (int i = 0; i < diagnosis.count; i++)
        said = said || (diagnosis.findings[i].remedy && strstr(diagnosis.findings[i].remedy, what));
    kn_diagnosis_free(&diagnosis);
    return said;
}

/* AMD's driver: `koine doctor` names its variables. */
static void the_doctor_tells_how_to_get_larger_buffers(void **state)
{
    (void)state;
    kn_device *device = test_device();
    const kn_quirks quirks = device->quirks;
    const kn_limits limits = device->limits;
    device->limits.max_allocation = device->limits.global_memory / 2;
    assert_false(doctor_says("GPU_SINGLE_ALLOC_PERCENT"));
    device->quirks.allocation_limit_by_environment = true;
    assert_true(doctor_says("GPU_SINGLE_ALLOC_PERCENT=100"));
    device->limits.max_allocation = device->limits.global_memory;
    assert_false(doctor_says("GPU_SINGLE_ALLOC_PERCENT"));
    device->quirks = quirks;
    device->limits = limits;
}

static const char tells_local_size[] = "#include \"common/koine.clh\"\n"
                                       "kernel void tell(KN_OUT(y))\n"
                                       "{\n"
                                       "    KN_BIND_OUT(int, y);\n"
                                       "    y[0] = get_local_size(0) * get_local_size(1);\n"
                                       "}\n";

/* Of a launch that gives none. */
static void expect_local_size(kn_user_kernel *tell, size_t global_0, size_t global_1, int32_t expected)
{
    int32_t told = 0;
    kn_tensor *y = kn_zeros(KN_SHAPE(1), .dtype = KN_I32);
    assert_ok(kn_kernel_run(tell, KN_KERNEL_ARGS(kn_kernel_output(y)), .global = {global_0, global_1}));
    assert_ok(kn_read(y, &told, sizeof told));
    assert_int_equal(told, expected);
    kn_release(y);
}

/* As a GPU: groups of one size, whatever the number of work-items. */
static void local_sizes_are_few_where_each_is_compiled(void **state)
{
    (void)state;
    kn_device *device = test_device();
    const kn_quirks quirks = device->quirks;
    const kn_limits limits = device->limits;
    kn_user_kernel *tell = kn_kernel_new(tells_local_size, "tell", NULL);
    assert_new(tell);
    device->limits.is_cpu = true;
    expect_local_size(tell, 192, 1, 1);
    device->limits.is_cpu = false;
    device->quirks.compiles_each_local_size = true;
    expect_local_size(tell, 64, 1, 64);
    expect_local_size(tell, 192, 1, 64);
    expect_local_size(tell, 64 * 31, 6, 64);
    expect_local_size(tell, 24, 4, 8); /* a divisor, since the kernel need not check its range */
    expect_local_size(tell, 7, 1, 1);
    device->limits.max_work_group_size = 16;
    expect_local_size(tell, 192, 1, 16);
    device->quirks = quirks;
    device->limits = limits;
    kn_kernel_free(tell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_of_structs_are_tried),
                                       cmocka_unit_test(local_sizes_are_few_where_each_is_compiled),
                                       cmocka_unit_test(rows_go_by_platform_and_version),
                                       cmocka_unit_test(declarations_of_our_own),
                                       cmocka_unit_test(large_buffers_on_demand),
                                       cmocka_unit_test(lazy_allocations_fail_in_time),
                                       cmocka_unit_test(the_doctor_tells_how_to_get_larger_buffers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
