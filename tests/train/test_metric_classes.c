/* test_metric_classes.c - metrics of classes: the examples of scikit-learn's documentation, and random predictions
 * against the definitions in plain C. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/as_gpu.h"
#include "support/values.h"
#include "train/device_log.h"

static kn_tensor *labels(const int64_t *values, int64_t count)
{
    return kn_from_data(values, KN_SHAPE(count), .dtype = KN_I64);
}
#define LABELS(...) labels((const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8))

/* One update, one figure. */
static double figure_of(kn_metric *metric, kn_tensor *output, kn_tensor *target)
{
    double value = -1;
    CHECK_NEW(metric);
    CHECK_OK(kn_metric_update(metric, output, target, 0));
    CHECK_OK(kn_metric_compute(metric, &value));
    kn_metric_free(metric);
    return value;
}

static kn_tensor *values_of(kn_metric *metric, kn_tensor *output, kn_tensor *target)
{
    CHECK_NEW(metric);
    CHECK_OK(kn_metric_update(metric, output, target, 0));
    kn_tensor *values = kn_metric_values(metric);
    CHECK_TENSOR(values);
    kn_metric_free(metric);
    return values;
}

#define NEAR(value, expected) assert_true(fabs((value) - (expected)) < 1e-9)

/* --- scikit-learn's examples ------------------------------------------------------------------------------------- */

TENSOR_TEST(precision_recall_and_f1_are_those_of_scikit_learn)
{
    kn_tensor *y = LABELS(0, 1, 2, 0, 1, 2), *p = LABELS(0, 2, 1, 0, 0, 1), *zeros = LABELS(0, 0, 0, 0, 0, 0);
    static const kn_average averages[] = {KN_AVERAGE_MACRO, KN_AVERAGE_MICRO, KN_AVERAGE_WEIGHTED};
    static const double precision[] = {2.0 / 9, 1.0 / 3, 2.0 / 9}, f1[] = {0.8 / 3, 1.0 / 3, 0.8 / 3};
    for (int i = 0; i < 3; i++) {
        NEAR(figure_of(kn_metric_precision(.num_classes = 3, .average = averages[i]), p, y), precision[i]);
        NEAR(figure_of(kn_metric_recall(.num_classes = 3, .average = averages[i]), p, y), 1.0 / 3);
        NEAR(figure_of(kn_metric_f1_score(.num_classes = 3, .average = averages[i]), p, y), f1[i]);
    }
    CHECK_VALUES(values_of(kn_metric_precision(.num_classes = 3, .average = KN_AVERAGE_NONE), p, y), 2.0 / 3, 0, 0);
    CHECK_VALUES(values_of(kn_metric_f1_score(.num_classes = 3, .average = KN_AVERAGE_NONE), p, y), 0.8, 0, 0);
    CHECK_VALUES(values_of(kn_metric_precision(.num_classes = 3, .average = KN_AVERAGE_NONE), zeros, y), 1.0 / 3, 0, 0);
    CHECK_VALUES(
        values_of(kn_metric_precision(.num_classes = 3, .average = KN_AVERAGE_NONE, .zero_division = 1), zeros, y),
        1.0 / 3, 1, 1);
    NEAR(figure_of(kn_metric_precision(.num_classes = 3), zeros, y), 1.0 / 9);
    /* A class that neither occurs nor is predicted does not count. */
    NEAR(figure_of(kn_metric_precision(.num_classes = 7), p, y), 2.0 / 9);
    NEAR(figure_of(kn_metric_recall(.num_classes = 7, .zero_division = 1), p, y), 1.0 / 3);
    /* Nor does one whose value is NaN. */
    for (int i = 0; i < 3; i++)
        NEAR(figure_of(kn_metric_precision(.num_classes = 3, .average = averages[i], .zero_division = NAN), zeros, y),
             1.0 / 3);
}

