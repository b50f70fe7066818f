/* option_cases.c - options of distributed modules: parts, compression, comparing parameters now and then. */
#include <math.h>
#include <string.h>

#include "dist/group/distributed_cases.h"
#include "dist/group/training.h"

/* --- gradients that do not depend on the number of ranks ---------------------------------------------------------- */

#define PARTS 12

static void add_part(state *s, kn_module *net, int step_number, int part)
{
    KN_SCOPE;
    kn_tensor *x = kn_empty(KN_SHAPE(ROWS, FEATURES), .dtype = KN_F64, .device = s->device);
    kn_tensor *y = kn_empty(KN_SHAPE(ROWS, 2), .dtype = KN_F64, .device = s->device);
    fill(x, 100 * step_number + part);
    fill(y, 100 * step_number + part + 0.5);
    EXPECT_OK(kn_backward(kn_mse_loss(kn_forward(net, x), y, KN_REDUCTION_MEAN)));
}

/* What one process computes without any group, with the same additions. */
static void add_all_parts(state *s, kn_module *alone, int step_number)
{
    KN_SCOPE;
    KN_NO_GRAD;
    for (int p = 0; p < PARTS; p++) {
        kn_set_grad_enabled(true);
        add_part(s, alone, step_number, p);
        kn_set_grad_enabled(false);
    }
    const kn_parameter_list list = kn_module_parameters(alone);
    for (int i = 0; i < list.count; i++)
        kn_div_scalar_(kn_grad(list.tensors[i]), PARTS);
}

static void adds_parts_in_their_order(state *s)
{
    kn_module *alone = network(0);
    kn_module *net = kn_nn_distributed(network(0), s->group, .parts = PARTS, .first_bucket_bytes = 64);
    kn_optim *optim = kn_optim_sgd(kn_module_parameters(net), .lr = 0.1);
    kn_optim *optim_alone = kn_optim_sgd(kn_module_parameters(alone), .lr = 0.1);
    EXPECT(net != NULL);
    for (int i = 0; i < 2; i++) {
        kn_optim_zero_grad(optim);
        kn_optim_zero_grad(optim_alone);
        for (int k = 0; k < PARTS / s->size; k++)
            add_part(s, net, i, k * s->size + s->rank);
        add_all_parts(s, alone, i);
        EXPECT(difference(net, alone, true) == 0);
        EXPECT_OK(kn_optim_step(optim));
        EXPECT_OK(kn_optim_step(optim_alone));
        EXPECT(difference(net, alone, false) == 0);
    }
    if (s->size > 1)
        EXPECT(!kn_nn_distributed(network(0), s->group, .parts = s->size + 1) &&
               strstr(kn_error_message(), "must be a multiple of the number of ranks"));
    kn_optim_free(optim);
    kn_optim_free(optim_alone);
    kn_module_free(net);
    kn_module_free(alone);
}

/* --- compression -------------------------------------------------------------------------------------------------- */

/* The gradient of rank r's part, as it is sent: rounded, then divided. */
static kn_tensor *sent_gradient(state *s, kn_module *alone, int parameter, int r, kn_dtype dtype)
{
    kn_module_zero_grad(alone);
    kn_tensor *x = kn_narrow(batch(s, FEATURES, 1, false), 0, ROWS * r, ROWS);
    kn_tensor *y = kn_narrow(batch(s, 2, 1.5, false), 0, ROWS * r, ROWS);
    EXPECT_OK(kn_backward(kn_mse_loss(kn_forward(alone, x), y, KN_REDUCTION_MEAN)));
    KN_NO_GRAD;
    kn_tensor *gradient = kn_grad(kn_module_parameters(alone).tensors[parameter]);
    return kn_div_scalar(kn_to_dtype(gradient, dtype), s->size);
}

static void compresses_as_pytorch_does(state *s)
{
    static const kn_dtype dtypes[] = {KN_F16, KN_BF16};
    for (int d = 0; d < 2; d++) {
        KN_SCOPE;
        kn_module *alone = network(0);
        kn_module *net = kn_nn_distributed(network(0), s->group, .compress = dtypes[d], .first_bucket_bytes = 64);
        step(s, net, NULL, 1, true);
        for (int p = 0; p < 2; p++) {
            kn_tensor *sum = sent_gradient(s, alone, p, 0, dtypes[d]);
            double most = INFINITY;
            for (int r = 1; r < s->size; r++)
                sum = kn_add(sum, sent_gradient(s, alone, p, r, dtypes[d]));
            kn_tensor *gradient = kn_grad(kn_module_parameters(net).tensors[p]);
            EXPECT(kn_dtype_of(gradient) == KN_F64);
            kn_item(kn_max(kn_abs(kn_sub(gradient, kn_to_dtype(sum, KN_F64)))), &most);
            EXPECT(most == 0);
        }
        kn_module_free(net);
        kn_module_free(alone);
    }
    EXPECT(!kn_nn_distributed(network(0), s->group, .compress = KN_I8) &&
           strstr(kn_error_message(), "compress is int8"));
}

/* --- comparing parameters ----------------------------------------------------------------------------------------- */

/* The check before the second pass finds it, and names the rank that is alone with its values. */
static void names_a_rank_that_diverged(state *s)
{
    const int diverged = s->size > 2 ? 0 : s->size - 1;
    kn_module *net = kn_nn_distributed(network(0), s->group, .check_every = 2);
    kn_tensor *last = kn_module_parameters(net).tensors[5];
    step(s, net, NULL, 1, true);
    if (s->rank == diverged) {
        KN_NO_GRAD;
        kn_add_scalar_(kn_narrow(last, 0, 1, 1), 1e-12);
    }
    KN_SCOPE;
    kn_tensor *y = kn_forward(net, batch(s, FEATURES, 1, true));
    char expected[64];
    snprintf(expected, sizeof expected, "the parameters of rank %d (", diverged);
    EXPECT(s->size == 1 ? y != NULL : !y && strstr(kn_error_message(), expected));
    EXPECT(kn_distributed_check(net) == (s->size == 1 ? KN_OK : KN_ERR_STATE));
    kn_module_free(net);
}

int option_cases(kn_group *group, kn_device *device)
{
    static const rank_case cases[] = {
        adds_parts_in_their_order,
        compresses_as_pytorch_does,
        names_a_rank_that_diverged,
    };
    return run_cases(cases, sizeof cases / sizeof cases[0], group, device);
}
