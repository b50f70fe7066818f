/* Launches as bytes (rt/compile/request.h): what is read is what was written, and damaged bytes are an error. */
#include "rt/rt_test.h"

#include "base/memory.h"
#include "base/text.h"
#include "rt/compile/request.h"
#include "rt/program/user_source.h"
#include "tensor/tensor.h"

typedef struct extent {
    int64_t size[3];
} extent;

static const extent given = {{5, 6, 7}};
static const size_t global[3] = {70000, 2, 1}, local[3] = {1, 2, 1};

static kn_text written(const kn_launch_params *params)
{
    kn_text bytes = {0};
    assert_ok(kn_request_write(&bytes, params, global, local));
    return bytes;
}

static kn_text example(kn_arg args[6])
{
    args[0] = kn_arg_f64(0.1);
    args[1] = kn_arg_i32(-3);
    args[2] = kn_arg_struct(&given, sizeof given);
    args[3] = kn_arg_local(128);
    args[4] = kn_arg_fault();
    args[5] = (kn_arg){.kind = KN_ARG_MEMORY, .size = 400, .before = 8, .offset = 16};
    const kn_launch_params params = {
        .source = "a.cl", .options = "-DT=float", .kernel = "k", .dims = 2, .args = args, .num_args = 6};
    return written(&params);
}

static void what_is_read_is_what_was_written(void **state)
{
    (void)state;
    kn_arg args[6];
    kn_text bytes = example(args);
    kn_request r;
    assert_ok(kn_request_read(&r, bytes.data, bytes.length));
    assert_string_equal(r.params.source, "a.cl");
    assert_string_equal(r.params.options, "-DT=float");
    assert_string_equal(r.params.kernel, "k");
    assert_null(r.text);
    assert_int_equal(r.params.dims, 2);
    assert_memory_equal(r.global, global, sizeof global);
    assert_memory_equal(r.local, local, sizeof local);
    assert_int_equal(r.params.num_args, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(r.args[i].kind, args[i].kind);
    assert_true(r.args[0].value.f64 == 0.1 && r.args[0].size == 8);
    assert_true(r.args[1].value.i32 == -3 && r.args[1].size == 4);
    assert_int_equal(r.args[2].size, sizeof given);
    assert_memory_equal(r.args[2].pointer, &given, sizeof given);
    assert_int_equal(r.args[3].size, 128);
    assert_true(r.args[5].size == 400 && r.args[5].before == 8 && r.args[5].offset == 16);
    kn_free(r.args);
    kn_text_free(&bytes);
    assert_string_equal(r.params.operation, "compiling ahead"); /* launches keep it for longer than the bytes */
}

static void buffers_keep_what_precedes_the_offset(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(100));
    const kn_arg argument = kn_arg_tensor(kn_narrow(x, 0, 25, 75));
    const kn_launch_params params = {.source = "a.cl", .kernel = "k", .dims = 1, .args = &argument, .num_args = 1};
    kn_text bytes = written(&params);
    kn_request r;
    assert_ok(kn_request_read(&r, bytes.data, bytes.length));
    assert_int_equal(r.args[0].kind, KN_ARG_MEMORY);
    assert_int_equal(r.args[0].before, 25 * sizeof(float));
    assert_true(r.args[0].size >= 75 * sizeof(float));
    kn_free(r.args);
    kn_text_free(&bytes);
}

/* Another process has no registry of them. */
static void written_sources_come_along(void **state)
{
    (void)state;
    kn_user_source source;
    assert_ok(kn_user_source_add(&source, "twice", "kernel void twice() {}\n", false));
    const kn_launch_params params = {.source = source.path, .kernel = source.name, .dims = 1};
    kn_text bytes = written(&params);
    kn_request r;
    assert_ok(kn_request_read(&r, bytes.data, bytes.length));
    assert_string_equal(r.params.source, source.path);
    assert_string_equal(r.text, "kernel void twice() {}\n");
    assert_null(r.params.options);
    kn_free(r.args);
    kn_text_free(&bytes);
}

static void damaged_bytes_are_refused(void **state)
{
    (void)state;
    kn_arg args[6];
    kn_text bytes = example(args);
    kn_request r;
    for (size_t length = 0; length < bytes.length; length++) {
        char *part = kn_malloc(length); /* of just that size, for the sanitizers */
        memcpy(part, bytes.data, length);
        assert_int_equal(kn_request_read(&r, part, length), KN_ERR_FORMAT);
        assert_null(r.args);
        assert_message("not a request");
        kn_free(part);
    }
    for (size_t i = 0; i < bytes.length; i++) { /* refused, or at least within the bytes */
        const char before = bytes.data[i];
        bytes.data[i] = (char)0xff;
        if (kn_request_read(&r, bytes.data, bytes.length) == KN_OK)
            kn_free(r.args);
        kn_error_clear();
        bytes.data[i] = before;
    }
    kn_text_append_bytes(&bytes, "", 1);
    assert_int_equal(kn_request_read(&r, bytes.data, bytes.length), KN_ERR_FORMAT);
    kn_error_clear();
    kn_text_free(&bytes);
}

static void keys_tell_kernels_apart(void **state)
{
    (void)state;
    kn_device *device = test_device();
    const kn_launch_params params = {.source = "a.cl", .options = "-DT=float", .kernel = "k", .dims = 1};
    kn_launch_params other = params;
    const uint64_t key = kn_request_key(device, &params, global, local);
    assert_true(key == kn_request_key(device, &other, global, local));
    other.options = "-DT=double";
    assert_true(key != kn_request_key(device, &other, global, local));
    other = params;
    other.source = "b.cl";
    assert_true(key != kn_request_key(device, &other, global, local));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_what_was_written), cmocka_unit_test(buffers_keep_what_precedes_the_offset),
        cmocka_unit_test(written_sources_come_along),       cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(keys_tell_kernels_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
