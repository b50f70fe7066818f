/* ops/user/jit_parse.c - finds the last function in OpenCL C code and reads its signature.
 *
 * It is not a compiler: it knows tokens, nesting, and the form `type name(parameters) {`. Everything else is left to
 * the compiler, whose messages have the user's line numbers. */
#include "ops/user/jit_parse.h"

#include <stdio.h>
#include <string.h>

#include "ops/user/jit_lexer.h"

/* --- finding the function ----------------------------------------------------------------------------------------- */

enum { MAX_HEAD = 5 * KN_JIT_MAX_PARAMETERS };

/* The tokens before a `{` at the outermost level. */
typedef struct head {
    kn_jit_token tokens[MAX_HEAD];
    int count;
} head;

/* `template <typename T>` is PyTorch's (C++) declaration of T. */
static kn_status blank_template(kn_jit_lexer *l, kn_jit_token *t)
{
    char *from = t->start;
    const int line = t->line;
    while (t->length > 0 && !kn_jit_token_is(t, ">"))
        KN_TRY(kn_jit_next_token(l, t));
    if (t->length == 0)
        return kn_fail(KN_ERR_ARGUMENT, "`template` in line %d of the code lacks its `<typename T>`", line);
    for (; from <= t->start; from++)
        if (*from != '\n')
            *from = ' ';
    return KN_OK;
}

static bool is_function(const head *h) { return h->count >= 4 && kn_jit_token_is(&h->tokens[h->count - 1], ")"); }

/* The `(` of the parameter list, which the head's last token closes; -1: none. */
static int find_list(const head *h)
{
    int depth = 0;
    for (int i = h->count - 1; i >= 0; i--) {
        depth += kn_jit_token_is(&h->tokens[i], ")") - kn_jit_token_is(&h->tokens[i], "(");
        if (depth == 0)
            return i;
    }
    return -1;
}

/* OpenCL C has no recursion, and some compilers crash on it. */
static kn_status check_call(const head *h, const kn_jit_token *called)
{
    const int list = is_function(h) ? find_list(h) : -1;
    const kn_jit_token *own = list > 0 ? &h->tokens[list - 1] : NULL;
    if (!own || own->length != called->length || strncmp(own->start, called->start, (size_t)own->length) != 0)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "line %d: `%.*s` calls itself, which OpenCL C does not allow", called->line,
                   called->length, called->start);
}

/* Skips from after the head's `{`, in `line`, to its `}`. */
static kn_status skip_braces(kn_jit_lexer *l, const head *h, int line)
{
    kn_jit_token t, before = {.length = 0};
    for (int depth = 1; depth > 0; before = t) {
        KN_TRY(kn_jit_next_token(l, &t));
        if (t.length == 0)
            return kn_fail(KN_ERR_ARGUMENT, "the `{` in line %d of the code has no `}`", line);
        if (kn_jit_token_is(&t, "(") && before.length > 0)
            KN_TRY(check_call(h, &before));
        depth += kn_jit_token_is(&t, "{") - kn_jit_token_is(&t, "}");
    }
    return KN_OK;
}

/* *last is the head of the last function; count 0: there is none. */
static kn_status find_last_function(head *last, char *code)
{
    head current = {.count = 0};
    kn_jit_lexer l = kn_jit_lex(code);
    kn_jit_token t;
    last->count = 0;
    for (;;) {
        KN_TRY(kn_jit_next_token(&l, &t));
        if (t.length == 0)
            return KN_OK;
        if (kn_jit_token_is(&t, "template")) {
            KN_TRY(blank_template(&l, &t));
        } else if (kn_jit_token_is(&t, "{")) {
            KN_TRY(skip_braces(&l, &current, t.line));
            if (is_function(&current)) {
                *last = current;
                current.count = 0;
            }
        } else if (kn_jit_token_is(&t, "}")) {
            return kn_fail(KN_ERR_ARGUMENT, "the `}` in line %d of the code has no `{`", t.line);
        } else if (kn_jit_token_is(&t, ";")) {
            current.count = 0;
        } else if (current.count == MAX_HEAD) {
            return kn_fail(KN_ERR_ARGUMENT, "the declaration in line %d of the code is too long", t.line);
        } else {
            current.tokens[current.count++] = t;
        }
    }
}

/* --- reading it --------------------------------------------------------------------------------------------------- */

/* Qualifiers of pointers and numbers, which are ignored. */
static bool is_qualifier(const kn_jit_token *t)
{
    static const char *const words[] = {"const",      "static",    "inline",  "restrict",      "__restrict",
                                        "__inline__", "__private", "private", "__attribute__", NULL};
    return kn_jit_token_is_one_of(t, words);
}

static kn_status read_return_type(kn_jit_signature *s, const head *h, int name)
{
    const kn_jit_token *type = NULL;
    int count = 0;
    for (int i = 0, depth = 0; i < name; i++) {
        const kn_jit_token *t = &h->tokens[i];
        depth += kn_jit_token_is(t, "(") - kn_jit_token_is(t, ")");
        if (depth > 0 || kn_jit_token_is(t, ")") || is_qualifier(t))
            continue;
        type = t;
        count++;
    }
    s->returns_value = count == 1 && kn_jit_token_is(type, "T");
    if (s->returns_value || (count == 1 && kn_jit_token_is(type, "void")))
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "line %d: `%s` must return T, or void and give its results by pointers `T *`",
                   h->tokens[name].line, s->name);
}

static int find_scalar(const kn_jit_token *name, const kn_jit_scalar *scalars, int num_scalars)
{
    for (int i = 0; i < num_scalars && scalars[i].name; i++)
        if (kn_jit_token_is(name, scalars[i].name))
            return i;
    return -1;
}

