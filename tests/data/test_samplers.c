/* test_samplers - the orders of samplers, loaders that use them; subsets, random splits, datasets one after another. */
#include <koine/koine.h>
#include <math.h>

#include "data/counted.h"
#include "data/loader.h"
#include "io/check.h"

enum { MANY = 6000 };

static void expect_order(kn_sampler *sampler, uint64_t seed, int64_t epoch, const int64_t *expected, int64_t count)
{
    int64_t order[64];
    assert_new(sampler);
    assert_int_equal(kn_sampler_length(sampler), count);
    assert_ok(kn_sampler_order(sampler, seed, epoch, order));
    assert_memory_equal(order, expected, (size_t)count * sizeof order[0]);
    kn_sampler_free(sampler);
}
#define EXPECT_ORDER(sampler, ...)                                                                                     \
    expect_order(sampler, 0, 0, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* The same seed and epoch give the same order, others give others. */
static void expect_reproducible(kn_sampler *sampler)
{
    static int64_t one[MANY], other[MANY];
    const size_t bytes = (size_t)kn_sampler_length(sampler) * sizeof one[0];
    assert_ok(kn_sampler_order(sampler, 3, 5, one));
    assert_ok(kn_sampler_order(sampler, 3, 6, other));
    assert_memory_not_equal(one, other, bytes);
    assert_ok(kn_sampler_order(sampler, 3, 5, other));
    assert_memory_equal(one, other, bytes);
}

static void count(kn_sampler *sampler, int64_t *counts, int64_t samples)
{
    static int64_t order[MANY];
    memset(counts, 0, (size_t)samples * sizeof counts[0]);
    assert_ok(kn_sampler_order(sampler, 1, 2, order));
    for (int64_t i = 0; i < kn_sampler_length(sampler); i++) {
        assert_in_range(order[i], 0, samples - 1);
        counts[order[i]]++;
    }
}

/* --- each sampler --------------------------------------------------------------------------------- */

static void plain_orders(void **state)
{
    (void)state;
    counted data;
    int64_t counts[8];
    kn_dataset *dataset = counted_dataset(&data, 8);
    EXPECT_ORDER(kn_sequential_sampler(dataset), 0, 1, 2, 3, 4, 5, 6, 7);
    EXPECT_ORDER(kn_random_sampler(dataset), 4, 2, 6, 1, 3, 7, 5, 0); /* the same in every version */
    EXPECT_ORDER(kn_random_sampler(dataset, .num_samples = 3), 4, 2, 6);
    kn_sampler *twice = kn_random_sampler(dataset, .num_samples = 19);
    assert_new(twice);
    assert_int_equal(kn_sampler_length(twice), 19);
    expect_reproducible(twice);
    count(twice, counts, 8);
    for (int i = 0; i < 8; i++)
        assert_in_range(counts[i], 2, 3); /* two permutations and three samples more */
    kn_sampler_free(twice);
    kn_sampler *drawn = kn_random_sampler(dataset, .replacement = true, .num_samples = MANY);
    assert_new(drawn);
    expect_reproducible(drawn);
    count(drawn, counts, 8);
    for (int i = 0; i < 8; i++)
        assert_in_range(counts[i], 640, 860); /* 750, give or take four standard deviations */
    kn_sampler_free(drawn);
    kn_dataset_free(dataset);
}

static void orders_of_subsets(void **state)
{
    (void)state;
    const int64_t some[] = {70, 10, 50, 10};
    int64_t counts[100];
    kn_sampler *sampler = kn_subset_random_sampler(some, 4);
    assert_new(sampler);
    expect_reproducible(sampler);
    count(sampler, counts, 100);
    assert_int_equal(counts[10], 2);
    assert_int_equal(counts[50] + counts[70], 2);
    kn_sampler_free(sampler);
    assert_new(sampler = kn_subset_random_sampler(NULL, 0));
    assert_int_equal(kn_sampler_length(sampler), 0);
    kn_sampler_free(sampler);
}

static void weighted_draws(void **state)
{
    (void)state;
    const double weights[] = {0, 1, 0, 4, 5, 0};
    int64_t counts[6];
    kn_sampler *sampler = kn_weighted_random_sampler(weights, 6, MANY);
    assert_new(sampler);
    expect_reproducible(sampler);
    count(sampler, counts, 6);
    for (int i = 0; i < 6; i++)
        assert_true(fabs((double)counts[i] - weights[i] / 10 * MANY) <= 4 * sqrt(weights[i] / 10 * MANY));
    kn_sampler_free(sampler);
    assert_new(sampler = kn_weighted_random_sampler(weights, 6, 3, .replacement = false));
    count(sampler, counts, 6);
    assert_true(counts[1] == 1 && counts[3] == 1 && counts[4] == 1);
    kn_sampler_free(sampler);
}

/* Without replacement the first draw has the weights' probabilities, the second those of what is left. */
static void weighted_draws_without_replacement(void **state)
{
    (void)state;
    const double weights[] = {1, 2, 7};
    kn_sampler *sampler = kn_weighted_random_sampler(weights, 3, 2, .replacement = false);
    int64_t order[2], pairs[3][3] = {{0}};
    assert_new(sampler);
    for (int epoch = 0; epoch < MANY; epoch++) {
        assert_ok(kn_sampler_order(sampler, 9, epoch, order));
        pairs[order[0]][order[1]]++;
    }
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            const double expected = a == b ? 0 : weights[a] / 10 * weights[b] / (10 - weights[a]) * MANY;
            assert_true(fabs((double)pairs[a][b] - expected) <= 4 * sqrt(expected));
        }
    kn_sampler_free(sampler);
}

