/* io/image/jpeg.c - JPEG through libjpeg-turbo. As in png.c, errors arrive by longjmp. */
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs FILE */
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/error.h"
#include "base/memory.h"
#include "io/image/pixels.h"

/* A small progressive file may have thousands of scans, each of which costs a pass over the picture. */
enum { MOST_SCANS = 500 };

typedef struct jpeg_job {
    struct jpeg_error_mgr errors; /* first: the library hands out a pointer to it */
    jmp_buf jump;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct read;
    struct jpeg_compress_struct write;
    const unsigned char *data;
    size_t size;
    kn_pixels *pixels;
    const kn_pixels *source;
    bool gray;
    int quality;
    unsigned char *written; /* allocated by the library, with malloc */
    unsigned long written_size;
    kn_status status;
    char message[JMSG_LENGTH_MAX];
} jpeg_job;

static void fail(j_common_ptr codec)
{
    jpeg_job *job = (jpeg_job *)codec->err;
    codec->err->format_message(codec, job->message);
    longjmp(job->jump, 1);
}

/* Missing data is only a warning to the library, which then makes it up. */
static void take_message(j_common_ptr codec, int level)
{
    if (level < 0 && (codec->err->msg_code == JWRN_JPEG_EOF || codec->err->msg_code == JWRN_HIT_MARKER))
        fail(codec);
}

static void output_nothing(j_common_ptr codec) { (void)codec; }

static void count_scans(j_common_ptr codec)
{
    jpeg_job *job = (jpeg_job *)codec->err;
    if (((j_decompress_ptr)codec)->input_scan_number > MOST_SCANS) {
        snprintf(job->message, sizeof job->message, "more than %d scans", MOST_SCANS);
        longjmp(job->jump, 1);
    }
}

static struct jpeg_error_mgr *set_errors(jpeg_job *job)
{
    jpeg_std_error(&job->errors);
    job->errors.error_exit = fail;
    job->errors.emit_message = take_message;
    job->errors.output_message = output_nothing;
    return &job->errors;
}

static kn_status finish(const jpeg_job *job, bool jumped, const char *what)
{
    if (job->status != KN_OK)
        return job->status;
    return jumped ? kn_fail(KN_ERR_FORMAT, "%s: %s", what, job->message) : KN_OK;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static int read_orientation(const struct jpeg_decompress_struct *codec)
{
    static const unsigned char exif[] = {'E', 'x', 'i', 'f', 0, 0};
    for (jpeg_saved_marker_ptr marker = codec->marker_list; marker; marker = marker->next)
        if (marker->marker == JPEG_APP0 + 1 && marker->data_length > sizeof exif &&
            memcmp(marker->data, exif, sizeof exif) == 0)
            return kn_exif_orientation(marker->data + sizeof exif, marker->data_length - sizeof exif);
    return 0;
}

static J_COLOR_SPACE output_space(const struct jpeg_decompress_struct *codec, bool gray)
{
    switch (codec->jpeg_color_space) {
    case JCS_CMYK:
    case JCS_YCCK:
        return JCS_CMYK;
    case JCS_GRAYSCALE:
        return JCS_GRAYSCALE;
    default:
        return gray && codec->jpeg_color_space == JCS_YCbCr ? JCS_GRAYSCALE : JCS_RGB;
    }
}

/* In place: four bytes become three. Adobe's files, the only ones there are, hold the inverted values. */
static void rgb_of_cmyk(unsigned char *row, int64_t width)
{
    for (int64_t x = 0; x < width; x++)
        for (int c = 0; c < 3; c++)
            row[3 * x + c] = (unsigned char)((row[4 * x + c] * row[4 * x + 3] + 127) / 255);
}

static void read_rows(jpeg_job *job)
{
    struct jpeg_decompress_struct *codec = &job->read;
    const bool cmyk = codec->out_color_space == JCS_CMYK;
    const size_t width = codec->output_width, row = width * (size_t)job->pixels->channels;
    JSAMPARRAY line = (*codec->mem->alloc_sarray)((j_common_ptr)codec, JPOOL_IMAGE, codec->output_width * 4, 1);
    while (codec->output_scanline < codec->output_height) {
        unsigned char *to = job->pixels->bytes + codec->output_scanline * row;
        jpeg_read_scanlines(codec, line, 1);
        if (cmyk)
            rgb_of_cmyk(line[0], (int64_t)width);
        memcpy(to, line[0], row);
    }
}

static void read_image(jpeg_job *job)
{
    struct jpeg_decompress_struct *codec = &job->read;
    jpeg_create_decompress(codec);
    job->progress.progress_monitor = count_scans;
    codec->progress = &job->progress;
    jpeg_mem_src(codec, job->data, (unsigned long)job->size);
    jpeg_save_markers(codec, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(codec, TRUE);
    codec->out_color_space = output_space(codec, job->gray);
    const int channels = codec->out_color_space == JCS_GRAYSCALE ? 1 : 3;
    job->status = kn_pixels_allocate(job->pixels, codec->image_width, codec->image_height, channels);
    if (job->status != KN_OK)
        return;
    jpeg_start_decompress(codec);
    read_rows(job);
    job->pixels->orientation = read_orientation(codec);
}

static bool try_reading(jpeg_job *job)
{
    if (setjmp(job->jump) != 0) /* NOLINT: libjpeg has no other way to report errors */
        return false;
    read_image(job);
    return true;
}

kn_status kn_jpeg_decode(kn_pixels *pixels, const unsigned char *data, size_t size, bool gray)
{
    jpeg_job job = {.data = data, .size = size, .pixels = pixels, .gray = gray};
    job.read.err = set_errors(&job);
    const bool done = try_reading(&job);
    jpeg_destroy_decompress(&job.read); /* not jpeg_finish_decompress: all rows have been read */
    return finish(&job, !done, "damaged JPEG data");
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void write_image(jpeg_job *job)
{
    struct jpeg_compress_struct *codec = &job->write;
    const kn_pixels *from = job->source;
    jpeg_create_compress(codec);
    jpeg_mem_dest(codec, &job->written, &job->written_size);
    codec->image_width = (JDIMENSION)from->width;
    codec->image_height = (JDIMENSION)from->height;
    codec->input_components = from->channels;
    codec->in_color_space = from->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(codec);
    jpeg_set_quality(codec, job->quality, TRUE);
    jpeg_start_compress(codec, TRUE);
    while (codec->next_scanline < codec->image_height) {
        JSAMPROW row = from->bytes + (size_t)codec->next_scanline * (size_t)(from->width * from->channels);
        jpeg_write_scanlines(codec, &row, 1);
    }
    jpeg_finish_compress(codec);
}

static bool try_writing(jpeg_job *job)
{
    if (setjmp(job->jump) != 0) /* NOLINT */
        return false;
    write_image(job);
    return true;
}

kn_status kn_jpeg_encode(unsigned char **data, size_t *size, const kn_pixels *pixels, int quality)
{
    jpeg_job job = {.source = pixels, .quality = quality};
    job.write.err = set_errors(&job);
    const bool done = try_writing(&job);
    jpeg_destroy_compress(&job.write);
    kn_status status = finish(&job, !done, "JPEG");
    if (status == KN_OK && !(*data = kn_malloc(job.written_size)))
        status = KN_ERR_MEMORY;
    if (status == KN_OK)
        memcpy(*data, job.written, *size = job.written_size);
    free(job.written);
    return status;
}
