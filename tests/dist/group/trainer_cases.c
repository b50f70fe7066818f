/* trainer_cases.c - training with the trainer: the figures and weights of one rank that trains on the joint batches,
 * the same decisions on all ranks, one rank's errors reported by all. */
#include "dist/group/trainer_cases.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "dist/group/training.h"

#define SAMPLES 24 /* for training: the same number for 1, 2, 3 and 4 ranks */
#define HELD_OUT 11
#define JOINT_BATCH 12

static _Thread_local const char *output;

/* Points in two classes; the same on all ranks. */
static kn_dataset *points(int64_t count, double seed)
{
    KN_SCOPE;
    kn_tensor *x = kn_empty(KN_SHAPE(count, FEATURES), .dtype = KN_F64, .device = kn_device_host());
    kn_tensor *y = kn_empty(KN_SHAPE(count), .dtype = KN_I64, .device = kn_device_host());
    double *values = kn_data(x);
    int64_t *classes = kn_data(y);
    for (int64_t i = 0; i < count * FEATURES; i++)
        values[i] = sin(1.3 * (double)i + seed);
    for (int64_t i = 0; i < count; i++)
        classes[i] = values[i * FEATURES] + 0.5 * cos((double)i) > 0;
    return kn_tensor_dataset(x, y);
}

/* `with_buffers`: with batch normalisation. */
static kn_module *network_of(double seed, bool with_buffers)
{
    if (!with_buffers)
        return network(seed);
    kn_module *norm = kn_nn_batch_norm1d(.num_features = FEATURES);
    kn_module_to_dtype(norm, KN_F64);
    fill(kn_module_parameters(norm).tensors[0], seed);
    return kn_nn_sequential(norm, network(seed));
}

/* What goes wrong, when and where. */
typedef struct trouble {
    int rank; /* this rank's number, if it is the one in trouble, else -1 */
    enum { NO_TROUBLE, NAN_LOSS, LOSS_ERROR, HELD_OUT_ERROR, CALLBACK_ERROR, STOP, SLOW } kind;
    int calls;
    int64_t rested; /* when SLOW last let it go on */
} trouble;

/* Twice as long as all else in a step takes, which is long where ranks share cores. */
static void be_slow(trouble *t)
{
    const int64_t now = kn_clock_now(), least = 30000000, work = t->rested ? now - t->rested : 0;
    const int64_t pause = 2 * work > least ? 2 * work : least;
    nanosleep(&(struct timespec){.tv_sec = pause / 1000000000, .tv_nsec = pause % 1000000000}, NULL);
    t->rested = kn_clock_now();
}

static kn_tensor *loss_of(kn_tensor *const *outputs, const kn_batch *batch, void *user)
{
    trouble *t = user;
    kn_tensor *loss = kn_cross_entropy(outputs[0], batch->target);
    if (t->rank >= 0 && t->kind == SLOW)
        be_slow(t);
    const bool now = t->rank >= 0 && ++t->calls == 2;
    const bool held_out = t->kind == HELD_OUT_ERROR && t->rank >= 0 && !kn_grad_enabled();
    if (now && t->kind == NAN_LOSS)
        return kn_mul_scalar(loss, NAN);
    if (held_out || (now && t->kind == LOSS_ERROR)) {
        kn_error_set(KN_ERR_IO, "this loss is broken");
        return NULL;
    }
    return loss;
}

static kn_status after_epoch(kn_trainer *trainer, int epoch, const kn_history *history, void *user)
{
    const trouble *t = user;
    (void)epoch, (void)history;
    if (t->rank >= 0 && t->kind == CALLBACK_ERROR)
        return kn_error_set(KN_ERR_IO, "this callback is broken");
    if (t->rank >= 0 && t->kind == STOP)
        kn_trainer_stop(trainer);
    return KN_OK;
}

/* Everything of one training. */
typedef struct fit {
    kn_dataset *train_data, *test_data;
    kn_loader *train, *test;
    kn_module *net;
    kn_optim *optim;
    kn_metric *f1, *auroc;
    kn_trainer *trainer;
    trouble trouble;
} fit;