/* As torch.utils.data.DistributedSampler deals them out. */
static void distributed_parts(void **state)
{
    (void)state;
    counted data, pair;
    kn_dataset *dataset = counted_dataset(&data, 10), *two = counted_dataset(&pair, 2);
    EXPECT_ORDER(kn_distributed_sampler(dataset, .num_replicas = 3, .rank = 0, .shuffle = false), 0, 3, 6, 9);
    EXPECT_ORDER(kn_distributed_sampler(dataset, .num_replicas = 3, .rank = 1, .shuffle = false), 1, 4, 7, 0);
    EXPECT_ORDER(kn_distributed_sampler(dataset, .num_replicas = 3, .rank = 2, .shuffle = false), 2, 5, 8, 1);
    EXPECT_ORDER(kn_distributed_sampler(dataset, .num_replicas = 3, .rank = 2, .shuffle = false, .drop_last = true), 2,
                 5, 8);
    EXPECT_ORDER(kn_distributed_sampler(two, .num_replicas = 5, .rank = 3, .shuffle = false), 1);
    EXPECT_ORDER(kn_distributed_sampler(two, .num_replicas = 5, .rank = 4, .shuffle = false), 0);
    kn_sampler *none = kn_distributed_sampler(two, .num_replicas = 5, .rank = 4, .drop_last = true);
    assert_new(none);
    assert_int_equal(kn_sampler_length(none), 0);
    kn_sampler_free(none);
    bool seen[10] = {false};
    for (int rank = 0; rank < 3; rank++) { /* the parts of a shuffled order are those of one permutation */
        kn_sampler *part = kn_distributed_sampler(dataset, .num_replicas = 3, .rank = rank, .seed = 7);
        int64_t order[4], same[4];
        assert_new(part);
        expect_reproducible(part);
        assert_ok(kn_sampler_order(part, 1, 0, order));
        assert_ok(kn_sampler_order(part, 2, 0, same)); /* the loader's seed does not matter */
        assert_memory_equal(order, same, sizeof order);
        for (int i = 0; i < 4; i++)
            seen[order[i]] = true;
        kn_sampler_free(part);
    }
    for (int i = 0; i < 10; i++)
        assert_true(seen[i]);
    kn_dataset_free(dataset);
    kn_dataset_free(two);
}

