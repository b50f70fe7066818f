/* test_padding - fields whose first dimension differs from sample to sample: batches padded to the longest. */
#include <koine/koine.h>

#include "data/counted.h"
#include "io/check.h"

enum { SAMPLES = 41, LONGEST = 9, PAIR = 2 };

typedef struct texts {
    int64_t bad, bad_length; /* the sample whose length is wrong, and that length */
    bool fails;
} texts;

static int64_t length_of(int64_t index) { return index * 5 % (LONGEST + 1); } /* 0, 5, 0, ... 9 among them */

static int64_t texts_length(void *self)
{
    (void)self;
    return SAMPLES;
}

static kn_status texts_lengths(void *self, int64_t index, int64_t *lengths)
{
    const texts *t = self;
    if (t->fails && index == t->bad)
        return kn_error_set(KN_ERR_IO, "sample %d has no length", (int)index);
    lengths[1] = index == t->bad ? t->bad_length : length_of(index);
    lengths[3] = length_of(index + 1);
    return KN_OK;
}

/* Fields: class; tokens [n]; their number; places [m, 2] as float16. */
static kn_status texts_get(void *self, int64_t index, void *const *fields)
{
    (void)self;
    *(int32_t *)fields[0] = (int32_t)index;
    for (int64_t i = 0; i < length_of(index); i++)
        ((int64_t *)fields[1])[i] = 100 * index + i;
    for (int64_t i = 0; i < PAIR * length_of(index + 1); i++)
        ((uint16_t *)fields[3])[i] = 0x3c00; /* 1 */
    return KN_OK;
}

static kn_dataset *make_texts(texts *t)
{
    static const kn_dataset_functions functions = {.length = texts_length, .get = texts_get, .lengths = texts_lengths};
    *t = (texts){.bad = -1};
    return kn_dataset_new(
        &functions, t,
        KN_FIELDS(
            {.name = "class", .dtype = KN_I32},
            {.name = "tokens", .dtype = KN_I64, .ndim = 1, .shape = {LONGEST}, .varies = true, .padding_value = -7},
            {.name = "count", .dtype = KN_I64, .length_of = "tokens"},
            {.name = "places",
             .dtype = KN_F16,
             .ndim = 2,
             .shape = {LONGEST, PAIR},
             .varies = true,
             .padding_value = 0.5}));
}

/* The batch of the samples order[0], order[1], ... */
static void expect_batch(const kn_batch *batch, const int64_t *order)
{
    int64_t longest = 0, places = 0, tokens[SAMPLES * LONGEST], counts[SAMPLES];
    int32_t classes[SAMPLES];
    uint16_t halves[SAMPLES * LONGEST * PAIR];
    for (int64_t i = 0; i < batch->size; i++) {
        longest = length_of(order[i]) > longest ? length_of(order[i]) : longest;
        places = length_of(order[i] + 1) > places ? length_of(order[i] + 1) : places;
    }
    kn_tensor *field = kn_batch_field(batch, "tokens");
    assert_int_equal(kn_ndim(field), 2);
    assert_int_equal(kn_size(field, 1), longest);
    assert_true(kn_is_contiguous(field));
    assert_ok(kn_read(field, tokens, (size_t)(batch->size * longest) * sizeof tokens[0]));
    field = kn_batch_field(batch, "places");
    assert_int_equal(kn_ndim(field), 3);
    assert_int_equal(kn_size(field, 1), places);
    assert_ok(kn_read(field, halves, (size_t)(batch->size * places * PAIR) * sizeof halves[0]));
    assert_ok(kn_read(kn_batch_field(batch, "count"), counts, (size_t)batch->size * sizeof counts[0]));
    assert_ok(kn_read(kn_batch_field(batch, "class"), classes, (size_t)batch->size * sizeof classes[0]));
    for (int64_t i = 0; i < batch->size; i++) {
        assert_int_equal(classes[i], order[i]);
        assert_int_equal(counts[i], length_of(order[i]));
        for (int64_t k = 0; k < longest; k++)
            assert_int_equal(tokens[i * longest + k], k < length_of(order[i]) ? 100 * order[i] + k : -7);
        for (int64_t k = 0; k < places * PAIR; k++)
            assert_int_equal(halves[i * places * PAIR + k],
                             k < length_of(order[i] + 1) * PAIR ? 0x3c00 : 0x3800 /* 0.5 */);
    }
}

