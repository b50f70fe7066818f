/* ops/user/jit_vectors.c - checks whether an elementwise function can be compiled for vectors unchanged.
 *
 * Arithmetic, `x > 0 ? a : b` and the functions of OpenCL have the same meaning for a vector, element by element, and
 * invalid uses do not compile. What compiles with another meaning is the value of a comparison, of `!`, `&&` and `||`:
 * 1 for elements, -1 for vectors. So these may be used only as conditions: `(x > 0) == 1`, `(x > 0) + (y > 0)`, `!x ==
 * 1`, `0 < x < 1` exclude vectors. An integer vector as a condition is true where the sign bit is set, so the condition
 * of `?` must be a comparison. Control flow, C types other than T, and functions of a whole vector exclude vectors
 * too. */
#include <string.h>

#include "ops/user/jit_lexer.h"
#include "ops/user/jit_parse.h"

enum { MAX_DEPTH = 64 };

/* The inside of a pair of parentheses, or the whole code. */
typedef struct level {
    int comparisons;    /* in the current piece: between two of `? : ; , && || = { }` */
    bool is_comparison; /* its value so far may be a comparison's */
    bool is_condition;  /* the current piece, and those joined to it by && and ||, is a condition */
    bool may_compare;   /* the preceding token takes a condition */
    bool is_select;     /* the arguments of select(a, b, condition), whose value is that of a or b */
    bool is_negated;    /* preceded by `!` */
} level;

typedef struct scan {
    level levels[MAX_DEPTH];
    int depth;
    kn_jit_token before;    /* the previous token */
    bool closed_comparison; /* it closed a group with a comparison */
    bool suits;
} scan;

static bool is_forbidden(const kn_jit_token *t)
{
    static const char *const words[] = {
        "if",    "for",    "while",  "do",      "switch",   "goto",      "sizeof",   "float",    "double",
        "int",   "uint",   "long",   "ulong",   "short",    "ushort",    "char",     "uchar",    "half",
        "bool",  "signed", "struct", "union",   "TS",       "unsigned",  "size_t",   "volatile", "typedef",
        "enum",  "asm",    "any",    "all",     "dot",      "signbit",   "vec_step", "length",   "distance",
        "cross", "ilogb",  "printf", "shuffle", "shuffle2", "normalize", NULL};
    static const char *const prefixes[] = {"is",   "as_",  "vload", "vstore", "convert_", "__",
                                           "get_", "jit_", "JIT_",  "fast_",  NULL};
    for (int i = 0; prefixes[i]; i++)
        if (strncmp(t->start, prefixes[i], strlen(prefixes[i])) == 0 && !kn_jit_token_is(t, "__attribute__"))
            return true;
    return kn_jit_token_is_one_of(t, words);
}

static bool is_any(const kn_jit_token *t, const char *characters)
{
    return t->length == 1 && strchr(characters, *t->start) != NULL;
}

static void compare(scan *s)
{
    level *here = &s->levels[s->depth];
    here->is_comparison = here->is_condition = true;
    s->suits = s->suits && ++here->comparisons == 1;
}

/* May a condition begin after this token? */
static bool takes_condition(const kn_jit_token *t)
{
    return t->length == 0 || kn_jit_token_is(t, "return") || is_any(t, "(&|?:,;{}");
}

/* `!` binds tightest: it may only negate a group. */
static void negate(scan *s, const kn_jit_token *t)
{
    s->suits = s->suits && takes_condition(&s->before) && t->start[1] == '(';
}

/* `=`, alone or the end of `==`, `!=`, `<=`, `>=`. */
static void see_equals(scan *s, const kn_jit_token *t)
{
    const bool second = s->before.length == 1 && s->before.start + 1 == t->start;
    if (second && is_any(&s->before, "=!"))
        compare(s);
    else if (t->start[1] != '=' && !(second && is_any(&s->before, "<>")))
        s->levels[s->depth].comparisons = 0; /* an assignment */
}

static void open_parenthesis(scan *s)
{
    const bool select = kn_jit_token_is(&s->before, "select");
    const bool call = kn_jit_token_is_word(&s->before) && !kn_jit_token_is(&s->before, "return");
    const bool may =
        select ||
        (!call && (s->before.length == 0 || kn_jit_token_is_word(&s->before) || is_any(&s->before, "(&|!?:,;{}")));
    if (s->depth + 1 == MAX_DEPTH)
        s->suits = false;
    else
        s->levels[++s->depth] = (level){.may_compare = may, .is_select = select, .is_negated = is_any(&s->before, "!")};
}

static void close_parenthesis(scan *s)
{
    const level closed = s->levels[s->depth];
    s->depth -= s->depth > 0;
    if (!closed.is_comparison && !closed.is_negated)
        return;
    s->suits = s->suits && closed.may_compare;
    s->closed_comparison = !closed.is_select;
    if (s->closed_comparison)
        s->levels[s->depth].is_comparison = s->levels[s->depth].is_condition = true;
}

/* The end of a piece. A comparison in the first arguments of a call would be used as a number. */
static void end_piece(scan *s, const kn_jit_token *t)
{
    level *here = &s->levels[s->depth];
    const bool joins = is_any(t, "&|"); /* && and ||, whose value is a comparison's */
    if ((is_any(t, ",") && s->depth > 0 && here->is_comparison) || (is_any(t, "?") && !here->is_condition))
        s->suits = false;
    here->comparisons = 0;
    here->is_condition = joins;
    here->is_comparison = joins || (here->is_comparison && is_any(t, ":"));
}

/* `&` and `|` of two comparisons are numbers; `&&` and `||` are not. */
static bool is_doubled(const scan *s, const kn_jit_token *t)
{
    return t->start[1] == *t->start ||
           (s->before.length == 1 && s->before.start + 1 == t->start && *s->before.start == *t->start);
}

static void see(scan *s, const kn_jit_token *t)
{
    if (s->closed_comparison && !is_any(t, ")&|?:,;"))
        s->suits = false;
    s->closed_comparison = false;
    if (is_forbidden(t) || is_any(t, "^~") || (is_any(t, "&|") && !is_doubled(s, t)))
        s->suits = false;
    else if (is_any(t, "("))
        open_parenthesis(s);
    else if (is_any(t, ")"))
        close_parenthesis(s);
    else if (is_any(t, "<>"))
        compare(s);
    else if (is_any(t, "="))
        see_equals(s, t);
    else if (is_any(t, "!") && t->start[1] != '=')
        negate(s, t);
    else if (is_any(t, "&|:?,;{}"))
        end_piece(s, t);
    s->before = *t;
}

bool kn_jit_suits_vectors(char *code)
{
    kn_jit_lexer lexer = kn_jit_lex(code);
    scan s = {.suits = true};
    kn_jit_token t;
    while (s.suits) {
        if (kn_jit_next_token(&lexer, &t) != KN_OK)
            return false;
        if (t.length == 0)
            break;
        see(&s, &t);
    }
    return s.suits && !lexer.saw_directive; /* macros are not analysed */
}
