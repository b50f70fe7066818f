/* test_every_optim.c - what holds for every optimizer: closures, graphs, files, other dtypes, master weights, gradient
 * scalers. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/full.h"
#include "support/values.h"

#define FOLDER KOINE_BINARY_DIR "/tests/every_optim"
#define EXPECT(status, call, ...)                                                                                      \
    do {                                                                                                               \
        assert_int_equal(call, status);                                                                                \
        CHECK_ERROR(status, __VA_ARGS__);                                                                              \
        kn_error_clear();                                                                                              \
    } while (0)

/* All but LBFGS, with the options that need most state. */
static const struct every {
    const char *name;
    kn_optim_option options[4];
} every[] = {
    {"SGD", {{"momentum", 0.9}, {"nesterov", 1}}},
    {"Adam", {{"amsgrad", 1}, {"weight_decay", 0.1}}},
    {"AdamW", {{"maximize", 1}}},
    {"RMSprop", {{"momentum", 0.5}, {"centered", 1}}},
    {"Adagrad", {{"lr_decay", 0.1}, {"initial_accumulator_value", 0.5}}},
    {"Adadelta", {{"rho", 0.8}}},
    {"NAdam", {{"momentum_decay", 0.1}}},
    {"RAdam", {{"beta2", 0.9}}},
    {"Adamax", {{"beta2", 0.9}}},
    {"ASGD", {{"t0", 2}, {"lambd", 0.1}}},
    {"Rprop", {{"etaplus", 1.5}}},
    {"LAMB", {{"weight_decay", 0.1}}},
    {"Lion", {{"weight_decay", 0.1}}},
    {"Adafactor", {{"weight_decay", 0.1}}},
    {"Muon", {{"weight_decay", 0.2}}},
};
#define EVERY (sizeof every / sizeof every[0])

/* Other dtypes need kernels of their own: by default those of every third optimizer, AdamW, Adadelta, Adamax, LAMB and
 * Muon, and of Adafactor. */
static bool has_other_dtypes(size_t i) { return test_full() || i % 3 == 2 || i == 13; }

/* Two matrices, which all optimizers take, and their gradients of the current step. */
typedef struct pair {
    kn_tensor *leaves[2], *gradients[2];
    kn_optim *optim;
} pair;

static kn_parameter_list parameters_of(pair *it) { return (kn_parameter_list){it->leaves, NULL, 2}; }

static pair start(const struct every *row, kn_dtype dtype, bool master)
{
    pair it;
    kn_optim_option options[6] = {{"lr", 0.05}};
    memcpy(options + 1, row->options, sizeof row->options);
    for (int i = 1; i < 5; i++)
        options[i].name = options[i].name ? options[i].name : "";
    options[4] = (kn_optim_option){master ? "master_weights" : "", 1};
    it.leaves[0] = random_tensor("first", KN_SHAPE(4, 3), -1, false, dtype);
    it.leaves[1] = random_tensor("second", KN_SHAPE(3, 5), -1, false, dtype);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(kn_set_requires_grad(it.leaves[i], true));
        it.gradients[i] = kn_zeros_like(kn_detach(it.leaves[i]));
        CHECK_OK(kn_set_grad(it.leaves[i], it.gradients[i]));
    }
    it.optim = kn_optim_named_with(row->name, parameters_of(&it), options);
    CHECK_TENSOR(it.optim);
    return it;
}

/* The gradients of step `step`, times `scale`. */
static void set_gradients(pair *it, int step, double scale)
{
    KN_SCOPE;
    char seed[16];
    for (int i = 0; i < 2; i++) {
        const kn_tensor *g = it->gradients[i];
        snprintf(seed, sizeof seed, "%d.%d", step, i);
        CHECK_OK(kn_copy_(
            it->gradients[i],
            kn_mul_scalar(random_tensor(seed, KN_SHAPE(kn_size(g, 0), kn_size(g, 1)), -1, false, KN_F32), scale)));
    }
}

static void take_steps(pair *it, int first, int end)
{
    for (int step = first; step < end; step++) {
        set_gradients(it, step, 1);
        CHECK_OK(kn_optim_step(it->optim));
    }
}

static void check_same(const struct every *row, pair *a, pair *b, double tolerance)
{
    for (int i = 0; i < 2; i++) {
        double *x = read_doubles(a->leaves[i]), *y = read_doubles(b->leaves[i]);
        for (int64_t k = 0; k < kn_numel(a->leaves[i]); k++)
            if (!(fabs(x[k] - y[k]) <= tolerance))
                fail_msg("%s, parameter %d, element %d: %.9g and %.9g", row->name, i, (int)k, x[k], y[k]);
        free(x);
        free(y);
    }
}