typedef struct fit_options {
    kn_group *group; /* NULL: alone */
    int64_t batch_size, samples, held_out;
    bool with_buffers, prints, zero;
    const char *output;
    bool resume;
    int epochs, accumulate, log_every, parts;
} fit_options;

static fit make(const fit_options *o, double seed)
{
    fit f = {.train_data = points(o->samples > 0 ? o->samples : SAMPLES, 0),
             .test_data = points(o->held_out > 0 ? o->held_out : HELD_OUT, 3)};
    f.trouble.rank = -1;
    f.train = kn_loader_new(f.train_data, .batch_size = o->batch_size, .shuffle = true, .seed = 5);
    f.test = kn_loader_new(f.test_data, .batch_size = 4);
    f.net = network_of(seed, o->with_buffers);
    if (o->group)
        f.net = kn_nn_distributed(f.net, o->group, .parts = o->parts);
    f.optim = kn_optim_sgd(kn_module_parameters(f.net), .lr = 0.2, .momentum = 0.9);
    if (o->zero)
        f.optim = kn_optim_zero(f.optim, o->group);
    f.f1 = kn_metric_f1_score(.num_classes = 2);
    f.auroc = kn_metric_auroc(.num_classes = 2);
    return f;
}

/* Apart from `make`, so that `trouble` has its place. */
static kn_status run(fit *f, const fit_options *o)
{
    f->trainer = kn_trainer_new(.module = f->net, .optim = f->optim, .loss = loss_of, .loss_user = &f->trouble,
                                .metrics = KN_METRICS({"f1", f->f1}, {"auroc", f->auroc}),
                                .epochs = o->epochs > 0 ? o->epochs : 3, .patience = 0, .quiet = !o->prints,
                                .output = o->output, .resume = o->resume, .log_every = o->log_every,
                                .accumulate = o->accumulate > 0 ? o->accumulate : 1, .log_grad_norm = true);
    if (!f->trainer)
        return kn_error_status();
    const kn_callback callback = {.on_epoch_end = after_epoch, .user = &f->trouble};
    kn_trainer_add_callback(f->trainer, &callback);
    return kn_trainer_fit(f->trainer, f->train, f->test);
}

static void release(fit *f)
{
    kn_trainer_free(f->trainer);
    kn_optim_free(f->optim);
    kn_module_free(f->net);
    kn_metric_free(f->f1);
    kn_metric_free(f->auroc);
    kn_loader_free(f->train);
    kn_loader_free(f->test);
    kn_dataset_free(f->train_data);
    kn_dataset_free(f->test_data);
}

/* The largest difference of two tables; infinite if their shapes differ. */
static double table_difference(const kn_history *a, const kn_history *b)
{
    double most = 0;
    if (kn_history_epochs(a) != kn_history_epochs(b) || kn_history_columns(a) != kn_history_columns(b))
        return INFINITY;
    for (int e = 0; e < kn_history_epochs(a); e++)
        for (int c = 0; c < kn_history_columns(a); c++) {
            const double x = kn_history_value(a, e, c), y = kn_history_value(b, e, c);
            most = fmax(most, isnan(x) && isnan(y) ? 0 : isfinite(x - y) ? fabs(x - y) : INFINITY);
        }
    return most;
}

/* --- the figures and weights of one rank -------------------------------------------------------------------------- */

