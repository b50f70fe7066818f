/* test_csv - CSV files as datasets: values, quotes, classes, and what is refused. */
#include <koine/koine.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/check.h"
#include "io/files.h"

static const char *table(const char *text, size_t size)
{
    const char *path = temporary("table.csv");
    write_bytes(path, text, size);
    return path;
}
#define CSV(text, ...) kn_csv_dataset(table(text, sizeof(text) - 1), __VA_ARGS__)

static void expect(kn_dataset *dataset, int64_t index, const float *inputs, int count, int64_t target)
{
    float found[8];
    int64_t class = -1;
    assert_new(dataset);
    assert_int_equal(kn_dataset_field(dataset, 0)->shape[0], count);
    assert_ok(kn_dataset_get(dataset, index, (void *[]){found, &class}));
    for (int i = 0; i < count; i++)
        assert_true(found[i] == inputs[i] || (isnan(found[i]) && isnan(inputs[i])));
    assert_int_equal(class, target);
}
#define EXPECT(dataset, index, target, ...)                                                                            \
    expect(dataset, index, (const float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / sizeof(float), target)

static void numbers_and_classes(void **state)
{
    (void)state;
    kn_dataset *d = CSV("x,y,kind\n1,2.5,cat\n-3e2, 4 ,ant\n\n.5,+0,cat\n", .target = "kind");
    assert_new(d);
    assert_int_equal(kn_dataset_length(d), 3);
    EXPECT(d, 0, 1, 1, 2.5F);
    EXPECT(d, 1, 0, -300, 4);
    EXPECT(d, 2, 1, 0.5F, 0);
    const char *const *classes = kn_dataset_classes(d);
    assert_string_equal(classes[0], "ant");
    assert_string_equal(classes[1], "cat");
    assert_null(classes[2]);
    kn_dataset *more = CSV("x,y,kind\n7,8,cat\n", .target = "kind", .classes = classes); /* without an ant */
    EXPECT(more, 0, 1, 7, 8);
    kn_dataset_free(more);
    kn_dataset_free(d);
    assert_new(d = CSV("4,1,7\r\n5,2,-9\r\n", .header = false, .columns = KN_NAMES("2", "0"), .target = "1"));
    assert_null(kn_dataset_classes(d));
    EXPECT(d, 0, 1, 7, 4);
    EXPECT(d, 1, 2, -9, 5);
    kn_dataset_free(d);
    assert_new(d = CSV("a;b\r1;2\r3;4", .delimiter = ';')); /* no target, no line end at the end */
    assert_int_equal(kn_dataset_field_count(d), 1);
    EXPECT(d, 1, -1, 3, 4);
    kn_dataset_free(d);
    double price;
    int32_t counts[2];
    assert_new(d = CSV("n,m,price\n-7,2147483647,0.1\n", .dtype = KN_I32, .target = "price", .target_dtype = KN_F64));
    assert_ok(kn_dataset_get(d, 0, (void *[]){counts, &price}));
    assert_true(counts[0] == -7 && counts[1] == INT32_MAX && price == 0.1);
    kn_dataset_free(d);
}

static void quotes_are_those_of_rfc_4180(void **state)
{
    (void)state;
    kn_dataset *d =
        CSV("\xef\xbb\xbf\"a, b\",\"say \"\"x\"\"\"\n\"1\",\"two\nlines, \"\"2\"\"\"\n\"3\",\n", .target = "say \"x\"");
    assert_new(d);
    EXPECT(d, 0, 1, 1);
    EXPECT(d, 1, 0, 3);
    assert_string_equal(kn_dataset_classes(d)[0], "");
    assert_string_equal(kn_dataset_classes(d)[1], "two\nlines, \"2\"");
    kn_dataset_free(d);
    assert_fails(kn_status_of(d = CSV("a,b\n\"1\n\n\",2\n3,x\n", .missing = false)), KN_ERR_FORMAT,
                 "line 2, column \"a\"");
    assert_fails(kn_status_of(d = CSV("a,b\n\"1\",\"\r\n2\r\n\"\n3,x\n", .columns = KN_NAMES("a"), .target = "b",
                                      .target_dtype = KN_F32)),
                 KN_ERR_FORMAT, "column \"b\"");
}

static void missing_values(void **state)
{
    (void)state;
    kn_dataset *d = CSV("a,b\n,2\n3,nan\n", .missing = true);
    EXPECT(d, 0, -1, NAN, 2);
    EXPECT(d, 1, -1, 3, NAN);
    kn_dataset_free(d);
    assert_fails(kn_status_of(d = CSV("a,b\n1,2\n,2\n", .missing = false)), KN_ERR_FORMAT,
                 "line 3, column \"a\": expected a number, found \"\"");
    assert_fails(kn_status_of(d = CSV("a,b\n1,\n", .dtype = KN_I64, .missing = true)), KN_ERR_FORMAT,
                 "expected a whole number");
}

static void a_locale_does_not_matter(void **state)
{
    (void)state;
    char *before = strdup(setlocale(LC_NUMERIC, NULL));
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL && setlocale(LC_NUMERIC, "fr_FR.UTF-8") == NULL)
        print_message("no locale with a decimal comma here\n");
    kn_dataset *d = CSV("a\n1.5\n", .header = true);
    EXPECT(d, 0, -1, 1.5F);
    kn_dataset_free(d);
    setlocale(LC_NUMERIC, before);
    free(before);
}

