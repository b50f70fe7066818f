/* trainer_case.c - a small training problem for the trainer's tests. */
#include "trainer_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "support/values.h"

static kn_dataset *points(const char *name)
{
    test_random random = test_random_from(name);
    kn_dataset *dataset = NULL;

    KN_SCOPE;
    kn_tensor *x = kn_empty(KN_SHAPE(CASE_SAMPLES, 2), .device = kn_device_host());
    kn_tensor *y = kn_empty(KN_SHAPE(CASE_SAMPLES), .dtype = KN_I64, .device = kn_device_host());
    float *coordinates = kn_data(x);
    int64_t *classes = kn_data(y);
    for (int i = 0; i < CASE_SAMPLES; i++) {
        double u = test_random_uniform(&random, -1, 1), v = test_random_uniform(&random, -1, 1);
        coordinates[2 * i] = (float)u;
        coordinates[2 * i + 1] = (float)v;
        classes[i] = u + v + test_random_uniform(&random, -0.3, 0.3) > 0;
    }
    CHECK_NEW(dataset = kn_tensor_dataset(x, y));

    return dataset;
}

trainer_case case_make(uint64_t seed, double lr)
{
    trainer_case c = {.train_data = points("train"), .test_data = points("test")};
    kn_manual_seed(seed);
    c.net = kn_nn_sequential(kn_nn_linear(.in_features = 2, .out_features = 16), kn_nn_relu(), kn_nn_dropout(.p = 0.2),
                             kn_nn_linear(.in_features = 16, .out_features = 2));
    CHECK_TENSOR(c.net);
    c.optim = kn_optim_adam(kn_module_parameters(c.net), .lr = lr);
    CHECK_TENSOR(c.optim);
    CHECK_NEW(c.train = kn_loader_new(c.train_data, .batch_size = CASE_BATCH, .shuffle = true, .seed = 1));
    CHECK_NEW(c.test = kn_loader_new(c.test_data, .batch_size = 64));
    return c;
}

void case_free(trainer_case *c)
{
    kn_trainer_free(c->trainer);
    kn_optim_free(c->optim);
    kn_module_free(c->net);
    kn_loader_free(c->train);
    kn_loader_free(c->test);
    kn_dataset_free(c->train_data);
    kn_dataset_free(c->test_data);
}

const char *case_folder(const char *name)
{
    static char path[4096];
    char command[8300];
    snprintf(path, sizeof path, "%s/tests/trainer/%s", KOINE_BINARY_DIR, name);
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s'", path, path);
    assert_int_equal(system(command), 0);
    return path;
}

char *case_file(const char *folder, const char *name, size_t *size)
{
    char *path = kn_path_join(folder, name), *text = NULL;
    if (kn_file_exists(path))
        CHECK_OK(kn_file_read_all(&text, size, path, 1 << 24));
    kn_free(path);
    return text;
}

void case_same_file(const char *one, const char *other, const char *name)
{
    size_t a_size = 0, b_size = 0;
    char *a = case_file(one, name, &a_size), *b = case_file(other, name, &b_size);
    assert_non_null(a);
    assert_non_null(b);
    if (a_size != b_size || memcmp(a, b, a_size) != 0)
        fail_msg("%s differs between %s and %s", name, one, other);
    kn_free(a);
    kn_free(b);
}

void *case_weights(kn_module *module, size_t *size)
{
    kn_parameter_list list = kn_module_parameters(module);
    char *block = NULL;
    *size = 0;
    for (int i = 0; i < list.count; i++) {
        size_t one;
        void *bytes = read_bytes(list.tensors[i], &one);
        assert_non_null(bytes);
        block = realloc(block, *size + one);
        memcpy(block + *size, bytes, one);
        *size += one;
        free(bytes);
    }
    return block;
}

bool case_same_weights(kn_module *a, kn_module *b)
{
    size_t a_size, b_size;
    void *x = case_weights(a, &a_size), *y = case_weights(b, &b_size);
    bool same = a_size == b_size && memcmp(x, y, a_size) == 0;
    free(x);
    free(y);
    return same;
}
