/* loop_by_hand.c - the training loop written out, without the trainer; also for several ranks (mpirun -n 2). */
#include <koine/koine.h>
#include <stdio.h>

#include "common/fashion.h"
#include "common/options.h"
#include "common/training.h"

typedef struct run {
    kn_group *group;
    fashion_data data;
    kn_sampler *part; /* of the training images, this rank's; NULL: it is alone */
    kn_module *net;
    kn_optim *optim;
    /* They accumulate on the device: reading a value at each step would make the host wait for the device. */
    kn_metric *loss, *accuracy;
} run;

/* One pass over the training images. False after an error (kn_error_message). */
static bool train(run *r, int64_t epoch)
{
    kn_module_train(r->net, true);
    KN_FOR_BATCHES (batch, r->data.train, epoch) {
        kn_tensor *loss = kn_cross_entropy(kn_forward(r->net, batch->input), batch->target);
        if (kn_backward(loss) != KN_OK || kn_optim_step(r->optim) != KN_OK ||
            kn_metric_update(r->loss, loss, NULL, batch->size) != KN_OK)
            return false;
        kn_optim_zero_grad(r->optim);
    }
    return kn_loader_status(r->data.train) == KN_OK;
}

/* One pass over the test images: no gradients, no dropout. */
static bool test(run *r)
{
    KN_NO_GRAD;
    kn_module_train(r->net, false);
    KN_FOR_BATCHES (batch, r->data.test, 0) {
        if (kn_metric_update(r->accuracy, kn_forward(r->net, batch->input), batch->target, 0) != KN_OK)
            return false;
    }
    return kn_loader_status(r->data.test) == KN_OK;
}

static bool run_epochs(run *r, int64_t epochs)
{
    for (int64_t epoch = 1; epoch <= epochs; epoch++) {
        double loss, accuracy;
        kn_metric_reset(r->loss);
        kn_metric_reset(r->accuracy);
        if (!train(r, epoch) || !test(r) || kn_metric_all_reduce(r->loss, r->group) != KN_OK ||
            kn_metric_compute(r->loss, &loss) != KN_OK || kn_metric_compute(r->accuracy, &accuracy) != KN_OK)
            return false;
        printf("epoch %lld: loss %.4f, test accuracy %.4f\n", (long long)epoch, loss, accuracy);
        fflush(stdout);
    }
    return true;
}

/* --- main ------------------------------------------------------------------------------------------------- */

typedef struct settings {
    const char *device, *data;
    int64_t epochs, batch_size, seed, limit;
    double lr;
} settings;

/* With several ranks each learns from a part of the images. All test on all of them. */
static bool take_part(run *r, const settings *s)
{
    const int ranks = kn_group_size(r->group);
    if (ranks < 2)
        return true;
    r->part = kn_distributed_sampler(r->data.train_images, .num_replicas = ranks, .rank = kn_group_rank(r->group),
                                     .seed = (uint64_t)s->seed);
    kn_loader_free(r->data.train);
    r->data.train =
        kn_loader_new(r->data.train_images, .batch_size = s->batch_size, .sampler = r->part, .num_workers = 2);
    return r->data.train != NULL;
}

static bool set_up(run *r, const settings *s)
{
    const fashion_options options = {
        .directory = s->data, .batch_size = s->batch_size, .workers = 2, .seed = s->seed, .limit = s->limit};
    r->group = training_ranks();
    if (r->group == NULL || training_device(s->device, r->group) == NULL)
        return false;
    kn_manual_seed((uint64_t)s->seed);
    r->net = training_module(fashion_network(), r->group, (uint64_t)s->seed);
    r->optim = kn_optim_adam(kn_module_parameters(r->net), .lr = s->lr);
    r->loss = kn_metric_mean();
    r->accuracy = kn_metric_accuracy();
    return r->optim != NULL && r->loss != NULL && r->accuracy != NULL && fashion_open(&r->data, &options) == KN_OK &&
           take_part(r, s);
}

static void clean_up(run *r, bool done)
{
    kn_metric_free(r->loss);
    kn_metric_free(r->accuracy);
    kn_optim_free(r->optim);
    kn_module_free(r->net);
    fashion_close(&r->data);
    kn_sampler_free(r->part);
    training_leave(r->group, done);
}

int main(int argc, char **argv)
{
    settings s = {.device = "auto", .data = FASHION_DATA, .epochs = 2, .batch_size = 128, .lr = 0.01};
    const option options[] = {
        {"--device", "D", OPTION_TEXT, &s.device, 0, 0,
         "auto, gpu, cpu, nvidia, pocl:0, 0:1, ... (see `koine devices`)"},
        {"--epochs", "N", OPTION_WHOLE, &s.epochs, 1, 1000000, "passes over the training images"},
        {"--batch-size", "N", OPTION_WHOLE, &s.batch_size, 1, 60000, "images per step"},
        {"--lr", "X", OPTION_NUMBER, &s.lr, 0, 1000, "learning rate of Adam"},
        {"--seed", "N", OPTION_WHOLE, &s.seed, 0, 9e18, "seed of the weights, the order of the images and dropout"},
        {"--data", "DIR", OPTION_TEXT, &s.data, 0, 0, "folder of the Fashion-MNIST files"},
        {"--limit", "N", OPTION_WHOLE, &s.limit, 0, 60000, "use only the first N images of each set; 0: all"},
    };
    int usage =
        options_parse("loop_by_hand", "Trains on Fashion-MNIST with an explicit training loop.\n\n" TRAINING_RANKS,
                      options, OPTION_COUNT(options), argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    run r = {0};
    bool done = set_up(&r, &s) && run_epochs(&r, s.epochs);
    if (!done)
        fprintf(stderr, "loop_by_hand: %s\n", kn_error_message());
    clean_up(&r, done);
    return options_finish("loop_by_hand", done ? 0 : 1);
}
