/* test_loss_modules.c - losses, distances and the normalisations of groups and instances as modules: what they compute,
 * their buffers, and how they are printed, as PyTorch prints them. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

static kn_tensor *apply(kn_module *module, kn_tensor *const *inputs, int count)
{
    kn_tensor *output = NULL;
    CHECK_TENSOR(module);
    CHECK_OK(kn_forward_many(module, inputs, count, &output, 1));
    return output;
}

static double value_of(kn_tensor *x)
{
    double value = -1;
    CHECK_OK(kn_item(x, &value));
    return value;
}

static kn_tensor *scores(void) { return kn_from_data(((float[]){1, 2, 0, -1, 0.5f, 3}), KN_SHAPE(2, 3)); }
static kn_tensor *targets(void) { return kn_from_data(((float[]){1, 0, 1, 0, 1, 0}), KN_SHAPE(2, 3)); }
static kn_tensor *classes(void) { return kn_from_data(((int64_t[]){1, 2}), KN_SHAPE(2), .dtype = KN_I64); }

TENSOR_TEST(losses_are_their_functions)
{
    kn_tensor *x = scores(), *t = targets();
    kn_module *mse = kn_nn_mse_loss(KN_REDUCTION_SUM), *huber = kn_nn_huber_loss(.delta = 0.5);
    assert_float_equal(value_of(apply(mse, KN_TENSORS(x, t))), value_of(kn_mse_loss(x, t, KN_REDUCTION_SUM)), 0);
    assert_float_equal(value_of(apply(huber, KN_TENSORS(x, t))), value_of(kn_huber_loss(x, t, .delta = 0.5)), 0);
    assert_int_equal(kn_module_output_count(mse), 1);
    kn_module_free(mse);
    kn_module_free(huber);
}

TENSOR_TEST(weights_are_buffers)
{
    kn_tensor *x = scores(), *weight = kn_from_data(((float[]){1, 2, 0.5f}), KN_SHAPE(3));
    kn_module *loss = kn_nn_cross_entropy_loss(.weight = weight, .label_smoothing = 0.1);
    CHECK_TENSOR(loss);
    assert_int_equal(kn_module_input_count(loss), 2);
    assert_int_equal(kn_module_parameters(loss).count, 0);
    assert_int_equal(kn_module_buffers(loss).count, 1);
    assert_string_equal(kn_module_buffers(loss).names[0], "weight");
    assert_float_equal(value_of(apply(loss, KN_TENSORS(x, classes()))),
                       value_of(kn_cross_entropy(x, classes(), .weight = weight, .label_smoothing = 0.1)), 0);
    kn_module_free(loss);
    kn_module *bce = kn_nn_bce_with_logits_loss(.pos_weight = weight);
    assert_int_equal(kn_module_buffers(bce).count, 1);
    assert_string_equal(kn_module_buffers(bce).names[0], "pos_weight");
    assert_float_equal(value_of(apply(bce, KN_TENSORS(x, targets()))),
                       value_of(kn_binary_cross_entropy_with_logits(x, targets(), NULL, weight, KN_REDUCTION_MEAN)), 0);
    kn_module_free(bce);
}

static kn_tensor *squared_distance(kn_tensor *a, kn_tensor *b, void *user)
{
    const int last = -1;
    return kn_mul_scalar(kn_sum_dims(kn_square(kn_sub(a, b)), &last, 1, false), *(const double *)user);
}

TENSOR_TEST(triplets_take_any_distance)
{
    double half = 0.5;
    kn_tensor *a = scores(), *p = kn_add_scalar(a, 1), *n = kn_add_scalar(a, 2);
    kn_module *loss = kn_nn_triplet_margin_with_distance_loss(.distance_function = squared_distance, .user = &half,
                                                              .margin = 10, .reduction = KN_REDUCTION_NONE);
    CHECK_VALUES(apply(loss, KN_TENSORS(a, p, n)), 5.5, 5.5); /* 3/2 - 12/2 + 10 */
    kn_module_free(loss);
    assert_null(kn_nn_triplet_margin_with_distance_loss(.margin = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "TripletMarginWithDistanceLoss", "margin (0)");
}

/* With PyTorch's numbers. */
TENSOR_TEST(instances_update_their_estimates)
{
    kn_module *norm = kn_nn_instance_norm1d(.num_features = 2, .track_running_stats = true);
    kn_tensor *x = kn_from_data(((float[]){1, 2, 3, 4, 6, 8, 0, 2, 4, 1, 1, 1}), KN_SHAPE(2, 2, 3));
    CHECK_TENSOR(kn_forward(norm, x));
    CHECK_VALUES(kn_module_get(norm, "running_mean"), 0.2, 0.35);
    CHECK_VALUES(kn_module_get(norm, "running_var"), 1.15, 1.1);
    CHECK_VALUES(kn_module_get(norm, "num_batches_tracked"), 0); /* as in PyTorch, nothing counts them */
    kn_module_train(norm, false);
    kn_tensor *alone = kn_forward(norm, kn_select(x, 0, 0)), *batch = kn_forward(norm, x);
    CHECK_SHAPE(alone, 2, 3);
    CHECK_SHAPE(batch, 2, 2, 3);
    kn_module_free(norm);
}

static void check_printed(kn_module *module, const char *expected)
{
    CHECK_TENSOR(module);
    char *text = kn_module_summary_with(module, &(kn_module_summary_params){.width = KN_WIDE});
    assert_non_null(text);
    if (!strstr(text, expected))
        fail_msg("%s is not in:\n%s", expected, text);
    kn_free(text);
    kn_module_free(module);
}

