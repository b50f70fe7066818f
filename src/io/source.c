/* io/source.c - reads a file sequentially, decompressing gzip. zlib's gzread is not used because it silently ignores
 * trailing garbage after a gzip member. */
#include "io/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/text.h"
#include "io/foreign.h"

#define INPUT_BYTES ((size_t)64 << 10)
/* Bytes: the first allocation of kn_source_read_block, whatever size is claimed. */
#define FIRST_BLOCK ((uint64_t)1 << 20)

/* The most data one byte of gzip can hold: deflate codes 258 bytes in two bits at best. */
#define GZIP_RATIO 1032

struct kn_source {
    int descriptor; /* 0: none yet */
    const char *path;
    uint64_t offset; /* bytes delivered */
    uint64_t size;   /* of the file */
    bool gzip;
    bool member_ended;   /* gzip: the last member is complete, checksum included */
    uint64_t input_read; /* gzip: bytes of the file in or before `input` */
    z_stream inflater;
    unsigned char input[INPUT_BYTES];
};

static kn_status fail_errno(const kn_source *source, int error)
{
    return kn_fail(KN_ERR_IO, "cannot read '%s': %s", source->path, strerror(error));
}

kn_status kn_source_fail(const kn_source *source, uint64_t offset, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return kn_fail(KN_ERR_FORMAT, "'%s', at byte %llu%s: %s", source->path, (unsigned long long)offset,
                   source->gzip ? " of the decompressed data" : "", text);
}

static kn_status start_gzip(kn_source *source)
{
    source->gzip = true;
    if (inflateInit2(&source->inflater, 16 + MAX_WBITS) != Z_OK) { /* 16: gzip format only */
        source->gzip = false;
        return kn_fail_host_memory(sizeof(z_stream), "decompressing gzip");
    }
    return KN_OK;
}

static kn_status inspect(kn_source *source, bool allow_gzip)
{
    unsigned char first[KN_FOREIGN_BYTES];
    const ssize_t got = kn_sys_read(source->descriptor, first, sizeof first, 0);
    if (got < 0)
        return fail_errno(source, errno);
    if (allow_gzip && got >= 2 && first[0] == 0x1f && first[1] == 0x8b)
        return start_gzip(source);
    const char *foreign = kn_foreign_format(first, (size_t)got);
    return foreign ? kn_fail(KN_ERR_FORMAT, "'%s' is %s", source->path, foreign) : KN_OK;
}

kn_status kn_source_open(kn_source **source, const char *path, bool allow_gzip)
{
    kn_source *opened = kn_calloc(1, sizeof(*opened));
    if (!opened)
        return KN_ERR_MEMORY;
    opened->path = path;
    kn_status status = kn_file_open(&opened->descriptor, &opened->size, path);
    if (status == KN_OK)
        status = inspect(opened, allow_gzip);
    if (status != KN_OK) {
        kn_source_close(opened);
        return status;
    }
    *source = opened;
    return KN_OK;
}

void kn_source_close(kn_source *source)
{
    if (!source)
        return;
    if (source->gzip)
        inflateEnd(&source->inflater);
    if (source->descriptor > 0)
        kn_sys_close(source->descriptor);
    kn_free(source);
}

uint64_t kn_source_size(const kn_source *source) { return source->size; }

uint64_t kn_source_offset(const kn_source *source) { return source->offset; }

void kn_source_seek(kn_source *source, uint64_t offset) { source->offset = offset; }

/* --- reading ---------------------------------------------------------------------------------- */

static kn_status read_plain(kn_source *source, unsigned char *destination, size_t bytes, size_t *got)
{
    const ssize_t done = kn_sys_read(source->descriptor, destination, bytes, source->offset);
    *got = done > 0 ? (size_t)done : 0;
    return done < 0 ? fail_errno(source, errno) : KN_OK;
}

/* Reads more of the compressed file into `input`; at its end avail_in stays 0. */
static kn_status refill(kn_source *source)
{
    z_stream *z = &source->inflater;
    if (z->avail_in > 0)
        return KN_OK;
    const ssize_t got = kn_sys_read(source->descriptor, source->input, INPUT_BYTES, source->input_read);
    if (got < 0)
        return fail_errno(source, errno);
    z->next_in = source->input;
    z->avail_in = (unsigned)got;
    source->input_read += (uint64_t)got;
    return KN_OK;
}

static kn_status fail_packed(const kn_source *source, const char *what)
{
    unsigned long long at = source->input_read - source->inflater.avail_in;
    return kn_fail(KN_ERR_FORMAT, "'%s', at byte %llu of the gzip file: %s", source->path, at, what);
}

