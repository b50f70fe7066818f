/* test_trainer_fields.c - the trainer with batches of several fields and a module with several inputs and outputs:
 * which fields go where, missing fields, resuming within an epoch. */
#include <signal.h>
#include <stdio.h>

#include "trainer_case.h"

/* --- a network of two inputs and two outputs --------------------------------------------------------------------- */

typedef struct masked {
    kn_module *hidden, *drop, *head;
} masked;

/* Points [n, 2] and perhaps a mask [n, 2] to logits [n, 2] and the hidden layer. */
static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const masked *self = kn_module_self(module);
    kn_tensor *x = inputs[1] != NULL ? kn_mul(inputs[0], inputs[1]) : inputs[0];
    outputs[1] = kn_tanh(kn_forward(self->hidden, x));
    outputs[0] = kn_forward(self->head, kn_forward(self->drop, outputs[1]));
    return KN_OK;
}

static kn_module *masked_network(void)
{
    kn_module *module = kn_module_new_many("Masked", forward, .self_size = sizeof(masked), .num_inputs = 2,
                                           .num_optional = 1, .num_outputs = 2);
    masked *self = kn_module_self(module);
    CHECK_TENSOR((void *)self);
    self->hidden = kn_module_register_module(module, "hidden", kn_nn_linear(.in_features = 2, .out_features = 16));
    self->drop = kn_module_register_module(module, "drop", kn_nn_dropout(.p = 0.1));
    self->head = kn_module_register_module(module, "head", kn_nn_linear(.in_features = 16, .out_features = 2));
    CHECK_TENSOR((void *)self->head);
    return module;
}

/* trainer_case with other data: the points, a mask of ones (`ones`) or of zeros, and the classes as "label". */
static trainer_case masked_case(uint64_t seed, int workers, bool ones)
{
    trainer_case c = case_make(seed, 0.05);
    kn_module_free(c.net);
    kn_optim_free(c.optim);
    kn_loader_free(c.train);
    kn_manual_seed(seed);
    c.net = masked_network();
    c.optim = kn_optim_adam(kn_module_parameters(c.net), .lr = 0.05);
    float points[CASE_SAMPLES][2];
    int64_t classes[CASE_SAMPLES];
    for (int i = 0; i < CASE_SAMPLES; i++)
        CHECK_OK(kn_dataset_get(c.train_data, i, (void *[]){points[i], &classes[i]}));
    kn_dataset_free(c.train_data);
    kn_device *host = kn_device_host();
    CHECK_NEW(c.train_data = kn_tensor_dataset_of(
                  KN_TENSORS(kn_full(KN_SHAPE(CASE_SAMPLES, 2), ones, .device = host),
                             kn_from_data(points, KN_SHAPE(CASE_SAMPLES, 2), .device = host),
                             kn_from_data(classes, KN_SHAPE(CASE_SAMPLES), .dtype = KN_I64, .device = host)),
                  KN_NAMES("mask", "points", "label")));
    CHECK_NEW(c.train = kn_loader_new(c.train_data, .batch_size = CASE_BATCH, .shuffle = true, .seed = 1,
                                      .num_workers = workers));
    return c;
}

TENSOR_TEST(the_module_gets_the_fields_that_are_named)
{
    double accuracies[2], loss;
    for (int ones = 0; ones < 2; ones++) {
        trainer_case c = masked_case(0, 2, ones);
        CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 8, .quiet = true,
                                             .inputs = KN_NAMES("points", "mask"), .target = "label"));
        CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.train));
        CHECK_OK(kn_trainer_evaluate(c.trainer, c.train, &loss, &accuracies[ones]));
        case_free(&c);
    }
    assert_true(accuracies[0] < 0.7); /* all points are masked */
    assert_true(accuracies[1] > 0.85);
}

/* The loss uses the second output, and a field that is not a module input. */
static kn_tensor *sparse(kn_tensor *const *outputs, const kn_batch *batch, void *user)
{
    kn_tensor *mask = kn_batch_field(batch, "mask");
    (*(int *)user)++;
    return kn_add(kn_cross_entropy(outputs[0], kn_batch_field(batch, "label")),
                  kn_mul(kn_mean(kn_mul(outputs[1], outputs[1])), kn_mean(mask)));
}

