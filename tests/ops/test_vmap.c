/* test_vmap.c - every operator on tensors that stand for batches gives what it gives for each sample, with gradients;
 * operators that have a rule compute all samples with one call; levels, refusals. */
#include "cli/op_samples.h"
#include "ops/vmap/dispatch.h"
#include "support/check.h"
#include "support/full.h"

#include <math.h>
#include <string.h>

#define SAMPLES 3
#define MOST 8

/* --- every operator ----------------------------------------------------------------------------------------------- */

/* Inputs of which some, the bits of `batched`, are batches: wholes[i] [SAMPLES, ...]. */
typedef struct one {
    const kn_op *op;
    kn_op_info info;
    kn_op_sample sample;
    unsigned batched;
    kn_tensor *wholes[KN_SAMPLE_INPUTS];
} one;

static kn_tensor *batch_of(kn_tensor *x)
{
    kn_tensor *samples[SAMPLES];
    for (int s = 0; s < SAMPLES; s++)
        samples[s] = kn_dtype_is_floating(kn_dtype_of(x)) ? kn_mul_scalar(kn_detach(x), 1 - 0.125 * s) : x;
    kn_tensor *whole = kn_stack(samples, SAMPLES, 0);
    CHECK_OK(kn_set_requires_grad(whole, kn_requires_grad(x)));
    return whole;
}

static void make_wholes(one *o, unsigned batched)
{
    o->batched = batched;
    for (int i = 0; i < o->sample.num_inputs; i++)
        o->wholes[i] = batched >> i & 1 ? batch_of(o->sample.inputs[i]) : NULL;
}

/* What in-place operators change is a copy. */
static kn_tensor *input_of(const one *o, int i, kn_tensor *x) { return i == 0 && o->info.in_place ? kn_clone(x) : x; }

static void call(const one *o, kn_tensor **inputs, kn_tensor **outputs)
{
    memset(outputs, 0, MOST * sizeof *outputs);
    CHECK_OK(kn_op_call(o->op, inputs, o->sample.num_inputs, o->sample.params, outputs, o->info.num_outputs));
}

/* In memory of its own, where as_strided counts from. */
static kn_tensor *sample_of(kn_tensor *whole, int s) { return kn_clone(kn_select(whole, 0, s)); }

static void one_by_one(const one *o, kn_tensor **outputs)
{
    kn_tensor *inputs[KN_SAMPLE_INPUTS], *results[SAMPLES][MOST], *of_one[SAMPLES];
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < o->sample.num_inputs; i++)
            inputs[i] = input_of(o, i, o->wholes[i] ? sample_of(o->wholes[i], s) : o->sample.inputs[i]);
        call(o, inputs, results[s]);
    }
    for (int k = 0; k < o->info.num_outputs; k++) {
        for (int s = 0; s < SAMPLES; s++)
            of_one[s] = results[s][k];
        outputs[k] = of_one[0] ? kn_stack(of_one, SAMPLES, 0) : NULL;
    }
}

static kn_status count_calls(kn_call *applied, bool after, void *user)
{
    one *o = user;
    if (!after && applied->op == o->op)
        o->info.num_params++; /* the calls */
    return KN_OK;
}

/* Returns how often the operator was applied. */
static int at_once(const one *o, kn_tensor **outputs)
{
    kn_tensor *inputs[KN_SAMPLE_INPUTS], *results[MOST];
    one counted = *o;
    counted.info.num_params = 0;
    const int level = kn_vmap_begin(SAMPLES);
    assert_int_equal(level, 1);
    for (int i = 0; i < o->sample.num_inputs; i++) {
        kn_tensor *x = input_of(o, i, o->wholes[i] ? o->wholes[i] : o->sample.inputs[i]);
        inputs[i] = o->wholes[i] ? kn_vmap_in(x, 0) : x;
    }
    const kn_op_observation before = kn_op_set_observer(count_calls, &counted);
    call(o, inputs, results);
    kn_op_set_observer(before.function, before.user);
    for (int k = 0; k < o->info.num_outputs; k++)
        outputs[k] = results[k] ? kn_vmap_out(results[k], 0) : NULL;
    kn_vmap_end(level);
    assert_int_equal(kn_vmap_level(), 0);
    return counted.info.num_params;
}