static void compare_with_one_rank(state *s, int accumulate)
{
    const fit_options joint = {
        .group = s->group, .batch_size = JOINT_BATCH / accumulate / s->size, .accumulate = accumulate, .log_every = 1};
    const fit_options one = {.batch_size = JOINT_BATCH / accumulate, .accumulate = accumulate, .log_every = 1};
    fit a = make(&joint, s->rank), b = make(&one, 0);
    EXPECT_OK(run(&a, &joint));
    EXPECT_OK(run(&b, &one));
    EXPECT(kn_history_epochs(kn_trainer_history(a.trainer)) == 3);
    EXPECT(kn_history_epochs(kn_trainer_steps(a.trainer)) == 3 * accumulate * SAMPLES / JOINT_BATCH);
    EXPECT(table_difference(kn_trainer_history(a.trainer), kn_trainer_history(b.trainer)) < 1e-10);
    EXPECT(table_difference(kn_trainer_steps(a.trainer), kn_trainer_steps(b.trainer)) < 1e-10);
    EXPECT(difference(a.net, b.net, false) < 1e-10);
    EXPECT(kn_trainer_best_epoch(a.trainer) == kn_trainer_best_epoch(b.trainer));
    EXPECT_OK(kn_distributed_check(a.net));
    double loss[2], accuracy[2], area[2];
    EXPECT_OK(kn_trainer_evaluate(a.trainer, a.test, &loss[0], &accuracy[0]));
    EXPECT_OK(kn_trainer_evaluate(b.trainer, b.test, &loss[1], &accuracy[1]));
    EXPECT(fabs(loss[0] - loss[1]) < 1e-10 && fabs(accuracy[0] - accuracy[1]) < 1e-10);
    EXPECT_OK(kn_trainer_measure(a.trainer, a.test, &a.auroc, 1));
    EXPECT_OK(kn_trainer_measure(b.trainer, b.test, &b.auroc, 1));
    EXPECT_OK(kn_metric_compute(a.auroc, &area[0]));
    EXPECT_OK(kn_metric_compute(b.auroc, &area[1]));
    EXPECT(area[0] == area[1] && area[0] > 0 && area[0] < 1);
    release(&a);
    release(&b);
}

static void trains_as_one_rank(state *s) { compare_with_one_rank(s, 1); }
static void accumulates_as_one_rank(state *s) { compare_with_one_rank(s, s->size == 4 ? 1 : 2); }

/* A step of as many passes as the module's parts need is the mean over all of them. */
static void takes_the_mean_over_parts(state *s)
{
    const int parts = 2 * s->size;
    const fit_options joint = {.group = s->group, .batch_size = 1, .accumulate = 2, .parts = parts};
    const fit_options one = {.batch_size = parts}, wrong = {.group = s->group, .batch_size = 1, .parts = parts};
    fit a = make(&joint, 0), b = make(&one, 0), c = make(&wrong, 0);
    EXPECT_OK(run(&a, &joint));
    EXPECT_OK(run(&b, &one));
    EXPECT(difference(a.net, b.net, false) < 1e-10);
    EXPECT(run(&c, &wrong) == KN_ERR_ARGUMENT && strstr(kn_error_message(), ".accumulate must be 2, not 1"));
    release(&a);
    release(&b);
    release(&c);
}

/* Two validation samples: with more ranks some have none. The buffers of all ranks are those that were evaluated. */
static void evaluates_ranks_without_samples(state *s)
{
    const fit_options o = {.group = s->group, .batch_size = 3, .held_out = 2, .with_buffers = true, .epochs = 1};
    fit f = make(&o, 0);
    double loss, again;
    EXPECT_OK(run(&f, &o));
    EXPECT_OK(kn_distributed_check(f.net));
    const kn_history *history = kn_trainer_history(f.trainer);
    double in_history = NAN;
    for (int c = 0; c < kn_history_columns(history); c++)
        if (strcmp(kn_history_column(history, c), "val_loss") == 0)
            in_history = kn_history_value(history, 0, c);
    EXPECT_OK(kn_trainer_evaluate(f.trainer, f.test, &loss, NULL));
    EXPECT(loss == in_history);
    kn_sampler *part = kn_distributed_sampler(f.test_data, .num_replicas = s->size, .rank = s->rank, .shuffle = false);
    kn_loader *padded = kn_loader_new(f.test_data, .batch_size = 2, .sampler = part); /* used as it is */
    EXPECT_OK(kn_trainer_evaluate(f.trainer, padded, &again, NULL));
    EXPECT(s->size > 2 ? isfinite(again) : fabs(again - loss) < 1e-12);
    kn_loader_free(padded);
    kn_sampler_free(part);
    release(&f);
}

