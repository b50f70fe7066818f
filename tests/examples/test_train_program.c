/* test_train_program.c - train_fashion_mnist on two devices made from one CPU: its output, reproducibility on both,
 * resuming, signals, both devices together, a terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run_program.h"

#define PACKED "/usr/share/datasets/fashion-mnist"
#define DATA KOINE_BINARY_DIR "/tests/fashion-mnist" /* unpacked, once for all runs */
#define BRIEF "--data '" DATA "' --limit 40 --batch-size 8 --seed 7"

/* Runs the program into a fresh folder of this name and returns the folder, which the caller frees. */
static char *train(const char *folder, const char *format, ...) KN_PRINTF(2, 3);
static char *train(const char *folder, const char *format, ...)
{
    char *out = strdup(fresh_folder(folder)), options[200];
    va_list args;
    va_start(args, format);
    vsnprintf(options, sizeof options, format, args);
    va_end(args);
    run_result r = run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --out '%s' %s", out, options);
    assert_status(r, 0);
    run_free(&r);
    return out;
}

static void expect_same(const char *one, const char *other, const char *file)
{
    run_result r = run_shell("cmp '%s/%s' '%s/%s'", one, file, other, file);
    assert_status(r, 0);
    run_free(&r);
}

static int need_data(void **state)
{
    (void)state;
    if (access(PACKED "/train-images-idx3-ubyte.gz", R_OK) != 0 &&
        access(PACKED "/train-images-idx3-ubyte", R_OK) != 0) {
        print_message("Fashion-MNIST is not installed (package dataset-fashion-mnist)\n");
        exit(77);
    }
    run_result r = run_shell("rm -rf '" DATA "'; mkdir -p '" DATA "' && cp '" PACKED "'/*-ubyte* '" DATA
                             "' && { gzip -df '" DATA "'/*.gz || test -e '" DATA "/train-images-idx3-ubyte'; }");
    assert_status(r, 0);
    run_free(&r);
    return 0;
}

static int remove_data(void **state)
{
    (void)state;
    run_result r = run_shell("rm -rf '" DATA "'");
    run_free(&r);
    return 0;
}

static void results_go_to_stdout_and_progress_to_stderr(void **state)
{
    (void)state;
    char out[4096];
    snprintf(out, sizeof out, "%s", fresh_folder("train-results"));
    run_result r = run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --epochs 2 --out '%s'", out);
    assert_status(r, 0);
    assert_contains(r.output, "device: ");
    assert_contains(r.output, "(conv2): Conv2d(32, 64, kernel_size=(5, 5), stride=(1, 1))");
    assert_contains(r.output, "Parameters: 53,994 (");
    assert_contains(r.output, "epoch  train_loss  train_acc  val_loss   val_acc        lr\n");
    assert_contains(r.output, "best epoch ");
    assert_contains(r.errors, "epoch 1/2  train_loss ");
    assert_contains(r.errors, "samples/s");
    assert_lacks(r.errors, "\r"); /* no bar without a terminal */
    run_free(&r);
    r = run_shell("cd '%s' && head -n 1 history.csv && ls", out);
    assert_contains(r.output, "epoch,train_loss,train_acc,val_loss,val_acc,lr\n");
    assert_contains(r.output, "checkpoint.safetensors\n");
    assert_contains(r.output, "last.safetensors\n");
    run_free(&r);
}

/* In halves, on few images: not what it learns, but that all of it runs, resumed too. */
static void mixed_precision_and_a_report(void **state)
{
    (void)state;
    char out[4096];
    snprintf(out, sizeof out, "%s", fresh_folder("train-half"));
    run_result r =
        run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --epochs 1 --precision bf16 --out '%s' && " EXAMPLES
                           "/train_fashion_mnist " BRIEF " --epochs 2 --precision bf16 --resume --report --out '%s'",
                  out, out);
    assert_status(r, 0);
    assert_contains(r.errors, "resuming after epoch 1");
    assert_lacks(r.errors, "warning");
    assert_contains(r.output, "class            precision    recall        F1\nT-shirt/top ");
    assert_contains(r.output, "true \\ predicted  T-shirt/top  Trouser ");
    assert_contains(r.output, "confusion.svg\n");
    run_free(&r);
    r = run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --precision f64");
    assert_status(r, 2);
    assert_contains(r.errors, "--precision needs f32, f16 or bf16, not \"f64\"");
    run_free(&r);
}

