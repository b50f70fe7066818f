/* test_metrics.c - accuracy and mean, accumulated on the device. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "support/as_gpu.h"

static double computed(kn_metric *metric)
{
    double value = -1;
    CHECK_OK(kn_metric_compute(metric, &value));
    return value;
}

TENSOR_TEST_F64(a_mean_is_weighted_by_the_batch)
{
    kn_metric *mean = kn_metric_mean();
    assert_true(isnan(computed(mean))); /* the mean of nothing */
    CHECK_OK(kn_metric_update(mean, kn_full(KN_SCALAR, 2), NULL, 128));
    CHECK_OK(kn_metric_update(mean, kn_full(KN_SHAPE(1), 5), NULL, 64));
    assert_true(fabs(computed(mean) - 3) < 1e-6);
    kn_metric_reset(mean);
    CHECK_OK(kn_metric_update(mean, kn_full(KN_SCALAR, 7, .dtype = KN_F64), NULL, 3));
    assert_true(computed(mean) == 7);
    kn_metric_free(mean);
}

/* A plain f32 sum of 20000 such values would have a much larger error. */
TENSOR_TEST(a_long_mean_keeps_its_digits)
{
    kn_metric *mean = kn_metric_mean();
    kn_tensor *small = kn_full(KN_SCALAR, 0.1), *large = kn_full(KN_SCALAR, 1000);
    CHECK_OK(kn_metric_update(mean, large, NULL, 128));
    for (int i = 0; i < 4000; i++)
        CHECK_OK(kn_metric_update(mean, small, NULL, 1));
    double expected = (1000.0 * 128 + 4000 * (double)0.1f) / (128 + 4000);
    assert_true(fabs(computed(mean) - expected) < 1e-7 * expected);
    kn_metric_free(mean);
}

TENSOR_TEST(accuracy_is_the_share_of_first_maxima)
{
    kn_metric *accuracy = kn_metric_accuracy();
    kn_tensor *scores = kn_from_data(((float[]){1, 2, 3,   /* 2 */
                                                5, 5, 0,   /* 0: the first among equals */
                                                0, NAN, 9, /* 1: NaN is the largest */
                                                -3, -1, -2 /* 1 */}),
                                     KN_SHAPE(4, 3));
    kn_tensor *classes = kn_from_data(((int64_t[]){2, 0, 1, 0}), KN_SHAPE(4), .dtype = KN_I64);
    CHECK_OK(kn_metric_update(accuracy, scores, classes, 0));
    assert_true(computed(accuracy) == 0.75);
    kn_tensor *bytes = kn_from_data(((uint8_t[]){0, 1}), KN_SHAPE(2), .dtype = KN_U8);
    CHECK_OK(kn_metric_update(accuracy, kn_narrow(scores, 0, 0, 2), bytes, 0));
    assert_true(computed(accuracy) == 0.5);
    /* Strided: the transpose of [3, 4]. */
    kn_metric_reset(accuracy);
    kn_tensor *turned = kn_t(kn_contiguous(kn_t(scores)));
    CHECK_OK(kn_metric_update(accuracy, turned, classes, 0));
    assert_true(computed(accuracy) == 0.75);
    kn_metric_free(accuracy);
}

/* [n, classes, ...]: a class per pixel. And more rows than work-items. */
TENSOR_TEST(accuracy_counts_every_position)
{
    enum { N = 37, C = 3, INNER = 29 };
    float *scores = calloc(N * C * INNER, sizeof *scores);
    int32_t classes[N * INNER];
    int right = 0;
    for (int n = 0; n < N; n++) {
        for (int i = 0; i < INNER; i++) {
            int winner = (n * 7 + i) % C;
            scores[(n * C + winner) * INNER + i] = 1;
            classes[n * INNER + i] = i % C;
            right += winner == i % C;
        }
    }
    kn_metric *accuracy = kn_metric_accuracy();
    kn_tensor *output = kn_from_data(scores, KN_SHAPE(N, C, INNER));
    free(scores);
    CHECK_OK(kn_metric_update(accuracy, output, kn_from_data(classes, KN_SHAPE(N, INNER), .dtype = KN_I32), 0));
    assert_true(fabs(computed(accuracy) - (double)right / (N * INNER)) < 1e-12);
    kn_metric_free(accuracy);
}

