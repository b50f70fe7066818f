/* test_scale.c - `koine scale`: usage, the model's figures against its formulas, JSON. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "dist/scale.h"
#include "rt/device/device.h"
#include "run_program.h"

#define NETWORK "--network 8Gbit --latency 10us --call 0 --staging none"

static void wrong_usage_is_status_2(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *message;
    } wrong[] = {
        {"", "--model or --parameters is missing"},
        {"--model resnet50", "--network is missing"},
        {"--parameters 1M --network 1Gbit", "--parameters needs --compute"},
        {"--model gpt2 --parameters 1M --network 1Gbit", "leave out --parameters"},
        {"--parameters 1M --compute 1s --network 1Gbyte", "--network `1Gbyte` is not such as 100Gbit"},
        {"--parameters 1M --compute 1s --network 0bit", "--network `0bit`"},
        {"--parameters 1M --compute -1s --network 1Gbit", "--compute `-1s`"},
        {"--parameters 1M --compute 1s --network 1Gbit --latency 1m", "--latency `1m`"},
        {"--parameters 1M --compute 1s --network 1Gbit --ranks 0", "--ranks `0`"},
        {"--parameters 1M --compute 1s --network 1Gbit --ranks 8,x", "--ranks `8,x`"},
        {"--parameters 1M --compute 1s --network 1Gbit --algorithm tree", "--algorithm `tree`"},
        {"--parameters 1M --compute 1s --network 1Gbit --gradients f8", "--gradients `f8`"},
        {"--parameters 1M --compute 1s --network 1Gbit --forward 2", "--forward `2`"},
        {"--model lenet5 --network 1Gbit --image-size 0", "--image-size `0`"},
        {"--model lenet5 --network 1Gbit --batch-size 32,64", "--batch-size `32,64`"},
        {"--parameters 1e20 --compute 1s --network 1Gbit", "--parameters `1e20`"},
        {"--parameters 1M --compute 1s --network 1Gbit --bucket 1e300GiB", "--bucket `1e300GiB`"},
        {"--nosuch", "unknown option"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        run_result r = run_shell("'%s' scale %s", KOINE_PROGRAM, wrong[i].arguments);
        assert_int_equal(r.status, 2);
        assert_string_equal(r.output, "");
        assert_non_null(strstr(r.errors, wrong[i].message));
        assert_non_null(strstr(r.errors, "usage: koine scale"));
        run_free(&r);
    }
}

static void the_table_has_a_row_per_number_of_ranks(void **state)
{
    (void)state;
    run_result r =
        run_shell("'%s' scale --parameters 10M --compute 100ms " NETWORK " --ranks 6 --batch-size 10", KOINE_PROGRAM);
    assert_int_equal(r.status, 0);
    assert_string_equal(r.errors, "");
    assert_non_null(strstr(r.output, "10.0 M parameters, 40.0 MB of gradients in 3 buckets"));
    assert_non_null(strstr(r.output, "\n    1  100.000 ms     100.0 %"));
    assert_non_null(strstr(r.output, "\n    4 "));
    assert_non_null(strstr(r.output, "\n    6 "));
    assert_null(strstr(r.output, "\n    8 "));
    run_free(&r);
    r = run_shell("'%s' scale --help", KOINE_PROGRAM);
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.output, "--measure-link"));
    run_free(&r);
}

static double number(const cJSON *object, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static bool is_near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

/* One layer: one bucket, which nothing hides. */
static void json_has_the_models_figures(void **state)
{
    (void)state;
    run_result r = run_shell("'%s' scale --parameters 1M --layers 1 --compute 30ms " NETWORK
                             " --ranks 4,1024 --algorithm ring --json",
                             KOINE_PROGRAM);
    assert_int_equal(r.status, 0);
    cJSON *root = cJSON_Parse(r.output);
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(root, "ranks");
    assert_int_equal(cJSON_GetArraySize(rows), 2);
    for (int i = 0; i < 2; i++) {
        const cJSON *row = cJSON_GetArrayItem(rows, i);
        const double n = number(row, "ranks"), latency = 1e-5, rounds = ceil(log2(n));
        const double sending = rounds * latency + 2 * (n - 1) * latency + 2 * (n - 1) / n * 4e6 / 1e9;
        assert_true(is_near(number(row, "communication_s"), sending));
        assert_true(is_near(number(row, "step_s"), 0.03 + sending));
        assert_true(is_near(number(row, "efficiency"), 0.03 / (0.03 + sending)));
    }
    cJSON_Delete(root);
    run_free(&r);
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

/* Without --compute steps are timed. A CPU device's memory is not copied. */
static void a_step_is_measured(void **state)
{
    (void)state;
    run_result r = run_shell("'%s' scale --model lenet5 --image-size 32 --batch-size 2 --network 8Gbit --latency 10us "
                             "--call 0 --ranks 1,4 --json",
                             KOINE_PROGRAM);
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.errors, "measuring steps of lenet5 with 2 samples"));
    cJSON *root = cJSON_Parse(r.output);
    const cJSON *rows = cJSON_GetObjectItem(root, "ranks");
    const double computing = cJSON_GetObjectItem(root, "compute_s")->valuedouble;
    const double share = cJSON_GetObjectItem(root, "forward_share")->valuedouble;
    assert_true(computing > 0 && computing < 60 && share > 0 && share < 1);
    const cJSON *link = cJSON_GetObjectItem(root, "link");
    const double staging = cJSON_GetObjectItem(link, "staging_bytes_per_s")->valuedouble;
    assert_true(kn_device_limits(kn_device_current())->is_cpu ? staging == 0 : staging > 0);
    assert_true(cJSON_GetObjectItem(link, "copies_bytes_per_s")->valuedouble > 0);
    assert_true(is_near(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 0), "step_s")->valuedouble, computing));
    assert_true(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 1), "step_s")->valuedouble > computing);
    cJSON_Delete(root);
    run_free(&r);
    r = run_shell("'%s' scale --model lenet5 --image-size 8 --network 8Gbit", KOINE_PROGRAM);
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.errors, "conv2d: the kernel"));
    run_free(&r);
}