static void quiet_is_quiet(void **state)
{
    (void)state;
    char out[4096];
    snprintf(out, sizeof out, "%s", fresh_folder("train-quiet"));
    run_result r = run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --epochs 1 --quiet --out '%s'", out);
    assert_status(r, 0);
    assert_string_equal(r.errors, "");
    run_free(&r);
}

/* Another device of the same kind, which gives the same bits; the first if there is none. */
static const char *its_twin(void)
{
    kn_device *first = kn_device_at(0), *second = kn_device_count() > 1 ? kn_device_at(1) : NULL;
    const bool alike = second && strcmp(kn_device_name(first), kn_device_name(second)) == 0;
    return kn_device_string(alike ? second : first);
}

static void the_same_seed_gives_the_same_history_on_both_devices(void **state)
{
    (void)state;
    char *first = train("train-first", "--epochs 2 --device %s", first_device_name());
    char *again = train("train-again", "--epochs 2 --device %s --workers 0", first_device_name());
    char *other = train("train-other", "--epochs 2 --device %s", its_twin());
    char *different = train("train-different", "--epochs 2 --device %s --seed 8", first_device_name());
    expect_same(first, again, "history.csv");
    expect_same(first, again, "checkpoint.safetensors");
    expect_same(first, other, "history.csv");
    expect_same(first, other, "checkpoint.safetensors");
    run_result r = run_shell("cmp -s '%s/history.csv' '%s/history.csv'", first, different);
    assert_status(r, 1);
    run_free(&r);
    free(first);
    free(again);
    free(other);
    free(different);
}

/* The folder of three uninterrupted epochs. */
static const char *whole_run(void)
{
    static char *folder;
    if (!folder)
        folder = train("train-whole", "--epochs 3 --device %s", first_device_name());
    return folder;
}

/* Interrupted after one epoch, resumed on the other device. */
static void a_resumed_run_gives_the_same_history(void **state)
{
    (void)state;
    const char *whole = whole_run();
    char *broken = train("train-broken", "--epochs 1 --device %s", first_device_name());
    run_result r = run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --epochs 3 --resume --device %s --out '%s'",
                             its_twin(), broken);
    assert_status(r, 0);
    assert_contains(r.errors, "resuming after epoch 1");
    run_free(&r);
    expect_same(whole, broken, "history.csv");
    expect_same(whole, broken, "checkpoint.safetensors");
    expect_same(whole, broken, "last.safetensors");
    free(broken);
}

/* SIGTERM in the second epoch: the first epoch's state is kept, and resuming gives the bits of an uninterrupted run. */
static void sigterm_ends_a_run_that_can_be_resumed(void **state)
{
    (void)state;
    const char *whole = whole_run();
    char out[4096];
    snprintf(out, sizeof out, "%s", fresh_folder("train-term"));
    run_result r =
        run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --epochs 100000 --patience 0 --out '%s' & pid=$!; "
                           "until test -e '%s/last.safetensors'; do sleep 0.05; done; "
                           "kill -TERM $pid; wait $pid",
                  out, out);
    assert_status(r, 128 + 15);
    assert_contains(r.errors, "interrupted by SIGTERM");
    assert_contains(r.errors, "--resume continues");
    run_free(&r);
    /* However many epochs were finished, the first three equal those of the whole run. */
    r = run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --epochs 3 --resume --out '%s'", out);
    assert_status(r, 0);
    run_free(&r);
    r = run_shell("head -n 4 '%s/history.csv' | cmp - '%s/history.csv'", out, whole);
    assert_status(r, 0);
    run_free(&r);
}

static void other_options_than_the_saved_runs_are_told(void **state)
{
    (void)state;
    char *out = train("train-options", "--epochs 1 --device %s", first_device_name());
    run_result r = run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --batch-size 4 --seed 8 --lr 0.5 "
                                      "--epochs 2 --resume --device %s --out '%s'",
                             first_device_name(), out);
    assert_status(r, 0);
    assert_contains(r.errors, "lr 0.01, not 0.5");
    assert_contains(r.errors, "batch_size 4 (it had 8), seed 8 (it had 7)");
    run_free(&r);
    free(out);
}

static void one_run_at_a_time_writes_into_a_folder(void **state)
{
    (void)state;
    char out[4096];
    snprintf(out, sizeof out, "%s", fresh_folder("train-shared"));
    run_result r = run_shell("flock '%s' " EXAMPLES "/train_fashion_mnist " BRIEF " --epochs 1 --out '%s'", out, out);
    assert_status(r, 1);
    assert_contains(r.errors, "another training run is writing to");
    run_free(&r);
    r = run_shell("ls -A '%s'", out);
    assert_string_equal(r.output, "");
    run_free(&r);
}

