/* fuzz_state.c - loads anything as the state of a module, optimizers, a schedule, a gradient scaler and an average. */
#include <koine/averaged_model.h>
#include <koine/grad_scaler.h>
#include <koine/koine.h>

#include "fuzz_input.h"

static struct {
    kn_module *net;
    kn_optim *adam, *muon, *lbfgs;
    kn_lr_scheduler *schedule;
    kn_grad_scaler *scaler;
    kn_averaged_model *average;
} all;

static void make(void)
{
    all.net = kn_nn_linear(.in_features = 2, .out_features = 3, .bias = false);
    const kn_parameter_list parameters = kn_module_parameters(all.net);
    all.adam = kn_optim_adam(parameters, .amsgrad = true);
    all.muon = kn_optim_muon(parameters);
    all.lbfgs = kn_optim_lbfgs(parameters, .history_size = 3);
    all.schedule = kn_reduce_lr_on_plateau(all.adam);
    all.scaler = kn_grad_scaler_new();
    all.average = kn_averaged_model_new(parameters);
}

static void check(kn_status status)
{
    if (status != KN_OK)
        fuzz_expect_message();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_input_file(data, size);
    if (!all.net)
        make();
    check(kn_module_load(all.net, path));
    check(kn_optim_load(all.adam, path));
    check(kn_optim_load(all.muon, path));
    check(kn_optim_load(all.lbfgs, path));
    check(kn_lr_scheduler_load(all.schedule, path));
    check(kn_grad_scaler_load(all.scaler, path));
    check(kn_averaged_model_load(all.average, path));
    return 0;
}