/* The samples of an epoch, in their order; their number. `random`: that of the first batch. */
static int64_t yielded(kn_loader *loader, int64_t epoch, int64_t *samples, uint64_t *random)
{
    int64_t count = 0, batches = 0;
    KN_FOR_BATCHES (batch, loader, epoch) {
        const int64_t *targets = kn_data(batch->target);
        for (int64_t i = 0; i < batch->size; i++)
            samples[count++] = -targets[i];
        *random = batches++ == 0 ? batch->random : *random;
    }
    assert_ok(kn_loader_status(loader));
    assert_int_equal(batches, kn_loader_batches(loader));
    assert_int_equal(count, kn_loader_samples(loader));
    return count;
}

/* With padding what kn_distributed_sampler deals out, without it every sample once; then the whole again. */
static void expect_parts(int64_t length, int64_t parts, int workers)
{
    counted data;
    int64_t samples[64], expected[64], seen[64] = {0};
    uint64_t random, before = 0;
    kn_dataset *dataset = counted_dataset(&data, length);
    kn_loader *loader;
    assert_new(loader = kn_loader_new(dataset, .batch_size = 3, .shuffle = true, .seed = 9, .num_workers = workers,
                                      .device = kn_device_host()));
    for (int64_t i = 0; i < parts; i++) {
        kn_sampler *part = kn_distributed_sampler(dataset, .num_replicas = parts, .rank = i, .seed = 9);
        kn_loader_divide(loader, (kn_loader_part){i, parts, true, false});
        assert_int_equal(yielded(loader, 4, samples, &random), kn_sampler_length(part));
        assert_int_not_equal(random, before);
        before = random;
        assert_ok(kn_sampler_order(part, 0, 4, expected));
        assert_memory_equal(samples, expected, (size_t)kn_sampler_length(part) * sizeof samples[0]);
        kn_sampler_free(part);
        kn_loader_divide(loader, (kn_loader_part){i, parts, false, false});
        for (int64_t s = yielded(loader, 5, samples, &random); s-- > 0;)
            seen[samples[s]]++;
    }
    for (int64_t i = 0; i < length; i++)
        assert_int_equal(seen[i], 1);
    if (length % (3 * parts) == 0) { /* whole batches, in turn */
        kn_loader_divide(loader, (kn_loader_part){0});
        yielded(loader, 6, expected, &random);
        for (int64_t i = 0; i < parts; i++) {
            kn_loader_divide(loader, (kn_loader_part){i, parts, true, true});
            for (int64_t s = yielded(loader, 6, samples, &random); s-- > 0;)
                assert_int_equal(samples[s], expected[(s / 3 * parts + i) * 3 + s % 3]);
        }
    }
    kn_loader_divide(loader, (kn_loader_part){0});
    assert_int_equal(yielded(loader, 0, samples, &random), length);
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

static void loaders_of_parts(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 5, 12, 23};
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (int64_t parts = 1; parts <= 5; parts++)
            expect_parts(lengths[l], parts, (int)(parts % 3));
}

/* --- a program's own ------------------------------------------------------------------------------ */

typedef struct backwards {
    int64_t length, lowest; /* from length - 1 + lowest down */
    bool fails, silently;
    int destroyed;
} backwards;

static int64_t own_length(void *self) { return ((backwards *)self)->length; }

static kn_status own_order(void *self, uint64_t seed, int64_t epoch, int64_t *indices)
{
    const backwards *own = self;
    (void)seed;
    if (own->fails)
        return own->silently ? KN_ERR_IO : kn_error_set(KN_ERR_IO, "no order for epoch %d", (int)epoch);
    for (int64_t i = 0; i < own->length; i++)
        indices[i] = own->length - 1 - i + own->lowest;
    return KN_OK;
}

static void own_destroy(void *self) { ((backwards *)self)->destroyed++; }

static const kn_sampler_functions own_functions = {.length = own_length, .order = own_order, .destroy = own_destroy};