static kn_status read_gzip(kn_source *source, unsigned char *destination, size_t bytes, size_t *got)
{
    z_stream *z = &source->inflater;
    size_t done = 0;
    while (done < bytes) {
        KN_TRY(refill(source));
        if (z->avail_in == 0) {
            if (source->member_ended)
                break;
            return fail_packed(source, "the gzip data is truncated");
        }
        if (source->member_ended) { /* a gzip file may have several members */
            inflateReset(z);
            source->member_ended = false;
        }
        size_t wanted = bytes - done < (1u << 30) ? bytes - done : (1u << 30);
        z->next_out = destination + done;
        z->avail_out = (unsigned)wanted;
        int result = inflate(z, Z_NO_FLUSH);
        done += wanted - z->avail_out;
        if (result == Z_STREAM_END)
            source->member_ended = true;
        else if (result == Z_MEM_ERROR)
            return kn_fail_host_memory((size_t)1 << MAX_WBITS, "decompressing gzip");
        else if (result != Z_OK && result != Z_BUF_ERROR) /* Z_BUF_ERROR: no progress yet, more input is needed */
            return fail_packed(source, z->msg ? z->msg : "corrupt gzip data");
    }
    *got = done;
    return KN_OK;
}

kn_status kn_source_read(kn_source *source, void *destination, size_t bytes, size_t *got)
{
    *got = 0;
    KN_TRY(source->gzip ? read_gzip(source, destination, bytes, got) : read_plain(source, destination, bytes, got));
    source->offset += *got;
    return KN_OK;
}

kn_status kn_source_read_exactly(kn_source *source, void *destination, size_t bytes, const char *what)
{
    uint64_t start = source->offset;
    size_t got = 0;
    KN_TRY(kn_source_read(source, destination, bytes, &got));
    if (got < bytes)
        return kn_source_fail(source, start, "expected %zu bytes of %s, found %zu", bytes, what, got);
    return KN_OK;
}

/* Refuses impossible sizes before reading: a file that claims more than it holds costs nothing. */
static kn_status check_claim(const kn_source *source, uint64_t bytes, const char *what)
{
    const uint64_t start = source->offset, left = start < source->size ? source->size - start : 0;
    if (!source->gzip && bytes > left)
        return kn_source_fail(source, start, "expected %llu bytes of %s, found %llu", (unsigned long long)bytes, what,
                              (unsigned long long)left);
    if (source->gzip && bytes / GZIP_RATIO > source->size)
        return kn_source_fail(source, start, "expected %llu bytes of %s, more than a gzip file of %llu bytes can hold",
                              (unsigned long long)bytes, what, (unsigned long long)source->size);
    return KN_OK;
}

kn_status kn_source_read_block(kn_source *source, unsigned char **block, uint64_t bytes, const char *what)
{
    uint64_t start = source->offset, done = 0;
    KN_TRY(check_claim(source, bytes, what));
    uint64_t capacity = !source->gzip || bytes < FIRST_BLOCK ? bytes : FIRST_BLOCK;
    unsigned char *data = kn_malloc((size_t)capacity);
    while (data) {
        size_t got;
        kn_status status = kn_source_read(source, data + done, (size_t)(capacity - done), &got);
        done += got;
        if (status == KN_OK && done < capacity)
            status = kn_source_fail(source, start, "expected %llu bytes of %s, found %llu", (unsigned long long)bytes,
                                    what, (unsigned long long)done);
        if (status != KN_OK) {
            kn_free(data);
            return status;
        }
        if (done == bytes) {
            *block = data;
            return KN_OK;
        }
        capacity = bytes - capacity < capacity ? bytes : capacity * 2;
        unsigned char *larger = kn_realloc(data, (size_t)capacity);
        if (!larger)
            kn_free(data);
        data = larger;
    }
    return KN_ERR_MEMORY;
}

kn_status kn_source_expect_end(kn_source *source, const char *after_what)
{
    unsigned char extra;
    size_t got = 0;
    uint64_t end = source->offset;
    KN_TRY(kn_source_read(source, &extra, 1, &got));
    if (got != 0)
        return kn_source_fail(source, end, "expected the end of the file after %s, found more bytes", after_what);
    return KN_OK;
}

/* --- whole files ------------------------------------------------------------------------------ */

static kn_status read_to_end(kn_source *source, kn_text *text)
{
    char piece[INPUT_BYTES];
    size_t got;
    do {
        KN_TRY(kn_source_read(source, piece, sizeof piece, &got));
        kn_text_append_bytes(text, piece, got);
    } while (got > 0 && !text->failed);
    return KN_OK;
}

kn_status kn_source_read_file(char **text, size_t *size, const char *path)
{
    kn_source *source = NULL;
    kn_text read = {0};
    KN_TRY(kn_source_open(&source, path, true));
    kn_status status = read_to_end(source, &read);
    kn_source_close(source);
    if (status != KN_OK) {
        kn_text_free(&read);
        return status;
    }
    kn_text_append(&read, ""); /* an empty file has its NUL, too */
    *size = read.length;
    *text = kn_text_finish(&read);
    return *text ? KN_OK : KN_ERR_MEMORY;
}
