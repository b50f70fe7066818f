/* test_allocation_failures.c - the n-th allocation fails, for every n: modules, optimizers, state files and a whole fit
 * end with KN_ERR_MEMORY, and nothing is lost, leaked or freed twice (run under the sanitizers, this is where such
 * mistakes show). */
#include "trainer_case.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "support/faults.h"

/* Hundreds of tries: the first 300 allocations each, of those beyond every 13th. */
static void torture(fault_work body, void *user) { fault_each_allocation(body, user, 300, 13, 1); }

static kn_status make_network(void *user)
{
    (void)user;
    kn_module *net =
        kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 2, .kernel_size = 3), kn_nn_relu(),
                         kn_nn_sequential(kn_nn_flatten(), kn_nn_linear(.in_features = 2, .out_features = 2)));
    kn_optim *optim = net != NULL ? kn_optim_adam(kn_module_parameters(net)) : NULL;
    char *summary = optim != NULL ? kn_module_summary(net) : NULL;
    bool done = summary != NULL;
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

/* Whichever move failed, the network is in one dtype, not in two. */
static kn_status use_network_whole(void *user)
{
    subject *s = user;
    bool done = use_network(s);
    kn_status status = fault_status(done);
    kn_error_state error;
    kn_error_take(&error);
    kn_parameter_list list = kn_module_parameters(s->c.net);
    for (int i = 1; i < list.count; i++)
        assert_int_equal(kn_dtype_of(list.tensors[i]), kn_dtype_of(list.tensors[0]));
    while (!done && kn_module_to_dtype(s->c.net, KN_F32) != KN_OK)
        continue; /* the one failure may still have been to come */
    kn_error_put_back(&error);
    return status;
}

static void steps_moves_and_files(void **state)
{
    (void)state;
    subject s = {.c = case_make(0, 0.1)};
    snprintf(s.path, sizeof s.path, "%s/state.safetensors", case_folder("torture"));
    torture(use_network_whole, &s);
    case_free(&s.c);
}

/* --- a fit ----------------------------------------------------------------------------------------------------- */

static kn_status fit(void *user)
{
    subject *s = user;
    kn_trainer *trainer = NULL;
    bool done = kn_trainer_new(&trainer, .module = s->c.net, .optim = s->c.optim, .epochs = 2, .output = s->path,
                               .quiet = true) == KN_OK &&
                kn_trainer_fit(trainer, s->c.train, s->c.test) == KN_OK;
    kn_trainer_free(trainer);
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
    const struct CMUnitTest tests[] = {TEST(networks), TEST(steps_moves_and_files), TEST(fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
