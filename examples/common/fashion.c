/* common/fashion.c - the network and the data of the Fashion-MNIST examples. */
#include "common/fashion.h"

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

/* --- the first samples of a data set --------------------------------------------------------------------------- */

static int64_t first_length(void *self) { return ((first_samples *)self)->length; }

static kn_status first_get(void *self, int64_t index, void *const *fields)
{
    return kn_dataset_get(((first_samples *)self)->base, index, fields);
}

kn_status fashion_open(kn_dataset **dataset, first_samples *cut, const char *directory, bool train, int64_t limit)
{
    cut->base = kn_mnist_dataset(directory, train);
    if (cut->base == NULL)
        return kn_error_status();
    int64_t length = kn_dataset_length(cut->base);
    cut->length = limit > 0 && limit < length ? limit : length;
    const kn_dataset_functions functions = {.length = first_length, .get = first_get};
    *dataset = kn_dataset_new(&functions, cut, kn_dataset_field(cut->base, 0), kn_dataset_field_count(cut->base));
    return kn_status_of(*dataset);
}

void fashion_close(kn_dataset *dataset, first_samples *cut)
{
    kn_dataset_free(dataset);
    kn_dataset_free(cut->base);
}
