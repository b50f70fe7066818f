/* test_trainer_resume.c - resuming with callbacks that have a state, after every kind of ending; warnings about
 * differences from the saved run. */
#include "trainer_case.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EPOCHS 5

/* --- warnings -------------------------------------------------------------------------------------------------- */

static char warnings[4096];

static void keep_warning(kn_log_level level, const char *message, void *user)
{
    (void)user;
    size_t used = strlen(warnings);
    if (level >= KN_LOG_WARNING)
        snprintf(warnings + used, sizeof warnings - used, "%s\n", message);
}

static void expect_warning(const char *piece)
{
    if (strstr(warnings, piece) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", piece, warnings);
}

/* --- a schedule of the learning rate --------------------------------------------------------------------------- */

/* Lowers the learning rate every fourth step (an epoch has six) by a changing factor, so that its state is a counter
 * and a number. Raises a signal at one step. */
typedef struct schedule {
    kn_optim *optim;
    int64_t count;
    double factor; /* a float32 */
    int loads, signal, epoch;
    int64_t step;
} schedule;

static kn_status lower(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    (void)trainer, (void)loss;
    schedule *s = user;
    if (s->signal != 0 && epoch == s->epoch && step == s->step)
        raise(s->signal);
    if (++s->count % 4 != 0)
        return KN_OK;
    s->factor = (float)(s->factor * 0.9);
    return kn_optim_set_lr(s->optim, kn_optim_lr(s->optim) * s->factor);
}

static kn_status save_schedule(kn_trainer *trainer, kn_tensor_file *state, void *user)
{
    const schedule *s = user;
    assert_int_equal(s->count, kn_trainer_global_step(trainer));
    char count[32];
    snprintf(count, sizeof count, "%lld", (long long)s->count);
    kn_status status = kn_tensor_file_set_metadata(state, "count", count);
    /* On the device: the trainer copies it to the host. */
    kn_tensor *factor = kn_full(KN_SHAPE(1), s->factor);
    return status == KN_OK ? kn_tensor_file_put(state, "factor", factor) : status;
}

static kn_status load_schedule(kn_trainer *trainer, const kn_tensor_file *state, void *user)
{
    schedule *s = user;
    const char *count = kn_tensor_file_metadata(state, "count");
    if (count == NULL)
        return kn_error_set(KN_ERR_FORMAT, "the schedule's state has no count");
    s->count = strtoll(count, NULL, 10);
    s->loads++;
    assert_int_equal(s->count, kn_trainer_global_step(trainer));
    assert_int_equal(kn_tensor_file_count(state), 1);
    return kn_item(kn_tensor_file_get(state, "factor"), &s->factor);
}

static kn_callback schedule_callback(schedule *s, const char *name)
{
    return (kn_callback){.on_step_end = lower, .user = s, .name = name, .save = save_schedule, .load = load_schedule};
}

/* A fit with the schedule, writing to `folder`; `s` says which signal to raise when. */
static kn_status fit_scheduled(trainer_case *c, schedule *s, const char *folder, int epochs, bool resume)
{
    s->optim = c->optim;
    s->factor = 0.99f;
    kn_callback callback = schedule_callback(s, "schedule");
    CHECK_NEW(c->trainer = kn_trainer_new(.module = c->net, .optim = c->optim, .epochs = epochs, .patience = 0,
                                          .output = folder, .resume = resume, .quiet = true, .log_every = 1));
    CHECK_OK(kn_trainer_add_callback(c->trainer, &callback));
    return kn_trainer_fit(c->trainer, c->train, c->test);
}

/* --- the same bits --------------------------------------------------------------------------------------------- */

/* Runs this program again, which is killed in the third epoch of a fit to `folder`. */
static void run_killed(const char *folder)
{
    char own[4096], command[8400];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    assert_true(length > 0);
    own[length] = '\0';
    snprintf(command, sizeof command, "'%s' --killed '%s'", own, folder);
    int status = system(command);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL);
}

static int be_killed(const char *folder)
{
    KN_SCOPE;
    trainer_case c = case_make(3, 0.05);
    schedule s = {.signal = SIGKILL, .epoch = 3, .step = 2};
    fit_scheduled(&c, &s, folder, EPOCHS, false);
    return 1; /* not reached */
}