/* Twenty steps in float32 of a network as in examples/common/fashion.c, without dropout, which draws per rank. */
static kn_module *convolutions(void)
{
    kn_module *net = kn_nn_sequential(
        kn_nn_conv2d(.in_channels = 1, .out_channels = 8, .kernel_size = 3), kn_nn_max_pool2d(.kernel_size = 2),
        kn_nn_conv2d(.in_channels = 8, .out_channels = 16, .kernel_size = 3), kn_nn_adaptive_max_pool2d(1, 1),
        kn_nn_flatten(), kn_nn_linear(.in_features = 16, .out_features = 8), kn_nn_relu(),
        kn_nn_linear(.in_features = 8, .out_features = 3));
    const kn_parameter_list list = kn_module_parameters(net);
    for (int i = 0; i < list.count; i++)
        fill(list.tensors[i], 1 + i);
    return net;
}

enum { PICTURES = 40, SIDE = 12 };

static kn_dataset *pictures(void)
{
    KN_SCOPE;
    kn_tensor *x = kn_empty(KN_SHAPE(PICTURES, 1, SIDE, SIDE), .device = kn_device_host());
    kn_tensor *y = kn_empty(KN_SHAPE(PICTURES), .dtype = KN_I64, .device = kn_device_host());
    float *values = kn_data(x);
    int64_t *classes = kn_data(y);
    for (int64_t i = 0; i < PICTURES; i++) {
        classes[i] = i * i % 3;
        for (int64_t p = 0; p < SIDE * SIDE; p++)
            values[i * SIDE * SIDE + p] = (float)sin(0.37 * (double)((classes[i] + 1) * p) + 0.2 * (double)i);
    }
    return kn_tensor_dataset(x, y);
}

static kn_trainer *fit_convolutions(kn_module *net, kn_optim *optim, int64_t batch_size, kn_status *status)
{
    kn_dataset *data = pictures();
    kn_loader *train = kn_loader_new(data, .batch_size = batch_size, .shuffle = true);
    kn_trainer *trainer = kn_trainer_new(.module = net, .optim = optim, .epochs = 4, .quiet = true, .log_every = 1);
    *status = kn_trainer_fit(trainer, train, NULL);
    kn_loader_free(train);
    kn_dataset_free(data);
    return trainer;
}

static void trains_convolutions_as_one_rank(state *s)
{
    if (s->size == 3)
        return; /* batches of 8 are not divided by 3 */
    kn_module *net = kn_nn_distributed(convolutions(), s->group), *alone = convolutions();
    kn_optim *optim = kn_optim_adam(kn_module_parameters(net), .lr = 0.003);
    kn_optim *optim_alone = kn_optim_adam(kn_module_parameters(alone), .lr = 0.003);
    kn_status status[2];
    kn_trainer *a = fit_convolutions(net, optim, 8 / s->size, &status[0]);
    kn_trainer *b = fit_convolutions(alone, optim_alone, 8, &status[1]);
    EXPECT(status[0] == KN_OK && status[1] == KN_OK);
    EXPECT(kn_history_epochs(kn_trainer_steps(a)) == 20);
    EXPECT(table_difference(kn_trainer_steps(a), kn_trainer_steps(b)) < 1e-5);
    const int last = kn_history_epochs(kn_trainer_steps(b)) - 1;
    EXPECT(kn_history_value(kn_trainer_steps(b), last, 2) < kn_history_value(kn_trainer_steps(b), 0, 2));
    kn_trainer_free(a);
    kn_trainer_free(b);
    kn_optim_free(optim);
    kn_optim_free(optim_alone);
    kn_module_free(net);
    kn_module_free(alone);
}

/* Parts are the same batches on any number of ranks, and so are the bits of the weights. */
static void parts_give_the_same_bits_on_any_number_of_ranks(state *s)
{
    if (s->size == 3)
        return; /* 4 parts are not divided by 3 */
    kn_group *single = kn_group_open(.backend = "local");
    const fit_options joint = {.group = s->group, .batch_size = 2, .accumulate = 4 / s->size, .parts = 4};
    const fit_options one = {.group = single, .batch_size = 2, .accumulate = 4, .parts = 4};
    fit a = make(&joint, 0), b = make(&one, 0);
    EXPECT_OK(run(&a, &joint));
    EXPECT_OK(run(&b, &one));
    EXPECT(difference(a.net, b.net, false) == 0);
    release(&a);
    release(&b);
    kn_group_free(single);
}