TENSOR_TEST(accuracies_are_those_of_scikit_learn)
{
    kn_tensor *y = LABELS(0, 1, 0, 0, 1, 0), *p = LABELS(0, 1, 0, 0, 0, 1);
    NEAR(figure_of(kn_metric_accuracy(), p, y), 4.0 / 6);
    NEAR(figure_of(kn_metric_accuracy(.average = KN_AVERAGE_MACRO, .num_classes = 2), p, y), 0.625);
    CHECK_VALUES(values_of(kn_metric_accuracy(.average = KN_AVERAGE_NONE, .num_classes = 2), p, y), 0.75, 0.5);
    kn_tensor *scores = kn_from_data(
        ((float[]){0.5F, 0.2F, 0.2F, 0.3F, 0.4F, 0.2F, 0.2F, 0.4F, 0.3F, 0.7F, 0.2F, 0.1F}), KN_SHAPE(4, 3));
    NEAR(figure_of(kn_metric_accuracy(.top_k = 2), scores, LABELS(0, 1, 2, 2)), 0.75);
    NEAR(figure_of(kn_metric_accuracy(.top_k = 3), scores, LABELS(0, 1, 2, 2)), 1);
    NEAR(figure_of(kn_metric_accuracy(.top_k = 2), scores, LABELS(0, 1, -100, 2)), 2.0 / 3);
}

TENSOR_TEST(a_confusion_matrix_is_that_of_scikit_learn)
{
    kn_tensor *y = LABELS(2, 0, 2, 2, 0, 1), *p = LABELS(0, 0, 2, 2, 0, 2);
    CHECK_VALUES(values_of(kn_metric_confusion_matrix(.num_classes = 3), p, y), 2, 0, 0, 0, 0, 1, 1, 0, 2);
    CHECK_VALUES(values_of(kn_metric_confusion_matrix(.num_classes = 3, .normalize = KN_NORMALIZE_TRUE), p, y), 1, 0, 0,
                 0, 0, 1, 1.0 / 3, 0, 2.0 / 3);
    CHECK_VALUES(values_of(kn_metric_confusion_matrix(.num_classes = 3, .normalize = KN_NORMALIZE_PRED), p, y), 2.0 / 3,
                 0, 0, 0, 0, 1.0 / 3, 1.0 / 3, 0, 2.0 / 3);
    CHECK_VALUES(values_of(kn_metric_confusion_matrix(.num_classes = 3, .normalize = KN_NORMALIZE_ALL), p, y), 2.0 / 6,
                 0, 0, 0, 0, 1.0 / 6, 1.0 / 6, 0, 2.0 / 6);
}

TENSOR_TEST(scores_of_two_classes_are_compared_with_the_threshold)
{
    kn_tensor *scores = kn_from_data(((float[]){0.1F, 0.4F, 0.35F, 0.8F}), KN_SHAPE(4)), *y = LABELS(0, 0, 1, 1);
    NEAR(figure_of(kn_metric_auroc(), scores, y), 0.75);
    NEAR(figure_of(kn_metric_precision(.average = KN_AVERAGE_BINARY), scores, y), 1);
    NEAR(figure_of(kn_metric_recall(.average = KN_AVERAGE_BINARY), scores, y), 0.5);
    NEAR(figure_of(kn_metric_recall(.average = KN_AVERAGE_BINARY, .threshold = 0.3), scores, y), 1);
    NEAR(figure_of(kn_metric_f1_score(.average = KN_AVERAGE_BINARY, .threshold = 0.3), scores, y), 0.8);
    NEAR(figure_of(kn_metric_accuracy(.average = KN_AVERAGE_BINARY), scores, y), 0.75);
    /* Columns of one score, and targets as a binary cross entropy takes them. */
    NEAR(figure_of(kn_metric_accuracy(.average = KN_AVERAGE_BINARY), kn_reshape(scores, KN_SHAPE(4, 1)), y), 0.75);
    NEAR(figure_of(kn_metric_accuracy(.average = KN_AVERAGE_BINARY), scores, kn_to_dtype(y, KN_F32)), 0.75);
    NEAR(figure_of(kn_metric_auroc(), kn_to_dtype(scores, KN_F16), kn_to_dtype(y, KN_F32)), 0.75);
    CHECK_VALUES(values_of(kn_metric_confusion_matrix(.num_classes = 2), scores, y), 2, 0, 1, 1);
}

