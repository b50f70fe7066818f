/* networks.c - one training step of whole networks: a multilayer perceptron, LeNet, ResNet-18 and -50, MobileNetV2.
 * Each eager and replayed, some under autocast. */
#include "networks.h"

/* --- layers that count their work--------------------------------------------------------------------- */

static void count_products(bench_flow *flow, double products)
{
    flow->flops += (flow->flops > 0 ? 3 : 2) * 2 * products;
}

static void convolve(bench_flow *flow, int64_t out_channels, int64_t kernel, int64_t stride, int64_t padding,
                     int64_t groups)
{
    const double taps = (double)(flow->channels / groups * kernel * kernel);
    flow->height = (flow->height + 2 * padding - kernel) / stride + 1;
    flow->width = (flow->width + 2 * padding - kernel) / stride + 1;
    flow->channels = out_channels;
    count_products(flow, (double)(flow->batch * out_channels * flow->height * flow->width) * taps);
}

kn_module *bench_conv2d(bench_flow *flow, int64_t out_channels, int64_t kernel, int64_t stride, int64_t groups)
{
    const int64_t in_channels = flow->channels;
    convolve(flow, out_channels, kernel, stride, kernel / 2, groups);
    return kn_nn_conv2d(.in_channels = in_channels, .out_channels = out_channels, .kernel_size = kernel,
                        .stride = stride, .padding = kernel / 2, .groups = groups, .bias = false);
}

kn_module *bench_linear(bench_flow *flow, int64_t out_features)
{
    const int64_t in_features = flow->channels * flow->height * flow->width;
    flow->channels = out_features;
    flow->height = flow->width = 1;
    count_products(flow, (double)flow->batch * (double)in_features * (double)out_features);
    return kn_nn_linear(.in_features = in_features, .out_features = out_features);
}

kn_module *bench_children(kn_module *parent, const char *const *names, kn_module *const *children, int count)
{
    for (int i = 0; i < count; i++)
        if (children[i])
            kn_module_register_module(parent, names[i], children[i]);
    return parent;
}

/* --- small networks --------------------------------------------------------------------------- */

static kn_module *perceptron(bench_flow *flow)
{
    kn_module *first = bench_linear(flow, 512), *second = bench_linear(flow, 512), *last = bench_linear(flow, 10);
    return kn_nn_sequential(first, kn_nn_relu(), second, kn_nn_relu(), last);
}

/* LeNet-5 in its modern form, with ReLU and max pooling. */
static kn_module *lenet(bench_flow *flow)
{
    convolve(flow, 6, 5, 1, 2, 1);
    kn_module *first = kn_nn_conv2d(.in_channels = 1, .out_channels = 6, .kernel_size = 5, .padding = 2);
    flow->height /= 2, flow->width /= 2;
    convolve(flow, 16, 5, 1, 0, 1);
    kn_module *second = kn_nn_conv2d(.in_channels = 6, .out_channels = 16, .kernel_size = 5);
    flow->height /= 2, flow->width /= 2;
    kn_module *third = bench_linear(flow, 120), *fourth = bench_linear(flow, 84), *last = bench_linear(flow, 10);
    return kn_nn_sequential(first, kn_nn_relu(), kn_nn_max_pool2d(.kernel_size = 2), second, kn_nn_relu(),
                            kn_nn_max_pool2d(.kernel_size = 2), kn_nn_flatten(), third, kn_nn_relu(), fourth,
                            kn_nn_relu(), last);
}

/* --- set-up: size is batch, channels, height and width, which network --------------------------- */

enum { PERCEPTRON, LENET, RESNET18, RESNET50, MOBILENETV2, NETWORKS };

static kn_module *(*const networks[NETWORKS])(bench_flow *) = {perceptron, lenet, bench_resnet18, bench_resnet50,
                                                               bench_mobilenetv2};

static kn_tensor *make_batch(const bench_case *self)
{
    const int64_t batch = self->size[0], channels = self->size[1], side = self->size[2];
    return self->size[3] == PERCEPTRON ? kn_randn(KN_SHAPE(batch, channels * side * side))
                                       : kn_randn(KN_SHAPE(batch, channels, side, side));
}

/* Adam for the small networks, the usual optimizer for the large ones. ResNet-50 and MobileNetV2 use a small learning
 * rate: the gradient of the second step on few random images is so ill-conditioned that with 0.01 the loss differs by
 * 2 % between f32 and f64, or if weights change by 10^-7, in PyTorch too. */
static kn_optim *make_optim(const bench_case *self, kn_module *module)
{
    const kn_parameter_list parameters = kn_module_parameters(module);
    const double rate = self->size[3] == RESNET18 ? 0.01 : 0.0001;
    return self->size[3] < RESNET18 ? kn_optim_adam(parameters, .lr = 0.001)
                                    : kn_optim_sgd(parameters, .lr = rate, .momentum = 0.9, .weight_decay = 5e-4);
}

static kn_status setup(const bench_case *self, bench_state *state)
{
    bench_training *t = bench_training_new(state);
    bench_flow flow = {
        .batch = self->size[0], .channels = self->size[1], .height = self->size[2], .width = self->size[2]};
    if (!t)
        return KN_ERR_MEMORY;
    t->module = networks[self->size[3]](&flow);
    if (kn_error_status() != KN_OK) /* a layer's constructor failed */
        return kn_error_status();
    state->flops = flow.flops;
    t->optim = make_optim(self, t->module);
    {
        KN_SCOPE;
        t->x = kn_retain(make_batch(self));
        t->y = kn_retain(kn_randint(0, self->size[3] == RESNET50 ? BENCH_IMAGENET_CLASSES : 10, KN_SHAPE(flow.batch)));
    }
    return t->optim && t->x && t->y ? KN_OK : kn_error_status();
}

#define STEP(label, type, batch, channels, side, which, replayed_)                                                     \
    {                                                                                                                  \
        .name = label, .shape = "batch " #batch ", " #channels "x" #side "x" #side, .dtype = type, .setup = setup,     \
        BENCH_TRAINING, .size = {batch, channels, side, which}, .replayed = replayed_,                                 \
    }
#define NETWORK(label, ...) STEP(label, KN_F32, __VA_ARGS__, false), STEP(label "/replayed", KN_F32, __VA_ARGS__, true)
#define AUTOCAST(label, ...) STEP(label "/autocast", KN_BF16, __VA_ARGS__, false)

static const bench_case cases[] = {
    NETWORK("mlp", 128, 1, 28, PERCEPTRON),         NETWORK("lenet", 128, 1, 28, LENET),
    NETWORK("resnet18", 32, 3, 32, RESNET18),       NETWORK("resnet50", 8, 3, 224, RESNET50),
    NETWORK("mobilenetv2", 32, 3, 32, MOBILENETV2), NETWORK("gpu/resnet18", 128, 3, 32, RESNET18),
    AUTOCAST("mlp", 128, 1, 28, PERCEPTRON),        AUTOCAST("resnet18", 32, 3, 32, RESNET18),
    NETWORK("gpu/resnet50", 64, 3, 224, RESNET50),  NETWORK("gpu/mobilenetv2", 128, 3, 32, MOBILENETV2),
};
const bench_list bench_networks = {cases, sizeof cases / sizeof cases[0]};
