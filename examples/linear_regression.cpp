// linear_regression.cpp - fits y = x w^T + b to noisy points, in C++17: linear_regression_cpp [DEVICE]
//
// Koine's header is C with macros that C++ lacks (designated initialisers in any order, compound literals). C++ calls
// the plain function behind each macro, whose name ends in _with. It takes a struct of parameters that starts as
// kn_X_params_init(), which holds the defaults; nullptr means the defaults too. Never start from `{}`: that is zeros.
#include <koine/koine.h>

#include <cstdint>
#include <cstdio>
#include <memory>

namespace
{

constexpr std::int64_t samples = 20000;
constexpr int epochs = 300;

using tensor = std::unique_ptr<kn_tensor, decltype(&kn_release)>;
using network = std::unique_ptr<kn_module, decltype(&kn_module_free)>;
using optimizer = std::unique_ptr<kn_optim, decltype(&kn_optim_free)>;

// A tensor that outlives the scope it was made in.
tensor keep(kn_tensor *made) { return tensor(kn_retain(made), &kn_release); }

// In C: kn_nn_linear(.in_features = 2, .out_features = 1)
network new_model()
{
    kn_nn_linear_params params = kn_nn_linear_params_init();
    params.in_features = 2;
    params.out_features = 1;
    return network(kn_nn_linear_with(&params), &kn_module_free);
}

// In C: kn_optim_adam(kn_module_parameters(model), .lr = 0.1)
optimizer new_optimizer(kn_module *model)
{
    kn_adam_params params = kn_adam_params_init();
    params.lr = 0.1;
    return optimizer(kn_optim_adam_with(kn_module_parameters(model), &params), &kn_optim_free);
}

struct points {
    tensor x, y;
};

// y = x (2, -3)^T + 10 + noise. nullptr: the defaults of kn_tensor_options.
points new_points()
{
    KN_SCOPE; // to the end of the block, as in C
    const std::int64_t wide[] = {samples, 2}, tall[] = {samples, 1}, column[] = {2, 1};
    const float slopes[] = {2, -3};
    kn_tensor *w = kn_from_data_with(slopes, 2, column, nullptr);
    kn_tensor *x = kn_add_scalar(kn_mul_scalar(kn_rand_with(2, wide, nullptr), 10), -5);
    kn_tensor *noise = kn_normal_with_(kn_empty_with(2, tall, nullptr), 0, 2, nullptr);
    return {keep(x), keep(kn_add(kn_add_scalar(kn_matmul(x, w), 10), noise))};
}

// One step; its loss goes to *value where that is not nullptr, which waits for the device.
bool step(kn_module *model, kn_optim *optim, const points &data, double *value)
{
    KN_SCOPE;
    kn_optim_zero_grad(optim);
    kn_tensor *loss = kn_mse_loss(kn_forward(model, data.x.get()), data.y.get(), KN_REDUCTION_MEAN);
    return kn_backward(loss) == KN_OK && kn_optim_step(optim) == KN_OK &&
           (value == nullptr || kn_item(loss, value) == KN_OK);
}

bool train(kn_module *model, kn_optim *optim, const points &data)
{
    for (int epoch = 0; epoch < epochs; epoch++) {
        double loss = 0;
        const bool shown = epoch % 50 == 0;
        if (!step(model, optim, data, shown ? &loss : nullptr))
            return false;
        if (shown)
            std::printf("epoch: %d, loss: %.6f\n", epoch, loss);
    }
    return true;
}

bool show(kn_module *model)
{
    float w[2] = {}, b = 0;
    if (kn_read(kn_module_get(model, "weight"), w, sizeof w) != KN_OK ||
        kn_read(kn_module_get(model, "bias"), &b, sizeof b) != KN_OK)
        return false;
    std::printf("w = (%.4f, %.4f), b = %.4f\n", w[0], w[1], b);
    return true;
}

bool run(const char *device_name)
{
    kn_device *device = kn_device_open(device_name);
    if (device == nullptr || kn_device_set_current(device) != KN_OK)
        return false;
    std::printf("device: %s\n", kn_device_name(device));
    kn_manual_seed(1);
    const network model = new_model();
    const optimizer optim = new_optimizer(model.get());
    const points data = new_points();
    return train(model.get(), optim.get(), data) && show(model.get());
}

} // namespace

int main(int argc, char **argv)
{
    if (run(argc > 1 ? argv[1] : "auto"))
        return 0;
    std::fprintf(stderr, "linear_regression_cpp: %s\n", kn_error_message());
    return 1;
}
