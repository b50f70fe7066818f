/* KOINE_GUARD=1: a write outside a buffer is detected. */
#include "rt/rt_test.h"

#include "rt/memory/pool.h"
#include "tensor/tensor.h"

static uint64_t violations(void) { return kn_pool_read_figures(test_device()).guard_violations; }

static void clean_work_leaves_guards_alone(void **state)
{
    (void)state;
    uint64_t before = violations();
    {
        KN_SCOPE;
        kn_tensor *x = kn_rand(KN_SHAPE(37, 11));
        assert_non_null(kn_sum(kn_relu(x)));
    }
    assert_int_equal(violations(), before);
}

static void write_past(int64_t byte_offset)
{
    kn_stream *stream = kn_stream_default(test_device());
    kn_buffer *buffer;
    float value = 1;
    assert_ok(kn_buffer_alloc(&buffer, stream, 100));
    assert_ok(kn_buffer_write(stream, buffer, (size_t)byte_offset, &value, sizeof value));
    kn_buffer_free(buffer);
}

static void writes_outside_are_noticed(void **state)
{
    (void)state;
    uint64_t before = violations();
    write_past(96); /* the last element: inside */
    assert_int_equal(violations(), before);
    write_past(100);
    assert_int_equal(violations(), before + 1);
    write_past(-4);
    assert_int_equal(violations(), before + 2);
}

/* A launch after which nothing waits: what guards then do is enqueued behind it. */
static void keep_busy(void) { assert_non_null(kn_relu(kn_rand(KN_SHAPE(37, 11)))); }

static void writes_outside_are_noticed_on_busy_streams(void **state)
{
    (void)state;
    KN_SCOPE;
    uint64_t before = violations();
    keep_busy();
    write_past(96);
    assert_int_equal(violations(), before);
    keep_busy();
    write_past(100);
    assert_int_equal(violations(), before + 1);
}

static void assert_nan(kn_tensor *x)
{
    double value;
    assert_ok(kn_item(x, &value));
    assert_true(value != value);
}

static void new_memory_is_not_a_number(void **state)
{
    (void)state;
    KN_SCOPE;
    assert_ok(kn_synchronize(test_device()));
    assert_nan(kn_empty(KN_SHAPE(1)));
    keep_busy();
    assert_nan(kn_empty(KN_SHAPE(1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_work_leaves_guards_alone),
        cmocka_unit_test(writes_outside_are_noticed),
        cmocka_unit_test(writes_outside_are_noticed_on_busy_streams),
        cmocka_unit_test(new_memory_is_not_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
