/* vae.c - a variational autoencoder of Fashion-MNIST (Kingma & Welling, "Auto-Encoding Variational Bayes", 2014) with a
 * loop by hand. After each epoch it draws, in one picture, test images, what the network makes of them, and images that
 * it makes of random numbers. */
#include <koine/koine.h>
#include <stdio.h>

#include "common/fashion.h"
#include "common/options.h"
#include "common/side_by_side.h"
#include "common/training.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE, HIDDEN = 400, COLUMNS = 16, SAMPLE_ROWS = 4 };

typedef struct settings {
    const char *device, *data, *pictures;
    int64_t epochs, batch_size, latent, seed, limit;
    double lr;
} settings;

typedef struct run {
    fashion_data data;
    /* encoder: an image to 400 numbers; mean, log_variance: these to a normal distribution of each latent variable;
     * decoder: latent variables to the pixels' logits */
    kn_module *net, *encoder, *mean, *log_variance, *decoder;
    kn_optim *optim;
    kn_metric *train_loss, *test_loss;
    kn_tensor *noise, *shown; /* the same latent variables and test images for each picture */
} run;

/* --- the network -------------------------------------------------------------------------------------------------- */

static bool make_network(run *r, int64_t latent)
{
    r->net = kn_nn_module_dict_of(NULL, NULL, 0);
    kn_status added = KN_OK;
#define ADD(name, ...) added = added == KN_OK ? kn_nn_add_module(r->net, #name, __VA_ARGS__) : added
    ADD(encoder,
        kn_nn_sequential(kn_nn_flatten(), kn_nn_linear(.in_features = PIXELS, .out_features = HIDDEN), kn_nn_relu()));
    ADD(mean, kn_nn_linear(.in_features = HIDDEN, .out_features = latent));
    ADD(log_variance, kn_nn_linear(.in_features = HIDDEN, .out_features = latent));
    ADD(decoder, kn_nn_sequential(kn_nn_linear(.in_features = latent, .out_features = HIDDEN), kn_nn_relu(),
                                  kn_nn_linear(.in_features = HIDDEN, .out_features = PIXELS)));
#undef ADD
    if (added != KN_OK)
        return false;
    r->encoder = kn_module_named_child(r->net, "encoder");
    r->mean = kn_module_named_child(r->net, "mean");
    r->log_variance = kn_module_named_child(r->net, "log_variance");
    r->decoder = kn_module_named_child(r->net, "decoder");
    return true;
}

/* The negative evidence lower bound, per image: the cross entropy of the pixels, plus the divergence of the latent
 * variables' distribution from the standard normal one. */
static kn_tensor *loss_of(const run *r, kn_tensor *images)
{
    const double count = (double)kn_size(images, 0);
    kn_tensor *hidden = kn_forward(r->encoder, images);
    kn_tensor *mean = kn_forward(r->mean, hidden), *log_variance = kn_forward(r->log_variance, hidden);
    kn_tensor *deviation = kn_exp(kn_mul_scalar(log_variance, 0.5));
    kn_tensor *latent = kn_add(mean, kn_mul(deviation, kn_randn_like(mean))); /* differentiable: a draw, scaled */
    kn_tensor *logits = kn_forward(r->decoder, latent);
    kn_tensor *pixels =
        kn_binary_cross_entropy_with_logits(logits, kn_flatten(images, 1, -1), NULL, NULL, KN_REDUCTION_SUM);
    kn_tensor *terms = kn_sub(kn_add(kn_square(mean), kn_exp(log_variance)), kn_add_scalar(log_variance, 1));
    return kn_div_scalar(kn_add(pixels, kn_mul_scalar(kn_sum(terms), 0.5)), count);
}

/* --- training ----------------------------------------------------------------------------------------------------- */

/* One pass over the training images. False after an error (kn_error_message). */
static bool train(run *r, int64_t epoch)
{
    kn_metric_reset(r->train_loss);
    KN_FOR_BATCHES (batch, r->data.train, epoch) {
        kn_tensor *loss = loss_of(r, batch->input);
        if (kn_backward(loss) != KN_OK || kn_optim_step(r->optim) != KN_OK ||
            kn_metric_update(r->train_loss, loss, NULL, batch->size) != KN_OK)
            return false;
        kn_optim_zero_grad(r->optim);
    }
    return kn_loader_status(r->data.train) == KN_OK;
}

/* The loss of the test images; keeps the first ones for the pictures. */
static bool test(run *r)
{
    KN_NO_GRAD;
    kn_metric_reset(r->test_loss);
    KN_FOR_BATCHES (batch, r->data.test, 0) {
        if (!r->shown)
            r->shown =
                kn_retain(kn_clone(kn_narrow(batch->input, 0, 0, batch->size < COLUMNS ? batch->size : COLUMNS)));
        if (kn_metric_update(r->test_loss, loss_of(r, batch->input), NULL, batch->size) != KN_OK)
            return false;
    }
    return kn_loader_status(r->data.test) == KN_OK;
}

