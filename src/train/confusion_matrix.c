/* train/confusion_matrix.c - counts of pairs of true and predicted classes: as a metric, as a table, as a picture. */
#include <math.h>
#include <stdio.h>

#include "base/layout.h"
#include "base/memory.h"
#include "base/plot.h"
#include "tensor/liveness.h"
#include "train/device_log.h"
#include "train/interrupt.h"

#define MAX_CLASSES 4096
#define MOST_NUMBERS 30 /* classes up to which the picture's cells have numbers */

/* --- the metric ------------------------------------------------------------------------------------------------- */

static int64_t counts(const kn_metric_spec *spec) { return (int64_t)spec->num_classes * spec->num_classes; }

static kn_status update(kn_device_log *log, kn_log_entry *entry, kn_tensor *output, kn_tensor *target)
{
    return kn_metric_count_classes(log, entry, "count_pairs", output, target);
}

/* The sum of `n` values, `step` apart. */
static double sum_of(const double *values, int64_t n, int64_t step)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += values[i * step];
    return sum;
}

static void compute(const kn_metric_spec *spec, const double *sums, double *values)
{
    const int64_t n = spec->num_classes;
    for (int64_t i = 0; i < n * n; i++) {
        const double whole = spec->normalize == KN_NORMALIZE_TRUE   ? sum_of(sums + i / n * n, n, 1)
                             : spec->normalize == KN_NORMALIZE_PRED ? sum_of(sums + i % n, n, n)
                             : spec->normalize == KN_NORMALIZE_ALL  ? sum_of(sums, n * n, 1)
                                                                    : 1;
        values[i] = whole > 0 ? sums[i] / whole : 0;
    }
}

static const kn_metric_kind kind = {.name = "confusion_matrix",
                                    .is_of_classes = true,
                                    .counts = counts,
                                    .update = update,
                                    .compute = compute,
                                    .dims = 2};

kn_metric_confusion_matrix_params kn_metric_confusion_matrix_params_init(void)
{
    return (kn_metric_confusion_matrix_params){KN_METRIC_CONFUSION_MATRIX_DEFAULTS};
}

kn_metric *kn_metric_confusion_matrix_with(const kn_metric_confusion_matrix_params *params)
{
    params = params ? params : &(kn_metric_confusion_matrix_params){KN_METRIC_CONFUSION_MATRIX_DEFAULTS};
    const kn_metric_spec spec = {.kind = &kind,
                                 .num_classes = params->num_classes,
                                 .normalize = params->normalize,
                                 .threshold = params->threshold,
                                 .ignore_index = params->ignore_index};
    if ((int)spec.normalize < 0 || spec.normalize > KN_NORMALIZE_ALL)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "confusion_matrix: normalize (%d) must be KN_NORMALIZE_NONE, _TRUE, _PRED "
                            "or _ALL",
                            (int)spec.normalize);
    return kn_metric_check_spec(&spec, MAX_CLASSES) == KN_OK ? kn_metric_new(&spec) : kn_error_make_sticky();
}

/* --- what is shown ---------------------------------------------------------------------------------------------- */

/* A matrix read to the host, and the names of its classes. */
typedef struct shown {
    double *values;
    int64_t n;
    const char *const *names;
    bool is_whole; /* counts, not shares */
} shown;

static kn_status begin(shown *s, const char *function, const kn_tensor *matrix, const char *const *names)
{
    char text[KN_DESCRIBE];
    *s = (shown){.names = names, .is_whole = true};
    KN_TRY(kn_check_tensor(function, "matrix", matrix));
    if (matrix->ndim != 2 || matrix->shape[0] != matrix->shape[1] || matrix->shape[0] < 1 ||
        matrix->shape[0] > MAX_CLASSES)
        return kn_fail(KN_ERR_SHAPE, "%s: needs a matrix [classes, classes], not %s", function,
                       kn_tensor_describe(text, sizeof text, matrix));
    s->n = matrix->shape[0];
    for (int64_t i = 0; names != NULL && i < s->n; i++)
        if (names[i] == NULL)
            return kn_fail(KN_ERR_ARGUMENT, "%s: there are %lld classes, but only %lld names", function,
                           (long long)s->n, (long long)i);
    kn_tensor *wide = NULL;
    KN_TRY(kn_tensor_cast(&wide, (kn_tensor *)matrix, KN_F64, kn_device_host()));
    s->values = kn_calloc((size_t)(s->n * s->n), sizeof *s->values);
    kn_status status =
        s->values != NULL ? kn_read(wide, s->values, (size_t)(s->n * s->n) * sizeof *s->values) : KN_ERR_MEMORY;
    kn_release(wide);
    for (int64_t i = 0; status == KN_OK && i < s->n * s->n; i++)
        s->is_whole = s->is_whole && s->values[i] == floor(s->values[i]);
    return status;
}

static const char *name_of(const shown *s, int64_t index, char number[32])
{
    snprintf(number, 32, "%lld", (long long)index);
    return s->names != NULL ? s->names[index] : number;
}

static void format_value(char text[32], const shown *s, double value)
{
    snprintf(text, 32, s->is_whole ? "%.0f" : "%.3f", value);
}

/* --- the table -------------------------------------------------------------------------------------------------- */

