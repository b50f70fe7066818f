/* io/source.c - reading a file front to back, unpacking gzip. zlib's gzread is not used because it takes trailing
 * garbage after a gzip member for the end. */
#include "io/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/error.h"
#include "base/memory.h"

#define INPUT_BYTES ((size_t)64 << 10)
#define FIRST_BLOCK ((uint64_t)1 << 20) /* bytes: how far kn_source_read_block trusts a claimed size */

struct kn_source {
    FILE *file;
    const char *path;
    uint64_t offset; /* bytes delivered */
    uint64_t size;   /* of a plain regular file */
    bool size_known;
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
                   source->gzip ? " of the unpacked data" : "", text);
}

static kn_status start_gzip(kn_source *source)
{
    source->gzip = true;
    source->size_known = false;
    if (inflateInit2(&source->inflater, 16 + MAX_WBITS) != Z_OK) { /* 16: gzip's wrapper, and no other */
        source->gzip = false;
        return kn_fail_host_memory(sizeof(z_stream), "unpacking gzip");
    }
    return KN_OK;
}

static kn_status inspect(kn_source *source, bool allow_gzip)
{
    struct stat info;
    if (fstat(fileno(source->file), &info) != 0)
        return fail_errno(source, errno);
    if (S_ISDIR(info.st_mode))
        return fail_errno(source, EISDIR);
    source->size_known = S_ISREG(info.st_mode);
    source->size = source->size_known ? (uint64_t)info.st_size : 0;
    if (!allow_gzip)
        return KN_OK;
    /* The first bytes go through `input`: a pipe cannot be rewound. */
    size_t got = fread(source->input, 1, 2, source->file);
    if (ferror(source->file))
        return fail_errno(source, errno);
    source->inflater.next_in = source->input;
    source->inflater.avail_in = (unsigned)got;
    source->input_read = got;
    if (got == 2 && source->input[0] == 0x1f && source->input[1] == 0x8b)
        return start_gzip(source);
    return KN_OK;
}

kn_status kn_source_open(kn_source **source, const char *path, bool allow_gzip)
{
    kn_source *opened = kn_calloc(1, sizeof(*opened));
    if (!opened)
        return KN_ERR_MEMORY;
    opened->path = path;
    opened->file = fopen(path, "rb");
    kn_status status =
        opened->file ? inspect(opened, allow_gzip) : kn_fail(KN_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
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
    if (source->file)
        fclose(source->file);
    kn_free(source);
}

bool kn_source_size(const kn_source *source, uint64_t *size)
{
    if (source->size_known)
        *size = source->size;
    return source->size_known;
}

uint64_t kn_source_offset(const kn_source *source) { return source->offset; }

kn_status kn_source_seek(kn_source *source, uint64_t offset)
{
    if (source->size_known && source->offset == offset)
        return KN_OK;              /* keeps what is buffered */
    source->inflater.avail_in = 0; /* the first bytes, where they are still held back */
    if (!source->size_known || fseeko(source->file, (off_t)offset, SEEK_SET) != 0)
        return fail_errno(source, source->size_known ? errno : ESPIPE);
    source->offset = offset;
    return KN_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

static kn_status read_plain(kn_source *source, unsigned char *destination, size_t bytes, size_t *got)
{
    size_t done = 0;
    while (done < bytes && source->inflater.avail_in > 0) { /* the first bytes, taken to look for gzip's magic */
        destination[done++] = *source->inflater.next_in++;
        source->inflater.avail_in--;
    }
    done += fread(destination + done, 1, bytes - done, source->file);
    *got = done;
    return done < bytes && ferror(source->file) ? fail_errno(source, errno) : KN_OK;
}

/* Has more of the packed file in `input`, unless the file has ended (avail_in stays 0). */
static kn_status refill(kn_source *source)
{
    z_stream *z = &source->inflater;
    if (z->avail_in > 0)
        return KN_OK;
    size_t got = fread(source->input, 1, INPUT_BYTES, source->file);
    if (got == 0 && ferror(source->file))
        return fail_errno(source, errno);
    z->next_in = source->input;
    z->avail_in = (unsigned)got;
    source->input_read += got;
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
            return fail_packed(source, "the gzip data is cut short");
        }
        if (source->member_ended) { /* a gzip file may hold several members, one after the other */
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
            return kn_fail_host_memory((size_t)1 << MAX_WBITS, "unpacking gzip");
        else if (result != Z_OK && result != Z_BUF_ERROR) /* Z_BUF_ERROR: no progress yet, more input is needed */
            return fail_packed(source, z->msg ? z->msg : "damaged gzip data");
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

kn_status kn_source_read_block(kn_source *source, unsigned char **block, uint64_t bytes, const char *what)
{
    uint64_t start = source->offset, done = 0;
    if (source->size_known && (start > source->size || bytes > source->size - start))
        return kn_source_fail(source, start, "expected %llu bytes of %s, found %llu", (unsigned long long)bytes, what,
                              (unsigned long long)(start > source->size ? 0 : source->size - start));
    uint64_t capacity = source->size_known || bytes < FIRST_BLOCK ? bytes : FIRST_BLOCK;
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
