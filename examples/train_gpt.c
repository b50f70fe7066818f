/* train_gpt.c - trains a small GPT on a text, and prints what it writes as it learns. */
#include <koine/koine.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/options.h"
#include "common/text_files.h"
#include "common/training.h"

static const char program[] = "train_gpt";
static const char purpose[] = "Trains a small GPT-2 to continue a text, of which it keeps the last tenth to measure\n"
                              "the loss and perplexity of text that it has not seen.\n"
                              "\n"
                              "An epoch is --steps batches of windows drawn from the text; then a sample of the\n"
                              "network's own text is printed and last.safetensors is written to --out, from which\n"
                              "--resume continues. Ctrl-C and SIGTERM end the run after the current step.\n"
                              "\n" TRAINING_RANKS "\n"
                              "Exit status: 0 done, 1 an error, 2 wrong usage, 130 after Ctrl-C, 143 after\n"
                              "SIGTERM (128 plus the signal's number).";

/* The licences that every Debian machine has: a quarter of a megabyte of English. */
#define TEXT "/usr/share/common-licenses"

typedef struct settings {
    const char *device, *text, *tokenizer, *out, *precision, *prompt;
    int64_t vocab, context, layers, heads, width, batch_size, epochs, steps, warmup, seed, sample, top_k;
    double lr, weight_decay, clip, dropout, temperature;
    bool resume, quiet;
} settings;

static int parse(settings *s, int argc, char **argv)
{
    const option options[] = {
        {"--device", "D", OPTION_TEXT, &s->device, 0, 0,
         "auto, gpu, cpu, nvidia, pocl:0, 0:1, ... (see `koine devices`)"},
        {"--text", "PATH", OPTION_TEXT, &s->text, 0, 0, "a file, or a folder whose files are read"},
        {"--tokenizer", "FILE", OPTION_TEXT, &s->tokenizer, 0, 0, "a tokenizer.json, as GPT-2's; without one, bytes"},
        {"--vocab", "N", OPTION_WHOLE, &s->vocab, 0, 100000,
         "learn a tokenizer of N tokens, or resume with that in --out; 0: bytes"},
        {"--context", "N", OPTION_WHOLE, &s->context, 1, 65536, "tokens that the network sees"},
        {"--layers", "N", OPTION_WHOLE, &s->layers, 1, 1000, "blocks of attention and perceptron"},
        {"--heads", "N", OPTION_WHOLE, &s->heads, 1, 1000, "heads of attention; --width is a multiple of it"},
        {"--width", "N", OPTION_WHOLE, &s->width, 1, 65536, "size of the embedding"},
        {"--dropout", "X", OPTION_NUMBER, &s->dropout, 0, 0.99, "probability of dropout"},
        {"--batch-size", "N", OPTION_WHOLE, &s->batch_size, 1, 65536, "windows per step and process"},
        {"--epochs", "N", OPTION_WHOLE, &s->epochs, 1, 1000000, "epochs, including those before --resume"},
        {"--steps", "N", OPTION_WHOLE, &s->steps, 1, 10000000, "steps per epoch"},
        {"--lr", "X", OPTION_NUMBER, &s->lr, 0, 1000, "highest learning rate of AdamW"},
        {"--warmup", "N", OPTION_WHOLE, &s->warmup, 1, 10000000,
         "steps until it is reached; then it falls as a cosine"},
        {"--weight-decay", "X", OPTION_NUMBER, &s->weight_decay, 0, 1000, "of matrices; biases and norms have none"},
        {"--clip", "X", OPTION_NUMBER, &s->clip, 0, 1e9, "largest norm of the gradients; 0: any"},
        {"--precision", PRECISIONS, OPTION_CHOICE, &s->precision, 0, 0, "of products"},
        {"--sample", "N", OPTION_WHOLE, &s->sample, 0, 1000000, "tokens of each sample"},
        {"--prompt", "TEXT", OPTION_TEXT, &s->prompt, 0, 0, "what samples begin with"},
        {"--temperature", "X", OPTION_NUMBER, &s->temperature, 1e-6, 1000, "of samples: below 1 bolder, above wilder"},
        {"--top-k", "N", OPTION_WHOLE, &s->top_k, 1, 1000000, "samples draw from the N most probable tokens"},
        {"--seed", "N", OPTION_WHOLE, &s->seed, 0, 9e18, "seed of the weights, the windows, dropout and samples"},
        {"--out", "DIR", OPTION_TEXT, &s->out, 0, 0, "folder for history, checkpoints and tokenizer"},
        {"--resume", NULL, OPTION_FLAG, &s->resume, 0, 0,
         "continue from last.safetensors in --out, bit for bit like an uninterrupted run"},
        {"--quiet", NULL, OPTION_FLAG, &s->quiet, 0, 0, "no progress on stderr"},
    };
    return options_parse(program, purpose, options, OPTION_COUNT(options), argc, argv);
}

