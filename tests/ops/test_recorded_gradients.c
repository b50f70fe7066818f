/* test_recorded_gradients.c - gradients with create_graph: equal to those without it for every operator, and their own
 * gradients at numbers where a formula may divide 0 by 0 or multiply 0 by infinity. */
#include "ops/dispatch/operators.h"
#include "ops/sample_leaves.h"
#include "support/check.h"

#include <locale.h>
#include <math.h>
#include <string.h>

/* --- every operator ----------------------------------------------------------------------------------------------- */

static kn_tensor *loss_of(const kn_op *op, const kn_op_sample *sample)
{
    kn_tensor *inputs[KN_SAMPLE_INPUTS], *y[KN_OP_MAX_OUTPUTS] = {NULL};
    const kn_op_info info = kn_op_describe(op);
    memcpy(inputs, sample->inputs, sizeof inputs);
    if (info.in_place)
        inputs[0] = kn_clone(inputs[0]); /* a leaf is not changed */
    kn_manual_seed(1);
    if (kn_op_call(op, inputs, sample->num_inputs, sample->params, y, info.num_outputs) != KN_OK)
        return NULL;
    return kn_sum(kn_mul(y[0], y[0]));
}

static void check_one(const kn_op *op)
{
    kn_op_sample sample;
    kn_tensor *leaves[KN_SAMPLE_INPUTS], *plain[KN_SAMPLE_INPUTS], *recorded[KN_SAMPLE_INPUTS];
    kn_manual_seed(7);
    CHECK_OK(kn_op_sample_make(&sample, op, KN_F64, true));
    const int count = sample_leaves(&sample, leaves);
    kn_tensor *loss = loss_of(op, &sample);
    CHECK_OK(kn_autograd_grad(&loss, 1, leaves, count, plain, .retain_graph = true, .allow_unused = true));
    CHECK_OK(kn_autograd_grad(&loss, 1, leaves, count, recorded, .create_graph = true, .allow_unused = true));
    for (int i = 0; i < count; i++) {
        bool equal = !plain[i] == !recorded[i];
        if (plain[i] && recorded[i])
            CHECK_OK(kn_allclose(plain[i], recorded[i], &equal, .rtol = 1e-9, .atol = 1e-12, .equal_nan = true));
        if (!equal)
            fail_msg("%s: the recorded gradient %d differs", kn_op_describe(op).name, i);
    }
    kn_op_sample_free(&sample);
}

TENSOR_TEST_F64(recording_changes_no_gradient)
{
    for (int i = 0; i < kn_op_count(); i++) {
        KN_SCOPE;
        if (kn_op_describe(kn_op_at(i)).is_twice_differentiable)
            check_one(kn_op_at(i));
    }
}

/* --- certain numbers ---------------------------------------------------------------------------------------------- */

#define INF (double)INFINITY
static kn_tensor *host(const double values[3]) { return kn_from_data(values, KN_SHAPE(3), .dtype = KN_F64); }

#define CASE(id, ...)                                                                                                  \
    static kn_tensor *id(kn_tensor *x) { return __VA_ARGS__; }
CASE(power_of_0, kn_pow_scalar(x, 0))
CASE(swish, kn_hardswish(x))
CASE(elu_of_2, kn_elu(x, .alpha = 2))
CASE(celu_of_half, kn_celu(x, .alpha = 0.5))
CASE(selu, kn_selu(x))
CASE(bessel, kn_i1(x))
CASE(scaled_bessel, kn_i1e(x))
CASE(signs, kn_copysign(x, kn_full(KN_SHAPE(3), -2, .dtype = KN_F64)))
CASE(cardinal, kn_sinc(x))
CASE(deviation, kn_std_dims(x, NULL, 0, 0, false))
CASE(fraction, kn_frexp(x, NULL))
CASE(gated_infinity, kn_glu(kn_cat(KN_TENSORS(kn_full(KN_SHAPE(3), INF, .dtype = KN_F64), x), 0), 0))
CASE(targets, kn_binary_cross_entropy_with_logits(host((double[]){(double)INFINITY, -(double)INFINITY, 2}), x, NULL,
                                                  NULL, KN_REDUCTION_NONE))