/* A resumed run is the same to the last bit, also of float16 with master weights. */
TENSOR_TEST(a_resumed_run_has_the_same_bits)
{
    for (size_t i = 0; i < 2 * EVERY; i++) {
        KN_SCOPE;
        const struct every *row = &every[i / 2];
        if (i % 2 && !has_other_dtypes(i / 2))
            continue;
        const kn_dtype dtype = i % 2 ? KN_F16 : KN_F32;
        pair whole = start(row, dtype, true), broken = start(row, dtype, true);
        take_steps(&whole, 0, 6);
        take_steps(&broken, 0, 3);
        CHECK_OK(kn_optim_save(broken.optim, FOLDER "/state.safetensors"));
        kn_optim_free(broken.optim);
        pair resumed = start(row, dtype, true);
        for (int k = 0; k < 2; k++) {
            KN_NO_GRAD;
            CHECK_OK(kn_copy_(resumed.leaves[k], broken.leaves[k]));
        }
        CHECK_OK(kn_optim_load(resumed.optim, FOLDER "/state.safetensors"));
        take_steps(&resumed, 3, 6);
        check_same(row, &whole, &resumed, 0);
        kn_optim_free(whole.optim);
        kn_optim_free(resumed.optim);
    }
}

/* Half precision follows float32; with master weights it stays within one rounding. */
TENSOR_TEST(halves_follow_float32)
{
    for (size_t i = 0; i < EVERY; i++) {
        KN_SCOPE;
        const struct every *row = &every[i];
        if (!has_other_dtypes(i))
            continue;
        pair single = start(row, KN_F32, false), half = start(row, KN_F16, false), master = start(row, KN_F16, true);
        for (int k = 0; k < 2; k++) { /* the same start */
            KN_NO_GRAD;
            CHECK_OK(kn_copy_(single.leaves[k], half.leaves[k]));
        }
        take_steps(&single, 0, 4);
        take_steps(&half, 0, 4);
        take_steps(&master, 0, 4);
        /* Muon's matrices of bfloat16 and Adafactor's bound, the resolution of the dtype, let them differ more. */
        const bool is_far = strcmp(row->name, "Muon") == 0 || strcmp(row->name, "Adafactor") == 0;
        check_same(row, &single, &half, is_far ? 2e-2 : 4e-3);
        check_same(row, &single, &master, is_far ? 2e-2 : 2e-3);
        kn_optim_free(single.optim);
        kn_optim_free(half.optim);
        kn_optim_free(master.optim);
    }
}

static kn_tensor *forward(kn_module *module, kn_tensor *x)
{
    (void)module;
    return x;
}

/* After a change of dtype the steps go on with the state there was. */
TENSOR_TEST(state_follows_the_parameters)
{
    kn_device_properties properties;
    CHECK_OK(kn_device_get_properties(kn_device_current(), &properties));
    for (size_t i = 0; i < EVERY && properties.has_f64; i++) {
        KN_SCOPE;
        const struct every *row = &every[i];
        if (!has_other_dtypes(i))
            continue;
        pair whole = start(row, KN_F32, false), moved = start(row, KN_F32, false);
        kn_module *module = kn_module_new("Pair", forward, 0, NULL);
        for (int k = 0; k < 2; k++)
            CHECK_TENSOR(kn_module_register_parameter(module, k ? "b" : "a", moved.leaves[k]));
        take_steps(&whole, 0, 4);
        take_steps(&moved, 0, 2);
        CHECK_OK(kn_module_to_dtype(module, KN_F64));
        for (int k = 0; k < 2; k++) {
            moved.gradients[k] = kn_to_dtype(moved.gradients[k], KN_F64);
            CHECK_OK(kn_set_grad(moved.leaves[k], moved.gradients[k]));
        }
        take_steps(&moved, 2, 4);
        assert_int_equal(kn_dtype_of(moved.leaves[0]), KN_F64);
        check_same(row, &whole, &moved, strcmp(row->name, "Muon") == 0 ? 1e-2 : 2e-6);
        kn_module_free(module);
        kn_optim_free(whole.optim);
        kn_optim_free(moved.optim);
    }
}

