/* ops/dispatch/benchmark.c - times the rows of a table on a problem once and remembers the fastest. */
#include "ops/dispatch/benchmark.h"

#include <koine/flags.h>
#include <koine/graph.h>
#include <koine/stream.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "rt/tuning/tuning.h"

#define QUESTIONS "fastest " /* prefix of all keys */

enum { RUNS = 3 };                /* timed runs per row, unless hopeless */
static const double hopeless = 2, /* this many times slower than the best so far: stop after one run */
    margin = 0.95;                /* a row must beat the default one by this factor, to ignore noise */

/* --- winners in memory -------------------------------------------------------------------------------------------- */

typedef struct entry {
    kn_hash key;
    const kn_implementation *row;
    struct entry *next;
} entry;

enum { BUCKETS = 256 };

static struct {
    kn_mutex lock;
    entry *buckets[BUCKETS];
} winners = {.lock = KN_MUTEX_INIT};

static kn_mutex timing = KN_MUTEX_INIT; /* held while rows are timed: concurrent timings would disturb each other */
static _Thread_local bool is_timing;    /* on this thread: a row may itself choose from another table */
static atomic_int_fast64_t timed;

int64_t kn_benchmark_count_timed(void) { return atomic_load(&timed); }

static kn_hash key_of(const kn_implementation_table *table, kn_device *device, unsigned flags, const int64_t *numbers,
                      int count)
{
    int64_t all[KN_PROBLEM_NUMBERS + 3] = {(int64_t)(uintptr_t)table, kn_device_slot(device), flags};
    memcpy(all + 3, numbers, (size_t)count * sizeof *numbers);
    return kn_hash_bytes(all, (size_t)(count + 3) * sizeof *all);
}

static const kn_implementation *recall(kn_hash key)
{
    kn_lock(&winners.lock);
    entry *e = winners.buckets[key.low % BUCKETS];
    while (e && (e->key.low != key.low || e->key.high != key.high))
        e = e->next;
    const kn_implementation *row = e ? e->row : NULL;
    kn_unlock(&winners.lock);
    return row;
}

static kn_status remember(kn_hash key, const kn_implementation *row)
{
    entry *e = kn_calloc(1, sizeof *e);
    if (!e)
        return KN_ERR_MEMORY;
    kn_lock(&winners.lock);
    entry **bucket = &winners.buckets[key.low % BUCKETS];
    *e = (entry){.key = key, .row = row, .next = *bucket};
    *bucket = e;
    kn_unlock(&winners.lock);
    return KN_OK;
}

kn_status kn_benchmark_clear(bool on_disk)
{
    kn_lock(&winners.lock);
    for (int i = 0; i < BUCKETS; i++)
        for (entry *e; (e = winners.buckets[i]);) {
            winners.buckets[i] = e->next;
            kn_free(e);
        }
    kn_unlock(&winners.lock);
    kn_tuning_forget();
    return on_disk ? kn_tuning_clear_disk(QUESTIONS) : KN_OK;
}

/* --- contests ----------------------------------------------------------------------------------------------------- */

typedef struct contest {
    const kn_implementation_table *table;
    kn_stream *stream;
    const void *problem;
    kn_row_runner *run;
    const kn_implementation *usual;
    unsigned flags;
    kn_tuning_result result;
    bool nested; /* started by a row of another contest */
} contest;

static bool can_take(const contest *c, const kn_implementation *row)
{
    return kn_implementation_can_run(row, c->stream, c->problem, c->flags);
}

static bool is_worth_timing(const contest *c, const kn_implementation *row)
{
    const bool cpu = kn_device_limits(kn_stream_device(c->stream))->is_cpu;
    return row == c->usual || row->timed_on == KN_TIMED_ANYWHERE || (row->timed_on == KN_TIMED_ON_CPUS) == cpu;
}

/* The key of the winner in rt/tuning/tuning.h. It includes the rows' names, so a different set of rows is a different
 * contest. */
static char *question_of(const kn_implementation_table *table, unsigned flags, const int64_t *numbers, int count)
{
    kn_text text = {0};
    kn_text_format(&text, QUESTIONS "%s among", table->operation);
    for (int i = 0; i < table->count; i++)
        kn_text_format(&text, " %s", table->rows[i].name);
    kn_text_format(&text, ", flags %u, problem", flags);
    for (int i = 0; i < count; i++)
        kn_text_format(&text, " %lld", (long long)numbers[i]);
    return kn_text_finish(&text);
}

static const kn_implementation *row_called(const contest *c, const char *name)
{
    for (int i = 0; i < c->table->count; i++)
        if (strcmp(c->table->rows[i].name, name) == 0)
            return &c->table->rows[i];
    return NULL;
}

/* --- timing ------------------------------------------------------------------------------------------------------- */

static _Thread_local kn_benchmark_observer *observer;
static _Thread_local bool (*observer_is_over)(void *user);
static _Thread_local void *observer_user;

void kn_benchmark_observe(kn_benchmark_observer *function, bool (*is_over)(void *user), void *user)
{
    observer = function;
    observer_is_over = is_over;
    observer_user = user;
}

static bool is_over(void) { return observer_is_over && observer_is_over(observer_user); }

/* The fastest of a few runs after a warm-up that builds the kernels; HUGE_VAL for a row that fails, whose error is
 * discarded because another row can run. */