static void run_ended(const char *folder, int signal)
{
    trainer_case c = case_make(3, 0.05);
    schedule s = {.signal = signal, .epoch = 3, .step = 2};
    if (signal == 0) {
        CHECK_OK(fit_scheduled(&c, &s, folder, 2, false)); /* its last epoch */
    } else {
        assert_int_equal(fit_scheduled(&c, &s, folder, EPOCHS, false), KN_ERR_INTERRUPTED);
        CHECK_ERROR(KN_ERR_INTERRUPTED, signal == SIGTERM ? "SIGTERM" : "SIGINT", "epoch 3, step 2 of 6");
        kn_error_clear();
    }
    assert_int_equal(kn_trainer_signal(c.trainer), signal);
    case_free(&c);
}

TENSOR_TEST(a_resumed_schedule_gives_the_bits_of_an_unbroken_one)
{
    static const int ends[] = {0, SIGINT, SIGTERM, SIGKILL};
    char whole[4096], broken[4096];
    snprintf(whole, sizeof whole, "%s", case_folder("schedule-whole"));
    trainer_case a = case_make(3, 0.05);
    schedule s = {0};
    CHECK_OK(fit_scheduled(&a, &s, whole, EPOCHS, false));
    assert_true(s.loads == 0 && kn_optim_lr(a.optim) < 0.02);
    for (int i = 0; i < 4; i++) {
        snprintf(broken, sizeof broken, "%s", case_folder("schedule-broken"));
        if (ends[i] == SIGKILL)
            run_killed(broken);
        else
            run_ended(broken, ends[i]);
        trainer_case b = case_make(3, 0.05);
        schedule again = {0};
        CHECK_OK(fit_scheduled(&b, &again, broken, EPOCHS, true));
        assert_int_equal(again.loads, 1);
        assert_true(kn_optim_lr(a.optim) == kn_optim_lr(b.optim));
        assert_int_equal(kn_trainer_global_step(b.trainer), EPOCHS * CASE_STEPS);
        case_same_file(whole, broken, "history.csv");
        case_same_file(whole, broken, "steps.csv");
        case_same_file(whole, broken, "checkpoint.safetensors");
        case_same_file(whole, broken, "last.safetensors");
        assert_true(case_same_weights(a.net, b.net));
        case_free(&b);
    }
    /* an ordinary resume, including the schedule's learning rate, gives no warning */
    assert_string_equal(warnings, "");
    case_free(&a);
}

/* --- warnings about differences ----------------------------------------------------------------------------------- */

TENSOR_TEST(a_missing_or_unknown_state_of_a_callback_is_told)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", case_folder("states"));
    trainer_case c = case_make(3, 0.05);
    schedule s = {0};
    CHECK_OK(fit_scheduled(&c, &s, folder, 1, false));
    case_free(&c);

    c = case_make(3, 0.05);
    schedule other = {.optim = c.optim, .factor = 1, .count = CASE_STEPS};
    kn_callback callback = schedule_callback(&other, "cosine");
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 2, .output = folder,
                                         .resume = true, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &callback));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    assert_int_equal(other.loads, 0);
    expect_warning("no state for the callback \"cosine\"");
    expect_warning("the state of a callback \"schedule\" that this trainer does not have");
    case_free(&c);
}

/* A load function that fails, with or without a message. */
static kn_status refuse(kn_trainer *trainer, const kn_tensor_file *state, void *user)
{
    (void)trainer, (void)state;
    return user != NULL ? kn_error_set(KN_ERR_FORMAT, "no good") : KN_ERR_DEVICE;
}

static kn_status save_nothing(kn_trainer *trainer, kn_tensor_file *state, void *user)
{
    (void)trainer, (void)state, (void)user;
    return KN_OK;
}

TENSOR_TEST(a_state_that_cannot_be_loaded_ends_the_fit_before_it_begins)
{
    char folder[4096], before[4096];
    snprintf(folder, sizeof folder, "%s", case_folder("refused"));
    snprintf(before, sizeof before, "%s", case_folder("refused-before"));
    char message[] = "x";
    kn_callback callback = {.name = "refusing", .save = save_nothing, .load = refuse, .user = message};
    for (int i = 0; i < 3; i++) {
        callback.user = i == 1 ? message : NULL;
        trainer_case c = case_make(3, 0.05);
        CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = i + 1, .output = folder,
                                             .resume = i > 0, .quiet = true));
        CHECK_OK(kn_trainer_add_callback(c.trainer, &callback));
        kn_status status = kn_trainer_fit(c.trainer, c.train, c.test);
        assert_int_equal(status, i == 0 ? KN_OK : i == 1 ? KN_ERR_FORMAT : KN_ERR_DEVICE);
        if (i == 1)
            CHECK_ERROR(KN_ERR_FORMAT, "no good");
        else if (i == 2)
            CHECK_ERROR(KN_ERR_DEVICE, "callback 0", "load");
        kn_error_clear();
        case_free(&c);
    }
    size_t size;
    char *history = case_file(folder, "history.csv", &size);
    assert_non_null(strstr(history, "\n1,"));
    kn_free(history);
}

