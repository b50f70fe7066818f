/* smallest_training.c - runs the kernels that no operator's smallest case uses, those of optimizers, gradients,
 * metrics, logs on the device, random numbers, transposed copies and products of bf16, for Oclgrind (kernels.sh):
 * smallest_training [--as-gpu | --as-neon]
 *
 * Results are not compared with anything: other tests do. */
#include <koine/averaged_model.h>
#include <koine/clip_grad.h>
#include <koine/grad_scaler.h>
#include <koine/koine.h>
#include <koine/metrics.h>
#include <stdio.h>

#include "support/as_gpu.h"

static int failures;

static void expect(bool fine, const char *what)
{
    if (fine && kn_synchronize(kn_device_current()) == KN_OK)
        return;
    printf("FAIL %s: %s\n", what, kn_error_message());
    kn_error_clear();
    failures++;
}

/* --- optimizers --------------------------------------------------------------------------------------------------- */

/* A large parameter, of several work-groups, and a small one, which share launches. */
typedef struct pair {
    kn_tensor *leaves[2];
    kn_parameter_list list;
} pair;

static pair make_pair(kn_dtype dtype)
{
    pair it = {.leaves = {kn_randn(KN_SHAPE(20, 15), .dtype = dtype), kn_randn(KN_SHAPE(3, 5), .dtype = dtype)}};
    for (int i = 0; i < 2; i++) {
        expect(kn_set_requires_grad(it.leaves[i], true) == KN_OK, "a leaf");
        expect(kn_set_grad(it.leaves[i], kn_randn_like(kn_detach(it.leaves[i]))) == KN_OK, "a gradient");
    }
    return it;
}

static void run_optimizer(const char *name, kn_dtype dtype, const kn_optim_option options[4])
{
    KN_SCOPE;
    pair it = make_pair(dtype);
    it.list = (kn_parameter_list){it.leaves, NULL, 2};
    kn_optim *optim = kn_optim_named_with(name, it.list, options);
    expect(optim != NULL, name);
    for (int step = 0; step < 3 && optim; step++) /* RAdam changes its formula later: its beta2 is smaller here */
        expect(kn_optim_step(optim) == KN_OK, name);
    kn_optim_free(optim);
}

