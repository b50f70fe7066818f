/* test_examples.c - every example: its help, wrong usage, and a short run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run_program.h"

#define DATA "/usr/share/datasets/fashion-mnist"

static const char *const programs[] = {"train_fashion_mnist", "loop_by_hand", "linear_regression", "matmul",    "graph",
                                       "memory_timeline",     "grad_norms",   "train_images",      "train_gpt", "vae"};
#define PROGRAMS (sizeof programs / sizeof programs[0])

static void need_data(void)
{
    if (access(DATA "/train-images-idx3-ubyte.gz", R_OK) != 0 && access(DATA "/train-images-idx3-ubyte", R_OK) != 0)
        skip();
}

/* --- usage ----------------------------------------------------------------------------------------------------- */

static void help_goes_to_stdout(void **state)
{
    (void)state;
    for (size_t i = 0; i < PROGRAMS; i++) {
        run_result r = run_shell(EXAMPLES "/%s --help", programs[i]);
        assert_status(r, 0);
        assert_contains(r.output, "usage: ");
        assert_contains(r.output, programs[i]);
        assert_contains(r.output, "--device D");
        assert_contains(r.output, "--seed N");
        assert_lacks(r.output, "\n)"); /* of a default that is a newline */
        assert_string_equal(r.errors, "");
        run_free(&r);
    }
}

static void expect_usage_error(const char *command, const char *reason)
{
    run_result r = run_shell(EXAMPLES "/%s", command);
    assert_status(r, 2);
    assert_string_equal(r.output, "");
    assert_contains(r.errors, reason);
    assert_contains(r.errors, "usage: ");
    run_free(&r);
}

static void wrong_usage_is_status_2(void **state)
{
    (void)state;
    expect_usage_error("train_fashion_mnist --batch-size 0",
                       "--batch-size needs a whole number from 1 to 60000, not \"0\"");
    expect_usage_error("train_fashion_mnist --batch-size=-5", "--batch-size needs");
    expect_usage_error("train_fashion_mnist --epochs 2x", "not \"2x\"");
    expect_usage_error("train_fashion_mnist --epochs ' 2'", "not \" 2\"");
    expect_usage_error("train_fashion_mnist --epochs 99999999999999999999", "--epochs needs");
    expect_usage_error("train_fashion_mnist --epochs", "--epochs needs a whole number from 1 to 1000000");
    expect_usage_error("train_fashion_mnist --lr nan", "--lr needs a number from 0 to 1000, not \"nan\"");
    expect_usage_error("train_fashion_mnist --lr -0.1", "--lr needs");
    expect_usage_error("train_fashion_mnist --quiet=yes", "--quiet takes no value");
    expect_usage_error("train_fashion_mnist extra", "there is no option \"extra\"");
    expect_usage_error("loop_by_hand --patience 3", "there is no option \"--patience\"");
    expect_usage_error("linear_regression --samples 0", "--samples needs");
    expect_usage_error("matmul --device ''", "--device needs a value");
    expect_usage_error("train_gpt --context 0", "--context needs a whole number from 1 to 65536");
    expect_usage_error("train_gpt --temperature 0", "--temperature needs");
}

/* --- errors ---------------------------------------------------------------------------------------------------- */

static void expect_failure(const char *command, const char *reason)
{
    run_result r = run_shell("%s", command);
    assert_status(r, 1);
    assert_contains(r.errors, reason);
    run_free(&r);
}

static void an_unknown_device_lists_what_there_is(void **state)
{
    (void)state;
    expect_failure(EXAMPLES "/train_fashion_mnist --device warp-drive", "warp-drive");
    expect_failure(EXAMPLES "/train_fashion_mnist --device warp-drive", kn_device_name(kn_device_at(0)));
    expect_failure(EXAMPLES "/matmul --device gpu:77", "gpu:77");
    expect_failure(EXAMPLES "/loop_by_hand --device 9:9", "9:9");
}

static void no_platform_tells_what_to_install(void **state)
{
    (void)state;
    char empty[4096], command[8400];
    snprintf(empty, sizeof empty, "%s", fresh_folder("no-platform"));
    for (size_t i = 0; i < PROGRAMS; i++) {
        snprintf(command, sizeof command, "OCL_ICD_VENDORS='%s' '%s/%s'", empty, EXAMPLES, programs[i]);
        expect_failure(command, "pocl-opencl-icd");
    }
}

static void missing_data_tells_how_to_get_it(void **state)
{
    (void)state;
    expect_failure(EXAMPLES "/train_fashion_mnist --data /nowhere --out /tmp", "dataset-fashion-mnist");
    expect_failure(EXAMPLES "/loop_by_hand --data /nowhere", "/nowhere");
    expect_failure(EXAMPLES "/train_gpt --text /nowhere", "'/nowhere' cannot be read: No such file");
    expect_failure(EXAMPLES "/train_gpt --tokenizer /nowhere.json", "/nowhere.json");
    expect_failure(EXAMPLES "/vae --data /nowhere", "/nowhere");
}

