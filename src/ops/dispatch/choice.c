/* ops/dispatch/choice.c - picks a row of a table of implementations: the forced one, otherwise the first that supports
 * and prefers the problem. */
#include "ops/dispatch/choice.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
#include "base/memory.h"
#include "base/text.h"
#include "ops/dispatch/benchmark.h"

/* --- tables ------------------------------------------------------------------------------------------------------- */

const kn_implementation_table *const *kn_implementation_tables;

const kn_implementation_table *kn_implementation_table_find(const char *operation)
{
    for (const kn_implementation_table *const *table = kn_implementation_tables; *table; table++)
        if (strcmp((*table)->operation, operation) == 0)
            return *table;
    return NULL;
}

/* --- KOINE_IMPL --------------------------------------------------------------------------------------------------- */

/* An "operation:implementation" pair that forces a row. */
typedef struct forced_row {
    const char *operation, *implementation;
} forced_row;

enum { MAX_FORCED = 64 };

static pthread_once_t parsed = PTHREAD_ONCE_INIT;
static forced_row from_environment[MAX_FORCED];
static int num_from_environment;
static const char *malformed; /* the entry of KOINE_IMPL that is not a pair, or NULL */

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

static kn_status fail_unknown_operation(const char *operation)
{
    kn_text known = {0};
    for (int i = 0; kn_implementation_tables[i]; i++)
        kn_text_format(&known, "%s%s", i == 0 ? "" : ", ", kn_implementation_tables[i]->operation);
    char *list = kn_text_finish(&known);
    if (!list)
        return KN_ERR_MEMORY;
    kn_status status =
        kn_fail(KN_ERR_ARGUMENT, "KOINE_IMPL: '%s' has no implementations to choose from; %s have", operation, list);
    kn_free(list);
    return status;
}

static kn_status check_environment(void)
{
    pthread_once(&parsed, parse_environment);
    if (malformed)
        return kn_fail(KN_ERR_ARGUMENT, "KOINE_IMPL: '%s' is not of the form operation:implementation", malformed);
    for (int i = 0; i < num_from_environment; i++)
        if (!kn_implementation_table_find(from_environment[i].operation))
            return fail_unknown_operation(from_environment[i].operation);
    return KN_OK;
}

static const char *find_in_environment(const char *operation)
{
    for (int i = 0; i < num_from_environment; i++)
        if (strcmp(from_environment[i].operation, operation) == 0)
            return from_environment[i].implementation;
    return NULL;
}

/* --- forced by tests ---------------------------------------------------------------------------------------------- */

/* One per operation ever forced; name is NULL after the force was lifted. The names are copies. */
static struct forced_by_test {
    char *operation, *name;
    kn_forced_count count;
} from_tests[MAX_FORCED];
static int num_from_tests;

static struct forced_by_test *find_from_tests(const char *operation)
{
    for (int i = 0; i < num_from_tests; i++)
        if (strcmp(from_tests[i].operation, operation) == 0)
            return &from_tests[i];
    return NULL;
}

void kn_force_implementation(const char *operation, const char *name)
{
    struct forced_by_test *forced = find_from_tests(operation);
    if (!forced && name && num_from_tests < MAX_FORCED) {
        from_tests[num_from_tests].operation = kn_strdup(operation);
        if (from_tests[num_from_tests].operation)
            forced = &from_tests[num_from_tests++];
    }
    if (!forced)
        return;
    kn_free(forced->name);
    forced->name = name ? kn_strdup(name) : NULL;
    if (name)
        forced->count = (kn_forced_count){0, 0};
}

kn_forced_count kn_count_forced(const char *operation)
{
    const struct forced_by_test *forced = find_from_tests(operation);
    return forced ? forced->count : (kn_forced_count){0, 0};
}

/* --- flags -------------------------------------------------------------------------------------------------------- */

/* The tables that the thread is running a row of. */
static _Thread_local const kn_implementation_table *outermost, *innermost;

unsigned kn_implementation_flags(const kn_implementation_table *table)
{
    const unsigned now = kn_flags();
    const kn_table_family family = outermost ? outermost->family : table->family;
    const unsigned precision = family == KN_FAMILY_CONV ? (now & KN_FLAG_REDUCED_PRECISION) >> 2 : now;
    return (precision & (KN_USES_TF32 | KN_USES_FP16_REDUCTION)) | (now & KN_FLAGS_DETERMINISTIC);
}

bool kn_implementation_allowed(const kn_implementation *row, unsigned flags)
{
    return !(row->reduced_precision & ~flags) && !(row->nondeterministic && (flags & KN_FLAGS_DETERMINISTIC));
}

static kn_status check_forced(const kn_implementation_table *table, const kn_implementation *row, unsigned flags)
{
    if (kn_implementation_allowed(row, flags))
        return KN_OK;
    return kn_fail(
        KN_ERR_STATE, "the forced implementation of %s, '%s', is %s, which the flags of koine/flags.h do not allow",
        table->operation, row->name, row->reduced_precision & ~flags ? "of reduced precision" : "nondeterministic");
}

