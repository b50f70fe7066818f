/* io/image/png.c - PNG through libpng. Its errors arrive by longjmp: what is to be freed afterwards is in the job,
 * outside of the functions that are left that way. */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "io/image/pixels.h"

typedef struct png_job {
    png_structp png;
    png_infop info;
    const unsigned char *data; /* reading */
    size_t size, at;
    kn_pixels *pixels;
    const kn_pixels *source; /* writing */
    int level;
    kn_text written;
    kn_status status; /* of our own calls in between */
    char message[160];
} png_job;

static void fail(png_structp png, png_const_charp message)
{
    png_job *job = png_get_error_ptr(png);
    snprintf(job->message, sizeof job->message, "%s", message);
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void read_bytes(png_structp png, png_bytep to, size_t count)
{
    png_job *job = png_get_io_ptr(png);
    if (count > job->size - job->at)
        fail(png, "the file is truncated");
    memcpy(to, job->data + job->at, count);
    job->at += count;
}

static void write_bytes(png_structp png, png_bytep from, size_t count)
{
    png_job *job = png_get_io_ptr(png);
    kn_text_append_bytes(&job->written, (const char *)from, count);
    if (job->written.failed) {
        job->status = KN_ERR_MEMORY;
        fail(png, "out of memory");
    }
}

static void flush_nothing(png_structp png) { (void)png; }

static kn_status finish(const png_job *job, bool jumped, const char *what)
{
    if (job->status != KN_OK)
        return job->status;
    return jumped ? kn_fail(KN_ERR_FORMAT, "%s: %s", what, job->message) : KN_OK;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static int read_orientation(const png_job *job)
{
    png_uint_32 size = 0;
    png_bytep block = NULL;
    return png_get_eXIf_1(job->png, job->info, &size, &block) != 0 ? kn_exif_orientation(block, size) : 0;
}

/* Left by longjmp on errors. */
static void read_image(png_job *job)
{
    png_read_info(job->png, job->info);
    png_set_expand(job->png); /* palettes to RGB, few bits to 8, transparent colours to alpha */
    png_set_scale_16(job->png);
    const int passes = png_set_interlace_handling(job->png);
    png_read_update_info(job->png, job->info);
    const uint64_t width = png_get_image_width(job->png, job->info), height = png_get_image_height(job->png, job->info);
    job->status = kn_pixels_allocate(job->pixels, width, height, png_get_channels(job->png, job->info));
    if (job->status != KN_OK)
        return;
    const size_t row = (size_t)width * (size_t)job->pixels->channels;
    for (int pass = 0; pass < passes; pass++)
        for (uint64_t y = 0; y < height; y++)
            png_read_row(job->png, job->pixels->bytes + y * row, NULL);
    job->pixels->orientation = read_orientation(job);
}

static bool try_reading(png_job *job)
{
    if (setjmp(png_jmpbuf(job->png)) != 0) /* NOLINT: libpng has no other way to report errors */
        return false;
    read_image(job);
    return true;
}

kn_status kn_png_decode(kn_pixels *pixels, const unsigned char *data, size_t size)
{
    png_job job = {.data = data, .size = size, .pixels = pixels};
    job.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, fail, ignore_warning);
    job.info = job.png ? png_create_info_struct(job.png) : NULL;
    if (!job.info) {
        png_destroy_read_struct(&job.png, NULL, NULL);
        return kn_fail_host_memory(size, "reading a PNG file");
    }
    png_set_read_fn(job.png, &job, read_bytes);
    const bool done = try_reading(&job);
    png_destroy_read_struct(&job.png, &job.info, NULL);
    return finish(&job, !done, "damaged PNG data");
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void write_image(png_job *job)
{
    static const int types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                PNG_COLOR_TYPE_RGB_ALPHA};
    const kn_pixels *from = job->source;
    png_set_compression_level(job->png, job->level);
    png_set_IHDR(job->png, job->info, (png_uint_32)from->width, (png_uint_32)from->height, 8, types[from->channels],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(job->png, job->info);
    for (int64_t y = 0; y < from->height; y++)
        png_write_row(job->png, from->bytes + y * from->width * from->channels);
    png_write_end(job->png, NULL);
}

static bool try_writing(png_job *job)
{
    if (setjmp(png_jmpbuf(job->png)) != 0) /* NOLINT */
        return false;
    write_image(job);
    return true;
}

kn_status kn_png_encode(unsigned char **data, size_t *size, const kn_pixels *pixels, int compression_level)
{
    png_job job = {.source = pixels, .level = compression_level};
    job.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, fail, ignore_warning);
    job.info = job.png ? png_create_info_struct(job.png) : NULL;
    if (!job.info) {
        png_destroy_write_struct(&job.png, NULL);
        return kn_fail_host_memory(0, "writing a PNG file");
    }
    png_set_write_fn(job.png, &job, write_bytes, flush_nothing);
    const bool done = try_writing(&job);
    png_destroy_write_struct(&job.png, &job.info);
    kn_status status = finish(&job, !done, "PNG");
    if (status != KN_OK) {
        kn_text_free(&job.written);
        return status;
    }
    *size = job.written.length;
    *data = (unsigned char *)kn_text_finish(&job.written);
    return *data ? KN_OK : KN_ERR_MEMORY;
}