/* Replays are steps, with the learning rate of each. */
TENSOR_TEST(steps_in_a_graph_have_the_same_bits)
{
    for (size_t i = 0; i < EVERY; i++) {
        KN_SCOPE;
        const struct every *row = &every[i];
        pair plain = start(row, KN_F32, false), graphed = start(row, KN_F32, false);
        kn_graph *graph = kn_graph_new();
        take_steps(&graphed, 0, 1);
        {
            KN_GRAPH_CAPTURE(graph, NULL);
            CHECK_OK(kn_optim_step(graphed.optim));
        }
        for (int step = 0; step < 5; step++) {
            if (step == 3) {
                CHECK_OK(kn_optim_set_lr(plain.optim, 0.01));
                CHECK_OK(kn_optim_set_lr(graphed.optim, 0.01));
            }
            take_steps(&plain, step, step + 1);
            set_gradients(&graphed, step, 1);
            if (step > 0)
                CHECK_OK(kn_graph_replay(graph));
        }
        check_same(row, &plain, &graphed, 0);
        kn_graph_free(graph);
        kn_optim_free(plain.optim);
        kn_optim_free(graphed.optim);
    }
}

/* --- closures ---------------------------------------------------------------------------------------------------- */

static kn_tensor *sum_of_squares(void *user)
{
    pair *it = user;
    kn_optim_zero_grad(it->optim);
    kn_tensor *loss = kn_add(kn_sum(kn_square(it->leaves[0])), kn_sum(kn_square(it->leaves[1])));
    return kn_backward(loss) == KN_OK ? loss : NULL;
}

TENSOR_TEST(a_step_with_a_closure_is_a_step)
{
    for (size_t i = 0; i < EVERY; i++) {
        KN_SCOPE;
        const struct every *row = &every[i];
        pair a = start(row, KN_F32, false), b = start(row, KN_F32, false);
        double first, second;
        for (int step = 0; step < 2; step++) {
            KN_NO_GRAD; /* the closure records all the same */
            CHECK_OK(kn_item(kn_optim_step_closure(a.optim, sum_of_squares, &a), &first));
            const bool before = kn_set_grad_enabled(true);
            CHECK_OK(kn_item(sum_of_squares(&b), &second));
            kn_set_grad_enabled(before);
            CHECK_OK(kn_optim_step(b.optim));
            assert_true(first == second);
        }
        check_same(row, &a, &b, 0);
        kn_optim_free(a.optim);
        kn_optim_free(b.optim);
    }
}

static kn_tensor *nothing(void *user)
{
    (void)user;
    return NULL;
}
static kn_tensor *failing(void *user)
{
    (void)user;
    return kn_add(kn_ones(KN_SHAPE(2)), kn_ones(KN_SHAPE(3)));
}

TENSOR_TEST(closures_and_lbfgs_that_do_not_do)
{
    pair it = start(&every[0], KN_F32, false);
    EXPECT(KN_ERR_STATE, kn_status_of(kn_optim_step_closure(it.optim, nothing, NULL)), "SGD", "returned NULL");
    EXPECT(KN_ERR_SHAPE, kn_status_of(kn_optim_step_closure(it.optim, failing, NULL)), "add");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_step_closure(it.optim, NULL, NULL)), "`closure` is NULL");
    kn_parameter_list one = {it.leaves, NULL, 1}, other = {it.leaves + 1, NULL, 1};
    kn_optim *lbfgs = kn_optim_lbfgs(one);
    EXPECT(KN_ERR_STATE, kn_optim_step(lbfgs), "LBFGS", "kn_optim_step_closure");
    EXPECT(KN_ERR_ARGUMENT, kn_optim_add_group(lbfgs, other), "one group");
    EXPECT(KN_ERR_STATE, kn_status_of(kn_optim_step_closure(lbfgs, nothing, NULL)), "LBFGS", "returned NULL");
    EXPECT(KN_ERR_SHAPE, kn_status_of(kn_optim_step_closure(lbfgs, failing, NULL)), "add");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_lbfgs(one, .history_size = 0)), "history_size (0)");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_lbfgs(one, .max_iter = -1)), "max_iter (-1)");
    EXPECT(KN_ERR_ARGUMENT, kn_optim_set(lbfgs, 0, "line_search_fn", 2), "line_search_fn (2)", "0 to 1");
    EXPECT(KN_ERR_ARGUMENT, kn_optim_set(lbfgs, 0, "max_iter", 1.5), "max_iter (1.5)", "integer");
    kn_grad_scaler *scaler = kn_grad_scaler_new();
    EXPECT(KN_ERR_STATE, kn_grad_scaler_step(scaler, lbfgs), "kn_optim_step_closure");
    kn_grad_scaler_free(scaler);
    kn_graph *graph = kn_graph_new();
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    EXPECT(KN_ERR_STATE, kn_status_of(kn_optim_step_closure(lbfgs, sum_of_squares, &it)), "a graph cannot record");
    assert_int_equal(kn_graph_capture_end(graph), KN_ERR_STATE);
    kn_error_clear();
    kn_graph_free(graph);
    kn_optim_free(lbfgs);
    kn_optim_free(it.optim);
}