/* --- choosing ----------------------------------------------------------------------------------------------------- */

static bool holds(kn_implementation_predicate *predicate, const kn_limits *limits, const void *problem)
{
    return !predicate || predicate(limits, problem);
}

static const kn_implementation *find_row(const kn_implementation_table *table, const char *name)
{
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].name, name) == 0)
            return &table->rows[i];
    return NULL;
}

static kn_status fail_unknown_row(const kn_implementation_table *table, const char *name)
{
    kn_text known = {0};
    for (int i = 0; i < table->count; i++)
        kn_text_format(&known, "%s%s", i == 0 ? "" : ", ", table->rows[i].name);
    char *list = kn_text_finish(&known);
    if (!list)
        return KN_ERR_MEMORY;
    kn_status status = kn_fail(KN_ERR_ARGUMENT, "KOINE_IMPL: %s has no implementation '%s'; choose from %s",
                               table->operation, name, list);
    kn_free(list);
    return status;
}

static bool works(const kn_implementation *row, kn_stream *stream) { return !row->works || row->works(stream); }

bool kn_implementation_can_run(const kn_implementation *row, kn_stream *stream, const void *problem, unsigned flags)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    return kn_implementation_allowed(row, flags) && holds(row->supports, limits, problem) && works(row, stream);
}

const char *kn_forced_implementation(const char *operation)
{
    const struct forced_by_test *by_test = find_from_tests(operation);
    pthread_once(&parsed, parse_environment);
    return by_test && by_test->name ? by_test->name : find_in_environment(operation);
}

/* *row is the one forced by a test or KOINE_IMPL, or NULL. */
static kn_status find_forced(const kn_implementation_table *table, kn_stream *stream, const void *problem,
                             unsigned flags, const kn_implementation **row)
{
    struct forced_by_test *by_test = find_from_tests(table->operation);
    bool tested = by_test && by_test->name;
    const char *name = kn_forced_implementation(table->operation);
    *row = name ? find_row(table, name) : NULL;
    if (!name)
        return KN_OK;
    if (!*row)
        return fail_unknown_row(table, name);
    bool supported = holds((*row)->supports, kn_device_limits(kn_stream_device(stream)), problem);
    if (supported)
        KN_TRY(check_forced(table, *row, flags));
    supported = supported && works(*row, stream);
    if (tested) {
        by_test->count.ran += supported;
        by_test->count.unsupported += !supported;
        *row = supported ? *row : NULL;
    } else if (!supported && innermost == table) { /* a part of a problem that it does support */
        *row = NULL;
    } else if (!supported) {
        return kn_fail(KN_ERR_ARGUMENT,
                       "KOINE_IMPL: the implementation of %s, '%s', does not support this problem on this device: "
                       "remove it from KOINE_IMPL",
                       table->operation, name);
    }
    return KN_OK;
}

/* --- the choice --------------------------------------------------------------------------------------------------- */

/* The first row that is allowed, supports the problem and, if `preferred`, prefers it. */
static const kn_implementation *first_row(const kn_implementation_table *table, kn_stream *stream, const void *problem,
                                          unsigned flags, bool preferred)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    for (int i = 0; i < table->count; i++) {
        const kn_implementation *row = &table->rows[i];
        if ((!preferred || holds(row->prefers, limits, problem)) &&
            kn_implementation_can_run(row, stream, problem, flags))
            return row;
    }
    return NULL;
}

/* If no deterministic row supports the problem, a nondeterministic one runs if the mode allows it. */
static kn_status choose_usual(const kn_implementation **row, const kn_implementation_table *table, kn_stream *stream,
                              const void *problem, unsigned flags)
{
    *row = first_row(table, stream, problem, flags, true);
    if (!*row && (flags & KN_FLAGS_DETERMINISTIC)) {
        *row = first_row(table, stream, problem, flags, false);
        if (!*row && (*row = first_row(table, stream, problem, flags & ~KN_FLAGS_DETERMINISTIC, true)))
            return kn_check_nondeterministic(table->operation);
    }
    return *row ? KN_OK : kn_fail(KN_ERR_INTERNAL, "no implementation of %s supports this problem", table->operation);
}

static kn_status run_row(const kn_implementation_table *table, const kn_implementation *row, kn_stream *stream,
                         const void *problem)
{
    const kn_implementation_table *outer = outermost, *inner = innermost;
    outermost = outer ? outer : table;
    innermost = table;
    kn_status status = row->run(stream, problem);
    outermost = outer;
    innermost = inner;
    return status;
}

kn_status kn_run_implementation(const kn_implementation_table *table, kn_stream *stream, const void *problem)
{
    const unsigned flags = kn_implementation_flags(table);
    const kn_implementation *row = NULL;
    KN_TRY(check_environment());
    KN_TRY(find_forced(table, stream, problem, flags, &row));
    if (row)
        return run_row(table, row, stream, problem);
    KN_TRY(choose_usual(&row, table, stream, problem, flags));
    if (kn_get_benchmark())
        KN_TRY(kn_benchmark_choose(&row, table, stream, problem, flags, run_row));
    return run_row(table, row, stream, problem);
}