static void a_full_standard_output_is_an_error(void **state)
{
    (void)state;
    expect_failure(EXAMPLES "/matmul --rows 8 --inner 8 --columns 8 >/dev/full", "could not be written");
}

/* --- brief runs ------------------------------------------------------------------------------------------------ */

/* Exit status 0 means that replayed and eager steps gave the same weights. */
static void replayed_steps_are_the_eager_ones(void **state)
{
    (void)state;
    run_result r = run_shell(EXAMPLES "/graph --steps 4 --batch-size 16");
    assert_status(r, 0);
    assert_contains(r.output, "the same, bit for bit");
    run_free(&r);
}

/* The table of steps is written, and the plot if gnuplot is installed. */
static void gradient_norms_are_written(void **state)
{
    (void)state;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", fresh_folder("grad-norms"));
    run_result r = run_shell(EXAMPLES "/grad_norms --epochs 2 --every 4 --out '%s'", folder);
    assert_status(r, 0);
    assert_contains(r.output, "32 steps, 8 of them logged");
    assert_contains(r.output, "gradient norm");
    run_free(&r);
    r = run_shell("head -n 1 '%s/steps.csv' && wc -l < '%s/histograms.csv'", folder, folder);
    assert_contains(r.output, "step,epoch,loss,acc,lr,grad_norm,grad_norm.0.weight");
    assert_contains(r.output, "49"); /* a line of names, 8 steps of 6 parameters */
    run_free(&r);
    r = run_shell("command -v gnuplot >/dev/null || exit 0; grep -c '<svg' '%s/steps.svg'", folder);
    assert_status(r, 0);
    run_free(&r);
}

static void matmul_is_right(void **state)
{
    (void)state;
    run_result r = run_shell(EXAMPLES "/matmul --rows 301 --inner 67 --columns 129 --repeat 1 --seed 5");
    assert_status(r, 0);
    assert_contains(r.output, "[301, 67] @ [67, 129]");
    assert_contains(r.output, "GFLOP/s");
    assert_contains(r.output, kn_device_string(kn_device_at(0)));
    run_free(&r);
}

/* Noise of 2 over 20000 points leaves 0.005 in the weights and 0.014 in b. */
static void assert_recovers_the_line(const run_result *r)
{
    const char *result = strstr(r->output, "w = (");
    assert_non_null(result);
    double w1 = 0, w2 = 0, b = 0;
    assert_int_equal(sscanf(result, "w = (%lf, %lf), b = %lf", &w1, &w2, &b), 3);
    assert_true(w1 > 1.97 && w1 < 2.03 && w2 > -3.03 && w2 < -2.97 && b > 9.94 && b < 10.06);
}

static void linear_regression_recovers_the_line(void **state)
{
    (void)state;
    run_result r = run_shell(EXAMPLES "/linear_regression --device %s --samples 50000 --epochs 400 --seed 1",
                             kn_device_string(kn_device_at(0)));
    assert_status(r, 0);
    assert_contains(r.output, "epoch: 0, loss: ");
    assert_contains(r.output, "epoch: 350, loss: ");
    assert_recovers_the_line(&r);
    run_free(&r);
}

/* The same from another language, with defaults from kn_X_params_init(). */
static void expect_linear_regression(const char *command)
{
    run_result r = run_shell("%s %s", command, kn_device_string(kn_device_at(0)));
    assert_status(r, 0);
    assert_string_equal(r.errors, "");
    assert_contains(r.output, kn_device_name(kn_device_at(0)));
    assert_contains(r.output, "epoch: 250, loss: ");
    assert_recovers_the_line(&r);
    run_free(&r);
    r = run_shell("%s warp-drive", command);
    assert_status(r, 1);
    assert_contains(r.errors, "warp-drive");
    run_free(&r);
}

static void linear_regression_in_cpp_recovers_the_line(void **state)
{
    (void)state;
#ifdef CPP_EXAMPLE
    expect_linear_regression(CPP_EXAMPLE);
#else
    print_message("skipped: no C++ compiler\n");
    skip();
#endif
}

static void linear_regression_in_python_recovers_the_line(void **state)
{
    (void)state;
#ifdef PYTHON_EXAMPLE
    expect_linear_regression(PYTHON_EXAMPLE);
#else
    print_message("skipped: no Python 3, or a library with a sanitizer, which Python cannot load\n");
    skip();
#endif
}