static void check_alike(const one *o, const char *what, kn_tensor *actual, kn_tensor *expected)
{
    double distance = 0;
    if (!actual != !expected)
        fail_msg("%s, batches %#x: %s is %s", o->info.name, o->batched, what, actual ? "there" : "missing");
    if (!actual)
        return;
    if (!kn_same_shape(actual, expected) || kn_dtype_of(actual) != kn_dtype_of(expected)) {
        char is[KN_DESCRIBE], wanted[KN_DESCRIBE];
        fail_msg("%s, batches %#x: %s is %s, not %s", o->info.name, o->batched, what,
                 kn_tensor_describe(is, sizeof is, actual), kn_tensor_describe(wanted, sizeof wanted, expected));
    }
    if (kn_numel(actual) == 0)
        return;
    kn_tensor *a = kn_nan_to_num(kn_to_dtype(kn_detach(actual), KN_F64)),
              *b = kn_nan_to_num(kn_to_dtype(kn_detach(expected), KN_F64));
    CHECK_OK(kn_item(kn_max(kn_div(kn_abs(kn_sub(a, b)), kn_add_scalar(kn_abs(b), 1))), &distance));
    if (!(distance <= 1e-11))
        fail_msg("%s, batches %#x: %s is off by %g", o->info.name, o->batched, what, distance);
}

static bool draws(const kn_op *op)
{
    for (int i = 0; kn_op_param_at(op, i); i++)
        if (kn_op_param_at(op, i)->kind == KN_PARAM_GENERATOR)
            return true;
    return false;
}

static kn_tensor *gradient(const one *o, kn_tensor *y, int i)
{
    kn_tensor *found = NULL, *weights = kn_add_scalar(kn_cos(kn_detach(y)), 1.5);
    CHECK_OK(kn_autograd_grad(&y, 1, &o->wholes[i], 1, &found, .grad_outputs = &weights, .retain_graph = true,
                              .allow_unused = true));
    return found ? found : kn_zeros_like(o->wholes[i]);
}

static void check_gradients(const one *o, kn_tensor *actual, kn_tensor *expected)
{
    for (int i = 0; i < o->sample.num_inputs; i++)
        if (o->wholes[i] && kn_requires_grad(o->wholes[i]) && kn_requires_grad(expected))
            check_alike(o, "a gradient", gradient(o, actual, i), gradient(o, expected, i));
}

/* Returns how often the operator was applied for the batch. */
static int check_batches(one *o, unsigned batched)
{
    KN_SCOPE;
    kn_tensor *actual[MOST] = {NULL}, *expected[MOST] = {NULL};
    make_wholes(o, batched);
    one_by_one(o, expected);
    const int calls = at_once(o, actual);
    for (int k = 0; k < o->info.num_outputs && !draws(o->op); k++)
        check_alike(o, "a result", actual[k], expected[k]);
    if (!draws(o->op) && expected[0])
        check_gradients(o, actual[0], expected[0]);
    return calls;
}

static unsigned all_inputs(const one *o)
{
    unsigned all = 0;
    for (int i = 0; i < o->sample.num_inputs; i++)
        if (o->sample.inputs[i])
            all |= 1u << i;
    return all;
}

/* The samples of these change the running estimates one after another. */
static bool must_repeat(const kn_op *op) { return strcmp(op->name, "batch_norm") == 0; }

/* A rule is there to call the operator once. */
static void check_once(const one *o, int calls)
{
    if (kn_vmap_rule_of(o->op) && calls >= SAMPLES && !must_repeat(o->op))
        fail_msg("%s, batches %#x: it has a rule, but was called for each sample", o->info.name, o->batched);
}

static void check_operator(const kn_op *op)
{
    KN_SCOPE;
    one o = {.op = op, .info = kn_op_describe(op)};
    CHECK_OK(kn_op_sample_make(&o.sample, op, KN_F64, true));
    const unsigned all = all_inputs(&o);
    check_batches(&o, all);
    for (int i = 0; i < o.sample.num_inputs; i++)
        if (all >> i & 1 && (i == 0 || !o.info.in_place)) {
            const int calls = check_batches(&o, 1u << i);
            if (i == 0)
                check_once(&o, calls);
        }
    kn_op_sample_free(&o.sample);
}

static void batches_give_what_their_samples_give(void **state)
{
    (void)state;
    check_needs_f64();
    for (int i = 0; i < kn_op_count(); i++)
        check_operator(kn_op_at(i));
}

/* --- levels ------------------------------------------------------------------------------------------------------- */

static kn_tensor *counting(int64_t rows, int64_t columns)
{
    return kn_reshape(kn_arange(0, (double)(rows * columns), 1, .dtype = KN_F32), KN_SHAPE(rows, columns));
}

