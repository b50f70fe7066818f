/* op_forced.c - the implementations of a row's tables, each forced in turn.
 *
 * The tables come from ops/dispatch/choice.h. A problem that the forced implementation does not support is computed by
 * another; the counts tell which ran, and if the forced one never ran there is nothing to compare. */
#include <math.h>
#include <string.h>

#include "ops/dispatch/choice.h"
#include "support/as_gpu.h"
#include "support/op_run.h"

#define MAX_COUNTED 64

/* Per implementation: runs of rows in which it was forced, and in which it computed anything. */
static struct {
    char name[64];
    int forced, ran;
    int64_t problems, unsupported;
} counted[MAX_COUNTED];
static int num_counted;

static void count_run(const char *operation, const char *implementation, kn_forced_count count)
{
    char name[64];
    int i = 0;
    snprintf(name, sizeof name, "%s:%s", operation, implementation);
    while (i < num_counted && strcmp(counted[i].name, name) != 0)
        i++;
    if (i == MAX_COUNTED)
        return;
    if (i == num_counted)
        snprintf(counted[num_counted++].name, sizeof counted[0].name, "%s", name);
    counted[i].forced++;
    counted[i].ran += count.ran > 0;
    counted[i].problems += count.ran;
    counted[i].unsupported += count.unsupported;
}

void op_print_forced(FILE *file)
{
    for (int i = 0; i < num_counted; i++)
        fprintf(file, "%s was forced in %d runs, computed %lld problems in %d of them, and does not support %lld\n",
                counted[i].name, counted[i].forced, (long long)counted[i].problems, counted[i].ran,
                (long long)counted[i].unsupported);
}

bool op_forced_any(void)
{
    for (int i = 0; i < num_counted; i++)
        if (counted[i].ran > 0)
            return true;
    return false;
}

static double largest_magnitude(const op_bytes *bytes)
{
    double largest = 0;
    for (int64_t i = 0; i < bytes->count; i++)
        if (isfinite(bytes->values[i]) && fabs(bytes->values[i]) > largest)
            largest = fabs(bytes->values[i]);
    return largest;
}

void op_compare_gradients(op_run *run, const op_result *result, const op_result *right, const char *check)
{
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        const op_bytes *a = &result->gradients[i], *b = &right->gradients[i];
        if (!a->values || !b->values)
            continue;
        int64_t reduction = result->output.count > run->row->reduction ? result->output.count : run->row->reduction;
        char message[400], full[480];
        closeness limit = closeness_of(a->dtype, reduction);
        /* A gradient is a sum with possible cancellation: tolerance relative to the largest element. */
        limit.atol += limit.rtol * largest_magnitude(b);
        if (values_close(a->values, b->values, a->count, limit, message, sizeof message))
            continue;
        snprintf(full, sizeof full, "the gradient of input %d: %s", i, message);
        op_fail(run, check, "%s", full);
    }
}

/* Does the row have any problem of that operation? */
static bool check_forced(op_run *run, const op_result *chosen, const char *operation, const char *implementation)
{
    op_result result;
    int failures = run->failures;
    run->table = operation;
    run->implementation = implementation;
    kn_force_implementation(operation, implementation);
    bool done = op_execute(run, &result, true);
    kn_forced_count count = kn_count_forced(operation);
    kn_force_implementation(operation, NULL);
    if (count.ran + count.unsupported > 0)
        count_run(operation, implementation, count);
    if (done && count.ran > 0 && run->failures == failures) {
        char message[400];
        if (kn_dtype_is_floating(result.output.dtype) &&
            !values_close(result.output.values, chosen->output.values, result.output.count,
                          closeness_of(result.output.dtype, run->row->reduction), message, sizeof message))
            op_fail(run, "forced", "%s", message);
        op_compare_gradients(run, &result, chosen, "forced");
    }
    op_result_free(&result);
    run->table = run->implementation = NULL;
    return count.ran + count.unsupported > 0;
}

/* The reference, the last row, is the same code for all shapes: forced on a family's basic rows, those with layouts. */
static bool force_on(const op_run *run, const kn_implementation_table *table, int index)
{
    const kn_implementation *row = &table->rows[index];
    const bool further = index == table->count - 1 && !run->row->layouts && !run->only_forced;
    return can_force(table, row) && (!further || test_full()) &&
           (!run->only_forced || strcmp(run->only_forced, row->name) == 0);
}

void op_check_implementations(op_run *run, const op_result *chosen)
{
    char operations[160], *rest = NULL;
    snprintf(operations, sizeof operations, "%s", run->row->tables ? run->row->tables : "");
    for (char *name = strtok_r(operations, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        const kn_implementation_table *table = kn_implementation_table_find(name);
        if (!table)
            op_fail(run, "forced", "the row names a table, '%s', that ops/dispatch/choice.h does not have", name);
        bool reached = table != NULL;
        for (int i = 0; reached && i < table->count; i++)
            if (force_on(run, table, i))
                reached = check_forced(run, chosen, table->operation, table->rows[i].name);
    }
}
