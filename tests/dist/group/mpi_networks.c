/* mpi_networks.c - the network of train_fashion_mnist and ResNet-18 over ranks: mpirun -n N mpi_networks [NAME DTYPE].
 * Twenty steps must have the losses of one rank that trains on the joint batches, and the same bits twice. Rank 0
 * prints how far apart they are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fashion.h"
#include "dist/group/rank_case.h"
#include "dist/group/training.h"

enum { STEPS = 20, JOINT_BATCH = 8, CLASSES = 10 };

typedef struct subject {
    const char *name;
    kn_module *(*make)(void);
    int64_t channels, side;
    double lr;
    bool in_float32; /* false: on images as small as here roundings of float32 grow to 2e-2 of the loss */
} subject;

/* Dropout draws other masks on each rank. */
static kn_module *make_fashion(void)
{
    kn_module *net = fashion_network();
    kn_module_train(kn_module_named_child(net, "dropout"), false);
    return net;
}

static kn_module *make_resnet18(void)
{
    return kn_models_new("resnet18", .num_classes = CLASSES, .in_channels = 3, .small_images = true);
}

static const subject subjects[] = {
    {"fashion", make_fashion, 1, 28, 0.05, true},
    {"resnet18", make_resnet18, 3, 8, 1e-4, false},
};

/* Its own patterns for each class, and noise. */
static kn_batch joint_batch(const subject *what, kn_dtype dtype, int step)
{
    const int64_t pixels = what->channels * what->side * what->side;
    kn_tensor *x = kn_empty(KN_SHAPE(JOINT_BATCH, what->channels, what->side, what->side), .dtype = KN_F64,
                            .device = kn_device_host());
    kn_tensor *y = kn_empty(KN_SHAPE(JOINT_BATCH), .dtype = KN_I64, .device = kn_device_host());
    double *values = kn_data(x);
    int64_t *classes = kn_data(y);
    for (int64_t i = 0; i < JOINT_BATCH; i++) {
        classes[i] = (i * i + 3 * step) % CLASSES;
        for (int64_t p = 0; p < pixels; p++)
            values[i * pixels + p] = sin(0.11 * (double)((classes[i] + 1) * p)) +
                                     0.5 * sin(12.9898 * (double)(p + pixels * (i + JOINT_BATCH * step)));
    }
    return (kn_batch){.input = kn_to_device(x, kn_device_current(), .dtype = dtype),
                      .target = kn_to_device(y, kn_device_current())};
}

/* The loss of the joint batch. `group` NULL: of this rank alone, else of this rank's part, averaged. */
static double train_step(state *s, const subject *what, kn_module *net, kn_optim *optim, kn_group *group, int number)
{
    KN_SCOPE;
    double value = NAN;
    const kn_batch joint = joint_batch(what, kn_dtype_of(kn_module_parameters(net).tensors[0]), number);
    const int64_t rows = group ? JOINT_BATCH / s->size : JOINT_BATCH, first = group ? rows * s->rank : 0;
    kn_optim_zero_grad(optim);
    kn_tensor *y = kn_forward(net, kn_narrow(joint.input, 0, first, rows));
    kn_tensor *loss = kn_cross_entropy(y, kn_narrow(joint.target, 0, first, rows));
    EXPECT_OK(kn_backward(loss));
    EXPECT_OK(kn_optim_step(optim));
    EXPECT_OK(kn_item(loss, &value));
    if (!group)
        return value;
    kn_tensor *mean = kn_full(KN_SHAPE(1), value, .dtype = KN_F64, .device = kn_device_host());
    EXPECT_OK(kn_group_all_reduce(group, mean, .op = KN_REDUCE_MEAN));
    return *(double *)kn_data(mean);
}

static kn_module *train(state *s, const subject *what, kn_dtype dtype, kn_group *group, double losses[STEPS])
{
    kn_manual_seed(1);
    kn_module *net = what->make();
    EXPECT_OK(kn_module_to_dtype(net, dtype));
    if (group) {
        net = kn_nn_distributed(kn_convert_sync_batchnorm(net, group), group);
        EXPECT(net != NULL);
    }
    kn_optim *optim = kn_optim_sgd(kn_module_parameters(net), .lr = what->lr, .momentum = 0.9);
    for (int i = 0; i < STEPS; i++)
        losses[i] = train_step(s, what, net, optim, group, i);
    kn_optim_free(optim);
    return net;
}

static void compare(state *s, const subject *what, kn_dtype dtype)
{
    double joint[STEPS], again[STEPS], alone[STEPS], furthest = 0;
    kn_module *a = train(s, what, dtype, s->group, joint), *b = train(s, what, dtype, s->group, again);
    EXPECT(memcmp(joint, again, sizeof joint) == 0 && difference(a, b, false) == 0);
    EXPECT_OK(kn_distributed_check(a));
    kn_module_free(b);
    if (s->rank == 0) {
        kn_module *c = train(s, what, dtype, NULL, alone);
        for (int i = 0; i < STEPS; i++)
            furthest = fmax(furthest, isfinite(joint[i]) ? fabs(joint[i] - alone[i]) / fmax(1, alone[i]) : INFINITY);
        printf("%-8s %s on %d ranks: loss %.4f -> %.4f, losses differ by %.1e, parameters by %.1e\n", what->name,
               kn_dtype_name(dtype), s->size, alone[0], alone[STEPS - 1], furthest, difference(a, c, false));
        fflush(stdout);
        EXPECT(furthest < (dtype == KN_F64 ? 1e-10 : 1e-5));
        EXPECT(alone[STEPS - 1] != alone[0]);
        kn_module_free(c);
    }
    EXPECT_OK(kn_group_barrier(s->group));
    kn_module_free(a);
}

int main(int argc, char **argv)
{
    kn_group *group = kn_group_open();
    kn_device *device = group ? kn_device_open("auto") : NULL;
    if (!device || JOINT_BATCH % kn_group_size(group) != 0) {
        fprintf(stderr, "%s\n", device ? "mpi_networks: 1, 2, 4 or 8 ranks" : kn_error_message());
        return 2;
    }
    state s = {group, device, kn_group_rank(group), kn_group_size(group), 0};
    for (size_t i = 0; i < 2 * sizeof subjects / sizeof subjects[0]; i++) {
        const subject *what = &subjects[i / 2];
        const kn_dtype dtype = i % 2 ? KN_F32 : KN_F64;
        if ((argc > 1 && strcmp(argv[1], what->name) != 0) || (argc > 2 && strcmp(argv[2], kn_dtype_name(dtype)) != 0))
            continue;
        if (dtype == KN_F32 && !what->in_float32)
            continue;
        KN_SCOPE;
        compare(&s, what, dtype);
    }
    kn_group_free(group);
    return s.failures > 0;
}