TENSOR_TEST(samples_go_in_along_any_dimension_and_come_out_along_any)
{
    const int level = kn_vmap_begin(3);
    kn_tensor *x = kn_vmap_in(counting(2, 3), 1);
    CHECK_SHAPE(x, 2);
    assert_int_equal(kn_numel(x), 2);
    CHECK_VALUES(kn_vmap_out(x, 1), 0, 1, 2, 3, 4, 5);
    CHECK_VALUES(kn_vmap_out(kn_mul_scalar(x, 2), 0), 0, 6, 2, 8, 4, 10);
    CHECK_VALUES(kn_vmap_out(kn_sum(x), 0), 3, 5, 7);
    kn_tensor *same = kn_vmap_out(kn_ones(KN_SHAPE(2)), -1);
    CHECK_SHAPE(same, 2, 3);
    kn_vmap_end(level);
}

TENSOR_TEST(one_inside_another)
{
    kn_tensor *a = kn_from_data(((float[]){1, 2}), KN_SHAPE(2)),
              *b = kn_from_data(((float[]){10, 20, 30}), KN_SHAPE(3));
    const int outer = kn_vmap_begin(2);
    kn_tensor *x = kn_vmap_in(a, 0);
    const int inner = kn_vmap_begin(3);
    assert_int_equal(kn_vmap_level(), 2);
    kn_tensor *y = kn_vmap_in(b, 0), *product = kn_mul(x, y);
    assert_int_equal(kn_vmap_level_of(x), 1);
    assert_int_equal(kn_vmap_level_of(product), 2);
    assert_int_equal(kn_vmap_level_of(a), 0);
    assert_int_equal(kn_ndim(product), 0);
    kn_tensor *rows = kn_vmap_out(product, 0);
    CHECK_SHAPE(rows, 3);
    kn_vmap_end(inner);
    kn_tensor *table = kn_vmap_out(rows, 0);
    kn_vmap_end(outer);
    CHECK_SHAPE(table, 2, 3);
    CHECK_VALUES(table, 10, 20, 30, 20, 40, 60);
}