TENSOR_TEST(muon_and_adafactor_that_do_not_do)
{
    kn_tensor *vector = kn_ones(KN_SHAPE(3), .requires_grad = true), *matrix = kn_ones(KN_SHAPE(3, 3));
    kn_parameter_list vectors = {&vector, NULL, 1}, matrices = {&matrix, NULL, 1};
    CHECK_OK(kn_set_requires_grad(matrix, true));
    EXPECT(KN_ERR_SHAPE, kn_status_of(kn_optim_muon(vectors)), "parameter 0", "matrices");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_muon(matrices, .ns_steps = 100)), "ns_steps (100)");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_muon(matrices, .momentum = -1)), "momentum (-1)");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_named("Muon", matrices, {"adjust_lr_fn", 4})), "adjust_lr_fn (4)");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_adafactor(vectors, .beta2_decay = 0.1)), "beta2_decay (0.1)");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_adafactor(vectors, .d = 0.5)), "d (0.5)");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_adafactor(vectors, .eps1 = -2)), "eps1 (-2)", "-1 for none");
    /* A state in PyTorch's form has null where there is nothing. */
    kn_optim *optim = kn_optim_adafactor(matrices), *muon = kn_optim_muon(matrices);
    CHECK_OK(kn_optim_save(optim, FOLDER "/null.safetensors"));
    kn_tensor_file *file = kn_load_safetensors(FOLDER "/null.safetensors");
    assert_non_null(strstr(kn_tensor_file_metadata(file, "param_groups"), "\"eps\":[null,0.001]"));
    kn_tensor_file_free(file);
    CHECK_OK(kn_optim_load(optim, FOLDER "/null.safetensors"));
    CHECK_OK(kn_optim_set(muon, 0, "adjust_lr_fn", KN_MUON_MATCH_RMS_ADAMW));
    CHECK_OK(kn_optim_save(muon, FOLDER "/muon.safetensors"));
    CHECK_OK(kn_optim_set(muon, 0, "adjust_lr_fn", KN_MUON_DEFAULT));
    CHECK_OK(kn_optim_load(muon, FOLDER "/muon.safetensors"));
    double value;
    CHECK_OK(kn_optim_get(muon, 0, "adjust_lr_fn", &value));
    assert_true(value == KN_MUON_MATCH_RMS_ADAMW);
    kn_optim_free(optim);
    kn_optim_free(muon);
}

/* --- gradient scalers -------------------------------------------------------------------------------------------- */

TENSOR_TEST(a_scaler_steps_every_optimizer)
{
    for (size_t i = 0; i < EVERY; i++) {
        KN_SCOPE;
        const struct every *row = &every[i];
        pair plain = start(row, KN_F32, false), scaled = start(row, KN_F32, false);
        kn_grad_scaler *scaler = kn_grad_scaler_new(.init_scale = 256, .growth_interval = 2);
        const double scales[] = {256, 256, 512, 256, 256};
        for (int step = 0; step < 5; step++) {
            set_gradients(&scaled, step, step == 2 ? INFINITY : scales[step]);
            if (step != 2)
                take_steps(&plain, step, step + 1);
            CHECK_OK(kn_grad_scaler_step(scaler, scaled.optim));
            CHECK_OK(kn_grad_scaler_update(scaler));
        }
        check_same(row, &plain, &scaled, strcmp(row->name, "Muon") == 0 ? 1e-3 : 2e-6);
        kn_grad_scaler_free(scaler);
        kn_optim_free(plain.optim);
        kn_optim_free(scaled.optim);
    }
}

