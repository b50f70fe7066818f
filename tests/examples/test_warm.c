/* test_warm.c - `koine warm`, in caches of its own: what it compiles is all that a program then needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run_program.h"

#define DATA "/usr/share/datasets/fashion-mnist"

static char folder[1024], environment[4200];

static void use_empty_caches(const char *name)
{
    snprintf(folder, sizeof folder, "%s", fresh_folder(name));
    snprintf(environment, sizeof environment, "env KOINE_CACHE_DIR='%s/koine' POCL_CACHE_DIR='%s/pocl'", folder,
             folder);
}

/* Copies the caches to another folder, and removes them. */
static void move_caches(const char *name)
{
    char from[sizeof folder];
    snprintf(from, sizeof from, "%s", folder);
    use_empty_caches(name);
    run_result r = run_shell("cp -r '%s/.' '%s' && rm -r '%s'", from, folder, from);
    assert_status(r, 0);
    run_free(&r);
}

/* The caches' files that hold a kernel: PoCL's, or the library's own with other drivers. */
static int compiled(void)
{
    run_result r = run_shell("find '%s' -name '*.so' -o -name '*.bin' | grep -c /", folder);
    const int count = atoi(r.output);
    run_free(&r);
    return count;
}

static int kernels_of(const run_result *r, const char *model)
{
    const char *line = strstr(r->output, model);
    int kernels = -1;
    assert_status(*r, 0);
    if (!line || sscanf(line + strlen(model), "%d kernels", &kernels) != 1)
        fail_msg("no line of %s in:\n%s", model, r->output);
    return kernels;
}

static void warm_programs_compile_nothing(void **state)
{
    (void)state;
    if (access(DATA, R_OK) != 0)
        skip();
    use_empty_caches("warm-cnn");
    run_result r = run_shell("%s '%s' warm", environment, KOINE_PROGRAM);
    const int kernels = kernels_of(&r, "cnn"), before = compiled();
    run_free(&r);
    assert_true(kernels > 20);
    assert_true(before > 15);
    /* whole batches and the rest of an epoch, as with all images */
    r = run_shell("%s '" EXAMPLES "/train_fashion_mnist' --limit 224 --epochs 1 --quiet --out '%s/out'", environment,
                  folder);
    assert_status(r, 0);
    run_free(&r);
    assert_int_equal(compiled(), before);
    move_caches("warm-copy"); /* from one machine or image to another */
    r = run_shell("%s '%s' warm --jobs 1", environment, KOINE_PROGRAM);
    assert_int_equal(kernels_of(&r, "cnn"), kernels);
    run_free(&r);
    assert_int_equal(compiled(), before);
}

/* Each model needs kernels that those before it do not, and a second run compiles none. */
static void all_models(void **state)
{
    (void)state;
    static const char *const models[] = {"cnn", "mlp", "lenet5", "resnet18", "mobilenet_v2", "gpt"};
    enum { MODELS = sizeof models / sizeof models[0] };
    int kernels = 0, again = 0;
    use_empty_caches("warm-all");
    run_result r = run_shell("%s '%s' warm --all", environment, KOINE_PROGRAM);
    for (int i = 0; i < MODELS; i++) {
        const int own = kernels_of(&r, models[i]);
        assert_true(own > 0);
        kernels += own;
    }
    assert_string_equal(r.errors, "");
    run_free(&r);
    const int before = compiled();
    assert_true(before > 80);
    r = run_shell("%s '%s' warm --all --jobs 1", environment, KOINE_PROGRAM);
    for (int i = 0; i < MODELS; i++)
        again += kernels_of(&r, models[i]);
    run_free(&r);
    assert_int_equal(again, kernels);
    assert_int_equal(compiled(), before);
}

static void two_at_once(void **state)
{
    (void)state;
    use_empty_caches("warm-twice");
    run_result r = run_shell("%s sh -c '\"$0\" warm mlp --jobs 1 & first=$!; \"$0\" warm mlp --jobs 2 && wait $first' "
                             "'%s'",
                             environment, KOINE_PROGRAM);
    kernels_of(&r, "mlp");
    assert_string_equal(r.errors, "");
    run_free(&r);
    const int before = compiled();
    assert_true(before > 5);
    r = run_shell("%s '%s' warm --jobs 3 mlp", environment, KOINE_PROGRAM);
    kernels_of(&r, "mlp");
    run_free(&r);
    assert_int_equal(compiled(), before);
}

static void told_once(const run_result *r, const char *part)
{
    assert_status(*r, 1);
    assert_string_equal(r->output, "");
    assert_contains(r->errors, part);
    assert_null(strstr(strstr(r->errors, "koine: ") + 1, "koine: "));
}

static void a_cache_that_cannot_be_written(void **state)
{
    (void)state;
    static const char *const environments[] = {
        "POCL_CACHE_DIR=/proc/none KOINE_CACHE_DIR=/proc/none KOINE_LOG=error",
        "-u POCL_CACHE_DIR -u XDG_CACHE_HOME HOME=/proc/none KOINE_CACHE_DIR=/proc/none TMPDIR=/proc/none "
        "KOINE_LOG=error",
    };
    for (size_t i = 0; i < sizeof environments / sizeof environments[0]; i++) {
        run_result r = run_shell("env %s '%s' warm --jobs 3", environments[i], KOINE_PROGRAM);
        told_once(&r, "writ");
        run_free(&r);
    }
}

static void no_device(void **state)
{
    (void)state;
    run_result r = run_shell("KOINE_VISIBLE_DEVICES=none '%s' warm --jobs 3", KOINE_PROGRAM);
    told_once(&r, "no OpenCL device");
    run_free(&r);
    r = run_shell("'%s' warm --jobs 2 --device nonsense", KOINE_PROGRAM);
    told_once(&r, "nonsense");
    run_free(&r);
}

static void wrong_usage(void **state)
{
    (void)state;
    static const char *const lines[] = {"--jobs 0", "--jobs two", "--jobs", "nonsense", "--nonsense", "cnn nonsense"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        run_result r = run_shell("'%s' warm %s", KOINE_PROGRAM, lines[i]);
        assert_status(r, 2);
        assert_string_equal(r.output, "");
        assert_contains(r.errors, "usage: koine warm");
        run_free(&r);
    }
}

/* `--all`: the long test. */
int main(int argc, char **argv)
{
    const struct CMUnitTest long_tests[] = {cmocka_unit_test(all_models)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warm_programs_compile_nothing),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(a_cache_that_cannot_be_written),
        cmocka_unit_test(no_device),
        cmocka_unit_test(wrong_usage),
    };
    return argc > 1 && strcmp(argv[1], "--all") == 0 ? cmocka_run_group_tests(long_tests, NULL, NULL)
                                                     : cmocka_run_group_tests(tests, NULL, NULL);
}
