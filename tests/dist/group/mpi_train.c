/* mpi_train.c - a rank of a training run that tests/compare_distributed.py compares with PyTorch's:
 * mpirun -n 2 mpi_train FOLDER NETWORK STEPS LR [f64]. FOLDER has weights.safetensors and, for each rank,
 * batches_RANK.safetensors with x.STEP and y.STEP. Rank 0 writes result.safetensors; each prints its losses. */
#include <koine/koine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The convolutional network of the seeds, without its dropout, which draws other numbers in PyTorch. */
static kn_module *seed_cnn(void)
{
    return kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 32, .kernel_size = 3),
                            kn_nn_max_pool2d(.kernel_size = 2, .stride = 2),
                            kn_nn_conv2d(.in_channels = 32, .out_channels = 64, .kernel_size = 5),
                            kn_nn_max_pool2d(.kernel_size = 2, .stride = 2), kn_nn_dropout2d(.p = 0),
                            kn_nn_adaptive_max_pool2d(1, 1), kn_nn_flatten(),
                            kn_nn_linear(.in_features = 64, .out_features = 32), kn_nn_relu(),
                            kn_nn_linear(.in_features = 32, .out_features = 10));
}

static kn_tensor *take(const kn_tensor_file *batches, const char *name, int step, kn_dtype dtype)
{
    char key[32];
    snprintf(key, sizeof key, "%s.%d", name, step);
    return kn_to_device(kn_tensor_file_get(batches, key), kn_device_current(), .dtype = dtype);
}

static kn_status train(kn_module *net, const kn_tensor_file *batches, int steps, double lr, kn_dtype dtype)
{
    kn_optim *optim = kn_optim_sgd(kn_module_parameters(net), .lr = lr, .momentum = 0.9);
    for (int i = 0; i < steps && kn_error_status() == KN_OK; i++) {
        KN_SCOPE;
        double value = 0;
        kn_optim_zero_grad(optim);
        kn_tensor *y = kn_forward(net, take(batches, "x", i, dtype));
        kn_tensor *loss = kn_cross_entropy(y, take(batches, "y", i, KN_I64));
        kn_backward(loss);
        kn_optim_step(optim);
        kn_item(loss, &value);
        printf("loss %d %.17g\n", i, value);
    }
    kn_optim_free(optim);
    return kn_error_status();
}

int main(int argc, char **argv)
{
    kn_group *group = kn_group_open(.backend = "mpi");
    char path[4096];
    if (!group || argc < 5) {
        fprintf(stderr, "%s\n", group ? "mpi_train FOLDER NETWORK STEPS LR [f64]" : kn_error_message());
        return 2;
    }
    const kn_dtype dtype = argc > 5 && strcmp(argv[5], "f64") == 0 ? KN_F64 : KN_F32;
    kn_module *net = strcmp(argv[2], "cnn") == 0
                         ? seed_cnn()
                         : kn_models_new(argv[2], .num_classes = 10, .in_channels = 3, .small_images = true);
    kn_module_to_dtype(net, dtype);
    snprintf(path, sizeof path, "%s/weights.safetensors", argv[1]);
    kn_module_load(net, path);
    net = kn_nn_distributed(net, group);
    snprintf(path, sizeof path, "%s/batches_%d.safetensors", argv[1], kn_group_rank(group));
    kn_tensor_file *batches = net ? kn_load_safetensors(path) : NULL;
    if (batches)
        train(net, batches, atoi(argv[3]), atof(argv[4]), dtype);
    snprintf(path, sizeof path, "%s/result.safetensors", argv[1]);
    if (kn_error_status() == KN_OK && kn_group_rank(group) == 0)
        kn_module_save(kn_data_parallel_inner(net), path);
    const bool failed = kn_error_status() != KN_OK;
    if (failed)
        fprintf(stderr, "rank %d: %s\n", kn_group_rank(group), kn_error_message());
    kn_tensor_file_free(batches);
    kn_module_free(net);
    kn_group_free(group);
    return failed;
}
