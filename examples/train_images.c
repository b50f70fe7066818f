/* train_images.c - trains any network of koine/models.h on a folder of images, CIFAR or (Fashion-)MNIST: augmentation,
 * MixUp, label smoothing, warm-up and cosine schedule, mixed precision. */
#include <koine/koine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fashion.h"
#include "common/options.h"
#include "common/picture_data.h"
#include "common/training.h"

static const char program[] = "train_images";
static const char purpose[] = "Trains a network on pictures, and writes OUT/model.safetensors for classify.\n"
                              "\n"
                              "--data is the folder of MNIST or Fashion-MNIST (idx files), of CIFAR-10 or\n"
                              "CIFAR-100 (binary version), or one with the folders train and val, which hold\n"
                              "a folder of .png and .jpg files for each class.\n"
                              "\n"
                              "--augment basic: random crops and flips; trivial: also TrivialAugmentWide and\n"
                              "random erasing. With --mixup or --cutmix no training accuracy is shown.\n"
                              "\n"
                              "The files in --out have torchvision's parameter names. Ctrl-C ends the run after\n"
                              "the current step; --resume continues after the last finished epoch.\n"
                              "\n" TRAINING_RANKS "\n"
                              "Exit status: 0 done, 1 an error, 2 wrong usage, 130 after Ctrl-C, 143 after\n"
                              "SIGTERM (128 plus the signal's number).";

typedef struct settings {
    const char *device, *data, *out, *model, *augment, *precision;
    int64_t epochs, batch_size, size, seed, workers, limit;
    double lr, weight_decay, warmup, smoothing, mixup, cutmix;
    bool resume, quiet;
} settings;

static int parse(settings *s, int argc, char **argv)
{
    const option options[] = {
        {"--device", "D", OPTION_TEXT, &s->device, 0, 0, "auto, gpu, cpu, nvidia, ... (see `koine devices`)"},
        {"--data", "DIR", OPTION_TEXT, &s->data, 0, 0, "folder of the pictures"},
        {"--model", "NAME", OPTION_TEXT, &s->model, 0, 0, "the network: lenet5, resnet18, mobilenet_v3_small, ..."},
        {"--size", "N", OPTION_WHOLE, &s->size, 0, 4096, "height and width of the input; 0: the data set's, or 224"},
        {"--epochs", "N", OPTION_WHOLE, &s->epochs, 1, 1000000, "passes over the pictures"},
        {"--batch-size", "N", OPTION_WHOLE, &s->batch_size, 1, 65536, "pictures per step and process"},
        {"--lr", "X", OPTION_NUMBER, &s->lr, 0, 1000, "highest learning rate, of AdamW"},
        {"--weight-decay", "X", OPTION_NUMBER, &s->weight_decay, 0, 1000, "of AdamW"},
        {"--warmup", "X", OPTION_NUMBER, &s->warmup, 0, 0.9, "part of the run in which the learning rate rises"},
        {"--precision", PRECISIONS, OPTION_CHOICE, &s->precision, 0, 0, "of products and convolutions"},
        {"--augment", "none|basic|trivial", OPTION_CHOICE, &s->augment, 0, 0, "of the training images"},
        {"--smoothing", "X", OPTION_NUMBER, &s->smoothing, 0, 1, "label smoothing"},
        {"--mixup", "ALPHA", OPTION_NUMBER, &s->mixup, 0, 100, "mix pictures; 0: do not"},
        {"--cutmix", "ALPHA", OPTION_NUMBER, &s->cutmix, 0, 100, "paste parts of pictures; 0: do not"},
        {"--seed", "N", OPTION_WHOLE, &s->seed, 0, 9e18, "seed of weights, order and augmentation"},
        {"--workers", "N", OPTION_WHOLE, &s->workers, 0, 256, "threads that prepare batches"},
        {"--limit", "N", OPTION_WHOLE, &s->limit, 0, 1e9, "use only N pictures of each set; 0: all"},
        {"--out", "DIR", OPTION_TEXT, &s->out, 0, 0, "folder for the results"},
        {"--resume", NULL, OPTION_FLAG, &s->resume, 0, 0, "continue the run in --out"},
        {"--quiet", NULL, OPTION_FLAG, &s->quiet, 0, 0, "no progress on stderr"},
    };
    return options_parse(program, purpose, options, OPTION_COUNT(options), argc, argv);
}

typedef struct run {
    kn_group *group;
    kn_device *device;
    picture_model model;
    picture_data data;
    kn_mixup_params mixing;
    kn_loader *train, *test;
    kn_module *net;
    kn_optim *optim;
    kn_lr_scheduler *schedule;
    kn_trainer *trainer;
} run;

static void clean_up(run *r)
{
    const bool trained = r->trainer != NULL;
    kn_trainer_free(r->trainer);
    kn_lr_scheduler_free(r->schedule);
    kn_optim_free(r->optim);
    kn_module_free(r->net);
    kn_loader_free(r->train);
    kn_loader_free(r->test);
    picture_data_close(&r->data);
    free(r->model.classes);
    training_leave(r->group, trained);
}

