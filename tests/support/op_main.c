/* op_main.c - the program around the table: which rows, devices, dtypes and implementations run, and what is compared
 * between runs. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "rt/memory/pool.h"
#include "support/as_gpu.h"
#include "support/op_run.h"

#define LONG_ELEMENTS 1000

enum { MOST_PREFIXES = 16 };

typedef struct options {
    const char *only[MOST_PREFIXES], *device, *dtype, *forced;
    int num_only; /* prefixes of names, any of which will do; none: all rows */
    bool list, times, first, all_operators, no_gradient, as_gpu, tensor_cores, as_avx2, as_neon;
    int shard, num_shards; /* tables shard, shard + num_shards, ... counted from 1; 0: all */
    const op_table *table; /* the one that is running */
    const char *program;
} options;

typedef struct totals {
    int cases, failed;
} totals;

/* "KOINE_GUARD=1 " if set: part of the command that reproduces a failure. */
static const char *environment_prefix(char *buffer, size_t size)
{
    static const char *const names[] = {"KOINE_GUARD",     "POCL_DEVICES",     "KOINE_IMPL",
                                        "KOINE_TEST_SEED", "KOINE_TEST_COUNT", "KOINE_TEST_FULL"};
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]) && used < size)
            used += (size_t)snprintf(buffer + used, size - used, "%s=\"%s\" ", names[i], getenv(names[i]));
    return buffer;
}

void op_fail(op_run *run, const char *check, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const char *device = kn_device_string(run->device);
    printf("FAIL %s@%s on %s in %s", run->row->name, op_layout_name(run->layout), device, op_short_dtype(run->dtype));
    if (run->table)
        printf(" with %s:%s", run->table, run->implementation);
    char prefix[256];
    printf(": %s: %s\n     again: %s%s --only \"%s@%s\" --device %s --dtype %s\n", check, message,
           environment_prefix(prefix, sizeof prefix), run->program, run->row->name, op_layout_name(run->layout), device,
           op_short_dtype(run->dtype));
    fflush(stdout);
    run->failures++;
    kn_error_clear();
}

/* --- comparisons between runs ---------------------------------------------------------------------------- */

static void compare_bits(op_run *run, const op_bytes *first, const op_bytes *second, const char *what, int index)
{
    if (first->size != second->size || memcmp(first->data, second->data, first->size) != 0)
        op_fail(run, "repeat", "%s %d differs bitwise from the first run", what, index);
}

static void check_repeat(op_run *run, const op_result *first)
{
    op_result second;
    if (op_execute(run, &second, false)) {
        compare_bits(run, &first->output, &second.output, "output", 0);
        for (int i = 0; i < OP_MAX_INPUTS; i++)
            if (first->gradients[i].data)
                compare_bits(run, &first->gradients[i], &second.gradients[i], "the gradient of input", i);
    }
    op_result_free(&second);
}

/* Two devices of the same name (POCL_DEVICES="pthread pthread") give the same bits. */
static void check_twin_device(op_run *run, const op_result *result)
{
    kn_device *twin = kn_device_at(0);
    if (twin == run->device || strcmp(kn_device_name(twin), kn_device_name(run->device)) != 0)
        return;
    op_run there = *run;
    there.device = twin;
    op_result other;
    kn_device_set_current(twin);
    if (op_execute(&there, &other, false)) {
        compare_bits(run, &result->output, &other.output, "on the twin device output", 0);
        for (int i = 0; i < OP_MAX_INPUTS; i++)
            if (result->gradients[i].data)
                compare_bits(run, &result->gradients[i], &other.gradients[i],
                             "on the twin device the gradient of input", i);
    }
    op_result_free(&other);
    kn_device_set_current(run->device);
    run->failures = there.failures > run->failures ? there.failures : run->failures;
}

/* --- one case -------------------------------------------------------------------------------------------- */

