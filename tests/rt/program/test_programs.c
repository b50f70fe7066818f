/* Kernel sources: includes, the override folder, a source that does not build, launches. */
#include "rt/rt_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "rt/program/program.h"
#include "rt/rt.h"
#include "tensor/tensor.h"

static char folder[] = "/tmp/koine-kernels-XXXXXX";

static void write_kernel(const char *name, const char *source)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(source, file);
    fclose(file);
}

static void includes_are_put_in_once(void **state)
{
    (void)state;
    char *text;
    assert_ok(kn_kernel_source_text(&text, "tensor/random.cl"));
    assert_null(strstr(text, "#include \"")); /* <stdint.h> stays, for C */
    const char *first = strstr(text, "kn_philox4x32(uint4");
    assert_non_null(first);
    assert_null(strstr(first + 1, "static inline uint4 kn_philox4x32(uint4"));
    kn_free(text);
    assert_int_equal(kn_kernel_source_text(&text, "no/such.cl"), KN_ERR_INTERNAL);
    assert_message("no/such.cl");
}

static kn_status launch(const char *source, const char *kernel, kn_tensor *x)
{
    return kn_run(kn_tensor_stream(x), .source = source, .kernel = kernel, .dims = 1, .global = {(size_t)kn_numel(x)},
                  KN_ARGS(kn_arg_tensor(x), kn_arg_i64(kn_numel(x))));
}

static void a_kernel_from_the_folder_runs(void **state)
{
    (void)state;
    write_kernel("three.cl", "#include \"common/koine.clh\"\n"
                             "kernel void three(KN_OUT(x), long n)\n"
                             "{ KN_BIND_OUT(float, x); KN_FOR (i, n) x[i] = 3; }\n");

    KN_SCOPE;
    float values[5];
    kn_tensor *x = kn_zeros(KN_SHAPE(5));
    assert_ok(launch("three.cl", "three", x));
    assert_ok(kn_read(x, values, sizeof values));
    for (int i = 0; i < 5; i++)
        assert_true(values[i] == 3);
    assert_int_equal(launch("three.cl", "four", x), KN_ERR_DEVICE);
    assert_message("four");
}

/* Numbers and structs are set only when they differ from those of the kernel's last launch. */
typedef struct many {
    int64_t value[20]; /* more bytes than are remembered */
} many;

static void each_launch_has_its_arguments(void **state)
{
    (void)state;
    write_kernel("put.cl", "#include \"common/koine.clh\"\n"
                           "typedef struct pair { long first, second; } pair;\n"
                           "typedef struct many { long value[20]; } many;\n"
                           "kernel void put(KN_OUT(x), int a, pair b, many c, float d)\n"
                           "{ KN_BIND_OUT(float, x); x[0] = a + b.first + b.second + c.value[19] + d; }\n");

    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(2, 3));
    unsigned random = 1;
    for (int i = 0; i < 60; i++) {
        int v[5]; /* often the same as before */
        for (int j = 0; j < 5; j++)
            v[j] = (int)((random = random * 1664525u + 1013904223u) >> 30);
        many c = {{0}};
        c.value[19] = v[3];
        kn_tensor *element = kn_select(kn_select(x, 0, i & 1), 0, v[4] % 3);
        assert_ok(kn_run(kn_tensor_stream(x), .source = "put.cl", .kernel = "put", .dims = 1, .global = {1},
                         KN_ARGS(kn_arg_tensor(element), kn_arg_i32(v[0]),
                                 kn_arg_struct(((int64_t[]){v[1], v[2]}), 2 * sizeof(int64_t)),
                                 kn_arg_struct(&c, sizeof c), kn_arg_f32(0.5))));
        double got = 0;
        assert_ok(kn_item(element, &got));
        assert_true(got == v[0] + v[1] + v[2] + v[3] + 0.5);
    }
}

/* hypot is not among the functions that src/rt/program/builtins.c declares. */
static void a_function_that_is_not_declared_is_the_drivers(void **state)
{
    (void)state;
    write_kernel("five.cl", "#include \"common/koine.clh\"\n"
                            "kernel void five(KN_OUT(x), long n)\n"
                            "{ KN_BIND_OUT(float, x); KN_FOR (i, n) x[i] = hypot(x[i] + 3, 4.0f); }\n");

    KN_SCOPE;
    float values[2];
    kn_tensor *x = kn_zeros(KN_SHAPE(2));
    assert_ok(launch("five.cl", "five", x));
    assert_ok(kn_read(x, values, sizeof values));
    assert_true(values[0] == 5 && values[1] == 5);
}

/* The error shows the compiler's log, not the source. */
static void a_source_that_does_not_build_shows_the_log(void **state)
{
    (void)state;
    write_kernel("broken.cl",
                 "kernel void broken(global float *x)\n{\n    x[0] = nonsense_name;\n}\n/* a secret comment */\n");

    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(1));
    assert_int_equal(launch("broken.cl", "broken", x), KN_ERR_DEVICE);
    const char *message = kn_error_message();
    assert_non_null(strstr(message, "broken.cl"));
    assert_non_null(strstr(message, "nonsense_name"));
    assert_null(strstr(message, "a secret comment"));
    kn_error_clear();
    assert_int_equal(launch("broken.cl", "broken", x), KN_ERR_DEVICE); /* again: still an error, no crash */
    kn_error_clear();
}

static void nothing_to_do_is_no_launch(void **state)
{
    (void)state;

    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(0));
    assert_ok(launch("no/such.cl", "nothing", x)); /* the source is not even opened */
}

static void a_fault_is_reported_once(void **state)
{
    (void)state;
    write_kernel("fault.cl", "#include \"common/koine.clh\"\n"
                             "kernel void fault(KN_OUT(x), KN_FAULT) { KN_BIND_OUT(float, x); kn_report_index(fault, "
                             "12, 10); x[0] = 1; }\n");

    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(1));
    double value;
    assert_ok(kn_run(kn_tensor_stream(x), .source = "fault.cl", .kernel = "fault", .operation = "lookup", .dims = 1,
                     .global = {1}, KN_ARGS(kn_arg_tensor(x), kn_arg_fault())));
    assert_int_equal(kn_item(x, &value), KN_ERR_ARGUMENT);
    assert_message("lookup: index 12 is out of range for size 10");
    assert_ok(kn_item(x, &value));
    assert_ok(kn_synchronize(test_device()));
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    setenv("KOINE_KERNEL_DIR", folder, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(includes_are_put_in_once),
        cmocka_unit_test(a_kernel_from_the_folder_runs),
        cmocka_unit_test(each_launch_has_its_arguments),
        cmocka_unit_test(a_function_that_is_not_declared_is_the_drivers),
        cmocka_unit_test(a_source_that_does_not_build_shows_the_log),
        cmocka_unit_test(nothing_to_do_is_no_launch),
        cmocka_unit_test(a_fault_is_reported_once),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[160];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? failed : 1;
}
