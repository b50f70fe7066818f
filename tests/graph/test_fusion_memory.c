/* test_fusion_memory.c - fused operations whose memory is overwritten, shared, freed or refused. */
#include "fusion_case.h"

#include <string.h>

#include "base/memory.h"
#include "rt/device/inject.h"

static void inputs_of_two(kn_tensor *inputs[4])
{
    inputs[0] = fusion_input("a", KN_SHAPE(6, 20), KN_F32);
    inputs[1] = fusion_input("b", KN_SHAPE(6, 20), KN_F32);
}

/* --- in place ----------------------------------------------------------------------------------------------------- */

static void in_place_program(fusion_run *run, kn_tensor *const *inputs)
{
    kn_tensor *a = inputs[0], *b = inputs[1], *early = kn_mul(a, b);
    CHECK_TENSOR(kn_mul_(a, b)); /* after it was read */
    kn_tensor *later = kn_add(a, early);
    CHECK_TENSOR(kn_add_scalar_(a, 2)); /* a value that is not written yet */
    CHECK_TENSOR(kn_relu_(a));
    CHECK_TENSOR(kn_sub_(early, a)); /* a result, and its reader is pending */
    fusion_result(run, kn_tanh(later));
    fusion_result(run, early);
    fusion_result(run, kn_sum(a));
    CHECK_TENSOR(kn_mul_(b, b)); /* its own operand */
}

static void changes_in_place(void **state)
{
    (void)state;
    fusion_compare(in_place_program, inputs_of_two, 0);
}

/* Parts of one tensor: apart, the same, and overlapping. */
static void parts_program(fusion_run *run, kn_tensor *const *inputs)
{
    kn_tensor *a = inputs[0], *left = kn_narrow(a, 1, 0, 10), *right = kn_narrow(a, 1, 10, 10),
              *middle = kn_narrow(a, 1, 5, 10), *again = kn_narrow(a, 1, 0, 10);
    kn_tensor *sum = kn_add(left, middle);
    CHECK_TENSOR(kn_mul_scalar_(left, 3));
    CHECK_TENSOR(kn_add_(right, kn_exp(again)));
    fusion_result(run, kn_mul(sum, middle));   /* reads parts of both */
    CHECK_TENSOR(kn_mul_scalar_(middle, 0.5)); /* writes parts of both */
    fusion_result(run, kn_sub(again, kn_narrow(inputs[1], 1, 0, 10)));
    CHECK_OK(kn_copy_(kn_narrow(a, 0, 1, 3), kn_narrow(a, 0, 0, 3))); /* overlapping rows */
    CHECK_TENSOR(kn_add_(a, kn_flip(a, (const int[]){1}, 1)));
    fusion_result(run, kn_mul(kn_t(a), kn_t(a)));
    fusion_result(run, kn_add(kn_reshape(kn_neg(a), KN_SHAPE(120)), kn_reshape(inputs[1], KN_SHAPE(120))));
}

static void parts_of_a_tensor(void **state)
{
    (void)state;
    fusion_compare(parts_program, inputs_of_two, 0);
}

/* The buffers of inputs and of values between are freed, and used again, while operations are pending. */
static void freed_program(fusion_run *run, kn_tensor *const *inputs)
{
    kn_tensor *kept = NULL;
    for (int i = 0; i < 6; i++) {
        KN_SCOPE;
        kn_tensor *x = kn_full(KN_SHAPE(6, 20), 0.25 * i), *y = kn_add(kn_mul(x, inputs[0]), inputs[1]);
        kn_tensor *next = kept ? kn_sub(kept, kn_tanh(y)) : kn_tanh(y);
        kn_release(kept);
        kept = kn_retain(next);
    }
    fusion_result(run, kept);
    kn_release(kept);
    {
        KN_SCOPE;
        kn_exp(inputs[0]); /* nobody's */
    }
    kn_tensor *filled = kn_full(KN_SHAPE(6, 20), 7);
    fusion_result(run, filled);
}

static void freed_while_pending(void **state)
{
    (void)state;
    fusion_compare(freed_program, inputs_of_two, 0);
}

/* A cell of a recurrent network: its state would be computed from the beginning at every step. */
static void recurrent_program(fusion_run *run, kn_tensor *const *inputs)
{
    kn_tensor *c = inputs[0], *h = inputs[1];
    for (int t = 0; t < 12; t++) {
        c = kn_add(kn_mul(kn_sigmoid(h), c), kn_mul(kn_tanh(h), kn_sigmoid(inputs[1])));
        h = kn_matmul(kn_mul(kn_sigmoid(h), kn_tanh(c)), kn_mul_scalar(kn_t(kn_narrow(inputs[0], 0, 0, 1)), 0.1));
        h = kn_add(inputs[1], h);
    }
    fusion_result(run, c);
    fusion_result(run, h);
}