CASE(ignored, kn_cross_entropy(kn_unsqueeze(x, 0), kn_full(KN_SHAPE(1), -100, .dtype = KN_I64)))
CASE(empty_mean, kn_mean(kn_narrow(x, 0, 0, 0)))
CASE(empty_median, kn_median(kn_narrow(x, 0, 0, 0)))
CASE(of_nothing, kn_huber_loss(kn_narrow(x, 0, 0, 0), kn_narrow(x, 0, 1, 0)))

/* The first and the second gradient of the sum at x. */
typedef struct place {
    const char *name;
    kn_tensor *(*apply)(kn_tensor *x);
    double x[3], first[3], second[3];
} place;

#define SCALE 1.7580993408473768599 /* SELU's slope at 0 from below */
static const place places[] = {
    {"pow 0", power_of_0, {2, 0, -1}, {0, 0, 0}, {0, 0, 0}},
    {"hardswish", swish, {-INF, INF, 0}, {0, 1, 0.5}, {0, 0, 1 / 3.0}},
    {"elu", elu_of_2, {0, -INF, 1}, {2, 0, 1}, {0, 0, 0}},
    {"celu", celu_of_half, {0, -INF, INF}, {1, 0, 1}, {0, 0, 0}},
    {"selu", selu, {0, -INF, -0.0}, {SCALE, 0, SCALE}, {0, 0, 0}},
    {"i1", bessel, {0, 1, -1}, {0.5, 0.70090677376, 0.70090677376}, {0, 0.42941143423, -0.42941143423}},
    {"i1e", scaled_bessel, {0, 1e-11, -1e-11}, {0.5, 0.5, 0.5}, {0, -1, 1}},
    {"copysign", signs, {0, 1, -1}, {0, -1, 1}, {0, 0, 0}},
    {"sinc", cardinal, {0, 1e-6, 1}, {0, -3.28986813369e-6, -1}, {-3.28986813370, -3.28986813369, 2}},
    {"std", deviation, {3, 3, 3}, {0, 0, 0}, {0, 0, 0}},
    {"frexp", fraction, {0, 3, -INF}, {1, 0.25, 1}, {0, 0, 0}},
    {"glu", gated_infinity, {2, -1, 1}, {INF, INF, INF}, {-INF, INF, -INF}},
    {"bce's targets", targets, {0, 1, 0.5}, {-INF, INF, -2}, {0, 0, 0}},
    {"cross_entropy of nothing", ignored, {1, 2, 3}, {0, 0, 0}, {0, 0, 0}},
    {"mean of nothing", empty_mean, {1, 2, 3}, {0, 0, 0}, {0, 0, 0}},
    {"median of nothing", empty_median, {1, 2, 3}, {0, 0, 0}, {0, 0, 0}},
    {"huber_loss of nothing", of_nothing, {1, 2, 3}, {0, 0, 0}, {0, 0, 0}},
};

static void check_values_of(const char *name, const char *what, kn_tensor *gradient, const double expected[3])
{
    double found[3] = {0, 0, 0}; /* of a tensor that is not used */
    if (gradient)
        CHECK_OK(kn_read(gradient, found, sizeof found));
    for (int i = 0; i < 3; i++)
        if (!(found[i] == expected[i] || fabs(found[i] - expected[i]) <= 1e-10))
            fail_msg("%s: %s gradient %d is %.12g instead of %.12g", name, what, i, found[i], expected[i]);
}

/* The gradient of g in g * first, the vector-Jacobian product, is the first gradient, too. */
TENSOR_TEST_F64(at_certain_numbers)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        KN_SCOPE;
        const place *p = &places[i];
        kn_tensor *x = kn_from_data(p->x, KN_SHAPE(3), .dtype = KN_F64, .requires_grad = true);
        kn_tensor *y = p->apply(x), *weight, *first, *second[2] = {NULL};
        CHECK_OK(y ? KN_OK : KN_ERR_STATE);
        weight = kn_ones_like(y);
        CHECK_OK(kn_set_requires_grad(weight, true));
        CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &first, .grad_outputs = &weight, .create_graph = true));
        check_values_of(p->name, "first", first, p->first);
        if (!kn_requires_grad(first))
            continue;
        y = kn_sum(first);
        CHECK_OK(kn_autograd_grad(&y, 1, ((kn_tensor *[]){x, weight}), 2, second, .allow_unused = true));
        check_values_of(p->name, "second", second[0], p->second);
        if (kn_numel(weight) == 3)
            check_values_of(p->name, "weight's", second[1], p->first);
        else if (second[1])
            CHECK_VALUES(second[1], p->first[0] + p->first[1] + p->first[2]);
    }
}