/* --- random predictions ------------------------------------------------------------------------------------------ */

enum { N = 61, C = 5, INNER = 7, ROWS = N * INNER, BATCHES = 3 };

/* Scores [N, C, INNER] with many equal ones, and classes [N, INNER], some of them to be ignored. */
typedef struct batch {
    float scores[N * C * INNER];
    int64_t classes[ROWS];
} batch;

static void draw(batch *b, int seed)
{
    test_random random = test_random_from("metrics");
    random.state += (uint64_t)seed;
    for (int i = 0; i < N * C * INNER; i++)
        b->scores[i] = (float)floor(test_random_uniform(&random, 0, 20)) / 20;
    for (int i = 0; i < ROWS; i++)
        b->classes[i] = test_random_next(&random) % 11 == 0 ? -100 : (int64_t)(test_random_next(&random) % C);
}

static double score(const batch *b, int row, int c) { return b->scores[(row / INNER * C + c) * INNER + row % INNER]; }

/* How many classes come before this one? */
static int place(const batch *b, int row, int c)
{
    int before = 0;
    for (int other = 0; other < C; other++)
        before += score(b, row, other) > score(b, row, c) || (score(b, row, other) == score(b, row, c) && other < c);
    return before;
}

typedef struct reference {
    double matrix[C][C], top2, rows, auroc[C];
} reference;

static double area(const batch *batches, int c)
{
    double above = 0, pairs = 0;
    for (int i = 0; i < BATCHES * ROWS; i++)
        for (int j = 0; j < BATCHES * ROWS; j++) {
            const batch *a = &batches[i / ROWS], *b = &batches[j / ROWS];
            if (a->classes[i % ROWS] != c || b->classes[j % ROWS] == c || b->classes[j % ROWS] < 0)
                continue;
            const double positive = score(a, i % ROWS, c), negative = score(b, j % ROWS, c);
            above += positive > negative ? 1 : positive == negative ? 0.5 : 0;
            pairs++;
        }
    return above / pairs;
}

static void count(reference *r, const batch *batches)
{
    *r = (reference){0};
    for (int i = 0; i < BATCHES * ROWS; i++) {
        const batch *b = &batches[i / ROWS];
        const int row = i % ROWS, wanted = (int)b->classes[row];
        if (wanted < 0)
            continue;
        r->rows++;
        r->top2 += place(b, row, wanted) < 2;
        for (int c = 0; c < C; c++)
            r->matrix[wanted][c] += place(b, row, c) == 0;
    }
    for (int c = 0; c < C; c++)
        r->auroc[c] = area(batches, c);
}

/* The metrics, and their values by the reference's matrix. */
enum { MICRO, TOP2, MACRO_F1, WEIGHTED_PRECISION, MACRO_RECALL, AUROC, FIGURES };

static void expect(const reference *r, double *values)
{
    double hits = 0, f1 = 0, precision = 0, recall = 0, auroc = 0;
    for (int c = 0; c < C; c++) {
        double predicted = 0, having = 0;
        for (int other = 0; other < C; other++) {
            predicted += r->matrix[other][c];
            having += r->matrix[c][other];
        }
        hits += r->matrix[c][c];
        f1 += 2 * r->matrix[c][c] / (predicted + having) / C;
        precision += having * r->matrix[c][c] / predicted / r->rows;
        recall += r->matrix[c][c] / having / C;
        auroc += r->auroc[c] / C;
    }
    values[MICRO] = hits / r->rows;
    values[TOP2] = r->top2 / r->rows;
    values[MACRO_F1] = f1;
    values[WEIGHTED_PRECISION] = precision;
    values[MACRO_RECALL] = recall;
    values[AUROC] = auroc;
}

static void make_metrics(kn_metric **metrics)
{
    metrics[MICRO] = kn_metric_accuracy();
    metrics[TOP2] = kn_metric_accuracy(.top_k = 2);
    metrics[MACRO_F1] = kn_metric_f1_score(.num_classes = C);
    metrics[WEIGHTED_PRECISION] = kn_metric_precision(.num_classes = C, .average = KN_AVERAGE_WEIGHTED);
    metrics[MACRO_RECALL] = kn_metric_recall(.num_classes = C);
    metrics[AUROC] = kn_metric_auroc(.num_classes = C);
}

