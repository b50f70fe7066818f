/* common/fashion.c - the network and the data of the Fashion-MNIST examples. */
#include "common/fashion.h"

#include <stdlib.h>

const char *const fashion_classes[FASHION_CLASSES] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                      "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

kn_module *fashion_network(void)
{
    kn_module *net = kn_nn_sequential_of(NULL, 0);
    kn_status added = KN_OK;
#define ADD(name, layer) added = added == KN_OK ? kn_nn_add_module(net, name, layer) : added
    ADD("conv1", kn_nn_conv2d(.in_channels = 1, .out_channels = 32, .kernel_size = 3));
    ADD("pool1", kn_nn_max_pool2d(.kernel_size = 2, .stride = 2));
    ADD("conv2", kn_nn_conv2d(.in_channels = 32, .out_channels = 64, .kernel_size = 5));
    ADD("pool2", kn_nn_max_pool2d(.kernel_size = 2, .stride = 2));
    ADD("dropout", kn_nn_dropout2d(.p = 0.1));
    ADD("adaptive_pool", kn_nn_adaptive_max_pool2d(1, 1));
    ADD("flatten", kn_nn_flatten());
    ADD("linear1", kn_nn_linear(.in_features = 64, .out_features = 32));
    ADD("relu", kn_nn_relu());
    ADD("linear2", kn_nn_linear(.in_features = 32, .out_features = 10));
#undef ADD
    if (added == KN_OK)
        return net;
    kn_module_free(net);
    return NULL;
}

/* --- the data ----------------------------------------------------------------------------------------------------- */

/* The first `limit` images; 0: all. A dataset keeps those alive that it is made of. */
static kn_dataset *images_of(const fashion_options *options, bool train)
{
    kn_dataset *all = kn_mnist_dataset(options->directory, train);
    const int64_t length = all ? kn_dataset_length(all) : 0, limit = options->limit;
    if (limit <= 0 || limit >= length)
        return all;
    int64_t *first = malloc((size_t)limit * sizeof *first);
    for (int64_t i = 0; first != NULL && i < limit; i++)
        first[i] = i;
    kn_dataset *some = first != NULL ? kn_subset(all, first, limit) : NULL;
    if (first == NULL)
        kn_error_set(KN_ERR_MEMORY, "out of host memory");
    free(first);
    kn_dataset_free(all);
    return some;
}

kn_status fashion_open(fashion_data *data, const fashion_options *options)
{
    const int workers = (int)options->workers;
    *data = (fashion_data){.train_images = images_of(options, true), .test_images = images_of(options, false)};
    if (data->train_images == NULL || data->test_images == NULL)
        return kn_error_status();
    data->train = kn_loader_new(data->train_images, .batch_size = options->batch_size, .shuffle = true,
                                .num_workers = workers, .seed = (uint64_t)options->seed);
    data->test = kn_loader_new(data->test_images, .batch_size = options->batch_size, .num_workers = workers);
    return data->train != NULL && data->test != NULL ? KN_OK : kn_error_status();
}

void fashion_close(fashion_data *data)
{
    kn_loader_free(data->train);
    kn_loader_free(data->test);
    kn_dataset_free(data->train_images);
    kn_dataset_free(data->test_images);
}