static bool is_number_type(const kn_jit_token *type)
{
    static const char *const words[] = {"T", "float", "double", "int", "long", NULL};
    return kn_jit_token_is_one_of(type, words);
}

/* The parts of a parameter: `type *name`. */
typedef struct declaration {
    const kn_jit_token *type, *name;
    int stars;
} declaration;

static kn_status split_parameter(const kn_jit_signature *s, declaration *d, const kn_jit_token *tokens, int count)
{
    *d = (declaration){0};
    for (int i = 0; i < count; i++) {
        const kn_jit_token *t = &tokens[i];
        if (is_qualifier(t))
            continue;
        if (kn_jit_token_is(t, "*"))
            d->stars++;
        else if (kn_jit_token_is_word(t) && !d->type)
            d->type = t;
        else if (kn_jit_token_is_word(t) && !d->name)
            d->name = t;
        else
            return kn_fail(KN_ERR_ARGUMENT,
                           "line %d: parameter %d of `%s` is neither `T x`, an input, nor `T *y`, an output; `%.*s` is "
                           "not understood",
                           t->line, s->num_parameters + 1, s->name, t->length, t->start);
    }
    if (d->type && d->name)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "line %d: parameter %d of `%s` needs a type and a name", tokens->line,
                   s->num_parameters + 1, s->name);
}

static kn_status read_parameter(kn_jit_signature *s, const kn_jit_token *tokens, int count,
                                const kn_jit_scalar *scalars, int num_scalars)
{
    declaration d;
    KN_TRY(split_parameter(s, &d, tokens, count));
    if (s->num_parameters == KN_JIT_MAX_PARAMETERS)
        return kn_fail(KN_ERR_ARGUMENT, "`%s` has more than %d parameters", s->name, KN_JIT_MAX_PARAMETERS);
    kn_jit_parameter *p = &s->parameters[s->num_parameters++];
    const int scalar = find_scalar(d.name, scalars, num_scalars);
    snprintf(p->type, sizeof p->type, "%.*s", d.type->length, d.type->start);
    if (scalar >= 0 && d.stars == 0 && is_number_type(d.type))
        *p = (kn_jit_parameter){.kind = KN_JIT_NUMBER, .index = scalar, .type = ""};
    else if (scalar < 0 && d.stars < 2 && kn_jit_token_is(d.type, "T"))
        *p = (kn_jit_parameter){.kind = d.stars ? KN_JIT_POINTER : KN_JIT_VALUE, .type = ""};
    else
        return kn_fail(KN_ERR_ARGUMENT,
                       "line %d: parameter `%.*s` of `%s` must be `T`, an element of a tensor, or `T *`, an output, or "
                       "be named in .scalars and be a number: T, float, double, int or long",
                       d.name->line, d.name->length, d.name->start, s->name);
    snprintf(p->type, sizeof p->type, "%.*s", d.type->length, d.type->start);
    if (p->kind == KN_JIT_VALUE)
        p->index = s->num_values++;
    else if (p->kind == KN_JIT_POINTER)
        p->index = s->num_pointers++;
    return KN_OK;
}

static kn_status read_parameters(kn_jit_signature *s, const kn_jit_token *tokens, int count,
                                 const kn_jit_scalar *scalars, int num_scalars)
{
    int start = 0;
    if (count == 0 || (count == 1 && kn_jit_token_is(tokens, "void")))
        return kn_fail(KN_ERR_ARGUMENT, "`%s` has no parameters; it needs at least one tensor, `T x`", s->name);
    for (int i = 0; i <= count; i++) {
        if (i < count && !kn_jit_token_is(&tokens[i], ","))
            continue;
        if (i == start)
            return kn_fail(KN_ERR_ARGUMENT, "parameter %d of `%s` is empty", s->num_parameters + 1, s->name);
        KN_TRY(read_parameter(s, tokens + start, i - start, scalars, num_scalars));
        start = i + 1;
    }
    if (s->returns_value && s->num_pointers > 0)
        return kn_fail(KN_ERR_ARGUMENT, "`%s` returns T and has outputs by pointer too: return void", s->name);
    if (!s->returns_value && s->num_pointers == 0)
        return kn_fail(KN_ERR_ARGUMENT, "`%s` has no result: return T, or give results by pointers, `T *y`", s->name);
    return KN_OK;
}

kn_status kn_jit_parse(kn_jit_signature *signature, char *code, const kn_jit_scalar *scalars, int num_scalars)
{
    head h;
    *signature = (kn_jit_signature){.num_parameters = 0};
    KN_TRY(find_last_function(&h, code));
    const int list = h.count > 0 ? find_list(&h) : -1;
    if (list < 1 || !kn_jit_token_is_word(&h.tokens[list - 1]))
        return kn_fail(KN_ERR_ARGUMENT, "the code has no function such as `T f(T x) { return x; }`");
    const kn_jit_token *name = &h.tokens[list - 1];
    if (name->length >= KN_JIT_NAME)
        return kn_fail(KN_ERR_ARGUMENT, "line %d: a function's name may have at most %d characters", name->line,
                       KN_JIT_NAME - 1);
    snprintf(signature->name, sizeof signature->name, "%.*s", name->length, name->start);
    signature->suits_vectors = kn_jit_suits_vectors(code);
    KN_TRY(read_return_type(signature, &h, list - 1));
    return read_parameters(signature, &h.tokens[list + 1], h.count - list - 2, scalars, num_scalars);
}
