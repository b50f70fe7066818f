/* test_fields - samples of one or more fields: names and indices, batches from worker threads, on devices and through
 * collate functions; all ways to leave the loop over batches. */
#include "support/check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define LENGTH 50
#define BATCH 8

/* --- a dataset of four fields ----------------------------------------------------------------------------------- */

/* Sample i: tokens i, i + 1, i + 2 (int32), a mask of i % 3 + 1 ones (bool, as long), their number (uint8), i / 2 as
 * the target (float64). */
typedef struct sentences {
    atomic_llong bad; /* this one fails; -1: none. Workers read it while a test sets it */
} sentences;

static int64_t sentences_length(void *self)
{
    (void)self;
    return LENGTH;
}

static kn_status sentences_get(void *self, int64_t index, void *const *fields)
{
    sentences *data = self;
    if (index == data->bad)
        return kn_error_set(KN_ERR_IO, "sentence %d is gone", (int)index);
    for (int i = 0; i < 3; i++) {
        ((int32_t *)fields[0])[i] = (int32_t)index + i;
        ((bool *)fields[1])[i] = i <= index % 3;
    }
    *(uint8_t *)fields[2] = (uint8_t)(index % 3 + 1);
    *(double *)fields[3] = (double)index / 2;
    return KN_OK;
}

static kn_dataset *sentences_dataset(sentences *data)
{
    static const kn_dataset_functions functions = {.length = sentences_length, .get = sentences_get};
    data->bad = -1;
    return kn_dataset_new(&functions, data,
                          KN_FIELDS({.name = "tokens", .dtype = KN_I32, .ndim = 1, .shape = {3}},
                                    {.name = "mask", .dtype = KN_BOOL, .ndim = 1, .shape = {3}},
                                    {.name = "length", .dtype = KN_U8}, {.name = "target", .dtype = KN_F64}));
}

/* Checks an unshuffled batch that begins with sample `first`. */
static void check_batch(const kn_batch *batch, int64_t first, const kn_device *device)
{
    int32_t tokens[BATCH][3];
    bool mask[BATCH][3];
    uint8_t length[BATCH];
    double target[BATCH];
    const int64_t size = LENGTH - first < BATCH ? LENGTH - first : BATCH;
    assert_int_equal(batch->num_fields, 4);
    assert_int_equal(batch->size, size);
    assert_null(batch->input);
    assert_ptr_equal(batch->target, batch->fields[3]);
    assert_ptr_equal(kn_batch_field(batch, "mask"), batch->fields[1]);
    assert_string_equal(batch->names[2], "length");
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(kn_device_of(batch->fields[i]), device);
    CHECK_OK(kn_read(batch->fields[0], tokens, (size_t)size * sizeof tokens[0]));
    CHECK_OK(kn_read(batch->fields[1], mask, (size_t)size * sizeof mask[0]));
    CHECK_OK(kn_read(batch->fields[2], length, (size_t)size));
    CHECK_OK(kn_read(batch->fields[3], target, (size_t)size * sizeof target[0]));
    for (int64_t i = 0; i < size; i++) {
        for (int t = 0; t < 3; t++) {
            assert_int_equal(tokens[i][t], first + i + t);
            assert_int_equal(mask[i][t], t <= (first + i) % 3);
        }
        assert_int_equal(length[i], (first + i) % 3 + 1);
        assert_true(target[i] == (double)(first + i) / 2);
    }
}

TENSOR_TEST_F64(every_field_keeps_its_dtype_and_shape)
{
    kn_device *const devices[] = {kn_device_host(), kn_device_current()};
    for (int d = 0; d < 2; d++)
        for (int workers = 0; workers <= 3; workers += 3) {
            sentences data;
            kn_dataset *dataset = sentences_dataset(&data);
            kn_loader *loader =
                kn_loader_new(dataset, .batch_size = BATCH, .num_workers = workers, .device = devices[d]);
            CHECK_NEW(loader);
            for (int epoch = 0; epoch < 3; epoch++) {
                int64_t first = 0;
                KN_FOR_BATCHES (batch, loader, epoch) {
                    check_batch(batch, first, devices[d]);
                    first += batch->size;
                }
                CHECK_OK(kn_loader_status(loader));
                assert_int_equal(first, LENGTH);
            }
            kn_loader_free(loader);
            kn_dataset_free(dataset);
        }
}