/* cos(x) - sin(x) / x would leave no digits. */
TENSOR_TEST(sinc_near_0_in_float32)
{
    kn_tensor *x = kn_full(KN_SHAPE(1), 1e-4, .requires_grad = true);
    CHECK_OK(kn_backward(kn_sinc(x)));
    double slope;
    CHECK_OK(kn_item(kn_grad(x), &slope));
    assert_true(fabs(slope + 3.28986805e-4) < 1e-9);
}

TENSOR_TEST(atan2_at_0)
{
    kn_tensor *y = kn_from_data(((float[]){0, 3, 1}), KN_SHAPE(3), .requires_grad = true);
    kn_tensor *x = kn_from_data(((float[]){0, 0, 2}), KN_SHAPE(3), .requires_grad = true);
    CHECK_OK(kn_backward(kn_sum(kn_atan2(y, x))));
    CHECK_VALUES(kn_grad(y), 0, 0, 0.4);
    CHECK_VALUES(kn_grad(x), 0, -1 / 3.0, -0.2);
}

/* Of vectors without a symmetric loss, as in PyTorch. */
/* No infinities cancel each other: the slope of the target is -x about, whatever the weight of the positives. */
TENSOR_TEST(target_of_infinite_logits)
{
    const float logits[] = {-INFINITY, INFINITY}, weights[] = {0.5F, 0.5F};
    kn_tensor *x = kn_from_data(logits, KN_SHAPE(2)), *v = kn_from_data(weights, KN_SHAPE(2));
    kn_tensor *t = kn_full(KN_SHAPE(2), 0.5, .requires_grad = true), *gradient;
    kn_tensor *loss = kn_binary_cross_entropy_with_logits(x, t, NULL, v, KN_REDUCTION_SUM);
    for (int recorded = 0; recorded < 2; recorded++) {
        CHECK_OK(kn_autograd_grad(&loss, 1, &t, 1, &gradient, .retain_graph = true, .create_graph = recorded));
        CHECK_VALUES(gradient, INFINITY, -INFINITY);
    }
}

/* The gradient for the incoming gradient is 0 where a weight's is, also at an infinite number. */
TENSOR_TEST(prelu_of_infinity)
{
    const float numbers[] = {INFINITY, -2};
    kn_tensor *x = kn_from_data(numbers, KN_SHAPE(2)), *weight = kn_full(KN_SHAPE(1), 0.5, .requires_grad = true);
    kn_tensor *g = kn_full(KN_SHAPE(2), 3, .requires_grad = true), *y = kn_prelu(x, weight), *first, *second;
    CHECK_OK(kn_autograd_grad(&y, 1, &weight, 1, &first, .grad_outputs = &g, .create_graph = true));
    CHECK_VALUES(first, -6);
    CHECK_OK(kn_autograd_grad(&first, 1, &g, 1, &second));
    CHECK_VALUES(second, 0, -2);
}

/* No probabilities: the mean is NaN, the gradient for the incoming gradient 0. */
TENSOR_TEST(cross_entropy_of_nothing)
{
    kn_tensor *x = kn_ones(KN_SHAPE(0, 7), .requires_grad = true), *y = kn_cross_entropy(x, kn_ones(KN_SHAPE(0, 7)));
    kn_tensor *g = kn_full(KN_SCALAR, 3, .requires_grad = true), *first, *second;
    CHECK_VALUES(y, NAN);
    CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &first, .grad_outputs = &g, .create_graph = true));
    kn_tensor *sum = kn_sum(first);
    CHECK_OK(kn_autograd_grad(&sum, 1, &g, 1, &second));
    CHECK_VALUES(second, 0);
}