typedef struct run {
    const settings *s;
    kn_group *group;
    kn_device *device;
    kn_tokenizer *tokenizer;
    kn_dataset *train_data, *test_data;
    kn_sampler *sampler;
    kn_loader *train, *test;
    kn_module *net;
    kn_optim *optim;
    kn_lr_scheduler *schedule;
    kn_trainer *trainer;
} run;

static void clean_up(run *r)
{
    const bool trained = r->trainer != NULL;
    kn_trainer_free(r->trainer);
    kn_lr_scheduler_free(r->schedule);
    kn_optim_free(r->optim);
    kn_module_free(r->net);
    kn_loader_free(r->train);
    kn_loader_free(r->test);
    kn_sampler_free(r->sampler);
    kn_dataset_free(r->train_data);
    kn_dataset_free(r->test_data);
    kn_tokenizer_free(r->tokenizer);
    training_leave(r->group, trained);
}

/* --- the text --------------------------------------------------------------------------------------------- */

/* Is there such a file in --out? */
static bool find_output(const settings *s, const char *name, char path[4096])
{
    snprintf(path, 4096, "%s/%s", s->out, name);
    return access(path, R_OK) == 0;
}

/* A resumed run keeps the tokenizer that it has learned: one learned from another text would give its network's ids to
 * other tokens, and replace it. */
static kn_status open_tokenizer(run *r, const char *text, size_t size)
{
    const settings *s = r->s;
    char path[4096];
    const bool keeps = s->resume && find_output(s, "last.safetensors", path) && find_output(s, "tokenizer.json", path);
    r->tokenizer = s->tokenizer != NULL ? kn_tokenizer_load(s->tokenizer)
                   : s->vocab == 0      ? kn_byte_tokenizer()
                   : keeps              ? kn_tokenizer_load(path)
                                        : kn_bpe_train(text, size, s->vocab);
    const int64_t vocab = kn_tokenizer_vocab_size(r->tokenizer);
    if (keeps && s->tokenizer == NULL && vocab > 0 && s->vocab > 0 && vocab != s->vocab)
        fprintf(stderr, "%s: resuming with the %lld tokens of %s, not %lld\n", program, (long long)vocab, path,
                (long long)s->vocab);
    return kn_status_of(r->tokenizer);
}

/* A learned tokenizer is written to --out, which the trainer has made by then. */
static kn_status before_fit(kn_trainer *trainer, void *user)
{
    (void)trainer;
    const run *r = user;
    char path[4096];
    snprintf(path, sizeof path, "%s/tokenizer.json", r->s->out);
    const bool is_learned = r->s->tokenizer == NULL && r->s->vocab > 0;
    return is_learned && kn_group_rank(r->group) == 0 ? kn_tokenizer_save(r->tokenizer, path) : KN_OK;
}

/* Training draws windows from anywhere in the first nine tenths; the rest is cut into windows once. */
static kn_status make_loaders(run *r, const int64_t *ids, int64_t count)
{
    const settings *s = r->s;
    printf("text: %lld tokens of %lld kinds\n", (long long)count, (long long)kn_tokenizer_vocab_size(r->tokenizer));
    r->train_data = kn_token_dataset(ids, count, s->context, .stride = 1, .end = 0.9);
    r->test_data = kn_token_dataset(ids, count, s->context, .begin = 0.9);
    r->sampler = kn_random_sampler(r->train_data, .replacement = true,
                                   .num_samples = s->steps * s->batch_size * kn_group_size(r->group));
    r->train = kn_loader_new(r->train_data, .batch_size = s->batch_size, .sampler = r->sampler, .num_workers = 1,
                             .seed = (uint64_t)s->seed);
    r->test = kn_loader_new(r->test_data, .batch_size = s->batch_size, .num_workers = 1);
    return r->sampler != NULL && r->train != NULL && r->test != NULL ? KN_OK : kn_error_status();
}

static kn_status open_text(run *r)
{
    size_t size;
    char *text = text_files_read(program, r->s->text, &size);
    if (text == NULL)
        return kn_error_set(KN_ERR_IO, "there is no text to learn from");
    int64_t *ids = NULL, count;
    kn_status status = open_tokenizer(r, text, size);
    if (status == KN_OK)
        status = kn_tokenizer_encode(r->tokenizer, text, size, &ids, &count);
    free(text);
    if (status == KN_OK)
        status = make_loaders(r, ids, count);
    kn_free(ids);
    return status;
}

