/* test_kernel.c - user kernels on tensors. */
#include "support/check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/as_gpu.h"

static const char source[] = "#include \"common/koine.clh\"\n"
                             "kernel void scale(KN_OUT(y), KN_IN(x), float factor, long n)\n"
                             "{\n"
                             "    KN_BIND_OUT(T, y);\n"
                             "    KN_BIND_IN(T, x);\n"
                             "    KN_FOR(i, n) y[i] = factor * x[i];\n"
                             "}\n"
                             "kernel void reverse(KN_INOUT(y), local T *copy, int n)\n"
                             "{\n"
                             "    KN_BIND_OUT(T, y);\n"
                             "    const int i = get_local_id(0);\n"
                             "    copy[i] = y[i];\n"
                             "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                             "    y[i] = copy[n - 1 - i];\n"
                             "}\n"
                             "kernel void fill(KN_OUT(y), int columns, long2 values)\n"
                             "{\n"
                             "    KN_BIND_OUT(T, y);\n"
                             "    y[get_global_id(1) * columns + get_global_id(0)] = get_global_id(1) ? values.y : "
                             "values.x;\n"
                             "}\n";

static kn_user_kernel *kernel_of(const char *name, const char *options)
{
    kn_user_kernel *kernel = kn_kernel_new(source, name, options);
    CHECK_NEW(kernel);
    return kernel;
}

TENSOR_TEST(test_run)
{
    kn_user_kernel *scale = kernel_of("scale", "-DT=float"), *half = kernel_of("scale", "-DT=int");
    kn_tensor *x = kn_arange(0, 5, 1, .dtype = KN_F32), *y = kn_zeros(KN_SHAPE(3));
    kn_tensor *tail = kn_narrow(x, 0, 2, 3); /* starts within its memory */
    CHECK_OK(kn_kernel_run(
        scale, KN_KERNEL_ARGS(kn_kernel_output(y), kn_kernel_input(tail), kn_kernel_f32(3), kn_kernel_i64(3)),
        .global = {3}));
    CHECK_VALUES(y, 6, 9, 12);
    CHECK_OK(kn_kernel_run(
        scale, KN_KERNEL_ARGS(kn_kernel_output(y), kn_kernel_input(tail), kn_kernel_f32(7), kn_kernel_i64(3)),
        .global = {0}));
    CHECK_VALUES(y, 6, 9, 12); /* no work-items */
    kn_tensor *z = kn_ones(KN_SHAPE(2), .dtype = KN_I32);
    CHECK_OK(kn_kernel_run(
        half, KN_KERNEL_ARGS(kn_kernel_output(z), kn_kernel_input(kn_ones_like(z)), kn_kernel_f32(4), kn_kernel_i64(2)),
        .global = {2}));
    CHECK_VALUES(z, 4, 4);
    kn_kernel_free(scale);
    kn_kernel_free(half);
    kn_kernel_free(NULL);
}

TENSOR_TEST(test_local_memory_and_dimensions)
{
    kn_user_kernel *reverse = kernel_of("reverse", "-DT=float"), *fill = kernel_of("fill", "-DT=float");
    kn_tensor *y = kn_arange(0, 4, 1, .dtype = KN_F32);
    CHECK_OK(kn_kernel_run(reverse, KN_KERNEL_ARGS(kn_kernel_output(y), kn_kernel_local(16), kn_kernel_i32(4)),
                           .global = {4}, .local = {4}));
    CHECK_VALUES(y, 3, 2, 1, 0);
    const int64_t values[2] = {5, 6};
    kn_tensor *z = kn_zeros(KN_SHAPE(2, 3));
    CHECK_OK(kn_kernel_run(
        fill, KN_KERNEL_ARGS(kn_kernel_output(z), kn_kernel_i32(3), kn_kernel_struct(values, sizeof values)),
        .global = {3, 2}));
    CHECK_VALUES(z, 5, 5, 5, 6, 6, 6);
    kn_kernel_free(reverse);
    kn_kernel_free(fill);
}

