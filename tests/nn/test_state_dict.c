/* test_state_dict.c - saving and loading modules: round trips, PyTorch's files, strictness, nothing changed on failure.
 */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/values.h"

#define FOLDER KOINE_BINARY_DIR "/tests/state_dict"

static kn_module *network(int64_t width)
{
    kn_module *net = kn_nn_sequential_of(NULL, 0);
    kn_nn_add_module(net, "conv1", kn_nn_conv2d(.in_channels = 1, .out_channels = width, .kernel_size = 3));
    kn_nn_add_module(net, "head", kn_nn_sequential(kn_nn_linear(.in_features = width, .out_features = 2)));
    CHECK_TENSOR(net);
    return net;
}

/* All parameters of both modules are bit for bit the same. */
static bool same_weights(kn_module *a, kn_module *b)
{
    kn_parameter_list left = kn_module_parameters(a), right = kn_module_parameters(b);
    bool same = left.count == right.count;
    for (int i = 0; same && i < left.count; i++) {
        size_t left_size, right_size;
        void *x = read_bytes(left.tensors[i], &left_size), *y = read_bytes(right.tensors[i], &right_size);
        same = x != NULL && y != NULL && left_size == right_size && memcmp(x, y, left_size) == 0;
        free(x);
        free(y);
    }
    return same;
}

TENSOR_TEST(a_saved_module_loads_into_another)
{
    kn_manual_seed(3);
    kn_module *net = network(8), *copy = network(8);
    assert_false(same_weights(net, copy));
    CHECK_OK(kn_module_save(net, FOLDER "/net.safetensors"));
    kn_tensor *weight = kn_module_get(copy, "conv1.weight");
    CHECK_OK(kn_module_load(copy, FOLDER "/net.safetensors"));
    assert_true(same_weights(net, copy));
    assert_ptr_equal(kn_module_get(copy, "conv1.weight"), weight); /* in place */
    assert_true(kn_requires_grad(weight) && kn_is_leaf(weight));
    kn_module_free(net);
    kn_module_free(copy);
}

TENSOR_TEST(names_and_metadata_are_pytorchs)
{
    kn_module *net = network(4);
    CHECK_OK(kn_module_save(net, FOLDER "/names.safetensors"));
    kn_tensor_file *file = kn_load_safetensors(FOLDER "/names.safetensors");
    CHECK_NEW(file);
    assert_int_equal(kn_tensor_file_count(file), 4);
    static const char *const names[] = {"conv1.weight", "conv1.bias", "head.0.weight", "head.0.bias"};
    for (int i = 0; i < 4; i++)
        CHECK_TENSOR(kn_tensor_file_get(file, names[i]));
    assert_string_equal(kn_tensor_file_metadata(file, "format"), "pt");
    kn_tensor_file_free(file);
    kn_module_free(net);
}

/* Written by tests/golden/golden_run.py with PyTorch. */
TENSOR_TEST(a_file_written_by_pytorch_loads)
{
    const char *path = KOINE_SOURCE_DIR "/tests/golden/golden_run_weights.safetensors";
    kn_module *net = kn_nn_sequential_of(NULL, 0);
    kn_nn_add_module(net, "conv1", kn_nn_conv2d(.in_channels = 1, .out_channels = 32, .kernel_size = 3));
    kn_nn_add_module(net, "conv2", kn_nn_conv2d(.in_channels = 32, .out_channels = 64, .kernel_size = 5));
    kn_nn_add_module(net, "linear1", kn_nn_linear(.in_features = 64, .out_features = 32));
    kn_nn_add_module(net, "linear2", kn_nn_linear(.in_features = 32, .out_features = 10));
    CHECK_OK(kn_module_load(net, path));
    kn_tensor_file *file = kn_load_safetensors(path);
    CHECK_NEW(file);
    kn_parameter_list list = kn_module_parameters(net);
    for (int i = 0; i < list.count; i++) {
        kn_tensor *theirs = kn_tensor_file_get(file, list.names[i]);
        CHECK_TENSOR(theirs);
        double *a = read_doubles(list.tensors[i]), *b = read_doubles(theirs);
        assert_memory_equal(a, b, (size_t)kn_numel(theirs) * sizeof *a);
        free(a);
        free(b);
    }
    kn_tensor_file_free(file);
    kn_module_free(net);
}