/* The last batch goes to other metrics, which are then merged; one batch has targets of 32 bits. */
TENSOR_TEST(figures_of_several_batches_are_those_of_all_rows)
{
    static batch batches[BATCHES];
    kn_metric *metrics[FIGURES], *others[FIGURES], *matrix = kn_metric_confusion_matrix(.num_classes = C);
    reference r;
    double expected[FIGURES], value;
    make_metrics(metrics);
    make_metrics(others);
    for (int b = 0; b < BATCHES; b++) {
        draw(&batches[b], b);
        kn_tensor *output = kn_from_data(batches[b].scores, KN_SHAPE(N, C, INNER));
        kn_tensor *target = kn_from_data(batches[b].classes, KN_SHAPE(N, INNER), .dtype = KN_I64);
        target = b == 1 ? kn_to_dtype(target, KN_I32) : target;
        for (int m = 0; m < FIGURES; m++)
            CHECK_OK(kn_metric_update(b == 2 ? others[m] : metrics[m], output, target, 0));
        CHECK_OK(kn_metric_update(matrix, output, target, 0));
    }
    count(&r, batches);
    expect(&r, expected);
    for (int m = 0; m < FIGURES; m++) {
        CHECK_OK(kn_metric_merge(metrics[m], others[m]));
        CHECK_OK(kn_metric_compute(metrics[m], &value));
        if (!(fabs(value - expected[m]) < 1e-12))
            fail_msg("%s (%d) is %.17g, not %.17g", kn_metric_name(metrics[m]), m, value, expected[m]);
        kn_metric_reset(metrics[m]);
        CHECK_OK(kn_metric_compute(metrics[m], &value));
        assert_true(isnan(value));
        kn_metric_free(metrics[m]);
        kn_metric_free(others[m]);
    }
    double *pairs = read_doubles(kn_metric_values(matrix));
    assert_memory_equal(pairs, r.matrix, sizeof r.matrix);
    free(pairs);
    kn_metric_free(matrix);
}

/* Logits of several classes are turned into probabilities; a class without rows is left out. */
/* Numbers that are no class are reported when the areas are read, those to be ignored are not. */
TENSOR_TEST(auroc_reports_what_is_no_class)
{
    double value;
    kn_metric *one = kn_metric_auroc(), *three = kn_metric_auroc(.num_classes = 3);
    CHECK_OK(kn_metric_update(one, kn_from_data(((float[]){1, 2, 3}), KN_SHAPE(3)), LABELS(0, 1, -100), 0));
    CHECK_OK(kn_metric_compute(one, &value));
    assert_true(value == 1);
    CHECK_OK(kn_metric_update(one, kn_ones(KN_SHAPE(2)), LABELS(1, 2), 0));
    assert_int_equal(kn_metric_compute(one, &value), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "auroc: index 2 is out of range for size 2");
    CHECK_OK(kn_metric_update(three, kn_ones(KN_SHAPE(2, 3)), LABELS(0, -1), 0));
    assert_int_equal(kn_metric_compute(three, &value), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "auroc: index -1 is out of range for size 3");
    kn_metric_free(one);
    kn_metric_free(three);
}