TENSOR_TEST_F64(what_does_not_fit_is_refused)
{
    kn_metric *accuracy = kn_metric_accuracy(), *mean = kn_metric_mean();
    kn_tensor *scores = kn_ones(KN_SHAPE(4, 3)), *classes = kn_zeros(KN_SHAPE(4), .dtype = KN_I64);
    assert_int_equal(kn_metric_update(accuracy, scores, kn_zeros(KN_SHAPE(5), .dtype = KN_I64), 0), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "[4, 3]", "[5]");
    assert_int_equal(kn_metric_update(accuracy, scores, kn_zeros(KN_SHAPE(4)), 0), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "float32");
    assert_int_equal(kn_metric_update(accuracy, scores, NULL, 0), KN_ERR_ARGUMENT);
    kn_error_clear();
    assert_int_equal(kn_metric_update(mean, scores, NULL, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "one element", "[4, 3]");
    assert_int_equal(kn_metric_update(mean, kn_ones(KN_SCALAR, .device = kn_device_host()), NULL, 1), KN_ERR_DEVICE);
    kn_error_clear();
    kn_metric *perplexity = kn_metric_perplexity();
    assert_int_equal(kn_metric_update(perplexity, scores, scores, 0), KN_ERR_DTYPE); /* probabilities */
    CHECK_ERROR(KN_ERR_DTYPE, "perplexity: target classes must be integers, not float32 [4, 3]");
    kn_metric_free(perplexity);
    CHECK_OK(kn_metric_update(mean, kn_ones(KN_SCALAR), NULL, 1));
    assert_int_equal(kn_metric_update(mean, kn_ones(KN_SCALAR, .dtype = KN_F64), NULL, 1), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "float32", "float64", "reset");
    CHECK_OK(kn_metric_update(accuracy, scores, classes, 0));
    kn_metric_free(accuracy);
    kn_metric_free(mean);
    kn_metric_free(NULL);
    kn_error_clear();
}

/* scikit-learn's example, in every floating dtype. */
TENSOR_TEST_F64(errors_are_means_over_all_elements)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_F64, KN_F16, KN_BF16};
    for (int d = 0; d < 4; d++) {
        kn_metric *squared = kn_metric_mean_squared_error(), *absolute = kn_metric_mean_absolute_error();
        kn_metric *root = kn_metric_mean_squared_error(.squared = false);
        kn_tensor *y = kn_to_dtype(kn_from_data(((float[]){3, -0.5F, 2, 7}), KN_SHAPE(4)), dtypes[d]);
        kn_tensor *output = kn_to_dtype(kn_from_data(((float[]){2.5F, 0, 2, 8}), KN_SHAPE(4)), dtypes[d]);
        kn_metric *const metrics[] = {squared, absolute, root};
        for (int m = 0; m < 3; m++) {
            CHECK_OK(kn_metric_update(metrics[m], kn_narrow(output, 0, 0, 3), kn_narrow(y, 0, 0, 3), 0));
            CHECK_OK(kn_metric_update(metrics[m], kn_narrow(output, 0, 3, 1), kn_narrow(y, 0, 3, 1), 0));
        }
        assert_true(fabs(computed(squared) - 0.375) < 1e-6);
        assert_true(fabs(computed(absolute) - 0.5) < 1e-6);
        assert_true(fabs(computed(root) - sqrt(0.375)) < 1e-6);
        assert_int_equal(kn_metric_update(squared, kn_ones(KN_SHAPE(4, 1)), y, 0), KN_ERR_SHAPE);
        CHECK_ERROR(KN_ERR_SHAPE, "mean_squared_error: needs a floating output and a target of one shape", "[4, 1]");
        for (int m = 0; m < 3; m++)
            kn_metric_free(metrics[m]);
    }
}

/* exp of the mean negative log-likelihood of the targets that count; also under autocast and with halves. */
TENSOR_TEST(perplexity_leaves_out_ignored_targets)
{
    kn_metric *perplexity = kn_metric_perplexity(), *other = kn_metric_perplexity();
    static const float logits[] = {1, 2, 3, 0, 0, 0, -1, 5, 2, 4, 4, -3};
    static const int64_t classes[] = {2, 1, -100, 0};
    double sum = 0;
    for (int r = 0; r < 4; r++) {
        double total = 0;
        for (int c = 0; c < 3; c++)
            total += exp((double)logits[3 * r + c]);
        if (classes[r] >= 0)
            sum += log(total) - (double)logits[3 * r + classes[r]];
    }
    kn_tensor *output = kn_from_data(logits, KN_SHAPE(4, 3));
    kn_tensor *target = kn_from_data(classes, KN_SHAPE(4), .dtype = KN_I64);
    {
        KN_AUTOCAST(KN_F16);
        CHECK_OK(kn_metric_update(perplexity, kn_narrow(output, 0, 0, 2), kn_narrow(target, 0, 0, 2), 0));
    }
    CHECK_OK(kn_metric_update(other, kn_to_dtype(kn_narrow(output, 0, 2, 2), KN_BF16), kn_narrow(target, 0, 2, 2), 0));
    CHECK_OK(kn_metric_merge(perplexity, other));
    assert_true(fabs(computed(perplexity) - exp(sum / 3)) < 1e-5);
    kn_metric_free(perplexity);
    kn_metric_free(other);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(a_mean_is_weighted_by_the_batch),       TEST(a_long_mean_keeps_its_digits),
        TEST(accuracy_is_the_share_of_first_maxima), TEST(accuracy_counts_every_position),
        TEST(what_does_not_fit_is_refused),          TEST(errors_are_means_over_all_elements),
        TEST(perplexity_leaves_out_ignored_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