static double time_row(contest *c, const kn_implementation *row, double best)
{
    kn_error_state before;
    double fastest = HUGE_VAL;
    kn_error_save(&before);
    kn_status status = c->run(c->table, row, c->stream, c->problem);
    if (status == KN_OK)
        status = kn_stream_synchronize(c->stream);
    for (int i = 0; i < RUNS && status == KN_OK && !is_over(); i++) {
        const double start = kn_clock_seconds();
        status = c->run(c->table, row, c->stream, c->problem);
        if (status == KN_OK)
            status = kn_stream_synchronize(c->stream);
        fastest = status == KN_OK ? fmin(fastest, kn_clock_seconds() - start) : HUGE_VAL;
        if (fastest > hopeless * best)
            break;
    }
    if (status != KN_OK)
        kn_log_message(KN_LOG_INFO, "benchmark: %s '%s' fails: %s", c->table->operation, row->name, kn_error_message());
    kn_error_restore(&before);
    return fastest;
}

/* *winner is NULL if every row fails, for example out of memory, or time is up: nothing to remember. */
static kn_status time_all(const kn_implementation **winner, contest *c)
{
    if (is_over())
        return KN_OK;
    double best = time_row(c, c->usual, HUGE_VAL);
    kn_status status = kn_tuning_add(&c->result, c->usual->name, best, margin);
    for (int i = 0; i < c->table->count && status == KN_OK; i++) {
        const kn_implementation *row = &c->table->rows[i];
        if (row == c->usual || !is_worth_timing(c, row) || !can_take(c, row))
            continue;
        if (is_over())
            break;
        const double seconds = time_row(c, row, best);
        best = fmin(best, seconds);
        status = kn_tuning_add(&c->result, row->name, seconds, margin);
    }
    if (is_over())
        return status;
    atomic_fetch_add(&timed, 1);
    *winner = status == KN_OK && c->result.choice ? row_called(c, c->result.choice) : NULL;
    return status;
}

/* The stored winner in c->result, if the row still exists and may run. */
static const kn_implementation *load(contest *c, const char *question)
{
    const kn_implementation *row = NULL;
    if (kn_tuning_find(&c->result, kn_stream_device(c->stream), question))
        row = row_called(c, c->result.choice);
    if (row && can_take(c, row))
        return row;
    kn_tuning_free(&c->result);
    return NULL;
}

/* Failing to store it is not an error; it is logged once, since later ones fail for the same reason. */
static void store(const contest *c)
{
    static atomic_bool warned;
    kn_error_state before;
    kn_error_save(&before);
    if (kn_tuning_store(kn_stream_device(c->stream), &c->result) != KN_OK)
        kn_log_message(atomic_exchange(&warned, true) ? KN_LOG_INFO : KN_LOG_WARNING,
                       "a benchmark result could not be saved: %s", kn_error_message());
    kn_error_restore(&before);
}

static kn_status find_winner(const kn_implementation **row, contest *c, const int64_t *numbers, int count)
{
    char *question = question_of(c->table, c->flags, numbers, count);
    if (!question)
        return KN_ERR_MEMORY;
    const kn_implementation *winner = load(c, question);
    kn_status status = winner ? KN_OK : kn_stream_synchronize(c->stream);
    const bool known = winner != NULL;
    if (!known && status == KN_OK) {
        c->result = (kn_tuning_result){.question = kn_strdup(question), .complete = true};
        status = c->result.question ? time_all(&winner, c) : KN_ERR_MEMORY;
        if (status == KN_OK && winner)
            store(c);
    }
    if (status == KN_OK && winner && observer && !c->nested)
        observer(observer_user, c->table->operation, &c->result, known);
    kn_tuning_free(&c->result);
    kn_free(question);
    *row = winner;
    return status;
}

static kn_status find_alone(const kn_implementation **row, contest *c, kn_hash key, const int64_t *numbers, int count)
{
    const bool nested = c->nested = is_timing;
    kn_status status = KN_OK;
    if (!nested)
        kn_lock(&timing);
    is_timing = true;
    const kn_implementation *winner = recall(key); /* another thread may have been faster */
    if (!winner)
        status = find_winner(&winner, c, numbers, count);
    if (status == KN_OK && winner && !recall(key))
        status = remember(key, winner);
    is_timing = nested;
    if (!nested)
        kn_unlock(&timing);
    if (status == KN_OK)
        *row = winner;
    return status;
}

kn_status kn_benchmark_choose(const kn_implementation **row, const kn_implementation_table *table, kn_stream *stream,
                              const void *problem, unsigned flags, kn_row_runner *run)
{
    int64_t numbers[KN_PROBLEM_NUMBERS];
    const int count = table->describe ? table->describe(problem, numbers) : 0;
    if (count == 0)
        return KN_OK;
    contest c = {.table = table, .stream = stream, .problem = problem, .run = run, .usual = *row, .flags = flags};
    const kn_hash key = key_of(table, kn_stream_device(stream), flags, numbers, count);
    const kn_implementation *winner = recall(key);
    if (!winner && kn_stream_is_capturing(stream)) /* captured commands do not run: nothing to time */
        return KN_OK;
    if (!winner)
        KN_TRY(find_alone(&winner, &c, key, numbers, count));
    if (winner && can_take(&c, winner)) /* support may depend on more than the problem's numbers */
        *row = winner;
    return KN_OK;
}
