/* classify.c - names what is in pictures, with a network that train_images has trained: several threads apply one
 * module, each to its own picture on its own stream. */
#include <koine/koine.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "common/pictures.h"

static const char program[] = "classify";
static const char purpose[] = "Classifies PNG and JPEG pictures with the model.safetensors of train_images.\n"
                              "\n"
                              "Exit status: 0 done, 1 an error, also if only some pictures could not be read,\n"
                              "2 wrong usage.";

enum { MOST_SHOWN = 10, MOST_THREADS = 64 };

typedef struct settings {
    const char *device, *model;
    int64_t threads, top;
    bool exif;
    option_rest images;
} settings;

static int parse(settings *s, int argc, char **argv)
{
    const option options[] = {
        {"IMAGE...", "", OPTION_REST, &s->images, 0, 0, "PNG or JPEG files"},
        {"--model", "FILE", OPTION_TEXT, &s->model, 0, 0, "the network"},
        {"--device", "D", OPTION_TEXT, &s->device, 0, 0, "auto, gpu, cpu, nvidia, ... (see `koine devices`)"},
        {"--threads", "N", OPTION_WHOLE, &s->threads, 1, MOST_THREADS, "pictures at the same time"},
        {"--top", "K", OPTION_WHOLE, &s->top, 1, MOST_SHOWN, "classes to show for each"},
        {"--exif", NULL, OPTION_FLAG, &s->exif, 0, 0, "turn pictures as their camera says"},
    };
    return options_parse(program, purpose, options, OPTION_COUNT(options), argc, argv);
}

/* What is found in one picture. */
typedef struct result {
    int count;
    float probabilities[MOST_SHOWN];
    int64_t classes[MOST_SHOWN];
    char message[512]; /* if it could not be read */
} result;

/* All threads read this, and take the next picture from it. */
typedef struct job {
    const settings *settings;
    kn_device *device;
    kn_module *net;
    const kn_transforms *transforms;
    picture_model model;
    result *results;
    atomic_int next;
} job;

/* --- one picture -------------------------------------------------------------------------------------------------- */

static kn_status read_top(result *r, kn_tensor *logits, int64_t count)
{
    kn_tensor *indices = NULL, *values = kn_to(kn_topk(kn_softmax(logits, 1), count, &indices), kn_device_host());
    indices = kn_to(indices, kn_device_host());
    const float *probabilities = kn_data(values);
    const int64_t *classes = kn_data(indices);
    if (probabilities == NULL || classes == NULL)
        return kn_error_status();
    r->count = (int)count;
    memcpy(r->probabilities, probabilities, (size_t)count * sizeof *probabilities);
    memcpy(r->classes, classes, (size_t)count * sizeof *classes);
    return KN_OK;
}

static kn_status classify(const job *j, const char *path, result *r)
{
    KN_SCOPE;
    KN_NO_GRAD; /* guards are per thread */
    const kn_image_mode mode = j->model.channels == 1 ? KN_IMAGE_GRAY : KN_IMAGE_RGB;
    const int64_t top = j->settings->top < j->model.num_classes ? j->settings->top : j->model.num_classes;
    kn_tensor *image = kn_read_image(path, .mode = mode, .apply_exif_orientation = j->settings->exif);
    image = kn_to(kn_transforms_apply(j->transforms, image, 0), j->device);
    return read_top(r, kn_forward(j->net, kn_unsqueeze(image, 0)), top);
}

/* Errors are per thread: the result carries this one to the main thread. */
static void *work(void *argument)
{
    job *j = argument;
    kn_stream *stream = kn_stream_new(j->device);
    kn_stream_set_current(stream);
    for (int i; (i = atomic_fetch_add(&j->next, 1)) < j->settings->images.count;) {
        kn_error_clear();
        if (classify(j, j->settings->images.items[i], &j->results[i]) != KN_OK)
            snprintf(j->results[i].message, sizeof j->results[i].message, "%s", kn_error_message());
    }
    kn_stream_set_current(kn_stream_default(j->device));
    kn_stream_free(stream);
    return NULL;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static kn_status run_threads(job *j)
{
    pthread_t threads[MOST_THREADS];
    int64_t started = 0;
    while (started < j->settings->threads && pthread_create(&threads[started], NULL, work, j) == 0)
        started++;
    for (int64_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return started > 0 ? KN_OK : kn_error_set(KN_ERR_MEMORY, "no thread could be started");
}

/* The number of pictures that could not be classified. */
static int show(const job *j)
{
    int failed = 0;
    for (int i = 0; i < j->settings->images.count; i++) {
        const result *r = &j->results[i];
        if (r->message[0] != '\0') {
            fflush(stdout);
            fprintf(stderr, "%s: %s\n", program, r->message);
            failed++;
            continue;
        }
        printf("%s\n", j->settings->images.items[i]);
        for (int k = 0; k < r->count; k++) {
            char name[128];
            picture_class_name(&j->model, r->classes[k], name);
            printf("  %5.1f %%  %s\n", 100 * (double)r->probabilities[k], name);
        }
    }
    return failed;
}

static kn_status load(job *j)
{
    kn_status status = kn_status_of(j->device = kn_device_open(j->settings->device));
    if (status == KN_OK)
        status = kn_device_set_current(j->device);
    if (status == KN_OK)
        status = picture_model_open(&j->model, j->settings->model);
    if (status == KN_OK)
        status = kn_status_of(j->net = picture_model_network(&j->model));
    if (status == KN_OK)
        status = kn_module_load(j->net, j->settings->model);
    if (status == KN_OK)
        status = kn_synchronize(j->device); /* the threads' streams do not wait for this one's */
    if (status != KN_OK)
        return status;
    kn_module_train(j->net, false);
    return kn_status_of(j->transforms = picture_transforms(&j->model));
}

int main(int argc, char **argv)
{
    settings s = {.device = "auto", .model = "./out/model.safetensors", .threads = 2, .top = 5};
    int usage = parse(&s, argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    if (s.images.count == 0) {
        fprintf(stderr, "%s: which pictures? (--help shows the options)\n", program);
        return 2;
    }
    job j = {.settings = &s, .results = calloc((size_t)s.images.count, sizeof(result))};
    if (j.results == NULL) {
        fprintf(stderr, "%s: out of memory\n", program);
        return 1;
    }
    kn_status status = load(&j);
    if (status == KN_OK)
        status = run_threads(&j);
    if (status != KN_OK)
        fprintf(stderr, "%s: %s\n", program, kn_error_message());
    const int failed = status == KN_OK ? show(&j) : 0;
    kn_transforms_free((kn_transforms *)(uintptr_t)j.transforms);
    kn_module_free(j.net);
    free(j.model.classes);
    free(j.results);
    return options_finish(program, status == KN_OK && failed == 0 ? 0 : 1);
}