static void check_f32_gradients(op_run *run, const op_result *f32)
{
    op_run fine = *run;
    fine.dtype = KN_F64;
    op_result f64;
    if (op_execute(&fine, &f64, false))
        op_compare_gradients(run, f32, &f64, "f32-gradient");
    op_result_free(&f64);
    run->failures = fine.failures > run->failures ? fine.failures : run->failures;
}

/* Is it the first row of its family ("family/case")? */
static bool is_first(const op_table *table, const op_row *row)
{
    const size_t length = strcspn(row->name, "/") + 1;
    for (const op_row *before = table->rows; before < row; before++)
        if (strncmp(before->name, row->name, length) == 0)
            return false;
    return true;
}

/* Does the row's family ("family/case") test an engine? */
static bool is_of_engine(const op_table *table, const op_row *row)
{
    const size_t length = strcspn(row->name, "/");
    for (const char *name = table->engine; name && *name; name += strcspn(name, " "), name += strspn(name, " "))
        if (strcspn(name, " ") == length && strncmp(name, row->name, length) == 0)
            return true;
    return false;
}

/* A row of a table with golden values, which by default leaves f32 and GPU kernels to other tests. */
static bool is_golden(const options *chosen, const op_row *row)
{
    const op_table *table = chosen->table;
    return table->has_golden && row > table->rows && !row->tables && !is_of_engine(table, row) && !test_full();
}

/* By default f64 is for gradients, on contiguous inputs: layouts test views. Rows after a family's first differ from it
 * in shape, as do long inputs, and not in formula: of them only those with layouts are in f64, and where --no-gradient
 * repeats the rows under other conditions, only those that force implementations. */
static bool runs_in_f64(const options *chosen, const op_row *row, kn_device *device, op_layout layout)
{
    if (!kn_device_limits(device)->has_f64 || test_full())
        return kn_device_limits(device)->has_f64;
    if (layout != LAYOUT_PLAIN || op_differentiable_elements(row, layout) > LONG_ELEMENTS)
        return false;
    return (row->layouts || is_first(chosen->table, row)) && (row->tables || !chosen->no_gradient);
}

static void check_case(op_run *run, const options *chosen)
{
    uint64_t violations = kn_pool_read_figures(run->device).guard_violations;
    op_result result;
    if (op_execute(run, &result, true)) {
        uint64_t allocated = kn_memory_allocated(run->device);
        check_repeat(run, &result);
        if (kn_memory_allocated(run->device) != allocated)
            op_fail(run, "leak", "device memory grew from %llu to %llu bytes", (unsigned long long)allocated,
                    (unsigned long long)kn_memory_allocated(run->device));
        if (run->dtype == KN_F64 && !run->row->no_gradient && !chosen->no_gradient)
            op_check_gradient(run);
        if (run->dtype == KN_F32 && !run->row->no_gradient && !run->row->draws && !chosen->no_gradient &&
            runs_in_f64(chosen, run->row, run->device, run->layout))
            check_f32_gradients(run, &result);
        op_check_implementations(run, &result);
        if (run->layout == LAYOUT_PLAIN && !run->row->reads)
            op_check_captured(run, &result);
        check_twin_device(run, &result);
    }
    op_result_free(&result);
    if (kn_synchronize(run->device) != KN_OK)
        op_fail(run, "synchronize", "%s", kn_error_message());
    if (kn_pool_read_figures(run->device).guard_violations != violations)
        op_fail(run, "guard", "a kernel wrote outside a buffer");
}

/* --- selection of cases ----------------------------------------------------------------------------------------- */

static bool selected(const options *chosen, const op_row *row, op_layout layout)
{
    char name[160];
    snprintf(name, sizeof name, "%s@%s", row->name, op_layout_name(layout));
    const bool further = row->full || (row->on_cpu && chosen->as_gpu) || (chosen->first && layout != LAYOUT_PLAIN);
    if (further && !test_full())
        return false;
    for (int i = 0; i < chosen->num_only; i++)
        if (strncmp(name, chosen->only[i], strlen(chosen->only[i])) == 0)
            return true;
    return chosen->num_only == 0;
}