static void expect_epochs(kn_dataset *dataset, const kn_loader_params *params)
{
    kn_loader *loader = kn_loader_new_with(dataset, params);
    assert_new(loader);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int64_t order[SAMPLES], at = 0;
        expected_order(order, SAMPLES, params->shuffle, params->seed, epoch);
        KN_FOR_BATCHES (batch, loader, epoch) {
            expect_batch(batch, order + at);
            at += batch->size;
        }
        assert_ok(kn_loader_status(loader));
        assert_int_equal(at, SAMPLES);
    }
    kn_loader_free(loader);
}

static void batches_are_as_long_as_their_longest_sample(void **state)
{
    (void)state;
    texts t;
    kn_dataset *dataset = make_texts(&t);
    assert_new(dataset);
    for (int d = 0; d < num_devices; d++)
        for (int workers = 0; workers <= 3; workers += 3)
            for (int64_t size = 1; size <= 8; size += 7)
                for (int pin = 0; pin < num_devices; pin++)
                    expect_epochs(dataset, &(kn_loader_params){.batch_size = size,
                                                               .shuffle = size > 1,
                                                               .num_workers = workers,
                                                               .prefetch_factor = 2,
                                                               .seed = 11,
                                                               .pin_memory = pin,
                                                               .device = devices[d]});
    kn_dataset_free(dataset);
}

