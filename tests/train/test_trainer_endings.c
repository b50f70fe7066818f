/* test_trainer_endings.c - fits that end early: a loss that is not finite, Ctrl-C, SIGTERM. */
#include "trainer_case.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- a loss that is not finite ---------------------------------------------------------------------------------- */

/* Cross entropy, multiplied by `factor` in call number `at`. */
typedef struct poison {
    int calls, at;
    double factor;
} poison;

static kn_tensor *poisoned(kn_tensor *const *outputs, const kn_batch *batch, void *user)
{
    poison *p = user;
    kn_tensor *loss = kn_cross_entropy(outputs[0], batch->target);
    return ++p->calls == p->at ? kn_mul_scalar(loss, p->factor) : loss;
}

static kn_status fit_poisoned(trainer_case *c, poison *p, bool validate)
{
    CHECK_NEW(c->trainer = kn_trainer_new(.module = c->net, .optim = c->optim, .epochs = 5, .loss = poisoned,
                                          .loss_user = p, .quiet = true));
    return kn_trainer_fit(c->trainer, c->train, validate ? c->test : NULL);
}

TENSOR_TEST(nan_stops_with_the_step_and_keeps_the_best)
{
    trainer_case reference = case_make(2, 0.05), c;
    CHECK_NEW(reference.trainer =
                  kn_trainer_new(.module = reference.net, .optim = reference.optim, .epochs = 1, .quiet = true));
    CHECK_OK(kn_trainer_fit(reference.trainer, reference.train, NULL));
    c = case_make(2, 0.05);
    poison p = {.at = CASE_STEPS + 4, .factor = NAN};
    assert_int_equal(fit_poisoned(&c, &p, false), KN_ERR_NUMERIC);
    CHECK_ERROR(KN_ERR_NUMERIC, "NaN", "epoch 2, step 4 of 6");
    assert_int_equal(kn_trainer_best_epoch(c.trainer), 1);
    assert_int_equal(kn_history_epochs(kn_trainer_history(c.trainer)), 1);
    assert_true(case_same_weights(c.net, reference.net));
    kn_error_clear();
    case_free(&c);
    case_free(&reference);
}

TENSOR_TEST(infinity_in_the_first_epoch_brings_the_beginning_back)
{
    trainer_case untouched = case_make(2, 0.05), c = case_make(2, 0.05);
    poison p = {.at = 1, .factor = INFINITY};
    assert_int_equal(fit_poisoned(&c, &p, true), KN_ERR_NUMERIC);
    CHECK_ERROR(KN_ERR_NUMERIC, "infinite", "epoch 1, step 1 of 6", "learning rate (now 0.05)");
    assert_int_equal(kn_trainer_best_epoch(c.trainer), 0);
    assert_true(case_same_weights(c.net, untouched.net));
    kn_error_clear();
    case_free(&c);
    case_free(&untouched);
}

TENSOR_TEST(nan_in_the_validation_stops_too)
{
    trainer_case c = case_make(2, 0.05);
    poison p = {.at = CASE_STEPS + 2, .factor = NAN};
    assert_int_equal(fit_poisoned(&c, &p, true), KN_ERR_NUMERIC);
    CHECK_ERROR(KN_ERR_NUMERIC, "validation", "epoch 1, batch 2 of 2");
    kn_error_clear();
    case_free(&c);
}

/* --- Ctrl-C ---------------------------------------------------------------------------------------------------- */

typedef struct moment {
    int epoch;
    int64_t step;
    int64_t last_epoch, last_step; /* last ones seen */
} moment;

static kn_status press_ctrl_c(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    (void)trainer;
    (void)loss;
    moment *m = user;
    m->last_epoch = epoch;
    m->last_step = step;
    if (epoch == m->epoch && step == m->step)
        raise(SIGINT);
    return KN_OK;
}

static kn_status fit_interrupted(trainer_case *c, moment *m, const char *folder, bool resume)
{
    CHECK_NEW(c->trainer = kn_trainer_new(.module = c->net, .optim = c->optim, .epochs = 4, .output = folder,
                                          .resume = resume, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c->trainer, &(kn_callback){.on_step_end = press_ctrl_c, .user = m}));
    return kn_trainer_fit(c->trainer, c->train, c->test);
}

TENSOR_TEST(an_interrupted_fit_keeps_the_best_and_can_be_resumed)
{
    char whole[4096], broken[4096];
    snprintf(whole, sizeof whole, "%s", case_folder("uninterrupted"));
    snprintf(broken, sizeof broken, "%s", case_folder("interrupted"));
    moment never = {0}, then = {.epoch = 3, .step = 2};
    trainer_case a = case_make(6, 0.05);
    CHECK_OK(fit_interrupted(&a, &never, whole, false));

    trainer_case b = case_make(6, 0.05);
    assert_int_equal(fit_interrupted(&b, &then, broken, false), KN_ERR_INTERRUPTED);
    CHECK_ERROR(KN_ERR_INTERRUPTED, "epoch 3, step 2 of 6");
    assert_true(then.last_epoch == 3 && then.last_step == 2); /* not a step more */
    assert_int_equal(kn_history_epochs(kn_trainer_history(b.trainer)), 2);
    char path[4200];
    trainer_case saved = case_make(1, 0.05);
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", broken);
    CHECK_OK(kn_module_load(saved.net, path));
    assert_true(case_same_weights(b.net, saved.net));
    case_free(&saved);
    case_free(&b);

    b = case_make(1, 0.5);
    CHECK_OK(fit_interrupted(&b, &never, broken, true));
    case_same_file(whole, broken, "history.csv");
    case_same_file(whole, broken, "last.safetensors");
    case_same_file(whole, broken, "checkpoint.safetensors");
    assert_true(case_same_weights(a.net, b.net));
    kn_error_clear();
    case_free(&a);
    case_free(&b);
}