/* Only the optimizer whose gradients are infinite is not stepped, and the scale backs off once. */
TENSOR_TEST(a_scaler_with_several_optimizers)
{
    pair a = start(&every[2], KN_F32, false), b = start(&every[6], KN_F32, false), c = start(&every[2], KN_F32, false);
    kn_grad_scaler *scaler = kn_grad_scaler_new(.init_scale = 8);
    double *before = read_doubles(a.leaves[0]);
    set_gradients(&a, 0, INFINITY);
    set_gradients(&b, 0, 8);
    set_gradients(&c, 0, 8);
    CHECK_OK(kn_grad_scaler_unscale_(scaler, a.optim));
    EXPECT(KN_ERR_STATE, kn_grad_scaler_unscale_(scaler, a.optim), "already been called");
    CHECK_OK(kn_grad_scaler_step(scaler, a.optim));
    CHECK_OK(kn_grad_scaler_step(scaler, b.optim));
    CHECK_OK(kn_grad_scaler_step(scaler, c.optim));
    EXPECT(KN_ERR_STATE, kn_grad_scaler_step(scaler, b.optim), "already been called");
    EXPECT(KN_ERR_STATE, kn_grad_scaler_unscale_(scaler, b.optim), "after this optimizer's step");
    pair plain = start(&every[6], KN_F32, false);
    take_steps(&plain, 0, 1);
    check_same(&every[6], &plain, &b, 1e-6);
    double *after = read_doubles(a.leaves[0]), *moved = read_doubles(c.leaves[0]), scale;
    assert_memory_equal(before, after, 12 * sizeof *before);
    assert_true(memcmp(before, moved, 12 * sizeof *before) != 0);
    CHECK_OK(kn_grad_scaler_update(scaler));
    CHECK_OK(kn_grad_scaler_get_scale(scaler, &scale));
    assert_true(scale == 4);
    CHECK_OK(kn_grad_scaler_step(scaler, a.optim)); /* -inf / scale: skipped again */
    CHECK_OK(kn_grad_scaler_update(scaler));
    CHECK_OK(kn_grad_scaler_get_scale(scaler, &scale));
    assert_true(scale == 2);
    free(before);
    free(after);
    free(moved);
    kn_grad_scaler_free(scaler);
    kn_optim_free(a.optim);
    kn_optim_free(b.optim);
    kn_optim_free(c.optim);
    kn_optim_free(plain.optim);
}

/* --- batch normalisation ----------------------------------------------------------------------------------------- */

TENSOR_TEST(update_bn_averages_over_an_epoch)
{
    const float values[] = {1, 2, 3, 4, 5, 9, 1, 3, 5, 7, -2, 0};
    kn_dataset *dataset = kn_tensor_dataset(kn_from_data(values, KN_SHAPE(6, 2), .device = kn_device_host()));
    kn_loader *loader = kn_loader_new(dataset, .batch_size = 2);
    kn_module *layer = kn_nn_batch_norm1d(.num_features = 2, .momentum = 0.3);
    kn_module *net = kn_nn_sequential(layer, kn_nn_relu());
    kn_module_train(net, false);
    CHECK_OK(kn_update_bn(loader, net));
    assert_false(kn_module_is_training(net));
    /* The means of batches' means and unbiased variances. */
    CHECK_VALUES(kn_module_get(layer, "running_mean"), (2 + 3 + 1.5) / 3, (3 + 6 + 3.5) / 3);
    CHECK_VALUES(kn_module_get(layer, "running_var"), (2 + 8 + 24.5) / 3, (2 + 18 + 24.5) / 3);
    CHECK_VALUES(kn_module_get(layer, "num_batches_tracked"), 3);
    CHECK_OK(kn_update_bn(loader, net)); /* begins anew */
    CHECK_VALUES(kn_module_get(layer, "num_batches_tracked"), 3);
    /* With the momentum of before. */
    kn_module_train(net, true);
    CHECK_TENSOR(kn_forward(net, kn_from_data(((float[]){0, 0, 2, 2}), KN_SHAPE(2, 2))));
    CHECK_VALUES(kn_module_get(layer, "running_mean"), 0.7 * 6.5 / 3 + 0.3, 0.7 * 12.5 / 3 + 0.3);
    EXPECT(KN_ERR_ARGUMENT, kn_update_bn(NULL, net), "`loader` is NULL");
    EXPECT(KN_ERR_ARGUMENT, kn_update_bn(loader, NULL), "`module` is NULL");
    kn_module_free(net);
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_resumed_run_has_the_same_bits),   TEST(halves_follow_float32),
        TEST(state_follows_the_parameters),      TEST(steps_in_a_graph_have_the_same_bits),
        TEST(a_step_with_a_closure_is_a_step),   TEST(closures_and_lbfgs_that_do_not_do),
        TEST(muon_and_adafactor_that_do_not_do), TEST(a_scaler_steps_every_optimizer),
        TEST(a_scaler_with_several_optimizers),  TEST(update_bn_averages_over_an_epoch),
    };
    check_make_folder(FOLDER);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