/* CPU time of this process with all threads, and of its finished children (drivers run linkers). */
static double cpu_seconds(void)
{
    double total = 0;
    for (int i = 0; i < 2; i++) {
        struct rusage used;
        getrusage(i ? RUSAGE_CHILDREN : RUSAGE_SELF, &used);
        total += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
        total += (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    }
    return total;
}

/* Rows whose inputs all have fixed dtypes run once. */
static bool depends_on_dtype(const op_row *row)
{
    for (int i = 0; i < op_num_inputs(row); i++)
        if (row->inputs[i].dtype == KN_DTYPE_DEFAULT)
            return true;
    return op_num_inputs(row) == 0;
}

static void run_row(const options *chosen, const op_row *row, kn_device *device, totals *sum)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_F64};
    if (row->wide && !kn_device_limits(device)->has_f64)
        return;
    for (int layout = 0; layout < (row->layouts ? LAYOUT_COUNT : 1); layout++) {
        if (!selected(chosen, row, (op_layout)layout))
            continue;
        for (int d = 0; d < (depends_on_dtype(row) ? 2 : 1); d++) {
            const bool in_f64 = runs_in_f64(chosen, row, device, (op_layout)layout);
            if (dtypes[d] == KN_F64 && !in_f64)
                continue;
            if (dtypes[d] == KN_F32 && is_golden(chosen, row) && (in_f64 || chosen->as_gpu) && !chosen->dtype)
                continue;
            if (chosen->dtype && strcmp(chosen->dtype, op_short_dtype(dtypes[d])) != 0)
                continue;
            op_run run = {.row = row,
                          .layout = (op_layout)layout,
                          .device = device,
                          .dtype = dtypes[d],
                          .only_forced = chosen->forced,
                          .program = chosen->program};
            const double before = cpu_seconds();
            check_case(&run, chosen);
            if (chosen->times)
                printf("%8.3f s CPU  %s@%s in %s\n", cpu_seconds() - before, row->name, op_layout_name(run.layout),
                       op_short_dtype(run.dtype));
            sum->cases++;
            sum->failed += run.failures > 0;
        }
    }
}

static void list_row(const options *chosen, const op_row *row)
{
    for (int layout = 0; layout < (row->layouts ? LAYOUT_COUNT : 1); layout++)
        if (selected(chosen, row, (op_layout)layout))
            printf("%s@%s\n", row->name, op_layout_name((op_layout)layout));
}

static void run_tables(options *chosen, const op_table *const *tables, kn_device *device, totals *sum)
{
    for (int t = 0; tables[t]; t++) {
        if (chosen->num_shards > 0 && t % chosen->num_shards != chosen->shard - 1)
            continue;
        chosen->table = tables[t];
        for (int i = 0; i < tables[t]->count; i++) {
            const op_row *row = &tables[t]->rows[i];
            if (chosen->first && !test_full() && (!is_first(tables[t], row) || is_golden(chosen, row)))
                continue;
            if (chosen->list)
                list_row(chosen, row);
            else
                run_row(chosen, row, device, sum);
        }
    }
}

/* "2/4" */
static bool parse_shard(options *chosen, const char *text)
{
    return sscanf(text, "%d/%d", &chosen->shard, &chosen->num_shards) == 2 && chosen->shard >= 1 &&
           chosen->shard <= chosen->num_shards;
}

