/* data/csv.c - splits a text into records and values as RFC 4180 says: values may be in quotes, in which delimiters and
 * line ends are ordinary and a quote is doubled. Lines end with LF, CRLF or CR. */
#include "data/csv.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

kn_csv_reader kn_csv_read(const char *path, char *text, size_t size, char delimiter)
{
    const size_t mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    return (kn_csv_reader){.path = path, .at = text + mark, .end = text + size, .delimiter = delimiter, .line = 1};
}

void kn_csv_end(kn_csv_reader *reader)
{
    kn_free(reader->values);
    reader->values = NULL;
}

/* The byte at `at`; '\n' for every line end and for the end of the text. */
static char look(const kn_csv_reader *r) { return r->at == r->end || *r->at == '\r' ? '\n' : *r->at; }

static void skip_line_end(kn_csv_reader *r)
{
    if (r->at == r->end)
        return;
    if (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n')
        r->at++;
    r->at++;
    r->line++;
}

static kn_status refuse(const kn_csv_reader *r, int64_t line, const char *what)
{
    return kn_fail(KN_ERR_FORMAT, "'%s', line %lld, value %d: %s", r->path, (long long)line, r->count + 1, what);
}

/* Moves a quoted value to its beginning; `at` is behind its last quote. *end: where its NUL belongs. */
static kn_status unquote(kn_csv_reader *r, char **end)
{
    const int64_t first_line = r->line;
    char *to = ++r->at;
    for (;; r->at++) {
        if (r->at == r->end)
            return refuse(r, first_line, "the quote that begins here has no end");
        if (*r->at == '"') {
            if (r->at + 1 == r->end || r->at[1] != '"')
                break;
            r->at++;
        }
        r->line += *r->at == '\n' || (*r->at == '\r' && (r->at + 1 == r->end || r->at[1] != '\n'));
        *to++ = *r->at;
    }
    r->at++;
    *end = to;
    if (look(r) != r->delimiter && look(r) != '\n')
        return refuse(r, r->line, "expected a delimiter or the end of the line after the quoted value");
    return KN_OK;
}

static kn_status read_value(kn_csv_reader *r)
{
    const bool quoted = look(r) == '"';
    char *begin = r->at + (quoted ? 1 : 0), *end = begin;
    KN_TRY(KN_GROW(r->values, r->count, r->capacity));
    if (quoted) {
        KN_TRY(unquote(r, &end));
    } else {
        while (look(r) != r->delimiter && look(r) != '\n')
            r->at++;
        end = r->at;
    }
    if (memchr(begin, '\0', (size_t)(end - begin)))
        return refuse(r, r->line, "it has a NUL byte: this is no text file");
    r->values[r->count++] = begin;
    r->value_end = end;
    return KN_OK;
}

kn_status kn_csv_next(kn_csv_reader *r, bool *more)
{
    r->count = 0;
    while (r->at < r->end && look(r) == '\n')
        skip_line_end(r);
    *more = r->at < r->end;
    r->record_line = r->line;
    if (!*more)
        return KN_OK;
    for (;;) {
        KN_TRY(read_value(r));
        const char after = look(r);
        /* The NUL takes the place of what has been read: a delimiter, a line end or a quote. */
        if (after == '\n')
            skip_line_end(r);
        else
            r->at++;
        *r->value_end = '\0';
        if (after == '\n')
            return KN_OK;
    }
}
