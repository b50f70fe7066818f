/* elastic.c - training that goes on after a loss: elastic FOLDER [--die STEP] [--pause SECONDS] [--resume]. Every rank
 * has its share of a joint batch of 12 rows; rank 0 writes a checkpoint after each 5 steps. With --die the last rank
 * kills itself at that step, once; with --pause a step takes so much longer. At the end rank 0 prints the sum of the
 * parameters. FOLDER/joined is its process once all ranks have joined. */
#include <koine/koine.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROWS 12
#define STEPS 40

static kn_tensor *batch(kn_group *group, int columns, double seed)
{
    const int rows = ROWS / kn_group_size(group);
    kn_tensor *host = kn_empty(KN_SHAPE(ROWS, columns), .dtype = KN_F64, .device = kn_device_host());
    double *values = kn_data(host);
    for (int i = 0; i < ROWS * columns; i++)
        values[i] = sin(1.3 * i + seed);
    return kn_narrow(kn_to(host, kn_device_current()), 0, (int64_t)rows * kn_group_rank(group), rows);
}

static kn_status train_step(kn_group *group, kn_module *net, kn_optim *optim, int step)
{
    KN_SCOPE;
    kn_optim_zero_grad(optim);
    kn_status status = kn_backward(
        kn_mse_loss(kn_forward(net, batch(group, 5, step)), batch(group, 2, step + 0.5), KN_REDUCTION_MEAN));
    return status == KN_OK ? kn_optim_step(optim) : status;
}

/* Writes a number to FOLDER/NAME; false if that cannot be, or, with the mode "wx", if the file exists. */
static bool note(const char *folder, const char *name, const char *mode, int number)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, mode);
    if (!file)
        return false;
    fprintf(file, "%d\n", number);
    return fclose(file) == 0;
}

/* Both files are replaced as wholes; the step is part of the name that the other file holds. */
static kn_status save(kn_module *net, const char *folder, int step)
{
    char path[512], pointer[512], temporary[520];
    snprintf(path, sizeof path, "%s/net-%d.safetensors", folder, step);
    snprintf(pointer, sizeof pointer, "%s/last", folder);
    snprintf(temporary, sizeof temporary, "%s.new", pointer);
    kn_status status = kn_module_save(net, path);
    if (status != KN_OK)
        return status;
    return note(folder, "last.new", "w", step) && rename(temporary, pointer) == 0 ? KN_OK : KN_ERR_IO;
}

/* The step to go on from. */
static int load(kn_module *net, const char *folder)
{
    char path[512];
    int step = 0;
    snprintf(path, sizeof path, "%s/last", folder);
    FILE *file = fopen(path, "r");
    const bool found = file && fscanf(file, "%d", &step) == 1;
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "%s/net-%d.safetensors", folder, step);
    return !found ? 0 : kn_module_load(net, path) == KN_OK ? step : -1;
}

static void die_once(const char *folder)
{
    if (note(folder, "died", "wx", 1))
        raise(SIGKILL);
}

typedef struct options {
    const char *folder;
    int deadly;
    double pause;
    bool resumes;
} options;

static int train(kn_group *group, options o)
{
    kn_manual_seed(1);
    kn_module *inner = kn_models_mlp(KN_SIZES(5, 8, 2));
    kn_module_to_dtype(inner, KN_F64);
    const int first = o.resumes ? load(inner, o.folder) : 0;
    kn_module *net = kn_nn_distributed(inner, group);
    kn_optim *optim = kn_optim_sgd(kn_module_parameters(net), .lr = 0.1);
    kn_status status = net && optim && first >= 0 ? KN_OK : kn_error_status();
    for (int step = first; step < STEPS && status == KN_OK; step++) {
        if (step == o.deadly && kn_group_rank(group) == kn_group_size(group) - 1)
            die_once(o.folder);
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * o.pause)}, NULL);
        status = train_step(group, net, optim, step);
        if (status == KN_OK && kn_group_rank(group) == 0 && step % 5 == 4)
            status = save(inner, o.folder, step + 1);
    }
    double sum = 0, value;
    const kn_parameter_list list = kn_module_parameters(net);
    for (int i = 0; i < list.count && status == KN_OK; i++) {
        KN_SCOPE;
        KN_NO_GRAD;
        status = kn_item(kn_sum(list.tensors[i]), &value);
        sum += value;
    }
    if (status != KN_OK)
        fprintf(stderr, "rank %d: %s\n", kn_group_rank(group), kn_error_message());
    else if (kn_group_rank(group) == 0)
        printf("trained on %d ranks from step %d: %.10f\n", kn_group_size(group), first, sum);
    kn_optim_free(optim);
    kn_module_free(net);
    return status != KN_OK;
}

int main(int argc, char **argv)
{
    options o = {.folder = argc < 2 ? "" : argv[1], .deadly = -1};
    for (int i = 2; i < argc; i++) {
        o.resumes |= strcmp(argv[i], "--resume") == 0;
        if (strcmp(argv[i], "--die") == 0 && i + 1 < argc)
            o.deadly = atoi(argv[++i]);
        else if (strcmp(argv[i], "--pause") == 0 && i + 1 < argc)
            o.pause = atof(argv[++i]);
    }
    kn_group *group = argc < 2 ? NULL : kn_group_open(.lost_after = 2);
    if (!group) {
        const char *usage = "elastic FOLDER [--die STEP] [--pause SECONDS] [--resume]";
        fprintf(stderr, "%s\n", argc < 2 ? usage : kn_error_message());
        return argc < 2 ? 2 : 1;
    }
    if (kn_group_rank(group) == 0)
        note(o.folder, "joined", "w", (int)getpid());
    const int failed = train(group, o);
    kn_group_free(group);
    return failed;
}