static bool parse_options(options *chosen, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--list") == 0)
            chosen->list = true;
        else if (strcmp(argv[i], "--times") == 0)
            chosen->times = true;
        else if (strcmp(argv[i], "--first") == 0)
            chosen->first = true;
        else if (strcmp(argv[i], "--all-operators") == 0)
            chosen->all_operators = true;
        else if (strcmp(argv[i], "--shard") == 0 && value && parse_shard(chosen, value))
            i++;
        else if (strcmp(argv[i], "--no-gradient") == 0)
            chosen->no_gradient = true;
        else if (strcmp(argv[i], "--as-gpu") == 0)
            chosen->as_gpu = true;
        else if (strcmp(argv[i], "--tensor-cores") == 0)
            chosen->as_gpu = chosen->tensor_cores = true;
        else if (strcmp(argv[i], "--as-avx2") == 0)
            chosen->as_avx2 = true;
        else if (strcmp(argv[i], "--as-neon") == 0)
            chosen->as_neon = true;
        else if (strcmp(argv[i], "--forced") == 0 && value)
            chosen->forced = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && value && chosen->num_only < MOST_PREFIXES)
            chosen->only[chosen->num_only++] = argv[++i];
        else if (strcmp(argv[i], "--device") == 0 && value)
            chosen->device = argv[++i];
        else if (strcmp(argv[i], "--dtype") == 0 && value)
            chosen->dtype = argv[++i];
        else
            return false;
    }
    return true;
}

/* "--device second", for drivers that make two devices of one CPU. */
static bool wants_second(const options *chosen) { return chosen->device && strcmp(chosen->device, "second") == 0; }

static int num_devices(const options *chosen) { return chosen->device ? 1 : kn_device_count(); }

static kn_device *device_number(const options *chosen, int index)
{
    if (!chosen->device)
        return kn_device_at(index);
    return wants_second(chosen) ? kn_device_at(1) : kn_device_open(chosen->device);
}

int op_test_main(int argc, char **argv, const op_table *const *tables)
{
    options chosen = {.program = argv[0]};
    if (!parse_options(&chosen, argc, argv)) {
        fprintf(
            stderr,
            "usage: %s [--list] [--times] [--only PREFIX]... [--first] [--shard I/N] "
            "[--all-operators] [--device NAME|second] [--dtype f32|f64] [--no-gradient] [--as-gpu] [--tensor-cores] "
            "[--as-avx2] [--as-neon] [--forced IMPLEMENTATION]\n",
            argv[0]);
        return 2;
    }
    totals sum = {0, 0};
    int lacking = 0; /* devices without the dtype that is asked for */
    if (chosen.list) {
        run_tables(&chosen, tables, NULL, &sum);
        return 0;
    }
    if (wants_second(&chosen) && kn_device_count() < 2) {
        printf("skipped: there is one device\n");
        return 77;
    }
    for (int i = 0; i < num_devices(&chosen); i++) {
        kn_device *device = device_number(&chosen, i);
        if (!device || kn_device_set_current(device) != KN_OK) {
            printf("FAIL device %d: %s\n", i, kn_error_message());
            return 1;
        }
        kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(device);
        lacking += chosen.dtype && strcmp(chosen.dtype, "f64") == 0 && !limits->has_f64;
        if (chosen.tensor_cores)
            simulate_tensor_cores(limits);
        else if (chosen.as_gpu)
            simulate_gpu(limits);
        if (chosen.as_avx2 || chosen.as_neon)
            simulate_vectors(limits, chosen.as_avx2);
        run_tables(&chosen, tables, device, &sum);
    }
    if (lacking == num_devices(&chosen)) {
        printf("skipped: no device has float64\n");
        return 77;
    }
    op_print_coverage(stdout);
    op_print_forced(stdout);
    printf("%d cases on %d device(s), %d failed\n", sum.cases, num_devices(&chosen), sum.failed);
    if (chosen.forced && !op_forced_any())
        printf("FAIL no case has a problem that %s supports\n", chosen.forced);
    const bool all = !chosen.all_operators || op_all_seen(stdout);
    return sum.failed > 0 || sum.cases == 0 || !all || (chosen.forced && !op_forced_any()) ? 1 : 0;
}