TENSOR_TEST(fields_by_number_and_name)
{
    sentences data;
    kn_dataset *dataset = sentences_dataset(&data);
    assert_int_equal(kn_dataset_field_count(dataset), 4);
    assert_int_equal(kn_dataset_find_field(dataset, "length"), 2);
    assert_int_equal(kn_dataset_find_field(dataset, "input"), -1);
    assert_string_equal(kn_dataset_field(dataset, 3)->name, "target");
    assert_int_equal(kn_dataset_field(dataset, 0)->shape[0], 3);
    assert_null(kn_dataset_field(dataset, 4));
    assert_null(kn_dataset_field(dataset, -1));
    assert_int_equal(kn_dataset_field_count(NULL), 0);
    assert_int_equal(kn_dataset_find_field(NULL, "length"), -1);
    kn_dataset_free(dataset);
}

TENSOR_TEST(fields_without_a_name_have_one)
{
    static const kn_dataset_functions functions = {.length = sentences_length, .get = sentences_get};
    kn_dataset *dataset =
        kn_dataset_new(&functions, NULL, KN_FIELDS({.dtype = KN_F32}, {.dtype = KN_F32}, {.dtype = KN_F32}));
    CHECK_TENSOR((void *)dataset);
    assert_string_equal(kn_dataset_field(dataset, 0)->name, "input");
    assert_string_equal(kn_dataset_field(dataset, 1)->name, "target");
    assert_string_equal(kn_dataset_field(dataset, 2)->name, "2");
    kn_dataset_free(dataset);
}