/* Both devices together: the saved state is that of the wrapped network, so that a single device can continue. */
static void two_devices_train_together(void **state)
{
    (void)state;
    if (strcmp(first_device_name(), its_twin()) == 0)
        skip();
    char *out = train("train-together", "--epochs 1 --devices %s,%s", first_device_name(), its_twin());
    run_result r = run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --epochs 2 --resume --device %s --out '%s'",
                             its_twin(), out);
    assert_status(r, 0);
    assert_contains(r.errors, "resuming after epoch 1");
    run_free(&r);
    r = run_shell("grep -ac '\"conv1.weight\"' '%s/checkpoint.safetensors'", out);
    assert_status(r, 0);
    run_free(&r);
    r = run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --devices %s,%s --out '%s'", first_device_name(),
                  first_device_name(), out);
    assert_status(r, 1);
    assert_contains(r.errors, "devices 0 and 1 are both");
    run_free(&r);
    r = run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --devices %s,nothing --out '%s'", first_device_name(), out);
    assert_status(r, 1);
    assert_contains(r.errors, "no device matches `nothing`");
    run_free(&r);
    free(out);
}

static void the_data_parallel_example_compares(void **state)
{
    (void)state;
    if (strcmp(first_device_name(), its_twin()) == 0)
        skip();
    run_result r =
        run_shell(EXAMPLES "/data_parallel --devices %s,%s --batch-size 9 --steps 2", first_device_name(), its_twin());
    assert_status(r, 0);
    assert_contains(r.output, "2 devices ");
    assert_contains(r.output, "parameters differ by ");
    assert_string_equal(r.errors, "");
    run_free(&r);
}

static void an_output_folder_that_cannot_be_made_is_an_error(void **state)
{
    (void)state;
    run_result r = run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --out /dev/null/out");
    assert_status(r, 1);
    assert_contains(r.errors, "/dev/null");
    run_free(&r);
}

static void a_terminal_sees_a_bar(void **state)
{
    (void)state;
    char out[4096];
    snprintf(out, sizeof out, "%s", fresh_folder("train-terminal"));
    run_result r =
        run_shell("script -qec true /dev/null </dev/null >/dev/null 2>&1 || exit 77; TERM=xterm script -qec \"" EXAMPLES
                  "/train_fashion_mnist " BRIEF " --epochs 1 --out '%s'\" /dev/null </dev/null",
                  out);
    if (r.status == 77)
        skip();
    assert_status(r, 0);
    assert_contains(r.output, "epoch 1/1  compiling kernels: 0 done (");
    assert_contains(r.output, "\repoch 1/1 [");
    assert_contains(r.output, "samples/s");
    assert_contains(r.output, " left");
    run_free(&r);
}

static void steps_are_profiled(void **state)
{
    (void)state;
    char out[4096];
    snprintf(out, sizeof out, "%s", fresh_folder("train-profile"));
    run_result r =
        run_shell(EXAMPLES "/train_fashion_mnist " BRIEF " --epochs 1 --out '%s' --profile '%s/profile'", out, out);
    assert_status(r, 0);
    assert_contains(r.output, "3 training steps:");
    assert_contains(r.output, "conv2d_backward");
    assert_contains(r.output, "Optimizer.step#Adam.step");
    assert_contains(r.output, "Self Device time total: ");
    run_free(&r);
    r = run_shell("grep -c ProfilerStep#4 '%s/profile/trace.json'", out);
    assert_contains(r.output, "1\n");
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_go_to_stdout_and_progress_to_stderr),
        cmocka_unit_test(steps_are_profiled),
        cmocka_unit_test(mixed_precision_and_a_report),
        cmocka_unit_test(quiet_is_quiet),
        cmocka_unit_test(the_same_seed_gives_the_same_history_on_both_devices),
        cmocka_unit_test(a_resumed_run_gives_the_same_history),
        cmocka_unit_test(sigterm_ends_a_run_that_can_be_resumed),
        cmocka_unit_test(other_options_than_the_saved_runs_are_told),
        cmocka_unit_test(one_run_at_a_time_writes_into_a_folder),
        cmocka_unit_test(two_devices_train_together),
        cmocka_unit_test(the_data_parallel_example_compares),
        cmocka_unit_test(an_output_folder_that_cannot_be_made_is_an_error),
        cmocka_unit_test(a_terminal_sees_a_bar),
    };
    return cmocka_run_group_tests(tests, need_data, remove_data);
}
