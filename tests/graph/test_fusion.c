/* test_fusion.c - chains of elementwise operations give the same bits as one kernel as they do as many. */
#include "fusion_case.h"

#include <string.h>

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static kn_dtype dtype = KN_F32;

static void two_matrices_and_a_row(kn_tensor *inputs[4])
{
    inputs[0] = fusion_input("a", KN_SHAPE(7, 33), dtype);
    inputs[1] = fusion_input("b", KN_SHAPE(7, 33), dtype);
    inputs[2] = fusion_input("row", KN_SHAPE(33), dtype);
}

static void a_leaf(kn_tensor *inputs[4])
{
    inputs[0] = fusion_input("x", KN_SHAPE(5, 21), dtype);
    CHECK_OK(kn_set_requires_grad(inputs[0], true));
}

/* --- chains ------------------------------------------------------------------------------------------------------- */

/* GELU by its formula: eight operations. */
static kn_tensor *written_gelu(kn_tensor *x)
{
    kn_tensor *cube = kn_mul(kn_mul(x, x), x);
    kn_tensor *inner = kn_mul_scalar(kn_add(x, kn_mul_scalar(cube, 0.044715)), 0.7978845608028654);
    return kn_mul(kn_mul_scalar(x, 0.5), kn_add_scalar(kn_tanh(inner), 1));
}

static void gelu(fusion_run *run, kn_tensor *const *inputs) { fusion_result(run, written_gelu(inputs[0])); }

static void one_kernel_for_a_chain(void **state)
{
    (void)state;
    const kn_dtype dtypes[] = {KN_F32, KN_F64, KN_F16, KN_BF16};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (dtypes[i] == KN_F64 && !check_has_f64())
            continue;
        dtype = dtypes[i];
        fusion_compare(gelu, two_matrices_and_a_row, 1);
    }
    dtype = KN_F32;
}

static void broadcasts(fusion_run *run, kn_tensor *const *inputs)
{
    kn_tensor *scaled = kn_mul(kn_sub(inputs[0], inputs[2]), kn_exp(inputs[2])); /* another shape in between */
    fusion_result(run, kn_relu(kn_add(scaled, kn_select(inputs[1], 0, 3))));
    fusion_result(run, kn_sigmoid(kn_add(kn_t(kn_narrow(inputs[0], 1, 0, 7)), kn_narrow(inputs[1], 1, 2, 7))));
}

static void views_and_broadcasts(void **state)
{
    (void)state;
    fusion_compare(broadcasts, two_matrices_and_a_row, 0);
}

static void mixed(fusion_run *run, kn_tensor *const *inputs)
{
    kn_tensor *half = kn_to_dtype(inputs[0], KN_F16), *positive = kn_gt(inputs[1], inputs[0]);
    fusion_result(run, kn_add(kn_mul(half, inputs[1]), half));
    fusion_result(run, kn_where(positive, kn_tanh(inputs[0]), kn_neg(inputs[1])));
    fusion_result(run, kn_mul(kn_to_dtype(kn_mul_scalar(inputs[1], 10), KN_I32), kn_to_dtype(positive, KN_I32)));
    fusion_result(run, kn_to_dtype(kn_to_dtype(inputs[0], check_has_f64() ? KN_F64 : KN_F16), KN_BF16));
    fusion_result(run, kn_gelu(kn_leaky_relu(inputs[0])));
}

static void dtypes_and_conditions(void **state)
{
    (void)state;
    fusion_compare(mixed, two_matrices_and_a_row, 0);
}

/* More operations, numbers and operands than one kernel takes. */
static void long_chain(fusion_run *run, kn_tensor *const *inputs)
{
    kn_tensor *x = inputs[0], *kept[20];
    for (int i = 0; i < 60; i++) {
        x = i % 3 ? kn_add_scalar(x, 0.01 * i) : kn_mul(x, inputs[1]);
        if (i % 3 == 0)
            kept[i / 3] = x;
    }
    fusion_result(run, x);
    kn_tensor *sum = kept[0];
    for (int i = 1; i < 20; i++)
        sum = kn_add(sum, kept[i]);
    fusion_result(run, sum);
    kn_tensor *many[20], *total = inputs[0];
    for (int i = 0; i < 20; i++)
        many[i] = kn_contiguous(kn_add_scalar(kn_narrow(inputs[2], 0, i, 1), i));
    for (int i = 0; i < 20; i++)
        total = kn_add(total, many[i]);
    fusion_result(run, total);
}