/* --- the network ------------------------------------------------------------------------------------------ */

/* Weight decay is for matrices, not for biases and norms. */
static kn_optim *make_optimizer(kn_module *net, const settings *s)
{
    kn_parameter_list all = kn_module_parameters(net), matrices = {0}, others = {0};
    kn_tensor **list = calloc(2 * (size_t)all.count + 1, sizeof *list);
    const char **names = calloc(2 * (size_t)all.count + 1, sizeof *names);
    if (list == NULL || names == NULL || all.count == 0) {
        free(list);
        free(names);
        return NULL;
    }
    matrices.tensors = list;
    matrices.names = names;
    others.tensors = list + all.count;
    others.names = names + all.count;
    for (int i = 0; i < all.count; i++) {
        int at = kn_ndim(all.tensors[i]) >= 2 ? matrices.count++ : all.count + others.count++;
        list[at] = all.tensors[i];
        names[at] = all.names[i];
    }
    kn_optim *optim = kn_optim_adamw(matrices, .lr = s->lr, .beta2 = 0.95, .weight_decay = s->weight_decay);
    if (optim != NULL && kn_optim_add_group(optim, others, {"weight_decay", 0}) != KN_OK) {
        kn_optim_free(optim);
        optim = NULL;
    }
    free(list);
    free(names);
    return optim;
}

/* Up to --lr in a line, then down to a tenth of it as a cosine. */
static kn_lr_scheduler *make_schedule(kn_optim *optim, const settings *s)
{
    const int64_t steps = s->epochs * s->steps, rest = steps > s->warmup ? steps - s->warmup : 1;
    kn_lr_scheduler *parts[] = {
        kn_linear_lr(optim, .start_factor = 1.0 / (double)s->warmup, .total_iters = s->warmup),
        kn_cosine_annealing_lr(optim, rest, .eta_min = s->lr / 10),
    };
    return kn_sequential_lr(optim, parts, 2, &s->warmup);
}

static kn_tensor *next_token_loss(kn_tensor *const *outputs, const kn_batch *batch, void *user)
{
    (void)user;
    kn_tensor *logits = outputs[0];
    return kn_cross_entropy(kn_reshape(logits, KN_SHAPE(-1, kn_size(logits, 2))),
                            kn_reshape(batch->target, KN_SHAPE(-1)));
}

/* --- samples ---------------------------------------------------------------------------------------------- */

/* Draws the token after the `count` last ones of `tokens`. The window always has the same size, so that the same
 * kernels serve all of them: what follows the tokens does not matter to a network that only looks back. */
static kn_status draw(run *r, const int64_t *tokens, int64_t count, kn_generator *generator, int64_t *token)
{
    KN_SCOPE;
    const settings *s = r->s;
    const int64_t vocab = kn_tokenizer_vocab_size(r->tokenizer), k = s->top_k < vocab ? s->top_k : vocab;
    kn_tensor *window = kn_from_data(tokens, KN_SHAPE(1, s->context), .dtype = KN_I64);
    kn_tensor *logits = kn_narrow(kn_forward(r->net, window), 1, count - 1, 1), *ids = NULL;
    kn_tensor *best = kn_topk(kn_reshape(logits, KN_SHAPE(vocab)), k, &ids);
    kn_tensor *chances = kn_softmax(kn_div_scalar(best, s->temperature), 0);
    kn_tensor *drawn = kn_multinomial(chances, 1, .generator = generator);
    return kn_read(kn_index_select(ids, 0, drawn), token, sizeof *token);
}

/* `tokens` begins with the prompt and has room for --sample more. */
static kn_status continue_text(run *r, int64_t *tokens, int64_t count, kn_generator *generator)
{
    const int64_t context = r->s->context;
    for (int64_t i = 0; i < r->s->sample; i++, count++) {
        const int64_t first = count > context ? count - context : 0;
        kn_status status = draw(r, tokens + first, count - first, generator, &tokens[count]);
        if (status != KN_OK)
            return status;
    }
    size_t length;
    char *text = kn_tokenizer_decode(r->tokenizer, tokens, count, .length = &length);
    if (text == NULL)
        return kn_error_status();
    text_print(text, length);
    puts("\n");
    kn_free(text);
    return KN_OK;
}