TENSOR_TEST(test_gradients_and_versions)
{
    kn_user_kernel *scale = kernel_of("scale", "-DT=float");
    kn_tensor *x = kn_ones(KN_SHAPE(3)), *y = kn_ones(KN_SHAPE(3)), *w = kn_ones(KN_SHAPE(3), .requires_grad = true);
    kn_tensor *loss = kn_sum(kn_mul(w, y)); /* its gradient needs y */
    const kn_kernel_arg args[] = {kn_kernel_output(y), kn_kernel_input(x), kn_kernel_f32(3), kn_kernel_i64(3)};
    CHECK_OK(kn_kernel_run(scale, .args = args, .num_args = 4, .global = {3}));
    assert_int_equal(kn_backward(loss), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "changed in place");
    const kn_kernel_arg into_leaf[] = {kn_kernel_output(w), kn_kernel_input(x), kn_kernel_f32(3), kn_kernel_i64(3)};
    assert_int_equal(kn_kernel_run(scale, .args = into_leaf, .num_args = 4, .global = {3}), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "scale", "argument 0", "requires gradients");
    {
        KN_NO_GRAD;
        CHECK_OK(kn_kernel_run(scale, .args = into_leaf, .num_args = 4, .global = {3}));
    }
    CHECK_VALUES(w, 3, 3, 3);
    kn_kernel_free(scale);
}

TENSOR_TEST(test_many_arguments)
{
    enum { TENSORS = 20, NUMBERS = 80 };
    char text[8192];
    kn_kernel_arg args[TENSORS + NUMBERS];
    int length = snprintf(text, sizeof text, "#include \"common/koine.clh\"\nkernel void total(KN_OUT(t0)");
    for (int i = 1; i < TENSORS; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, ", KN_IN(t%d)", i);
    for (int i = 0; i < NUMBERS; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, ", int n%d", i);
    length += snprintf(text + length, sizeof text - (size_t)length, ")\n{ KN_BIND_OUT(float, t0); t0[0] = 0");
    for (int i = 1; i < TENSORS; i++)
        length += snprintf(text + length, sizeof text - (size_t)length,
                           " + *(const global float *)(t%d_base + t%d_offset)", i, i);
    for (int i = 0; i < NUMBERS; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, " + n%d", i);
    snprintf(text + length, sizeof text - (size_t)length, "; }");
    kn_tensor *y = kn_zeros(KN_SHAPE(1));
    args[0] = kn_kernel_output(y);
    for (int i = 1; i < TENSORS; i++)
        args[i] = kn_kernel_input(kn_full(KN_SHAPE(1), 1000 * i));
    for (int i = 0; i < NUMBERS; i++)
        args[TENSORS + i] = kn_kernel_i32(i);
    kn_user_kernel *total = kn_kernel_new(text, "total", NULL);
    CHECK_OK(kn_kernel_run(total, .args = args, .num_args = TENSORS + NUMBERS, .global = {1}));
    CHECK_VALUES(y, 1000 * (TENSORS - 1) * TENSORS / 2 + NUMBERS * (NUMBERS - 1) / 2);
    args[1] = kn_kernel_i32(1);
    assert_int_equal(kn_kernel_run(total, .args = args, .num_args = TENSORS + NUMBERS, .global = {1}), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "the kernel has 120 parameters", "19 tensors");
    static const char big[1 << 17];
    assert_int_equal(kn_kernel_run(total, KN_KERNEL_ARGS(args[0], kn_kernel_struct(big, sizeof big)), .global = {1}),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "2 arguments of 131088 bytes, 16 for each tensor", "the device takes at most");
    assert_int_equal(kn_kernel_run(total, .args = NULL, .num_args = 3, .global = {1}), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "`args` is NULL");
    kn_kernel_free(total);
}