TENSOR_TEST(fields_that_make_no_dataset)
{
    static const kn_dataset_functions functions = {.length = sentences_length, .get = sentences_get};
    assert_null(kn_dataset_new(
        &functions, NULL,
        KN_FIELDS({.name = "a", .dtype = KN_F32}, {.name = "b", .dtype = KN_F32}, {.name = "a", .dtype = KN_F32})));
    CHECK_ERROR(KN_ERR_ARGUMENT, "fields 0 and 2 are both called \"a\"");
    assert_null(kn_dataset_new(&functions, NULL, KN_FIELDS({.dtype = KN_F32}, {.name = "input", .dtype = KN_F32})));
    CHECK_ERROR(KN_ERR_ARGUMENT, "fields 0 and 1 are both called \"input\"");
    assert_null(kn_dataset_new(&functions, NULL, KN_FIELDS({.name = "", .dtype = KN_F32})));
    CHECK_ERROR(KN_ERR_ARGUMENT, "the name of field 0 is empty");
    assert_null(kn_dataset_new(&functions, NULL, NULL, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "at least one field");
}

TENSOR_TEST_F64(a_field_that_is_not_there)
{
    sentences data;
    kn_dataset *dataset = sentences_dataset(&data);
    kn_loader *loader = kn_loader_new(dataset, .batch_size = BATCH);
    CHECK_NEW(loader);
    KN_FOR_BATCHES (batch, loader, 0) {
        assert_null(kn_batch_field(batch, "label"));
        CHECK_ERROR(KN_ERR_ARGUMENT, "no field \"label\"", "it has \"tokens\", \"mask\", \"length\", \"target\"");
        assert_null(kn_forward(NULL, kn_batch_field(batch, "Target"))); /* the first error of a chain is reported */
        CHECK_ERROR(KN_ERR_ARGUMENT, "no field \"Target\"");
        break;
    }
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

/* --- tensors as fields ------------------------------------------------------------------------------------------ */

static kn_tensor *on_host(int64_t length, kn_dtype dtype)
{
    return kn_zeros(KN_SHAPE(length, 2), .dtype = dtype, .device = kn_device_host());
}

TENSOR_TEST(tensors_as_fields)
{
    kn_dataset *one = NULL, *three = NULL;
    CHECK_NEW(one = kn_tensor_dataset(on_host(4, KN_F32)));
    assert_int_equal(kn_dataset_field_count(one), 1);
    CHECK_NEW(three = kn_tensor_dataset_of(KN_TENSORS(on_host(4, KN_F32), on_host(4, KN_U8), on_host(4, KN_I64)),
                                           KN_NAMES("input", "mask", "target")));
    assert_int_equal(kn_dataset_find_field(three, "target"), 2);
    assert_int_equal(kn_dataset_field(three, 1)->dtype, KN_U8);
    kn_loader *loader = kn_loader_new(one, .batch_size = 3);
    CHECK_NEW(loader);
    int64_t samples = 0;
    KN_FOR_BATCHES (batch, loader, 0) {
        assert_null(batch->target);
        CHECK_SHAPE(batch->input, batch->size, 2);
        samples += batch->size;
    }
    assert_int_equal(samples, 4);
    kn_loader_free(loader);
    kn_dataset_free(one);
    kn_dataset_free(three);
}

TENSOR_TEST(tensors_that_do_not_fit_together)
{
    kn_dataset *dataset = NULL;
    kn_tensor *four = on_host(4, KN_F32), *five = on_host(5, KN_F32);
    assert_int_equal(kn_status_of(dataset = kn_tensor_dataset(four, four, five)), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "tensors 0 (float32 [4, 2]", "and 2 (float32 [5, 2]", "same size in dimension 0");
    assert_int_equal(kn_status_of(dataset = kn_tensor_dataset_of(KN_TENSORS(four, four), KN_NAMES("input"))),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "fewer names than the 2 tensors");
    assert_int_equal(kn_status_of(dataset = kn_tensor_dataset_of(KN_TENSORS(four), KN_NAMES("input", "mask"))),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "more names than the 1 tensors");
    assert_int_equal(kn_status_of(dataset = kn_tensor_dataset_of(KN_TENSORS(four, four), KN_NAMES("a", "a"))),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "both called \"a\"");
    assert_int_equal(kn_status_of(dataset = kn_tensor_dataset_of(NULL, 0, NULL)), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "tensors");
    assert_int_equal(kn_status_of(dataset = kn_tensor_dataset_of(KN_TENSORS(four), NULL)) || dataset == NULL, 0);
    kn_dataset_free(dataset);
}

/* --- transforms and collate ------------------------------------------------------------------------------------- */

static kn_status double_it(void *value, const kn_field *field, uint64_t random, void *user)
{
    (void)random, (void)user;
    if (strcmp(field->name, "target") != 0 || field->dtype != KN_F64)
        return kn_error_set(KN_ERR_DTYPE, "this is the field \"%s\"", field->name);
    *(double *)value *= 2;
    return KN_OK;
}

TENSOR_TEST(a_transform_of_one_field)
{
    sentences data;
    kn_dataset *dataset = kn_transform_dataset(sentences_dataset(&data), double_it, NULL, .fields = KN_NAMES("target"));
    CHECK_NEW(dataset);
    int32_t tokens[3];
    bool mask[3];
    uint8_t length;
    double target;
    CHECK_OK(kn_dataset_get(dataset, 7, (void *[]){tokens, mask, &length, &target}));
    assert_true(target == 7 && tokens[1] == 8);
    assert_string_equal(kn_dataset_field(dataset, 1)->name, "mask");
    kn_dataset_free(dataset);
    CHECK_NEW(dataset = kn_transform_dataset(sentences_dataset(&data), double_it, NULL)); /* the first field */
    assert_int_equal(kn_dataset_get(dataset, 7, (void *[]){tokens, mask, &length, &target}), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "the field \"tokens\"");
    assert_int_equal(kn_dataset_get(dataset, 7, (void *[]){tokens, NULL, &length, &target}), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "mask");
    kn_dataset_free(dataset);
    assert_int_equal(kn_status_of(dataset = kn_transform_dataset(sentences_dataset(&data), double_it, NULL,
                                                                 .fields = KN_NAMES("mask", "label"))),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "no field \"label\"", "\"length\"");
}

static kn_status note_random(void *value, const kn_field *field, uint64_t random, void *user)
{
    (void)value;
    uint64_t *seen = user;
    seen[strcmp(field->name, "mask") == 0] = random;
    return KN_OK;
}

TENSOR_TEST(fields_that_are_transformed_together)
{
    sentences data;
    kn_dataset *dataset = NULL;
    uint64_t seen[2] = {0};
    CHECK_NEW(dataset = kn_transform_dataset(sentences_dataset(&data), note_random, seen,
                                             .fields = KN_NAMES("mask", "tokens")));
    int32_t tokens[3];
    bool mask[3];
    uint8_t length;
    double target;
    CHECK_OK(kn_dataset_get(dataset, 7, (void *[]){tokens, mask, &length, &target}));
    assert_true(seen[0] != 0 && seen[0] == seen[1]);
    kn_dataset_free(dataset);
}

/* Replaces the tokens by masked ones; keeps the rest. */
static kn_status mask_tokens(const kn_batch *batch, void *user)
{
    kn_status status = kn_collate_to_device(batch, user);
    if (status == KN_OK)
        batch->fields[0] =
            kn_mul(kn_to_dtype(batch->fields[0], KN_F32), kn_to_dtype(kn_batch_field(batch, "mask"), KN_F32));
    return status;
}

TENSOR_TEST_F64(a_collate_function_gets_all_fields)
{
    sentences data;
    kn_dataset *dataset = sentences_dataset(&data);
    kn_loader *loader = kn_loader_new(dataset, .batch_size = BATCH, .num_workers = 2, .collate = mask_tokens);
    CHECK_NEW(loader);
    KN_FOR_BATCHES (batch, loader, 0) {
        CHECK_DTYPE(batch->fields[0], KN_F32);
        CHECK_DTYPE(batch->fields[2], KN_U8);
        CHECK_VALUES(kn_select(batch->fields[0], 0, 1), 1, 2, 0); /* sample 1 has two tokens */
        break;
    }
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

/* --- the loop ---------------------------------------------------------------------------------------------------- */

typedef struct loop {
    sentences data;
    kn_dataset *dataset;
    kn_loader *loader;
} loop;

static void loop_make(loop *l, int workers)
{
    l->dataset = sentences_dataset(&l->data);
    CHECK_NEW(l->loader = kn_loader_new(l->dataset, .batch_size = BATCH, .num_workers = workers));
}

static void loop_free(loop *l)
{
    kn_loader_free(l->loader);
    kn_dataset_free(l->dataset);
}

static kn_tensor *return_from(kn_loader *loader, int round)
{
    KN_FOR_BATCHES (batch, loader, 0) {
        if (round-- == 0)
            return kn_retain(kn_add_scalar(batch->target, 1));
        kn_add_scalar(batch->target, 2); /* released with the iteration */
    }
    return NULL;
}

/* No enclosing scope: tensors not released by an iteration would be detected at the end of the test. */
static void left_by_break_continue_return_and_goto(void **state)
{
    (void)state;
    check_needs_f64();
    for (int workers = 0; workers <= 2; workers += 2) {
        loop l;
        loop_make(&l, workers);
        int rounds = 0, whole = 0;
        KN_FOR_BATCHES (batch, l.loader, 0) {
            kn_add_scalar(batch->target, 1);
            if (rounds++ % 2 == 0)
                continue;
            if (rounds > 3)
                break;
            whole++;
        }
        assert_int_equal(rounds, 4);
        assert_int_equal(whole, 1);
        for (int round = 0; round < 8; round += 7) {
            kn_tensor *made = return_from(l.loader, round);
            if (round == 0)
                CHECK_VALUES(made, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5);
            else
                assert_null(made); /* there are seven */
            kn_release(made);
        }
        KN_FOR_BATCHES (batch, l.loader, 1)
            if (batch->size == BATCH)
                goto out;
        fail();
    out:
        CHECK_OK(kn_loader_status(l.loader));
        loop_free(&l);
    }
}

static bool was_scope_left(int depth)
{
    int now = kn_scope_begin();
    kn_scope_end(now);
    return now == depth + 1;
}

TENSOR_TEST_F64(each_round_is_a_scope)
{
    loop l;
    loop_make(&l, 0);
    int depth = kn_scope_begin();
    KN_FOR_BATCHES (batch, l.loader, 0)
        assert_true(was_scope_left(depth + 1));
    assert_true(was_scope_left(depth));
    KN_FOR_BATCHES (batch, l.loader, 0) {
        kn_scope_begin(); /* a scope left open is closed too */
        if (batch->size > 0)
            break;
    }
    assert_true(was_scope_left(depth));
    kn_scope_end(depth);
    loop_free(&l);
}

TENSOR_TEST_F64(an_error_ends_the_loop_and_comes_out)
{
    for (int workers = 0; workers <= 2; workers += 2) {
        loop l;
        loop_make(&l, workers);
        l.data.bad = 20;
        int rounds = 0;
        KN_FOR_BATCHES (batch, l.loader, 0)
            rounds++;
        assert_int_equal(rounds, 2);
        assert_int_equal(kn_loader_status(l.loader), KN_ERR_IO);
        assert_null(kn_reshape(kn_ones(KN_SHAPE(1)), KN_SHAPE(2))); /* a sticky error */
        CHECK_ERROR(KN_ERR_IO, "sample 20: sentence 20 is gone");
        l.data.bad = -1;
        KN_FOR_BATCHES (batch, l.loader, 0)
            rounds++;
        assert_int_equal(rounds, 2 + 7);
        CHECK_OK(kn_loader_status(l.loader));
        KN_FOR_BATCHES (batch, l.loader, -1)
            rounds++;
        assert_int_equal(kn_loader_status(l.loader), KN_ERR_ARGUMENT);
        CHECK_ERROR(KN_ERR_ARGUMENT, "the epoch is -1");
        loop_free(&l);
    }
    KN_FOR_BATCHES (batch, NULL, 0)
        fail();
    CHECK_ERROR(KN_ERR_ARGUMENT, "loader");
    assert_int_equal(kn_loader_status(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_loader_status");
}

TENSOR_TEST_F64(loops_inside_loops)
{
    loop a, b;
    loop_make(&a, 2);
    loop_make(&b, 0);
    int rounds = 0;
    KN_FOR_BATCHES (outer, a.loader, 0) {
        KN_FOR_BATCHES (inner, b.loader, 0)
            rounds++;
        check_batch(outer, rounds / 7 * BATCH - BATCH, kn_device_current());
    }
    assert_int_equal(rounds, 49);
    CHECK_OK(kn_loader_status(a.loader));
    /* A loader runs one epoch at a time. */
    rounds = 0;
    KN_FOR_BATCHES (outer, a.loader, 0)
        KN_FOR_BATCHES (inner, a.loader, 5)
            rounds += inner->size > 0;
    assert_int_equal(rounds, 7);
    assert_int_equal(kn_loader_status(a.loader), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "epoch 5 was started inside a loop over the same loader's batches");
    loop_free(&a);
    loop_free(&b);
}

/* Each allocation of a loop fails in turn: an error is reported, and nothing leaks. */
static void memory_that_runs_out(void **state)
{
    (void)state;
    check_needs_f64();
    loop l;
    loop_make(&l, 0);
    KN_FOR_BATCHES (batch, l.loader, 0) /* kernels, pools, scopes */
        continue;
    int failures = 0;
    for (long n = 1; n < 400; n++) {
        int rounds = 0;
        kn_fail_alloc_after(n, 0);
        KN_FOR_BATCHES (batch, l.loader, n)
            rounds++;
        kn_fail_alloc_after(0, 0);
        kn_status status = kn_loader_status(l.loader);
        if (status == KN_OK) {
            assert_int_equal(rounds, 7);
            break;
        }
        assert_int_equal(status, KN_ERR_MEMORY);
        CHECK_ERROR(KN_ERR_MEMORY, "");
        failures++;
    }
    assert_in_range(failures, 2, 300);
    loop_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_field_keeps_its_dtype_and_shape),
        TEST(fields_by_number_and_name),
        TEST(fields_without_a_name_have_one),
        TEST(fields_that_make_no_dataset),
        TEST(a_field_that_is_not_there),
        TEST(tensors_as_fields),
        TEST(tensors_that_do_not_fit_together),
        TEST(a_transform_of_one_field),
        TEST(fields_that_are_transformed_together),
        TEST(a_collate_function_gets_all_fields),
        TEST(left_by_break_continue_return_and_goto),
        TEST(each_round_is_a_scope),
        TEST(an_error_ends_the_loop_and_comes_out),
        TEST(loops_inside_loops),
        TEST(memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