/* The plot is made from the history; `koine memory` draws the same from the snapshot. */
static void the_memory_timeline_is_drawn(void **state)
{
    (void)state;
    const char *folder = fresh_folder("memory");
    run_result r = run_shell("cd '%s' && " EXAMPLES "/memory_timeline --batch-size 8 --snapshot s.json && '%s' memory "
                             "s.json --plot again.svg && grep -c reserved memory.svg again.svg",
                             folder, KOINE_PROGRAM);
    if (r.status == 1 && strstr(r.errors, "gnuplot is not installed")) {
        run_free(&r);
        skip();
    }
    assert_status(r, 0);
    assert_contains(r.output, "| Allocated memory");
    assert_contains(r.output, "fragmentation");
    assert_contains(r.output, "memory.svg:");
    run_free(&r);
    r = run_shell("'%s' memory", KOINE_PROGRAM);
    assert_status(r, 2);
    assert_contains(r.errors, "no snapshot file is given");
    run_free(&r);
    r = run_shell("'%s' memory /nowhere.json", KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.errors, "/nowhere.json");
    run_free(&r);
}

#define SMALL_GPT                                                                                                      \
    EXAMPLES                                                                                                           \
    "/train_gpt --context 16 --layers 1 --heads 2 --width 16 --batch-size 4 --steps 3 --sample 8 --vocab 300 "         \
    "--quiet --seed 3 --text '" KOINE_SOURCE_DIR "/LICENSE' --out '%s' "

/* A resumed run ends with the bits of an uninterrupted one, and its samples are the same, too. (The warm-up is longer
 * than the run: the rest of the schedule depends on --epochs.) */
static void a_gpt_resumes_where_it_was(void **state)
{
    (void)state;
    char one[4096], other[4096];
    snprintf(one, sizeof one, "%s", fresh_folder("gpt-one"));
    snprintf(other, sizeof other, "%s", fresh_folder("gpt-other"));
    run_result whole = run_shell(SMALL_GPT "--epochs 2", one);
    assert_status(whole, 0);
    assert_contains(whole.output, "tokens of 300 kinds");
    assert_contains(whole.output, "epoch 1: held-out loss 5.");
    const char *second = strstr(whole.output, "epoch 2: held-out loss");
    assert_non_null(second);
    run_result first = run_shell(SMALL_GPT "--epochs 1", other);
    assert_status(first, 0);
    run_result rest = run_shell(SMALL_GPT "--epochs 2 --resume", other);
    assert_status(rest, 0);
    assert_lacks(rest.output, "epoch 1:");
    assert_non_null(strstr(rest.output, "epoch 2:"));
    const size_t length = (size_t)(strstr(second, "written to") - second);
    assert_true(strncmp(strstr(rest.output, "epoch 2:"), second, length) == 0);
    run_result same = run_shell("cmp '%s/last.safetensors' '%s/last.safetensors' && cmp '%s/tokenizer.json' "
                                "'%s/tokenizer.json'",
                                one, other, one, other);
    assert_status(same, 0);
    /* With another text, too, the tokenizer is the network's. */
    run_result more =
        run_shell(SMALL_GPT "--epochs 3 --resume --vocab 310 --text '" KOINE_SOURCE_DIR "/README.md'", other);
    assert_status(more, 0);
    assert_contains(more.errors, "resuming with the 300 tokens of ");
    run_result kept = run_shell("cmp '%s/tokenizer.json' '%s/tokenizer.json'", one, other);
    assert_status(kept, 0);
    run_free(&more);
    run_free(&kept);
    run_free(&whole);
    run_free(&first);
    run_free(&rest);
    run_free(&same);
}

static void the_loop_by_hand_runs(void **state)
{
    (void)state;
    need_data();
    run_result first = run_shell(EXAMPLES "/loop_by_hand --epochs 2 --limit 400 --batch-size 64");
    run_result second = run_shell(EXAMPLES "/loop_by_hand --epochs 2 --limit 400 --batch-size 64");
    assert_status(first, 0);
    assert_contains(first.output, "epoch 2: loss ");
    assert_string_equal(first.output, second.output);
    run_free(&first);
    run_free(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_goes_to_stdout),
        cmocka_unit_test(wrong_usage_is_status_2),
        cmocka_unit_test(an_unknown_device_lists_what_there_is),
        cmocka_unit_test(no_platform_tells_what_to_install),
        cmocka_unit_test(missing_data_tells_how_to_get_it),
        cmocka_unit_test(a_full_standard_output_is_an_error),
        cmocka_unit_test(matmul_is_right),
        cmocka_unit_test(gradient_norms_are_written),
        cmocka_unit_test(replayed_steps_are_the_eager_ones),
        cmocka_unit_test(linear_regression_recovers_the_line),
        cmocka_unit_test(linear_regression_in_cpp_recovers_the_line),
        cmocka_unit_test(linear_regression_in_python_recovers_the_line),
        cmocka_unit_test(the_memory_timeline_is_drawn),
        cmocka_unit_test(a_gpt_resumes_where_it_was),
        cmocka_unit_test(the_loop_by_hand_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