TENSOR_TEST(they_print_as_in_pytorch)
{
    check_printed(kn_nn_l1_loss(KN_REDUCTION_MEAN), "L1Loss()");
    check_printed(kn_nn_ctc_loss(), "CTCLoss()");
    check_printed(kn_nn_cosine_similarity(), "CosineSimilarity()");
    check_printed(kn_nn_group_norm(.num_groups = 2, .num_channels = 4), "GroupNorm(2, 4, eps=1e-05, affine=True)");
    check_printed(kn_nn_instance_norm2d(.num_features = 3),
                  "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False)");
    check_printed(kn_nn_rms_norm(KN_SHAPE(4)), "RMSNorm((4,), eps=None, elementwise_affine=True)");
    check_printed(kn_nn_local_response_norm(2), "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)");
    check_printed(kn_nn_batch_norm3d(.num_features = 2),
                  "BatchNorm3d(2, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)");
}

TENSOR_TEST(what_does_not_fit_is_refused)
{
    kn_tensor *x = kn_ones(KN_SHAPE(2, 6)), *lengths = kn_full(KN_SHAPE(2), 3, .dtype = KN_I64);
    assert_null(kn_group_norm(x, 4));
    CHECK_ERROR(KN_ERR_SHAPE, "group_norm", "6 channels", "num_groups (4)");
    assert_null(kn_instance_norm(kn_ones(KN_SHAPE(2, 3, 1))));
    CHECK_ERROR(KN_ERR_SHAPE, "instance_norm", "more than 1 value");
    assert_null(kn_nn_group_norm(.num_groups = 2, .num_channels = 3));
    CHECK_ERROR(KN_ERR_ARGUMENT, "GroupNorm", "divisible");
    assert_null(kn_huber_loss(x, x, .delta = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "huber_loss: delta must be greater than 0, not 0");
    assert_null(kn_binary_cross_entropy(x, kn_ones(KN_SHAPE(6))));
    CHECK_ERROR(KN_ERR_SHAPE, "binary_cross_entropy", "does not have the shape");
    assert_null(kn_multi_margin_loss(x, classes(), .p = 3));
    CHECK_ERROR(KN_ERR_ARGUMENT, "multi_margin_loss: p must be from 1 to 2, not 3");
    assert_null(kn_gumbel_softmax(x, .tau = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "gumbel_softmax", "tau (0)");
    assert_null(kn_ctc_loss(kn_ones(KN_SHAPE(3, 2, 4)), kn_ones(KN_SHAPE(2, 2), .dtype = KN_I64), lengths, lengths,
                            .blank = 4));
    CHECK_ERROR(KN_ERR_ARGUMENT, "ctc_loss", "blank (4)", "4 classes");
}

/* A label out of range, and a target longer than its row, are reported by the device. */
TENSOR_TEST(what_the_device_finds_is_reported)
{
    kn_tensor *x = kn_log_softmax(kn_ones(KN_SHAPE(3, 2, 4)), 2), *three = kn_full(KN_SHAPE(2), 3, .dtype = KN_I64);
    kn_tensor *labels = kn_full(KN_SHAPE(2, 3), 4, .dtype = KN_I64);
    double value;
    kn_tensor *loss = kn_ctc_loss(x, labels, three, three);
    assert_int_equal(kn_item(loss, &value), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "ctc_loss", "index 4", "size 4");
    loss = kn_ctc_loss(x, kn_ones(KN_SHAPE(2, 2), .dtype = KN_I64), three, three);
    assert_int_equal(kn_item(loss, &value), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "ctc_loss", "index 3", "size 3");
}

/* One-hot, with the gradient of the soft sample; the frequencies are the probabilities. */
TENSOR_TEST(hard_samples_are_one_hot)
{
    kn_manual_seed(3);
    kn_tensor *x = kn_from_data(((float[]){0, 1, 2}), KN_SHAPE(3), .requires_grad = true);
    kn_tensor *y = kn_gumbel_softmax(kn_expand(x, KN_SHAPE(20000, 3)), .tau = 0.5, .hard = true);
    kn_tensor *frequencies = kn_mean_dims(y, (const int[]){0}, 1, false), *p = kn_softmax(x, 0);
    const double far = value_of(kn_max(kn_abs(kn_sub(frequencies, p))));
    assert_true(far < 0.02);
    assert_true(value_of(kn_max(kn_abs(kn_sub(kn_sum_dims(y, (const int[]){1}, 1, false), kn_ones(KN_SHAPE(1)))))) <
                1e-5);
    CHECK_OK(kn_backward(kn_sum(kn_square(y))));
    assert_non_null(kn_grad(x));
}

/* Drawn in bfloat16, 0.4% of the noise would be infinite, and such classes never sampled. */
TENSOR_TEST(noise_of_halves_is_finite)
{
    kn_tensor *x = kn_mul_scalar(kn_eye(2, 2, .dtype = KN_BF16), 200);
    kn_tensor *y = kn_gumbel_softmax(kn_expand(x, KN_SHAPE(5000, 2, 2)));
    CHECK_DTYPE(y, KN_BF16);
    assert_true(value_of(kn_max(kn_abs(kn_sub(y, kn_eye(2, 2, .dtype = KN_BF16))))) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(losses_are_their_functions),        TEST(weights_are_buffers),      TEST(triplets_take_any_distance),
        TEST(instances_update_their_estimates),  TEST(they_print_as_in_pytorch), TEST(what_does_not_fit_is_refused),
        TEST(what_the_device_finds_is_reported), TEST(hard_samples_are_one_hot), TEST(noise_of_halves_is_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
