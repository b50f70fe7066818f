/* train_fashion_mnist.c - trains a convolutional network on Fashion-MNIST with the trainer: progress, validation, early
 * stopping, the best checkpoint, history, plot. */
#include <koine/koine.h>
#include <stdio.h>
#include <string.h>

#include "common/class_report.h"
#include "common/device_list.h"
#include "common/fashion.h"
#include "common/options.h"
#include "common/step_profile.h"
#include "common/training.h"

static const char program[] = "train_fashion_mnist";
static const char purpose[] = "Trains a convolutional network on Fashion-MNIST.\n"
                              "\n"
                              "Each epoch writes last.safetensors to --out, from which --resume continues\n"
                              "with the learning rate saved there (with a warning if --lr differs).\n"
                              "Another --batch-size, --seed, --limit or device than before is used as given,\n"
                              "with a warning: the results differ from those of an uninterrupted run. Only one\n"
                              "run at a time may write to a folder.\n"
                              "\n"
                              "Ctrl-C and SIGTERM end the run after the current step; --resume repeats the\n"
                              "interrupted epoch. A second Ctrl-C ends the run at once.\n"
                              "\n" TRAINING_RANKS "\n"
                              "Exit status: 0 done, 1 an error, 2 wrong usage, 130 after Ctrl-C, 143 after\n"
                              "SIGTERM (128 plus the signal's number).";

typedef struct settings {
    const char *device, *devices, *data, *out, *profile, *precision;
    int64_t epochs, batch_size, seed, patience, workers, limit;
    double lr, eps;
    bool resume, quiet, wide, report;
} settings;

static int parse(settings *s, int argc, char **argv)
{
    const option options[] = {
        {"--device", "D", OPTION_TEXT, &s->device, 0, 0,
         "auto, gpu, cpu, nvidia, pocl:0, 0:1, ... (see `koine devices`)"},
        {"--devices", "LIST", OPTION_TEXT, &s->devices, 0, 0,
         "train on several devices at once: gpu:0,gpu:1 or pocl:0,pocl:1 or all (the GPUs)"},
        {"--epochs", "N", OPTION_WHOLE, &s->epochs, 1, 1000000,
         "passes over the training images, including those before --resume"},
        {"--batch-size", "N", OPTION_WHOLE, &s->batch_size, 1, 60000, "images per step and process"},
        {"--lr", "X", OPTION_NUMBER, &s->lr, 0, 1000, "learning rate of Adam"},
        {"--eps", "X", OPTION_NUMBER, &s->eps, 0, 1, "epsilon of Adam"},
        {"--seed", "N", OPTION_WHOLE, &s->seed, 0, 9e18, "seed of the weights, the order of the images and dropout"},
        {"--patience", "N", OPTION_WHOLE, &s->patience, 0, 1000000,
         "epochs without a better val_acc before stopping; 0: never"},
        {"--data", "DIR", OPTION_TEXT, &s->data, 0, 0, "folder of the Fashion-MNIST files"},
        {"--out", "DIR", OPTION_TEXT, &s->out, 0, 0, "folder for history, checkpoints and plot"},
        {"--workers", "N", OPTION_WHOLE, &s->workers, 0, 64, "threads that prepare batches"},
        {"--limit", "N", OPTION_WHOLE, &s->limit, 0, 60000, "use only the first N images of each set; 0: all"},
        {"--precision", PRECISIONS, OPTION_CHOICE, &s->precision, 0, 0,
         "f32; f16 or bf16: products and convolutions on halves, float32 weights"},
        {"--report", NULL, OPTION_FLAG, &s->report, 0, 0,
         "at the end, precision, recall and F1 of each class, and the confusion matrix"},
        {"--profile", "DIR", OPTION_TEXT, &s->profile, 0, 0, "profile a few steps: a table, and DIR/trace.json"},
        {"--wide", NULL, OPTION_FLAG, &s->wide, 0, 0, "all columns of that table, even on a narrow terminal"},
        {"--resume", NULL, OPTION_FLAG, &s->resume, 0, 0,
         "continue from last.safetensors in --out, bit for bit like an uninterrupted run"},
        {"--quiet", NULL, OPTION_FLAG, &s->quiet, 0, 0, "no progress on stderr"},
    };
    return options_parse(program, purpose, options, OPTION_COUNT(options), argc, argv);
}

/* The devices, and everything to be freed. */
typedef struct run {
    kn_group *group;
    kn_device *devices[LONGEST_LIST];
    int num_devices;
    fashion_data data;
    kn_module *net;
    kn_optim *optim;
    kn_trainer *trainer;
} run;