TENSOR_TEST(auroc_of_logits_and_of_missing_classes)
{
    kn_tensor *logits = kn_from_data(((float[]){2, -1, 0, 0, 3, 1, 1, 2, 0, -2, 0, 5}), KN_SHAPE(4, 3));
    kn_tensor *y = LABELS(0, 1, 0, 1), *softmax = kn_softmax(logits, 1);
    kn_tensor *each = values_of(kn_metric_auroc(.num_classes = 3, .average = KN_AVERAGE_NONE), logits, y);
    kn_tensor *same = values_of(kn_metric_auroc(.num_classes = 3, .average = KN_AVERAGE_NONE), softmax, y);
    double *a = read_doubles(each), *b = read_doubles(same);
    assert_true(a[0] == 1 && b[0] == 1 && a[1] == b[1] && isnan(a[2]) && isnan(b[2]));
    NEAR(figure_of(kn_metric_auroc(.num_classes = 3), logits, y), (a[0] + a[1]) / 2);
    assert_true(isnan(figure_of(kn_metric_auroc(), kn_ones(KN_SHAPE(3)), LABELS(1, 1, 1))));
    NEAR(figure_of(kn_metric_auroc(), kn_ones(KN_SHAPE(3)), LABELS(1, 0, 1)), 0.5);
    NEAR(figure_of(kn_metric_auroc(), kn_neg(kn_to_dtype(LABELS(1, 0, 1), KN_F32)), LABELS(1, 0, 1)), 0);
    free(a);
    free(b);
}

/* Counts beyond 32 bits: the lower half of a cell carries into the upper one. */
TENSOR_TEST(counts_exceed_32_bits)
{
    enum { ROWS_EACH = 1 << 16 };
    const int64_t before = 0xfffffff0;
    kn_device_log *log = kn_device_log_new();
    const int entry = kn_device_log_add_accuracy(log, "accuracy");
    kn_tensor *y = kn_zeros(KN_SHAPE(ROWS_EACH), .dtype = KN_I64);
    CHECK_OK(kn_device_log_metric(log, entry, y, y));
    CHECK_OK(kn_write(log->state, (int64_t[]){before, before}, 2 * sizeof before));
    CHECK_OK(kn_device_log_metric(log, entry, y, y));
    CHECK_OK(kn_device_log_read(log));
    assert_true(kn_device_log_value(log, entry, KN_FIGURE_COUNT) == (double)(before + ROWS_EACH));
    assert_true(kn_device_log_value(log, entry, KN_FIGURE_SUM) == (double)(before + ROWS_EACH));
    kn_device_log_free(log);
}

/* --- errors ------------------------------------------------------------------------------------------------------ */

#define REFUSED(metric, ...)                                                                                           \
    do {                                                                                                               \
        assert_null(metric);                                                                                           \
        CHECK_ERROR(KN_ERR_ARGUMENT, __VA_ARGS__);                                                                     \
    } while (0)