/* Batches that the caller keeps are not overwritten by later ones, whose samples begin elsewhere. */
static void kept_batches_stay(void **state)
{
    (void)state;
    texts t;
    kn_dataset *dataset = make_texts(&t);
    kn_loader *loader = kn_loader_new(dataset, .batch_size = 4, .num_workers = 2, .device = kn_device_host());
    kn_tensor *kept[11];
    int count = 0;
    KN_FOR_BATCHES (batch, loader, 0)
        kept[count++] = kn_retain(kn_batch_field(batch, "tokens"));
    assert_ok(kn_loader_status(loader));
    assert_int_equal(count, 11);
    for (int i = 0; i < count; i++) {
        const int64_t *tokens = kn_data(kept[i]), longest = kn_size(kept[i], 1);
        for (int64_t row = 0; row < kn_size(kept[i], 0); row++)
            for (int64_t k = 0; k < longest; k++)
                assert_int_equal(tokens[row * longest + k], k < length_of(4 * i + row) ? 100 * (4 * i + row) + k : -7);
        kn_release(kept[i]);
    }
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

/* --- through other datasets ----------------------------------------------------------------------- */

/* A transform sees the sample's own length. */
static kn_status shift(void *value, const kn_field *field, uint64_t random, void *user)
{
    (void)random;
    (void)user;
    for (int64_t i = 0; i < field->shape[0]; i++)
        ((int64_t *)value)[i] += 1000;
    return KN_OK;
}

static void lengths_pass_through(void **state)
{
    (void)state;
    texts t;
    kn_dataset *base = make_texts(&t), *more = make_texts(&t);
    kn_dataset *all = kn_concat_dataset(KN_DATASETS(base, more));
    kn_dataset *some = kn_subset(all, (const int64_t[]){1, SAMPLES + 7}, 2);
    kn_dataset *shifted = kn_transform_dataset(some, shift, NULL, .fields = KN_NAMES("tokens"));
    assert_new(shifted);
    kn_dataset_free(base);
    kn_dataset_free(more);
    kn_dataset_free(all);
    int64_t lengths[4];
    assert_ok(kn_dataset_lengths(shifted, 1, lengths));
    assert_int_equal(lengths[0], 1);
    assert_int_equal(lengths[1], length_of(7));
    assert_int_equal(lengths[3], length_of(8));
    kn_loader *loader = kn_loader_new(shifted, .batch_size = 2, .device = kn_device_host());
    assert_new(loader);
    KN_FOR_BATCHES (batch, loader, 0) {
        const int64_t *tokens = kn_data(kn_batch_field(batch, "tokens"));
        const int64_t *counts = kn_data(kn_batch_field(batch, "count"));
        assert_int_equal(kn_size(kn_batch_field(batch, "tokens"), 1), 5);
        for (int64_t k = 0; k < 5; k++) {
            assert_int_equal(tokens[k], 1100 + k);
            assert_int_equal(tokens[5 + k], k < length_of(7) ? 1700 + k : -7);
        }
        assert_int_equal(counts[0], 5);
        assert_int_equal(counts[1], length_of(7));
    }
    assert_ok(kn_loader_status(loader));
    kn_loader_free(loader);
    kn_dataset_free(shifted);
}

/* --- errors --------------------------------------------------------------------------------------- */

static void refused(void **state)
{
    (void)state;
    static const kn_dataset_functions plain = {.length = texts_length, .get = texts_get},
                                      measured = {.length = texts_length, .get = texts_get, .lengths = texts_lengths};
    kn_dataset *dataset;
    assert_fails(kn_status_of(dataset = kn_dataset_new(
                                  &plain, NULL, KN_FIELDS({.dtype = KN_I64, .ndim = 1, .shape = {3}, .varies = true}))),
                 KN_ERR_ARGUMENT, "the field \"input\" varies: the function `lengths` is required");
    assert_fails(kn_status_of(dataset = kn_dataset_new(&measured, NULL, KN_FIELDS({.dtype = KN_I64, .varies = true}))),
                 KN_ERR_SHAPE, "the field \"input\" varies, but has no dimensions");
    assert_fails(
        kn_status_of(dataset = kn_dataset_new(&measured, NULL,
                                              KN_FIELDS({.dtype = KN_F32}, {.dtype = KN_I64, .length_of = "input"}))),
        KN_ERR_ARGUMENT, "the field \"target\" is the length of \"input\", which is no field that varies");
    assert_fails(
        kn_status_of(dataset = kn_dataset_new(&measured, NULL,
                                              KN_FIELDS({.dtype = KN_F32, .ndim = 1, .shape = {3}, .varies = true},
                                                        {.dtype = KN_I32, .length_of = "input"}))),
        KN_ERR_ARGUMENT, "the field \"target\" is a length: it must be int64");
    texts t;
    assert_new(dataset = make_texts(&t));
    t.bad = 6;
    for (int workers = 0; workers <= 2; workers += 2) {
        t.fails = false;
        t.bad_length = LONGEST + 1;
        kn_loader *loader = kn_loader_new(dataset, .batch_size = 4, .num_workers = workers);
        assert_new(loader);
        int batches = 0;
        KN_FOR_BATCHES (batch, loader, 0)
            batches++;
        assert_int_equal(batches, 1);
        assert_fails(kn_loader_status(loader), KN_ERR_SHAPE,
                     "loader: sample 6: dataset: the length of the field \"tokens\" is 10; it must be from 0 to 9");
        kn_loader_free(loader); /* its threads read `t` */
        t.fails = true;
        assert_new(loader = kn_loader_new(dataset, .batch_size = 4, .num_workers = workers));
        KN_FOR_BATCHES (batch, loader, 0)
            batches++;
        assert_fails(kn_loader_status(loader), KN_ERR_IO, "loader: sample 6: sample 6 has no length");
        kn_loader_free(loader);
    }
    kn_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_as_long_as_their_longest_sample),
        cmocka_unit_test(kept_batches_stay),
        cmocka_unit_test(lengths_pass_through),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, find_devices, NULL);
}