TENSOR_TEST_F64(dtypes_are_converted)
{
    kn_module *net = network(4), *wide = network(4);
    CHECK_OK(kn_module_to_dtype(wide, KN_F64));
    CHECK_OK(kn_module_save(wide, FOLDER "/wide.safetensors"));
    CHECK_OK(kn_module_load(net, FOLDER "/wide.safetensors"));
    CHECK_DTYPE(kn_module_get(net, "conv1.weight"), KN_F32);
    CHECK_OK(kn_module_to_dtype(wide, KN_F32));
    assert_true(same_weights(net, wide));
    kn_module_free(net);
    kn_module_free(wide);
}

TENSOR_TEST(loading_is_strict_and_changes_nothing_on_failure)
{
    kn_module *net = network(4), *before = network(4), *larger = network(8);
    CHECK_OK(kn_module_save(net, FOLDER "/before.safetensors"));
    CHECK_OK(kn_module_load(before, FOLDER "/before.safetensors"));

    CHECK_OK(kn_module_save(larger, FOLDER "/larger.safetensors"));
    assert_int_equal(kn_module_load(net, FOLDER "/larger.safetensors"), KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, "larger.safetensors", "conv1.weight", "[8, 1, 3, 3]", "[4, 1, 3, 3]");

    kn_module *other = kn_nn_sequential(kn_nn_linear(.in_features = 2, .out_features = 2));
    CHECK_OK(kn_module_save(other, FOLDER "/other.safetensors"));
    assert_int_equal(kn_module_load(net, FOLDER "/other.safetensors"), KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, "missing: \"conv1.weight\", \"conv1.bias\"", "unexpected: \"0.weight\", \"0.bias\"");

    assert_int_equal(kn_module_load(net, FOLDER "/nowhere.safetensors"), KN_ERR_IO);
    CHECK_ERROR(KN_ERR_IO, "nowhere.safetensors");
    assert_int_equal(kn_module_load(net, NULL), KN_ERR_ARGUMENT);
    assert_int_equal(kn_module_save(NULL, FOLDER "/x"), KN_ERR_ARGUMENT);
    kn_error_clear();
    assert_true(same_weights(net, before));
    kn_module_free(net);
    kn_module_free(before);
    kn_module_free(larger);
    kn_module_free(other);
}

static kn_module *headless(int64_t width)
{
    kn_module *net = kn_nn_sequential_of(NULL, 0);
    kn_nn_add_module(net, "conv1", kn_nn_conv2d(.in_channels = 1, .out_channels = width, .kernel_size = 3));
    kn_nn_add_module(net, "conv2", kn_nn_conv2d(.in_channels = width, .out_channels = 1, .kernel_size = 1));
    CHECK_TENSOR(net);
    return net;
}

/* Common names are loaded, the others reported, as in PyTorch's load_state_dict(strict=False). */
TENSOR_TEST(loading_that_is_not_strict_tells_what_it_passed_over)
{
    kn_module *from = network(4), *to = headless(4), *untouched = headless(4), *larger = headless(8);
    kn_incompatible_keys keys;
    CHECK_OK(kn_module_save(from, FOLDER "/from.safetensors"));
    CHECK_OK(kn_module_save(to, FOLDER "/to.safetensors"));
    CHECK_OK(kn_module_load(untouched, FOLDER "/to.safetensors"));
    CHECK_OK(kn_module_load(to, FOLDER "/from.safetensors", .strict = false, .keys = &keys));
    assert_int_equal(keys.missing_count, 2);
    assert_string_equal(keys.missing_keys[0], "conv2.weight");
    assert_string_equal(keys.missing_keys[1], "conv2.bias");
    assert_int_equal(keys.unexpected_count, 2);
    assert_string_equal(keys.unexpected_keys[0], "head.0.weight");
    assert_string_equal(keys.unexpected_keys[1], "head.0.bias");
    kn_incompatible_keys_free(&keys);
    assert_true(keys.missing_count == 0 && keys.missing_keys == NULL);
    assert_true(same_weights(kn_module_child(to, 0), kn_module_child(from, 0)));
    assert_true(same_weights(kn_module_child(to, 1), kn_module_child(untouched, 1)));

    /* A different shape is still an error, and nothing is changed. */
    assert_int_equal(kn_module_load(larger, FOLDER "/from.safetensors", .strict = false, .keys = &keys), KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, "\"conv1.weight\" is [4, 1, 3, 3] there and [8, 1, 3, 3]");
    assert_true(keys.missing_keys == NULL && keys.unexpected_keys == NULL);
    CHECK_OK(kn_module_load(to, FOLDER "/from.safetensors", .strict = false)); /* without a report */
    kn_incompatible_keys_free(NULL);
    kn_error_clear();
    kn_module_free(from);
    kn_module_free(to);
    kn_module_free(untouched);
    kn_module_free(larger);
}

