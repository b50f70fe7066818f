/* test_collate - the collate function: its inputs, results and errors; late copies; epochs abandoned and loaders freed
 * with copies in flight. */
#include <koine/koine.h>

#include "data/counted.h"
#include "io/check.h"
#include "support/busy.h"

#define SIZE 4

typedef struct helper {
    int calls;
    int64_t bad; /* this call, from 0, fails; -1: none */
    bool silent; /* without a message */
    bool forget; /* sets the target NULL instead */
    bool busy;   /* gives the stream work before the copy */
    bool pinned; /* what is expected */
    int wrong;
} helper;

static kn_status help(const kn_batch *batch, void *user)
{
    helper *h = user;
    h->wrong += kn_device_of(batch->input) != kn_device_host() || kn_is_pinned(batch->input) != h->pinned ||
                kn_is_pinned(batch->target) != h->pinned || kn_size(batch->input, 1) != WIDTH;
    if (h->calls++ == h->bad) {
        if (!h->forget)
            return h->silent ? KN_ERR_FORMAT : kn_error_set(KN_ERR_FORMAT, "the batch is odd");
        batch->fields[1] = NULL;
        return KN_OK;
    }
    if (h->busy)
        keep_busy(kn_device_current());
    return kn_collate_to_device(batch, NULL);
}

static void need_device(void)
{
    if (num_devices < 2)
        skip();
}

static void test_gets_pinned_batches(void **state)
{
    (void)state;
    need_device();
    for (int workers = 0; workers <= 2; workers++) {
        counted data;
        helper h = {.bad = -1, .pinned = true};
        kn_dataset *dataset = counted_dataset(&data, 103);
        kn_loader_params params = {.batch_size = 10,
                                   .shuffle = true,
                                   .num_workers = workers,
                                   .prefetch_factor = 2,
                                   .device = devices[1],
                                   .collate = help,
                                   .collate_user = &h};
        kn_loader *loader = kn_loader_new_with(dataset, &params);
        assert_new(loader);
        for (int epoch = 0; epoch < 3; epoch++)
            assert_epoch(loader, &params, 103, epoch);
        assert_int_equal(h.wrong, 0);
        assert_int_equal(h.calls, 3 * 11);
        kn_loader_free(loader);
        kn_dataset_free(dataset);
    }
}

/* Not only copies: targets get another dtype and shape, inputs are scaled on the device. */
static kn_status scale(const kn_batch *batch, void *user)
{
    (void)user;
    kn_device *device = kn_device_current();
    batch->fields[0] = kn_mul_scalar(kn_to_device(batch->input, device, .non_blocking = true), 2);
    batch->fields[1] = kn_reshape(kn_to_device(batch->target, device, .dtype = KN_F32, .non_blocking = true), 2,
                                  (const int64_t[]){-1, 1});
    return KN_OK;
}