static void chains_beyond_the_limits(void **state)
{
    (void)state;
    fusion_compare(long_chain, two_matrices_and_a_row, 0);
}

static void empty_inputs(kn_tensor *inputs[4])
{
    inputs[0] = kn_zeros(KN_SHAPE(0, 3));
    inputs[1] = kn_full(KN_SCALAR, 2);
}

static void of_nothing(fusion_run *run, kn_tensor *const *inputs)
{
    fusion_result(run, kn_tanh(kn_mul(inputs[0], inputs[1])));
    fusion_result(run, kn_exp(kn_mul(inputs[1], inputs[1])));
}

static void nothing_and_scalars(void **state)
{
    (void)state;
    fusion_compare(of_nothing, empty_inputs, 1);
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

static void train_gelu(fusion_run *run, kn_tensor *const *inputs)
{
    kn_tensor *y = written_gelu(inputs[0]);
    CHECK_OK(kn_backward_with(y, kn_full_like(kn_detach(y), 0.5), false));
    fusion_result(run, kn_grad(inputs[0]));
    fusion_result(run, kn_detach(y));
}

static void gradients_of_a_chain(void **state)
{
    (void)state;
    const kn_dtype dtypes[] = {KN_F32, KN_F16};
    for (size_t i = 0; i < 2; i++) {
        dtype = dtypes[i];
        fusion_compare(train_gelu, a_leaf, 0);
    }
    dtype = KN_F32;
}

/* --- the profiler ------------------------------------------------------------------------------------------------- */

TENSOR_TEST(the_parts_are_named)
{
    kn_tensor *inputs[4];
    two_matrices_and_a_row(inputs);
    kn_graph *graph = kn_graph_new();
    kn_tensor *y;
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        y = kn_retain(kn_tanh(kn_mul(inputs[0], inputs[1])));
    }
    char *dump = kn_graph_debug_dump(graph);
    assert_non_null(strstr(dump, "fused: mul, tanh"));
    kn_free(dump);
    CHECK_OK(kn_graph_replay(graph));
    kn_graph_free(graph);
    kn_release(y);
}

/* Off: by the flag, and for a block. */
TENSOR_TEST(it_can_be_turned_off)
{
    kn_tensor *inputs[4];
    two_matrices_and_a_row(inputs);
    for (int i = 0; i < 2; i++) {
        kn_graph *graph = kn_graph_new();
        kn_tensor *y;
        kn_set_fusion(i != 0);
        {
            KN_FUSE(i == 0);
            KN_GRAPH_CAPTURE(graph, NULL);
            KN_SCOPE;
            y = kn_retain(kn_tanh(kn_mul(inputs[0], inputs[1])));
        }
        assert_int_equal(kn_graph_command_count(graph), i == 0 ? 1 : 2);
        kn_graph_free(graph);
        kn_release(y);
    }
    kn_set_fusion(true);
}

/* Each value is used twice by the next: a walk that follows every use would not end. */
static void squares(fusion_run *run, kn_tensor *const *inputs)
{
    kn_tensor *x = inputs[0];
    for (int i = 0; i < 45; i++)
        x = kn_mul(x, x);
    fusion_result(run, x);
    fusion_result(run, kn_sum(x));
}

static void values_used_twice(void **state)
{
    (void)state;
    fusion_compare(squares, two_matrices_and_a_row, 0);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(one_kernel_for_a_chain),   TEST(views_and_broadcasts), TEST(dtypes_and_conditions),
        TEST(chains_beyond_the_limits), TEST(nothing_and_scalars),  TEST(gradients_of_a_chain),
        TEST(the_parts_are_named),      TEST(it_can_be_turned_off), TEST(values_used_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