/* A network saved as part of another: PyTorch's DataParallel ("module.conv1.weight"), a model beside a loss. */
TENSOR_TEST(a_prefix_chooses_a_part_of_the_file)
{
    kn_module *inner = network(4), *outer = kn_nn_sequential_of(NULL, 0), *to = network(4), *other = headless(4);
    kn_nn_add_module(outer, "module", inner);
    kn_nn_add_module(outer, "loss", kn_nn_linear(.in_features = 2, .out_features = 2));
    kn_incompatible_keys keys;
    CHECK_OK(kn_module_save(outer, FOLDER "/outer.safetensors"));
    CHECK_OK(kn_module_load(to, FOLDER "/outer.safetensors", .prefix = "module.", .keys = &keys));
    assert_true(same_weights(to, inner));
    assert_true(keys.missing_count == 0 && keys.unexpected_count == 0); /* "loss." has another prefix */
    kn_incompatible_keys_free(&keys);

    /* Keys are reported as in the file. */
    assert_int_equal(kn_module_load(other, FOLDER "/outer.safetensors", .prefix = "module."), KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, "missing: \"module.conv2.weight\"", "unexpected: \"module.head.0.weight\"");
    CHECK_OK(kn_module_load(other, FOLDER "/outer.safetensors", .prefix = "module.", .strict = false, .keys = &keys));
    assert_string_equal(keys.unexpected_keys[1], "module.head.0.bias");
    kn_incompatible_keys_free(&keys);
    assert_int_equal(kn_module_load(other, FOLDER "/outer.safetensors", .prefix = "modul.", .strict = false),
                     KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, "begins with \"modul.\"", "\"module.conv1.weight\"");
    kn_error_clear();

    /* The plain function, and NULL for the defaults. */
    CHECK_OK((kn_module_load)(outer, FOLDER "/outer.safetensors"));
    CHECK_OK(kn_module_load_with(outer, FOLDER "/outer.safetensors", NULL));
    kn_module_load_params params = kn_module_load_params_init();
    assert_true(params.strict && params.prefix == NULL && params.keys == NULL);
    kn_module_free(outer);
    kn_module_free(to);
    kn_module_free(other);
}

TENSOR_TEST(shared_weights_are_saved_under_both_names)
{
    kn_module *a = kn_nn_sequential_of(NULL, 0), *b = kn_nn_sequential_of(NULL, 0);
    kn_module *const both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        kn_tensor *w = kn_full(KN_SHAPE(3), i + 1);
        CHECK_TENSOR(kn_module_register_parameter(both[i], "encoder", w));
        CHECK_TENSOR(kn_module_register_parameter(both[i], "decoder", w));
        CHECK_TENSOR(kn_module_register_buffer(both[i], "seen", kn_full(KN_SHAPE(1), 7 + i, .dtype = KN_I64)));
    }
    CHECK_OK(kn_module_save(a, FOLDER "/tied.safetensors"));
    CHECK_OK(kn_module_load(b, FOLDER "/tied.safetensors"));
    CHECK_VALUES(kn_module_get(b, "decoder"), 1, 1, 1);
    CHECK_VALUES(kn_module_get(b, "seen"), 7);
    kn_module_free(a);
    kn_module_free(b);
}

TENSOR_TEST(saving_where_one_cannot_write_is_an_error)
{
    kn_module *net = network(2);
    assert_int_equal(kn_module_save(net, FOLDER "/no/such/folder/net.safetensors"), KN_ERR_IO);
    CHECK_ERROR(KN_ERR_IO, "no/such/folder");
    kn_error_clear();
    kn_module_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_saved_module_loads_into_another),
        TEST(names_and_metadata_are_pytorchs),
        TEST(a_file_written_by_pytorch_loads),
        TEST(dtypes_are_converted),
        TEST(loading_is_strict_and_changes_nothing_on_failure),
        TEST(loading_that_is_not_strict_tells_what_it_passed_over),
        TEST(a_prefix_chooses_a_part_of_the_file),
        TEST(shared_weights_are_saved_under_both_names),
        TEST(saving_where_one_cannot_write_is_an_error),
    };
    check_make_folder(FOLDER);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
