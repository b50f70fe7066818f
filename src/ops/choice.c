/* ops/choice.c - picks a row of a table of implementations: the forced one, else the first that accepts the problem. */
#include "ops/choice.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* "operation:implementation" pairs that force a row. */
typedef struct forced_row {
    char *operation, *implementation;
} forced_row;

enum { MAX_FORCED = 64 };

static pthread_once_t parsed = PTHREAD_ONCE_INIT;
static forced_row from_environment[MAX_FORCED], from_tests[MAX_FORCED];
static int num_from_environment, num_from_tests;
static char *malformed; /* the entry of KOINE_IMPL that is no pair; NULL when all are */

/* --- KOINE_IMPL --------------------------------------------------------------------------------------------------- */

static void parse_entry(char *entry)
{
    char *colon = strchr(entry, ':');
    if (!colon || colon == entry || colon[1] == '\0' || num_from_environment == MAX_FORCED) {
        malformed = entry;
        return;
    }
    *colon = '\0';
    from_environment[num_from_environment++] = (forced_row){entry, colon + 1};
}

static void parse_environment(void)
{
    const char *value = getenv("KOINE_IMPL");
    char *text = value && *value ? kn_strdup(value) : NULL; /* kept: the rows point into it */
    if (!text)
        return;
    char *rest = NULL;
    for (char *entry = strtok_r(text, ",", &rest); entry; entry = strtok_r(NULL, ",", &rest))
        parse_entry(entry);
}

void kn_force_implementation(const char *operation, const char *name)
{
    int i = 0;
    while (i < num_from_tests && strcmp(from_tests[i].operation, operation) != 0)
        i++;
    if (i < num_from_tests) {
        kn_free(from_tests[i].operation);
        kn_free(from_tests[i].implementation);
        from_tests[i] = from_tests[--num_from_tests];
    }
    if (!name || num_from_tests == MAX_FORCED)
        return;
    forced_row row = {kn_strdup(operation), kn_strdup(name)};
    if (row.operation && row.implementation) {
        from_tests[num_from_tests++] = row;
    } else {
        kn_free(row.operation);
        kn_free(row.implementation);
    }
}

static const char *find(const forced_row *rows, int count, const char *operation)
{
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].operation, operation) == 0)
            return rows[i].implementation;
    return NULL;
}

/* --- choosing ----------------------------------------------------------------------------------------------------- */

static kn_status fail_unknown(const kn_implementation_table *table, const char *name)
{
    kn_text known = {0};
    for (int i = 0; i < table->count; i++)
        kn_text_format(&known, "%s%s", i == 0 ? "" : ", ", table->rows[i].name);
    char *list = kn_text_finish(&known);
    if (!list)
        return KN_ERR_MEMORY;
    kn_status status = kn_fail(KN_ERR_ARGUMENT, "no implementation of %s is called '%s'; KOINE_IMPL may ask for %s",
                               table->operation, name, list);
    kn_free(list);
    return status;
}

static kn_status run_forced(const kn_implementation_table *table, const char *name, kn_stream *stream,
                            const void *problem)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    for (int i = 0; i < table->count; i++) {
        const kn_implementation *row = &table->rows[i];
        if (strcmp(row->name, name) != 0)
            continue;
        if (row->accepts && !row->accepts(limits, problem))
            return kn_fail(
                KN_ERR_ARGUMENT,
                "the implementation of %s that KOINE_IMPL asks for, '%s', cannot take this problem on this device",
                table->operation, name);
        return row->run(stream, problem);
    }
    return fail_unknown(table, name);
}

kn_status kn_run_implementation(const kn_implementation_table *table, kn_stream *stream, const void *problem)
{
    pthread_once(&parsed, parse_environment);
    if (malformed)
        return kn_fail(KN_ERR_ARGUMENT, "KOINE_IMPL: '%s' is not of the form operation:implementation", malformed);
    const char *forced = find(from_tests, num_from_tests, table->operation);
    if (!forced)
        forced = find(from_environment, num_from_environment, table->operation);
    if (forced)
        return run_forced(table, forced, stream, problem);
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    for (int i = 0; i < table->count; i++)
        if (!table->rows[i].accepts || table->rows[i].accepts(limits, problem))
            return table->rows[i].run(stream, problem);
    return kn_fail(KN_ERR_INTERNAL, "no implementation of %s takes this problem", table->operation);
}