static kn_status open_data(run *r, const settings *s)
{
    const picture_options options = {.directory = s->data, .augment = s->augment, .size = s->size, .limit = s->limit};
    snprintf(r->model.name, sizeof r->model.name, "%s", s->model);
    kn_status status = picture_data_open(&r->data, &r->model, &options);
    if (status != KN_OK)
        return status;
    const bool mixes = s->mixup > 0 || s->cutmix > 0;
    r->mixing =
        (kn_mixup_params){.num_classes = r->model.num_classes, .mixup_alpha = s->mixup, .cutmix_alpha = s->cutmix};
    r->train = kn_loader_new(r->data.train, .batch_size = s->batch_size, .shuffle = true, .drop_last = mixes,
                             .num_workers = (int)s->workers, .seed = (uint64_t)s->seed,
                             .collate = mixes ? kn_collate_mixup : NULL, .collate_user = &r->mixing);
    r->test = kn_loader_new(r->data.test, .batch_size = s->batch_size, .num_workers = (int)s->workers);
    printf("data: %lld pictures in %lld classes, %lld to test; %s, %lld x %lld\n",
           (long long)kn_loader_samples(r->train), (long long)r->model.num_classes,
           (long long)kn_loader_samples(r->test), r->model.channels == 1 ? "gray" : "RGB", (long long)r->model.size,
           (long long)r->model.size);
    return r->train != NULL && r->test != NULL ? KN_OK : kn_error_status();
}

/* A linear warm-up, then half a cosine down to 0, step by step. */
static kn_lr_scheduler *make_schedule(kn_optim *optim, int64_t steps, double warmup)
{
    const int64_t rising = (int64_t)(warmup * (double)steps);
    if (rising < 1)
        return kn_cosine_annealing_lr(optim, steps);
    kn_lr_scheduler *parts[] = {kn_linear_lr(optim, .start_factor = 0.01, .total_iters = rising),
                                kn_cosine_annealing_lr(optim, steps - rising)};
    return kn_sequential_lr(optim, parts, 2, &rising);
}

static kn_tensor *smoothed(kn_tensor *const *outputs, const kn_batch *batch, void *user)
{
    const settings *s = user;
    return kn_cross_entropy(outputs[0], batch->target, .label_smoothing = s->smoothing);
}

static kn_status make_trainer(run *r, settings *s)
{
    const bool mixes = s->mixup > 0 || s->cutmix > 0;
    kn_manual_seed((uint64_t)s->seed);
    r->net = training_module(picture_model_network(&r->model), r->group, (uint64_t)s->seed);
    r->optim = kn_optim_adamw(kn_module_parameters(r->net), .lr = s->lr, .weight_decay = s->weight_decay);
    if (r->optim == NULL)
        return kn_error_status();
    r->schedule =
        make_schedule(r->optim, s->epochs * training_batches(r->train, s->batch_size, mixes, r->group), s->warmup);
    if (r->schedule == NULL)
        return kn_error_status();
    r->trainer =
        kn_trainer_new(.module = r->net, .optim = r->optim, .epochs = (int)s->epochs, .patience = 0, .loss = smoothed,
                       .loss_user = s, .accuracy = !mixes, .monitor = mixes ? "val_loss" : "val_acc",
                       .mode = mixes ? KN_MONITOR_MIN : KN_MONITOR_MAX, .output = s->out, .resume = s->resume,
                       .quiet = s->quiet, .scheduler = r->schedule, .scheduler_per_step = true, .clip_grad_norm = 5,
                       .precision = training_precision(s->precision));
    return kn_status_of(r->trainer);
}

/* The accuracy of the best weights, which the module has after a fit. */
static kn_status show_results(run *r, const settings *s)
{
    double loss, accuracy = 0;
    char from[4200], to[4200];
    kn_status status = kn_trainer_evaluate(r->trainer, r->test, &loss, &accuracy);
    if (kn_group_rank(r->group) > 0)
        return status;
    char *table = kn_history_table(kn_trainer_history(r->trainer));
    printf("\n%s\nbest epoch %d: accuracy %.4f\n", table != NULL ? table : "", kn_trainer_best_epoch(r->trainer),
           accuracy);
    kn_free(table);
    snprintf(from, sizeof from, "%s/checkpoint.safetensors", s->out);
    snprintf(to, sizeof to, "%s/model.safetensors", s->out);
    if (status == KN_OK)
        status = picture_model_save(&r->model, from, to);
    if (status == KN_OK)
        printf("written to %s:\n  model.safetensors, %s\n", s->out, kn_trainer_files(r->trainer));
    return status;
}

static void show_network(const run *r)
{
    const kn_parameter_list parameters = kn_module_parameters(r->net);
    int64_t count = 0;
    for (int i = 0; i < parameters.count; i++)
        count += kn_numel(parameters.tensors[i]);
    printf("network: %s, %lld parameters\n", r->model.name, (long long)count);
}

static kn_status train(run *r, settings *s)
{
    r->group = training_ranks();
    r->device = r->group != NULL ? training_device(s->device, r->group) : NULL;
    kn_status status = r->device != NULL ? open_data(r, s) : kn_error_status();
    if (status == KN_OK)
        status = make_trainer(r, s);
    if (status != KN_OK)
        return status;
    show_network(r);
    fflush(stdout);
    status = kn_trainer_fit(r->trainer, r->train, r->test);
    return status == KN_OK ? show_results(r, s) : status;
}

int main(int argc, char **argv)
{
    settings s = {.device = "auto",
                  .data = FASHION_DATA,
                  .out = "./out",
                  .model = "resnet18",
                  .augment = "basic",
                  .precision = "f32",
                  .epochs = 10,
                  .batch_size = 128,
                  .workers = 2,
                  .lr = 0.002,
                  .weight_decay = 0.05,
                  .warmup = 0.1,
                  .smoothing = 0.1};
    int usage = parse(&s, argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    run r = {0};
    kn_status status = train(&r, &s);
    const int exit_status = training_status(program, status, r.trainer);
    clean_up(&r);
    return options_finish(program, exit_status);
}