TENSOR_TEST(callbacks_with_a_state_need_a_name_and_both_functions)
{
    trainer_case c = case_make(3, 0.05);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .quiet = true));
    kn_callback good = {.name = "a", .save = save_nothing, .load = refuse};
    static const char *const names[] = {NULL, "", "a.b", "\xff", "a"};
    CHECK_OK(kn_trainer_add_callback(c.trainer, &good));
    for (int i = 0; i < 5; i++) {
        kn_callback bad = good;
        bad.name = names[i];
        assert_int_equal(kn_trainer_add_callback(c.trainer, &bad), KN_ERR_ARGUMENT);
        CHECK_ERROR(KN_ERR_ARGUMENT,
                    i < 4 ? "needs a unique name" : "another callback already has a state named \"a\"");
    }
    kn_callback half = {.name = "b", .save = save_nothing};
    assert_int_equal(kn_trainer_add_callback(c.trainer, &half), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "with save also needs load");
    case_free(&c);
}

static kn_status fit_with(trainer_case *c, const char *folder, int epochs, bool resume)
{
    CHECK_NEW(c->trainer = kn_trainer_new(.module = c->net, .optim = c->optim, .epochs = epochs, .patience = 0,
                                          .output = folder, .resume = resume, .quiet = true));
    return kn_trainer_fit(c->trainer, c->train, c->test);
}

TENSOR_TEST(other_settings_than_the_saved_runs_are_told)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", case_folder("settings"));
    trainer_case c = case_make(3, 0.05);
    CHECK_OK(fit_with(&c, folder, 1, false));
    case_free(&c);

    c = case_make(3, 0.05);
    kn_loader_free(c.train);
    CHECK_NEW(c.train = kn_loader_new(c.train_data, .batch_size = 24, .seed = 9, .drop_last = true));
    kn_optim_free(c.optim);
    c.optim = kn_optim_adam(kn_module_parameters(c.net), .lr = 0.4, .beta1 = 0.8);
    CHECK_OK(fit_with(&c, folder, 2, true));
    expect_warning("its hyperparameters: lr 0.05, not 0.4, beta1 0.9, not 0.8\n");
    expect_warning("batch_size 24 (it had 16), shuffle false (it had true), drop_last true (it had false), seed 9 (it "
                   "had 1); the results will differ from those of an uninterrupted run\n");
    assert_true(kn_optim_lr(c.optim) == 0.05);
    assert_int_equal(kn_trainer_global_step(c.trainer), CASE_STEPS + CASE_SAMPLES / 24);
    case_free(&c);

    /* The file now has the new settings; the hyperparameters are still the original ones. */
    warnings[0] = '\0';
    c = case_make(3, 0.05);
    kn_loader_free(c.train);
    CHECK_NEW(c.train = kn_loader_new(c.train_data, .batch_size = 24, .seed = 9, .drop_last = true));
    CHECK_OK(fit_with(&c, folder, 3, true));
    assert_string_equal(warnings, "");
    case_free(&c);
}

static int set_up(void **state)
{
    warnings[0] = '\0';
    kn_log_set_handler(keep_warning, NULL);
    return check_setup(state);
}

#define RESUME_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, check_teardown)

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--killed") == 0)
        return be_killed(argv[2]);
    const struct CMUnitTest tests[] = {
        RESUME_TEST(a_resumed_schedule_gives_the_bits_of_an_unbroken_one),
        RESUME_TEST(a_missing_or_unknown_state_of_a_callback_is_told),
        RESUME_TEST(a_state_that_cannot_be_loaded_ends_the_fit_before_it_begins),
        RESUME_TEST(callbacks_with_a_state_need_a_name_and_both_functions),
        RESUME_TEST(other_settings_than_the_saved_runs_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