TENSOR_TEST(a_module_takes_samples)
{
    kn_module *layer = kn_nn_linear(.in_features = 3, .out_features = 2);
    kn_tensor *x = counting(4, 3), *expected = kn_forward(layer, x);
    const int level = kn_vmap_begin(4);
    kn_tensor *y = kn_vmap_out(kn_forward(layer, kn_vmap_in(x, 0)), 0);
    kn_vmap_end(level);
    double distance;
    CHECK_OK(kn_item(kn_max(kn_abs(kn_sub(y, expected))), &distance));
    assert_true(distance < 1e-6);
    kn_module_free(layer);
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

TENSOR_TEST(each_sample_has_its_own_gradient)
{
    kn_tensor *w = kn_from_data(((float[]){1, 2}), KN_SHAPE(2), .requires_grad = true), *x = counting(3, 2), *gradient;
    const int level = kn_vmap_begin(3);
    kn_tensor *own = kn_vmap_expand(w), *loss = kn_sum(kn_mul(own, kn_vmap_in(x, 0)));
    CHECK_OK(kn_autograd_grad(&loss, 1, &own, 1, &gradient));
    CHECK_SHAPE(gradient, 2);
    CHECK_VALUES(kn_vmap_out(gradient, 0), 0, 1, 2, 3, 4, 5);
    kn_vmap_end(level);
}

TENSOR_TEST(the_gradient_of_what_all_share_needs_expanding)
{
    kn_tensor *w = kn_ones(KN_SHAPE(2), .requires_grad = true), *gradient;
    const int level = kn_vmap_begin(3);
    kn_tensor *loss = kn_sum(kn_mul(w, kn_vmap_in(counting(3, 2), 0)));
    assert_int_equal(kn_autograd_grad(&loss, 1, &w, 1, &gradient), KN_ERR_BATCHED);
    CHECK_ERROR(KN_ERR_BATCHED, "input 0 is the same for all samples", "kn_vmap_expand");
    kn_vmap_end(level);
}

/* Through a vmap the samples' gradients add up, as those of any other operator. */
TENSOR_TEST(gradients_from_outside)
{
    kn_tensor *w = kn_ones(KN_SHAPE(2), .requires_grad = true), *x = counting(3, 2);
    const int level = kn_vmap_begin(3);
    kn_tensor *y = kn_vmap_out(kn_mul(w, kn_vmap_in(x, 0)), 0);
    kn_vmap_end(level);
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(w), 6, 9);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

TENSOR_TEST(values_are_not_there)
{
    float values[2];
    double value;
    kn_tensor *shared = kn_zeros(KN_SHAPE(2)), *w = kn_ones(KN_SHAPE(2), .requires_grad = true);
    const int level = kn_vmap_begin(3);
    kn_tensor *x = kn_vmap_in(counting(3, 2), 0);
    assert_int_equal(kn_item(kn_sum(x), &value), KN_ERR_BATCHED);
    CHECK_ERROR(KN_ERR_BATCHED, "stands for the samples of a batch inside vmap");
    assert_int_equal(kn_read(x, values, sizeof values), KN_ERR_BATCHED);
    kn_error_clear();
    assert_int_equal(kn_backward(kn_sum(kn_mul(w, x))), KN_ERR_BATCHED);
    kn_error_clear();
    assert_null(kn_add_(shared, x));
    CHECK_ERROR(KN_ERR_BATCHED, "add_", "the same for all samples of a batch");
    assert_null(kn_nonzero(x));
    CHECK_ERROR(KN_ERR_BATCHED, "nonzero");
    kn_vmap_end(level);
    assert_null(kn_mul_scalar(x, 2)); /* after its end */
    CHECK_ERROR(KN_ERR_BATCHED, "mul_scalar");
}

TENSOR_TEST(errors_are_those_of_a_sample)
{
    const int level = kn_vmap_begin(3);
    assert_null(kn_mm(kn_vmap_in(kn_ones(KN_SHAPE(3, 2, 4)), 0), kn_ones(KN_SHAPE(5, 2))));
    CHECK_ERROR(KN_ERR_SHAPE, "mm", "[2, 4]", "[5, 2]");
    assert_null(kn_bmm(kn_vmap_in(kn_ones(KN_SHAPE(3, 1, 2, 4)), 0), kn_ones(KN_SHAPE(2, 4, 2))));
    CHECK_ERROR(KN_ERR_SHAPE, "bmm", "not 1 and 2");
    assert_null(kn_as_strided(kn_vmap_in(kn_ones(KN_SHAPE(3, 4)), 0), KN_SHAPE(3), (int64_t[]){2}, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "as_strided");
    assert_null(kn_sum_dims(kn_vmap_in(kn_ones(KN_SHAPE(3, 2)), 0), (int[]){1}, 1, false));
    CHECK_ERROR(KN_ERR_ARGUMENT, "dimension 1 is out of range for a tensor of 1 dimensions");
    kn_vmap_end(level);
}

/* Each sample has a table of its own: an index beyond it is no row of the next one. */
TENSOR_TEST(indices_outside_a_samples_table)
{
    kn_tensor *tables = kn_ones(KN_SHAPE(3, 4, 2)), *indices = kn_full(KN_SHAPE(3, 2), 4.0, .dtype = KN_I64);
    const int level = kn_vmap_begin(3);
    kn_tensor *rows = kn_embedding(kn_vmap_in(indices, 0), kn_vmap_in(tables, 0));
    kn_vmap_end(level);
    CHECK_TENSOR(rows);
    assert_int_equal(kn_synchronize(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "embedding", "out of range");
}

TENSOR_TEST(bad_levels)
{
    assert_int_equal(kn_vmap_begin(0), 0);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_vmap_begin", "at least one sample, not 0");
    assert_null(kn_vmap_in(kn_ones(KN_SHAPE(2)), 0));
    CHECK_ERROR(KN_ERR_STATE, "kn_vmap_in", "kn_vmap_begin comes first");
    const int level = kn_vmap_begin(3);
    assert_null(kn_vmap_in(kn_ones(KN_SHAPE(2)), 0));
    CHECK_ERROR(KN_ERR_SHAPE, "kn_vmap_in", "float32 [2]", "the batch's size, 3");
    assert_null(kn_vmap_in(kn_ones(KN_SHAPE(3)), 1));
    kn_error_clear();
    assert_null(kn_vmap_in(NULL, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "`tensor` is NULL");
    while (kn_vmap_begin(2))
        ;
    CHECK_ERROR(KN_ERR_STATE, "kn_vmap_begin", "8 are open");
    kn_vmap_end(level);
    kn_vmap_end(level); /* again */
    assert_int_equal(kn_vmap_level(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_give_what_their_samples_give),
        cmocka_unit_test(samples_go_in_along_any_dimension_and_come_out_along_any),
        cmocka_unit_test(one_inside_another),
        cmocka_unit_test(a_module_takes_samples),
        cmocka_unit_test(each_sample_has_its_own_gradient),
        cmocka_unit_test(the_gradient_of_what_all_share_needs_expanding),
        cmocka_unit_test(gradients_from_outside),
        cmocka_unit_test(values_are_not_there),
        cmocka_unit_test(errors_are_those_of_a_sample),
        cmocka_unit_test(indices_outside_a_samples_table),
        cmocka_unit_test(bad_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
