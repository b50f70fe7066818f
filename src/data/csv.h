/* data/csv.h - the records of a CSV file. */
#pragma once

#include <koine/common.h>
#include <koine/status.h>

typedef struct kn_csv_reader {
    const char *path; /* for messages */
    char *at, *end;   /* of the text, in which values are unquoted in place */
    char delimiter;
    int64_t line;        /* of the text at `at`, from 1 */
    int64_t record_line; /* of the last record's beginning */
    char **values;       /* of the last record, NUL-terminated */
    char *value_end;     /* of the last value */
    int count, capacity;
} kn_csv_reader;

/* `text` has `size` bytes and a NUL behind them; it is changed, and must outlive the reader. A byte order mark is
 * skipped. */
kn_csv_reader kn_csv_read(const char *path, char *text, size_t size, char delimiter);
void kn_csv_end(kn_csv_reader *reader);

/* The next record; *more is false, with no values, at the end. Empty lines are skipped. */
kn_status kn_csv_next(kn_csv_reader *reader, bool *more);