static void values_used_by_many_kernels(void **state)
{
    (void)state;
    fusion_compare(recurrent_program, inputs_of_two, 0);
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

TENSOR_TEST(other_streams_see_what_events_order)
{
    kn_device *device = kn_device_current();
    kn_stream *side = kn_stream_new(device), *own = kn_stream_current(device);
    CHECK_NEW(side);
    KN_FUSE(true);
    kn_tensor *x = kn_full(KN_SHAPE(64), 3), *y = kn_add_scalar(kn_mul(x, x), 1), *z;
    kn_event *event = kn_event_new(device);
    CHECK_NEW(event);
    CHECK_OK(kn_event_record(event, own));
    CHECK_OK(kn_stream_wait_event(side, event));
    {
        KN_STREAM(side);
        z = kn_sub_scalar(kn_mul(y, y), 1); /* pending on `side`; what was pending on `own` is not any more */
        CHECK_OK(kn_record_stream(y, side));
    }
    CHECK_OK(kn_stream_wait_stream(own, side));
    double first;
    CHECK_OK(kn_item(kn_select(kn_mul_scalar(z, 2), 0, 5), &first));
    assert_true(first == 198);
    CHECK_OK(kn_stream_synchronize(side));
    kn_event_free(event);
    CHECK_OK(kn_synchronize(NULL));
    CHECK_OK(kn_stream_free(side));
}

/* A stream on which something is pending is not idle. */
TENSOR_TEST(pending_work_is_work)
{
    kn_stream *side = kn_stream_new(kn_device_current());
    bool done = true;
    kn_tensor *x = kn_full(KN_SHAPE(8), 2), *y;
    CHECK_OK(kn_synchronize(NULL));
    CHECK_NEW(side);
    {
        KN_STREAM(side);
        KN_FUSE(true);
        y = kn_exp2(kn_add(x, x));
        CHECK_OK(kn_stream_query(side, &done));
    }
    CHECK_OK(kn_stream_synchronize(side));
    CHECK_VALUES(y, 16, 16, 16, 16, 16, 16, 16, 16);
    CHECK_OK(kn_stream_free(side));
}

/* --- failures ----------------------------------------------------------------------------------------------------- */

TENSOR_TEST(launches_that_fail)
{
    kn_tensor *x = kn_full(KN_SHAPE(16), 2);
    double value;
    CHECK_OK(kn_synchronize(NULL));
    {
        KN_FUSE(true);
        kn_tensor *y = kn_tanh(kn_mul(x, x));
        CHECK_TENSOR(y); /* nothing ran yet */
        kn_inject(KN_CL_LAUNCH, 1, -54 /* CL_INVALID_WORK_GROUP_SIZE */, false);
        assert_int_not_equal(kn_item(kn_sum(y), &value), KN_OK);
        kn_inject_stop();
        kn_error_clear();
        CHECK_OK(kn_item(kn_sum(kn_add(x, x)), &value)); /* all is well again */
        assert_true(value == 64);
    }
    kn_error_clear();
}

/* The separate kernels take the place of one that does not build, and give the same bits. */
static void five_operations(fusion_run *run, kn_tensor *const *inputs)
{
    fusion_result(run, kn_tanh(kn_sub(kn_exp(kn_mul_scalar(inputs[0], 0.37)), kn_sqrt(inputs[0]))));
}

static void fail_to_build(void) { kn_inject(KN_CL_BUILD, 1, -11 /* CL_BUILD_PROGRAM_FAILURE */, false); }

TENSOR_TEST(a_kernel_that_does_not_build)
{
    kn_tensor *x = kn_rand(KN_SHAPE(7, 33));
    fusion_run run = {{NULL}, 0};
    fusion_run_eagerly(five_operations, &run, &x, false);
    CHECK_OK(kn_synchronize(NULL));
    fail_to_build();
    fusion_run_eagerly(five_operations, &run, &x, true);
    CHECK_OK(kn_synchronize(NULL));
    assert_true(kn_inject_calls_after() > 0); /* it did fail */
    fail_to_build();
    assert_int_equal(fusion_run_captured(five_operations, &run, &x), 5);
    kn_inject_stop();
    assert_int_equal(kn_error_status(), KN_OK);
    assert_int_equal(fusion_run_captured(five_operations, &run, &x), 1);
    for (int i = 1; i < run.count; i++)
        fusion_check_same(run.results[0], run.results[i]);
    fusion_release(&run);
}

/* A capture whose kernels cannot be recorded fails, and the next one does not. */
TENSOR_TEST(host_memory_runs_out)
{
    kn_tensor *x = kn_full(KN_SHAPE(16), 2);
    int failures = 0;
    for (int n = 1;; n++) {
        kn_graph *graph = kn_graph_new();
        kn_tensor *y = NULL;
        CHECK_NEW(graph);
        kn_fail_alloc_after(n, 1);
        kn_status status = kn_graph_capture_begin(graph, NULL);
        if (status == KN_OK) {
            {
                KN_SCOPE;
                y = kn_retain(kn_exp(kn_mul(x, kn_add(x, x))));
            }
            status = kn_graph_capture_end(graph);
        }
        kn_fail_alloc_after(0, 0);
        if (status == KN_OK && y) {
            CHECK_OK(kn_graph_replay(graph));
            CHECK_OK(kn_synchronize(NULL));
        }
        kn_error_clear();
        kn_graph_free(graph);
        kn_release(y);
        if (status == KN_OK)
            break;
        failures++;
    }
    assert_true(failures > 5);
    CHECK_OK(kn_synchronize(NULL));
}

/* Errors of arguments are found at the call. */
TENSOR_TEST(arguments_are_checked_at_once)
{
    KN_FUSE(true);
    kn_tensor *x = kn_mul(kn_full(KN_SHAPE(3), 2), kn_full(KN_SHAPE(3), 2));
    assert_null(kn_add(x, kn_zeros(KN_SHAPE(4))));
    CHECK_ERROR(KN_ERR_SHAPE, "add");
    CHECK_VALUES(x, 4, 4, 4);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(changes_in_place),
        TEST(parts_of_a_tensor),
        TEST(freed_while_pending),
        TEST(values_used_by_many_kernels),
        TEST(other_streams_see_what_events_order),
        TEST(pending_work_is_work),
        TEST(launches_that_fail),
        TEST(a_kernel_that_does_not_build),
        TEST(host_memory_runs_out),
        TEST(arguments_are_checked_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