static void refused(void **state)
{
    (void)state;
    kn_dataset *d;
#define REFUSED(status, piece, ...) assert_fails(kn_status_of(d = CSV(__VA_ARGS__)), status, piece)
    REFUSED(KN_ERR_FORMAT, "line 3, column \"b\": expected a number, found \"x2\"", "a,b\n1,2\n3,x2\n",
            .missing = false);
    REFUSED(KN_ERR_FORMAT, "found \"0x10\"", "a\n0x10\n", .missing = false);
    REFUSED(KN_ERR_FORMAT, "found \"1 2\"", "a\n1 2\n", .missing = false);
    REFUSED(KN_ERR_FORMAT, "expected a whole number, found \"1.5\"", "a\n1.5\n", .dtype = KN_I64);
    REFUSED(KN_ERR_FORMAT, "expected uint8, found \"256\"", "a\n256\n", .dtype = KN_U8);
    REFUSED(KN_ERR_FORMAT, "expected a whole number, found \"99999999999999999999\"", "a\n99999999999999999999\n",
            .dtype = KN_I64);
    REFUSED(KN_ERR_FORMAT, "line 3: expected 2 values, as in the first line, found 3", "a,b\n1,2\n1,2,3\n",
            .missing = false);
    REFUSED(KN_ERR_FORMAT, "line 2: expected 2 values, as in the first line, found 1", "a,b\n1\n", .missing = false);
    REFUSED(KN_ERR_FORMAT, "line 2, value 2: the quote that begins here has no end", "a,b\n1,\"2\n3,4\n",
            .missing = false);
    REFUSED(KN_ERR_FORMAT, "line 2, value 1: expected a delimiter", "a,b\n\"1\" ,2\n", .missing = false);
    REFUSED(KN_ERR_FORMAT, "line 2, value 1: it has a NUL byte", "a\n1\0\n", .missing = false);
    REFUSED(KN_ERR_FORMAT, "two columns are called \"a\"", "a,b,a\n1,2,3\n", .missing = false);
    REFUSED(KN_ERR_FORMAT, "is empty", "", .missing = false);
    REFUSED(KN_ERR_FORMAT, "is empty", "\n\r\n", .missing = false);
    REFUSED(KN_ERR_ARGUMENT, "has no column \"z\"; it has \"a\", \"b\"", "a,b\n1,2\n", .target = "z");
    REFUSED(KN_ERR_ARGUMENT, "has no column \"c\"", "a,b\n1,2\n", .columns = KN_NAMES("a", "c"));
    REFUSED(KN_ERR_ARGUMENT, "the delimiter", "a\n1\n", .delimiter = '"');
    REFUSED(KN_ERR_FORMAT, "line 3, column \"b\": expected one of the classes given, found \"cow\"",
            "a,b\n1,ant\n2,cow\n", .target = "b", .classes = KN_NAMES("ant", "bee"));
    assert_fails(kn_status_of(d = kn_csv_dataset("/nowhere/table.csv")), KN_ERR_IO, "/nowhere/table.csv");
    assert_fails(kn_status_of(d = kn_csv_dataset(NULL)), KN_ERR_ARGUMENT, "path");
}