static kn_status print_sample(run *r, int epoch)
{
    KN_NO_GRAD;
    const settings *s = r->s;
    int64_t *prompt, count;
    kn_status status = kn_tokenizer_encode(r->tokenizer, s->prompt, strlen(s->prompt), &prompt, &count);
    if (status != KN_OK)
        return status;
    int64_t *tokens = calloc((size_t)(count + s->sample + s->context), sizeof *tokens);
    kn_generator *generator = kn_generator_new(r->device); /* of its own: training draws the same numbers without it */
    if (tokens != NULL && generator != NULL && count > 0) {
        memcpy(tokens, prompt, (size_t)count * sizeof *tokens);
        kn_generator_manual_seed(generator, (uint64_t)(s->seed + epoch));
        kn_module_train(r->net, false);
        status = continue_text(r, tokens, count, generator);
        kn_module_train(r->net, true);
    }
    kn_generator_free(generator);
    free(tokens);
    kn_free(prompt);
    return status;
}

static kn_status after_epoch(kn_trainer *trainer, int epoch, const kn_history *history, void *user)
{
    (void)trainer;
    run *r = user;
    const int row = kn_history_epochs(history) - 1;
    for (int c = 0; c < kn_history_columns(history); c++)
        if (strcmp(kn_history_column(history, c), "val_loss") == 0)
            printf("epoch %d: held-out loss %.4f, perplexity %.2f\n", epoch, kn_history_value(history, row, c),
                   exp(kn_history_value(history, row, c)));
    const bool is_first = kn_group_rank(r->group) == 0;
    kn_status status = r->s->sample > 0 && is_first ? print_sample(r, epoch) : KN_OK;
    fflush(stdout);
    return status;
}

/* --- main ------------------------------------------------------------------------------------------------- */

static kn_status make_network(run *r)
{
    const settings *s = r->s;
    kn_manual_seed((uint64_t)s->seed);
    r->net = kn_models_gpt2(.vocab_size = kn_tokenizer_vocab_size(r->tokenizer), .n_positions = s->context,
                            .n_embd = s->width, .n_layer = s->layers, .n_head = s->heads, .dropout = s->dropout);
    r->net = training_module(r->net, r->group, (uint64_t)s->seed);
    r->optim = r->net != NULL ? make_optimizer(r->net, s) : NULL;
    r->schedule = r->optim != NULL ? make_schedule(r->optim, s) : NULL;
    if (r->schedule == NULL)
        return kn_error_status();
    printf("network: %lld parameters\n", (long long)kn_module_parameter_count(r->net));
    r->trainer = kn_trainer_new(.module = r->net, .optim = r->optim, .loss = next_token_loss, .accuracy = false,
                                .epochs = (int)s->epochs, .patience = 0, .output = s->out, .resume = s->resume,
                                .quiet = s->quiet, .scheduler = r->schedule, .scheduler_per_step = true,
                                .clip_grad_norm = s->clip, .precision = training_precision(s->precision));
    return r->trainer != NULL
               ? kn_trainer_add_callback(
                     r->trainer, &(kn_callback){.on_fit_start = before_fit, .on_epoch_end = after_epoch, .user = r})
               : kn_error_status();
}

static kn_status train(run *r)
{
    r->group = training_ranks();
    r->device = r->group != NULL ? training_device(r->s->device, r->group) : NULL;
    if (r->device == NULL)
        return kn_error_status();
    kn_status status = open_text(r);
    if (status == KN_OK)
        status = make_network(r);
    fflush(stdout);
    return status == KN_OK ? kn_trainer_fit(r->trainer, r->train, r->test) : status;
}

int main(int argc, char **argv)
{
    settings s = {.device = "auto",
                  .text = TEXT,
                  .out = "./gpt",
                  .precision = "f32",
                  .prompt = "\n",
                  .context = 128,
                  .layers = 4,
                  .heads = 4,
                  .width = 128,
                  .batch_size = 32,
                  .epochs = 10,
                  .steps = 200,
                  .warmup = 100,
                  .sample = 200,
                  .top_k = 40,
                  .lr = 1e-3,
                  .weight_decay = 0.1,
                  .clip = 1,
                  .dropout = 0.1,
                  .temperature = 0.8};
    int usage = parse(&s, argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    run r = {.s = &s};
    kn_status status = train(&r);
    const int exit_status = training_status(program, status, r.trainer);
    if (r.trainer != NULL && kn_trainer_epoch(r.trainer) > 0)
        printf("written to %s:\n  %s\n", s.out, kn_trainer_files(r.trainer));
    clean_up(&r);
    return options_finish(program, exit_status);
}
