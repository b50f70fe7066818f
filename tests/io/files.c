/* tests/io/files.c - files for tests. */
#include "io/files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static void stop(const char *what, const char *path)
{
    fprintf(stderr, "test set-up failed: %s %s\n", what, path);
    exit(1);
}

/* --- bytes ------------------------------------------------------------------------------------ */

void append(byte_block *to, const void *data, size_t size)
{
    if (to->size + size > to->capacity) {
        to->capacity = 2 * (to->size + size) + 64;
        to->data = realloc(to->data, to->capacity);
        if (!to->data)
            stop("out of memory", "");
    }
    if (size > 0)
        memcpy(to->data + to->size, data, size);
    to->size += size;
}

void append_text(byte_block *to, const char *text) { append(to, text, strlen(text)); }

void append_little(byte_block *to, uint64_t value, int size)
{
    for (int i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(value >> (8 * i) & 0xff);
        append(to, &byte, 1);
    }
}

void append_big(byte_block *to, uint64_t value, int size)
{
    for (int i = size - 1; i >= 0; i--) {
        unsigned char byte = (unsigned char)(value >> (8 * i) & 0xff);
        append(to, &byte, 1);
    }
}

void bytes_free(byte_block *to)
{
    free(to->data);
    *to = (byte_block){0};
}

/* --- files ------------------------------------------------------------------------------------ */

static char directory[512];

static void remove_directory(void)
{
    DIR *stream = opendir(directory);
    if (!stream)
        return;
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && unlink(path) != 0)
            rmdir(path);
    }
    closedir(stream);
    rmdir(directory);
}

const char *temporary(const char *name)
{
    static char paths[4][1024];
    static int next;
    if (!directory[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(directory, sizeof(directory), "%s/koine-test-XXXXXX", base && *base ? base : "/tmp");
        if (!mkdtemp(directory))
            stop("cannot make", directory);
        atexit(remove_directory);
    }
    next = (next + 1) % 4;
    snprintf(paths[next], sizeof(paths[next]), "%s/%s", directory, name);
    return paths[next];
}

void write_bytes(const char *path, const void *data, size_t size)
{
    /* Not truncated but replaced: ext4 writes a truncated and rewritten file to the disk when it is closed, which takes
     * milliseconds. */
    unlink(path);
    FILE *file = fopen(path, "wb");
    if (!file || (size > 0 && fwrite(data, 1, size, file) != size) || fclose(file) != 0)
        stop("cannot write", path);
}

void write_gzip(const char *path, const void *data, size_t size)
{
    gzFile file = gzopen(path, "wb");
    if (!file || (size > 0 && gzwrite(file, data, (unsigned)size) != (int)size) || gzclose(file) != Z_OK)
        stop("cannot write", path);
}

byte_block bytes_of_file(const char *path)
{
    byte_block content = {0};
    char chunk[4096];
    size_t got;
    FILE *file = fopen(path, "rb");
    if (!file)
        stop("cannot read", path);
    while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
        append(&content, chunk, got);
    fclose(file);
    return content;
}

bool file_is(const char *path, const void *data, size_t size)
{
    byte_block content = bytes_of_file(path);
    bool same = content.size == size && memcmp(content.data, data, size) == 0;
    bytes_free(&content);
    return same;
}

int count_files_beside(const char *path)
{
    char folder[1024];
    snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    DIR *stream = opendir(folder);
    if (!stream)
        stop("cannot list", folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(stream);
    return count;
}

/* --- damage ----------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): any seed gives a good stream. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void damage(byte_block *copy, uint64_t *state)
{
    static const unsigned char edges[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '"', '{',  '}',
                                          '[',  ']',  ',',  '9',  '-',  '.', '\\', ' '};
    uint64_t kind = next_random(state) % 8;
    size_t at = copy->size ? (size_t)(next_random(state) % copy->size) : 0;
    if (copy->size == 0 || kind == 0) { /* insert */
        unsigned char byte = edges[next_random(state) % sizeof(edges)];
        append(copy, &byte, 1);
        memmove(copy->data + at + 1, copy->data + at, copy->size - 1 - at);
        copy->data[at] = byte;
    } else if (kind == 1) { /* truncate */
        copy->size = at;
    } else if (kind == 2) { /* remove one */
        memmove(copy->data + at, copy->data + at + 1, copy->size - 1 - at);
        copy->size--;
    } else if (kind == 3) { /* repeat a piece at the end */
        size_t length = (size_t)(next_random(state) % 16) + 1;
        length = length < copy->size - at ? length : copy->size - at;
        unsigned char piece[16];
        memcpy(piece, copy->data + at, length);
        append(copy, piece, length);
    } else if (kind == 4) { /* flip a bit */
        copy->data[at] = (unsigned char)(copy->data[at] ^ 1u << (next_random(state) % 8));
    } else { /* a significant byte value, or any */
        copy->data[at] = kind < 7 ? edges[next_random(state) % sizeof(edges)] : (unsigned char)next_random(state);
    }
}

byte_block mutated(const byte_block *original, uint64_t n)
{
    byte_block copy = {0};
    uint64_t state = n;
    append(&copy, original->data, original->size);
    int times = 1 + (int)(next_random(&state) % 4);
    for (int i = 0; i < times; i++)
        damage(&copy, &state);
    return copy;
}

kn_tensor *host_tensor(kn_dtype dtype, const void *data, int ndim, const int64_t *shape)
{
    kn_tensor *tensor =
        kn_from_data_with(data, ndim, shape, &(kn_tensor_options){.dtype = dtype, .device = kn_device_host()});
    if (!tensor)
        stop("no tensor:", kn_error_message());
    return tensor;
}
