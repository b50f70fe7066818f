/* test_allocation_failures.c - the n-th allocation fails, for every n: modules, optimizers, state files and a whole fit
 * end with KN_ERR_MEMORY, and nothing is lost, leaked or freed twice (most effective under the sanitizers). */
#include "trainer_case.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "support/faults.h"

/* Hundreds of runs: each of the first 300 allocations, then every 13th. */
static void torture(fault_work body, void *user) { fault_each_allocation(body, user, 300, 13, 1); }

static kn_status make_network(void *user)
{
    (void)user;
    kn_module *net =
        kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 2, .kernel_size = 3), kn_nn_relu(),
                         kn_nn_sequential(kn_nn_flatten(), kn_nn_linear(.in_features = 2, .out_features = 2)));
    char *summary = net != NULL ? kn_module_summary(net) : NULL;
    kn_optim *optim = summary != NULL ? kn_optim_adam(kn_module_parameters(net)) : NULL;
    bool done = optim != NULL;
    kn_free(summary);
    kn_optim_free(optim);
    kn_module_free(net);
    return fault_status(done);
}

static void networks(void **state)
{
    (void)state;
    torture(make_network, NULL);
}

/* --- a step, a move, a file ------------------------------------------------------------------------------------ */

typedef struct subject {
    trainer_case c;
    char path[4200];
} subject;

static bool use_network(void *user)
{
    subject *s = user;
    kn_tensor *x = kn_ones(KN_SHAPE(4, 2)), *y = kn_zeros(KN_SHAPE(4), .dtype = KN_I64);
    kn_tensor *loss = kn_cross_entropy(kn_forward(s->c.net, x), y);
    bool done = kn_backward(loss) == KN_OK && kn_optim_step(s->c.optim) == KN_OK;
    done = done && kn_module_to_dtype(s->c.net, KN_F64) == KN_OK && kn_optim_step(s->c.optim) == KN_OK;
    done = done && kn_module_to_dtype(s->c.net, KN_F32) == KN_OK;
    kn_optim_zero_grad(s->c.optim);
    return done && kn_module_save(s->c.net, s->path) == KN_OK && kn_module_load(s->c.net, s->path) == KN_OK &&
           kn_optim_save(s->c.optim, s->path) == KN_OK && kn_optim_load(s->c.optim, s->path) == KN_OK;
}

/* Whichever move failed, the network has a single dtype. */
static kn_status use_network_whole(void *user)
{
    subject *s = user;
    bool done = use_network(s);
    kn_status status = fault_status(done);
    kn_error_state error;
    kn_error_save(&error);
    kn_parameter_list list = kn_module_parameters(s->c.net);
    for (int i = 1; i < list.count; i++)
        assert_int_equal(kn_dtype_of(list.tensors[i]), kn_dtype_of(list.tensors[0]));
    while (!done && kn_module_to_dtype(s->c.net, KN_F32) != KN_OK)
        continue; /* the failure may not have occurred yet */
    kn_error_restore(&error);
    return status;
}

static void steps_moves_and_files(void **state)
{
    (void)state;
    check_needs_f64();
    subject s = {.c = case_make(0, 0.1)};
    snprintf(s.path, sizeof s.path, "%s/state.safetensors", case_folder("torture"));
    torture(use_network_whole, &s);
    case_free(&s.c);
}

/* --- loading part of a file --------------------------------------------------------------------------------------- */

static kn_status load_a_part(void *user)
{
    subject *s = user;
    kn_incompatible_keys keys;
    bool done = kn_module_load(kn_module_child(s->c.net, 0), s->path, .prefix = "0.", .strict = false, .keys = &keys) ==
                    KN_OK &&
                kn_module_load(s->c.net, s->path, .strict = false) == KN_OK;
    kn_incompatible_keys_free(&keys);
    return fault_status(done);
}

static void loads_of_a_part(void **state)
{
    (void)state;
    subject s = {.c = case_make(0, 0.1)};
    snprintf(s.path, sizeof s.path, "%s/net.safetensors", case_folder("torture-part"));
    CHECK_OK(kn_module_save(s.c.net, s.path));
    torture(load_a_part, &s);
    kn_error_clear();
    case_free(&s.c);
}

/* --- a fit ----------------------------------------------------------------------------------------------------- */

static kn_status save_number(kn_trainer *trainer, kn_tensor_file *state, void *user)
{
    (void)user;
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)kn_trainer_global_step(trainer));
    kn_tensor *tensor = kn_ones(KN_SHAPE(3));
    if (tensor == NULL)
        return kn_error_status();
    kn_status status = kn_tensor_file_put(state, "ones", tensor);
    return status == KN_OK ? kn_tensor_file_set_metadata(state, "number", number) : status;
}

static kn_status load_number(kn_trainer *trainer, const kn_tensor_file *state, void *user)
{
    (void)user;
    const char *number = kn_tensor_file_metadata(state, "number");
    assert_true(number != NULL && strtoll(number, NULL, 10) == kn_trainer_global_step(trainer));
    assert_true(kn_tensor_file_count(state) == 1);
    return KN_OK;
}

/* One epoch, and another after resuming, with a callback that has a state. */
static kn_status fit(void *user)
{
    subject *s = user;
    bool done = true;
    for (int epochs = 1; epochs <= 2 && done; epochs++) {
        kn_trainer *trainer = NULL;
        kn_callback callback = {.name = "number", .save = save_number, .load = load_number};
        done = (trainer = kn_trainer_new(.module = s->c.net, .optim = s->c.optim, .epochs = epochs, .output = s->path,
                                         .resume = epochs > 1, .quiet = true)) != NULL &&
               kn_trainer_add_callback(trainer, &callback) == KN_OK &&
               kn_trainer_fit(trainer, s->c.train, s->c.test) == KN_OK;
        kn_trainer_free(trainer);
    }
    return fault_status(done);
}

static void fits(void **state)
{
    (void)state;
    subject s = {.c = case_make(0, 0.1)};
    snprintf(s.path, sizeof s.path, "%s", case_folder("torture-fit"));
    char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nonexistent", 1); /* hundreds of fits: no plots */
    torture(fit, &s);
    setenv("PATH", path, 1);
    free(path);
    case_free(&s.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(networks), TEST(steps_moves_and_files), TEST(loads_of_a_part), TEST(fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