static void adds_up_metrics(state *s)
{
    kn_metric *mean = kn_metric_mean();
    double value = 0, above = 0, below = 0;
    for (int r = 1; r <= s->size; r++) {
        above += r * r;
        below += r;
    }
    EXPECT_OK(kn_metric_update(mean, kn_full(KN_SHAPE(1), s->rank + 1, .device = s->device), NULL, s->rank + 1));
    EXPECT_OK(kn_metric_all_reduce(mean, s->group));
    EXPECT_OK(kn_metric_compute(mean, &value));
    EXPECT(fabs(value - above / below) < 1e-12);
    EXPECT_OK(kn_metric_update(mean, kn_full(KN_SHAPE(1), 5, .device = s->device), NULL, 1)); /* and it goes on */
    EXPECT_OK(kn_metric_compute(mean, &value));
    EXPECT(fabs(value - (above + 5) / (below + 1)) < 1e-12);
    EXPECT(kn_metric_all_reduce(NULL, s->group) == KN_ERR_ARGUMENT);
    EXPECT(kn_metric_all_reduce(mean, NULL) == KN_ERR_ARGUMENT);
    kn_metric_free(mean);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* `zero`: with an optimizer whose state the ranks share. */
static void resume(state *s, bool zero)
{
    char whole[512], broken[512];
    snprintf(whole, sizeof whole, "%s/whole", output);
    snprintf(broken, sizeof broken, "%s/broken", output);
    const int64_t batch = JOINT_BATCH / s->size;
    const fit_options all = {
        .group = s->group, .batch_size = batch, .output = whole, .epochs = 4, .with_buffers = true, .zero = zero};
    fit_options first = all, rest = all;
    first.output = rest.output = broken;
    first.epochs = 2;
    rest.resume = true;
    fit a = make(&all, 0), b = make(&first, 0), c = make(&rest, 9);
    EXPECT_OK(run(&a, &all));
    EXPECT_OK(run(&b, &first));
    EXPECT_OK(run(&c, &rest));
    EXPECT(difference(a.net, c.net, false) == 0);
    EXPECT(table_difference(kn_trainer_history(a.trainer), kn_trainer_history(c.trainer)) == 0);
    EXPECT(strstr(kn_trainer_files(c.trainer), "last.safetensors") ? s->rank == 0 : s->rank > 0);
    release(&a);
    release(&b);
    release(&c);
}

static void resumes_with_the_same_bits(state *s)
{
    resume(s, false);
    resume(s, true);
}

/* Only rank 0 finds the file that the case above has left. */
static void refuses_to_resume_from_different_folders(state *s)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s/%s", output, s->rank == 0 ? "whole" : "nowhere");
    const fit_options o = {.group = s->group,
                           .batch_size = JOINT_BATCH / s->size,
                           .output = folder,
                           .resume = true,
                           .with_buffers = true,
                           .zero = true,
                           .epochs = 4};
    fit f = make(&o, 0);
    const kn_status status = run(&f, &o);
    EXPECT(s->size == 1 ? status == KN_OK
                        : status == KN_ERR_ARGUMENT && strstr(kn_error_message(), "a folder that all ranks see"));
    release(&f);
}

/* --- the same decisions ------------------------------------------------------------------------------------------- */

/* The last rank is in trouble: all ranks must return this status and the same message, which contains `text` and,
 * unless it is alone, the rank's name. */
static void expect_trouble(state *s, int kind, kn_status expected, const char *text)
{
    const fit_options o = {.group = s->group, .batch_size = 3};
    fit f = make(&o, 0);
    f.trouble.kind = kind;
    f.trouble.rank = s->rank == s->size - 1 ? s->rank : -1;
    const kn_status status = run(&f, &o);
    char who[32] = "", message[1024];
    snprintf(message, sizeof message, "%s", kn_error_message());
    if (s->size > 1)
        snprintf(who, sizeof who, "rank %d (", s->size - 1);
    EXPECT(status == expected);
    if (!strstr(message, text) || !strstr(message, who))
        fprintf(stderr, "rank %d has \"%s\"\n", s->rank, message), s->failures++;
    kn_error_clear();
    EXPECT_OK(kn_distributed_check(f.net)); /* and the group can still be used */
    release(&f);
}