TENSOR_TEST(the_loss_takes_what_it_needs)
{
    trainer_case c = masked_case(0, 0, true);
    int calls = 0;
    double loss;
    CHECK_NEW(c.trainer =
                  kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 3, .quiet = true,
                                 .inputs = KN_NAMES("points"), .loss = sparse, .loss_user = &calls, .accuracy = false));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, NULL));
    assert_int_equal(calls, 3 * CASE_STEPS);
    const kn_history *history = kn_trainer_history(c.trainer);
    assert_true(kn_history_value(history, 2, 1) < kn_history_value(history, 0, 1));
    CHECK_OK(kn_trainer_evaluate(c.trainer, c.train, &loss, NULL));
    double accuracy;
    assert_int_equal(kn_trainer_evaluate(c.trainer, c.train, &loss, &accuracy), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "no field \"target\""); /* which accuracy needs */
    case_free(&c);
}

TENSOR_TEST(fields_that_are_not_there)
{
    trainer_case c = masked_case(0, 0, true);
    kn_trainer *trainer;
    const char *const *inputs[] = {NULL, KN_NAMES("points", "masks"), KN_NAMES("points"),
                                   KN_NAMES("points", "mask", "label")};
    const char *const targets[] = {"label", "label", NULL, "label"};
    const char *const messages[] = {
        "the training data has no field \"input\"; it has \"mask\", \"points\", \"label\": choose with .inputs",
        "no field \"masks\"", "no field \"target\"; it has \"mask\", \"points\", \"label\": choose with .target",
        "Masked: takes 1 or 2 inputs, not 3"};
    for (int i = 0; i < 4; i++) {
        CHECK_NEW(trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1, .quiet = true,
                                           .inputs = inputs[i], .target = targets[i]));
        assert_int_equal(kn_trainer_fit(trainer, c.train, NULL), KN_ERR_ARGUMENT);
        CHECK_ERROR(KN_ERR_ARGUMENT, messages[i]);
        kn_trainer_free(trainer);
    }
    /* The validation data may be another dataset. */
    CHECK_NEW(trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1, .quiet = true,
                                       .inputs = KN_NAMES("points"), .target = "label"));
    assert_int_equal(kn_trainer_fit(trainer, c.train, c.test), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "the validation data has no field \"points\"; it has \"input\", \"target\"");
    double loss;
    assert_int_equal(kn_trainer_evaluate(trainer, c.test, &loss, NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "no field \"points\"");
    kn_trainer_free(trainer);
    case_free(&c);
}

/* --- resuming ---------------------------------------------------------------------------------------------------- */

/* Stops within the second epoch. */
static kn_status interrupt(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    (void)trainer, (void)loss, (void)user;
    if (epoch == 2 && step == 3)
        raise(SIGINT);
    return KN_OK;
}

static kn_status fit_into(trainer_case *c, const char *folder, bool broken, bool resume)
{
    const kn_callback callback = {.on_step_end = interrupt};
    CHECK_NEW(c->trainer = kn_trainer_new(.module = c->net, .optim = c->optim, .epochs = 4, .quiet = true,
                                          .patience = 0, .inputs = KN_NAMES("points", "mask"), .target = "label",
                                          .output = folder, .resume = resume, .log_every = 1));
    if (broken)
        CHECK_OK(kn_trainer_add_callback(c->trainer, &callback));
    return kn_trainer_fit(c->trainer, c->train, c->train);
}

TENSOR_TEST(resumed_in_the_middle_of_an_epoch)
{
    char whole[4096], broken[4096];
    snprintf(whole, sizeof whole, "%s", case_folder("fields-whole"));
    snprintf(broken, sizeof broken, "%s", case_folder("fields-broken"));
    trainer_case a = masked_case(4, 2, true), b = masked_case(4, 2, true);
    kn_manual_seed(8);
    CHECK_OK(fit_into(&a, whole, false, false));
    kn_manual_seed(8);
    assert_int_equal(fit_into(&b, broken, true, false), KN_ERR_INTERRUPTED);
    CHECK_ERROR(KN_ERR_INTERRUPTED, "epoch 2, step 3 of 6");
    case_free(&b);
    b = masked_case(77, 0, true);
    CHECK_OK(fit_into(&b, broken, false, true));
    case_same_file(whole, broken, "history.csv");
    case_same_file(whole, broken, "steps.csv");
    case_same_file(whole, broken, "last.safetensors");
    assert_true(case_same_weights(a.net, b.net));
    case_free(&a);
    case_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_module_gets_the_fields_that_are_named),
        TEST(the_loss_takes_what_it_needs),
        TEST(fields_that_are_not_there),
        TEST(resumed_in_the_middle_of_an_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