TENSOR_TEST(wrong_parameters_and_tensors_are_refused)
{
    REFUSED(kn_metric_precision(), "precision: num_classes (0) must be from 2");
    REFUSED(kn_metric_f1_score(.num_classes = 3, .average = KN_AVERAGE_BINARY), "of 2 classes, not 3");
    REFUSED(kn_metric_recall(.num_classes = 3, .average = (kn_average)9), "recall: average (9)");
    REFUSED(kn_metric_recall(.num_classes = 3, .zero_division = 0.5), "zero_division (0.5)");
    REFUSED(kn_metric_accuracy(.top_k = 0), "accuracy: top_k (0)");
    REFUSED(kn_metric_accuracy(.top_k = 2, .average = KN_AVERAGE_MACRO, .num_classes = 3), "top_k (2)");
    REFUSED(kn_metric_accuracy(.average = KN_AVERAGE_MACRO), "num_classes (0)");
    REFUSED(kn_metric_accuracy(.average = KN_AVERAGE_BINARY, .threshold = (double)NAN), "threshold is NaN");
    REFUSED(kn_metric_auroc(.num_classes = 1), "auroc: num_classes (1)");
    REFUSED(kn_metric_auroc(.num_classes = 3, .average = KN_AVERAGE_MICRO), "auroc: average (1)");
    REFUSED(kn_metric_confusion_matrix(.num_classes = 5000), "confusion_matrix: num_classes (5000)");
    REFUSED(kn_metric_confusion_matrix(.num_classes = 3, .normalize = (kn_normalize_mode)7), "normalize (7)");

    kn_metric *f1 = kn_metric_f1_score(.num_classes = 3), *top = kn_metric_accuracy(.top_k = 4);
    kn_metric *matrix = kn_metric_confusion_matrix(.num_classes = 3), *auroc = kn_metric_auroc(.num_classes = 3);
    kn_tensor *scores = kn_ones(KN_SHAPE(4, 3)), *y = LABELS(0, 1, 2, 0);
    double value;
    assert_int_equal(kn_metric_update(f1, kn_ones(KN_SHAPE(4, 5)), y, 0), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "f1_score: has 3 classes", "[4, 5]");
    assert_int_equal(kn_metric_update(f1, kn_ones(KN_SHAPE(4)), y, 0), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "f1_score: needs output [n, classes, ...]");
    assert_int_equal(kn_metric_update(f1, scores, kn_ones(KN_SHAPE(4)), 0), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "target classes must be integers");
    assert_int_equal(kn_metric_update(top, scores, y, 0), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "top_k (4) is more than the classes");
    assert_int_equal(kn_metric_update(auroc, scores, kn_ones(KN_SHAPE(4, 3)), 0), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "auroc: needs scores [n, classes, ...] and targets [n, ...]");
    kn_tensor *turned = kn_zeros(KN_SHAPE(5, 4), .dtype = KN_I64); /* as many elements, in another order */
    assert_int_equal(kn_metric_update(auroc, kn_ones(KN_SHAPE(4, 3, 5)), turned, 0), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "auroc", "[4, 3, 5]", "[5, 4]");
    assert_int_equal(kn_metric_update(f1, kn_to(scores, kn_device_host()), y, 0), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "the output is on the host");
    assert_int_equal(kn_metric_compute(matrix, &value), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "confusion_matrix has 9 values", "kn_metric_values");
    assert_int_equal(kn_metric_merge(f1, top), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "same parameters");

    /* A class that does not exist: found by the device. */
    CHECK_OK(kn_metric_update(f1, scores, LABELS(0, 1, 3, 0), 0));
    assert_int_equal(kn_metric_compute(f1, &value), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "f1_score", "3");
    kn_metric_free(f1);
    kn_metric_free(top);
    kn_metric_free(matrix);
    kn_metric_free(auroc);
}

/* --- the matrix as text ------------------------------------------------------------------------------------------ */

TENSOR_TEST_F64(a_confusion_matrix_is_shown_as_a_table)
{
    kn_tensor *matrix =
        values_of(kn_metric_confusion_matrix(.num_classes = 3), LABELS(0, 0, 2, 2, 0, 2), LABELS(2, 0, 2, 2, 0, 1));
    char *text = kn_confusion_matrix_text(matrix, (const char *[]){"cat", "dog", "bird", NULL});
    assert_string_equal(text, "true \\ predicted  cat  dog  bird\n"
                              "cat                 2    0     0\n"
                              "dog                 0    0     1\n"
                              "bird                1    0     2\n");
    kn_free(text);
    text = kn_confusion_matrix_text(kn_div_scalar(kn_to_dtype(kn_to(matrix, kn_device_current()), KN_F32), 3), NULL);
    assert_non_null(strstr(text, "0.667"));
    kn_free(text);
    assert_null(kn_confusion_matrix_text(matrix, (const char *[]){"cat", "dog", NULL}));
    CHECK_ERROR(KN_ERR_ARGUMENT, "3 classes, but only 2 names");
    assert_null(kn_confusion_matrix_text(kn_ones(KN_SHAPE(2, 3)), NULL));
    CHECK_ERROR(KN_ERR_SHAPE, "[classes, classes]", "[2, 3]");
    assert_int_equal(kn_confusion_matrix_save_plot(matrix, NULL, "matrix.pdf"), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, ".svg or .png");
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(precision_recall_and_f1_are_those_of_scikit_learn),
        TEST(accuracies_are_those_of_scikit_learn),
        TEST(a_confusion_matrix_is_that_of_scikit_learn),
        TEST(scores_of_two_classes_are_compared_with_the_threshold),
        TEST(figures_of_several_batches_are_those_of_all_rows),
        TEST(auroc_of_logits_and_of_missing_classes),
        TEST(auroc_reports_what_is_no_class),
        TEST(counts_exceed_32_bits),
        TEST(wrong_parameters_and_tensors_are_refused),
        TEST(a_confusion_matrix_is_shown_as_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
