/* cli/warm_models.c - see cli/warm_models.h. Sizes are those of the examples and of koine-bench: they decide which
 * kernels are chosen. */
#include "cli/warm_models.h"

#include <string.h>

/* The network of examples/train_fashion_mnist.c. */
static kn_module *make_cnn(const kn_warm_model *model)
{
    return kn_nn_sequential(
        kn_nn_conv2d(.in_channels = 1, .out_channels = 32, .kernel_size = 3), kn_nn_max_pool2d(.kernel_size = 2),
        kn_nn_conv2d(.in_channels = 32, .out_channels = 64, .kernel_size = 5), kn_nn_max_pool2d(.kernel_size = 2),
        kn_nn_dropout2d(.p = 0.1), kn_nn_adaptive_max_pool2d(1, 1), kn_nn_flatten(),
        kn_nn_linear(.in_features = 64, .out_features = 32), kn_nn_relu(),
        kn_nn_linear(.in_features = 32, .out_features = model->classes));
}

static kn_module *make_mlp(const kn_warm_model *model)
{
    return kn_models_mlp(KN_SIZES(784, 512, 512, model->classes));
}

static kn_module *make_gpt(const kn_warm_model *model)
{
    return kn_models_gpt2(.vocab_size = model->classes, .n_positions = model->shape[0], .n_embd = 256, .n_layer = 4,
                          .n_head = 4);
}

static kn_module *make_image_network(const kn_warm_model *model)
{
    const int64_t size = model->shape[2];
    return kn_models_new(model->name, .num_classes = model->classes, .in_channels = model->shape[0],
                         .small_images = size < 64, .image_size = size);
}

static const kn_warm_model models[] = {
    {"cnn", true, 128, 10, {1, 28, 28}, 3, false, make_cnn},
    {"mlp", false, 128, 10, {1, 28, 28}, 3, false, make_mlp},
    {"lenet5", false, 128, 10, {1, 28, 28}, 3, false, make_image_network},
    {"resnet18", false, 32, 10, {3, 32, 32}, 3, false, make_image_network},
    {"mobilenet_v2", false, 32, 10, {3, 32, 32}, 3, false, make_image_network},
    {"gpt", false, 8, 4096, {128}, 1, true, make_gpt},
};
#define MODELS ((int)(sizeof models / sizeof models[0]))

const kn_warm_model *kn_warm_model_at(int index) { return index < MODELS ? &models[index] : NULL; }

bool kn_warm_model_find(kn_warm_model *model, const char *name)
{
    for (int i = 0; i < MODELS; i++)
        if (strcmp(models[i].name, name) == 0)
            return *model = models[i], true;
    for (int i = 0; kn_models_name(i); i++)
        if (strcmp(kn_models_name(i), name) == 0)
            return *model =
                       (kn_warm_model){kn_models_name(i), false, 32, 1000, {3, 224, 224}, 3, false, make_image_network},
                   true;
    return false;
}

/* --- training ----------------------------------------------------------------------------------------------------- */

static kn_tensor *next_token_loss(kn_tensor *const *outputs, const kn_batch *batch, void *user)
{
    (void)user;
    return kn_cross_entropy(kn_flatten(outputs[0], 0, 1), kn_flatten(batch->target, 0, -1));
}

/* Zeros, in batches of which the last is smaller, as of Fashion-MNIST: three quarters; in the evaluation an eighth. */
static kn_dataset *make_data(const kn_warm_model *model, int64_t samples)
{
    KN_SCOPE;
    int64_t shape[5] = {samples};
    memcpy(shape + 1, model->shape, (size_t)model->ndim * sizeof *shape);
    const int ndim = 1 + (int)model->ndim;
    kn_tensor_options options = kn_tensor_options_init();
    options.device = kn_device_host();
    options.dtype = model->text ? KN_I64 : KN_F32;
    kn_tensor *input = kn_zeros_with(ndim, shape, &options);
    options.dtype = KN_I64;
    return kn_tensor_dataset(input, kn_zeros_with(model->text ? ndim : 1, shape, &options));
}

typedef struct training {
    kn_dataset *data[2]; /* to train on, to evaluate */
    kn_loader *loaders[2];
    kn_module *net;
    kn_optim *optim;
    kn_trainer *trainer;
} training;

static kn_status make_training(training *t, const kn_warm_model *model)
{
    const int64_t batch = model->batch_size, samples[2] = {batch + batch * 3 / 4, batch + (batch + 7) / 8};
    for (int i = 0; i < 2; i++) {
        t->data[i] = make_data(model, samples[i]);
        t->loaders[i] = t->data[i] ? kn_loader_new(t->data[i], .batch_size = batch) : NULL;
        if (!t->loaders[i])
            return kn_error_status();
    }
    t->net = model->make(model);
    t->optim = !t->net       ? NULL
               : model->text ? kn_optim_adamw(kn_module_parameters(t->net))
                             : kn_optim_adam(kn_module_parameters(t->net));
    if (!t->optim)
        return kn_error_status();
    t->trainer =
        kn_trainer_new(.module = t->net, .optim = t->optim, .epochs = 1, .quiet = true, .accuracy = !model->text,
                       .loss = model->text ? next_token_loss : NULL, .clip_grad_norm = model->text ? 1 : 0);
    return kn_status_of(t->trainer);
}

/* Programs that have no data at hand draw it. */
static kn_status draw(const kn_warm_model *model)
{
    KN_SCOPE;
    kn_tensor *drawn[] = {kn_rand(KN_SHAPE(model->batch_size)), kn_randn(KN_SHAPE(model->batch_size)),
                          kn_randint(0, model->classes, KN_SHAPE(model->batch_size))};
    return drawn[0] && drawn[1] && drawn[2] ? KN_OK : kn_error_status();
}

kn_status kn_warm_model_train(const kn_warm_model *model)
{
    training t = {.net = NULL};
    kn_status status = draw(model);
    if (status == KN_OK)
        status = make_training(&t, model);
    if (status == KN_OK)
        status = kn_trainer_fit(t.trainer, t.loaders[0], t.loaders[1]);
    kn_trainer_free(t.trainer);
    kn_optim_free(t.optim);
    kn_module_free(t.net);
    for (int i = 0; i < 2; i++) {
        kn_loader_free(t.loaders[i]);
        kn_dataset_free(t.data[i]);
    }
    return status;
}