static void loaders_follow_samplers(void **state)
{
    (void)state;
    for (int d = 0; d < num_devices; d++)
        for (int workers = 0; workers <= 2; workers += 2) {
            counted data;
            backwards own = {.length = 7, .lowest = 2};
            kn_dataset *dataset = counted_dataset(&data, 9);
            kn_sampler *sampler = kn_sampler_new(&own_functions, &own);
            kn_loader *loader = kn_loader_new(dataset, .batch_size = 3, .sampler = sampler, .num_workers = workers,
                                              .device = devices[d]);
            assert_new(loader);
            assert_int_equal(kn_loader_samples(loader), 7);
            assert_int_equal(kn_loader_batches(loader), 3);
            const int64_t expected[] = {8, 7, 6, 5, 4, 3, 2};
            for (int epoch = 0; epoch < 2; epoch++) {
                int64_t at = 0;
                KN_FOR_BATCHES (batch, loader, epoch) {
                    assert_batch(batch->input, batch->target, expected + at, batch->size);
                    at += batch->size;
                }
                assert_ok(kn_loader_status(loader));
                assert_int_equal(at, 7);
            }
            kn_loader_free(loader);
            kn_sampler_free(sampler);
            assert_int_equal(own.destroyed, 1);
            kn_dataset_free(dataset);
        }
}

/* More samples than the dataset has, as a draw with replacement gives. */
static void an_epoch_may_be_longer_than_the_dataset(void **state)
{
    (void)state;
    counted data;
    kn_dataset *dataset = counted_dataset(&data, 3);
    kn_sampler *sampler = kn_weighted_random_sampler(((const double[]){1, 1, 2}), 3, 20);
    kn_loader *loader = kn_loader_new(dataset, .batch_size = 8, .sampler = sampler, .num_workers = 2, .seed = 4);
    int64_t order[20], at = 0;
    assert_new(loader);
    assert_ok(kn_sampler_order(sampler, 4, 1, order));
    KN_FOR_BATCHES (batch, loader, 1) {
        assert_batch(batch->input, batch->target, order + at, batch->size);
        at += batch->size;
    }
    assert_int_equal(at, 20);
    kn_loader_free(loader);
    kn_sampler_free(sampler);
    kn_dataset_free(dataset);
}

static void refused(void **state)
{
    (void)state;
    counted data, nothing;
    kn_dataset *dataset = counted_dataset(&data, 5), *empty = counted_dataset(&nothing, 0);
    const double bad[] = {1, -1}, zeros[] = {0, 0}, not_a_number[] = {NAN};
    kn_sampler *sampler;
#define REFUSED(call, piece) assert_fails(kn_status_of(sampler = (call)), KN_ERR_ARGUMENT, piece)
    REFUSED(kn_random_sampler(dataset, .num_samples = -1), "num_samples is -1");
    REFUSED(kn_random_sampler(empty, .num_samples = 3), "the dataset is empty");
    REFUSED(kn_random_sampler(NULL), "dataset");
    REFUSED(kn_subset_random_sampler((const int64_t[]){1, -2}, 2), "index 1 is -2");
    REFUSED(kn_weighted_random_sampler(bad, 2, 1), "weight 1 is -1; it must be a finite number of 0 or more");
    REFUSED(kn_weighted_random_sampler(not_a_number, 1, 1), "weight 0 is nan");
    REFUSED(kn_weighted_random_sampler(zeros, 2, 1), "the sum of the weights is 0");
    REFUSED(kn_weighted_random_sampler(bad, 1, 0), "the number of samples is 0");
    REFUSED(kn_weighted_random_sampler(bad, 1, 2, .replacement = false), "2 samples without replacement from 1");
    REFUSED(kn_distributed_sampler(dataset, .num_replicas = 0), "num_replicas is 0");
    REFUSED(kn_distributed_sampler(dataset, .num_replicas = 2, .rank = 2), "rank is 2; it must be from 0 to 1");
    REFUSED(kn_sampler_new(&(kn_sampler_functions){.length = own_length}, NULL), "`length` and `order`");
    backwards own = {.length = -1};
    REFUSED(kn_sampler_new(&own_functions, &own), "length is -1");
    own.length = 4;
    assert_new(sampler = kn_sampler_new(&own_functions, &own));
    assert_fails(kn_sampler_order(sampler, 0, -1, (int64_t[4]){0}), KN_ERR_ARGUMENT, "epoch is -1");
    kn_loader *loader;
    assert_fails(kn_status_of(loader = kn_loader_new(dataset, .shuffle = true, .sampler = sampler)), KN_ERR_ARGUMENT,
                 "sampler and shuffle exclude each other");
    assert_new(loader = kn_loader_new(dataset, .sampler = sampler));
    own.fails = true;
    assert_fails(kn_loader_start(loader, 6), KN_ERR_IO, "loader: the order of epoch 6: no order for epoch 6");
    own.silently = true;
    assert_fails(kn_loader_start(loader, 6), KN_ERR_IO, "the sampler's `order` returned KN_ERR_IO");
    own = (backwards){.length = 4, .lowest = 2};
    assert_fails(kn_loader_start(loader, 1), KN_ERR_ARGUMENT,
                 "the sampler's index 0 in epoch 1 is 5; the dataset has 5 samples");
    own.lowest = 1;
    assert_ok(kn_loader_start(loader, 1));
    kn_loader_free(loader);
    kn_sampler_free(sampler);
    kn_dataset_free(dataset);
    kn_dataset_free(empty);
}