static void put_rows(kn_table *table, const shown *s)
{
    char text[32];
    for (int64_t i = 0; i < s->n; i++) {
        kn_table_put(table, "%s", name_of(s, i, text));
        for (int64_t j = 0; j < s->n; j++) {
            format_value(text, s, s->values[i * s->n + j]);
            kn_table_put(table, "%s", text);
        }
    }
}

static char *table_text(const shown *s)
{
    kn_table_column *columns = kn_calloc((size_t)s->n + 1, sizeof *columns);
    char(*numbers)[32] = kn_calloc((size_t)s->n, sizeof *numbers);
    kn_text text = {0};
    if (columns != NULL && numbers != NULL) {
        columns[0].title = "true \\ predicted";
        for (int64_t i = 0; i < s->n; i++)
            columns[i + 1] = (kn_table_column){.title = name_of(s, i, numbers[i]), .is_number = true};
        kn_table table = {.columns = columns, .num_columns = (int)s->n + 1};
        put_rows(&table, s);
        kn_table_append(&text, &table, (kn_page){0});
        kn_table_free(&table);
    }
    kn_free(columns);
    kn_free(numbers);
    return kn_text_finish(&text);
}

char *kn_confusion_matrix_text(const kn_tensor *matrix, const char *const *names)
{
    shown s;
    char *text = NULL;
    if (begin(&s, "confusion_matrix_text", matrix, names) == KN_OK)
        text = table_text(&s);
    kn_free(s.values);
    return text;
}

/* --- the picture ------------------------------------------------------------------------------------------------ */

/* As a string of gnuplot's, between single quotes. */
static void append_string(kn_text *script, const char *name)
{
    kn_text_append(script, "'");
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c >= ' ')
            kn_text_format(script, *c == '\'' ? "''" : "%c", *c);
    kn_text_append(script, "'");
}

static void append_names(kn_text *script, const shown *s, char axis)
{
    char number[32];
    const int64_t step = s->n > MOST_NUMBERS ? (s->n + 19) / 20 : 1;
    kn_text_format(script, "set %ctics %sscale 0 (", axis,
                   axis == 'x' ? "rotate by 40 right noenhanced " : "noenhanced ");
    for (int64_t i = 0; i < s->n; i += step) {
        kn_text_append(script, i > 0 ? ", " : "");
        append_string(script, name_of(s, i, number));
        kn_text_format(script, " %lld", (long long)i);
    }
    kn_text_append(script, ")\n");
}

/* The share of the true class, which is what the colours show. */
static double share_of(const shown *s, int64_t i, int64_t j)
{
    const double whole = sum_of(s->values + i * s->n, s->n, 1);
    return whole > 0 ? s->values[i * s->n + j] / whole : 0;
}

static void append_cells(kn_text *script, const shown *s)
{
    char text[32];
    kn_text_append(script, "$cells << EOD\n");
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t j = 0; j < s->n; j++) {
            const double value = s->values[i * s->n + j], share = share_of(s, i, j);
            format_value(text, s, value);
            kn_text_format(script, "%lld %lld %.6g %s %d\n", (long long)j, (long long)i, share,
                           value != 0 ? text : "\"\"", share > 0.5 ? 0xffffff : 0x333333);
        }
    kn_text_append(script, "EOD\n");
}

static void write_script(kn_text *script, const void *subject)
{
    const shown *s = subject;
    const double end = (double)s->n - 0.5;
    append_cells(script, s);
    kn_text_format(script,
                   "unset grid\nunset key\nset border 15\nset title 'Confusion matrix' offset 0, 0.3\n"
                   "set xlabel 'predicted class'\nset ylabel 'true class'\n"
                   "set xrange [-0.5:%g]\nset yrange [%g:-0.5]\nset cbrange [0:1]\n"
                   "set cblabel 'share of the true class'\nset cbtics out nomirror\n"
                   "set palette defined (0 '#ffffff', 0.02 '#e8eff7', 0.3 '#9dbfe0', 1 '#1f4e86')\n",
                   end, end);
    append_names(script, s, 'x');
    append_names(script, s, 'y');
    kn_text_append(script, "plot $cells using 1:2:3 with image pixels");
    if (s->n <= MOST_NUMBERS)
        kn_text_append(script, ", $cells using 1:2:(stringcolumn(4)):5 with labels textcolor rgb variable");
    kn_text_append(script, "\n");
}

static kn_status draw(const shown *s, const char *path)
{
    const int most = s->n < MOST_NUMBERS ? (int)s->n : MOST_NUMBERS;
    const kn_plot plot = {.width = 260 + 46 * most,
                          .height = 200 + 40 * most,
                          .write = write_script,
                          .subject = s,
                          .is_exiting = kn_interrupted};
    return kn_plot_save(&plot, path);
}

kn_status kn_confusion_matrix_save_plot(const kn_tensor *matrix, const char *const *names, const char *path)
{
    if (matrix == NULL || path == NULL)
        return kn_fail_argument_null("confusion_matrix_save_plot", matrix == NULL ? "matrix" : "path");
    shown s = {0};
    KN_TRY(kn_plot_check_path(path));
    kn_status status = begin(&s, "confusion_matrix_save_plot", matrix, names);
    if (status == KN_OK)
        status = draw(&s, path);
    kn_free(s.values);
    return status;
}