/* The distance is 0, and so are its gradient and the gradient for the incoming one. */
TENSOR_TEST(cdist_of_equal_rows)
{
    kn_tensor *x = kn_ones(KN_SHAPE(26, 2), .requires_grad = true), *y = kn_cdist(x, kn_ones(KN_SHAPE(1, 2)), 2);
    kn_tensor *g = kn_full(KN_SHAPE(26, 1), 3, .requires_grad = true), *first, *second;
    CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &first, .grad_outputs = &g, .create_graph = true));
    kn_tensor *sum = kn_sum(first);
    CHECK_OK(kn_autograd_grad(&sum, 1, &g, 1, &second));
    CHECK_VALUES(kn_sum(kn_abs(first)), 0);
    CHECK_VALUES(kn_sum(kn_abs(second)), 0);
}

TENSOR_TEST(pdist_of_equal_rows)
{
    const double norms[] = {0, 1, 2, 3, INFINITY};
    for (int i = 0; i < 5; i++) {
        kn_tensor *x = kn_ones(KN_SHAPE(3, 20), .requires_grad = true), *y = kn_pdist(x, norms[i]);
        kn_tensor *g = kn_full(KN_SHAPE(3), 3, .requires_grad = true), *plain, *first, *second;
        CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &plain, .grad_outputs = &g, .retain_graph = true));
        CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &first, .grad_outputs = &g, .create_graph = true));
        kn_tensor *sum = kn_sum(first);
        CHECK_OK(kn_autograd_grad(&sum, 1, &g, 1, &second));
        CHECK_VALUES(kn_sum(kn_abs(y)), 0);
        CHECK_VALUES(kn_sum(kn_abs(plain)), 0);
        CHECK_VALUES(kn_sum(kn_abs(first)), 0);
        CHECK_VALUES(kn_sum(kn_abs(second)), 0);
    }
}

TENSOR_TEST_F64(eigh_has_a_symmetric_gradient)
{
    kn_tensor *x = kn_from_data(((double[]){2, 0.5, 0.5, -1}), KN_SHAPE(2, 2), .dtype = KN_F64, .requires_grad = true);
    kn_tensor *vectors, *gradient;
    assert_non_null(kn_linalg_eigh(x, false, &vectors));
    CHECK_OK(kn_backward(kn_sum(kn_select(vectors, 0, 0))));
    gradient = kn_grad(x);
    bool equal;
    CHECK_OK(kn_allclose(gradient, kn_t(gradient), &equal));
    assert_true(equal);
}

/* Of an index without elements the source may have any shape, which its gradient has, too. */
TENSOR_TEST(source_of_no_places)
{
    kn_tensor *x = kn_ones(KN_SHAPE(5, 3), .requires_grad = true), *index = kn_zeros(KN_SHAPE(5, 0), .dtype = KN_I64);
    kn_tensor *sources[] = {kn_ones(KN_SHAPE(4), .requires_grad = true),
                            kn_ones(KN_SHAPE(2, 3), .requires_grad = true)};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(kn_backward(kn_sum(kn_scatter_add(x, 1, index, sources[i]))));
        CHECK_OK(kn_backward(kn_sum(kn_scatter_reduce(x, 1, index, sources[i], KN_SCATTER_SUM))));
    }
    CHECK_VALUES(kn_grad(sources[0]), 0, 0, 0, 0);
    CHECK_VALUES(kn_grad(sources[1]), 0, 0, 0, 0, 0, 0);
}

/* The derivative of deg2rad is a text with a number in it. */
TENSOR_TEST(numbers_do_not_follow_the_locale)
{
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL && setlocale(LC_NUMERIC, "de_DE") == NULL)
        skip();
    kn_tensor *x = kn_full(KN_SHAPE(2), 90, .requires_grad = true), *y = kn_sum(kn_deg2rad(x)), *gradient = NULL;
    const kn_status status = kn_autograd_grad(&y, 1, &x, 1, &gradient, .create_graph = true);
    setlocale(LC_NUMERIC, "C");
    CHECK_OK(status);
    CHECK_VALUES(gradient, 0.017453292519943295, 0.017453292519943295);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(recording_changes_no_gradient), TEST(at_certain_numbers),
        TEST(sinc_near_0_in_float32),        TEST(atan2_at_0),
        TEST(target_of_infinite_logits),     TEST(prelu_of_infinity),
        TEST(cross_entropy_of_nothing),      TEST(cdist_of_equal_rows),
        TEST(pdist_of_equal_rows),           TEST(eigh_has_a_symmetric_gradient),
        TEST(source_of_no_places),           TEST(numbers_do_not_follow_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