static void test_returns_what_it_likes(void **state)
{
    (void)state;
    need_device();
    counted data;
    kn_dataset *dataset = counted_dataset(&data, 40);
    kn_loader *loader =
        kn_loader_new(dataset, .batch_size = SIZE, .num_workers = 2, .device = devices[1], .collate = scale);
    assert_new(loader);
    assert_ok(kn_loader_start(loader, 0));
    for (int b = 0; b < 10; b++) {
        KN_SCOPE;
        kn_tensor *input = NULL, *target = NULL;
        float values[SIZE * WIDTH], labels[SIZE];
        assert_ok(next_pair(loader, &input, &target));
        assert_int_equal(kn_ndim(target), 2);
        assert_ok(kn_read(input, values, sizeof values));
        assert_ok(kn_read(target, labels, sizeof labels));
        for (int i = 0; i < SIZE; i++) {
            assert_true(labels[i] == (float)-(b * SIZE + i));
            assert_true(values[i * WIDTH + 5] == 2 * (float)(b * SIZE + i + 5));
        }
    }
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

static kn_status leave_alone(const kn_batch *batch, void *user)
{
    (void)batch;
    ++*(int *)user;
    return KN_OK;
}

/* Host tensors that are passed through and kept: the loader does not reuse them. */
static void test_host_batches_are_the_callers(void **state)
{
    (void)state;
    for (int pin = 0; pin < num_devices; pin++)
        for (int workers = 0; workers <= 2; workers += 2) {
            counted data;
            kn_dataset *dataset = counted_dataset(&data, 25 * SIZE);
            kn_loader *loader = NULL;
            kn_tensor *inputs[25], *targets[25];
            int calls = 0;
            assert_new(loader = kn_loader_new(dataset, .batch_size = SIZE, .num_workers = workers, .device = devices[0],
                                              .pin_memory = pin, .collate = leave_alone, .collate_user = &calls));
            assert_ok(kn_loader_start(loader, 0));
            for (int i = 0; i < 25; i++) {
                assert_ok(next_pair(loader, &inputs[i], &targets[i]));
                assert_int_equal(kn_is_pinned(inputs[i]), pin);
            }
            kn_loader_free(loader);
            kn_dataset_free(dataset);
            assert_int_equal(calls, 25);
            for (int i = 0; i < 25; i++) {
                assert_batch(inputs[i], targets[i],
                             (const int64_t[]){i * SIZE, i * SIZE + 1, i * SIZE + 2, i * SIZE + 3}, SIZE);
                kn_release(inputs[i]);
                kn_release(targets[i]);
            }
        }
}

/* --- errors ----------------------------------------------------------------------------------- */

static void assert_one_spoiled(helper h, int workers, const char *message, kn_status expected)
{
    counted data;
    kn_dataset *dataset = counted_dataset(&data, 10 * SIZE);
    kn_loader *loader = kn_loader_new(dataset, .batch_size = SIZE, .num_workers = workers, .device = devices[1],
                                      .collate = help, .collate_user = &h);
    assert_new(loader);
    assert_ok(kn_loader_start(loader, 0));
    int failed = 0;
    for (int64_t b = 0; b < 10; b++) {
        kn_tensor *input = NULL, *target = NULL;
        kn_status status = next_pair(loader, &input, &target);
        if (status != KN_OK) {
            assert_int_equal(b, 3);
            assert_fails(status, expected, message);
            assert_null(input);
            failed++;
            continue;
        }
        assert_batch(input, target, (const int64_t[]){SIZE * b, SIZE * b + 1, SIZE * b + 2, SIZE * b + 3}, SIZE);
        kn_release(input);
        kn_release(target);
    }
    /* A failed prefetch is retried on request, and succeeds. */
    assert_true(failed == 1 || (workers > 0 && failed == 0));
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

static void test_errors_name_the_batch(void **state)
{
    (void)state;
    need_device();
    for (int workers = 0; workers <= 2; workers += 2) {
        assert_one_spoiled((helper){.bad = 3, .pinned = true}, workers,
                           "loader: collate of batch 3 of 10: the batch is odd", KN_ERR_FORMAT);
        assert_one_spoiled((helper){.bad = 3, .silent = true, .pinned = true}, workers,
                           "loader: collate of batch 3 of 10: it returned KN_ERR_FORMAT", KN_ERR_FORMAT);
        assert_one_spoiled((helper){.bad = 3, .forget = true, .pinned = true}, workers,
                           "loader: collate of batch 3 of 10: it left the batch's field \"target\" NULL", KN_ERR_STATE);
    }
    assert_int_equal(kn_collate_to_device(NULL, NULL), KN_ERR_ARGUMENT);
    kn_error_clear();
}

/* The caller's device and stream are restored after an error too. */
static void test_the_callers_stream_stays(void **state)
{
    (void)state;
    need_device();
    counted data;
    helper h = {.bad = 0, .pinned = true};
    kn_dataset *dataset = counted_dataset(&data, 8);
    kn_loader *loader = NULL;
    kn_tensor *input, *target;
    kn_stream *stream = kn_stream_current(devices[1]);
    assert_new(
        loader = kn_loader_new(dataset, .batch_size = SIZE, .device = devices[1], .collate = help, .collate_user = &h));
    assert_ok(kn_loader_start(loader, 0));
    assert_fails(next_pair(loader, &input, &target), KN_ERR_FORMAT, "batch 0 of 2");
    assert_ptr_equal(kn_stream_current(devices[1]), stream);
    assert_ok(next_pair(loader, &input, &target));
    assert_ptr_equal(kn_stream_current(devices[1]), stream);
    kn_release(input);
    kn_release(target);
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

/* --- copies that are late --------------------------------------------------------------------- */

/* The copies of several batches wait behind other work while later batches need their memory. */
static void test_late_copies(void **state)
{
    (void)state;
    need_device();
    for (int workers = 0; workers <= 2; workers += 2) {
        counted data;
        helper h = {.bad = -1, .busy = true, .pinned = true};
        kn_dataset *dataset = counted_dataset(&data, 20 * SIZE);
        kn_loader *loader = NULL;
        kn_tensor *inputs[20], *targets[20];
        assert_new(loader = kn_loader_new(dataset, .batch_size = SIZE, .num_workers = workers, .device = devices[1],
                                          .collate = help, .collate_user = &h));
        for (int epoch = 0; epoch < 2; epoch++) { /* the first is abandoned */
            assert_ok(kn_loader_start(loader, epoch));
            for (int i = 0; i < (epoch ? 20 : 7); i++)
                assert_ok(next_pair(loader, &inputs[i], &targets[i]));
            if (epoch == 0)
                for (int i = 0; i < 7; i++) {
                    kn_release(inputs[i]);
                    kn_release(targets[i]);
                }
        }
        kn_loader_free(loader);
        kn_dataset_free(dataset);
        for (int i = 0; i < 20; i++) {
            assert_batch(inputs[i], targets[i], (const int64_t[]){i * SIZE, i * SIZE + 1, i * SIZE + 2, i * SIZE + 3},
                         SIZE);
            kn_release(inputs[i]);
            kn_release(targets[i]);
        }
        assert_int_equal(h.wrong, 0);
    }
}

/* Freed with unread copies in flight; later allocations get no memory that is still being written. */
static void test_freed_with_copies_under_way(void **state)
{
    (void)state;
    need_device();
    for (int round = 0; round < 6; round++) {
        counted data;
        helper h = {.bad = -1, .busy = true, .pinned = true};
        kn_dataset *dataset = counted_dataset(&data, 40);
        kn_loader *loader = kn_loader_new(dataset, .batch_size = SIZE, .num_workers = round % 3, .device = devices[1],
                                          .collate = help, .collate_user = &h);
        assert_new(loader);
        assert_ok(kn_loader_start(loader, 0));
        for (int i = 0; i < round; i++) {
            KN_SCOPE;
            kn_tensor *input = NULL, *target = NULL;
            assert_ok(next_pair(loader, &input, &target));
        }
        kn_loader_free(loader);
        kn_dataset_free(dataset);
    }
    assert_ok(kn_synchronize(devices[1]));
}

/* Freeing does not count as an explicit wait: it is not rejected, and leaves no error. */
static void test_freed_where_waits_are_forbidden(void **state)
{
    (void)state;
    need_device();
    for (int workers = 0; workers <= 2; workers += 2) {
        counted data;
        helper h = {.bad = -1, .busy = true, .pinned = true};
        kn_dataset *dataset = counted_dataset(&data, 40);
        kn_loader *loader = kn_loader_new(dataset, .batch_size = SIZE, .num_workers = workers, .device = devices[1],
                                          .collate = help, .collate_user = &h);
        assert_new(loader);
        assert_ok(kn_loader_start(loader, 0));
        kn_tensor *input = NULL, *target = NULL;
        assert_ok(next_pair(loader, &input, &target));
        kn_set_sync_debug_mode(KN_SYNC_DEBUG_ERROR);
        kn_loader_free(loader);
        kn_set_sync_debug_mode(KN_SYNC_DEBUG_OFF);
        assert_int_equal(kn_error_status(), KN_OK);
        assert_batch(input, target, (const int64_t[]){0, 1, 2, 3}, SIZE); /* the batch outlives its loader */
        kn_release(input);
        kn_release(target);
        kn_dataset_free(dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gets_pinned_batches),          cmocka_unit_test(test_returns_what_it_likes),
        cmocka_unit_test(test_host_batches_are_the_callers), cmocka_unit_test(test_errors_name_the_batch),
        cmocka_unit_test(test_the_callers_stream_stays),     cmocka_unit_test(test_late_copies),
        cmocka_unit_test(test_freed_with_copies_under_way),  cmocka_unit_test(test_freed_where_waits_are_forbidden),
    };
    return cmocka_run_group_tests(tests, find_devices, NULL);
}