TENSOR_TEST(test_misuse)
{
    kn_user_kernel *scale = kernel_of("scale", "-DT=float"), *other = NULL;
    kn_tensor *x = kn_ones(KN_SHAPE(3)), *host = kn_to(x, kn_device_host());
    const kn_kernel_arg y = kn_kernel_output(kn_zeros(KN_SHAPE(3))), n = kn_kernel_i64(3), f = kn_kernel_f32(2);
    assert_int_equal(kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_input(x), n), .global = {3}), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "scale", "6 parameters", "2 tensors", "1 other arguments make 5");
    assert_int_equal(kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_input(host), f, n), .global = {3}),
                     KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "argument 1 is on the host");
    assert_int_equal(kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_input(NULL), f, n), .global = {3}),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "tensor");
    assert_int_equal(kn_kernel_run(scale, KN_KERNEL_ARGS(f, n), .global = {3}), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "no argument is a tensor");
    assert_int_equal(kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_input(x), kn_kernel_f64(2), n), .global = {3}),
                     KN_ERR_DEVICE); /* 8 bytes for a float */
    CHECK_ERROR(KN_ERR_DEVICE, "scale", "argument 2");
    assert_int_equal(
        kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_input(x), f, n), .global = {1 << 24}, .local = {1 << 24}),
        KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "work-group", "16777216");
    assert_int_equal(kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_local((size_t)1 << 40), f, n), .global = {3}),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "local memory");
    assert_int_equal(
        kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_input(x), kn_kernel_local(8), kn_kernel_local(SIZE_MAX - 7)),
                      .global = {3}),
        KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "local memory");
    assert_int_equal(kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_input(x), f, n), .global = {2, 2},
                                   .local = {2, (SIZE_MAX >> 1) + 2}),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "work-group");
    assert_int_equal(
        kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_input(x), kn_kernel_struct(NULL, 4096), n), .global = {3}),
        KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "argument 2", "4096 bytes", "NULL");
    assert_int_equal(
        kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_input(x), f, n), .global = {SIZE_MAX}, .local = {4}),
        KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "work-items in dimension 0");
    assert_int_equal(kn_kernel_run(scale, KN_KERNEL_ARGS(y, n, kn_kernel_input(x), f), .global = {3}), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "scale", "argument 1 is a number", "parameter 2 of the kernel is memory");
    assert_int_equal(kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_input(x), kn_kernel_local(4), n), .global = {3}),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "argument 2 is local memory", "parameter 4 of the kernel is a number");
    assert_int_equal(kn_kernel_run(scale, KN_KERNEL_ARGS(n, y, kn_kernel_i32(1), kn_kernel_i32(1), n), .global = {3}),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "argument 0 is a number", "parameter 0 of the kernel is memory");
    assert_int_equal(kn_status_of(other = kn_kernel_new(source, "two names", NULL)), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "two names");
    assert_int_equal(kn_status_of(other = kn_kernel_new(NULL, "scale", NULL)), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "source");
    assert_int_equal(kn_kernel_run(NULL, .global = {3}), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kernel");
    CHECK_OK(kn_kernel_run(scale, KN_KERNEL_ARGS(y, kn_kernel_input(x), f, n), .global = {3})); /* still works */
    CHECK_VALUES(y.tensor, 2, 2, 2);
    kn_kernel_free(scale);
}

static void check_wrong_source(const char *text, const char *name, kn_status status, const char *piece,
                               const char *other)
{
    kn_user_kernel *kernel = kn_kernel_new(text, name, NULL);
    CHECK_NEW(kernel);
    assert_int_equal(kn_kernel_run(kernel, KN_KERNEL_ARGS(kn_kernel_output(kn_zeros(KN_SHAPE(3)))), .global = {3}),
                     status);
    CHECK_ERROR(status, name, piece, other);
    kn_kernel_free(kernel);
}

TENSOR_TEST(test_wrong_sources)
{
    check_wrong_source("#include \"common/koine.clh\"\n\nkernel void wrong(KN_OUT(y))\n{\n    nonsense y;\n}\n",
                       "wrong", KN_ERR_DEVICE, "line 5 of `wrong`", "`nonsense y;`");
    check_wrong_source("kernel void wrong(global float *y)\n{\n}\n", "absent", KN_ERR_DEVICE, "absent", "");
    check_wrong_source("#include \"no/such.clh\"\nkernel void wrong(global float *y)\n{\n}\n", "wrong", KN_ERR_ARGUMENT,
                       "no/such.clh", "include");
    check_wrong_source("/*\n#include \"no/such.clh\" */\nkernel void wrong(global float *y)\n{\n    nonsense y;\n}\n",
                       "wrong", KN_ERR_DEVICE, "line 5 of `wrong`", "`nonsense y;`");
    check_wrong_source("kernel void plain(global float *y) { }\n", "plain", KN_ERR_ARGUMENT, "1 parameters", "make 2");
}

/* Cached on disk like built-in kernels: compiled once for all processes. */
static void test_kept_on_disk(void **state)
{
    (void)state;
    char folder[] = "/tmp/koine-kernel-XXXXXX", command[128];
    const char *before = getenv("KOINE_CACHE_DIR");
    char *kept = before ? strdup(before) : NULL;
    assert_non_null(mkdtemp(folder));
    setenv("KOINE_CACHE_DIR", folder, 1);
    setenv("KOINE_PROGRAM_CACHE", "1", 1);
    {
        KN_SCOPE;
        kn_user_kernel *scale = kernel_of("scale", "-DT=float -DFRESH");
        kn_tensor *x = kn_ones(KN_SHAPE(3)), *y = kn_zeros(KN_SHAPE(3));
        CHECK_OK(kn_kernel_run(
            scale, KN_KERNEL_ARGS(kn_kernel_output(y), kn_kernel_input(x), kn_kernel_f32(2), kn_kernel_i64(3)),
            .global = {3}));
        kn_kernel_free(scale);
    }
    unsetenv("KOINE_PROGRAM_CACHE");
    snprintf(command, sizeof command, "test $(ls %s/programs/*.bin | wc -l) = 1 && rm -r %s", folder, folder);
    assert_int_equal(system(command), 0);
    if (kept)
        setenv("KOINE_CACHE_DIR", kept, 1);
    free(kept);
}