static void stops_alike_at_a_loss_that_is_not_a_number(state *s)
{
    expect_trouble(s, NAN_LOSS, KN_ERR_NUMERIC, "the training loss became NaN at epoch 1, step ");
}

static void reports_one_rank_s_error_on_all(state *s)
{
    expect_trouble(s, LOSS_ERROR, KN_ERR_IO, "this loss is broken");
    expect_trouble(s, HELD_OUT_ERROR, KN_ERR_IO, "this loss is broken");
    expect_trouble(s, CALLBACK_ERROR, KN_ERR_IO, "this callback is broken");
}

static void stops_when_one_rank_asks_for_it(state *s)
{
    const fit_options o = {.group = s->group, .batch_size = 3};
    fit f = make(&o, 0);
    f.trouble = (trouble){.rank = s->rank == s->size - 1 ? s->rank : -1, .kind = STOP};
    EXPECT_OK(run(&f, &o));
    EXPECT(kn_trainer_epoch(f.trainer) == 1);
    release(&f);
}

/* Rank 0 says so; others are quiet. Its stderr goes to a file meanwhile. */
static void tells_of_a_slow_rank(state *s)
{
    const fit_options o = {.group = s->group, .batch_size = 1, .samples = 12 * s->size, .epochs = 1, .prints = true};
    char path[512], text[4096] = "", expected[300];
    snprintf(path, sizeof path, "%s/stderr", output);
    fit f = make(&o, 0);
    f.trouble = (trouble){.rank = s->rank == s->size - 1 ? s->rank : -1, .kind = SLOW};
    fflush(stderr);
    const int before = s->rank == 0 ? dup(STDERR_FILENO) : -1;
    FILE *file = s->rank == 0 ? fopen(path, "w+") : NULL;
    if (file)
        dup2(fileno(file), STDERR_FILENO);
    const kn_status status = run(&f, &o);
    if (file) {
        dup2(before, STDERR_FILENO);
        close(before);
        rewind(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    }
    EXPECT(status == KN_OK);
    snprintf(expected, sizeof expected, "rank %d (%s): its own work takes ", s->size - 1,
             kn_group_host(s->group, s->size - 1));
    if (s->rank == 0 && (strstr(text, expected) != NULL) != (s->size > 1))
        fprintf(stderr, "not \"%s\" but:\n%s\n", expected, text), s->failures++;
    release(&f);
}

static void refuses_ranks_that_are_not_alike(state *s)
{
    const fit_options o = {.group = s->group, .batch_size = s->rank == s->size - 1 ? 2 : 3};
    fit f = make(&o, 0);
    const kn_status status = run(&f, &o);
    EXPECT(s->size == 1
               ? status == KN_OK
               : status == KN_ERR_ARGUMENT && strstr(kn_error_message(), "the ranks must be alike, but rank 0"));
    release(&f);
}

int trainer_cases(kn_group *group, kn_device *device, const char *folder)
{
    static const rank_case cases[] = {
        trains_as_one_rank,
        accumulates_as_one_rank,
        takes_the_mean_over_parts,
        parts_give_the_same_bits_on_any_number_of_ranks,
        trains_convolutions_as_one_rank,
        adds_up_metrics,
        evaluates_ranks_without_samples,
        resumes_with_the_same_bits,
        refuses_to_resume_from_different_folders,
        stops_alike_at_a_loss_that_is_not_a_number,
        reports_one_rank_s_error_on_all,
        stops_when_one_rank_asks_for_it,
        tells_of_a_slow_rank,
        refuses_ranks_that_are_not_alike,
    };
    output = folder;
    return run_cases(cases, sizeof cases / sizeof cases[0], group, device);
}