/* --- datasets made of others ---------------------------------------------------------------------- */

static int64_t sample_of(kn_dataset *dataset, int64_t index)
{
    float input[WIDTH];
    int64_t target;
    assert_ok(kn_dataset_get(dataset, index, (void *[]){input, &target}));
    assert_true(input[0] == (float)-target);
    return -target;
}

static void subsets(void **state)
{
    (void)state;
    counted data;
    kn_dataset *base = counted_dataset(&data, 10);
    kn_dataset *some = kn_subset(base, (const int64_t[]){7, 2, 2}, 3), *nested = kn_subset(some, (int64_t[]){0}, 1);
    assert_new(nested);
    kn_dataset_free(base);
    kn_dataset_free(some); /* `nested` keeps them */
    assert_int_equal(kn_dataset_length(nested), 1);
    assert_int_equal(sample_of(nested, 0), 7);
    kn_dataset_free(nested);
    base = counted_dataset(&data, 10);
    assert_fails(kn_status_of(some = kn_subset(base, (const int64_t[]){7, 10}, 2)), KN_ERR_ARGUMENT,
                 "index 1 is 10; the dataset has 10 samples");
    assert_fails(kn_status_of(some = kn_subset(base, NULL, 2)), KN_ERR_ARGUMENT, "indices");
    kn_dataset_free(base);
}

static void expect_split(int64_t length, const double *lengths, int parts, const int64_t *expected)
{
    counted data;
    kn_dataset *base = counted_dataset(&data, length), *made[8];
    bool seen[64] = {false};
    assert_ok(kn_random_split_with(base, lengths, parts, made, NULL));
    kn_dataset_free(base);
    for (int p = 0; p < parts; p++) {
        assert_int_equal(kn_dataset_length(made[p]), expected[p]);
        for (int64_t i = 0; i < expected[p]; i++) {
            const int64_t sample = sample_of(made[p], i);
            assert_false(seen[sample]);
            seen[sample] = true;
        }
        kn_dataset_free(made[p]);
    }
    for (int64_t i = 0; i < length; i++)
        assert_true(seen[i]);
}

