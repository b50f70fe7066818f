/* data/transforms/resize.c - resizing with antialiasing, as PIL and torch.nn.functional.interpolate(antialias=True) do:
 * each result is a weighted mean of the source's elements under a filter, whose width grows with the reduction; first
 * along the rows, then along the columns. */
#include <math.h>
#include <string.h>

#include <koine/vision.h>

#include "base/memory.h"
#include "data/transforms/picture.h"

/* The elements that make up each result, and their weights. */
typedef struct taps {
    int most; /* per result */
    int64_t *first;
    int *count;
    float *weights; /* `most` for each */
} taps;

static double triangle(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

static void weigh(const taps *t, int64_t i, int64_t size, double scale, int interpolation)
{
    float *weights = t->weights + i * t->most;
    if (interpolation == KN_INTERPOLATE_NEAREST) {
        const int64_t at = (int64_t)floorf((float)i * (float)scale);
        t->first[i] = at < size - 1 ? at : size - 1;
        t->count[i] = 1;
        weights[0] = 1;
        return;
    }
    const bool is_cubic = interpolation == KN_INTERPOLATE_BICUBIC;
    const double stretch = scale > 1 ? scale : 1, support = (is_cubic ? 2 : 1) * stretch,
                 center = scale * ((double)i + 0.5);
    const int64_t low = (int64_t)(center - support + 0.5), high = (int64_t)(center + support + 0.5);
    const int64_t first = low > 0 ? low : 0, end = high < size ? high : size;
    double total = 0;
    t->first[i] = first;
    t->count[i] = (int)(end - first);
    for (int64_t j = first; j < end; j++) {
        const double place = ((double)j - center + 0.5) / stretch, weight = is_cubic ? cubic(place) : triangle(place);
        weights[j - first] = (float)weight;
        total += weight;
    }
    for (int k = 0; k < t->count[i]; k++)
        weights[k] = (float)(weights[k] / total);
}

static void free_taps(taps *t)
{
    kn_free(t->first);
    kn_free(t->count);
    kn_free(t->weights);
}

static kn_status make_taps(taps *t, int64_t size, int64_t result, int interpolation)
{
    const double scale = (double)size / (double)result, stretch = scale > 1 ? scale : 1;
    t->most = 2 * (int)ceil((interpolation == KN_INTERPOLATE_BICUBIC ? 2 : 1) * stretch) + 1;
    t->first = kn_malloc((size_t)result * sizeof *t->first);
    t->count = kn_malloc((size_t)result * sizeof *t->count);
    t->weights = kn_malloc((size_t)result * (size_t)t->most * sizeof *t->weights);
    if (!t->first || !t->count || !t->weights)
        return KN_ERR_MEMORY;
    for (int64_t i = 0; i < result; i++)
        weigh(t, i, size, scale, interpolation);
    return KN_OK;
}

/* The sums of a row's elements. */
static void along_row(float *to, const float *row, const taps *t, int64_t width)
{
    for (int64_t x = 0; x < width; x++) {
        const float *from = row + t->first[x], *weights = t->weights + x * t->most;
        float sum = 0;
        for (int k = 0; k < t->count[x]; k++)
            sum += weights[k] * from[k];
        to[x] = sum;
    }
}

/* The sums of rows, for row `y` of the result. */
static void along_columns(float *to, const float *rows, const taps *t, int64_t y, int64_t width)
{
    memset(to, 0, (size_t)width * sizeof *to);
    for (int k = 0; k < t->count[y]; k++) {
        const float weight = t->weights[y * t->most + k], *from = rows + (t->first[y] + k) * width;
        for (int64_t x = 0; x < width; x++)
            to[x] += weight * from[x];
    }
}

/* `row` has room for a row of the source or of the result, `narrow` for the box's rows of the result's width. */
static void resample(kn_picture *made, const kn_picture *from, kn_box box, const taps *columns, const taps *rows,
                     float *row, float *narrow)
{
    for (int64_t c = 0; c < from->channels; c++) {
        for (int64_t y = 0; y < box.height; y++) {
            kn_picture_load(from, (c * from->height + box.top + y) * from->width + box.left, box.width, row);
            along_row(narrow + y * made->width, row, columns, made->width);
        }
        for (int64_t y = 0; y < made->height; y++) {
            along_columns(row, narrow, rows, y, made->width);
            kn_picture_store(made, (c * made->height + y) * made->width, made->width, row);
        }
    }
}

kn_status kn_picture_resize(kn_picture *picture, kn_box box, int64_t height, int64_t width, int interpolation)
{
    if (box.height == height && box.width == width)
        return box.height == picture->height && box.width == picture->width
                   ? KN_OK
                   : kn_picture_crop(picture, box, KN_PAD_CONSTANT, 0);
    taps columns = {0}, rows = {0};
    kn_picture made = {0};
    float *row = kn_malloc((size_t)(box.width > width ? box.width : width) * sizeof *row);
    float *narrow = kn_malloc((size_t)(box.height * width) * sizeof *narrow);
    kn_status status = row && narrow ? make_taps(&columns, box.width, width, interpolation) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = make_taps(&rows, box.height, height, interpolation);
    if (status == KN_OK)
        status = kn_picture_new(&made, picture, height, width);
    if (status == KN_OK) {
        resample(&made, picture, box, &columns, &rows, row, narrow);
        kn_picture_replace(picture, &made);
    }
    free_taps(&columns);
    free_taps(&rows);
    kn_free(row);
    kn_free(narrow);
    return status;
}