static const kn_scale_link fast = {.bandwidth = 1e9, .latency = 1e-5};

static void halving_has_fewer_messages_than_a_ring(void **state)
{
    (void)state;
    const double moved = 2.0 * 63 / 64 * 1e6 / 1e9, compare = 6e-5;
    assert_true(is_near(kn_scale_all_reduce(&fast, KN_SCALE_RING, 1e6, 64), compare + 126e-5 + moved));
    assert_true(is_near(kn_scale_all_reduce(&fast, KN_SCALE_HALVING, 1e6, 64), compare + 12e-5 + moved));
    assert_true(is_near(kn_scale_all_reduce(&fast, KN_SCALE_BEST, 1e6, 64), compare + 12e-5 + moved));
    assert_true(kn_scale_all_reduce(&fast, KN_SCALE_BEST, 1e6, 1) == 0);
}

/* Slower than the link, copies decide; faster, only those of the first and the last piece show. */
static void copies_overlap_with_the_exchange(void **state)
{
    (void)state;
    kn_scale_link link = fast;
    const double bytes = 40 * 4194304.0, plain = kn_scale_all_reduce(&link, KN_SCALE_HALVING, bytes, 2);
    link.staging = 1e11;
    const double piece = 4194304 / 1e11, with_copies = kn_scale_all_reduce(&link, KN_SCALE_HALVING, bytes, 2);
    assert_true(with_copies > plain + 2 * piece);
    assert_true(with_copies < plain + 2 * piece + 40 * 2e-5); /* and the latency of each piece */
    link.staging = 1e8;
    assert_true(kn_scale_all_reduce(&link, KN_SCALE_HALVING, bytes, 2) > 2 * bytes / 1e8);
    assert_true(is_near(kn_scale_all_reduce(&link, KN_SCALE_HALVING, 1e18, 2), 2e10)); /* without a loop of pieces */
}

/* Two buckets, ready halfway and at the end. */
static void the_backward_pass_hides_buckets(void **state)
{
    (void)state;
    const kn_scale_bucket buckets[] = {{1e6, 0.5}, {1e6, 1}};
    kn_scale_job job = {.forward = 0.1, .backward = 0.2, .buckets = buckets, .num_buckets = 2, .link = fast};
    const double one = kn_scale_all_reduce(&fast, KN_SCALE_BEST, 1e6, 4);
    kn_scale_step step = kn_scale_predict(&job, 4);
    assert_true(is_near(step.exposed, one) && is_near(step.communication, 2 * one));
    job.no_overlap = true;
    step = kn_scale_predict(&job, 4);
    assert_true(is_near(step.time, 0.3 + 2 * one));
    assert_true(kn_scale_predict(&job, 1).efficiency == 1);
    job.link.copies = 1e8; /* 10 ms for each bucket, on the way in and on that out */
    assert_true(is_near(kn_scale_predict(&job, 4).time, 0.3 + 0.02 + 2 * one + 0.02));
    job.no_overlap = false;
    assert_true(is_near(kn_scale_predict(&job, 4).time, 0.3 + 0.02 + one + 0.02));
}

/* As kn_nn_distributed makes them: in reverse order, each closed when it has reached its size. */
static void buckets_are_those_of_training(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_module *net = kn_models_mlp(KN_SIZES(100, 200, 300));
    const kn_distributed_params params = {.first_bucket_bytes = 1000, .bucket_bytes = 100000};
    int count = 0;
    kn_scale_bucket *buckets = kn_scale_buckets_of(net, &params, 0, &count);
    assert_int_equal(count, 3);
    assert_true(buckets[0].bytes == 300 * 4 && buckets[0].ready == 0.5); /* the last layer's bias */
    assert_true(buckets[1].bytes == 200 * 300 * 4 && buckets[1].ready == 0.5);
    assert_true(buckets[2].bytes == (200 + 100 * 200) * 4 && buckets[2].ready == 1);
    kn_free(buckets);
    kn_module_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_is_status_2),          cmocka_unit_test(the_table_has_a_row_per_number_of_ranks),
        cmocka_unit_test(json_has_the_models_figures),      cmocka_unit_test(halving_has_fewer_messages_than_a_ring),
        cmocka_unit_test(copies_overlap_with_the_exchange), cmocka_unit_test(the_backward_pass_hides_buckets),
        cmocka_unit_test(buckets_are_those_of_training),    cmocka_unit_test(a_step_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