/* The sizes are those of torch.utils.data.random_split. */
static void random_splits(void **state)
{
    (void)state;
    expect_split(10, (const double[]){3, 7}, 2, (const int64_t[]){3, 7});
    expect_split(10, (const double[]){0.3, 0.3, 0.4}, 3, (const int64_t[]){3, 3, 4});
    expect_split(11, (const double[]){0.5, 0.5}, 2, (const int64_t[]){6, 5});
    expect_split(8, (const double[]){1. / 3, 1. / 3, 1. / 3}, 3, (const int64_t[]){3, 3, 2});
    expect_split(1, (const double[]){1}, 1, (const int64_t[]){1});
    expect_split(0, (const double[]){0, 0}, 2, (const int64_t[]){0, 0});
    counted data;
    kn_dataset *base = counted_dataset(&data, 40), *parts[2], *again[2], *other[2];
    assert_ok(kn_random_split(base, KN_LENGTHS(0.75, 0.25), parts, .seed = 3));
    assert_ok(kn_random_split(base, KN_LENGTHS(0.75, 0.25), again, .seed = 3));
    assert_ok(kn_random_split(base, KN_LENGTHS(0.75, 0.25), other));
    int same = 0;
    for (int64_t i = 0; i < 10; i++) {
        assert_int_equal(sample_of(parts[1], i), sample_of(again[1], i));
        same += sample_of(parts[1], i) == sample_of(other[1], i);
    }
    assert_true(same < 5);
    for (int i = 0; i < 2; i++) {
        kn_dataset_free(parts[i]);
        kn_dataset_free(again[i]);
        kn_dataset_free(other[i]);
    }
    assert_fails(kn_random_split(base, KN_LENGTHS(30, 11), parts), KN_ERR_ARGUMENT,
                 "the sum of the lengths is 41; the dataset has 40 samples");
    assert_null(parts[0]);
    assert_fails(kn_random_split(base, KN_LENGTHS(0.5, 0.4), parts), KN_ERR_ARGUMENT, "length 0 is 0.5");
    assert_fails(kn_random_split(base, KN_LENGTHS(50, -10), parts), KN_ERR_ARGUMENT, "length 1 is -10");
    kn_dataset_free(base);
}

static void one_after_another(void **state)
{
    (void)state;
    counted a, b, none;
    kn_dataset *first = counted_dataset(&a, 4), *second = counted_dataset(&b, 3), *empty = counted_dataset(&none, 0);
    kn_dataset *all = kn_concat_dataset(KN_DATASETS(first, empty, second));
    assert_new(all);
    kn_dataset_free(first);
    kn_dataset_free(second);
    kn_dataset_free(empty);
    const int64_t expected[] = {0, 1, 2, 3, 0, 1, 2};
    assert_int_equal(kn_dataset_length(all), 7);
    for (int64_t i = 0; i < 7; i++)
        assert_int_equal(sample_of(all, i), expected[i]);
    kn_loader *loader = kn_loader_new(all, .batch_size = 7, .num_workers = 1);
    KN_FOR_BATCHES (batch, loader, 0)
        assert_batch(batch->input, batch->target, expected, 7);
    assert_ok(kn_loader_status(loader));
    kn_loader_free(loader);
    KN_SCOPE;
    kn_dataset *rows = kn_tensor_dataset(kn_ones(KN_SHAPE(2, 3), .device = kn_device_host())), *wrong;
    assert_fails(kn_status_of(wrong = kn_concat_dataset(KN_DATASETS(all, rows))), KN_ERR_SHAPE,
                 "dataset 1 has 1 fields, the first one 2");
    kn_dataset *other = kn_tensor_dataset(kn_ones(KN_SHAPE(2, 4), .device = kn_device_host()));
    assert_fails(kn_status_of(wrong = kn_concat_dataset(KN_DATASETS(rows, other))), KN_ERR_SHAPE,
                 "field 0 of dataset 1 (\"input\", float32, 1 dimensions) differs");
    assert_fails(kn_status_of(wrong = kn_concat_dataset(NULL, 0)), KN_ERR_ARGUMENT, "datasets");
    kn_dataset_free(rows);
    kn_dataset_free(other);
    kn_dataset_free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_orders),
        cmocka_unit_test(orders_of_subsets),
        cmocka_unit_test(weighted_draws),
        cmocka_unit_test(weighted_draws_without_replacement),
        cmocka_unit_test(distributed_parts),
        cmocka_unit_test(loaders_of_parts),
        cmocka_unit_test(loaders_follow_samplers),
        cmocka_unit_test(an_epoch_may_be_longer_than_the_dataset),
        cmocka_unit_test(refused),
        cmocka_unit_test(subsets),
        cmocka_unit_test(random_splits),
        cmocka_unit_test(one_after_another),
    };
    return cmocka_run_group_tests(tests, find_devices, NULL);
}