static void run_optimizers(void)
{
    static const struct {
        const char *name;
        kn_optim_option options[4];
    } rows[] = {{"SGD", {{"momentum", 0.9}, {"nesterov", 1}}},
                {"SGD", {{"weight_decay", 0.1}}},
                {"Adam", {{"amsgrad", 1}, {"weight_decay", 0.1}}},
                {"AdamW", {{"maximize", 1}}},
                {"RMSprop", {{"momentum", 0.5}, {"centered", 1}}},
                {"Adagrad", {{"lr_decay", 0.1}}},
                {"Adadelta", {{"rho", 0.8}}},
                {"NAdam", {{"momentum_decay", 0.1}}},
                {"RAdam", {{"beta2", 0.5}}},
                {"Adamax", {{"beta2", 0.9}}},
                {"ASGD", {{"t0", 1}, {"lambd", 0.1}}},
                {"Rprop", {{"etaplus", 1.5}}},
                {"LAMB", {{"weight_decay", 0.1}}},
                {"Lion", {{"weight_decay", 0.1}}},
                {"Adafactor", {{"weight_decay", 0.1}}},
                {"Muon", {{"ns_steps", 1}}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kn_optim_option halves[4] = {rows[i].options[0], {"master_weights", 1}};
        printf("%s\n", rows[i].name);
        fflush(stdout);
        run_optimizer(rows[i].name, KN_F32, rows[i].options);
        run_optimizer(rows[i].name, KN_BF16, halves);
    }
}

static kn_tensor *closure(void *leaf)
{
    kn_tensor *loss = kn_sum(kn_square(leaf));
    expect(kn_backward(loss) == KN_OK, "a closure");
    return loss;
}

static void run_lbfgs(void)
{
    KN_SCOPE;
    pair it = make_pair(KN_F32);
    kn_optim *optim = kn_optim_lbfgs(((kn_parameter_list){it.leaves, NULL, 1}), .max_iter = 3, .history_size = 2);
    for (int step = 0; step < 2; step++)
        expect(kn_optim_step_closure(optim, closure, it.leaves[0]) != NULL, "LBFGS");
    kn_optim_free(optim);
}

/* --- gradients and averages --------------------------------------------------------------------------------------- */

static void run_gradients(kn_dtype dtype)
{
    KN_SCOPE;
    static const double norms[] = {1, 2, 3, INFINITY};
    pair it = make_pair(dtype);
    it.list = (kn_parameter_list){it.leaves, NULL, 2};
    for (int i = 0; i < 4; i++)
        expect(kn_clip_grad_norm_(it.list, 0.5, .norm_type = norms[i]) != NULL, "clip_grad_norm_");
    expect(kn_clip_grad_value_(it.list, 0.01) == KN_OK, "clip_grad_value_");
    kn_optim *optim = kn_optim_sgd(it.list);
    kn_grad_scaler *scaler = kn_grad_scaler_new();
    kn_averaged_model *average = kn_averaged_model_new(it.list);
    expect(kn_grad_scaler_step(scaler, optim) == KN_OK && kn_grad_scaler_update(scaler) == KN_OK, "a gradient scaler");
    for (int i = 0; i < 2; i++)
        expect(kn_averaged_model_update(average) == KN_OK, "an average");
    expect(kn_averaged_model_swap(average) == KN_OK, "an average");
    kn_averaged_model_free(average);
    kn_grad_scaler_free(scaler);
    kn_optim_free(optim);
}

/* --- metrics and logs --------------------------------------------------------------------------------------------- */

enum { ROWS = 300, CLASSES = 5 };

static void run_metric(kn_metric *metric, kn_tensor *output, kn_tensor *target)
{
    KN_SCOPE;
    expect(metric && kn_metric_update(metric, output, target, 1) == KN_OK && kn_metric_values(metric) != NULL,
           metric ? kn_metric_name(metric) : "a metric");
    kn_metric_free(metric);
}

static void run_metrics(void)
{
    KN_SCOPE;
    kn_tensor *scores = kn_rand(KN_SHAPE(ROWS, CLASSES)), *classes = kn_randint(0, CLASSES, KN_SHAPE(ROWS)),
              *one = kn_rand(KN_SHAPE(ROWS)), *two = kn_randint(0, 2, KN_SHAPE(ROWS));
    run_metric(kn_metric_mean(), kn_sum(one), NULL);
    run_metric(kn_metric_mean_squared_error(), one, kn_rand(KN_SHAPE(ROWS)));
    run_metric(kn_metric_mean_absolute_error(), one, kn_rand(KN_SHAPE(ROWS)));
    run_metric(kn_metric_perplexity(), scores, classes);
    run_metric(kn_metric_accuracy(), scores, classes);
    run_metric(kn_metric_accuracy(.top_k = 2), scores, classes);
    run_metric(kn_metric_accuracy(.average = KN_AVERAGE_MACRO, .num_classes = CLASSES), scores, classes);
    run_metric(kn_metric_precision(.num_classes = CLASSES), scores, classes);
    run_metric(kn_metric_recall(.average = KN_AVERAGE_BINARY), one, two);
    run_metric(kn_metric_f1_score(.num_classes = CLASSES, .average = KN_AVERAGE_NONE), classes, classes);
    run_metric(kn_metric_auroc(), one, two);
    run_metric(kn_metric_auroc(.num_classes = CLASSES), scores, classes);
    run_metric(kn_metric_confusion_matrix(.num_classes = CLASSES), scores, classes);
}

static void run_log(void)
{
    KN_SCOPE;
    pair it = make_pair(KN_F32);
    kn_device_log *log = kn_device_log_new();
    const int scalar = kn_device_log_add_scalar(log, "scalar"), right = kn_device_log_add_accuracy(log, "accuracy"),
              histogram = kn_device_log_add_histogram(log, "histogram", 20, -1, 1),
              norm = kn_device_log_add_grad_norm(log, "norm", (kn_parameter_list){it.leaves, NULL, 2});
    for (int i = 0; i < 2; i++)
        expect(kn_device_log_scalar(log, scalar, kn_full(KN_SCALAR, i), 3) == KN_OK &&
                   kn_device_log_accuracy(log, right, kn_rand(KN_SHAPE(ROWS, CLASSES)),
                                          kn_randint(0, CLASSES, KN_SHAPE(ROWS))) == KN_OK &&
                   kn_device_log_histogram(log, histogram, kn_randn(KN_SHAPE(ROWS))) == KN_OK &&
                   kn_device_log_grad_norm(log, norm) == KN_OK,
               "a device log");
    expect(kn_device_log_read(log) == KN_OK, "a device log");
    kn_device_log_free(log);
}

/* --- random numbers and copies ------------------------------------------------------------------------------------ */

static void run_random(void)
{
    KN_SCOPE;
    kn_tensor *x = kn_empty(KN_SHAPE(1001)), *p = kn_rand(KN_SHAPE(7, 11));
    expect(kn_uniform_(x, -1, 1) && kn_normal_(x, 0, 1) && kn_bernoulli_(x, 0.3) && kn_log_normal_(x, 0, 1) &&
               kn_exponential_(x, 2) && kn_geometric_(x, 0.5) && kn_cauchy_(x, 0, 1) &&
               kn_truncated_normal_(x, 0, 1, -2, 2) && kn_random_(x, 0, 9) && kn_randperm(100) && kn_bernoulli(p) &&
               kn_poisson(p) && kn_normal(p, p) && kn_multinomial(p, 3) && kn_multinomial(p, 20, .replacement = true),
           "random numbers");
}

static void run_copies(kn_dtype dtype)
{
    KN_SCOPE;
    static const int64_t sizes[][3] = {{1, 70, 41}, {3, 5, 300}, {2, 300, 3}, {4, 64, 64}};
    for (int i = 0; i < 4; i++) {
        kn_tensor *x = kn_to_dtype(kn_randint(0, 2, KN_SHAPE(sizes[i][0], sizes[i][1], sizes[i][2])), dtype);
        expect(kn_contiguous(kn_transpose(x, 1, 2)) && kn_contiguous(kn_transpose(x, 0, 2)), "a transposed copy");
    }
}

/* Of bf16 (gemm/pairs.cl, dots.cl, row.cl). */
static void run_products(void)
{
    static const char *const rows[] = {"pairs", "dots", "row"};
    for (int i = 0; i < 3; i++) {
        KN_SCOPE;
        kn_force_implementation("matmul_f16", rows[i]);
        const int64_t m = i < 2 ? 13 : 1;
        kn_tensor *x = kn_ones(KN_SHAPE(m, 35), .dtype = KN_BF16), *w = kn_ones(KN_SHAPE(9, 35), .dtype = KN_BF16);
        kn_tensor *product = i < 2 ? kn_linear(x, w, NULL) : kn_matmul(x, kn_reshape(w, 2, (int64_t[]){35, 9}));
        double sum = 0;
        expect(kn_item(kn_sum(kn_to_dtype(product, KN_F32)), &sum) == KN_OK && sum == (double)(m * 9 * 35),
               "a product of bf16");
    }
    kn_force_implementation("matmul_f16", NULL);
}

int main(int argc, char **argv)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_F16, KN_F64, KN_U8};
    obey_as_gpu(argc, argv);
    obey_vector_width(argc, argv);
    kn_manual_seed(1);
    run_optimizers();
    run_lbfgs();
    run_gradients(KN_F32);
    run_gradients(KN_BF16);
    run_metrics();
    run_log();
    for (int i = 0; i < 4; i++)
        run_copies(dtypes[i]);
    run_random();
    run_products();
    printf("0 operators ran, %d runs failed\n", failures);
    fflush(stdout);
    _Exit(failures > 0); /* Oclgrind 21.10 breaks the heap when a function called at exit waits for its queue */
}