TENSOR_TEST(interrupted_in_the_first_epoch_what_was_learned_is_saved)
{
    char folder[4096], path[4200];
    snprintf(folder, sizeof folder, "%s", case_folder("early"));
    moment then = {.epoch = 1, .step = 5};
    trainer_case c = case_make(6, 0.05), other = case_make(1, 0.05), untouched = case_make(6, 0.05);
    assert_int_equal(fit_interrupted(&c, &then, folder, false), KN_ERR_INTERRUPTED);
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    CHECK_OK(kn_module_load(other.net, path));
    assert_true(case_same_weights(c.net, other.net));
    assert_false(case_same_weights(c.net, untouched.net));
    kn_error_clear();
    case_free(&c);
    case_free(&other);
    case_free(&untouched);
}

static volatile sig_atomic_t own_signals;
static void own_handler(int number)
{
    (void)number;
    own_signals++;
}

static kn_status press(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    (void)trainer, (void)loss;
    if (epoch == 1 && step == 1)
        raise(*(const int *)user);
    return KN_OK;
}

static void the_handler_comes_back(int number)
{
    struct sigaction own = {.sa_handler = own_handler}, after;
    sigaction(number, &own, NULL);
    own_signals = 0;
    trainer_case c = case_make(6, 0.05);
    kn_callback callback = {.on_step_end = press, .user = &number};
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &callback));
    assert_int_equal(kn_trainer_fit(c.trainer, c.train, NULL), KN_ERR_INTERRUPTED);
    CHECK_ERROR(KN_ERR_INTERRUPTED, number == SIGTERM ? "SIGTERM" : "SIGINT", "epoch 1, step 1 of 6");
    kn_error_clear();
    assert_int_equal(kn_trainer_signal(c.trainer), number);
    assert_int_equal(own_signals, 0);
    sigaction(number, NULL, &after);
    assert_true(after.sa_handler == own_handler);

    /* With keep_interrupt the program handles signals. */
    kn_trainer_free(c.trainer);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1, .keep_interrupt = true,
                                         .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &callback));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, NULL));
    assert_int_equal(own_signals, 1);
    assert_int_equal(kn_trainer_signal(c.trainer), 0);
    case_free(&c);

    /* An ignored signal stays ignored: training in the background. */
    signal(number, SIG_IGN);
    c = case_make(6, 0.05);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &callback));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, NULL));
    case_free(&c);
    signal(number, SIG_DFL);
}

TENSOR_TEST(the_programs_own_handlers_come_back)
{
    the_handler_comes_back(SIGINT);
    the_handler_comes_back(SIGTERM);
}

/* A signal after the last check: the fit is complete, and the signal is still reported. */
static kn_status press_at_the_end(kn_trainer *trainer, void *user)
{
    (void)trainer, (void)user;
    return raise(SIGTERM) == 0 ? KN_OK : KN_ERR_STATE;
}

TENSOR_TEST(a_signal_at_the_very_end_is_not_lost)
{
    trainer_case c = case_make(6, 0.05);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &(kn_callback){.on_fit_end = press_at_the_end}));
    assert_int_equal(kn_trainer_fit(c.trainer, c.train, c.test), KN_ERR_INTERRUPTED);
    CHECK_ERROR(KN_ERR_INTERRUPTED, "SIGTERM at its end, after epoch 1");
    kn_error_clear();
    assert_int_equal(kn_trainer_signal(c.trainer), SIGTERM);
    assert_int_equal(kn_trainer_best_epoch(c.trainer), 1);
    case_free(&c);
}

/* Runs this program again, with two signals in one step. */
static kn_status press_twice(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    (void)trainer, (void)epoch, (void)step, (void)loss;
    const int *numbers = user;
    raise(numbers[0]);
    raise(numbers[1]);
    return KN_OK;
}

static int be_pressed_twice(int first, int second)
{
    KN_SCOPE;
    int numbers[] = {first, second};
    trainer_case c = case_make(6, 0.05);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &(kn_callback){.on_step_end = press_twice, .user = numbers}));
    return kn_trainer_fit(c.trainer, c.train, NULL) == KN_OK ? 0 : 1; /* not reached */
}

TENSOR_TEST(a_second_signal_ends_the_process_at_once)
{
    static const int pairs[][2] = {{SIGINT, SIGINT}, {SIGTERM, SIGTERM}, {SIGINT, SIGTERM}};
    char own[4096], command[4200];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    assert_true(length > 0);
    own[length] = '\0';
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command, "'%s' --twice %d %d; exit $?", own, pairs[i][0], pairs[i][1]);
        int status = system(command);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 128 + pairs[i][1]);
    }
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--twice") == 0)
        return be_pressed_twice(atoi(argv[2]), atoi(argv[3]));
    const struct CMUnitTest tests[] = {
        TEST(nan_stops_with_the_step_and_keeps_the_best),
        TEST(infinity_in_the_first_epoch_brings_the_beginning_back),
        TEST(nan_in_the_validation_stops_too),
        TEST(an_interrupted_fit_keeps_the_best_and_can_be_resumed),
        TEST(interrupted_in_the_first_epoch_what_was_learned_is_saved),
        TEST(the_programs_own_handlers_come_back),
        TEST(a_signal_at_the_very_end_is_not_lost),
        TEST(a_second_signal_ends_the_process_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
