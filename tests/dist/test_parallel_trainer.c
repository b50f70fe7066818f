/* test_parallel_trainer.c - the trainer with a module on two devices: it trains, saves the wrapped module's state, and
 * resumes bit for bit like an uninterrupted run, including dropout on every device. */
#include <stdio.h>

#include "dist_case.h"
#include "rt/rt.h"
#include "train/trainer_case.h"

static trainer_case wrapped(uint64_t seed, double lr)
{
    kn_device *const *devices = case_devices(2);
    trainer_case c = case_make(seed, lr);
    c.net = kn_nn_data_parallel(c.net, .devices = devices, .num_devices = 2);
    CHECK_TENSOR(c.net);
    return c;
}

static kn_status fit_into(trainer_case *c, const char *folder, int epochs, bool resume)
{
    CHECK_NEW(c->trainer = kn_trainer_new(.module = c->net, .optim = c->optim, .epochs = epochs, .monitor = "val_acc",
                                          .mode = KN_MONITOR_MAX, .output = folder, .resume = resume, .quiet = true));
    return kn_trainer_fit(c->trainer, c->train, c->test);
}

TENSOR_TEST(the_checkpoint_is_that_of_the_module_within)
{
    char folder[4096], path[4200];
    snprintf(folder, sizeof folder, "%s", case_folder("parallel"));
    trainer_case c = wrapped(0, 0.05), plain = case_make(9, 0.05);
    CHECK_OK(fit_into(&c, folder, 4, false));
    double loss, accuracy, alone, alone_accuracy;
    CHECK_OK(kn_trainer_evaluate(c.trainer, c.test, &loss, &accuracy));
    assert_true(accuracy > 0.8);
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    CHECK_OK(kn_module_load(plain.net, path));
    assert_true(case_same_weights(kn_data_parallel_inner(c.net), plain.net));
    CHECK_NEW(plain.trainer = kn_trainer_new(.module = plain.net, .optim = plain.optim, .quiet = true));
    CHECK_OK(kn_trainer_evaluate(plain.trainer, plain.test, &alone, &alone_accuracy));
    assert_true(alone_accuracy == accuracy && loss - alone < 1e-5 && alone - loss < 1e-5);
    case_free(&c);
    case_free(&plain);
}

TENSOR_TEST(a_resumed_run_gives_the_bits_of_an_unbroken_one)
{
    char whole[4096], broken[4096];
    snprintf(whole, sizeof whole, "%s", case_folder("parallel-whole"));
    snprintf(broken, sizeof broken, "%s", case_folder("parallel-broken"));
    trainer_case a = wrapped(4, 0.05), b = wrapped(4, 0.05);
    kn_manual_seed(8);
    CHECK_OK(fit_into(&a, whole, 4, false));
    kn_manual_seed(8);
    CHECK_OK(fit_into(&b, broken, 2, false));
    case_free(&b);
    b = wrapped(77, 0.5);
    CHECK_OK(fit_into(&b, broken, 4, true));
    case_same_file(whole, broken, "history.csv");
    case_same_file(whole, broken, "last.safetensors");
    assert_true(case_same_weights(a.net, b.net));
    case_free(&b);

    /* One device continues a run of several. */
    b = case_make(5, 0.05);
    CHECK_OK(fit_into(&b, broken, 5, true));
    assert_int_equal(kn_history_epochs(kn_trainer_history(b.trainer)), 5);
    case_free(&a);
    case_free(&b);
}

/* Batches are scattered, gradients summed, steps logged: the only wait is at the end of an epoch. */
TENSOR_TEST(a_step_on_two_devices_waits_for_nothing)
{
    for (int workers = 0; workers <= 2; workers += 2) {
        trainer_case c = wrapped(3, 0.05);
        kn_loader_free(c.train);
        CHECK_NEW(c.train =
                      kn_loader_new(c.train_data, .batch_size = CASE_BATCH, .shuffle = true, .num_workers = workers));
        CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 3, .quiet = true,
                                             .log_every = 1, .log_grad_norm = true, .log_histograms = 4));
        CHECK_OK(kn_trainer_fit(c.trainer, c.train, NULL)); /* kernels are compiled */
        uint64_t before = kn_host_wait_count();
        CHECK_OK(kn_trainer_fit(c.trainer, c.train, NULL));
        assert_int_equal(kn_host_wait_count() - before, 3);
        assert_int_equal(kn_history_epochs(kn_trainer_steps(c.trainer)), 3 * CASE_STEPS);
        case_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_checkpoint_is_that_of_the_module_within),
        TEST(a_resumed_run_gives_the_bits_of_an_unbroken_one),
        TEST(a_step_on_two_devices_waits_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
