/* op_forced.c - the implementations of a row's tables, each forced in turn.
 *
 * Their names are not repeated here: an implementation that no table has is asked for, and the error tells which there
 * are. A table that the row never reaches gives no error, and is passed over. */
#include <math.h>
#include <string.h>

#include "ops/choice.h"
#include "support/op_run.h"

#define MAX_NAMES 16

#define MAX_COUNTED 64

/* How often each implementation was asked for, and how often it took the problem. */
static struct {
    char name[64];
    int asked, took;
} counted[MAX_COUNTED];
static int num_counted;

static void count_run(const char *table, const char *implementation, bool took)
{
    char name[64];
    int i = 0;
    snprintf(name, sizeof name, "%s:%s", table, implementation);
    while (i < num_counted && strcmp(counted[i].name, name) != 0)
        i++;
    if (i == MAX_COUNTED)
        return;
    if (i == num_counted)
        snprintf(counted[num_counted++].name, sizeof counted[0].name, "%s", name);
    counted[i].asked++;
    counted[i].took += took;
}

void op_print_forced(FILE *file)
{
    for (int i = 0; i < num_counted; i++)
        fprintf(file, "%s was forced in %d runs and took %d\n", counted[i].name, counted[i].asked, counted[i].took);
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
        /* A gradient is a sum of parts that may cancel: close relative to the largest element. */
        limit.atol += limit.rtol * largest_magnitude(b);
        if (values_close(a->values, b->values, a->count, limit, message, sizeof message))
            continue;
        snprintf(full, sizeof full, "the gradient of input %d: %s", i, message);
        op_fail(run, check, "%s", full);
    }
}

static void check_forced(op_run *run, const op_result *chosen, const char *table, const char *implementation)
{
    run->table = table;
    run->implementation = implementation;
    kn_force_implementation(table, implementation);
    int failures = run->failures;
    op_result result;
    /* An implementation that does not take the problem says so: that is no failure. */
    bool took = op_execute(run, &result, true);
    count_run(table, implementation, took);
    if (took && run->failures == failures) {
        char message[400];
        if (kn_dtype_is_floating(result.output.dtype) &&
            !values_close(result.output.values, chosen->output.values, result.output.count,
                          closeness_of(result.output.dtype, run->row->reduction), message, sizeof message))
            op_fail(run, "forced", "%s", message);
        op_compare_gradients(run, &result, chosen, "forced");
    }
    op_result_free(&result);
    kn_force_implementation(table, NULL);
    run->table = run->implementation = NULL;
}

/* Fills `list` with the names, cut apart; their number is returned. */
static int list_names(op_run *run, const char *table, char *list, size_t size, const char *names[MAX_NAMES])
{
    run->quiet = true;
    run->refusal[0] = '\0';
    kn_force_implementation(table, "?");
    op_result result;
    op_execute(run, &result, false);
    op_result_free(&result);
    kn_force_implementation(table, NULL);
    run->quiet = false;
    const char *known = strstr(run->refusal, "may ask for ");
    snprintf(list, size, "%s", known ? known + strlen("may ask for ") : "");
    int count = 0;
    char *rest = NULL;
    for (char *name = strtok_r(list, ", ", &rest); name && count < MAX_NAMES; name = strtok_r(NULL, ", ", &rest))
        names[count++] = name;
    return count;
}

void op_check_implementations(op_run *run, const op_result *chosen)
{
    char tables[160], *rest = NULL;
    snprintf(tables, sizeof tables, "%s", run->row->tables ? run->row->tables : "");
    for (char *table = strtok_r(tables, " ", &rest); table; table = strtok_r(NULL, " ", &rest)) {
        char list[256];
        const char *names[MAX_NAMES];
        int count = list_names(run, table, list, sizeof list, names);
        for (int i = 0; i < count; i++)
            check_forced(run, chosen, table, names[i]);
    }
}