/* Loads and stores vectors of `width` elements of T at odd places, by way of private and local memory. */
static const char vectors[] = "#include \"common/koine.clh\"\n"
                              "#define JOIN_(a, b) a##b\n"
                              "#define JOIN(a, b) JOIN_(a, b)\n"
                              "kernel void move(KN_OUT(y), KN_IN(x), local T *shared)\n"
                              "{\n"
                              "    KN_BIND_OUT(T, y);\n"
                              "    KN_BIND_IN(T, x);\n"
                              "    T own[2 * WIDTH + 1];\n"
                              "    JOIN(vstore, WIDTH)(JOIN(vload, WIDTH)(1, x + 1), 1, own + 1);\n"
                              "    JOIN(vstore, WIDTH)(JOIN(vload, WIDTH)(1, own + 1), 0, shared + 1);\n"
                              "    JOIN(vstore, WIDTH)(JOIN(vload, WIDTH)(0, shared + 1), 1, y + 1);\n"
                              "    y[0] = vload3(0, x + 1).z;\n"
                              "}\n";

static void move_vectors(const char *type, kn_dtype dtype, int width)
{
    char options[64];
    snprintf(options, sizeof options, "-DT=%s -DWIDTH=%d", type, width);
    kn_user_kernel *move = kn_kernel_new(vectors, "move", options);
    CHECK_NEW(move);
    kn_tensor *x = kn_arange(0, 40, 1, .dtype = dtype), *y = kn_zeros(KN_SHAPE(40), .dtype = dtype);
    CHECK_OK(kn_kernel_run(
        move, KN_KERNEL_ARGS(kn_kernel_output(y), kn_kernel_input(x), kn_kernel_local(64 * sizeof(double))),
        .global = {1}, .local = {1}));
    double expected[40] = {3};
    for (int i = width + 1; i <= 2 * width; i++)
        expected[i] = i;
    check_values(y, expected, 40, type, __FILE__, __LINE__);
    kn_kernel_free(move);
}

TENSOR_TEST(test_vectors)
{
    for (int width = 2; width <= 16; width *= 2) {
        move_vectors("float", KN_F32, width);
        move_vectors("uchar", KN_U8, width);
        move_vectors("long", KN_I64, width);
    }
}

static void test_two_devices(void **state)
{
    (void)state;
    if (kn_device_count() < 2)
        skip();

    KN_SCOPE;
    kn_user_kernel *scale = kernel_of("scale", "-DT=float");
    for (int d = 0; d < 2; d++) {
        kn_tensor *x = kn_ones(KN_SHAPE(3), .device = kn_device_at(d)), *y = kn_zeros_like(x);
        CHECK_OK(kn_kernel_run(
            scale, KN_KERNEL_ARGS(kn_kernel_output(y), kn_kernel_input(x), kn_kernel_f32(2), kn_kernel_i64(3)),
            .global = {3}));
        CHECK_VALUES(y, 2, 2, 2);
        kn_tensor *far = kn_ones(KN_SHAPE(3), .device = kn_device_at(1 - d));
        assert_int_equal(
            kn_kernel_run(scale,
                          KN_KERNEL_ARGS(kn_kernel_output(y), kn_kernel_input(far), kn_kernel_f32(2), kn_kernel_i64(3)),
                          .global = {3}),
            KN_ERR_DEVICE);
        CHECK_ERROR(KN_ERR_DEVICE, "two devices", kn_device_string(kn_device_at(0)), kn_device_string(kn_device_at(1)));
    }
    kn_kernel_free(scale);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(test_run),
        TEST(test_local_memory_and_dimensions),
        TEST(test_gradients_and_versions),
        TEST(test_many_arguments),
        TEST(test_misuse),
        TEST(test_wrong_sources),
        TEST(test_kept_on_disk),
        TEST(test_vectors),
        TEST(test_two_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