static void clean_up(run *r)
{
    const bool trained = r->trainer != NULL;
    kn_trainer_free(r->trainer);
    kn_optim_free(r->optim);
    kn_module_free(r->net);
    fashion_close(&r->data);
    training_leave(r->group, trained);
}

/* "--devices" names several; the loader copies batches to the first of them, or to "--device". */
static kn_status open_devices(run *r, const settings *s)
{
    r->group = training_ranks();
    if (r->group == NULL)
        return kn_error_status();
    if (s->devices == NULL)
        return kn_status_of(r->devices[r->num_devices++] = training_device(s->device, r->group));
    if (kn_group_size(r->group) > 1)
        return kn_error_set(KN_ERR_ARGUMENT, "--devices is for a single process; with several each has one --device");
    kn_status status = device_list(r->devices, &r->num_devices, s->devices);
    if (status == KN_OK)
        status = kn_device_set_current(r->devices[0]);
    for (int i = 0; i < r->num_devices && status == KN_OK; i++)
        printf("device: %s (%s)\n", kn_device_string(r->devices[i]), kn_device_name(r->devices[i]));
    return status;
}

static kn_status open_data(run *r, const settings *s)
{
    return fashion_open(&r->data, &(fashion_options){.directory = s->data,
                                                     .batch_size = s->batch_size,
                                                     .workers = s->workers,
                                                     .seed = s->seed,
                                                     .limit = s->limit});
}

static kn_status make_network(run *r, const settings *s)
{
    kn_manual_seed((uint64_t)s->seed);
    r->net = fashion_network();
    if (r->num_devices > 1)
        r->net = kn_nn_data_parallel(r->net, .devices = r->devices, .num_devices = r->num_devices);
    r->net = training_module(r->net, r->group, (uint64_t)s->seed);
    r->optim = kn_optim_adam(kn_module_parameters(r->net), .lr = s->lr, .eps = s->eps);
    KN_SCOPE;
    kn_tensor *batch = kn_zeros(KN_SHAPE(s->batch_size, 1, 28, 28));
    char *summary = kn_module_summary_with(r->net, &(kn_module_summary_params){.input = batch});
    if (r->optim == NULL || summary == NULL)
        return kn_error_status();
    fputs(summary, stdout);
    fflush(stdout);
    kn_free(summary);
    r->trainer =
        kn_trainer_new(.module = r->net, .optim = r->optim, .epochs = (int)s->epochs, .patience = (int)s->patience,
                       .monitor = "val_acc", .mode = KN_MONITOR_MAX, .output = s->out, .resume = s->resume,
                       .quiet = s->quiet, .precision = training_precision(s->precision));
    return kn_status_of(r->trainer);
}

static void show_results(const run *r, const settings *s)
{
    const kn_history *history = kn_trainer_history(r->trainer);
    int best = kn_trainer_best_epoch(r->trainer);
    if (kn_history_epochs(history) == 0)
        return;
    char *table = kn_history_table(history);
    if (table != NULL)
        printf("\n%s", table);
    kn_free(table);
    for (int c = 0; best > 0 && c < kn_history_columns(history); c++) {
        if (strcmp(kn_history_column(history, c), "val_acc") == 0)
            printf("\nbest epoch %d: val_acc %.4f\n", best, kn_history_value(history, best - 1, c));
    }
    printf("written to %s:\n  %s\n", s->out, kn_trainer_files(r->trainer));
}

int main(int argc, char **argv)
{
    settings s = {.device = "auto",
                  .data = FASHION_DATA,
                  .precision = "f32",
                  .out = "./out",
                  .epochs = 10,
                  .batch_size = 128,
                  .patience = 5,
                  .workers = 2,
                  .lr = 0.01,
                  .eps = 1e-8};
    int usage = parse(&s, argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    run r = {0};
    kn_status status = open_devices(&r, &s);
    if (status == KN_OK)
        status = open_data(&r, &s);
    if (status == KN_OK)
        status = make_network(&r, &s);
    if (status == KN_OK) {
        const bool is_first = kn_group_rank(r.group) == 0;
        step_profile profile = {.directory = is_first ? s.profile : NULL, .width = s.wide ? KN_WIDE : 0};
        status = step_profile_begin(&profile, r.trainer);
        if (status == KN_OK)
            status = kn_trainer_fit(r.trainer, r.data.train, r.data.test);
        kn_status profiled = step_profile_end(&profile);
        status = status == KN_OK ? profiled : status;
        show_results(&r, &s);
        if (status == KN_OK && s.report)
            status = class_report(r.trainer, r.data.test, fashion_classes, FASHION_CLASSES, is_first ? s.out : NULL);
    }
    const int exit_status = training_status(program, status, r.trainer);
    clean_up(&r);
    return options_finish(program, exit_status);
}
