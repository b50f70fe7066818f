/* test_trainer_callbacks.c - callbacks: their order, what they may change, how they end a fit. */
#include "trainer_case.h"

#include <string.h>

typedef struct course {
    char text[256];
    int64_t last_step;
    double first_loss;
    int stop_after, fail_at;
} course;

static void note(void *user, const char *what)
{
    course *c = user;
    strncat(c->text, what, sizeof c->text - strlen(c->text) - 1);
}

static kn_status note_fit_start(kn_trainer *trainer, void *user)
{
    (void)trainer;
    note(user, "start ");
    return KN_OK;
}

static kn_status note_epoch_start(kn_trainer *trainer, int epoch, void *user)
{
    (void)trainer;
    note(user, epoch == 1 ? "e1 " : "e2 ");
    return KN_OK;
}

/* The gradients exist, and the step is not done yet. */
static kn_status note_before_step(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    course *c = user;
    CHECK_TENSOR(loss);
    assert_true(step >= 1 && step <= CASE_STEPS);
    assert_int_equal(kn_trainer_global_step(trainer), (epoch - 1) * CASE_STEPS + step - 1);
    assert_int_equal(step, step == 1 ? 1 : c->last_step + 1);
    return KN_OK;
}

static kn_status note_step(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    course *c = user;
    c->last_step = step;
    assert_int_equal(kn_trainer_global_step(trainer), (epoch - 1) * CASE_STEPS + step);
    if (epoch == 1 && step == 1)
        CHECK_OK(kn_item(loss, &c->first_loss));
    if (c->stop_after == epoch)
        kn_trainer_stop(trainer);
    return c->fail_at == step ? KN_ERR_STATE : KN_OK;
}

static kn_status note_epoch_end(kn_trainer *trainer, int epoch, const kn_history *history, void *user)
{
    (void)trainer;
    assert_int_equal(kn_history_epochs(history), epoch);
    note(user, "end ");
    return KN_OK;
}

static kn_status note_fit_end(kn_trainer *trainer, void *user)
{
    (void)trainer;
    note(user, "over");
    return KN_OK;
}

static kn_callback callbacks_of(course *c)
{
    return (kn_callback){.on_fit_start = note_fit_start,
                         .on_epoch_start = note_epoch_start,
                         .on_before_optimizer_step = note_before_step,
                         .on_step_end = note_step,
                         .on_epoch_end = note_epoch_end,
                         .on_fit_end = note_fit_end,
                         .user = c};
}

TENSOR_TEST(callbacks_are_called_in_order)
{
    trainer_case c = case_make(0, 0.05);
    course seen = {.fail_at = -1};
    kn_callback callback = callbacks_of(&seen), empty = {0};
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 2, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &empty));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &callback));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    assert_string_equal(seen.text, "start e1 end e2 end over");
    assert_int_equal(seen.last_step, CASE_STEPS);
    assert_true(seen.first_loss > 0);
    case_free(&c);
}

/* Clipping like torch.nn.utils.clip_grad_value_, in a callback. */
typedef struct clip {
    kn_module *net;
    double most; /* largest magnitude before clipping */
} clip;

static kn_status clip_gradients(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    (void)trainer, (void)epoch, (void)step, (void)loss;
    clip *c = user;
    kn_parameter_list list = kn_module_parameters(c->net);
    for (int i = 0; i < list.count; i++) {
        double value = 0;
        kn_tensor *gradient = kn_grad(list.tensors[i]);
        CHECK_TENSOR(gradient);
        CHECK_OK(kn_item(kn_max(kn_abs(gradient)), &value));
        c->most = value > c->most ? value : c->most;
        kn_set_grad(list.tensors[i], kn_clamp(gradient, .min = -1e-3, .max = 1e-3));
    }
    return KN_OK;
}

/* A step of SGD with lr 1 moves no weight by more than the clipped gradient. */
TENSOR_TEST(a_callback_changes_the_gradients_before_the_step)
{
    trainer_case c = case_make(0, 0.05), before = case_make(0, 0.05);
    kn_optim_free(c.optim);
    c.optim = kn_optim_sgd(kn_module_parameters(c.net), .lr = 1);
    clip clipped = {.net = c.net};
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer,
                                     &(kn_callback){.on_before_optimizer_step = clip_gradients, .user = &clipped}));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, NULL));
    assert_true(clipped.most > 0.01);
    assert_int_equal(kn_trainer_global_step(c.trainer), CASE_STEPS);
    double most = 0;
    kn_tensor *now = kn_module_get(c.net, "3.weight"), *then = kn_module_get(before.net, "3.weight");
    CHECK_OK(kn_item(kn_max(kn_abs(kn_sub(now, then))), &most));
    assert_true(most > 0 && most <= CASE_STEPS * 1e-3 + 1e-6);
    case_free(&c);
    case_free(&before);
}

TENSOR_TEST(stop_ends_after_the_epoch)
{
    trainer_case c = case_make(0, 0.05);
    course seen = {.fail_at = -1, .stop_after = 1};
    kn_callback callback = callbacks_of(&seen);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 9, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &callback));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    assert_string_equal(seen.text, "start e1 end over");
    assert_int_equal(seen.last_step, CASE_STEPS);
    case_free(&c);
}

TENSOR_TEST(a_failing_callback_ends_the_fit_with_its_status)
{
    trainer_case c = case_make(0, 0.05);
    course seen = {.fail_at = 2};
    kn_callback callback = callbacks_of(&seen);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 9, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &callback));
    assert_int_equal(kn_trainer_fit(c.trainer, c.train, c.test), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "on_step_end", "KN_ERR_STATE");
    assert_string_equal(seen.text, "start e1 over");
    kn_error_clear();
    case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(callbacks_are_called_in_order),
        TEST(a_callback_changes_the_gradients_before_the_step),
        TEST(stop_ends_after_the_epoch),
        TEST(a_failing_callback_ends_the_fit_with_its_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