static void damaged_tables_are_refused_or_read(void **state)
{
    (void)state;
    static const char text[] = "x,\"y \"\"\",kind\r\n1,2.5,\"a\nb\"\r\n-3e2,4,ant\r\n.5,,cat\r\n";
    const byte_block whole = {(unsigned char *)(uintptr_t)text, sizeof text - 1, sizeof text};
    for (uint64_t n = 0; n < 2000; n++) {
        byte_block bytes = mutated(&whole, n);
        const char *path = table((const char *)bytes.data, bytes.size);
        kn_dataset *d = kn_csv_dataset(path, .header = n % 2, .missing = n % 3, .target = n % 2 ? "kind" : "2");
        if (d)
            kn_dataset_free(d);
        else
            assert_true(strstr(kn_error_message(), path) != NULL);
        kn_error_clear();
        bytes_free(&bytes);
    }
}

static void gzipped(void **state)
{
    (void)state;
    write_gzip(temporary("table.csv.gz"), "a\n5\n", 4);
    kn_dataset *d = kn_csv_dataset(temporary("table.csv.gz"));
    EXPECT(d, 0, -1, 5);
    kn_dataset_free(d);
}

/* Many records, through a loader. */
static void a_long_table(void **state)
{
    (void)state;
    enum { ROWS = 3000 };
    static char text[ROWS * 32];
    size_t size = (size_t)sprintf(text, "i,square,odd\n");
    for (int i = 0; i < ROWS; i++)
        size += (size_t)sprintf(text + size, "%d,%d,%s\n", i, i * i, i % 2 ? "yes" : "no");
    kn_dataset *d = kn_csv_dataset(table(text, size), .target = "odd", .dtype = KN_F64);
    kn_loader *loader = kn_loader_new(d, .batch_size = 128, .num_workers = 2, .device = kn_device_host());
    int64_t row = 0;
    assert_new(loader);
    KN_FOR_BATCHES (batch, loader, 0) {
        const double *input = kn_data(batch->input);
        const int64_t *target = kn_data(batch->target);
        for (int64_t i = 0; i < batch->size; i++, row++) {
            assert_true(input[2 * i] == (double)row && input[2 * i + 1] == (double)(row * row));
            assert_int_equal(target[i], row % 2);
        }
    }
    assert_int_equal(row, ROWS);
    kn_loader_free(loader);
    kn_dataset_free(d);
}

/* Of many columns each is found by its name. */
static void a_wide_table(void **state)
{
    (void)state;
    enum { COLUMNS = 20000, CHOSEN = 500 };
    static char text[COLUMNS * 16], names[CHOSEN][8];
    static const char *chosen[CHOSEN + 1];
    size_t size = 0;
    float values[CHOSEN];
    for (int i = 0; i < 2 * COLUMNS; i++)
        size += (size_t)sprintf(text + size, "%s%d%c", i < COLUMNS ? "c" : "", i % COLUMNS,
                                i % COLUMNS == COLUMNS - 1 ? '\n' : ',');
    for (int i = 0; i < CHOSEN; i++) {
        const int column = i * 7919 % COLUMNS;
        snprintf(names[i], sizeof names[i], "c%d", column);
        chosen[i] = names[i];
        values[i] = (float)column;
    }
    kn_dataset *d = kn_csv_dataset(table(text, size), .columns = chosen);
    float found[CHOSEN];
    assert_new(d);
    assert_ok(kn_dataset_get(d, 0, (void *[]){found}));
    assert_memory_equal(found, values, sizeof found);
    kn_dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_classes),
        cmocka_unit_test(quotes_are_those_of_rfc_4180),
        cmocka_unit_test(missing_values),
        cmocka_unit_test(a_locale_does_not_matter),
        cmocka_unit_test(refused),
        cmocka_unit_test(a_long_table),
        cmocka_unit_test(a_wide_table),
        cmocka_unit_test(damaged_tables_are_refused_or_read),
        cmocka_unit_test(gzipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