/* --- pictures ----------------------------------------------------------------------------------------------------- */

static kn_tensor *decode(const run *r, kn_tensor *latent)
{
    kn_tensor *pixels = kn_sigmoid(kn_forward(r->decoder, latent));
    return kn_reshape(pixels, KN_SHAPE(-1, 1, SIDE, SIDE));
}

/* A row of test images, one of their reconstructions from the means, then samples. */
static bool draw(const run *r, const char *prefix, int64_t epoch)
{
    char path[1024];
    KN_SCOPE;
    KN_NO_GRAD;
    kn_tensor *again = decode(r, kn_forward(r->mean, kn_forward(r->encoder, r->shown)));
    kn_tensor *all = kn_cat(KN_TENSORS(r->shown, again, decode(r, r->noise)), 0);
    snprintf(path, sizeof path, "%s-%lld.png", prefix, (long long)epoch);
    return kn_save_image(all, path, .nrow = COLUMNS) == KN_OK;
}

static bool run_epochs(run *r, const settings *s)
{
    for (int64_t epoch = 1; epoch <= s->epochs; epoch++) {
        double train_loss, test_loss;
        const double start = seconds_now();
        if (!train(r, epoch) || !test(r) || kn_metric_compute(r->train_loss, &train_loss) != KN_OK ||
            kn_metric_compute(r->test_loss, &test_loss) != KN_OK || !draw(r, s->pictures, epoch))
            return false;
        printf("epoch %lld: loss %.2f, test loss %.2f, %.1f s, %s-%lld.png\n", (long long)epoch, train_loss, test_loss,
               seconds_now() - start, s->pictures, (long long)epoch);
        fflush(stdout);
    }
    return true;
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static bool set_up(run *r, const settings *s)
{
    const fashion_options options = {
        .directory = s->data, .batch_size = s->batch_size, .workers = 2, .seed = s->seed, .limit = s->limit};
    if (training_device(s->device, NULL) == NULL)
        return false;
    kn_manual_seed((uint64_t)s->seed);
    if (!make_network(r, s->latent))
        return false;
    r->optim = kn_optim_adam(kn_module_parameters(r->net), .lr = s->lr);
    r->train_loss = kn_metric_mean();
    r->test_loss = kn_metric_mean();
    r->noise = kn_randn(KN_SHAPE(COLUMNS * SAMPLE_ROWS, s->latent)); /* outside a scope: the caller's */
    return r->optim != NULL && r->train_loss != NULL && r->test_loss != NULL && r->noise != NULL &&
           fashion_open(&r->data, &options) == KN_OK;
}

static void clean_up(run *r)
{
    kn_release(r->noise);
    kn_release(r->shown);
    kn_metric_free(r->train_loss);
    kn_metric_free(r->test_loss);
    kn_optim_free(r->optim);
    kn_module_free(r->net);
    fashion_close(&r->data);
}

int main(int argc, char **argv)
{
    settings s = {.device = "auto",
                  .data = FASHION_DATA,
                  .pictures = "vae",
                  .epochs = 10,
                  .batch_size = 128,
                  .latent = 20,
                  .lr = 0.001};
    const option options[] = {
        {"--device", "D", OPTION_TEXT, &s.device, 0, 0,
         "auto, gpu, cpu, nvidia, pocl:0, 0:1, ... (see `koine devices`)"},
        {"--epochs", "N", OPTION_WHOLE, &s.epochs, 1, 1000000, "passes over the training images"},
        {"--batch-size", "N", OPTION_WHOLE, &s.batch_size, 1, 60000, "images per step"},
        {"--latent", "N", OPTION_WHOLE, &s.latent, 1, 1000, "latent variables: numbers that describe an image"},
        {"--lr", "X", OPTION_NUMBER, &s.lr, 0, 1000, "learning rate of Adam"},
        {"--seed", "N", OPTION_WHOLE, &s.seed, 0, 9e18, "seed of the weights, the order of the images and the draws"},
        {"--pictures", "PREFIX", OPTION_TEXT, &s.pictures, 0, 0, "writes PREFIX-1.png after the first epoch, ..."},
        {"--data", "DIR", OPTION_TEXT, &s.data, 0, 0, "folder of the Fashion-MNIST files"},
        {"--limit", "N", OPTION_WHOLE, &s.limit, 0, 60000, "use only the first N images of each set; 0: all"},
    };
    int usage = options_parse("vae", "Trains a variational autoencoder on Fashion-MNIST and draws what it makes.",
                              options, OPTION_COUNT(options), argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    if (!training_is_alone("vae"))
        return 1;
    run r = {0};
    bool done = set_up(&r, &s) && run_epochs(&r, &s);
    if (!done)
        fprintf(stderr, "vae: %s\n", kn_error_message());
    clean_up(&r);
    return options_finish("vae", done ? 0 : 1);
}
